//! Inboxes: what is the same whatever keeps the rows. What is said between two, and in rooms, is in one order.

use carillon_core::form::{Clock, decode};
use carillon_core::model::*;
use carillon_core::ports::store::inbox::ReadInbox;
use carillon_wire::jid::BareJid;

/// An entry of an inbox, without its message.
pub(crate) struct Listed<P> {
    pub(crate) place: InboxPlace,
    pub(crate) conversation: Conversation,
    pub(crate) source: Source<P>,
}

/// Where its message is.
pub(crate) enum Source<P> {
    /// In the archive of the account: the other side.
    Peer(P),
    /// In that of a room.
    Room(RoomId, BareJid),
}

/// What a store has of a member of a room.
pub(crate) struct Standing {
    pub(crate) room: RoomId,
    pub(crate) kind: RoomKind,
    pub(crate) name: Box<str>,
    /// What was noted of it, without what follows from the messages.
    pub(crate) noted: Conversation,
    pub(crate) last: ArchiveId,
    pub(crate) counted: u64,
    pub(crate) read_counted: u64,
    /// The newest message when the account became a member.
    pub(crate) since: ArchiveId,
    pub(crate) config: Vec<u8>,
    /// When the newest message was received.
    pub(crate) received: UnixMs,
}

impl Standing {
    /// The entry, if the filter lets it through, in a domain of this name.
    pub(crate) fn listed<P>(self, filter: &InboxFilter, domain: &str) -> Option<Listed<P>> {
        let Standing { room, kind, name, noted, last, counted, read_counted, received, .. } = &self;
        let conversation = Conversation::of_room(*noted, *last, *counted, *read_counted);
        let is_of_time = filter.start.is_none_or(|start| *received >= start)
            && filter.end.is_none_or(|end| *received <= end);
        if !is_of_time || !filter.takes(&conversation) || !self.may_be_shown() {
            return None;
        }
        let jid = BareJid::new(&kind.address(name, domain)).ok()?;
        if filter.with.as_ref().is_some_and(|with| *with != jid) {
            return None;
        }
        let place = InboxPlace { received: *received, is_room: true, last: *last };
        Some(Listed { place, conversation, source: Source::Room(*room, jid) })
    }

    /// What was said before somebody was a member is not shown where the room says so.
    fn may_be_shown(&self) -> bool {
        let config = || decode::<RoomConfig>(&self.config, Clock::default());
        self.last > self.since
            || config().is_ok_and(|config| !config.members_only || config.members_history == RoomHistory::All)
    }
}

/// Puts the part of a list that is asked for into the order in which it is read, and counts all of it.
pub(crate) fn arrange<P>(asked: &ReadInbox, listed: &mut Vec<Listed<P>>) -> InboxTotals {
    let mut totals = InboxTotals::default();
    listed.iter().for_each(|entry| totals.add(&entry.conversation));
    let bound = inbox_bound(asked.start, listed.iter().map(|entry| entry.place));
    listed.sort_unstable_by_key(|entry| entry.place);
    if !asked.is_oldest_first {
        listed.reverse();
    }
    if let Some(bound) = bound {
        let is_behind = |place: InboxPlace| if asked.is_oldest_first { place > bound } else { place < bound };
        let is_before = matches!(asked.start, ArchiveStart::Before(_));
        listed.retain(|entry| entry.place != bound && is_behind(entry.place) != is_before);
    }
    if asked.start.is_backward() {
        listed.reverse();
    }
    totals
}
