//! What a client without stream management was given, until its TCP has acknowledged it: chat messages as they came, which are kept
//! here, and those that the store holds until then. What had not arrived when the connection was lost goes another way.

use super::{delete, xml};
use crate::error::StreamError;
use crate::feature_state::offline::Message;
use crate::model::SessionId;
use crate::route;
use crate::session::{BoundSession, Cx, Sessions};
use crate::shard::{Chat, Fate, Recipients, SessionQueue, Timer};
use carillon_wire::stanza::Stanza;
use carillon_wire::stream::Condition;

/// When it is looked what has arrived of given messages.
pub(super) const ARRIVAL: Timer = Timer(*b"offl");
/// The same, where a sender waits to be told.
pub(super) const AWAITED: Timer = Timer(*b"offa");

/// A chat message was written.
pub(super) fn given(session: &mut BoundSession, stanza: Stanza, chat: Chat, cx: &mut Cx<'_>) {
    let bytes_max = cx.shard.settings.limits.unacknowledged_bytes;
    let (sent, at) = (session.sent(), cx.now.mono);
    let is_awaited = chat.settlement.is_some();
    let live = &mut session.state.offline.progress().live;
    let before = live.bytes();
    live.gave(Message { stanza, chat, at }, sent);
    let (bytes, is_count_due) = (live.bytes(), live.is_count_due(COUNT_BYTES));
    if is_awaited && live.begin_soon() {
        session.set_timer(LOOK_SOON_MS, AWAITED, cx);
    }
    resized(session.id, before, bytes, cx);
    if bytes > bytes_max {
        let text = "too many chat messages have not arrived: you read too slowly";
        cx.end(session.id, StreamError::new(Condition::PolicyViolation, text));
    } else if is_count_due {
        session.count_unacked(cx);
    }
    look_later(session, cx);
}

/// Sets the timer that looks how much has arrived.
pub(super) fn look_later(session: &mut BoundSession, cx: &mut Cx<'_>) {
    if session.state.offline.has_unmanaged() && session.state.offline.progress().pager.begin_timer() {
        session.set_timer(LOOK_MS, ARRIVAL, cx);
    }
    session.state.offline.tidy();
}

/// Something came from the client, and with it, most likely, its TCP's acknowledgement of what it answers: looked at now, what it was
/// given is let go of while it is in the processor's caches.
pub(super) fn received(session: &mut BoundSession, cx: &mut Cx<'_>) {
    if let Some(progress) = &mut session.state.offline.0
        && progress.live.is_count_due(COUNT_RECEIVED_BYTES)
    {
        session.count_unacked(cx);
    }
}

/// It is time to look, because a sender waits.
pub(super) fn check_soon(session: &mut BoundSession, cx: &mut Cx<'_>) -> Result<(), StreamError> {
    if let Some(progress) = &mut session.state.offline.0 {
        progress.live.soon_fired();
        if progress.live.awaited_since().is_some() {
            session.count_unacked(cx);
        }
        session.state.offline.tidy();
    }
    Ok(())
}

/// It is time to look.
pub(super) fn check(session: &mut BoundSession, cx: &mut Cx<'_>) -> Result<(), StreamError> {
    session.state.offline.progress().pager.timer_fired();
    if session.state.offline.has_unmanaged() {
        session.count_unacked(cx);
    }
    session.state.offline.tidy();
    Ok(())
}

/// All but the last `bytes` of the `sent` that the client was sent have arrived: their senders are told, and the store deletes those that it has. A
/// client whose TCP acknowledges nothing for too long is taken for dead, so that senders need not wait for it.
pub(super) fn unacked(session: &mut BoundSession, bytes: u64, sent: u32, cx: &mut Cx<'_>) {
    let Some(progress) = &mut session.state.offline.0 else { return };
    let stored = progress.pager.arrived(bytes, sent).filter(|given| !given.managed);
    let mut seqs: Vec<u64> = stored.map(|given| given.seq).collect();
    let before = progress.live.bytes();
    for Message { chat, .. } in progress.live.take_arrived(bytes, sent) {
        cx.settle(chat.settlement);
        seqs.extend(chat.recipients.and_then(|recipients| recipients.acknowledged()));
    }
    let (awaited, leaves) = (progress.live.awaited_since(), progress.live.has_left());
    resized(session.id, before, progress.live.bytes(), cx);
    if awaited.is_some() && progress.live.begin_soon() {
        session.set_timer(LOOK_SOON_MS, AWAITED, cx);
    }
    delete(session, seqs, cx);
    if leaves {
        keep(session, cx);
    }
    if awaited.is_some_and(|since| since.plus(cx.shard.settings.timeouts.ping_wait_ms) <= cx.now.mono) {
        let text = "chat messages did not arrive in time";
        cx.end(session.id, StreamError::new(Condition::ConnectionTimeout, text));
    }
    look_later(session, cx);
}

/// The connection is gone, and with it what had not arrived: it is given again. What the store does not have is routed to the account as
/// if it came now, unless another session has it.
pub(super) fn lost(session: &BoundSession, messages: impl Iterator<Item = Message>, cx: &mut Cx<'_>) {
    for Message { mut stanza, chat, .. } in messages {
        // As for an absent account, it may be lost.
        if !xml::is_worth_keeping(&stanza) {
            cx.settle(chat.settlement);
            continue;
        }
        stanza.to = Some(session.bare.to_jid());
        cx.later(move |sessions, cx| route::unacknowledged(&stanza, chat, sessions, cx));
    }
}

/// The session is about to go on in another process, where nobody knows what it was given: once it is known what has arrived, the store
/// keeps the others, until they have.
pub(super) fn leaves(id: SessionId, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    let Some(session) = sessions.bound(id) else { return };
    if let Some(progress) = &mut session.state.offline.0
        && progress.live.leaves()
    {
        session.count_unacked(cx);
    }
}

/// What is kept here of what a session was given went from one size to another: it counts among what all clients of the node have not acknowledged.
pub(super) fn resized(session: SessionId, before: usize, after: usize, cx: &mut Cx<'_>) {
    if before != after {
        cx.shard.queued.add(after);
        cx.shard.queued.remove(before);
        cx.queue_resized(SessionQueue::Unmanaged(session), before, after);
    }
}

/// Has the store keep what has not arrived.
fn keep(session: &mut BoundSession, cx: &mut Cx<'_>) {
    let Some(progress) = &mut session.state.offline.0 else { return };
    for Message { stanza, chat, .. } in progress.live.messages_mut() {
        let recipients = chat.recipients.get_or_insert_with(|| Recipients::of([session.id]));
        if recipients.fate() == Fate::Theirs {
            let mut stanza = stanza.clone();
            stanza.to = Some(session.bare.to_jid());
            route::keep(&stanza, chat.clone(), cx);
        }
    }
}

/// Bytes of messages after which it is looked whether they have arrived, without waiting for the timer.
const COUNT_BYTES: usize = 64 * 1024;
/// The same, when something comes from the client.
const COUNT_RECEIVED_BYTES: usize = 2 * 1024;
/// The pause before each look at whether given messages have arrived: what a busy client was given meanwhile takes memory.
const LOOK_MS: u64 = 250;
/// The same, where a sender waits: so much later than by a client with stream management it is told at most, and one system call covers
/// what the client was given meanwhile.
const LOOK_SOON_MS: u64 = 50;
