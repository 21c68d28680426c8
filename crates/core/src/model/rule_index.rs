//! The rules of a privacy list by whom they are about. Whether a presence passes is decided for each contact, and a client chooses how many rules there
//! are: so they are looked up, and not gone through.

use super::{Map, Peer, PrivacyRule, RuleAbout, StanzaKind, SubscriptionState};
use carillon_wire::jid::Jid;
use std::num::NonZeroU32;

/// Decides as [`rules_deny`](super::rules_deny) does, with a look-up for each address that covers another, and for each group of a contact.
#[derive(Clone, Debug, Default)]
pub struct RuleIndex {
    all: Firsts,
    jids: Map<Box<str>, Firsts>,
    groups: Map<Box<str>, Firsts>,
    subscriptions: [Firsts; 4],
}

/// All kinds of stanzas.
const KINDS: [StanzaKind; 5] =
    [StanzaKind::Message, StanzaKind::Iq, StanzaKind::PresenceIn, StanzaKind::PresenceOut, StanzaKind::Other];

/// The first rule about somebody for each kind of stanza.
#[derive(Clone, Copy, Debug, Default)]
struct Firsts([Option<Verdict>; KINDS.len()]);

/// The place of a rule in its list, and whether it denies. The smaller one is of the rule that comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Verdict(NonZeroU32);

impl Verdict {
    fn of(place: usize, denies: bool) -> Option<Verdict> {
        let place = u32::try_from(place).ok()?.checked_add(1)?;
        NonZeroU32::new(place.checked_mul(2)? | u32::from(denies)).map(Verdict)
    }

    fn denies(self) -> bool {
        self.0.get() & 1 == 1
    }
}

impl Firsts {
    fn note(&mut self, rule: &PrivacyRule, place: usize) {
        for (kind, first) in KINDS.into_iter().zip(&mut self.0) {
            if rule.kinds.has(kind) && first.is_none() {
                *first = Verdict::of(place, rule.denies);
            }
        }
    }

    fn of(&self, kind: StanzaKind) -> Option<Verdict> {
        KINDS.into_iter().zip(self.0).find(|(of, _)| *of == kind).and_then(|(_, first)| first)
    }
}

impl RuleIndex {
    /// That of a list.
    pub fn of(rules: &[PrivacyRule]) -> RuleIndex {
        let mut index = RuleIndex::default();
        for (place, rule) in rules.iter().enumerate() {
            let firsts = match &rule.about {
                RuleAbout::All => Some(&mut index.all),
                RuleAbout::Jid(jid) => Some(index.jids.entry(jid.as_str().into()).or_default()),
                RuleAbout::Group(name) => Some(index.groups.entry(name.clone()).or_default()),
                RuleAbout::Subscription(state) => index.subscriptions.get_mut(*state as usize),
            };
            firsts.into_iter().for_each(|firsts| firsts.note(rule, place));
        }
        index
    }

    /// Bytes that it takes beside its own size, about.
    pub fn bytes(&self) -> usize {
        let of = |map: &Map<Box<str>, Firsts>| {
            map.capacity() * size_of::<(Box<str>, Firsts)>() + map.keys().map(|key| key.len()).sum::<usize>()
        };
        of(&self.jids) + of(&self.groups)
    }

    /// Whether the first of the rules that is about a stanza of this kind, to or from this address, denies it. Where none is, it passes.
    pub fn denies(&self, kind: StanzaKind, other: &Jid, peer: &impl Peer) -> bool {
        let mut first = self.all.of(kind);
        let mut note = |firsts: Option<&Firsts>| {
            if let Some(verdict) = firsts.and_then(|firsts| firsts.of(kind)) {
                first = Some(first.map_or(verdict, |known| known.min(verdict)));
            }
        };
        if !self.jids.is_empty() {
            note(self.jids.get(other.domain()));
            if other.local().is_some() {
                note(self.jids.get(other.bare_str()));
            }
            if let Some(resource) = other.resource() {
                note(self.jids.get(other.as_str()));
                note(self.jids.get(&*[other.domain(), resource].join("/")));
            }
        }
        if !self.groups.is_empty() {
            peer.each_group(&mut |group| note(self.groups.get(group)));
        }
        if self.subscriptions.iter().any(|firsts| firsts.of(kind).is_some()) {
            let state = SubscriptionState::from(peer.standing());
            note(self.subscriptions.get(state as usize));
        }
        first.is_some_and(Verdict::denies)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Standing, StanzaKinds, rules_deny};
    use super::*;
    use std::cell::Cell;

    /// A contact, and how often its groups were asked for.
    struct Member<'a> {
        groups: &'a [&'a str],
        standing: Standing,
        asked: Cell<usize>,
    }

    impl Peer for Member<'_> {
        fn each_group(&self, each: &mut dyn FnMut(&str)) {
            self.asked.set(self.asked.get() + 1);
            self.groups.iter().for_each(|group| each(group));
        }

        fn standing(&self) -> Standing {
            self.standing
        }
    }

    const JIDS: [&str; 8] = [
        "a@x.example",
        "a@x.example/r",
        "a@x.example/s",
        "x.example",
        "x.example/r",
        "b@x.example",
        "a@y.example",
        "y.example/r",
    ];
    const GROUPS: [&str; 3] = ["friends", "work", "family"];
    const STATES: [SubscriptionState; 4] =
        [SubscriptionState::Both, SubscriptionState::To, SubscriptionState::From, SubscriptionState::None];

    fn jid(text: &str) -> Jid {
        Jid::new(text).expect("an address")
    }

    /// A list of some rules, the same for the same number.
    fn rules(mut seed: u64) -> Vec<PrivacyRule> {
        let mut below = |n: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((seed >> 33) % n) as usize
        };
        let rule = |order| PrivacyRule {
            order,
            about: match below(7) {
                0 => RuleAbout::All,
                1 | 2 => RuleAbout::Group(GROUPS[below(3)].into()),
                3 => RuleAbout::Subscription(STATES[below(4)]),
                _ => RuleAbout::Jid(jid(JIDS[below(8)])),
            },
            denies: below(2) == 0,
            kinds: match below(3) {
                0 => StanzaKinds::ALL,
                _ => StanzaKinds::ALL.and(KINDS[below(4)]).and(KINDS[below(4)]),
            },
        };
        (1..=8).map(rule).collect()
    }

    #[test]
    fn looking_rules_up_finds_what_going_through_them_does() {
        let standings = [(true, true), (true, false), (false, false)].map(|(to, from)| Standing {
            to,
            from,
            ..Standing::default()
        });
        let members: [&[&str]; 4] = [&[], &["work"], &["friends", "family"], &["strangers", "work"]];
        let mut denied = 0;
        for seed in 0..500 {
            let rules = rules(seed);
            let index = RuleIndex::of(&rules);
            for (other, standing) in
                JIDS.iter().flat_map(|other| standings.map(|standing| (jid(other), standing)))
            {
                for (kind, groups) in KINDS.iter().flat_map(|kind| members.map(|groups| (*kind, groups))) {
                    let member = Member { groups, standing, asked: Cell::new(0) };
                    let expected = rules_deny(&rules, kind, &other, &member);
                    assert_eq!(
                        index.denies(kind, &other, &member),
                        expected,
                        "{kind:?} of {other}: {rules:?}"
                    );
                    denied += usize::from(expected);
                }
            }
        }
        assert!(denied > 50_000, "{denied}");
    }

    #[test]
    fn groups_of_a_contact_are_read_once_however_many_rules_there_are() {
        let rule = |order: u32| PrivacyRule {
            order,
            about: RuleAbout::Group(format!("g{order}").into()),
            denies: true,
            kinds: StanzaKinds::ALL,
        };
        let index = RuleIndex::of(&(0..2000).map(rule).collect::<Vec<_>>());
        let member =
            Member { groups: &["other", "g1999"], standing: Standing::default(), asked: Cell::new(0) };
        assert!(index.denies(StanzaKind::PresenceOut, &jid(JIDS[0]), &member));
        assert_eq!(member.asked.get(), 1);
    }
}
