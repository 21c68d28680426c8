//! A match whose ticks travel in datagrams: what is repeated, and what comes by the stream.

use super::datagrams::{BYTES_MAX, SETTLE_MS};
use super::modules::TurnFuel;
use super::play::{Match, Sink};
use super::token::{self, SeatClaim};
use crate::message::{NewMatch, QueueAddress};
use crate::model::{ConnId, DomainId, MatchId, MatchRules, Mono, Now, Place, UnixMs};
use crate::shard::MatchFigures;
use crate::{Effect, Effects};
use carillon_wire::frame::game::{
    ClientFrame, EndReason, Header, Inputs, Mode, SERVER_BYTES_MAX, ServerFrame, cut,
};
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
                    assert!(range.len() <= BYTES_MAX);
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
            let sent = self.with(|play, sink| play.advance(sink, &mut TurnFuel::default()));
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
    let sent = rig.with(|play, sink| play.end(EndReason::Shutdown, sink));
    assert_eq!(sent.stream, [1, 2]);
}
