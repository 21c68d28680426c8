//! Removing an account, whoever asks for it: itself, or somebody outside.
//!
//! What removes it ends the subscriptions between it and its contacts on their side, too, in the same commit; an account of which much is stored is removed
//! in parts, one commit each, so that nobody else waits for all of it. Then their homes are told, and after the last part its sessions end. Where the answer to that commit is lost, nobody knows whether it was done, and afterwards nobody knows whose rosters it
//! was in: they are read before, and their homes find out.

use super::{Cx, Sessions};
use crate::error::StreamError;
use crate::message::{AccountMessage, RosterCause};
use crate::model::{DomainId, RecordParts, RosterChange};
use crate::ports::store::accounts::{ACCOUNT_PART_ROWS, DeleteAccount};
use crate::ports::store::roster::ReadRecord;
use crate::ports::{Fault, Missing, Part};
use carillon_wire::jid::BareJid;
use carillon_wire::stream::Condition;
use std::sync::Arc;

/// Has an account removed. `then` is told what became of that before the account's sessions end.
pub(crate) fn remove(
    domain: DomainId,
    account: BareJid,
    then: impl FnOnce(Result<Result<(), Missing>, Fault>, &mut Cx<'_>) + Send + 'static,
    cx: &mut Cx<'_>,
) {
    let ask = DeleteAccount {
        domain,
        local: account.local().unwrap_or_default().into(),
        now: cx.now.unix,
        held_until: cx.now.unix.plus(cx.shard.settings.removed_names_held_ms),
        rows_max: ACCOUNT_PART_ROWS,
    };
    let parts = RecordParts { roster: true, ..RecordParts::NONE };
    let record = ReadRecord { domain, local: ask.local.clone(), parts, about: Vec::new() };
    cx.ask(record, move |answer, _, cx| match answer {
        Ok(record) => {
            let contacts = record.map_or_else(Vec::new, |read| read.roster.contacts);
            let contacts = contacts.into_iter().map(|contact| contact.jid).collect();
            commit(ask, account, contacts, then, cx);
        }
        Err(fault) => then(Err(fault), cx),
    });
}

fn commit(
    ask: DeleteAccount,
    account: BareJid,
    contacts: Vec<BareJid>,
    then: impl FnOnce(Result<Result<(), Missing>, Fault>, &mut Cx<'_>) + Send + 'static,
    cx: &mut Cx<'_>,
) {
    cx.ask(ask.clone(), move |answer, sessions, cx| {
        cx.shard.accounts.altered(account.as_str());
        if let Ok(Ok(Part { entries, more: true })) = answer {
            tell(entries, cx);
            return commit(ask, account, contacts, then, cx);
        }
        if let Err(Fault::Unknown) = answer {
            contacts.into_iter().for_each(|contact| cx.tell_account(contact, AccountMessage::Reload));
        }
        let answer = answer.map(|removed| removed.map(|part| tell(part.entries, cx)));
        // Or was before, when nobody knew.
        let is_gone = matches!(answer, Ok(Ok(()) | Err(Missing)));
        then(answer, cx);
        if is_gone {
            end_sessions(&account, sessions, cx);
        }
    });
}

/// Tells the homes of accounts whose rosters have changed because contacts were removed.
pub(crate) fn tell(changes: Vec<RosterChange>, cx: &mut Cx<'_>) {
    for change in changes {
        let account = change.account.clone();
        cx.tell_account(
            account,
            AccountMessage::RosterChanged { change: Arc::new(change), cause: RosterCause::Removal },
        );
    }
}

fn end_sessions(account: &BareJid, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    for slot in sessions.of(account.as_str()) {
        if let Some(session) = sessions.bound_in(slot) {
            cx.end(session.id, StreamError::new(Condition::NotAuthorized, "this account is gone"));
        }
    }
}
