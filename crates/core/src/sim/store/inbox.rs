//! How conversations stand: found anew from the whole archive each time.

use super::tables::Account;
use super::{Committed, answers};
use crate::model::{
    ArchiveId, ArchiveStart, Conversation, EntryKind, Folder, InboxEntry, InboxPlace, InboxTotals,
    MARKED_MAX, has_id, inbox_bound,
};
use crate::ports::Missing;
use crate::ports::store::inbox::*;
use carillon_wire::jid::BareJid;

answers! {
    ReadInbox => read;
    ChangeConversation => change;
    EmptyBin => empty_bin;
}

/// A message entered the archive. What it says of those before it holds although it may be removed.
pub(super) fn entered(account: &mut Account, peer: &BareJid, id: ArchiveId, kind: EntryKind) {
    if kind == EntryKind::Sent {
        account.conversations.entry(peer.clone()).or_default().add(id, kind);
    }
}

/// The account has seen the message with this id.
pub(super) fn displayed(account: &mut Account, peer: &BareJid, displayed: &str) {
    let state = standing(account, peer);
    let unread = account.archive.iter().rev().filter(|(id, (other, kind, _))| {
        **id > state.read && *kind == EntryKind::Received && other.bare_str() == peer.as_str()
    });
    let found = unread.take(MARKED_MAX).find(|(_, (_, _, message))| has_id(&message.stanza, displayed));
    if let Some(id) = found.map(|(id, _)| *id) {
        account.conversations.entry(peer.clone()).or_default().read_to(id);
    }
}

/// How a conversation stands.
fn standing(account: &Account, peer: &BareJid) -> Conversation {
    let noted = account.conversations.get(peer).copied().unwrap_or_default();
    let mut state = Conversation { last: ArchiveId(0), unread: 0, ..noted };
    for (id, (other, kind, _)) in &account.archive {
        if other.bare_str() == peer.as_str() {
            state.add(*id, *kind);
        }
    }
    state
}

fn read(store: &Committed, asked: &ReadInbox) -> Option<InboxPage> {
    let account = store.account(asked.domain, &asked.local)?;
    let mut peers: Vec<BareJid> = account.archive.values().map(|(peer, _, _)| peer.bare()).collect();
    peers.sort();
    peers.dedup();
    let filter = &asked.filter;
    let mut found = Vec::new();
    for peer in peers {
        let conversation = standing(account, &peer);
        let is_it = filter.with.as_ref().is_none_or(|with| *with == peer) && filter.takes(&conversation);
        let Some((_, _, message)) = account.archive.get(&conversation.last).filter(|_| is_it) else {
            continue;
        };
        let is_of_time = filter.start.is_none_or(|start| message.received >= start)
            && filter.end.is_none_or(|end| message.received <= end);
        if is_of_time {
            found.push(InboxEntry { peer, conversation, message: message.clone(), is_room: false });
        }
    }
    found.extend(store.own.rooms.entries(&account.jid, filter));
    let mut totals = InboxTotals::default();
    found.iter().for_each(|entry| totals.add(&entry.conversation));
    let place = |entry: &InboxEntry| InboxPlace {
        received: entry.message.received,
        is_room: entry.is_room,
        last: entry.conversation.last,
    };
    let bound = inbox_bound(asked.start, found.iter().map(place));
    found.sort_by_key(place);
    if !asked.is_oldest_first {
        found.reverse();
    }
    if let Some(bound) = bound {
        let is_behind = |at: InboxPlace| if asked.is_oldest_first { at > bound } else { at < bound };
        let is_before = matches!(asked.start, ArchiveStart::Before(_));
        found.retain(|entry| place(entry) != bound && is_behind(place(entry)) != is_before);
    }
    let sized = |entry: &InboxEntry| (entry.message.stanza.len(), entry.clone());
    let mut part = match asked.start.is_backward() {
        true => super::page::first(found.iter().rev().map(sized), asked.page),
        false => super::page::first(found.iter().map(sized), asked.page),
    };
    if asked.start.is_backward() {
        part.entries.reverse();
    }
    Some(InboxPage { entries: part.entries, more: part.more, totals })
}

fn change(store: &mut Committed, asked: &ChangeConversation) -> Result<Conversation, Missing> {
    let newest = ArchiveId(store.numbered.into());
    let account = store.account_mut(asked.domain, &asked.local).ok_or(Missing)?;
    let jid = account.jid.clone();
    if let Some(changed) = store.own.rooms.change(&jid, &asked.with, &asked.change) {
        return changed;
    }
    let account = store.account_mut(asked.domain, &asked.local).ok_or(Missing)?;
    if !standing(account, &asked.with).is_there() {
        return Err(Missing);
    }
    account.conversations.entry(asked.with.clone()).or_default().change(&asked.change, newest);
    Ok(standing(account, &asked.with))
}

fn empty_bin(store: &mut Committed, asked: &EmptyBin) -> Result<Emptied, Missing> {
    let newest = ArchiveId(store.numbered.into());
    let account = store.account_mut(asked.domain, &asked.local).ok_or(Missing)?;
    let peers: Vec<BareJid> = account.conversations.keys().cloned().collect();
    let mut emptied = 0;
    for peer in peers {
        let state = standing(account, &peer);
        if state.is_there() && state.folder() == Folder::Bin {
            let noted = account.conversations.entry(peer).or_default();
            (noted.folder, noted.moved) = (Folder::Nowhere, newest);
            emptied += 1;
        }
    }
    let jid = account.jid.clone();
    Ok(Emptied { conversations: emptied + store.own.rooms.empty_bin(&jid), more: false })
}
