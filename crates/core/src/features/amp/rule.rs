//! Rules, and when they are met (XEP-0079 §3).

use crate::model::UnixMs;
use crate::session::hook::Handling;
use carillon_wire::jid::Jid;

/// The rules of a message, and its addresses as its sender's client gave them.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) from: Jid,
    pub(super) to: Jid,
    pub(super) rules: Vec<Rule>,
}

/// If this is so, that is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) action: Action,
    pub(super) condition: Condition,
    /// The value of the condition, as it came.
    pub(super) value: Box<str>,
}

/// What is done (XEP-0079 §3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Alert,
    Drop,
    Error,
    Notify,
}

/// When it is done (XEP-0079 §3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    Deliver(Deliver),
    MatchResource(Match),
    ExpireAt(UnixMs),
}

/// How a message is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deliver {
    Direct,
    Stored,
    None,
    /// By something that this server does not do: forwarding, gateways.
    Never,
}

/// To which resource, compared with the one that its sender gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Match {
    Any,
    Exact,
    Other,
}

impl Rules {
    /// The first rule that is met.
    pub(super) fn first_met(&self, handling: Handling<'_>, now: UnixMs) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.condition.is_met(handling, self.to.resource(), now))
    }

    /// When a rule ends a message that is stored: at the first time at which the first rule that is met says so.
    pub(super) fn expires(&self) -> Option<UnixMs> {
        let times = self.rules.iter().filter_map(|rule| match rule.condition {
            Condition::ExpireAt(at) => Some(at),
            _ => None,
        });
        let ends = |at: &UnixMs| {
            let met = self.first_met(Handling::Kept(*at), *at);
            met.is_some_and(|rule| rule.action != Action::Notify)
        };
        times.filter(ends).min()
    }
}

impl Condition {
    /// Whether it is met. `resource`: that of the address that the sender gave.
    fn is_met(self, handling: Handling<'_>, resource: Option<&str>, now: UnixMs) -> bool {
        match (self, handling) {
            (Condition::Deliver(how), Handling::Direct(_)) => how == Deliver::Direct,
            (Condition::Deliver(how), Handling::Stored) => how == Deliver::Stored,
            (Condition::Deliver(how), Handling::Nowhere) => how == Deliver::None,
            (Condition::MatchResource(which), Handling::Direct(given)) => match which {
                Match::Any => true,
                Match::Exact => given.iter().all(|given| resource == Some(given)),
                Match::Other => given.iter().any(|given| resource != Some(given)),
            },
            // It goes to the account, which is the address that was given if that has no resource.
            (Condition::MatchResource(which), Handling::Stored) => match which {
                Match::Any => false,
                Match::Exact => resource.is_none(),
                Match::Other => resource.is_some(),
            },
            (Condition::ExpireAt(at), Handling::Kept(late)) => at <= late,
            (Condition::ExpireAt(at), Handling::Direct(_) | Handling::Stored) => at <= now,
            (Condition::ExpireAt(_) | Condition::MatchResource(_), Handling::Nowhere) => false,
            // These were decided when it came.
            (Condition::Deliver(_) | Condition::MatchResource(_), Handling::Kept(_)) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(to: &str, rules: &[(Action, Condition)]) -> Rules {
        let rule = |(action, condition): &(Action, Condition)| Rule {
            action: *action,
            condition: *condition,
            value: "v".into(),
        };
        let jid = |text| Jid::new(text).unwrap();
        Rules { from: jid("a@d/r"), to: jid(to), rules: rules.iter().map(rule).collect() }
    }

    fn is_met(to: &str, condition: Condition, handling: Handling<'_>) -> bool {
        rules(to, &[(Action::Drop, condition)]).first_met(handling, UnixMs(10)).is_some()
    }

    #[test]
    fn resources_are_compared_with_the_address_that_was_given() {
        let cases = [Match::Any, Match::Exact, Match::Other];
        let of = |to, handling| cases.map(|which| is_met(to, Condition::MatchResource(which), handling));
        assert_eq!(of("b@d/pda", Handling::Direct(&["pda"])), [true, true, false]);
        assert_eq!(of("b@d/pda", Handling::Direct(&["desk"])), [true, false, true]);
        assert_eq!(of("b@d/pda", Handling::Direct(&["pda", "desk"])), [true, false, true]);
        assert_eq!(of("b@d/pda", Handling::Stored), [false, false, true]);
        assert_eq!(of("b@d", Handling::Direct(&["pda"])), [true, false, true]);
        assert_eq!(of("b@d", Handling::Stored), [false, true, false]);
        for handling in [Handling::Nowhere, Handling::Kept(UnixMs(99))] {
            assert_eq!(of("b@d", handling), [false; 3]);
        }
    }

    #[test]
    fn a_time_is_over_from_its_moment_on() {
        let at = |ms| Condition::ExpireAt(UnixMs(ms));
        for handling in [Handling::Direct(&["pda"]), Handling::Stored, Handling::Kept(UnixMs(10))] {
            assert_eq!([9, 10, 11].map(|ms| is_met("b@d", at(ms), handling)), [true, true, false]);
        }
        assert!(!is_met("b@d", at(9), Handling::Nowhere));
    }

    #[test]
    fn what_is_forwarded_nowhere_is_never_met() {
        for handling in
            [Handling::Direct(&["r"]), Handling::Stored, Handling::Nowhere, Handling::Kept(UnixMs(9))]
        {
            assert!(!is_met("b@d", Condition::Deliver(Deliver::Never), handling));
        }
    }

    #[test]
    fn the_first_rule_that_is_met_decides_when_a_message_ends() {
        let at = |action, ms| (action, Condition::ExpireAt(UnixMs(ms)));
        let stored = (Action::Notify, Condition::Deliver(Deliver::Stored));
        let cases = [
            (vec![stored], None),
            (vec![stored, at(Action::Drop, 7)], Some(7)),
            (vec![at(Action::Alert, 9), at(Action::Error, 7)], Some(7)),
            (vec![at(Action::Notify, 5)], None),
            // From 5 on the sender is notified, and the message is delivered late.
            (vec![at(Action::Notify, 5), at(Action::Drop, 7)], None),
            (vec![at(Action::Notify, 7), at(Action::Drop, 7)], None),
            (vec![at(Action::Notify, 9), at(Action::Drop, 7)], Some(7)),
            (vec![at(Action::Drop, 7), at(Action::Notify, 5)], Some(7)),
            (vec![at(Action::Drop, 9), at(Action::Notify, 5), at(Action::Error, 7)], Some(9)),
        ];
        for (given, expected) in cases {
            assert_eq!(rules("b@d", &given).expires(), expected.map(UnixMs), "{given:?}");
        }
    }
}
