//! Message archives.

use super::{Committed, answers};
use crate::model::{
    AccountId, ArchiveEnds, ArchiveFilter, ArchiveId, ArchivePreferences, ArchiveSide, ArchiveStart,
    ArchivedMessage, EntryKind, is_with, kept_at,
};
use crate::ports::store::archive::*;
use crate::ports::{Missing, Page};
use carillon_wire::jid::Jid;

answers! {
    ArchivePage => page;
    ArchivedMessages => messages;
    ReadArchiveEnds => ends;
    ReadArchivePreferences => preferences;
    SetArchivePreferences => set_preferences;
    EraseArchive => erase;
    SweepArchives => sweep;
    KeepMessage => keep;
}

fn keep(store: &mut Committed, asked: &KeepMessage) -> KeepMessageAnswer {
    let account = |side: &ArchiveSide| store.account(side.domain, &side.local);
    if asked.recipient.as_ref().is_some_and(|side| account(side).is_none()) {
        return KeepMessageAnswer::NotKept;
    }
    let wants = |side: &Option<ArchiveSide>| {
        let Some(side) = side else { return false };
        account(side).is_some_and(|account| {
            let contact = account.roster.get(side.peer.bare_str());
            let is_contact = || contact.is_some_and(|contact| contact.is_listed);
            account.archive_preferences.wants(&side.peer, is_contact)
        })
    };
    let (sender, recipient) = (wants(&asked.sender), wants(&asked.recipient));
    if !sender && !recipient {
        return KeepMessageAnswer::NotKept;
    }
    let id = ArchiveId(store.number().into());
    let received = kept_at(asked.received, store.archived_at);
    store.archived_at = received;
    let sides = [
        (asked.recipient.as_ref().filter(|_| recipient), EntryKind::Received),
        // A message to oneself is one that was sent.
        (asked.sender.as_ref().filter(|_| sender), EntryKind::Sent),
    ];
    for (side, kind) in sides {
        let Some(side) = side else { continue };
        let kind = if asked.has_contents { kind } else { EntryKind::Other };
        let message = ArchivedMessage { id, received, stanza: asked.stanza.clone() };
        if let Some(account) = store.account_mut(side.domain, &side.local) {
            account.archive.insert(id, (side.peer.clone(), kind, message));
            super::inbox::entered(account, &side.peer.bare(), id, kind);
        }
    }
    if let (true, Some(side), Some(displayed)) = (sender, &asked.sender, &asked.displayed)
        && let Some(account) = store.account_mut(side.domain, &side.local)
    {
        super::inbox::displayed(account, &side.peer.bare(), displayed);
    }
    KeepMessageAnswer::Kept { id, sender, recipient }
}

fn page(store: &Committed, asked: &ArchivePage) -> ArchivePageAnswer {
    let Some(account) = store.account(asked.domain, &asked.local) else {
        return ArchivePageAnswer::NoAccount;
    };
    let all: Vec<_> = account.archive.values().map(|(peer, _, message)| (peer, message)).collect();
    page_of(&all, &asked.filter, asked.start, asked.page)
}

/// A page of the messages of an archive, each with its other side.
pub(super) fn page_of(
    all: &[(&Jid, &ArchivedMessage)],
    filter: &ArchiveFilter,
    start: ArchiveStart,
    page: Page,
) -> ArchivePageAnswer {
    let (mut after, mut before) = (filter.after, filter.before);
    let mut named = vec![filter.after, filter.before];
    match start {
        ArchiveStart::After(id) => {
            named.push(Some(id));
            after = after.max(Some(id));
        }
        ArchiveStart::Before(id) => {
            named.push(Some(id));
            before = Some(before.map_or(id, |before| before.min(id)));
        }
        ArchiveStart::First | ArchiveStart::Last => {}
    }
    let is_there = |id| all.iter().any(|(_, message)| message.id == id);
    if named.into_iter().flatten().any(|id| !is_there(id)) {
        return ArchivePageAnswer::NotFound;
    }
    let is_with = |peer: &Jid, message: &ArchivedMessage, with: &Jid| {
        peer.bare_str() == with.bare_str() && (with.is_bare() || is_with(&message.stanza, with))
    };
    let passes = |(peer, message): &&(&Jid, &ArchivedMessage)| {
        filter.start.is_none_or(|start| message.received >= start)
            && filter.end.is_none_or(|end| message.received <= end)
            && after.is_none_or(|after| message.id > after)
            && before.is_none_or(|before| message.id < before)
            && filter.with.as_ref().is_none_or(|with| is_with(peer, message, with))
    };
    let found: Vec<_> = all.iter().filter(passes).map(|(_, message)| *message).collect();
    let sized = |message: &&ArchivedMessage| (message.stanza.len(), (*message).clone());
    let mut part = match start.is_backward() {
        true => super::page::first(found.iter().rev().map(sized), page),
        false => super::page::first(found.iter().map(sized), page),
    };
    if start.is_backward() {
        part.entries.reverse();
    }
    ArchivePageAnswer::Page { messages: part.entries, more: part.more, reached: None }
}

fn messages(store: &Committed, asked: &ArchivedMessages) -> ArchivePageAnswer {
    let Some(account) = store.account(asked.domain, &asked.local) else {
        return ArchivePageAnswer::NoAccount;
    };
    named(&asked.ids, |id| account.archive.get(&id).map(|(_, _, message)| message))
}

/// Messages by their numbers.
pub(super) fn named<'a>(
    ids: &[ArchiveId],
    message: impl Fn(ArchiveId) -> Option<&'a ArchivedMessage>,
) -> ArchivePageAnswer {
    let mut ids = ids.to_vec();
    ids.sort();
    ids.dedup();
    let found: Option<Vec<_>> = ids.into_iter().map(|id| message(id).cloned()).collect();
    match found {
        Some(messages) => ArchivePageAnswer::Page { messages, more: false, reached: None },
        None => ArchivePageAnswer::NotFound,
    }
}

fn ends(store: &Committed, asked: &ReadArchiveEnds) -> Option<ArchiveEnds> {
    let archive = &store.account(asked.domain, &asked.local)?.archive;
    let of = |(id, (_, _, message)): (&ArchiveId, &(_, _, ArchivedMessage))| (*id, message.received);
    Some(ArchiveEnds { first: archive.first_key_value().map(of)?, last: archive.last_key_value().map(of)? })
}

fn preferences(store: &Committed, asked: &ReadArchivePreferences) -> Option<ArchivePreferences> {
    store.account(asked.domain, &asked.local).map(|account| account.archive_preferences.clone())
}

fn set_preferences(store: &mut Committed, asked: &SetArchivePreferences) -> Result<(), Missing> {
    let account = store.account_mut(asked.domain, &asked.local).ok_or(Missing)?;
    account.archive_preferences = asked.preferences.clone();
    Ok(())
}

fn erase(store: &mut Committed, asked: &EraseArchive) -> Result<(), Missing> {
    let account = store.account_mut(asked.domain, &asked.local).ok_or(Missing)?;
    account.archive.clear();
    account.conversations.clear();
    Ok(())
}

fn sweep(store: &mut Committed, asked: &SweepArchives) -> SweepArchivesAnswer {
    let mut removed = 0;
    let domains = store.domains.clone();
    for (id, account) in store.accounts.range_mut(AccountId(asked.after.0 + 1)..) {
        let Some(domain) = domains.get(&account.domain) else { continue };
        let bounds = domain.policy.archive_bounds();
        while let Some((oldest, (_, _, message))) = account.archive.first_key_value() {
            let bytes: usize = account.archive.values().map(|(_, _, message)| message.stanza.len()).sum();
            let is_old = message.received < bounds.cutoff(asked.now);
            if !is_old && !bounds.are_exceeded(account.archive.len() as u64, bytes as u64) {
                break;
            }
            if removed == asked.max {
                return SweepArchivesAnswer { removed, next: Some(AccountId(id.0 - 1)) };
            }
            let oldest = *oldest;
            account.archive.remove(&oldest);
            removed += 1;
        }
    }
    SweepArchivesAnswer { removed, next: None }
}
