//! Privacy lists (XEP-0016), for old clients: off unless `privacy_lists.enabled` says otherwise.
//!
//! The lists are part of the account's record. There is one filter: what an account's record denies is what blocking denies, and what the rules do that
//! are decided by here. The default list begins with the block list, so that both protocols show and change the same
//! ([`crate::model::PrivacyLists`]).

mod active;
mod shown;
mod xml;

use crate::error::{StanzaError, store_unavailable};
use crate::feature_state::PerAccount;
use crate::feature_state::privacy::Lists;
use crate::message::{AccountMessage, Requester};
use crate::model::{
    PrivacyChange, PrivacyEdit, PrivacyList, PrivacyLists, PrivacyRefusal, RuleAbout, RuleIndex, Set,
    Standing,
};
use crate::ports::store::blocking::{ChangePrivacyLists, ChangePrivacyListsAnswer};
use crate::ports::{Fault, Question};
use crate::session::home;
use crate::session::homes::AtHome;
use crate::session::hook::{Denial, Direction, Feature, HomeHandler, Hooks, Passing, RecordPart, Spec};
use crate::session::{BoundSession, Cx, Sessions};
use crate::shard::Track;
use carillon_wire::jid::{BareJid, Jid};
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, IqType, Stanza};
use std::sync::Arc;

/// The feature.
pub const FEATURE: Feature = Feature {
    name: "privacy",
    about: "Lists of rules on what an account is sent and sends, for old clients.",
    specs: &[Spec {
        id: "XEP-0016",
        title: "Privacy Lists",
        version: "1.7",
        coverage: "All of it, for old clients, if `privacy_lists.enabled` is set; new ones use XEP-0191. The default list begins with the block list \
                   (XEP-0191 §2). A domain as a value does not stand for its subdomains, as in the block list.",
    }],
    is_on: |settings| {
        settings.privacy_lists.enabled && !settings.features_disabled.iter().any(|name| name == "blocking")
    },
    server_features: &[ns::PRIVACY],
    hooks: Hooks {
        record: &[RecordPart::Privacy(|record, lists| record.privacy = Lists::of(lists))],
        filter: Some(denies),
        session_list: Some(|session| session.state.privacy.active()),
        account_message: Some(account_message),
        missed: Some(missed),
        at_home: &[
            HomeHandler { kind: IqType::Get, name: "query", ns: ns::PRIVACY, answer: ask },
            HomeHandler { kind: IqType::Set, name: "query", ns: ns::PRIVACY, answer: wish },
        ],
        ..Hooks::NONE
    },
    ..Feature::NONE
};

/// Whom a stanza is from or for, as rules see it.
struct Peer<'a> {
    record: &'a PerAccount,
    passing: &'a Passing<'a>,
}

impl crate::model::Peer for Peer<'_> {
    fn each_group(&self, each: &mut dyn FnMut(&str)) {
        let other = self.passing.other.bare_str();
        if let Some(contacts) = self.passing.contacts {
            (contacts.groups)(self.record, Some(other), each);
        }
    }

    fn standing(&self) -> Standing {
        let other = self.passing.other.bare_str();
        self.passing
            .contacts
            .map_or_else(Standing::default, |contacts| (contacts.standing)(self.record, other))
    }
}

/// Whether the list that decides denies a stanza (XEP-0016 §2.2, §2.12).
fn denies(record: &PerAccount, passing: &Passing<'_>) -> Option<Denial> {
    let lists = record.privacy.get();
    if lists.is_none() && passing.list.is_none() {
        return None;
    }
    let peer = Peer { record, passing };
    let is_denied = |rules: &RuleIndex| rules.denies(passing.kind, passing.other, &peer);
    let is_default = |name: &str| lists.and_then(|lists| lists.default.as_deref()) == Some(name);
    let own = passing.list.filter(|name| !is_default(name)).and_then(|name| record.privacy.rules(name));
    let is_denied = match own {
        Some(rules) => is_denied(rules),
        // Blocking leaves a session alone that has chosen a list, and this one has chosen the default list.
        None if passing.list.is_some() && is_blocked(record, passing) => true,
        None => record.privacy.default_rest().is_some_and(is_denied),
    };
    is_denied.then_some(match passing.direction {
        Direction::In => Denial(|| StanzaError::new(Condition::ServiceUnavailable)),
        Direction::Out => Denial(|| {
            StanzaError::new(Condition::NotAcceptable).with_kind(carillon_wire::stanza::ErrorType::Cancel)
        }),
    })
}

fn is_blocked(record: &PerAccount, passing: &Passing<'_>) -> bool {
    passing.blocks.is_some_and(|blocks| (blocks.has)(record, passing.other))
}

/// The block list of an account, sorted.
fn blocked(record: &PerAccount, cx: &Cx<'_>) -> Vec<Jid> {
    cx.pipeline.blocks.map(|blocks| (blocks.all)(record)).unwrap_or_default()
}

/// The lists as they are kept; none for an account that has none.
fn kept(record: &PerAccount) -> PrivacyLists {
    record.privacy.get().cloned().unwrap_or_default()
}

/// The session that makes a request, if it is one.
fn asking(requester: Requester, sessions: &mut Sessions) -> Option<&mut BoundSession> {
    match requester {
        Requester::Session(session) => sessions.bound(session),
        Requester::Command(_) => None,
    }
}

/// The names of the lists, or the rules of one (§2.3).
fn ask(requester: Requester, request: &Stanza, home: &AtHome<'_>, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    if !home::is_awaited(requester, sessions) {
        return;
    }
    let Some(payload) = request.payload.children().next().map(|payload| payload.element()) else { return };
    let (lists, blocked) = (kept(home.record), blocked(home.record, cx));
    let shown = match xml::question(&payload) {
        Err(error) => Err(error),
        Ok(xml::Question::Names) => {
            let active =
                asking(requester, sessions).and_then(|session| session.state.privacy.choice().active.clone());
            let default = lists.default_name(!blocked.is_empty());
            Ok(xml::names(active.as_deref(), default.as_deref(), &lists.names(!blocked.is_empty())))
        }
        Ok(xml::Question::Rules(name)) => lists
            .rules_of(&name, &blocked)
            .map(|rules| xml::rules(&name, &rules))
            .ok_or(StanzaError::new(Condition::ItemNotFound)),
    };
    match shown {
        Ok(shown) => home::answer(requester, request.result_reply().with_payload(shown), sessions, cx),
        Err(error) => home::reply(requester, request, Err(error), sessions, cx),
    }
}

/// A list is chosen, changed or removed (§2.4–2.8).
fn wish(requester: Requester, request: &Stanza, home: &AtHome<'_>, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    let Some(payload) = request.payload.children().next().map(|payload| payload.element()) else { return };
    if let Some(session) = asking(requester, sessions) {
        session.state.privacy.choice();
    }
    let result = match xml::wish(&payload) {
        Err(error) => Err(error),
        Ok(xml::Wish::Active(name)) => active::choose(requester, name, home, sessions, cx),
        Ok(xml::Wish::Edit(edit)) => match may(&edit, requester, home, sessions, cx) {
            Ok(()) => return change(requester, request.clone(), edit, home, cx),
            Err(error) => Err(error),
        },
    };
    home::reply(requester, request, result, sessions, cx);
}

/// Whether an edit names groups that there are (§2.1), and no list that is in use elsewhere (§2.2.11).
fn may(
    edit: &PrivacyEdit,
    requester: Requester,
    home: &AtHome<'_>,
    sessions: &Sessions,
    cx: &Cx<'_>,
) -> Result<(), StanzaError> {
    let default = kept(home.record).default_name(!blocked(home.record, cx).is_empty());
    let is_used = |name: &str| {
        sessions.bound_of(home.account.as_str()).iter().any(|session| {
            let decides = session.state.privacy.active().or(default.as_deref());
            requester != Requester::Session(session.id) && decides == Some(name)
        })
    };
    let is_used = match edit {
        PrivacyEdit::Put(list) => {
            if !knows_groups(list, home.record, cx) {
                let error = StanzaError::new(Condition::ItemNotFound);
                return Err(error.with_text("no contact is in a group that the list names"));
            }
            false
        }
        PrivacyEdit::Remove(name) => is_used(name),
        PrivacyEdit::Default(name) => *name != default && default.as_deref().is_some_and(is_used),
    };
    match is_used {
        true => Err(StanzaError::new(Condition::Conflict).with_text("another session uses this list")),
        false => Ok(()),
    }
}

/// Whether each group that a list names is one of a contact: all groups are gone through once, however many the list names.
fn knows_groups(list: &PrivacyList, record: &PerAccount, cx: &Cx<'_>) -> bool {
    let named = list.rules.iter().filter_map(|rule| match &rule.about {
        RuleAbout::Group(group) => Some(&**group),
        _ => None,
    });
    let mut unknown: Set<&str> = named.collect();
    if let Some(contacts) = cx.pipeline.contacts.filter(|_| !unknown.is_empty()) {
        (contacts.groups)(record, None, &mut |group| {
            unknown.remove(group);
        });
    }
    unknown.is_empty()
}

/// Has the store change the lists.
fn change(requester: Requester, stanza: Stanza, edit: PrivacyEdit, home: &AtHome<'_>, cx: &mut Cx<'_>) {
    let account = home.account.clone();
    let local = home.local.into();
    let (bounds, block_list) = (cx.shard.settings.privacy_lists.bounds, cx.shard.settings.limits.block_list);
    let question = ChangePrivacyLists { domain: home.domain, local, edit, bounds, block_list };
    cx.ask(question, move |answer: Result<<ChangePrivacyLists as Question>::Answer, _>, sessions, cx| {
        let result = match answer {
            Ok(ChangePrivacyListsAnswer::Changed(lists, block_list)) => {
                if let Some(change) = lists {
                    cx.tell_account(account.clone(), AccountMessage::PrivacyChanged(Arc::new(*change)));
                }
                if let Some(change) = block_list {
                    cx.tell_account(account, AccountMessage::BlockListChanged(Arc::new(*change)));
                }
                Ok(())
            }
            Ok(ChangePrivacyListsAnswer::Refused(PrivacyRefusal::NoList)) => {
                Err(StanzaError::new(Condition::ItemNotFound))
            }
            Ok(ChangePrivacyListsAnswer::Refused(PrivacyRefusal::Full)) => {
                Err(StanzaError::new(Condition::ResourceConstraint).with_text("too many lists or rules"))
            }
            Ok(ChangePrivacyListsAnswer::NoAccount) => Err(StanzaError::new(Condition::ItemNotFound)),
            Err(fault) => Err(failed(fault, account, cx)),
        };
        home::reply(requester, &stanza, result, sessions, cx);
    });
}

fn failed(fault: Fault, account: BareJid, cx: &mut Cx<'_>) -> StanzaError {
    if fault == Fault::Unknown {
        cx.tell_account(account, AccountMessage::Reload);
    }
    store_unavailable()
}

/// At the account's home.
fn account_message(
    message: AccountMessage,
    home: &mut AtHome<'_>,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) -> Option<AccountMessage> {
    match message {
        AccountMessage::PrivacyChanged(change) => changed(&change, home, sessions, cx),
        AccountMessage::BlockListChanged(change) => {
            // The default list has it, too. Sessions that do not use lists are told of nothing else.
            if !change.by_lists {
                let uses = |session: &BoundSession| session.state.privacy.0.is_some();
                let blocks_any = !change.blocked.is_empty() || !blocked(home.record, cx).is_empty();
                let name = kept(home.record).default_name(blocks_any);
                name.into_iter().for_each(|name| push(&name, uses, home, sessions, cx));
            }
            return Some(AccountMessage::BlockListChanged(change));
        }
        other => return Some(other),
    }
    None
}

/// The lists were changed: all sessions are told which, and what they are shown and show follows from it.
fn changed(change: &PrivacyChange, home: &mut AtHome<'_>, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    let before = shown::of_all(home, sessions, cx);
    // A record that was read later has it already.
    if home.generation < change.after {
        home.record.privacy = Lists::of(&change.lists);
    }
    let (lists, blocked) = (kept(home.record), blocked(home.record, cx));
    for slot in sessions.of(home.account.as_str()) {
        let Some(session) = sessions.bound_in(slot) else { continue };
        let is_gone = |name: &str| lists.rules_of(name, &blocked).is_none();
        if session.state.privacy.active().is_some_and(is_gone) {
            session.state.privacy.choice().active = None;
        }
    }
    for name in &change.changed {
        push(name, |_| true, home, sessions, cx);
    }
    shown::tell(&before, home, sessions, cx);
}

/// Tells sessions that a list has changed (§2.2.10).
fn push(
    name: &str,
    is_told: impl Fn(&BoundSession) -> bool,
    home: &AtHome<'_>,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) {
    for slot in sessions.of(home.account.as_str()) {
        let Some(session) = sessions.bound_in(slot).filter(|session| is_told(session)) else { continue };
        let push = Stanza::iq(IqType::Set)
            .with_id(cx.shard.random.token())
            .with_to(session.jid.clone())
            .with_payload(xml::rules(name, &[]));
        session.send(&push, &Track::Nothing, cx);
    }
}

/// The sessions were not told of all changes of the lists: names those that are others now.
fn missed(was: Option<&PerAccount>, messages: &[AccountMessage], home: &AtHome<'_>) -> Vec<AccountMessage> {
    let is = kept(home.record);
    let said = messages.iter().filter_map(|message| match message {
        AccountMessage::PrivacyChanged(change) => Some(&change.changed),
        _ => None,
    });
    let mut changed: Vec<Box<str>> = said.flatten().cloned().collect();
    if let Some(was) = was {
        let was = kept(was);
        let differs = |name: &&str| was.kept(name) != is.kept(name);
        let names = was.lists.iter().chain(&is.lists).map(|list| &*list.name);
        changed.extend(names.filter(differs).map(Box::<str>::from));
    }
    changed.sort();
    changed.dedup();
    if changed.is_empty() {
        return Vec::new();
    }
    let (account, at) = (home.account.clone(), home.generation);
    let change = PrivacyChange { account, before: at, after: at, lists: is, changed };
    vec![AccountMessage::PrivacyChanged(Arc::new(change))]
}
