//! A match, without the shard around it: its players are told by effects, and send what they would send.

use super::modules::{TurnFuel, Version};
use super::play::{Match, Sink};
use super::token::{self, SeatClaim};
use crate::message::{NewMatch, QueueAddress};
use crate::model::{ConnId, DomainId, MatchId, MatchRules, Mono, Now, Place, UnixMs};
use crate::shard::{MatchFigures, ModuleFigures};
use crate::{Effect, Effects};
use carillon_wire::frame::game::{
    ClientFrame, EndReason, ErrorCode, Header, Mode, SERVER_BYTES_MAX, SeatState, ServerFrame, cut,
};
use carillon_wire::jid::BareJid;
use std::collections::BTreeMap;

const KEY: [u8; 32] = [9; 32];
const ID: MatchId = MatchId(77);

pub(super) struct Rig {
    pub(super) play: Match,
    out: Effects,
    pub(super) figures: MatchFigures,
    modules: Vec<ModuleFigures>,
    now: Now,
    /// What each connection was sent and has not read.
    inboxes: BTreeMap<u32, Vec<u8>>,
    pub(super) log_bytes_max: usize,
}

/// A frame as a player understands it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    Welcome { have: u32, present: u64, runs: bool },
    Tick { tick: u32, inputs: Vec<(u8, String)>, repeated: u64 },
    Seat(u8, SeatState),
    Clock(bool, Option<u8>),
    Desync(u32, u64),
    Ended(EndReason, u64, String),
    Update { tick: u32, text: String },
    Snapshot { tick: u32, text: String },
    Wanted(u32, bool),
}

fn conn(slot: u32) -> ConnId {
    ConnId { slot, generation: 0 }
}

fn account(seat: u8) -> BareJid {
    BareJid::new(&format!("p{seat}@localhost")).unwrap()
}

fn claim(seat: u8) -> SeatClaim {
    let token = token::mint(&KEY, ID, seat, UnixMs(1_030_000), account(seat).as_str());
    SeatClaim::read(token.as_bytes()).unwrap()
}

impl Rig {
    fn new(seats: u8, rules: MatchRules) -> Rig {
        Rig::with_version(seats, rules, None)
    }

    pub(super) fn with_version(seats: u8, rules: MatchRules, version: Option<&Version>) -> Rig {
        let queue = QueueAddress { place: Place::default(), domain: DomainId(1), name: "q".into() };
        let accounts = (0..seats).map(account).collect();
        let now = Now { mono: Mono(50_000), unix: UnixMs(1_000_000) };
        let new = NewMatch { id: ID, queue, rules, accounts, key: KEY, seed: 5 };
        Rig {
            play: Match::new(new, now.mono, version),
            out: Effects::default(),
            figures: MatchFigures::default(),
            modules: Vec::new(),
            now,
            inboxes: BTreeMap::new(),
            log_bytes_max: 1 << 20,
        }
    }

    /// One whose players are all there, at the connections of their seats.
    pub(super) fn begun(seats: u8, rules: MatchRules) -> Rig {
        let mut rig = Rig::new(seats, rules);
        for seat in 0..seats {
            rig.join(seat, seat.into(), 0).unwrap();
        }
        for seat in 0..seats {
            rig.seen(seat.into());
        }
        rig
    }

    pub(super) fn with<T>(&mut self, run: impl FnOnce(&mut Match, &mut Sink<'_>) -> T) -> T {
        let Rig { play, out, figures, modules, now, log_bytes_max, .. } = self;
        let mut sink = Sink { now: *now, out, figures, modules, log_bytes_max: *log_bytes_max };
        let result = run(play, &mut sink);
        self.deliver();
        result
    }

    /// What was sent arrives, and what was watched has left.
    fn deliver(&mut self) {
        loop {
            let mut flushed = Vec::new();
            for effect in self.out.list.drain(..) {
                match effect {
                    Effect::Send { conn, range } => {
                        self.inboxes.entry(conn.slot).or_default().extend_from_slice(&self.out.bytes[range]);
                    }
                    Effect::WatchFlush { conn } => flushed.push(conn),
                    other => panic!("{other:?}"),
                }
            }
            self.out.clear();
            if flushed.is_empty() {
                return;
            }
            let Rig { play, out, figures, modules, now, log_bytes_max, .. } = self;
            let mut sink = Sink { now: *now, out, figures, modules, log_bytes_max: *log_bytes_max };
            for conn in flushed {
                let seat = play.seats.iter().position(|seat| seat.conn() == Some(conn)).unwrap();
                play.feed(seat as u8, &mut sink);
            }
        }
    }

    pub(super) fn join(&mut self, seat: u8, at: u32, have: u32) -> Result<Option<ConnId>, ErrorCode> {
        self.with(|play, sink| play.join(&claim(seat), conn(at), have, sink))
    }

    pub(super) fn send(&mut self, seat: u8, tick: u32, inputs: &[&str]) -> Result<(), ErrorCode> {
        let mut frame = Vec::new();
        ClientFrame::write_inputs(&mut frame, Header::at(tick), inputs.iter().map(|input| input.as_bytes()));
        let Ok(ClientFrame::Input { header, inputs }) = ClientFrame::read(&frame) else {
            panic!("{frame:?}")
        };
        self.with(|play, sink| play.input(seat, header, inputs, sink))
    }

    /// So much time passes, and everything is done at its time.
    pub(super) fn after(&mut self, ms: u64) -> Option<EndReason> {
        let end = self.now.mono.plus(ms);
        loop {
            let due = self.play.due();
            if due > end {
                self.set_clock(end);
                return None;
            }
            self.set_clock(due.max(self.now.mono));
            let ended = self.with(|play, sink| play.advance(sink, &mut TurnFuel::default()));
            if ended.is_some() {
                return ended;
            }
        }
    }

    fn set_clock(&mut self, at: Mono) {
        let passed = at.since(self.now.mono);
        self.now = Now { mono: at, unix: self.now.unix.plus(passed) };
    }

    /// What a connection was sent since it was asked last.
    pub(super) fn seen(&mut self, at: u32) -> Vec<Seen> {
        let bytes = self.inboxes.remove(&at).unwrap_or_default();
        let (mut rest, mut seen) = (&bytes[..], Vec::new());
        while let Some((frame, behind)) = cut(rest, SERVER_BYTES_MAX).unwrap() {
            rest = behind;
            seen.push(match ServerFrame::read(frame).unwrap() {
                ServerFrame::Welcome { header, welcome } => {
                    let (present, runs) = (welcome.present, welcome.runs);
                    Seen::Welcome { have: header.tick, present, runs }
                }
                ServerFrame::Tick { header, inputs } => {
                    let mut given = Vec::new();
                    inputs.each(|seat, input| given.push((seat, String::from_utf8(input.to_vec()).unwrap())));
                    Seen::Tick { tick: header.tick, inputs: given, repeated: inputs.repeated }
                }
                ServerFrame::Seat { seat, state, .. } => Seen::Seat(seat, state),
                ServerFrame::Clock { runs, seat, .. } => Seen::Clock(runs, seat),
                ServerFrame::Desync { tick, minority, .. } => Seen::Desync(tick, minority),
                ServerFrame::Ended { reason, seats, outcome, .. } => {
                    Seen::Ended(reason, seats, String::from_utf8(outcome.to_vec()).unwrap())
                }
                ServerFrame::Wanted { tick, whole } => Seen::Wanted(tick, whole),
                ServerFrame::Update { header, update } => {
                    Seen::Update { tick: header.tick, text: String::from_utf8(update.to_vec()).unwrap() }
                }
                ServerFrame::Snapshot { header, snapshot } => {
                    Seen::Snapshot { tick: header.tick, text: String::from_utf8(snapshot.to_vec()).unwrap() }
                }
                other => panic!("{other:?}"),
            });
        }
        assert!(rest.is_empty());
        seen
    }
}

fn tick(tick: u32, inputs: &[(u8, &str)], repeated: u64) -> Seen {
    let inputs = inputs.iter().map(|(seat, input)| (*seat, (*input).to_owned())).collect();
    Seen::Tick { tick, inputs, repeated }
}

pub(super) fn rules(mode: Mode) -> MatchRules {
    MatchRules { mode, tick_rate: 10, ..MatchRules::default() }
}

#[test]
fn the_clock_runs_when_all_are_there() {
    let mut rig = Rig::new(2, rules(Mode::Lockstep));
    rig.join(0, 0, 0).unwrap();
    assert_eq!(rig.seen(0), [Seen::Welcome { have: 0, present: 0b01, runs: false }]);
    rig.after(5000);
    rig.join(1, 1, 0).unwrap();
    assert_eq!(rig.seen(0), [Seen::Seat(1, SeatState::Here), Seen::Clock(true, None)]);
    assert_eq!(rig.seen(1), [Seen::Welcome { have: 0, present: 0b11, runs: false }, Seen::Clock(true, None)]);
    rig.after(99);
    assert_eq!(rig.seen(0), []);
    rig.after(1);
    assert_eq!(rig.seen(0), [tick(1, &[], 0b11)]);
}

#[test]
fn a_tick_is_closed_at_its_time_and_who_sent_nothing_is_repeated_and_marked() {
    let mut rig = Rig::begun(3, rules(Mode::Lockstep));
    rig.send(0, 1, &["a"]).unwrap();
    rig.send(2, 2, &["d", "c"]).unwrap();
    rig.after(100);
    let first = tick(1, &[(0, "a"), (2, "c")], 0b010);
    assert_eq!(rig.seen(0), std::slice::from_ref(&first));
    assert_eq!(rig.seen(1), [first]);
    // Late for the first tick: it is in the second, so that all know what is repeated from then on.
    rig.send(1, 1, &["late"]).unwrap();
    rig.after(100);
    assert_eq!(rig.seen(1), [tick(2, &[(1, "late"), (2, "d")], 0b001)]);
    rig.after(100);
    assert_eq!(rig.seen(1), [tick(3, &[], 0b111)]);
    assert_eq!((rig.figures.inputs, rig.figures.inputs_late, rig.figures.inputs_repeated), (3, 1, 5));
    assert_eq!(rig.send(1, 100, &["x"]), Err(ErrorCode::TooFar));
    assert_eq!(rig.send(1, 3, &[&"x".repeat(65)]), Err(ErrorCode::TooLong));
}

#[test]
fn who_comes_back_has_everything_in_order() {
    let mut rig = Rig::begun(2, rules(Mode::Lockstep));
    rig.after(1000);
    assert_eq!(rig.seen(1).len(), 10);
    rig.with(|play, sink| play.lost(1, sink));
    rig.seen(0);
    for t in 11..=30 {
        rig.send(0, t, &[&format!("i{t}")]).unwrap();
        rig.after(100);
    }
    // With the same token, long after its time.
    rig.set_clock(rig.now.mono);
    assert_eq!(rig.join(1, 7, 10), Ok(None));
    let seen = rig.seen(7);
    assert_eq!(seen[0], Seen::Welcome { have: 10, present: 0b11, runs: true });
    for t in 11..=30 {
        assert_eq!(seen[t as usize - 10], tick(t, &[(0, &format!("i{t}"))], 0b10));
    }
    assert_eq!(seen.len(), 21);
    rig.after(100);
    assert_eq!(rig.seen(7), [tick(31, &[], 0b11)]);
    // Another connection with the same token takes the seat.
    assert_eq!(rig.join(1, 8, 31), Ok(Some(conn(7))));
    assert_eq!((rig.figures.joined, rig.figures.rejoined, rig.figures.players), (4, 2, 2));
}

#[test]
fn much_is_given_in_slices_and_the_present_follows_it() {
    let mut rig = Rig::begun(2, MatchRules { duration_max_ms: 10_000_000, ..rules(Mode::Lockstep) });
    rig.with(|play, sink| play.lost(1, sink));
    for t in 1..=290_u32 {
        rig.send(0, t, &[&"x".repeat(64)]).unwrap();
        rig.after(100);
    }
    // 290 ticks of 75 bytes and more are several slices: `deliver` panics if one is not watched.
    rig.join(1, 5, 0).unwrap();
    let ticks: Vec<u32> = rig
        .seen(5)
        .iter()
        .filter_map(|s| if let Seen::Tick { tick, .. } = s { Some(*tick) } else { None })
        .collect();
    assert_eq!(ticks, (1..=290).collect::<Vec<_>>());
    // What is older than what is kept cannot be had.
    rig.log_bytes_max = 4096;
    rig.after(5000);
    assert_eq!(rig.join(1, 6, 1), Err(ErrorCode::TooOld));
    assert_eq!(rig.join(1, 6, 100_000), Err(ErrorCode::Malformed));
}

#[test]
fn a_token_is_for_its_seat_and_its_time() {
    let mut rig = Rig::new(2, rules(Mode::Lockstep));
    let foreign = token::mint(&[1; 32], ID, 0, UnixMs(1_030_000), account(0).as_str());
    let foreign = SeatClaim::read(foreign.as_bytes()).unwrap();
    let other = token::mint(&KEY, ID, 0, UnixMs(1_030_000), account(1).as_str());
    let other = SeatClaim::read(other.as_bytes()).unwrap();
    let beyond = token::mint(&KEY, ID, 2, UnixMs(1_030_000), account(2).as_str());
    let beyond = SeatClaim::read(beyond.as_bytes()).unwrap();
    for wrong in [foreign, other, beyond] {
        assert_eq!(rig.with(|play, sink| play.join(&wrong, conn(0), 0, sink)), Err(ErrorCode::BadToken));
    }
    rig.join(1, 1, 0).unwrap();
    rig.set_clock(rig.now.mono.plus(30_001));
    assert_eq!(rig.join(0, 0, 0), Err(ErrorCode::ExpiredToken));
    assert_eq!(rig.join(1, 1, 0), Ok(Some(conn(1))));
}

#[test]
fn who_does_not_come_loses_the_seat() {
    let mut rig = Rig::new(3, rules(Mode::Lockstep));
    rig.join(0, 0, 0).unwrap();
    rig.join(2, 2, 0).unwrap();
    assert_eq!(rig.after(30_000), None);
    assert_eq!(rig.seen(2)[1..], [Seen::Seat(1, SeatState::Left), Seen::Clock(true, None)]);
    assert_eq!(rig.join(1, 1, 0), Err(ErrorCode::Left));
    let mut alone = Rig::new(2, rules(Mode::Lockstep));
    alone.join(0, 0, 0).unwrap();
    assert_eq!(alone.after(30_000), Some(EndReason::NotJoined));
}

#[test]
fn a_seat_is_held_for_its_time_and_the_last_one_left_wins() {
    let mut rig = Rig::begun(2, rules(Mode::Lockstep));
    rig.with(|play, sink| play.lost(1, sink));
    assert_eq!(rig.after(29_999), None);
    assert_eq!(rig.after(200), Some(EndReason::Forfeit));
    let (result, _) = rig.with(|play, sink| play.end(EndReason::Forfeit, sink));
    assert_eq!((result.seats, result.reason), (0b01, EndReason::Forfeit));
    assert_eq!(rig.seen(0).pop(), Some(Seen::Ended(EndReason::Forfeit, 0b01, String::new())));
    assert_eq!(rig.figures.players, 0);
}

#[test]
fn the_clock_stands_while_nobody_is_there() {
    let mut rig = Rig::begun(2, rules(Mode::Lockstep));
    rig.after(500);
    rig.with(|play, sink| play.lost(0, sink));
    rig.with(|play, sink| play.lost(1, sink));
    rig.after(20_000);
    rig.inboxes.clear();
    rig.join(0, 0, 5).unwrap();
    assert_eq!(rig.seen(0), [Seen::Welcome { have: 5, present: 0b01, runs: false }, Seen::Clock(true, None)]);
    rig.after(100);
    assert_eq!(rig.seen(0), [tick(6, &[], 0b11)]);
}

#[test]
fn a_player_may_stop_the_clock_once_and_not_for_ever() {
    let mut rig = Rig::begun(2, rules(Mode::Lockstep));
    rig.with(|play, sink| play.pause(0, sink));
    assert_eq!(rig.seen(1), [Seen::Clock(false, Some(0))]);
    // Who did not stop it does not start it.
    rig.with(|play, sink| play.go_on(1, sink));
    rig.after(10_000);
    assert_eq!(rig.seen(1), []);
    rig.with(|play, sink| play.go_on(0, sink));
    rig.after(100);
    assert_eq!(rig.seen(1), [Seen::Clock(true, Some(0)), tick(1, &[], 0b11)]);
    rig.with(|play, sink| play.pause(0, sink));
    assert_eq!(rig.seen(1), []);
    rig.seen(0);
    rig.with(|play, sink| play.pause(1, sink));
    rig.after(30_100);
    assert_eq!(rig.seen(0), [Seen::Clock(false, Some(1)), Seen::Clock(true, None), tick(2, &[], 0b11)]);
}

#[test]
fn inputs_are_passed_on_in_one_order_and_once() {
    let mut rig = Rig::begun(2, rules(Mode::Relay));
    rig.send(0, 1, &["a"]).unwrap();
    rig.send(1, 1, &["b"]).unwrap();
    // What was lost is sent again with what follows: only what is new is passed on.
    rig.send(0, 3, &["d", "c", "a"]).unwrap();
    rig.send(0, 3, &["d"]).unwrap();
    let all =
        [tick(1, &[(0, "a")], 0), tick(2, &[(1, "b")], 0), tick(3, &[(0, "c")], 0), tick(4, &[(0, "d")], 0)];
    assert_eq!(rig.seen(0), all);
    assert_eq!(rig.seen(1), all);
    rig.with(|play, sink| play.lost(1, sink));
    rig.send(0, 4, &["e"]).unwrap();
    rig.join(1, 9, 4).unwrap();
    assert_eq!(rig.seen(9), [Seen::Welcome { have: 4, present: 0b11, runs: true }, tick(5, &[(0, "e")], 0)]);
}

#[test]
fn one_who_computed_something_else_is_named() {
    let mut rig = Rig::begun(3, rules(Mode::Lockstep));
    rig.after(1000);
    rig.inboxes.clear();
    for (seat, hash) in [(0, 5), (1, 5), (2, 6)] {
        rig.with(|play, sink| play.hash(seat, 10, hash, sink));
    }
    assert_eq!(rig.seen(1), [Seen::Desync(10, 0b100)]);
    // Of what was not played nobody can have a state.
    rig.with(|play, sink| play.hash(0, 11, 5, sink));
    assert_eq!((rig.figures.desyncs, rig.play.view().desyncs), (1, 1));
}

#[test]
fn what_most_say_came_of_it() {
    let mut rig = Rig::begun(3, rules(Mode::Lockstep));
    assert_eq!(rig.play.outcome(0, b"p0 wins"), None);
    assert_eq!(rig.play.outcome(2, b"p2 wins"), None);
    assert_eq!(rig.play.outcome(1, b"p0 wins"), Some(EndReason::Finished));
    let (result, _) = rig.with(|play, sink| play.end(EndReason::Finished, sink));
    assert_eq!(result.outcome, b"p0 wins");
    let mut disputed = Rig::begun(2, rules(Mode::Lockstep));
    assert_eq!(disputed.play.outcome(0, b"me"), None);
    assert_eq!(disputed.play.outcome(1, b"me!"), Some(EndReason::Finished));
    let (result, _) = disputed.with(|play, sink| play.end(EndReason::Finished, sink));
    assert_eq!(result.outcome, b"");
}

#[test]
fn who_gives_up_is_told_and_the_others_go_on() {
    let mut rig = Rig::begun(3, rules(Mode::Lockstep));
    assert_eq!(rig.with(|play, sink| play.forfeit(1, sink)), None);
    assert_eq!(rig.seen(1), [Seen::Ended(EndReason::Forfeit, 0b101, String::new())]);
    assert_eq!(rig.seen(0), [Seen::Seat(1, SeatState::Left)]);
    rig.after(100);
    assert_eq!(rig.seen(0), [tick(1, &[], 0b101)]);
    assert_eq!(rig.with(|play, sink| play.forfeit(0, sink)), Some(EndReason::Forfeit));
}

#[test]
fn a_match_has_its_time_and_one_that_is_late_does_not_rush() {
    let mut rig = Rig::begun(2, MatchRules { duration_max_ms: 2000, ..rules(Mode::Lockstep) });
    // The shard was busy for a second: ten ticks are not made up for.
    rig.set_clock(rig.now.mono.plus(1000));
    assert_eq!(rig.with(|play, sink| play.advance(sink, &mut TurnFuel::default())), None);
    rig.after(99);
    assert_eq!(rig.seen(0), [tick(1, &[], 0b11)]);
    rig.after(1);
    assert_eq!(rig.seen(0), [tick(2, &[], 0b11)]);
    assert_eq!(rig.after(900), Some(EndReason::Duration));
    assert_eq!(rig.figures.lateness.count(), 11);
}

fn spectator(expires: UnixMs) -> SeatClaim {
    let (seat, name) = token::SPECTATOR;
    SeatClaim::read(token::mint(&KEY, ID, seat, expires, name).as_bytes()).unwrap()
}

/// Ten ticks per second, shown a second later.
fn watched(spectators: u16) -> Rig {
    let mode = rules(Mode::Lockstep);
    Rig::begun(2, MatchRules { spectators, spectator_delay_ms: 1000, ..mode })
}

impl Rig {
    fn watch(&mut self, at: u32) -> Result<(), ErrorCode> {
        let claim = spectator(self.now.unix.plus(1000));
        self.with(|play, sink| play.watch(&claim, conn(at), sink))
    }
}

fn numbers(seen: &[Seen]) -> Vec<u32> {
    seen.iter()
        .map(|seen| match seen {
            Seen::Tick { tick, .. } => *tick,
            other => panic!("{other:?}"),
        })
        .collect()
}

#[test]
fn spectators_are_given_every_tick_some_time_later() {
    let mut rig = watched(10);
    rig.send(0, 3, &["three"]).unwrap();
    rig.after(1500);
    rig.watch(20).unwrap();
    let seen = rig.seen(20);
    // The clock ran before it came.
    assert!(matches!(seen[0], Seen::Welcome { have: 0, runs: true, .. }), "{seen:?}");
    assert_eq!(numbers(&seen[1..]), [1, 2, 3, 4, 5]);
    assert_eq!(seen[3], tick(3, &[(0, "three")], 0b10));
    rig.after(300);
    assert_eq!(numbers(&rig.seen(20)), [6, 7, 8]);
    // The rest is given at the end, when it tells nobody anything.
    let (_, closed) = rig.with(|play, sink| play.end(EndReason::Shutdown, sink));
    assert_eq!(closed, [conn(20)]);
    let seen = rig.seen(20);
    let (ended, ticks) = seen.split_last().unwrap();
    assert_eq!(*ended, Seen::Ended(EndReason::Shutdown, 0b11, String::new()));
    assert_eq!(numbers(ticks), (9..=18).collect::<Vec<_>>());
    assert_eq!(rig.figures.spectators, 0);
}

#[test]
fn many_spectators_are_given_the_same_bytes_by_a_walk() {
    let mut rig = watched(1000);
    for at in 0..1000 {
        rig.watch(100 + at).unwrap();
        rig.seen(100 + at);
    }
    assert_eq!(rig.watch(5000), Err(ErrorCode::NoMatch));
    rig.after(1000);
    // This is the tick after which the first is shown.
    rig.set_clock(rig.now.mono.plus(100));
    let mut out = Effects::default();
    std::mem::swap(&mut rig.out, &mut out);
    let mut sink = Sink {
        now: rig.now,
        out: &mut out,
        figures: &mut rig.figures,
        modules: &mut rig.modules,
        log_bytes_max: 1 << 20,
    };
    assert_eq!(rig.play.advance(&mut sink, &mut TurnFuel::default()), None);
    let sends = out.list.iter().filter(|effect| matches!(effect, Effect::Send { .. })).count();
    // Both players, and a slice of the spectators.
    assert_eq!(sends, 2 + 128);
    assert!(out.bytes.len() < 100, "{} bytes", out.bytes.len());
    for effect in out.list.drain(..) {
        if let Effect::Send { conn, range } = effect {
            rig.inboxes.entry(conn.slot).or_default().extend_from_slice(&out.bytes[range]);
        }
    }
    rig.after(50);
    for at in 0..1000 {
        assert_eq!(numbers(&rig.seen(100 + at)), [1], "{at}");
    }
}

#[test]
fn nobody_watches_without_a_token_that_is_valid() {
    let mut rig = watched(1);
    let late = spectator(rig.now.unix.plus(50));
    rig.after(100);
    assert_eq!(rig.with(|play, sink| play.watch(&late, conn(9), sink)), Err(ErrorCode::ExpiredToken));
    let seat = claim(0);
    assert_eq!(rig.with(|play, sink| play.watch(&seat, conn(9), sink)), Err(ErrorCode::BadToken));
    rig.watch(9).unwrap();
    assert_eq!(rig.watch(10), Err(ErrorCode::NoMatch));
    // Who goes makes room.
    rig.with(|play, sink| play.unwatch(conn(9), sink));
    rig.watch(10).unwrap();
}

#[test]
fn what_was_played_is_told_as_it_was_given() {
    let mut rig = Rig::begun(2, rules(Mode::Lockstep));
    rig.send(1, 2, &["b"]).unwrap();
    rig.after(300);
    let given = rig.seen(0);
    let replay = rig.play.replay(None);
    assert_eq!((replay.forgotten, replay.tick, replay.seed, replay.accounts.len()), (0, 3, 5, 2));
    rig.inboxes.insert(99, replay.frames);
    assert_eq!(rig.seen(99), given);
}
