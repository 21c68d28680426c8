//! What of a match travels in datagrams (RFC 9221), which may be lost: inputs of players, and ticks.
//!
//! A datagram has the last tick, and those before it that the client has not acknowledged: so what is lost comes again with the next tick,
//! and nobody waits for a retransmission. What was in some datagrams in vain, or is too long for one, comes by the stream.

use super::log::TickLog;
use super::refused::code;
use super::sink::{Sink, send_tick};
use super::{Flow, Matches, Scheduled, Stage, pause};
use crate::connection::Received;
use crate::model::{ConnId, MatchId};
use crate::session::Cx;
use carillon_wire::frame::game::{
    CLIENT_BYTES_MAX, ClientFrame, ErrorCode, Header, ServerFrame, cut, framed,
};

/// The ticks that were sent in datagrams, and may be lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Unsure {
    /// Up to here the client has every tick, or is given it by the stream.
    sure: u32,
    /// What the client says that it has.
    acknowledged: Header,
}

impl Unsure {
    /// Up to here the client is given every tick by the stream.
    pub(super) fn is_sure_to(&mut self, tick: u32) {
        self.sure = self.sure.max(tick);
    }

    /// The client says what it has. Datagrams overtake each other: what is older than what is known says nothing new.
    pub(super) fn acknowledge(&mut self, header: Header, last: u32) {
        let known = &mut self.acknowledged;
        if header.ack > last || header.ack < known.ack {
            return;
        }
        let missing = if header.ack == known.ack { header.missing & known.missing } else { header.missing };
        *known = Header { missing, ..header };
        while self.sure < last && self.acknowledged.acknowledges(self.sure + 1) {
            self.sure += 1;
        }
    }

    /// The ticks up to `last` of which the client has not said that it has them, the oldest first.
    pub(super) fn unacknowledged(self, last: u32) -> impl DoubleEndedIterator<Item = u32> {
        (self.sure + 1..=last).filter(move |tick| !self.acknowledged.acknowledges(*tick))
    }

    /// Those of them that have been in so many datagrams that they are sent by the stream: what is older than `window` ticks.
    pub(super) fn take_old(&mut self, last: u32, window: u32) -> impl Iterator<Item = u32> + use<> {
        let before = *self;
        self.is_sure_to(last.saturating_sub(window));
        before.unacknowledged(self.sure)
    }
}

impl Matches {
    /// Reads a datagram of a player: whole frames, those that may be lost. One that overtook what takes the seat is lost.
    pub(crate) fn datagram(&mut self, conn: ConnId, bytes: &[u8], cx: &mut Cx<'_>) {
        let Some(player) = self.players.get_mut(&conn) else { return };
        let Stage::Seated(id, seat) = player.stage else { return };
        player.heard = cx.now.mono;
        let mut input = bytes;
        while !input.is_empty() {
            let flow = match cut(input, CLIENT_BYTES_MAX) {
                Ok(None) => self.refuse(conn, ErrorCode::Malformed, cx),
                Err(malformed) => self.refuse(conn, code(malformed), cx),
                Ok(Some((frame, rest))) => {
                    input = rest;
                    let bytes = frame.len();
                    match ClientFrame::read(frame) {
                        Ok(frame @ (ClientFrame::Input { .. } | ClientFrame::Hash { .. })) => {
                            self.play(conn, (id, seat), &frame, bytes, cx)
                        }
                        Ok(ClientFrame::Ping { stamp }) => self.ping(conn, (id, seat), (stamp, bytes), cx),
                        Ok(_) => self.refuse(conn, ErrorCode::Malformed, cx),
                        Err(malformed) => self.refuse(conn, code(malformed), cx),
                    }
                }
            };
            // What a player sends too fast is lost.
            if flow != Flow::On {
                return;
            }
        }
    }

    /// Answers a ping that came in a datagram by one.
    fn ping(
        &mut self,
        conn: ConnId,
        (id, at): (MatchId, u8),
        (stamp, bytes): (&[u8], usize),
        cx: &mut Cx<'_>,
    ) -> Flow {
        let Some(Scheduled { play, .. }) = self.matches.get_mut(&id) else { return Flow::Gone };
        let rates = play.rates();
        let Some(seat) = play.seats.get_mut(usize::from(at)) else { return Flow::Gone };
        let wait = seat.allowance.debit(cx.now.mono, Received { counts: true, bytes }, &rates);
        let pong = ServerFrame::Pong { stamp };
        cx.out.send_datagram(conn, |out| framed(out, |out| pong.write(out)));
        pause(conn, wait, cx)
    }
}

pub(super) fn stream_ticks(
    sink: &mut Sink<'_>,
    conn: ConnId,
    got: Header,
    ticks: impl Iterator<Item = u32>,
    log: &TickLog,
) {
    for tick in ticks {
        if let Some(inputs) = log.tick(tick) {
            send_tick(sink, conn, Header { tick, ..got }, inputs);
        }
    }
}

/// Sends the last tick in a datagram, and with it those before that are not acknowledged, as far as there is room. What was in so many
/// datagrams in vain is sent by the stream, once; so is what has no room in a datagram by itself.
pub(super) fn send(
    sink: &mut Sink<'_>,
    conn: ConnId,
    got: Header,
    unsure: &mut Unsure,
    (log, window): (&TickLog, u32),
) {
    let last = log.last();
    let is_long = |tick| log.tick(tick).is_some_and(|inputs| inputs.len() > BYTES_MAX - TICK_HEAD_BYTES);
    let window = if is_long(last) { 0 } else { window };
    stream_ticks(sink, conn, got, unsure.take_old(last, window), log);
    if window == 0 {
        return;
    }
    let unsure = *unsure;
    sink.out.send_datagram(conn, |out| {
        let start = out.len();
        for tick in unsure.unacknowledged(last).rev() {
            let Some(inputs) = log.tick(tick) else { continue };
            if out.len() - start + inputs.len() + TICK_HEAD_BYTES > BYTES_MAX {
                break;
            }
            framed(out, |out| ServerFrame::write_tick(out, Header { tick, ..got }, inputs));
        }
    });
    sink.figures.frames += 1;
}

/// Bytes of the frames of a datagram at most: on any path a datagram of QUIC has room for them (1200 bytes with the header and the tag of
/// the packet, RFC 9000 §14).
pub(super) const BYTES_MAX: usize = 1100;
/// Bytes of a tick's frame before its inputs at most: length, kind, tick, acknowledgements.
const TICK_HEAD_BYTES: usize = 2 + 1 + 5 + 5 + 5;
/// What a client acknowledges reaches back so far.
pub(super) const WINDOW_MAX: u32 = 32;
/// How long after the last datagram its ticks are sent by the stream, if they are not acknowledged.
pub(super) const SETTLE_MS: u64 = 250;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_in_datagrams_is_repeated_until_it_is_acknowledged_or_old() {
        let mut unsure = Unsure::default();
        unsure.is_sure_to(10);
        let all = |unsure: &Unsure, last| unsure.unacknowledged(last).collect::<Vec<_>>();
        assert_eq!(all(&unsure, 13), [11, 12, 13]);
        let has = |ack, missing| Header { tick: 0, ack, missing };
        // It has 13 and 11, and lacks 12.
        unsure.acknowledge(has(13, 0b01), 13);
        assert_eq!(all(&unsure, 14), [12, 14]);
        // Overtaken, and of the same tick: what it had it still has.
        unsure.acknowledge(has(11, 0), 14);
        unsure.acknowledge(has(13, 0b11), 14);
        assert_eq!(all(&unsure, 14), [12, 14]);
        // Of ticks that are not there yet.
        unsure.acknowledge(has(15, 0), 14);
        assert_eq!(all(&unsure, 14), [12, 14]);
        assert_eq!(unsure.take_old(15, 4).collect::<Vec<_>>(), [0; 0]);
        assert_eq!(unsure.take_old(16, 4).collect::<Vec<_>>(), [12]);
        assert_eq!(all(&unsure, 16), [14, 15, 16]);
        unsure.acknowledge(has(16, 0), 16);
        assert_eq!(all(&unsure, 16), [0; 0]);
        // Who says nothing is given all by the stream, once.
        assert_eq!(unsure.take_old(100, 4).count(), 80);
        assert_eq!(all(&unsure, 100), [97, 98, 99, 100]);
    }
}
