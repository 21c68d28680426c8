//! What the queues of all sessions take in memory has a bound of its own: [`Queued`](crate::shard::Queued).

use super::queue::Entry;
use super::state::{Sent, State};
use crate::error::StreamError;
use crate::model::SessionId;
use crate::session::{BoundSession, Cx};
use crate::shard::Queued;
use carillon_wire::stream::Condition;

/// An entry enters a queue.
pub(super) fn count(entry: &Sent, queued: &mut Queued) {
    match entry {
        Sent::Event(event) => {
            queued.add_event(event);
            queued.add(size_of::<Sent>());
        }
        entry => queued.add(size_of::<Sent>() + entry.bytes()),
    }
}

/// An entry has left its queue.
pub(super) fn uncount(entry: &Sent, queued: &mut Queued) {
    match entry {
        Sent::Event(event) => {
            queued.remove_event(event);
            queued.remove(size_of::<Sent>());
        }
        entry => queued.remove(size_of::<Sent>() + entry.bytes()),
    }
}

/// The queue of a session is longer than it was. When all queues of the shard have more bytes than they may, the largest end: each client is
/// told, and may resume nothing; a session that is parked just ends.
pub(super) fn grew(session: SessionId, before: usize, after: usize, cx: &mut Cx<'_>) {
    cx.shard.queued.resize(session, before, after);
    let bytes_max = cx.shard.queued_bytes_max();
    while let Some(session) = cx.shard.queued.too_large(bytes_max) {
        let text =
            "all clients together leave too much unacknowledged, and you are among those that leave the most";
        cx.end(session, StreamError::new(Condition::ResourceConstraint, text));
    }
}

/// A session came from another process.
pub(super) fn came(session: &BoundSession, cx: &mut Cx<'_>) {
    let Some(state) = &session.state.stream_management else { return };
    state.queue.entries().for_each(|entry| count(entry, &mut cx.shard.queued));
    grew(session.id, 0, state.queue.memory_bytes(), cx);
}

/// A session ends here, or goes on in another process.
pub(super) fn left(session: SessionId, state: &State, cx: &mut Cx<'_>) {
    state.queue.entries().for_each(|entry| uncount(entry, &mut cx.shard.queued));
    cx.shard.queued.resize(session, state.queue.memory_bytes(), 0);
}
