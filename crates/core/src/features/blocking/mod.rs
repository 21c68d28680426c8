//! Blocking (XEP-0191): whom an account blocks neither reaches it nor hears of it.
//!
//! The list is part of the account's record. What passes is decided by one filter (`denies`), for what the account sends as for what it is sent,
//! whether it has a session or not.

mod xml;

use crate::error::{StanzaError, store_unavailable};
use crate::feature_state::PerAccount;
use crate::feature_state::blocking::Blocked;
use crate::message::{AccountMessage, Requester};
use crate::model::{BlockListChange, BlockListEdit, DomainId, UNBLOCKED_MAX};
use crate::ports::store::blocking::{ChangeBlockList, ChangeBlockListAnswer};
use crate::ports::{Fault, Question};
use crate::session::home;
use crate::session::homes::AtHome;
use crate::session::hook::{
    BlocksHandler, Denial, Direction, Feature, HomeHandler, Hooks, Passing, RecordPart, Seen, Spec,
};
use crate::session::{Cx, Sessions};
use crate::shard::Track;
use carillon_wire::jid::{BareJid, Jid};
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, IqType, Stanza};
use carillon_wire::xml::Element;
use std::sync::Arc;

/// The feature.
pub const FEATURE: Feature = Feature {
    name: "blocking",
    about: "Accounts block others.",
    specs: &[Spec {
        id: "XEP-0191",
        title: "Blocking Command",
        version: "1.3",
        coverage: "Block, unblock one and all, pushes, presence that is withdrawn and given again; what passes in either direction is \
                   decided for absent accounts, too. A blocked account cannot subscribe.",
    }],
    server_features: &[ns::BLOCKING],
    hooks: Hooks {
        record: &[RecordPart::Blocked(|record, list| record.blocking = Blocked::of(list))],
        filter: Some(denies),
        blocks: Some(&BlocksHandler {
            has: |record, other| record.blocking.has(other),
            all: |record| record.blocking.iter().cloned().collect(),
        }),
        account_message: Some(account_message),
        missed: Some(missed),
        at_home: &[
            HomeHandler { kind: IqType::Get, name: "blocklist", ns: ns::BLOCKING, answer: list },
            HomeHandler { kind: IqType::Set, name: "block", ns: ns::BLOCKING, answer: edit },
            HomeHandler { kind: IqType::Set, name: "unblock", ns: ns::BLOCKING, answer: edit },
        ],
        ..Hooks::NONE
    },
    ..Feature::NONE
};

/// Whether a stanza to or from this address does not pass (XEP-0191 §3.4, §5).
fn denies(record: &PerAccount, passing: &Passing<'_>) -> Option<Denial> {
    // A session that has chosen a list has chosen what is blocked for it (XEP-0191 §2).
    if passing.list.is_some() || !record.blocking.has(passing.other) {
        return None;
    }
    Some(match passing.direction {
        // It is as if there were nobody.
        Direction::In => Denial(|| StanzaError::new(Condition::ServiceUnavailable)),
        Direction::Out => Denial(|| {
            StanzaError::new(Condition::NotAcceptable)
                .with_kind(carillon_wire::stanza::ErrorType::Cancel)
                .with_app(Element::new("blocked", ns::BLOCKING_ERRORS))
        }),
    })
}

/// At the account's home.
fn account_message(
    message: AccountMessage,
    home: &mut AtHome<'_>,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) -> Option<AccountMessage> {
    match message {
        AccountMessage::BlockListChanged(change) => changed(&change, home, sessions, cx),
        other => return Some(other),
    }
    None
}

/// Who is blocked; the session is told of changes from then on.
fn list(requester: Requester, request: &Stanza, home: &AtHome<'_>, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    if !home::is_awaited(requester, sessions) {
        return;
    }
    if let Requester::Session(session) = requester
        && let Some(session) = sessions.bound(session)
    {
        session.state.blocking.is_interested = true;
    }
    let reply = request.result_reply().with_payload(xml::list("blocklist", home.record.blocking.iter()));
    home::answer(requester, reply, sessions, cx);
}

/// Blocks, or unblocks.
fn edit(requester: Requester, request: &Stanza, home: &AtHome<'_>, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    let Some(payload) = request.payload.children().next().map(|payload| payload.element()) else { return };
    match xml::edit(&payload) {
        Ok(edit) => change(requester, request.clone(), edit, (home.domain, home.account.clone()), cx),
        Err(error) => home::reply(requester, request, Err(error), sessions, cx),
    }
}

/// Has the store change the list of an account; where all are unblocked, part after part.
fn change(
    requester: Requester,
    stanza: Stanza,
    edit: BlockListEdit,
    of: (DomainId, BareJid),
    cx: &mut Cx<'_>,
) {
    let (domain, account) = of;
    let local = account.local().unwrap_or_default().into();
    let bounds = cx.shard.settings.limits.block_list;
    let question = ChangeBlockList { domain, local, edit: edit.clone(), bounds };
    cx.ask(question, move |answer: Result<<ChangeBlockList as Question>::Answer, _>, sessions, cx| {
        let result = match answer {
            Ok(ChangeBlockListAnswer::Changed(changed)) => {
                let more = edit == BlockListEdit::UnblockAll && changed.unblocked.len() == UNBLOCKED_MAX;
                cx.tell_account(account.clone(), AccountMessage::BlockListChanged(Arc::new(*changed)));
                if more {
                    return change(requester, stanza, edit, (domain, account), cx);
                }
                Ok(())
            }
            Ok(ChangeBlockListAnswer::Full) => {
                Err(StanzaError::new(Condition::ResourceConstraint).with_text("your block list is full"))
            }
            Ok(ChangeBlockListAnswer::NoAccount) => Err(StanzaError::new(Condition::ItemNotFound)),
            Err(fault) => Err(failed(fault, account, cx)),
        };
        home::reply(requester, &stanza, result, sessions, cx);
    });
}

/// The sessions were not told of all changes of the list: says who is blocked now and was not, and who is not any more.
fn missed(was: Option<&PerAccount>, messages: &[AccountMessage], home: &AtHome<'_>) -> Vec<AccountMessage> {
    let is = &home.record.blocking;
    let changes = messages.iter().filter_map(|message| match message {
        AccountMessage::BlockListChanged(change) => Some(change),
        _ => None,
    });
    let said = changes.flat_map(|change| change.blocked.iter().chain(&change.unblocked));
    let (mut blocked, mut unblocked): (Vec<Jid>, Vec<Jid>) = said.cloned().partition(|jid| is.names(jid));
    if let Some(PerAccount { blocking: was, .. }) = was {
        blocked.extend(is.iter().filter(|jid| !was.names(jid)).cloned());
        unblocked.extend(was.iter().filter(|jid| !is.names(jid)).cloned());
    }
    for list in [&mut blocked, &mut unblocked] {
        list.sort();
        list.dedup();
    }
    if blocked.is_empty() && unblocked.is_empty() {
        return Vec::new();
    }
    let (account, at) = (home.account.clone(), home.generation);
    let change = BlockListChange { account, before: at, after: at, blocked, unblocked, by_lists: false };
    vec![AccountMessage::BlockListChanged(Arc::new(change))]
}

fn failed(fault: Fault, account: BareJid, cx: &mut Cx<'_>) -> StanzaError {
    if fault == Fault::Unknown {
        cx.tell_account(account, AccountMessage::Reload);
    }
    store_unavailable()
}

/// The list was changed: sessions that have asked for it are told; who is blocked does not see the account any more, and who is not any
/// more sees it again (XEP-0191 §3.3).
fn changed(change: &BlockListChange, home: &mut AtHome<'_>, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    for (name, list, is_seen) in [("block", &change.blocked, false), ("unblock", &change.unblocked, true)] {
        if list.is_empty() {
            continue;
        }
        let shown = xml::list(name, list.iter());
        for slot in sessions.of(home.account.as_str()) {
            let Some(session) =
                sessions.bound_in(slot).filter(|session| session.state.blocking.is_interested)
            else {
                continue;
            };
            let push = Stanza::iq(IqType::Set)
                .with_id(cx.shard.random.token())
                .with_to(session.jid.clone())
                .with_payload(shown.clone());
            session.send(&push, &Track::Nothing, cx);
        }
        // A record that was read later has it already.
        if home.generation < change.after {
            home.record.blocking.change(change);
        }
        let hooks = &cx.pipeline.seen;
        let seen = Seen { entries: list, is_seen, session: None };
        hooks.iter().for_each(|hook| hook(home, &seen, sessions, cx));
    }
}
