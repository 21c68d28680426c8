//! Doubts about a record: whether it has changed in the store is not known, because an answer of the store was lost, or because a change
//! that was made has not come here for long.
//!
//! The record is read anew, and what its sessions were not told of is found by comparing it to what was known before. Only where
//! nothing was known any more do they have to begin anew.

use super::homes::Home;
use super::{AtHome, give, question, read};
use crate::error::StreamError;
use crate::features::state::PerAccount;
use crate::message::Letter;
use crate::model::{Generation, RecordParts};
use crate::session::{Cx, Sessions};
use carillon_wire::jid::BareJid;
use carillon_wire::stream;

/// The record is read anew, to find out whether it has changed: what was asked before may have been answered before.
pub(super) fn doubt(account: &BareJid, cx: &mut Cx<'_>) {
    let Some(home) = cx.homes.accounts.get_mut(account.as_str()) else { return };
    let record = home.record.take();
    let bytes = record.as_ref().map_or(0, |(_, record)| record.bytes());
    let mailbox = home.mailbox.get_or_insert_default();
    // It is settled by this read.
    mailbox.letters.push_front(Letter::Doubt);
    mailbox.doubted = mailbox.doubted.take().or(record);
    cx.homes.bytes -= bytes;
    read(account.clone(), cx);
}

/// Sessions of an account came from another process: what was stored since they were told of the record is told by nobody.
pub(crate) fn verify(account: &BareJid, cx: &mut Cx<'_>) {
    let Some(question) = question(account, RecordParts::default(), cx) else { return };
    let account = account.clone();
    cx.ask(question, move |answer, sessions, cx| {
        let stored = answer.map(|record| record.map(|record| record.generation));
        let home = cx.homes.accounts.get(account.as_str());
        let told = home.map_or(Some(Generation::default()), |home| home.told);
        // If nobody knows the record, all will know the one that is read.
        let is_known = told.is_none_or(|told| matches!(stored, Ok(Some(generation)) if generation <= told));
        if !is_known && sessions.has_any(account.as_str()) {
            cx.homes.accounts.entry(account.clone()).or_insert_with(Home::empty);
            doubt(&account, cx);
        }
    });
}

/// The record was read because it was unknown whether it had changed. If it has, the account's sessions are told what they were not; if it
/// is not known what they were told, they have to ask anew.
pub(super) fn settle(account: &BareJid, generation: Generation, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    let Some(home) = cx.homes.accounts.get_mut(account.as_str()) else { return };
    let Some(mailbox) = &mut home.mailbox else { return };
    if mailbox.letters.pop_front_if(|letter| matches!(letter, Letter::Doubt)).is_none() {
        return;
    }
    let (doubted, mut known) = (mailbox.doubted.take(), mailbox.known_early(generation));
    let told = home.told.replace(generation).unwrap_or(generation);
    match doubted {
        _ if told == generation => {}
        Some((of, was)) => {
            // What the record had when it became doubtful, and its sessions were not told, is said by letters: those that are here, and
            // those to come. What came after that is said by comparison.
            if told < of {
                mailbox.late = Some(mailbox.late.map_or((told, of), |(from, _)| (from, of)));
            }
            let is_said = |letter: &Letter| {
                letter.generations().is_some_and(|(before, after)| before == after || after <= of)
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
    if let Some(home) = cx.homes.accounts.get_mut(account.as_str()) {
        home.forget_ahead();
    }
}

/// Tells an account's sessions what they were not told of its record: what `letters` say that came too early or too late, and how it differs
/// from what it was. They are told how things are now, whatever was between.
pub(super) fn tell_missed(
    account: &BareJid,
    was: Option<&PerAccount>,
    letters: Vec<Letter>,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) {
    let Some(domain) = cx.shard.domains.named(account.domain()).map(|domain| domain.id) else { return };
    let Some(home) = cx.homes.accounts.get_mut(account.as_str()) else { return };
    let Some((generation, mut record)) = home.record.take() else { return };
    let at_home = AtHome { account, domain, record: &mut record, generation };
    let missed = cx.pipeline.missed.iter().flat_map(|hook| hook(was, &letters, &at_home));
    let missed: Vec<Letter> = missed.collect();
    home.record = Some((generation, record));
    let events = letters.into_iter().filter(|letter| matches!(letter, Letter::Published { .. }));
    for letter in missed.into_iter().chain(events) {
        give(account, letter, sessions, cx);
    }
}
