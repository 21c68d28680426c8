//! Privacy lists (XEP-0016) and blocking (XEP-0191) are two views of one thing: random programs of both protocols, against lists as the XEPs describe
//! them.

use carillon_core::model::{
    BlockList, BlockListBounds, BlockListEdit, Peer, PrivacyBounds, PrivacyEdit, PrivacyList, PrivacyLists,
    PrivacyRule, RuleAbout, Standing, StanzaKind, StanzaKinds, SubscriptionState, is_covered, rules_deny,
};
use carillon_wire::jid::Jid;
use carillon_wire::stanza::{IqType, MessageType, PresenceType, Stanza};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

const BOUNDS: PrivacyBounds = PrivacyBounds { lists: 100, rules: 100, bytes: 1 << 20 };
const BLOCKED: BlockListBounds = BlockListBounds { addresses: 100, bytes: 1 << 20 };

fn jid(text: &str) -> Jid {
    Jid::new(text).expect("an address")
}

/// A block list in memory.
#[derive(Default)]
struct Blocked(BTreeSet<Jid>);

impl BlockList for Blocked {
    type Error = Infallible;

    fn used(&self) -> BlockListBounds {
        let bytes = self.0.iter().map(|jid| jid.as_str().len() as u64).sum();
        BlockListBounds { addresses: self.0.len() as u32, bytes }
    }

    fn has(&mut self, jid: &Jid) -> Result<bool, Infallible> {
        Ok(self.0.contains(jid))
    }

    fn first(&mut self, max: usize) -> Result<Vec<Jid>, Infallible> {
        Ok(self.0.iter().take(max).cloned().collect())
    }
}

fn block_rule(order: u32, jid: Jid) -> PrivacyRule {
    PrivacyRule { order, about: RuleAbout::Jid(jid), denies: true, kinds: StanzaKinds::ALL }
}

/// The address that a rule blocks, if that is all it says.
fn blocks(rule: &PrivacyRule) -> Option<&Jid> {
    match &rule.about {
        RuleAbout::Jid(jid) if rule.denies && rule.kinds == StanzaKinds::ALL => Some(jid),
        _ => None,
    }
}

fn leading(rules: &[PrivacyRule]) -> usize {
    rules.iter().take_while(|rule| blocks(rule).is_some()).count()
}

fn blocked_by(rules: &[PrivacyRule]) -> Vec<Jid> {
    let jids: BTreeSet<Jid> = rules.iter().map_while(blocks).cloned().collect();
    jids.into_iter().collect()
}

struct Nobody;

impl Peer for Nobody {
    fn each_group(&self, _: &mut dyn FnMut(&str)) {}

    fn standing(&self) -> Standing {
        Standing::default()
    }
}

/// Numbers that are the same for the same seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }
}

const ADDRESSES: [&str; 6] = ["a@x.org", "a@x.org/r", "b@x.org", "x.org", "x.org/r", "c@y.org"];
const NAMES: [&str; 3] = ["blocklist", "work", "home"];

fn rule(numbers: &mut Numbers, order: u32) -> PrivacyRule {
    let about = match numbers.below(4) {
        0 => RuleAbout::All,
        1 => RuleAbout::Subscription(SubscriptionState::None),
        _ => RuleAbout::Jid(jid(ADDRESSES[numbers.below(ADDRESSES.len())])),
    };
    let kinds = match numbers.below(3) {
        0 => StanzaKinds::ALL.and(StanzaKind::Message),
        _ => StanzaKinds::ALL,
    };
    PrivacyRule { order, about, denies: numbers.below(3) > 0, kinds }
}

/// Lists as XEP-0016 describes them, with blocking as XEP-0191 §2 maps it to the default list: every list has all its rules, and nothing is kept
/// besides.
#[derive(Default)]
struct Plain {
    lists: BTreeMap<Box<str>, Vec<PrivacyRule>>,
    default: Option<Box<str>>,
    /// The default list while no client has chosen or edited one.
    unchosen: Vec<PrivacyRule>,
}

impl Plain {
    fn rules(&mut self) -> &mut Vec<PrivacyRule> {
        match &self.default {
            Some(name) => self.lists.get_mut(name).expect("the default list"),
            None => &mut self.unchosen,
        }
    }

    fn name(&self) -> Option<Box<str>> {
        let free = || {
            let mut names = (2..).map(|n| Box::<str>::from(format!("blocklist {n}")));
            let first = Some(Box::<str>::from("blocklist")).filter(|name| !self.lists.contains_key(name));
            first.or_else(|| names.find(|name| !self.lists.contains_key(name)))
        };
        self.default.clone().or_else(|| free().filter(|_| !self.unchosen.is_empty()))
    }

    fn block(&mut self, jid: &Jid) {
        let rules = self.rules();
        if !blocked_by(rules).contains(jid) {
            rules.insert(0, block_rule(0, jid.clone()));
        }
    }

    fn unblock(&mut self, jid: &Jid) {
        let rules = self.rules();
        let count = leading(rules);
        let (first, rest) = rules.split_at(count);
        let left = first.iter().filter(|rule| blocks(rule) != Some(jid));
        *rules = left.chain(rest).cloned().collect();
    }

    fn edit(&mut self, edit: &PrivacyEdit) {
        let default = self.name();
        match edit {
            PrivacyEdit::Put(list) => {
                if default.as_ref() == Some(&list.name) {
                    (self.default, self.unchosen) = (default, Vec::new());
                }
                self.lists.insert(list.name.clone(), list.rules.clone());
            }
            PrivacyEdit::Remove(name) => {
                if default.as_ref() == Some(name) {
                    (self.default, self.unchosen) = (None, Vec::new());
                }
                self.lists.remove(name);
            }
            PrivacyEdit::Default(name) if *name == default => {}
            PrivacyEdit::Default(name) => {
                if name.as_ref().is_some_and(|name| !self.lists.contains_key(name)) {
                    return;
                }
                let rules = std::mem::take(self.rules());
                if let Some(before) = default {
                    self.lists.remove(&before);
                    if !rules.is_empty() {
                        self.lists.insert(before, rules);
                    }
                }
                (self.default, self.unchosen) = (name.clone(), Vec::new());
            }
        }
    }
}

/// What rules say, without their numbers; those that only block in any order.
fn said(rules: &[PrivacyRule]) -> (Vec<Jid>, Vec<(RuleAbout, bool, StanzaKinds)>) {
    let rest = rules[leading(rules)..].iter();
    (blocked_by(rules), rest.map(|rule| (rule.about.clone(), rule.denies, rule.kinds)).collect())
}

fn same(lists: &PrivacyLists, blocked: &BTreeSet<Jid>, plain: &mut Plain, seed: u64) {
    let list: Vec<Jid> = blocked.iter().cloned().collect();
    let any = !list.is_empty();
    assert_eq!(lists.default_name(any), plain.name(), "seed {seed}");
    let mut names: BTreeSet<Box<str>> = plain.lists.keys().cloned().collect();
    names.extend(plain.name());
    assert_eq!(lists.names(any), names.iter().cloned().collect::<Vec<_>>(), "seed {seed}");
    for name in names {
        let rules = lists.rules_of(&name, &list).expect("a list");
        let theirs = plain.lists.get(&name).unwrap_or(&plain.unchosen);
        assert_eq!(said(&rules), said(theirs), "seed {seed}, list {name}");
        assert!(rules.windows(2).all(|two| two[0].order < two[1].order), "seed {seed}: {rules:?}");
    }
    // Both protocols decide the same.
    let rules = plain.rules();
    assert_eq!(list, blocked_by(rules), "seed {seed}");
    for other in ADDRESSES.map(jid) {
        for kind in [StanzaKind::Message, StanzaKind::Iq, StanzaKind::PresenceOut, StanzaKind::Other] {
            let ours = list.iter().any(|entry| is_covered(&other, entry))
                || rules_deny(lists.default_rest(), kind, &other, &Nobody);
            assert_eq!(ours, rules_deny(rules, kind, &other, &Nobody), "seed {seed}: {kind:?} of {other}");
        }
    }
}

#[test]
fn both_protocols_show_and_decide_the_same_after_any_program() {
    for seed in 0..400 {
        let mut numbers = Numbers(seed);
        let (mut lists, mut blocked, mut plain) =
            (PrivacyLists::default(), Blocked::default(), Plain::default());
        for _ in 0..60 {
            let address = jid(ADDRESSES[numbers.below(ADDRESSES.len())]);
            let name: Box<str> = NAMES[numbers.below(NAMES.len())].into();
            let edit = match numbers.below(8) {
                0 | 1 => {
                    let Ok(changed) =
                        BlockListEdit::Block(vec![address.clone()]).apply(&mut blocked, BLOCKED);
                    blocked.0.extend(changed.expect("room").0);
                    plain.block(&address);
                    None
                }
                2 => {
                    blocked.0.remove(&address);
                    plain.unblock(&address);
                    None
                }
                3 => Some(PrivacyEdit::Remove(name)),
                4 => Some(PrivacyEdit::Default(Some(name))),
                5 => Some(PrivacyEdit::Default(None)),
                _ => {
                    let count = 1 + numbers.below(5) as u32;
                    let step = 1 + numbers.below(3) as u32;
                    let rules = (0..count).map(|n| rule(&mut numbers, n * step)).collect();
                    Some(PrivacyEdit::Put(PrivacyList { name, rules }))
                }
            };
            if let Some(edit) = edit {
                let Ok(edited) = lists.edited(&edit, &mut blocked, BOUNDS, BLOCKED);
                if let Ok(edited) = edited {
                    lists = edited.lists;
                    blocked.0.extend(edited.blocked);
                    blocked.0.retain(|jid| edited.unblocked.binary_search(jid).is_err());
                    plain.edit(&edit);
                }
            }
            same(&lists, &blocked.0, &mut plain, seed);
        }
    }
}

/// A list that blocks some addresses and does nothing else decides as the block list of these.
#[test]
fn a_list_that_only_blocks_is_the_block_list() {
    for seed in 0..200 {
        let mut numbers = Numbers(seed);
        let entries: Vec<Jid> =
            ADDRESSES.iter().filter(|_| numbers.below(2) > 0).map(|entry| jid(entry)).collect();
        if entries.is_empty() {
            continue;
        }
        let rules = entries.iter().cloned().zip(1..).map(|(jid, order)| block_rule(order, jid));
        let put = PrivacyEdit::Put(PrivacyList { name: "a".into(), rules: rules.collect() });
        let (mut lists, mut blocked) = (PrivacyLists::default(), Blocked::default());
        for edit in [put, PrivacyEdit::Default(Some("a".into()))] {
            let Ok(edited) = lists.edited(&edit, &mut blocked, BOUNDS, BLOCKED);
            let edited = edited.expect("room");
            lists = edited.lists;
            blocked.0.extend(edited.blocked);
        }
        let mut expected = entries.clone();
        expected.sort();
        assert_eq!(
            (blocked.0.iter().cloned().collect::<Vec<_>>(), lists.default_rest()),
            (expected, &[][..])
        );
    }
}

#[test]
fn rules_are_about_what_xep_0016_says() {
    let message = Stanza::message(MessageType::Chat);
    let iq = Stanza::iq(IqType::Get);
    let presence = Stanza::presence(PresenceType::Unavailable);
    let subscribe = Stanza::presence(PresenceType::Subscribe);
    let all = [&message, &iq, &presence, &subscribe];
    assert_eq!(
        all.map(StanzaKind::received),
        [StanzaKind::Message, StanzaKind::Iq, StanzaKind::PresenceIn, StanzaKind::Other]
    );
    assert_eq!(
        all.map(StanzaKind::sent),
        [StanzaKind::Other, StanzaKind::Other, StanzaKind::PresenceOut, StanzaKind::Other]
    );
    let kinds = StanzaKinds::ALL.and(StanzaKind::Iq).and(StanzaKind::PresenceIn);
    assert_eq!(all.map(|stanza| kinds.has(StanzaKind::received(stanza))), [false, true, true, false]);
    assert_eq!(all.map(|stanza| StanzaKinds::ALL.has(StanzaKind::sent(stanza))), [true; 4]);
}
