//! Privacy lists (XEP-0016): rules on what an account sends and is sent, in lists that have names.
//!
//! The block list (XEP-0191) is a part of the default list, as XEP-0191 §2 wants it: the rules with which the default list begins and that deny
//! everything to or from an address. They are kept as the block list alone, so that both protocols change one thing. What is kept of the default
//! list has these rules, too, for their places in the order; [`PrivacyLists::rules_of`] brings both together.

use super::{BlockList, BlockListBounds, Contact, Standing, is_covered};
use carillon_wire::jid::{BareJid, Jid};
use carillon_wire::stanza::{Kind, PresenceType, Stanza};

/// Kinds of stanzas that a rule can be about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StanzaKind {
    /// A message that is received.
    Message,
    /// An IQ that is received.
    Iq,
    /// The presence of another, as it is received: available or unavailable.
    PresenceIn,
    /// The account's own presence, as it is sent: available or unavailable.
    PresenceOut,
    /// Any other: only a rule about all stanzas is about it.
    Other,
}

impl StanzaKind {
    /// The kind of a stanza that an account is sent.
    pub fn received(stanza: &Stanza) -> StanzaKind {
        match stanza.kind {
            Kind::Message(_) => StanzaKind::Message,
            Kind::Iq(_) => StanzaKind::Iq,
            Kind::Presence(PresenceType::Available | PresenceType::Unavailable) => StanzaKind::PresenceIn,
            Kind::Presence(_) => StanzaKind::Other,
        }
    }

    /// The kind of a stanza that an account sends.
    pub fn sent(stanza: &Stanza) -> StanzaKind {
        match stanza.kind {
            Kind::Presence(PresenceType::Available | PresenceType::Unavailable) => StanzaKind::PresenceOut,
            _ => StanzaKind::Other,
        }
    }
}

/// The kinds that one rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StanzaKinds(u8);

crate::form! { struct StanzaKinds(bits) }

impl StanzaKinds {
    /// All stanzas in both directions, those of no kind included.
    pub const ALL: StanzaKinds = StanzaKinds(0);

    /// These, and one more.
    #[must_use]
    pub fn and(self, kind: StanzaKind) -> StanzaKinds {
        StanzaKinds(self.0 | Self::bit(kind))
    }

    /// Whether this kind is one of them.
    pub fn has(self, kind: StanzaKind) -> bool {
        self == StanzaKinds::ALL || self.0 & Self::bit(kind) != 0
    }

    fn bit(kind: StanzaKind) -> u8 {
        match kind {
            StanzaKind::Message => 1,
            StanzaKind::Iq => 2,
            StanzaKind::PresenceIn => 4,
            StanzaKind::PresenceOut => 8,
            StanzaKind::Other => 0,
        }
    }
}

/// A subscription, as rules name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubscriptionState {
    /// Each is given the other's presence.
    Both,
    /// The account is given the other's.
    To,
    /// The other is given the account's.
    From,
    /// Neither; also of somebody who is no contact.
    None,
}

crate::form! { enum SubscriptionState { 0 = Both, 1 = To, 2 = From, 3 = None } }

impl From<Standing> for SubscriptionState {
    fn from(standing: Standing) -> SubscriptionState {
        match (standing.to, standing.from) {
            (true, true) => SubscriptionState::Both,
            (true, false) => SubscriptionState::To,
            (false, true) => SubscriptionState::From,
            (false, false) => SubscriptionState::None,
        }
    }
}

/// Whom a rule is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleAbout {
    /// Everybody.
    All,
    /// Who is covered by this address ([`is_covered`]).
    Jid(Jid),
    /// The contacts in this group of the roster.
    Group(Box<str>),
    /// Those whose subscription stands so.
    Subscription(SubscriptionState),
}

crate::form! { enum RuleAbout { 0 = All, 1 = Jid(jid), 2 = Group(name), 3 = Subscription(state) } }

/// A rule of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrivacyRule {
    /// Its place: rules with lower numbers come first. No two of a list have the same.
    pub order: u32,
    /// Whom it is about.
    pub about: RuleAbout,
    /// Whether what it is about does not pass.
    pub denies: bool,
    /// Which stanzas it is about.
    pub kinds: StanzaKinds,
}

crate::form! { struct PrivacyRule { order, about, denies, kinds } }

impl PrivacyRule {
    fn block(order: u32, jid: Jid) -> PrivacyRule {
        PrivacyRule { order, about: RuleAbout::Jid(jid), denies: true, kinds: StanzaKinds::ALL }
    }

    /// The address that it blocks, if that is all it says.
    fn blocks(&self) -> Option<&Jid> {
        match &self.about {
            RuleAbout::Jid(jid) if self.denies && self.kinds == StanzaKinds::ALL => Some(jid),
            _ => None,
        }
    }

    /// Bytes of what a client chose.
    fn bytes(&self) -> usize {
        RULE_BYTES
            + match &self.about {
                RuleAbout::Jid(jid) => jid.as_str().len(),
                RuleAbout::Group(name) => name.len(),
                RuleAbout::All | RuleAbout::Subscription(_) => 0,
            }
    }
}

/// Bytes that a rule takes besides its value, and a list besides its name and rules.
const RULE_BYTES: usize = 16;

/// What rules need to know of whoever a stanza is from or for.
pub trait Peer {
    /// Names the groups of the contact that it is, if it is one.
    fn each_group(&self, each: &mut dyn FnMut(&str));

    /// Where its subscription stands.
    fn standing(&self) -> Standing;
}

impl Peer for Option<&Contact> {
    fn each_group(&self, each: &mut dyn FnMut(&str)) {
        self.iter().flat_map(|contact| &contact.groups).for_each(|group| each(group));
    }

    fn standing(&self) -> Standing {
        self.map_or_else(Standing::default, |contact| contact.standing)
    }
}

/// Whether the first of these rules that is about a stanza of this kind, to or from this address, denies it. Where none is, it passes. What decides again and again has
/// them in a [`RuleIndex`](super::RuleIndex).
pub fn rules_deny(rules: &[PrivacyRule], kind: StanzaKind, other: &Jid, peer: &impl Peer) -> bool {
    let is_in = |name: &str| {
        let mut is_in = false;
        peer.each_group(&mut |group| is_in |= *group == *name);
        is_in
    };
    let is_about = |rule: &&PrivacyRule| {
        rule.kinds.has(kind)
            && match &rule.about {
                RuleAbout::All => true,
                RuleAbout::Jid(jid) => is_covered(other, jid),
                RuleAbout::Group(name) => is_in(name),
                RuleAbout::Subscription(state) => SubscriptionState::from(peer.standing()) == *state,
            }
    };
    rules.iter().find(is_about).is_some_and(|rule| rule.denies)
}

/// A list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrivacyList {
    /// Its name.
    pub name: Box<str>,
    /// Its rules, in their order; at least one.
    pub rules: Vec<PrivacyRule>,
}

crate::form! { struct PrivacyList { name, rules } }

/// The lists of an account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PrivacyLists {
    /// The name of the default list, if a client has chosen or edited one.
    pub default: Option<Box<str>>,
    /// All lists, sorted by their names.
    pub lists: Vec<PrivacyList>,
}

crate::form! { struct PrivacyLists { default, lists } }

/// How much the lists of an account hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrivacyBounds {
    /// Lists.
    pub lists: u32,
    /// Rules of one list; those of the default list that block an address are bounded as the block list is.
    pub rules: u32,
    /// Bytes of all lists: names, addresses and groups, and 16 for each list and rule.
    pub bytes: u64,
}

/// What an account changes of its lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrivacyEdit {
    /// There is this list from now on, instead of the one with its name.
    Put(PrivacyList),
    /// The list with this name is removed.
    Remove(Box<str>),
    /// The list with this name is the default list; none for no list.
    Default(Option<Box<str>>),
}

/// Why lists are not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrivacyRefusal {
    /// There is no list with this name.
    NoList,
    /// It is more than there may be.
    Full,
}

/// What an edit makes of lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditedLists {
    /// The lists.
    pub lists: PrivacyLists,
    /// Who is blocked from now on and was not before, sorted.
    pub blocked: Vec<Jid>,
    /// Who is not blocked any more, sorted.
    pub unblocked: Vec<Jid>,
}

/// The name under which the block list is a list while no client has chosen a default list.
const BLOCK_LIST_NAME: &str = "blocklist";

/// How many of these rules, from the first one on, do nothing but block an address.
fn leading(rules: &[PrivacyRule]) -> usize {
    rules.iter().take_while(|rule| rule.blocks().is_some()).count()
}

/// The addresses that the first of these rules block, sorted.
fn blocked_by(rules: &[PrivacyRule]) -> Vec<Jid> {
    let mut jids: Vec<Jid> = rules.iter().map_while(PrivacyRule::blocks).cloned().collect();
    jids.sort();
    jids.dedup();
    jids
}

impl PrivacyLists {
    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }

    /// Bytes of what clients chose, and of what that takes.
    pub fn bytes(&self) -> usize {
        let of = |list: &PrivacyList| {
            RULE_BYTES + list.name.len() + list.rules.iter().map(PrivacyRule::bytes).sum::<usize>()
        };
        self.lists.iter().map(of).sum()
    }

    /// The list with this name, as it is kept.
    pub fn kept(&self, name: &str) -> Option<&PrivacyList> {
        let place = self.lists.binary_search_by(|list| (*list.name).cmp(name)).ok()?;
        self.lists.get(place)
    }

    /// The name of the default list. Where no client has chosen one, that is the block list, if it blocks anybody.
    pub fn default_name(&self, blocks_any: bool) -> Option<Box<str>> {
        self.default.clone().or_else(|| blocks_any.then(|| self.free_name()))
    }

    /// A name for the block list that no list has.
    fn free_name(&self) -> Box<str> {
        let mut name: Box<str> = BLOCK_LIST_NAME.into();
        let mut number = 2;
        while self.kept(&name).is_some() {
            name = format!("{BLOCK_LIST_NAME} {number}").into();
            number += 1;
        }
        name
    }

    /// The names of all lists, sorted.
    pub fn names(&self, blocks_any: bool) -> Vec<Box<str>> {
        let mut names: Vec<Box<str>> = self.lists.iter().map(|list| list.name.clone()).collect();
        if let Some(name) = self.default_name(blocks_any).filter(|name| self.kept(name).is_none()) {
            names.push(name);
            names.sort();
        }
        names
    }

    /// The rules of the default list behind those that block: what decides beside the block list.
    pub fn default_rest(&self) -> &[PrivacyRule] {
        let kept = self.default.as_ref().and_then(|name| self.kept(name));
        kept.and_then(|list| list.rules.get(leading(&list.rules)..)).unwrap_or_default()
    }

    /// Whether what decides beside the block list is about contacts.
    pub fn is_about_contacts(&self) -> bool {
        let is_about =
            |rule: &PrivacyRule| matches!(rule.about, RuleAbout::Group(_) | RuleAbout::Subscription(_));
        self.default_rest().iter().any(is_about)
    }

    /// The rules of a list; `blocked` is the block list, sorted.
    pub fn rules_of(&self, name: &str, blocked: &[Jid]) -> Option<Vec<PrivacyRule>> {
        let kept = self.kept(name);
        if self.default_name(!blocked.is_empty()).as_deref() != Some(name) {
            return kept.map(|list| list.rules.clone());
        }
        Some(with_blocked(kept.map_or(&[], |list| &list.rules), blocked))
    }

    /// What an edit makes of these lists and of the block list; or why it is not done. `block_list` is read only if the edit is about the default list.
    ///
    /// # Errors
    /// What `block_list` says.
    pub fn edited<L: BlockList>(
        &self,
        edit: &PrivacyEdit,
        block_list: &mut L,
        bounds: PrivacyBounds,
        blocked_bounds: BlockListBounds,
    ) -> Result<Result<EditedLists, PrivacyRefusal>, L::Error> {
        let default = self.default_name(block_list.used().addresses > 0);
        let is_default = |name: &str| default.as_deref() == Some(name);
        let (mut lists, mut now) = (self.clone(), None);
        match edit {
            PrivacyEdit::Put(list) => {
                let blocks = is_default(&list.name);
                let free = if blocks { leading(&list.rules) } else { 0 };
                if list.rules.len() - free > bounds.rules as usize {
                    return Ok(Err(PrivacyRefusal::Full));
                }
                if blocks {
                    now = Some(blocked_by(&list.rules));
                    lists.default = Some(list.name.clone());
                }
                lists.put(list.clone());
            }
            PrivacyEdit::Remove(name) if self.kept(name).is_none() && !is_default(name) => {
                return Ok(Err(PrivacyRefusal::NoList));
            }
            PrivacyEdit::Remove(name) => {
                lists.lists.retain(|list| list.name != *name);
                if is_default(name) {
                    (lists.default, now) = (None, Some(Vec::new()));
                }
            }
            PrivacyEdit::Default(name) if *name == default => {}
            PrivacyEdit::Default(name) => {
                let chosen = match name.as_deref().map(|name| self.kept(name)) {
                    Some(None) => return Ok(Err(PrivacyRefusal::NoList)),
                    Some(Some(list)) => blocked_by(&list.rules),
                    None => Vec::new(),
                };
                // The list that was the default one stays, with all its rules.
                if let Some(before) = default {
                    let rules = self.rules_of(&before, &block_list.first(usize::MAX)?).unwrap_or_default();
                    match rules.is_empty() {
                        true => lists.lists.retain(|list| list.name != before),
                        false => lists.put(PrivacyList { name: before, rules }),
                    }
                }
                (lists.default, now) = (name.clone(), Some(chosen));
            }
        }
        let (blocked, unblocked) = match now {
            None => (Vec::new(), Vec::new()),
            Some(now) => match difference(&now, block_list.first(usize::MAX)?, blocked_bounds) {
                Some(changed) => changed,
                None => return Ok(Err(PrivacyRefusal::Full)),
            },
        };
        let grows = lists.lists.len() > self.lists.len() || lists.bytes() > self.bytes();
        let fits = lists.lists.len() <= bounds.lists as usize && lists.bytes() as u64 <= bounds.bytes;
        match grows && !fits {
            true => Ok(Err(PrivacyRefusal::Full)),
            false => Ok(Ok(EditedLists { lists, blocked, unblocked })),
        }
    }

    fn put(&mut self, list: PrivacyList) {
        match self.lists.iter_mut().find(|kept| kept.name == list.name) {
            Some(kept) => *kept = list,
            None => {
                self.lists.push(list);
                self.lists.sort_by(|a, b| a.name.cmp(&b.name));
            }
        }
    }

    /// Whether the default list without the block list has nothing pass between the account and another: neither may ask for a subscription, say.
    pub fn shuns(&self, other: &BareJid, contact: Option<&Contact>) -> bool {
        let rest = self.default_rest();
        !rest.is_empty() && rules_deny(rest, StanzaKind::Other, &other.to_jid(), &contact)
    }
}

/// Who is blocked from now on and was not before, and who is not any more; none where the block list has no room for that.
fn difference(now: &[Jid], before: Vec<Jid>, bounds: BlockListBounds) -> Option<(Vec<Jid>, Vec<Jid>)> {
    let is_new = |jid: &&Jid| before.binary_search(jid).is_err();
    let blocked: Vec<Jid> = now.iter().filter(is_new).cloned().collect();
    let bytes: usize = now.iter().map(|jid| jid.as_str().len()).sum();
    let fits = now.len() <= bounds.addresses as usize && bytes as u64 <= bounds.bytes;
    if !blocked.is_empty() && !fits {
        return None;
    }
    let unblocked = before.into_iter().filter(|jid| now.binary_search(jid).is_err());
    Some((blocked, unblocked.collect()))
}

/// The rules that are kept of a default list, with the block list as it is: who is not blocked any more is left out, and who is blocked since comes
/// first.
fn with_blocked(kept: &[PrivacyRule], blocked: &[Jid]) -> Vec<PrivacyRule> {
    let (first, rest) = kept.split_at(leading(kept));
    let mut before = blocked_by(first);
    before.retain(|jid| blocked.binary_search(jid).is_ok());
    let is_left = |rule: &&PrivacyRule| rule.blocks().is_some_and(|jid| before.binary_search(jid).is_ok());
    let left = first.iter().filter(is_left).chain(rest).cloned();
    let since = blocked.iter().filter(|jid| before.binary_search(jid).is_err()).cloned();
    let mut rules: Vec<PrivacyRule> = since.map(|jid| PrivacyRule::block(0, jid)).collect();
    let count = rules.len() as u32;
    rules.extend(left);
    match rules.get(count as usize).map_or(u32::MAX, |rule| rule.order) {
        // There is room for them in front of the others.
        order if order >= count && count > 0 => {
            let from = if order == u32::MAX { 1 } else { order - count };
            for (rule, order) in rules.iter_mut().take(count as usize).zip(from..) {
                rule.order = order;
            }
        }
        _ if count == 0 => {}
        _ => {
            for (rule, order) in rules.iter_mut().zip(1..) {
                rule.order = order;
            }
        }
    }
    rules
}
