//! The inbox of an account: how the conversations of its archive stand (XEP-0430).

use super::{ArchiveId, ArchiveStart, ArchivedMessage, UnixMs};
use carillon_wire::jid::BareJid;

/// What a message of an archive is to its conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EntryKind {
    /// It has no contents of its own: a marker, a receipt, a correction of another message.
    #[default]
    Other,
    /// It is from the other side.
    Received,
    /// It is from the account itself.
    Sent,
}

/// Where a client has put a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Folder {
    /// Among those that it shows.
    #[default]
    Inbox,
    /// Out of sight.
    Archive,
    /// Thrown away, and still to be seen by who asks for it.
    Bin,
    /// Not listed.
    Nowhere,
}

/// How a conversation stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conversation {
    /// Its newest message with contents; 0 for none.
    pub last: ArchiveId,
    /// Everything up to this message is read.
    pub read: ArchiveId,
    /// How many messages from the other side are behind that, up to [`UNREAD_MAX`].
    pub unread: u32,
    /// The newest message of the store when the account marked the conversation as unread; 0 where it did not.
    pub marked: ArchiveId,
    /// Where it was put.
    pub folder: Folder,
    /// The newest message of the store when it was put there. A later one brings it back.
    pub moved: ArchiveId,
    /// Until when it is muted.
    pub muted: UnixMs,
}

/// Unread messages of a conversation are counted up to this number.
pub const UNREAD_MAX: u32 = 1000;

/// Conversations of an inbox are counted up to this number, and those with something unread too: a page does not cost more where there are more.
pub const CONVERSATIONS_COUNTED_MAX: u32 = 1000;

/// The message that a marker names is looked for among so many unread ones, the newest first.
pub const MARKED_MAX: usize = 32;

impl Conversation {
    /// How what is said in a room stands for a member, with how many messages that count there were in all and when it had read last.
    pub fn of_room(noted: Conversation, last: ArchiveId, counted: u64, read_counted: u64) -> Conversation {
        let unread = u32::try_from(counted.saturating_sub(read_counted)).unwrap_or(UNREAD_MAX);
        Conversation { last, unread: unread.min(UNREAD_MAX), ..noted }
    }

    /// The next message of the conversation.
    pub fn add(&mut self, id: ArchiveId, kind: EntryKind) {
        match kind {
            EntryKind::Other => return,
            // Who answers has read what was before.
            EntryKind::Sent => {
                self.read = self.read.max(id);
                self.unread = 0;
                if id > self.marked {
                    self.marked = ArchiveId(0);
                }
            }
            EntryKind::Received if id > self.read => self.unread = (self.unread + 1).min(UNREAD_MAX),
            EntryKind::Received => {}
        }
        self.last = self.last.max(id);
    }

    /// Everything up to this message was read. The caller counts what is behind it.
    pub fn read_to(&mut self, id: ArchiveId) {
        self.read = self.read.max(id);
        self.marked = ArchiveId(0);
    }

    /// A change that a client makes, when the newest message of the store is `newest`. The caller counts what is unread.
    pub fn change(&mut self, change: &ConversationChange, newest: ArchiveId) {
        match change.is_read {
            Some(true) => self.read_to(newest),
            Some(false) => self.marked = newest,
            None => {}
        }
        if let Some(folder) = change.folder {
            (self.folder, self.moved) = (folder, newest);
        }
        self.muted = change.muted.unwrap_or(self.muted);
    }

    /// How many messages are unread, as clients are told: one at least where the account says so.
    pub fn unread(&self) -> u32 {
        self.unread.max(u32::from(self.marked > ArchiveId(0)))
    }

    /// Where it is.
    pub fn folder(&self) -> Folder {
        if self.last > self.moved { Folder::Inbox } else { self.folder }
    }

    /// Whether there is a message that could be shown.
    pub fn is_there(&self) -> bool {
        self.last > ArchiveId(0) && self.folder() != Folder::Nowhere
    }
}

/// What a client changes of a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConversationChange {
    /// Whether it is read.
    pub is_read: Option<bool>,
    /// Where it is put.
    pub folder: Option<Folder>,
    /// Until when it is muted.
    pub muted: Option<UnixMs>,
}

/// Which conversations are asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InboxFilter {
    /// The one with this address.
    pub with: Option<BareJid>,
    /// Those with something unread.
    pub is_unread: bool,
    /// Those in this folder; none for all but the bin, or for the one that is named wherever it is.
    pub folder: Option<Folder>,
    /// Whose newest message is not before this time.
    pub start: Option<UnixMs>,
    /// Whose newest message is not after this time.
    pub end: Option<UnixMs>,
}

impl InboxFilter {
    /// Whether a conversation passes, as far as its times do not decide.
    pub fn takes(&self, conversation: &Conversation) -> bool {
        let folder = conversation.folder();
        let usual = folder != Folder::Bin || self.with.is_some();
        let is_in = self.folder.map_or(usual, |wanted| folder == wanted);
        conversation.is_there() && is_in && (!self.is_unread || conversation.unread() > 0)
    }
}

/// A conversation of an inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboxEntry {
    /// With whom.
    pub peer: BareJid,
    /// How it stands.
    pub conversation: Conversation,
    /// Its newest message with contents.
    pub message: ArchivedMessage,
    /// Whether it is what is said in a room: then its numbers are those of the room's archive.
    pub is_room: bool,
}

/// What tells the numbers of rooms from those of the account's own archive, where one names a place in an inbox.
const OF_ROOM: u64 = 1 << 52;

impl InboxEntry {
    /// Its place in the inbox, by which the next page is asked for.
    pub fn place(&self) -> ArchiveId {
        ArchiveId(self.conversation.last.0 | if self.is_room { OF_ROOM } else { 0 })
    }
}

/// Where an entry of an inbox is: the oldest is least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct InboxPlace {
    /// When its newest message was received.
    pub received: UnixMs,
    /// Whether it is a room.
    pub is_room: bool,
    /// The number of its newest message.
    pub last: ArchiveId,
}

/// The place that the start of a page names: whether it is a room's, and the number of the message there.
pub fn named_place(start: ArchiveStart) -> Option<(bool, ArchiveId)> {
    let named = match start {
        ArchiveStart::First | ArchiveStart::Last => return None,
        ArchiveStart::After(id) | ArchiveStart::Before(id) => id,
    };
    Some((named.0 & OF_ROOM != 0, ArchiveId(named.0 & !OF_ROOM)))
}

/// Which part of an inbox is asked for, of which these are all places: from where on. Whatever the place was that is named, if it is not there any more,
/// those that are older than what came after it are behind it.
pub fn inbox_bound(start: ArchiveStart, places: impl Iterator<Item = InboxPlace>) -> Option<InboxPlace> {
    let (is_room, last) = named_place(start)?;
    let of = places.filter(|place| place.is_room == is_room && place.last >= last);
    let received = of.map(|place| place.received).min().unwrap_or(UnixMs(u64::MAX));
    Some(InboxPlace { received, is_room, last })
}

/// What there is in all conversations that a filter lets through, as far as they are counted ([`CONVERSATIONS_COUNTED_MAX`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InboxTotals {
    /// Conversations.
    pub conversations: u32,
    /// Those with something unread.
    pub unread_conversations: u32,
    /// Unread messages of these.
    pub unread: u64,
}

impl InboxTotals {
    /// One more conversation.
    pub fn add(&mut self, conversation: &Conversation) {
        self.add_many(1, u32::from(conversation.unread() > 0), u64::from(conversation.unread()));
    }

    /// So many more, with so many unread messages in some of them.
    pub fn add_many(&mut self, conversations: u32, unread_conversations: u32, unread: u64) {
        let bounded = |sum: u32| sum.min(CONVERSATIONS_COUNTED_MAX);
        self.conversations = bounded(self.conversations.saturating_add(conversations));
        if self.unread_conversations < CONVERSATIONS_COUNTED_MAX {
            self.unread = self.unread.saturating_add(unread);
        }
        self.unread_conversations = bounded(self.unread_conversations.saturating_add(unread_conversations));
    }
}

/// Whether a stanza has this `id`.
pub fn has_id(stanza: &[u8], id: &str) -> bool {
    super::archive::read(stanza).is_some_and(|stanza| stanza.id.as_deref() == Some(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(kinds: &[EntryKind]) -> Conversation {
        let mut conversation = Conversation::default();
        for (id, kind) in (1..).zip(kinds) {
            conversation.add(ArchiveId(id), *kind);
        }
        conversation
    }

    #[test]
    fn messages_are_unread_until_one_is_sent_or_read() {
        use EntryKind::{Other, Received, Sent};
        assert_eq!(after(&[Received, Other, Received]).unread(), 2);
        assert_eq!(after(&[Received, Sent, Received, Other]).unread(), 1);
        assert_eq!(after(&[Received, Other]).last, ArchiveId(1));
        assert!(!after(&[Other]).is_there());
        let mut read = Conversation { read: ArchiveId(7), ..Conversation::default() };
        read.add(ArchiveId(7), Received);
        read.add(ArchiveId(8), Received);
        assert_eq!(read.unread(), 1);
    }

    #[test]
    fn a_mark_of_unread_goes_when_something_is_sent_or_read() {
        let marked = |kinds| {
            let mut conversation = after(kinds);
            conversation
                .change(&ConversationChange { is_read: Some(false), ..Default::default() }, ArchiveId(2));
            conversation
        };
        let mut one = marked(&[EntryKind::Sent]);
        assert_eq!(one.unread(), 1);
        // An older message, told late.
        one.add(ArchiveId(2), EntryKind::Sent);
        assert_eq!(one.unread(), 1);
        one.add(ArchiveId(3), EntryKind::Sent);
        assert_eq!(one.unread(), 0);
        let mut two = marked(&[EntryKind::Received]);
        two.change(&ConversationChange { is_read: Some(true), ..Default::default() }, ArchiveId(9));
        assert_eq!((two.marked, two.read), (ArchiveId(0), ArchiveId(9)));
    }

    #[test]
    fn a_message_brings_a_conversation_back() {
        let mut conversation = after(&[EntryKind::Received]);
        for folder in [Folder::Archive, Folder::Bin, Folder::Nowhere] {
            let change = ConversationChange { folder: Some(folder), ..Default::default() };
            conversation.change(&change, conversation.last);
            assert_eq!(conversation.folder(), folder);
            conversation.add(ArchiveId(conversation.last.0 + 1), EntryKind::Received);
            assert_eq!(conversation.folder(), Folder::Inbox);
        }
    }
}
