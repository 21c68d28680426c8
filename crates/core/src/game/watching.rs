//! Connections of spectators.

use super::play;
use super::token::SeatClaim;
use super::{Flow, IDLE_MS, Matches, Scheduled, Stage, sink};
use crate::Effect;
use crate::connection::Received;
use crate::model::{ConnId, MatchId};
use crate::session::Cx;
use crate::settings::Rates;
use crate::shard::Deadline;
use carillon_wire::frame::game::{ClientFrame, ErrorCode, ServerFrame};

/// What a spectator may send: pings.
const RATES: Rates =
    Rates { stanzas_per_second: 4, stanzas_burst: 40, bytes_per_second: 256, bytes_burst: 2560 };

impl Matches {
    /// Has somebody watch a match.
    pub(super) fn watch(&mut self, conn: ConnId, claim: &SeatClaim, cx: &mut Cx<'_>) -> Flow {
        let Some(scheduled) = self.matches.get_mut(&claim.id) else {
            return self.refuse(conn, ErrorCode::NoMatch, cx);
        };
        match scheduled.play.watch(claim, conn, &mut sink(cx)) {
            Ok(()) => {
                if let Some(player) = self.players.get_mut(&conn) {
                    player.stage = Stage::Watching(claim.id);
                }
                cx.set_deadline(conn, IDLE_MS, Deadline::Idle);
                Flow::On
            }
            Err(code) => self.refuse(conn, code, cx),
        }
    }

    /// A frame of a spectator.
    pub(super) fn watched(
        &mut self,
        conn: ConnId,
        frame: &ClientFrame<'_>,
        bytes: usize,
        cx: &mut Cx<'_>,
    ) -> Flow {
        let ClientFrame::Ping { stamp } = frame else {
            return self.refuse(conn, ErrorCode::Malformed, cx);
        };
        play::send(&mut sink(cx), conn, &ServerFrame::Pong { stamp });
        let Some(player) = self.players.get_mut(&conn) else { return Flow::Gone };
        match player.allowance.debit(cx.now.mono, Received { counts: true, bytes }, &RATES) {
            Some(wait) => {
                cx.set_deadline(conn, wait, Deadline::Unthrottle);
                cx.out.push(Effect::Pause { conn });
                Flow::Wait
            }
            None => Flow::On,
        }
    }

    /// A spectator who was too fast may go on.
    pub(super) fn lift(&mut self, conn: ConnId, cx: &mut Cx<'_>) {
        if self.players.get_mut(&conn).is_some_and(|player| player.allowance.lift()) {
            cx.out.push(Effect::Resume { conn });
            self.read(conn, b"", cx);
        }
    }

    /// The connection of a spectator is lost.
    pub(super) fn unwatch(&mut self, id: MatchId, conn: ConnId, cx: &mut Cx<'_>) {
        if let Some(Scheduled { play, .. }) = self.matches.get_mut(&id) {
            play.unwatch(conn, &mut sink(cx));
        }
    }

    /// A spectator takes what it was sent.
    pub(super) fn feed_spectator(&mut self, id: MatchId, conn: ConnId, cx: &mut Cx<'_>) {
        if let Some(Scheduled { play, .. }) = self.matches.get_mut(&id) {
            play.feed_spectator(conn, &mut sink(cx));
        }
    }
}
