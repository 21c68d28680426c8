//! What a client may be told of the stanzas it sent: those up to the first that is not settled.

use carillon_wire::ns;
use carillon_wire::stanza::Stanza;
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// The counts of a session's inbound stanzas. All numbers are modulo 2^32.
#[derive(Debug, Default)]
pub(crate) struct Inbound {
    /// How many were handled.
    handled: u32,
    /// Those of them, and the one that is being handled, that are not settled, oldest first. Eight bytes each, and no more of them than
    /// the store and the other shards take to their queues.
    unsettled: SmallVec<[Unsettled; 4]>,
    /// After a resumption: how many of those that were handled, but not acknowledged by it, the client has yet to repeat.
    repeats: u32,
    /// What the first of them was.
    repeated: u32,
    /// The stanza up to which an `<r/>` waits to be answered.
    requested: Option<u32>,
    /// Whether the timer is set that answers an `<r/>` in any case.
    has_timer: bool,
    /// Of a session that a dead node left: what was handled there, though one before it was not settled.
    passed: Option<Box<Passed>>,
}

// What is passed over is known to who adopts a session, and not written again: its client repeats it to begin with.
crate::form! {
    struct Inbound { handled, unsettled, repeats, repeated, requested, has_timer, passed: omitted(None) }
}

/// What a client repeats after its node died and that was handled there.
#[derive(Debug)]
struct Passed {
    /// What the first stanza that it repeats was, if that is known: if it is another, the client repeats nothing.
    first: u32,
    /// Numbers of stanzas that were handled, the last one first.
    numbers: SmallVec<[u32; 4]>,
}

/// A stanza that is not settled.
#[derive(Clone, Copy, Debug)]
struct Unsettled {
    number: u32,
    /// By which it is known again.
    hash: u32,
}

crate::form! { struct Unsettled { number, hash } }

/// What becomes of an `<r/>`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// It is answered with this `h`.
    Answer(u32),
    /// It waits, and a timer for it has to be set if there is none.
    Later { needs_timer: bool },
}

impl Inbound {
    /// A stanza was handled.
    pub(crate) fn handled(&mut self) {
        self.handled = self.handled.wrapping_add(1);
    }

    /// The stanza that is being handled is not settled with that: its number.
    pub(crate) fn begin(&mut self, stanza: &Stanza) -> u32 {
        let number = self.handled.wrapping_add(1);
        self.unsettled.push(Unsettled { number, hash: hash(stanza) });
        number
    }

    /// A stanza is settled. Returns the `h` for an `<r/>` that has waited for it.
    pub(crate) fn settled(&mut self, number: u32) -> Option<u32> {
        // They are settled in their order, but for those to other shards.
        if let Some(at) = self.unsettled.iter().position(|unsettled| unsettled.number == number) {
            self.unsettled.remove(at);
        }
        if self.unsettled.is_empty() {
            self.unsettled = SmallVec::new();
        }
        let (requested, h) = (self.requested?, self.h());
        let is_reached = requested.wrapping_sub(h).cast_signed() <= 0;
        is_reached.then(|| {
            self.requested = None;
            h
        })
    }

    /// An `<r/>` came.
    pub(crate) fn request(&mut self) -> Request {
        // What it has not repeated yet it does not ask for.
        if self.repeats > 0 || self.h() == self.handled {
            let (h, repeated) = (self.h(), self.handled.wrapping_sub(self.repeats));
            let is_settled = h.wrapping_sub(repeated).cast_signed() >= 0;
            return Request::Answer(if is_settled { repeated } else { h });
        }
        self.requested = Some(self.handled);
        Request::Later { needs_timer: !std::mem::replace(&mut self.has_timer, true) }
    }

    /// The timer fired. Returns the `h` for an `<r/>` that still waits; once all is settled it is answered again.
    pub(crate) fn timer_fired(&mut self) -> Option<u32> {
        self.has_timer = false;
        self.requested.map(|_| self.h())
    }

    /// The stanzas that are acknowledged: all before the first that is not settled.
    fn h(&self) -> u32 {
        self.unsettled.first().map_or(self.handled, |first| first.number.wrapping_sub(1))
    }

    /// The connection is gone, and with it what was asked on it.
    pub(crate) fn is_cut(&mut self) {
        self.requested = None;
    }

    /// The session goes on in another process, which does not learn what becomes of a stanza that is not settled: the client repeats it,
    /// and those behind it, and they are handled once more.
    pub(crate) fn is_moved(&mut self) {
        self.handled = self.h();
        (self.unsettled, self.repeats, self.repeated) = (SmallVec::new(), 0, 0);
        self.requested = None;
    }

    /// How many were handled, and how many are acknowledged.
    pub(crate) fn counts(&self) -> (u32, u32) {
        (self.handled, self.h())
    }

    /// The node of the session died. What was not settled is the client's to repeat, but for what is `held` in the queues of others; and of what it
    /// repeats that is passed over which was settled, or is held.
    pub(crate) fn is_orphaned(&mut self, held: &[u32]) {
        let held: BTreeSet<u32> = held.iter().copied().collect();
        self.unsettled.retain(|unsettled| !held.contains(&unsettled.number));
        let unsettled: BTreeSet<u32> = self.unsettled.iter().map(|unsettled| unsettled.number).collect();
        let (h, handled) = (self.h(), self.handled);
        let after = |number: u32| number.wrapping_sub(h).cast_signed() > 0;
        let count = handled.wrapping_sub(h);
        let known = (1..=count).map(|n| h.wrapping_add(n)).filter(|number| !unsettled.contains(number));
        let later = held.iter().copied().filter(|number| number.wrapping_sub(handled).cast_signed() > 0);
        let mut numbers: SmallVec<[u32; 4]> = known.chain(later).filter(|number| after(*number)).collect();
        numbers.sort_unstable_by_key(|number| Reverse(number.wrapping_sub(h)));
        numbers.dedup();
        let first = self.unsettled.first().map_or(0, |first| first.hash);
        self.passed = Some(Box::new(Passed { first, numbers }));
        self.is_moved();
        self.has_timer = false;
    }

    /// Whether it is known what the client need not repeat.
    pub(crate) fn has_passed(&self) -> bool {
        self.passed.is_some()
    }

    /// Whether a stanza was handled by the node that died. It counts as handled then.
    fn is_passed(&mut self, stanza: &Stanza) -> bool {
        let Some(passed) = &mut self.passed else { return false };
        if passed.first != 0 && std::mem::take(&mut passed.first) != hash(stanza) {
            // It repeats nothing.
            self.passed = None;
            return false;
        }
        let number = self.handled.wrapping_add(1);
        let is_passed = passed.numbers.last() == Some(&number);
        if is_passed {
            passed.numbers.pop();
            self.handled = number;
        }
        if passed.numbers.is_empty() {
            self.passed = None;
        }
        is_passed
    }

    /// The session goes on in another process with its connection: its client repeats nothing. What is under way to others was stored
    /// before; what the store did not take is in their queues, and they go on, too: it counts as settled.
    pub(crate) fn goes_on(&mut self) {
        self.unsettled = SmallVec::new();
    }

    /// The session is resumed: returns the `h` from which on the client repeats what it sent.
    pub(crate) fn resume(&mut self) -> u32 {
        let h = self.h();
        self.repeats = self.handled.wrapping_sub(h);
        self.repeated = self.unsettled.first().map_or(0, |first| first.hash);
        h
    }

    /// Whether a stanza was handled before the session was resumed. A client repeats from the first on that was not acknowledged, in
    /// order, or it has given them up: then what it sends is new.
    pub(crate) fn is_repeated(&mut self, stanza: &Stanza) -> bool {
        if self.repeats == 0 {
            return self.is_passed(stanza);
        }
        if self.repeated != 0 && self.repeated != hash(stanza) {
            // They are settled when they are, but not acknowledged any more.
            self.handled = self.handled.wrapping_sub(self.repeats);
            self.repeats = 0;
            self.unsettled = SmallVec::new();
            return false;
        }
        self.repeated = 0;
        self.repeats -= 1;
        true
    }
}

/// What a stanza is known again by, never 0: FNV-1a of its id, or of its payload where it has none, but for the stamp that some clients add when
/// they repeat it (XEP-0203). It is compared with the same client's own stanzas only, so that nobody gains anything by making two of them
/// alike.
fn hash(stanza: &Stanza) -> u32 {
    let fnv = |hash, bytes: &[u8]| {
        bytes.iter().fold(hash, |hash: u32, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
    };
    let hash = match &stanza.id {
        Some(id) => fnv(OFFSET, id.as_bytes()),
        None => stanza
            .payload
            .children()
            .filter(|child| !child.is("delay", ns::DELAY))
            .fold(OFFSET, |hash, child| fnv(hash, child.bytes())),
    };
    hash.max(1)
}

/// The basis of FNV-1a.
const OFFSET: u32 = 0x811c_9dc5;

#[cfg(test)]
mod tests {
    use super::*;
    use carillon_wire::stanza::{MessageType, Payload};

    fn chat(id: &str) -> Stanza {
        Stanza::message(MessageType::Chat).with_id(id)
    }

    /// One that was settled, one that is not, and two behind it; then the client comes back.
    fn resumed() -> Inbound {
        let mut inbound = Inbound::default();
        inbound.handled();
        inbound.begin(&chat("2"));
        (0..3).for_each(|_| inbound.handled());
        inbound.is_cut();
        assert_eq!(inbound.resume(), 1);
        inbound
    }

    #[test]
    fn what_was_handled_is_not_handled_again() {
        let mut inbound = resumed();
        assert_eq!(inbound.request(), Request::Answer(1));
        assert!(inbound.is_repeated(&chat("2")));
        assert_eq!(inbound.request(), Request::Answer(1), "it is not settled");
        assert_eq!(inbound.settled(2), None);
        assert_eq!(inbound.request(), Request::Answer(2), "it has not repeated the others");
        assert!(inbound.is_repeated(&chat("3")) && inbound.is_repeated(&chat("4")));
        assert_eq!(inbound.request(), Request::Answer(4));
        assert!(!inbound.is_repeated(&chat("5")));
        inbound.handled();
        assert_eq!(inbound.request(), Request::Answer(5));
    }

    /// Some clients give no ids, and stamp what they repeat.
    #[test]
    fn a_stamp_makes_no_other_stanza() {
        let payload = |xml: &str| Payload::parse(xml.to_owned().into()).unwrap();
        let body = "<body xmlns='jabber:client'>x</body>";
        let stamped = format!("{body}<delay xmlns='urn:xmpp:delay' stamp='2026-11-20T09:30:00Z'/>");
        let with = |xml: &str| Stanza { payload: payload(xml), ..Stanza::message(MessageType::Chat) };
        let mut inbound = Inbound::default();
        inbound.begin(&with(body));
        inbound.handled();
        inbound.resume();
        assert!(inbound.is_repeated(&with(&stamped)));
        inbound.resume();
        assert!(!inbound.is_repeated(&with("<body xmlns='jabber:client'>y</body>")));
    }

    #[test]
    fn a_client_that_repeats_nothing_loses_nothing() {
        let mut inbound = resumed();
        assert!(!inbound.is_repeated(&chat("5")));
        inbound.handled();
        assert_eq!(inbound.request(), Request::Answer(2), "as the client counts");
        assert_eq!(inbound.settled(2), None, "of one that nobody counts any more");
        assert!(!inbound.is_repeated(&chat("2")));
    }

    #[test]
    fn what_settles_while_the_client_is_away_is_acknowledged_when_it_returns() {
        let mut inbound = Inbound::default();
        inbound.begin(&chat("1"));
        inbound.handled();
        inbound.is_cut();
        assert_eq!(inbound.settled(1), None);
        assert_eq!(inbound.resume(), 1);
        assert!(!inbound.is_repeated(&chat("1")));
    }

    #[test]
    fn what_is_not_settled_is_not_acknowledged() {
        let mut inbound = Inbound::default();
        let chat = chat("1");
        inbound.handled();
        assert_eq!(inbound.request(), Request::Answer(1));
        let first = inbound.begin(&chat);
        inbound.handled();
        let second = inbound.begin(&chat);
        inbound.handled();
        inbound.handled();
        assert_eq!(inbound.request(), Request::Later { needs_timer: true });
        assert_eq!(inbound.request(), Request::Later { needs_timer: false });
        assert_eq!(inbound.timer_fired(), Some(1), "the first is not settled");
        // Another one comes before they are settled, in another order.
        let third = inbound.begin(&chat);
        inbound.handled();
        assert_eq!(inbound.settled(second), None);
        assert_eq!(inbound.settled(first), Some(4));
        assert_eq!(inbound.settled(third), None, "nobody asked for this one");
        assert_eq!(inbound.request(), Request::Answer(5));
        assert_eq!(inbound.timer_fired(), None);
    }

    /// Five were handled: the second is in a recipient's queue, the third is lost, those behind it are settled; a sixth is in a queue, too.
    #[test]
    fn what_a_dead_node_left_is_repeated_where_it_is_not_known_elsewhere() {
        let mut inbound = Inbound::default();
        inbound.handled();
        for id in ["2", "3"] {
            inbound.begin(&chat(id));
            inbound.handled();
        }
        (0..2).for_each(|_| inbound.handled());
        inbound.is_orphaned(&[2, 6]);
        assert_eq!(inbound.resume(), 2);
        assert!(!inbound.is_repeated(&chat("3")), "nobody knows of it");
        inbound.handled();
        assert!((4..=6).all(|n: u32| inbound.is_repeated(&chat(&n.to_string()))));
        assert_eq!(inbound.request(), Request::Answer(6));
        assert!(!inbound.is_repeated(&chat("7")));
    }

    #[test]
    fn who_repeats_nothing_after_a_death_is_believed() {
        let mut inbound = Inbound::default();
        inbound.begin(&chat("1"));
        (0..2).for_each(|_| inbound.handled());
        inbound.is_orphaned(&[]);
        assert_eq!(inbound.resume(), 0);
        assert!(!inbound.is_repeated(&chat("another")));
        inbound.handled();
        assert!(!inbound.is_repeated(&chat("2")));
    }

    #[test]
    fn numbers_begin_again_after_the_last() {
        let chat = chat("1");
        let mut inbound = Inbound { handled: u32::MAX - 1, ..Inbound::default() };
        let last = inbound.begin(&chat);
        inbound.handled();
        let first = inbound.begin(&chat);
        inbound.handled();
        assert_eq!((last, first), (u32::MAX, 0));
        assert_eq!(inbound.request(), Request::Later { needs_timer: true });
        assert_eq!(inbound.settled(last), None);
        assert_eq!(inbound.settled(first), Some(0));
    }
}
