//! How much an answer takes in memory while it waits for who asked.

use super::{
    Answer, accounts, archive, broadcasts, idempotency, inbox, items, links, nodes, notifications, offline,
    parked, private, rooms, roster, subscriptions, topics, vcard,
};
use crate::model::{ArchivedMessage, Contact, Item, Node, TopicRecord};
use std::sync::Arc;

impl Answer {
    /// Bytes that it takes in memory, as far as somebody chose them: what the bounds of inboxes count. What a login shares with all who are
    /// given it is not its own.
    pub fn memory_bytes(&self) -> usize {
        let carried = match self {
            Answer::Items(items::Answer::Items(found)) => found.as_deref().map_or(0, of_items),
            Answer::Items(items::Answer::ItemNames(found))
            | Answer::Nodes(nodes::Answer::NodeItemNames(found)) => {
                found.as_ref().map_or(0, |names| sum(&names.ids, |id| id.len()))
            }
            Answer::Nodes(nodes::Answer::NodeItems(found)) => found.as_deref().map_or(0, of_items),
            Answer::Nodes(nodes::Answer::LastNodeItems(found)) => {
                sum(&found.items, |(_, item)| of_item(item))
            }
            Answer::Nodes(nodes::Answer::EditNode(Ok(change))) => change.bytes(),
            Answer::Nodes(nodes::Answer::EditNodes(done)) => sum(&done.changes, |(_, change)| change.bytes()),
            Answer::Archive(archive::Answer::ArchivePage(page) | archive::Answer::ArchivedMessages(page))
            | Answer::Rooms(
                rooms::Answer::RoomArchivePage(page) | rooms::Answer::RoomArchivedMessages(page),
            ) => match page {
                archive::ArchivePageAnswer::Page { messages, .. } => sum(messages, of_message),
                _ => 0,
            },
            Answer::Rooms(rooms::Answer::Room(Some(record))) => record.bytes(),
            Answer::Rooms(rooms::Answer::Rooms(found)) => {
                sum(found, |room| room.name.len() + room.title.len())
            }
            Answer::Rooms(rooms::Answer::RoomsOf(found)) => {
                sum(found, |room| room.name.len() + room.title.len())
            }
            Answer::Rooms(rooms::Answer::RoomRefusers(found)) => sum(found, |jid| jid.as_str().len()),
            Answer::Rooms(rooms::Answer::RoomBlocks(found)) => sum(found, |block| block.jid.as_str().len()),
            Answer::Inbox(inbox::Answer::ReadInbox(Some(page))) => {
                sum(&page.entries, |entry| of_message(&entry.message))
            }
            Answer::Roster(roster::Answer::ReadRecord(Some(record))) => {
                sum(&record.roster.contacts, Contact::bytes)
                    + sum(&record.blocked, |jid| jid.as_str().len())
                    + sum(&record.nodes, Node::bytes)
            }
            Answer::Private(private::Answer::ReadPrivate(Ok(Some(xml))))
            | Answer::Vcard(vcard::Answer::ReadVcard(Some(xml))) => xml.len(),
            Answer::Offline(offline::Answer::Offline(page)) => sum(&page.entries, |one| one.stanza.len()),
            Answer::Notifications(
                notifications::Answer::Pending(page) | notifications::Answer::ClaimDue(page),
            ) => sum(&page.entries, |one| one.payload.bytes()),
            Answer::Broadcasts(broadcasts::Answer::ChangedBroadcasts(page)) => {
                sum(&page.entries, |one| one.payload.bytes())
            }
            Answer::Topics(topics::Answer::Topics(found)) => sum(found, of_topic),
            Answer::Topics(topics::Answer::Topic(Some(found))) => of_topic(found),
            Answer::Subscriptions(subscriptions::Answer::SubscriptionsOf(found)) => {
                sum(found, |(_, name)| name.len())
            }
            Answer::Subscriptions(subscriptions::Answer::Subscribers(found)) => {
                sum(found, |jid| jid.as_str().len())
            }
            Answer::Accounts(accounts::Answer::Login(Some(login))) => size_of_val(&login.subscriptions[..]),
            Answer::Links(links::Answer::Links(found)) => sum(&found.links, |link| link.bytes() as usize),
            Answer::Links(links::Answer::ReadLinkFile(Some(body))) => body.len(),
            Answer::Idempotency(idempotency::Answer::NoteLines(found)) => size_of_val(&found[..]),
            Answer::Parked(parked::Answer::ParkedGroups(page)) => sum(&page.entries, |one| one.bytes.len()),
            _ => 0,
        };
        size_of::<Answer>() + carried
    }
}

/// The entries themselves, and what each of them carries.
fn sum<T>(all: &[T], bytes: impl Fn(&T) -> usize) -> usize {
    size_of_val(all) + all.iter().map(bytes).sum::<usize>()
}

fn of_items(items: &[Arc<Item>]) -> usize {
    sum(items, |item| of_item(item))
}

fn of_item(item: &Item) -> usize {
    size_of::<Item>() + item.id.len() + item.payload.len()
}

fn of_message(message: &ArchivedMessage) -> usize {
    message.stanza.len()
}

fn of_topic(record: &TopicRecord) -> usize {
    let affiliations = sum(&record.affiliations, |(jid, _)| jid.as_str().len());
    record.name.len() + record.config.title.len() + affiliations
}
