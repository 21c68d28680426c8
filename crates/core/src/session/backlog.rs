//! What waited for a session follows its initial presence, feature by feature in the order of [`crate::pipeline`]. It is written
//! as fast as the socket takes it and no faster, so that it never fills the session's queue, whose bound would end the stream.
//!
//! ```text
//!  wait for the socket, and with stream management for the client ─► ask for a page ─► write it ─► wait …
//! ```

use super::BoundSession;
use crate::Effect;
use crate::model::ConnId;
use crate::ports::Page;
use crate::session::Cx;
use crate::session::hook::Step;
use crate::shard::Wake;
use carillon_wire::stanza::Stanza;

/// Bytes written before the socket is waited for: the smallest `limits.out_queue_bytes`. The stanza that passes this bound is the
/// last: it may be of any size, because an empty queue takes whatever there is at once.
pub const WRITTEN_BYTES_MAX: usize = 16 * 1024;

/// Entries of a page.
const ENTRIES_MAX: u16 = 100;

/// After initial presence.
pub fn begin(session: &mut BoundSession, presence: &Stanza, cx: &mut Cx<'_>) {
    let mut step = Step::Done;
    for hook in &cx.pipeline.available {
        if hook(session, presence, step, cx) == Step::Waits {
            step = Step::Waits;
        }
    }
    if step == Step::Waits {
        await_flush(session, cx);
    }
}

/// Goes on with what waits, unless the socket has not yet taken what was written.
pub fn go_on(session: &mut BoundSession, cx: &mut Cx<'_>) {
    if !session.presence.is_available() || session.awaits_flush || room(session, cx) == 0 {
        return;
    }
    for hook in &cx.pipeline.catch_up {
        if hook(session, cx) == Step::Waits {
            return;
        }
    }
}

/// The store could not give a page: what waits goes on after `pause` milliseconds.
pub fn failed(pause: u64, conn: ConnId, cx: &mut Cx<'_>) {
    cx.wake_in(conn, pause, Wake::Backlog);
}

/// The next page of what the store holds for a session.
pub fn page(session: &BoundSession, cx: &Cx<'_>) -> Page {
    Page { entries: room(session, cx), bytes: WRITTEN_BYTES_MAX }
}

/// How many stanzas are written at once. A client with stream management is given no more than half of what it may leave
/// unacknowledged, and the next as it acknowledges.
pub fn room(session: &BoundSession, cx: &Cx<'_>) -> u16 {
    let Some(unacknowledged) = session.unacknowledged else { return ENTRIES_MAX };
    let half = cx.shard.settings.limits.unacknowledged.div_ceil(2);
    half.saturating_sub(unacknowledged).min(u32::from(ENTRIES_MAX)) as u16
}

/// Goes on when the socket has taken what was written.
pub fn await_flush(session: &mut BoundSession, cx: &mut Cx<'_>) {
    session.awaits_flush = true;
    cx.out.push(Effect::WatchFlush { conn: session.io.conn });
}

/// The socket took what was written.
pub(super) fn flushed(session: &mut BoundSession, cx: &mut Cx<'_>) {
    if std::mem::take(&mut session.awaits_flush) {
        go_on(session, cx);
    }
}
