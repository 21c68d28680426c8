//! What waited for a session follows its initial presence, feature by feature in the order of [`crate::features::ORDER`]. It is written
//! as fast as the socket takes it and no faster, so that it never fills the session's queue, whose bound would end the stream.
//!
//! ```text
//!  wait for the socket, and with stream management for the client ─► ask for a page ─► write it ─► wait …
//! ```
//!
//! A [`Pager`] per feature knows how far a session is with what the store holds for it. A feature says what the store holds
//! as a [`Paged`], and has [`catch_up`] as its hook.

use super::BoundSession;
use crate::Effect;
use crate::model::SessionId;
use crate::ports::store::Part;
use crate::ports::{Fault, Page, Question};
use crate::session::hook::CatchUp;
use crate::session::{Cx, Sessions};
use crate::shard::{Next, PageTurn, Pager, Reads, TURN_BYTES_MAX, Wake};
use carillon_wire::stanza::Stanza;
use std::hash::Hash;

/// What a feature has the store hold for a session.
pub trait Paged {
    /// Asks the store for a page of it.
    type Question: Question<Answer = Part<Self::Entry>>;
    /// One thing that waits.
    type Entry: 'static;
    /// What is known of an entry until it is acknowledged.
    type InFlight: 'static;

    /// What names an entry.
    type Id: Copy + Eq + Hash;

    /// The questions whose answers may hold what has ended meanwhile.
    fn reads<'a>(cx: &'a mut Cx<'_>) -> &'a mut Reads<Self::Id>;

    /// Whether the session takes such entries now.
    fn takes(session: &BoundSession) -> bool;

    /// Whether a page that comes now may hold what the session was given otherwise. Then it is not given, and asked for again later.
    fn is_in_doubt(_session: &BoundSession, _cx: &Cx<'_>) -> bool {
        false
    }

    /// How far the session is; none where there is nothing to know.
    fn pager(session: &mut BoundSession) -> Option<&mut Pager<Self::InFlight>>;

    /// The question for the next page.
    fn question(session: &BoundSession, page: Page, cx: &Cx<'_>) -> Self::Question;

    /// Gives the session an entry, unless it is out of date.
    fn give(session: &mut BoundSession, entry: &Self::Entry, cx: &mut Cx<'_>);

    /// These entries of a page were given. What this causes comes after all of them, so that they are written in one piece.
    fn given(session: &mut BoundSession, entries: &[Self::Entry], cx: &mut Cx<'_>);
}

/// After initial presence.
pub fn begin(session: &mut BoundSession, presence: &Stanza, cx: &mut Cx<'_>) {
    let mut step = CatchUp::Done;
    for hook in &cx.pipeline.available {
        if hook(session, presence, step, cx) == CatchUp::Waits {
            step = CatchUp::Waits;
        }
    }
    if step == CatchUp::Waits {
        await_flush(session, cx);
    }
}

/// Goes on with what waits, unless the socket has not yet taken what was written.
pub fn go_on(session: &mut BoundSession, cx: &mut Cx<'_>) {
    if session.io.is_none()
        || !session.presence.is_available()
        || session.link.holds_backlog()
        || room(session, cx) == 0
    {
        return;
    }
    for hook in &cx.pipeline.catch_up {
        if hook(session, cx) == CatchUp::Waits {
            return;
        }
    }
}

/// The [`CatchUpHook`](super::hook::CatchUpHook) of a feature: asks for the next page of what waits, if anything does and the
/// session takes it.
pub fn catch_up<W: Paged>(session: &mut BoundSession, cx: &mut Cx<'_>) -> CatchUp {
    let is_unbounded = session.unacknowledged.is_none();
    let takes = W::takes(session);
    // A full pager goes on once something was acknowledged.
    match W::pager(session).map(|pager| pager.next(takes && !(is_unbounded && pager.is_full()))) {
        None | Some(Next::Nothing) => return CatchUp::Done,
        Some(Next::Waits) => return CatchUp::Waits,
        Some(Next::Ask) => {}
    }
    let page = Page { entries: room(session, cx), bytes: TURN_BYTES_MAX };
    let (question, id) = (W::question(session, page, cx), session.id);
    let read = W::reads(cx).begin();
    cx.ask(question, move |answer, sessions, cx| {
        page_came::<W>(id, answer, sessions, cx);
        W::reads(cx).end(read);
    });
    CatchUp::Waits
}

/// A page came from the store: it is given, or as much of it as is written at once.
fn page_came<W: Paged>(
    id: SessionId,
    answer: Result<Part<W::Entry>, Fault>,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) {
    let Some(session) = sessions.bound(id) else { return };
    let takes = W::takes(session) && !W::is_in_doubt(session, cx);
    // There is one: a pager that awaits a page is not idle.
    let Some(pager) = W::pager(session) else { return };
    let Ok(page) = answer else {
        return cx.wake_in(id, pager.failed(), Wake::Backlog);
    };
    // What came at the wrong moment is asked for again.
    pager.came(page.more || !takes);
    if !takes {
        return go_on(session, cx);
    }
    let (turn, mut given) = (PageTurn::begin(cx.out.bytes.len()), 0);
    for entry in &page.entries {
        if turn.is_over(cx.out.bytes.len()) {
            break;
        }
        W::give(session, entry, cx);
        given += 1;
    }
    let (entries, rest) = page.entries.split_at(given);
    if !rest.is_empty()
        && let Some(pager) = W::pager(session)
    {
        pager.look_again();
    }
    W::given(session, entries, cx);
    await_flush(session, cx);
}

/// How many stanzas are written in one turn. A client with stream management is given no more than half of what it may leave
/// unacknowledged, and the next as it acknowledges.
pub fn room(session: &BoundSession, cx: &Cx<'_>) -> u16 {
    let Some(unacknowledged) = session.unacknowledged else { return ENTRIES_MAX };
    let half = cx.shard.settings.limits.unacknowledged.div_ceil(2);
    half.saturating_sub(unacknowledged).min(u32::from(ENTRIES_MAX)) as u16
}

/// Goes on when the socket has taken what was written.
pub fn await_flush(session: &mut BoundSession, cx: &mut Cx<'_>) {
    if let Some(conn) = session.conn() {
        session.link.hold_backlog();
        cx.out.push(Effect::WatchFlush { conn });
    }
}

/// The socket took what was written.
pub(super) fn flushed(session: &mut BoundSession, cx: &mut Cx<'_>) {
    if session.link.release_backlog() {
        go_on(session, cx);
    }
}

/// Entries of a page.
const ENTRIES_MAX: u16 = 100;
