//! The tables of RFC 6121 Appendix A, as they stand there.

use super::*;
use SubscriptionAction::{Subscribe, Subscribed, Unsubscribe, Unsubscribed};

const NONE: &str = "None";
const ACTIONS: [SubscriptionAction; 4] = [Subscribe, Unsubscribe, Subscribed, Unsubscribed];

/// The nine states by their names in Appendix A.1.
fn standing(name: &str) -> Standing {
    let (state, pending) = name.split_once(" + ").unwrap_or((name, ""));
    Standing {
        to: matches!(state, "To" | "Both"),
        from: matches!(state, "From" | "Both"),
        pending_out: pending.contains("Out"),
        pending_in: pending.contains("In"),
        approved: false,
    }
}

/// A.2: state, and for subscribe, unsubscribe, subscribed and unsubscribed whether it is routed and the state after it.
const OUTBOUND: [(&str, [(bool, &str); 4]); 9] = [
    (NONE, [(true, "None + Pending Out"), (true, NONE), (false, NONE), (false, NONE)]),
    (
        "None + Pending Out",
        [
            (true, "None + Pending Out"),
            (true, NONE),
            (false, "None + Pending Out"),
            (false, "None + Pending Out"),
        ],
    ),
    (
        "None + Pending In",
        [(true, "None + Pending Out+In"), (true, "None + Pending In"), (true, "From"), (true, NONE)],
    ),
    (
        "None + Pending Out+In",
        [
            (true, "None + Pending Out+In"),
            (true, "None + Pending In"),
            (true, "From + Pending Out"),
            (true, "None + Pending Out"),
        ],
    ),
    ("To", [(true, "To"), (true, NONE), (false, "To"), (false, "To")]),
    (
        "To + Pending In",
        [(true, "To + Pending In"), (true, "None + Pending In"), (true, "Both"), (true, "To")],
    ),
    ("From", [(true, "From + Pending Out"), (true, "From"), (false, "From"), (true, NONE)]),
    (
        "From + Pending Out",
        [
            (true, "From + Pending Out"),
            (true, "From"),
            (false, "From + Pending Out"),
            (true, "None + Pending Out"),
        ],
    ),
    ("Both", [(true, "Both"), (true, "From"), (false, "Both"), (true, "To")]),
];

/// A.3: state, and for the same four the state after it. What is delivered follows from that: A.3 delivers what changes the state, and
/// nothing else.
const INBOUND: [(&str, [&str; 4]); 9] = [
    (NONE, ["None + Pending In", NONE, NONE, NONE]),
    ("None + Pending Out", ["None + Pending Out+In", "None + Pending Out", "To", NONE]),
    ("None + Pending In", ["None + Pending In", NONE, "None + Pending In", "None + Pending In"]),
    (
        "None + Pending Out+In",
        ["None + Pending Out+In", "None + Pending Out", "To + Pending In", "None + Pending In"],
    ),
    ("To", ["To + Pending In", "To", "To", NONE]),
    ("To + Pending In", ["To + Pending In", "To", "To + Pending In", "None + Pending In"]),
    ("From", ["From", NONE, "From", "From"]),
    ("From + Pending Out", ["From + Pending Out", "None + Pending Out", "Both", "From"]),
    ("Both", ["Both", "To", "Both", "From"]),
];

#[test]
fn what_an_account_says_is_appendix_a_2() {
    for (before, row) in OUTBOUND {
        for (action, (is_routed, after)) in ACTIONS.into_iter().zip(row) {
            let mut state = standing(before);
            assert_eq!(state.says(action), is_routed, "{before}, {action:?}");
            // §3.4: a grant in advance is noted beside the state.
            let approved = action == Subscribed && !is_routed && !state.from;
            assert_eq!(state, Standing { approved, ..standing(after) }, "{before}, {action:?}");
        }
    }
}

#[test]
fn what_an_account_hears_is_appendix_a_3() {
    for (before, row) in INBOUND {
        for (action, after) in ACTIONS.into_iter().zip(row) {
            let mut state = standing(before);
            let grants = state.hears(action);
            assert_eq!(grants, action == Subscribe && standing(before).from, "{before}, {action:?}");
            assert_eq!(state, standing(after), "{before}, {action:?}");
        }
    }
}

#[test]
fn what_was_granted_in_advance_is_granted_at_once() {
    for (before, after) in [(NONE, "From"), ("None + Pending Out", "From + Pending Out"), ("To", "Both")] {
        let mut state = Standing { approved: true, ..standing(before) };
        assert!(state.hears(Subscribe), "{before}");
        assert_eq!(state, Standing { approved: true, ..standing(after) }, "{before}");
        // It is taken back with what it granted.
        assert!(state.says(Unsubscribed));
        assert_eq!(state, standing(before));
    }
    let mut state = Standing { approved: true, ..Standing::default() };
    assert!(!state.says(Unsubscribed) && state == Standing::default());
}

#[test]
fn bits_are_those_of_the_standing() {
    for bits in 0..32 {
        assert_eq!(Standing::of_bits(bits).bits(), bits);
    }
}

fn jid(name: &str) -> BareJid {
    BareJid::new(name).unwrap()
}

/// Two accounts whose rosters have room.
struct Pair {
    said: [Option<Contact>; 2],
}

impl Pair {
    fn side(&self, whose: usize) -> Side {
        let other = jid(["b@d", "a@d"][whose]);
        let used = self.said[whose].iter().fold(RosterUse::default(), RosterUse::and);
        Side { contact: self.said[whose].clone().unwrap_or_else(|| Contact::new(other)), used }
    }

    fn says(&mut self, who: usize, action: SubscriptionAction) {
        let bounds = RosterBounds { contacts: 10, requests: 10, bytes: 10_000 };
        let request = Bytes::from_static(b"<x/>");
        let (own, other) = (self.side(who), self.side(1 - who));
        let (own, other) = change_subscription(action, &own, Some(&other), &request, bounds).unwrap();
        (self.said[who], self.said[1 - who]) = (own, other);
    }

    fn removes(&mut self, who: usize) {
        self.said[who] = None;
        self.said[1 - who] = self.said[1 - who].take().and_then(removed_by);
    }

    fn check(&self) {
        let [a, b] =
            [0, 1].map(|whose| self.said[whose].as_ref().map_or(Standing::default(), |c| c.standing));
        assert_eq!((a.to, a.from, a.pending_out, a.pending_in), (b.from, b.to, b.pending_in, b.pending_out));
        for contact in self.said.iter().flatten() {
            let standing = contact.standing;
            assert!(!(standing.to && standing.pending_out || standing.from && standing.pending_in));
            assert_eq!(contact.request.is_some(), standing.pending_in);
            // One that is not shown has only asked.
            assert!(contact.is_listed || standing == Standing { pending_in: true, ..Standing::default() });
        }
    }
}

#[test]
fn both_sides_agree_whatever_was_said() {
    // Every sequence of six of what the two can do.
    for sequence in 0..10_u32.pow(6) {
        let mut pair = Pair { said: [None, None] };
        for place in 0..6 {
            match sequence / 10_u32.pow(place) % 10 {
                remove @ 0..2 => pair.removes(remove as usize),
                say => {
                    let say = say as usize - 2;
                    pair.says(say / 4, ACTIONS[say % 4]);
                }
            }
            pair.check();
        }
    }
}

#[test]
fn a_roster_without_room_hears_no_request_and_all_else() {
    let bounds = RosterBounds { contacts: 0, requests: 0, bytes: 0 };
    let side = |name| Side { contact: Contact::new(jid(name)), used: RosterUse::default() };
    let wide = RosterBounds { contacts: 1, requests: 0, bytes: 1000 };
    let request = Bytes::from_static(b"<x/>");
    assert_eq!(change_subscription(Subscribe, &side("b@d"), Some(&side("a@d")), &request, bounds), None);
    let (own, other) =
        change_subscription(Subscribe, &side("b@d"), Some(&side("a@d")), &request, wide).unwrap();
    assert!(own.unwrap().standing.pending_out);
    assert_eq!(other, None);
    let granted = Contact { standing: standing("To"), is_listed: true, ..Contact::new(jid("a@d")) };
    let used = RosterUse::default().and(&granted);
    let other = Side { contact: granted, used };
    let own = Contact { standing: standing("From"), is_listed: true, ..Contact::new(jid("b@d")) };
    let own = Side { used: RosterUse::default().and(&own), contact: own };
    let (own, other) = change_subscription(Unsubscribed, &own, Some(&other), &request, bounds).unwrap();
    assert_eq!((own.unwrap().standing, other.unwrap().standing), (Standing::default(), Standing::default()));
}

#[test]
fn their_forms() {
    use crate::form::testing::proves;
    let contact = Contact {
        name: "Ann".into(),
        groups: vec!["Läufer".into()],
        standing: Standing::of_bits(9),
        is_listed: true,
        request: Some(Bytes::from_static(b"<nick/>")),
        ..Contact::new(jid("ann@example.org"))
    };
    let change = RosterChange {
        account: jid("bob@example.org"),
        before: Generation(299),
        after: Generation(300),
        contact: contact.jid.clone(),
        was: None,
        is: Some(contact),
    };
    proves("BothSides", &BothSides { own: Some(change.clone()), other: None, evicted: Some(change) });
}
