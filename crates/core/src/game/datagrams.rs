//! What of a match travels in datagrams (RFC 9221), which may be lost: inputs of players, and ticks.
//!
//! A datagram has the last tick, and those before it that the client has not acknowledged: so what is lost comes again with the next tick,
//! and nobody waits for a retransmission. What was in some datagrams in vain, or is too long for one, comes by the stream.

use super::log::TickLog;
use super::play::{Match, Sink, send_tick};
use super::refused::code;
use super::seat::{Line, Seat};
use super::{Flow, Matches, Scheduled, Stage, pause};
use crate::connection::Received;
use crate::model::{ConnId, MatchId};
use crate::session::Cx;
use carillon_wire::frame::game::{
    CLIENT_BYTES_MAX, ClientFrame, ErrorCode, Header, Mode, ServerFrame, cut, framed,
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

impl Match {
    /// Sends ticks to a seat in datagrams from now on: its connection has them. What it was given before came by its stream.
    pub(super) fn use_datagrams(&mut self, seat: u8) {
        if self.rules.mode == Mode::Authoritative {
            // What a module says of a tick is not kept, so it cannot be sent again: it goes by the stream.
            return;
        }
        if let Some(line) = self.seats.get_mut(usize::from(seat)).and_then(Seat::line) {
            let mut unsure = Unsure::default();
            unsure.is_sure_to(line.sent);
            line.datagrams = Some(unsure);
        }
    }

    /// In how many datagrams a tick is sent at most before it is sent by the stream.
    pub(super) fn datagram_window(&self) -> u32 {
        match self.rules.mode {
            Mode::Relay => (4 * self.seats.len() as u32).min(DATAGRAM_WINDOW_MAX),
            _ => 4,
        }
    }

    /// Sends by the streams what was sent in datagrams and is not acknowledged: no datagram follows soon.
    pub(super) fn settle(&mut self, sink: &mut Sink<'_>) {
        let log = &self.log;
        for seat in &mut self.seats {
            let got = seat.got;
            let Some(Line { conn, sent, datagrams: Some(unsure), .. }) = seat.line() else { continue };
            stream_ticks(sink, *conn, got, unsure.take_old(*sent, 0), log);
        }
    }

    /// Whether an input may have begun the wait after which ticks are sent by the streams: where ticks have no clock.
    pub(super) fn settles_by_itself(&self) -> bool {
        self.rules.mode == Mode::Relay && self.settle_at.is_some()
    }
}

fn stream_ticks(
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
    let is_long =
        |tick| log.tick(tick).is_some_and(|inputs| inputs.len() > DATAGRAM_BYTES_MAX - TICK_HEAD_BYTES);
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
            if out.len() - start + inputs.len() + TICK_HEAD_BYTES > DATAGRAM_BYTES_MAX {
                break;
            }
            framed(out, |out| ServerFrame::write_tick(out, Header { tick, ..got }, inputs));
        }
    });
    sink.figures.frames += 1;
}

/// Bytes of the frames of a datagram at most: on any path a datagram of QUIC has room for them (1200 bytes with the header and the tag of
/// the packet, RFC 9000 §14).
const DATAGRAM_BYTES_MAX: usize = 1100;
/// Bytes of a tick's frame before its inputs at most: length, kind, tick, acknowledgements.
const TICK_HEAD_BYTES: usize = 2 + 1 + 5 + 5 + 5;
/// What a client acknowledges reaches back so far.
const DATAGRAM_WINDOW_MAX: u32 = 32;
/// How long after the last datagram its ticks are sent by the stream, if they are not acknowledged.
pub(super) const SETTLE_MS: u64 = 250;

#[cfg(test)]
mod tests {
    use super::super::modules::Turn;
    use super::super::token::{self, SeatClaim};
    use super::*;
    use crate::message::{NewMatch, QueueAddress};
    use crate::model::{DomainId, MatchRules, Mono, Now, Place, UnixMs};
    use crate::shard::MatchFigures;
    use crate::{Effect, Effects};
    use carillon_wire::frame::game::{Inputs, SERVER_BYTES_MAX};
    use carillon_wire::jid::BareJid;

    /// A match whose first seat has datagrams, and whose second has none.
    struct Rig {
        play: Match,
        now: Now,
    }

    /// Ticks that were sent to the first seat.
    #[derive(Debug, Default, PartialEq, Eq)]
    struct Sent {
        datagrams: Vec<Vec<u32>>,
        stream: Vec<u32>,
    }

    fn conn(slot: u32) -> ConnId {
        ConnId { slot, generation: 0 }
    }

    impl Rig {
        fn new(rules: MatchRules) -> Rig {
            let accounts: Vec<_> =
                ["a", "b"].map(|name| BareJid::new(&format!("{name}@localhost")).unwrap()).into();
            let queue = QueueAddress { place: Place::default(), domain: DomainId(1), name: "q".into() };
            let now = Now { mono: Mono(50_000), unix: UnixMs(1_000_000) };
            let (id, key) = (MatchId(7), [3; 32]);
            let new = NewMatch { id, queue, rules, accounts: accounts.clone(), key, seed: 5 };
            let mut rig = Rig { play: Match::new(new, now.mono, None), now };
            for (seat, account) in accounts.iter().enumerate() {
                let token = token::mint(&key, id, seat as u8, UnixMs(2_000_000), account.as_str());
                let claim = SeatClaim::read(token.as_bytes()).unwrap();
                rig.with(|play, sink| play.join(&claim, conn(seat as u32), 0, sink).unwrap());
                if seat == 0 {
                    rig.play.use_datagrams(0);
                }
            }
            rig
        }

        fn with<T>(&mut self, run: impl FnOnce(&mut Match, &mut Sink<'_>) -> T) -> Sent {
            let (mut out, mut figures) = (Effects::default(), MatchFigures::default());
            figures.players = 2;
            let mut sink = Sink {
                now: self.now,
                out: &mut out,
                figures: &mut figures,
                modules: &mut Vec::new(),
                log_bytes_max: 1 << 20,
            };
            run(&mut self.play, &mut sink);
            let mut sent = Sent::default();
            for effect in &out.list {
                match effect {
                    Effect::Send { conn: to, range } if *to == conn(0) => {
                        sent.stream.extend(ticks(&out.bytes[range.clone()]));
                    }
                    Effect::Datagram { conn: to, range } => {
                        assert_eq!(*to, conn(0));
                        assert!(range.len() <= DATAGRAM_BYTES_MAX);
                        sent.datagrams.push(ticks(&out.bytes[range.clone()]));
                    }
                    _ => {}
                }
            }
            sent
        }

        /// Everything is done that is due within so many milliseconds.
        fn after(&mut self, ms: u64) -> Sent {
            let end = self.now.mono.plus(ms);
            let mut all = Sent::default();
            while self.play.due() <= end {
                self.now.mono = self.play.due().max(self.now.mono);
                let sent = self.with(|play, sink| play.advance(sink, &mut Turn::default()));
                all.datagrams.extend(sent.datagrams);
                all.stream.extend(sent.stream);
            }
            self.now.mono = end;
            all
        }

        /// An input of the first seat, which says what it has.
        fn input(&mut self, header: Header, input: &[u8]) -> Sent {
            let mut frame = Vec::new();
            ClientFrame::write_inputs(&mut frame, header, std::iter::once(input));
            let Ok(ClientFrame::Input { header, inputs }) = ClientFrame::read(&frame) else { panic!() };
            let inputs: Inputs<'_> = inputs;
            self.with(|play, sink| play.input(0, header, inputs, sink).unwrap())
        }
    }

    /// The ticks of a piece of a stream.
    fn ticks(mut bytes: &[u8]) -> Vec<u32> {
        let mut ticks = Vec::new();
        while let Some((frame, rest)) = cut(bytes, SERVER_BYTES_MAX).unwrap() {
            bytes = rest;
            if let ServerFrame::Tick { header, .. } = ServerFrame::read(frame).unwrap() {
                ticks.push(header.tick);
            }
        }
        assert!(bytes.is_empty());
        ticks
    }

    #[test]
    fn a_datagram_has_the_last_tick_and_those_that_are_not_acknowledged() {
        let mut rig = Rig::new(MatchRules { tick_rate: 10, ..MatchRules::default() });
        assert_eq!(rig.after(100).datagrams, [[1]]);
        assert_eq!(rig.after(100).datagrams, [[2, 1]]);
        // It lacks the first, which goes on being sent.
        rig.input(Header { tick: 9, ack: 2, missing: 0b1 }, b"x");
        assert_eq!(rig.after(100).datagrams, [[3, 1]]);
        rig.input(Header { tick: 10, ack: 3, missing: 0 }, b"x");
        assert_eq!(rig.after(100), Sent { datagrams: vec![vec![4]], stream: Vec::new() });
    }

    #[test]
    fn what_was_in_four_datagrams_goes_by_the_stream_once() {
        let mut rig = Rig::new(MatchRules { tick_rate: 10, ..MatchRules::default() });
        let sent = rig.after(1000);
        assert_eq!(sent.stream, [1, 2, 3, 4, 5, 6]);
        assert_eq!(sent.datagrams.last().unwrap(), &[10, 9, 8, 7]);
        for tick in 1..=10 {
            assert!(sent.datagrams.iter().filter(|ticks| ticks.contains(&tick)).count() <= 4);
        }
    }

    #[test]
    fn what_no_datagram_follows_goes_by_the_stream() {
        let mut rig = Rig::new(MatchRules { mode: Mode::Relay, ..MatchRules::default() });
        assert_eq!(rig.input(Header { tick: 1, ack: 1, missing: 0 }, b"x").datagrams, [[1]]);
        assert!(rig.play.settles_by_itself());
        assert_eq!(rig.after(SETTLE_MS - 1), Sent::default());
        assert_eq!(rig.after(1), Sent { datagrams: Vec::new(), stream: vec![1] });
        assert_eq!(rig.after(2000), Sent::default());
    }

    #[test]
    fn a_match_that_ends_leaves_no_tick_behind() {
        let mut rig = Rig::new(MatchRules { tick_rate: 10, ..MatchRules::default() });
        rig.after(200);
        let sent = rig.with(|play, sink| play.end(carillon_wire::frame::game::EndReason::Shutdown, sink));
        assert_eq!(sent.stream, [1, 2]);
    }

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
