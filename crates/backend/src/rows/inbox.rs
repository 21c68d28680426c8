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

/// Rooms of an inbox at most: those where the account has the highest affiliation, and of these the youngest.
pub(crate) const ROOMS_MAX: i64 = CONVERSATIONS_COUNTED_MAX as i64;

/// Between two numbers of newest messages, without these.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) after: u64,
    pub(crate) before: u64,
}

impl Span {
    const WHOLE: Span = Span { after: 0, before: u64::MAX };

    /// What both have.
    pub(crate) fn within(self, other: Span) -> Span {
        Span { after: self.after.max(other.after), before: self.before.min(other.before) }
    }

    pub(crate) fn has(self, last: u64) -> bool {
        last > self.after && last < self.before
    }
}

/// The conversations of an account with others that a filter lets through, by index.
pub(crate) trait Conversations<P> {
    type Error;

    /// The first `max` of a span, in the order of their newest messages.
    fn part(&self, span: Span, is_ascending: bool, max: usize) -> Result<Vec<Listed<P>>, Self::Error>;

    /// The first message that was received at this time or later, or the number behind the newest.
    fn first_since(&self, time: UnixMs) -> Result<u64, Self::Error>;
}

/// The folders whose conversations a filter lets through, where it names no address.
pub(crate) fn folders(filter: &InboxFilter) -> Vec<Folder> {
    filter.folder.map_or_else(|| vec![Folder::Inbox, Folder::Archive], |folder| vec![folder])
}

/// The part of a list that is asked for, in the order in which it is read: of conversations with others one more than a page has.
pub(crate) fn arrange<P, C: Conversations<P>>(
    asked: &ReadInbox,
    rooms: Vec<Listed<P>>,
    with_others: &C,
) -> Result<Vec<Listed<P>>, C::Error> {
    let is_ascending = asked.is_oldest_first != asked.start.is_backward();
    let wants_newer = asked.is_oldest_first != matches!(asked.start, ArchiveStart::Before(_));
    let bound = bound(asked.start, &rooms, with_others)?;
    let span = match bound {
        None => Span::WHOLE,
        Some(InboxPlace { received, is_room, last }) => {
            // Of what came at one time, rooms are the newer.
            let first_newer = match (is_room, received) {
                (false, _) => last.0.saturating_add(u64::from(wants_newer)),
                (true, UnixMs(u64::MAX)) => u64::MAX,
                (true, _) => with_others.first_since(received.plus(1))?,
            };
            match wants_newer {
                true => Span { after: first_newer.saturating_sub(1), ..Span::WHOLE },
                false => Span { before: first_newer, ..Span::WHOLE },
            }
        }
    };
    let mut listed = with_others.part(span, is_ascending, usize::from(asked.page.entries) + 1)?;
    let is_behind =
        |place: InboxPlace| bound.is_none_or(|bound| if wants_newer { place > bound } else { place < bound });
    listed.extend(rooms.into_iter().filter(|room| is_behind(room.place)));
    listed.sort_unstable_by_key(|entry| entry.place);
    if !is_ascending {
        listed.reverse();
    }
    Ok(listed)
}

/// From where on a page is, as [`inbox_bound`] says.
fn bound<P, C: Conversations<P>>(
    start: ArchiveStart,
    rooms: &[Listed<P>],
    with_others: &C,
) -> Result<Option<InboxPlace>, C::Error> {
    let Some((is_room, last)) = named_place(start) else { return Ok(None) };
    if is_room {
        return Ok(inbox_bound(start, rooms.iter().map(|room| room.place)));
    }
    let newer = Span { after: last.0.saturating_sub(1), ..Span::WHOLE };
    let next = with_others.part(newer, true, 1)?;
    Ok(inbox_bound(start, next.iter().map(|listed| listed.place)))
}
