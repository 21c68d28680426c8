//! What the queues of all sessions take in memory has a bound of its own: [`Queued`].

use crate::feature_state::stream_management::{Entry, Sent, StreamManagement};
use crate::model::SessionId;
use crate::session::{BoundSession, Cx};
use crate::shard::{Queued, SessionQueue};

/// An entry enters a queue.
pub(super) fn count(entry: &Sent, queued: &mut Queued) {
    match entry {
        Sent::Event(event) => {
            queued.add_shared(event, event.bytes());
            queued.add(size_of::<Sent>());
        }
        Sent::Shared(stanza, _) => {
            queued.add_shared(stanza, stanza.memory_bytes());
            queued.add(size_of::<Sent>());
        }
        entry => queued.add(size_of::<Sent>() + entry.bytes()),
    }
}

/// An entry has left its queue.
pub(super) fn uncount(entry: &Sent, queued: &mut Queued) {
    match entry {
        Sent::Event(event) => {
            queued.remove_shared(event, event.bytes());
            queued.remove(size_of::<Sent>());
        }
        Sent::Shared(stanza, _) => {
            queued.remove_shared(stanza, stanza.memory_bytes());
            queued.remove(size_of::<Sent>());
        }
        entry => queued.remove(size_of::<Sent>() + entry.bytes()),
    }
}

/// The queue of a session went from one size to another.
pub(super) fn resized(session: SessionId, before: usize, after: usize, cx: &mut Cx<'_>) {
    cx.queue_resized(SessionQueue::Managed(session), before, after);
}

/// A session came from another process.
pub(super) fn came(session: &BoundSession, cx: &mut Cx<'_>) {
    let Some(state) = &session.state.stream_management else { return };
    state.queue.entries().for_each(|entry| count(entry, &mut cx.shard.queued));
    resized(session.id, 0, state.queue.memory_bytes(), cx);
}

/// A session ends here, or goes on in another process.
pub(super) fn left(session: SessionId, state: &StreamManagement, cx: &mut Cx<'_>) {
    state.queue.entries().for_each(|entry| uncount(entry, &mut cx.shard.queued));
    resized(session, state.queue.memory_bytes(), 0, cx);
}
