//! What the queues of all sessions take in memory has a bound of its own: [`Queued`].

use crate::error::StreamError;
use crate::feature_state::stream_management::{Entry, Queued, Sent, StreamManagement};
use crate::model::SessionId;
use crate::session::{BoundSession, Cx};
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
    cx.features.stream_management.resize(session, before, after);
    // An even part of the node's bound.
    let bytes_max =
        cx.shard.settings.limits.all_unacknowledged_bytes / usize::from(cx.shard.shard_count.max(1));
    while let Some(session) = cx.features.stream_management.too_large(bytes_max) {
        let text =
            "all clients together leave too much unacknowledged, and you are among those that leave the most";
        cx.end(session, StreamError::new(Condition::ResourceConstraint, text));
    }
}

/// A session came from another process.
pub(super) fn came(session: &BoundSession, cx: &mut Cx<'_>) {
    let Some(state) = &session.state.stream_management else { return };
    state.queue.entries().for_each(|entry| count(entry, &mut cx.features.stream_management));
    grew(session.id, 0, state.queue.memory_bytes(), cx);
}

/// A session ends here, or goes on in another process.
pub(super) fn left(session: SessionId, state: &StreamManagement, cx: &mut Cx<'_>) {
    state.queue.entries().for_each(|entry| uncount(entry, &mut cx.features.stream_management));
    cx.features.stream_management.resize(session, state.queue.memory_bytes(), 0);
}
