//! One notification is written to one session, and noted as being on its way.

use super::hops;
use crate::event::{Entry, Kind};
use crate::feature_state::notifications::InFlight;
use crate::model::*;
use crate::session::{BoundSession, Cx};
use crate::shard::{Timer, Track, Tracked};
use carillon_wire::stanza::Stanza;

/// When receipts of given notifications must have come.
pub(super) const RECEIPT: Timer = Timer(*b"rcpt");

/// Notifications that were given, by their ids.
pub(super) const TRACKED: Tracked = Tracked(*b"noti");

/// Whether a client without stream management leaves as many unacknowledged as it may. One with it has a bound of its own.
pub(super) fn has_too_many(session: &BoundSession) -> bool {
    session.unacknowledged.is_none() && session.state.notifications.is_full()
}

/// Writes a notification that was accepted then, and notes that it is on its way.
pub(super) fn give(
    session: &mut BoundSession,
    stanza: &Stanza,
    given: InFlight,
    accepted: UnixMs,
    cx: &mut Cx<'_>,
) {
    let id = given.id;
    hops::note(id, cx, || HopStep::Given { session: session.jid.clone() });
    let before = session.sent();
    session.send(stanza, &Track::Of(TRACKED, id.0), cx);
    let bytes = session.sent();
    // If it is held, its client is sent it later.
    if bytes != before
        && let Some(conn) = session.io.as_ref().map(|io| io.conn)
    {
        hops::note(id, cx, || HopStep::Written { session: session.jid.clone(), conn });
    }
    let pager = session.state.notifications.pager();
    pager.gave(given, bytes);
    if !given.managed && pager.begin_timer() {
        session.set_timer(cx.shard.settings.receipt_wait_ms, RECEIPT, cx);
    }
    cx.shard.counters.delivered(session.domain);
    cx.out.journal.note(cx.now.unix, Kind::Deliver, || Entry::Deliver {
        id,
        to: session.jid.as_str(),
        after_ms: cx.now.unix.0.saturating_sub(accepted.0),
    });
}
