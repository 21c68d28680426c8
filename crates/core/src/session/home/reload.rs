//! Doubts about a record: whether it has changed in the store is not known, because an answer of the store was lost, or because a change
//! that was made has not come here for long.
//!
//! The record is read anew, and what its sessions were not told of is found by comparing it to what was known before. Only where
//! nothing was known any more do they have to begin anew.

use super::{give, parts_of, question, read};
use crate::error::StreamError;
use crate::feature_state::PerAccount;
use crate::message::AccountMessage;
use crate::model::{Generation, RecordParts};
use crate::session::homes::{self, AccountRecord, AtHome, Home};
use crate::session::{Cx, Sessions};
use carillon_wire::jid::BareJid;
use carillon_wire::stream;

/// Reads the record again to find out whether it has changed: the answer to an earlier read may be older than the change.
pub(super) fn begin_reload(account: &BareJid, cx: &mut Cx<'_>) {
    let Some(home) = cx.homes.places.get_mut(account) else { return };
    let record = home.begin_load();
    // It is settled by this read.
    home.push_front(AccountMessage::Reload);
    home.state.set_stale(record.map(|AccountRecord { generation, parts }| (generation, parts)));
    read(account, cx);
}

/// Sessions of an account came from another process: nobody announces what was stored since they were last told of the record.
pub(crate) fn verify(account: &BareJid, cx: &mut Cx<'_>) {
    let Some(question) = question(account, RecordParts::default(), cx) else { return };
    let account = account.clone();
    cx.ask(question, move |answer, sessions, cx| {
        let stored = answer.map(|record| record.map(|record| record.generation));
        let home = cx.homes.places.get(&account);
        let told = home.map_or(Some(Generation::default()), |home| home.state.told);
        // If nobody knows the record, all will know the one that is read.
        let is_known = told.is_none_or(|told| matches!(stored, Ok(Some(generation)) if generation <= told));
        if !is_known && sessions.has_any(account.as_str()) {
            cx.homes.places.make(&account, homes::empty);
            begin_reload(&account, cx);
        }
    });
}

/// The record was read because it was unknown whether it had changed. If it has, the account's sessions are told what they were not; if it
/// is not known what they were told, they have to ask anew.
pub(super) fn settle(account: &BareJid, generation: Generation, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    let Some(home) = cx.homes.places.get_mut(account) else { return };
    if home.next_if(|message| matches!(message, AccountMessage::Reload)).is_none() {
        return;
    }
    let changes = &mut home.state;
    let (stale, mut known) = (changes.take_stale(), changes.take_known(generation));
    let told = changes.told.replace(generation).unwrap_or(generation);
    match stale {
        _ if told == generation => {}
        Some((of, was)) => {
            // Changes up to the stale record reach the sessions as messages, those that wait here and those to come; later ones are
            // found by comparison.
            if told < of {
                changes.expect_late(told, of);
            }
            let is_said = |message: &AccountMessage| {
                message.generations().is_some_and(|(before, after)| before == after || after <= of)
            };
            known.retain(is_said);
            tell_missed(account, Some(&was), known, sessions, cx);
        }
        None => {
            for session in sessions.bound_of(account.as_str()) {
                let error = StreamError::new(
                    stream::Condition::Reset,
                    "what you know of your account may be out of date",
                );
                cx.end(session.id, error);
            }
        }
    }
    if let Some(home) = cx.homes.places.get_mut(account) {
        home.state.forget_ahead();
    }
}

/// Tells an account's sessions what they were not told of its record: what `messages` say that came too early or too late, and how it differs
/// from what it was. They are told how things are now, whatever was between.
pub(super) fn tell_missed(
    account: &BareJid,
    was: Option<&PerAccount>,
    messages: Vec<AccountMessage>,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) {
    let Some((domain, local)) = parts_of(account, cx) else { return };
    let Some((known, _)) = cx.homes.places.get_mut(account).and_then(Home::record_and_state) else { return };
    let AccountRecord { generation, parts } = known;
    let at_home = AtHome { account, local, domain, record: parts, generation: *generation };
    let missed = cx.pipeline.missed.iter().flat_map(|hook| hook(was, &messages, &at_home));
    let missed: Vec<AccountMessage> = missed.collect();
    let events = messages.into_iter().filter(|message| matches!(message, AccountMessage::Published { .. }));
    for message in missed.into_iter().chain(events) {
        give(account, message, sessions, cx);
    }
}
