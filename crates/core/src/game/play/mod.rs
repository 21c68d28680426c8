//! A match: its seats, its clock and its ticks. It is told what comes and what time it is, and says what its players are sent.

mod decide;
mod lossy;
mod replay;
mod snapshots;
mod spectators;

use super::datagrams::{self, SETTLE_MS};
use super::hashes::Hashes;
use super::log::TickLog;
use super::logic::Logic;
use super::modules::{TurnFuel, Version};
use super::seat::{Line, Presence, Seat, Taken};
use super::sink::send_tick;
pub(super) use super::sink::{Sink, send};
use super::token::SeatClaim;
use crate::Effect;
use crate::message::{NewMatch, QueueAddress};
use crate::model::{ConnId, MatchId, MatchResult, MatchRules, Mono};
use crate::settings::Rates;
use carillon_wire::frame::game::{
    EndReason, ErrorCode, Header, Inputs, Mode, SeatState, ServerFrame, TickInputs, Welcome,
};
use snapshots::Snapshots;
use spectators::Spectators;

/// A match.
#[derive(Debug)]
pub(super) struct Match {
    pub(super) id: MatchId,
    pub(super) queue: QueueAddress,
    pub(super) rules: MatchRules,
    key: [u8; 32],
    seed: u64,
    pub(super) seats: Vec<Seat>,
    phase: Phase,
    pub(super) log: TickLog,
    hashes: Hashes,
    desyncs: u32,
    /// Milliseconds that its clock ran before it last stood still.
    played_ms: u64,
    /// In the mode `authoritative`, what decides it.
    logic: Option<Box<Logic>>,
    /// What the module says came of it.
    decided: Option<Vec<u8>>,
    snapshots: Snapshots,
    watched: Spectators,
    /// When ticks that were sent in datagrams last, and are not acknowledged, are sent by the streams.
    pub(super) settle_at: Option<Mono>,
}

/// What the clock of a match does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It waits for its players to come for the first time.
    Gathering {
        /// No longer than this.
        until: Mono,
    },
    /// It runs.
    Running {
        /// Since when.
        since: Mono,
        /// The last tick before.
        from: u32,
    },
    /// A player had it stopped.
    Paused {
        /// The seat.
        by: u8,
        /// No longer than this.
        until: Mono,
    },
    /// Nobody is there.
    Deserted,
}

impl Match {
    /// A match that begins. `version`: of the module that decides it, if one does.
    pub(super) fn new(new: NewMatch, now: Mono, version: Option<&Version>) -> Match {
        let NewMatch { id, queue, rules, accounts, key, seed } = new;
        let logic = version.map(|version| Box::new(Logic::new(version.clone(), rules.ends_on_failure)));
        let until = now.plus(rules.join_ms.into());
        let seats = accounts.into_iter().map(|account| Seat::new(account, until, rules.pauses)).collect();
        Match {
            id,
            queue,
            rules,
            key,
            seed,
            seats,
            phase: Phase::Gathering { until },
            log: TickLog::default(),
            hashes: Hashes::default(),
            desyncs: 0,
            played_ms: 0,
            logic,
            decided: None,
            snapshots: Snapshots::default(),
            watched: Spectators::default(),
            settle_at: None,
        }
    }

    /// What one connection may send: twice what it has to.
    pub(super) fn rates(&self) -> Rates {
        let frames = 2 * u32::from(self.rules.tick_rate) + 10;
        let bytes = frames * (256 + u32::from(self.rules.input_bytes_max));
        Rates {
            stanzas_per_second: frames,
            stanzas_burst: 4 * frames,
            bytes_per_second: bytes,
            bytes_burst: 4 * bytes,
        }
    }

    /// When it has something to do by itself.
    pub(super) fn due(&self) -> Mono {
        self.settle_at.map_or(self.clock_due(), |at| at.min(self.clock_due()))
    }

    fn clock_due(&self) -> Mono {
        let held = self.seats.iter().filter_map(|seat| match seat.presence {
            Presence::Away { until } => Some(until),
            Presence::Here(_) | Presence::Left => None,
        });
        match self.phase {
            Phase::Gathering { until } => until,
            Phase::Running { since, from } if self.rules.mode != Mode::Relay => {
                let tick = self.tick_due(since, from, self.log.last() + 1);
                self.walk_due().map_or(tick, |walk| walk.min(tick))
            }
            Phase::Running { since, .. } => {
                let left = u64::from(self.rules.duration_max_ms).saturating_sub(self.played_ms);
                held.fold(since.plus(left), Mono::min)
            }
            Phase::Paused { until, .. } => held.fold(until, Mono::min),
            Phase::Deserted => held.min().unwrap_or(Mono(0)),
        }
    }

    fn tick_due(&self, since: Mono, from: u32, tick: u32) -> Mono {
        since.plus(u64::from(tick - from) * 1000 / u64::from(self.rules.tick_rate.max(1)))
    }

    fn runs(&self) -> bool {
        matches!(self.phase, Phase::Running { .. })
    }

    /// Somebody wants to take a seat. Returns the connection that had it.
    pub(super) fn join(
        &mut self,
        claim: &SeatClaim,
        conn: ConnId,
        have: u32,
        sink: &mut Sink<'_>,
    ) -> Result<Option<ConnId>, ErrorCode> {
        let (last, forgotten) = (self.log.last(), self.log.forgotten());
        let snapshot = self.snapshot_for(have).map(|(tick, _)| tick);
        let seat = self.seats.get_mut(usize::from(claim.seat)).ok_or(ErrorCode::BadToken)?;
        if !claim.is_proved(&self.key, &seat.account) {
            return Err(ErrorCode::BadToken);
        }
        if seat.has_left() {
            return Err(ErrorCode::Left);
        }
        if !seat.has_joined && claim.expires < sink.now.unix {
            return Err(ErrorCode::ExpiredToken);
        }
        if have > last {
            return Err(ErrorCode::Malformed);
        }
        // A module's state is given as a whole, inputs one after the other.
        let by_snapshot = self.logic.is_some();
        let sent = snapshot.unwrap_or(have);
        if sent < forgotten && !by_snapshot {
            return Err(ErrorCode::TooOld);
        }
        let before = seat.conn();
        sink.figures.joined += 1;
        sink.figures.rejoined += u64::from(seat.has_joined);
        seat.has_joined = true;
        seat.presence = Presence::Here(Line {
            conn,
            sent: if by_snapshot { last } else { sent },
            catches_up: !by_snapshot,
            awaits_snapshot: by_snapshot && have < last,
            datagrams: None,
        });
        let (got, was_here) = (seat.got, before.is_some());
        if !was_here {
            sink.figures.players += 1;
        }
        let welcome = self.welcome(claim.seat);
        let header = Header { tick: have, ..got };
        send(sink, conn, &ServerFrame::Welcome { header, welcome });
        if let Some((tick, snapshot)) = self.snapshot_for(have) {
            sink.figures.snapshots += 1;
            send(sink, conn, &ServerFrame::Snapshot { header: Header { tick, ..got }, snapshot });
        }
        if !was_here {
            self.tell_others(claim.seat, SeatState::Here, sink);
        }
        self.feed(claim.seat, sink);
        match self.phase {
            Phase::Gathering { .. } if self.seats.iter().all(|seat| seat.has_joined || seat.has_left()) => {
                self.run(None, sink);
            }
            Phase::Deserted => self.run(None, sink),
            _ => {}
        }
        Ok(before)
    }

    fn welcome(&self, seat: u8) -> Welcome {
        let rules = &self.rules;
        Welcome {
            seat,
            seats: self.seats.len() as u8,
            present: self.mask(|seat| seat.state() == SeatState::Here),
            mode: rules.mode,
            runs: self.runs(),
            tick_rate: rules.tick_rate,
            input_delay: rules.input_delay,
            input_bytes_max: rules.input_bytes_max,
            hold_ms: rules.hold_ms,
            seed: self.seed,
        }
    }

    fn mask(&self, is_in: impl Fn(&Seat) -> bool) -> u64 {
        self.seats.iter().enumerate().fold(0, |mask, (at, seat)| mask | u64::from(is_in(seat)) << at)
    }

    /// Gives a connection that catches up the next slice of what it lacks.
    pub(super) fn feed(&mut self, seat: u8, sink: &mut Sink<'_>) {
        let log = &self.log;
        let Some(seat) = self.seats.get_mut(usize::from(seat)) else { return };
        let got = seat.got;
        let Some(line) = seat.line() else { return };
        let before = sink.out.bytes.len();
        while line.sent < log.last() {
            if sink.out.bytes.len() - before > SLICE_BYTES {
                line.catches_up = true;
                sink.out.push(Effect::WatchFlush { conn: line.conn });
                return;
            }
            let tick = line.sent + 1;
            let Some(inputs) = log.tick(tick) else { break };
            send_tick(sink, line.conn, Header { tick, ..got }, inputs);
            line.sent = tick;
        }
        line.catches_up = false;
        if let Some(unsure) = &mut line.datagrams {
            unsure.is_sure_to(line.sent);
        }
    }

    /// The inputs of a seat came.
    pub(super) fn input(
        &mut self,
        at: u8,
        header: Header,
        inputs: Inputs<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<(), ErrorCode> {
        let closed = self.log.last();
        let Some(seat) = self.seats.get_mut(usize::from(at)) else { return Ok(()) };
        seat.acknowledged(header, closed);
        if inputs.iter().any(|input| input.len() > usize::from(self.rules.input_bytes_max)) {
            return Err(ErrorCode::TooLong);
        }
        if self.rules.mode == Mode::Relay {
            return self.pass_on(at, header.tick, inputs, sink);
        }
        for (tick, input) in (1..=header.tick).rev().zip(inputs.iter()) {
            match seat.take(tick, input, closed) {
                Taken::InTime => sink.figures.inputs += 1,
                Taken::Late => sink.figures.inputs_late += 1,
                Taken::Again => {}
                Taken::TooFar => return Err(ErrorCode::TooFar),
            }
        }
        Ok(())
    }

    /// Gives inputs to all, in the order in which they were sent, each as a tick of its own. What was given before is not given again.
    fn pass_on(
        &mut self,
        at: u8,
        newest: u32,
        inputs: Inputs<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<(), ErrorCode> {
        if !self.runs() {
            // It is sent again, as it is not acknowledged.
            return Ok(());
        }
        let all: smallvec::SmallVec<[&[u8]; 8]> = inputs.iter().collect();
        let numbered = (1..=newest).rev().zip(&all).collect::<smallvec::SmallVec<[_; 8]>>();
        for (number, input) in numbered.into_iter().rev() {
            let Some(seat) = self.seats.get_mut(usize::from(at)) else { return Ok(()) };
            if seat.has(number) {
                continue;
            }
            seat.got.acknowledge(number);
            sink.figures.inputs += 1;
            self.log.add(sink.log_bytes_max, |out| {
                TickInputs::put(out, 1 << at, 0, std::iter::once(*input));
            });
            self.give_last(sink);
        }
        Ok(())
    }

    /// Does what is due. Says why the match is over, if it is.
    pub(super) fn advance(&mut self, sink: &mut Sink<'_>, turn: &mut TurnFuel) -> Option<EndReason> {
        let now = sink.now.mono;
        if self.settle_at.take_if(|at| *at <= now).is_some() {
            self.settle(sink);
        }
        if let Phase::Gathering { until } = self.phase {
            if now < until {
                return None;
            }
            for at in 0..self.seats.len() {
                if self.seats.get(at).is_some_and(|seat| !seat.has_joined) {
                    self.leave(at as u8, sink);
                }
            }
            if self.is_decided() {
                return Some(EndReason::NotJoined);
            }
            self.run(None, sink);
        }
        for at in 0..self.seats.len() {
            let presence = self.seats.get(at).map(|seat| seat.presence);
            if matches!(presence, Some(Presence::Away { until }) if until <= now) {
                self.leave(at as u8, sink);
            }
        }
        if self.is_decided() {
            return Some(EndReason::Forfeit);
        }
        match self.phase {
            Phase::Paused { until, .. } if until <= now => self.run(None, sink),
            Phase::Running { since, from } if self.rules.mode != Mode::Relay => {
                let due = self.tick_due(since, from, self.log.last() + 1);
                if due <= now
                    && let Some(reason) = self.close_tick(now.since(due), sink, turn)
                {
                    return Some(reason);
                }
                if self.walk_due().is_some_and(|at| at <= now) {
                    self.walk(sink);
                }
            }
            _ => {}
        }
        let is_over = self.runs() && self.played(now) >= u64::from(self.rules.duration_max_ms);
        is_over.then_some(EndReason::Duration)
    }

    fn played(&self, now: Mono) -> u64 {
        match self.phase {
            Phase::Running { since, .. } => self.played_ms + now.since(since),
            _ => self.played_ms,
        }
    }

    /// Closes the next tick, which is late by so many milliseconds. Says why the match is over, if it is.
    fn close_tick(&mut self, late_ms: u64, sink: &mut Sink<'_>, turn: &mut TurnFuel) -> Option<EndReason> {
        let tick = self.log.last() + 1;
        let (mut given, mut repeated) = (0_u64, 0_u64);
        for (at, seat) in self.seats.iter_mut().enumerate() {
            if seat.close(tick) {
                given |= 1 << at;
            } else if !seat.has_left() {
                repeated |= 1 << at;
                sink.figures.inputs_repeated += u64::from(seat.conn().is_some());
            }
        }
        let seats = &self.seats;
        let inputs =
            seats.iter().enumerate().filter(|(at, _)| given & 1 << at != 0).map(|(_, seat)| seat.last());
        self.log.add(sink.log_bytes_max, |out| TickInputs::put(out, given, repeated, inputs));
        sink.figures.lateness.record(late_ms);
        let ended = match self.logic {
            None => {
                self.give_last(sink);
                self.ask_for_snapshot(sink);
                None
            }
            Some(_) => self.decide(given, sink, turn),
        };
        if ended.is_none() && self.is_watched() {
            self.begin_walk(sink);
        }
        let period = 1000 / u64::from(self.rules.tick_rate.max(1));
        if let Phase::Running { since, from } = &mut self.phase
            && late_ms > period
        {
            // What was missed is not made up for in a rush: the clock goes on from here.
            self.played_ms += sink.now.mono.since(*since);
            (*since, *from) = (sink.now.mono, tick);
        }
        ended
    }

    /// Gives the last tick to all who have those before it.
    fn give_last(&mut self, sink: &mut Sink<'_>) {
        let (log, window) = (&self.log, self.datagram_window());
        let tick = log.last();
        sink.figures.ticks += 1;
        let Some(inputs) = log.tick(tick) else { return };
        let mut are_unsure = false;
        for seat in &mut self.seats {
            let got = seat.got;
            if let Some(line) = seat.line()
                && !line.catches_up
            {
                match &mut line.datagrams {
                    None => send_tick(sink, line.conn, Header { tick, ..got }, inputs),
                    Some(unsure) => {
                        datagrams::send(sink, line.conn, got, unsure, (log, window));
                        are_unsure = true;
                    }
                }
                line.sent = tick;
            }
        }
        if are_unsure {
            self.settle_at = Some(sink.now.mono.plus(SETTLE_MS));
        }
    }

    /// The clock runs from now on.
    fn run(&mut self, by: Option<u8>, sink: &mut Sink<'_>) {
        self.phase = Phase::Running { since: sink.now.mono, from: self.log.last() };
        let frame = ServerFrame::Clock { tick: self.log.last(), runs: true, seat: by };
        self.tell_all(&frame, sink);
    }

    /// The clock stands from now on.
    fn stand(&mut self, phase: Phase, by: Option<u8>, sink: &mut Sink<'_>) {
        self.played_ms = self.played(sink.now.mono);
        self.phase = phase;
        let frame = ServerFrame::Clock { tick: self.log.last(), runs: false, seat: by };
        self.tell_all(&frame, sink);
    }

    /// A player wants the clock to stand. One that may not is ignored: it sees that the clock runs on.
    pub(super) fn pause(&mut self, at: u8, sink: &mut Sink<'_>) {
        let until = sink.now.mono.plus(self.rules.pause_max_ms.into());
        let runs = self.runs();
        if let Some(seat) = self.seats.get_mut(usize::from(at))
            && runs
            && seat.pauses_left > 0
        {
            seat.pauses_left -= 1;
            self.stand(Phase::Paused { by: at, until }, Some(at), sink);
        }
    }

    /// A player who had the clock stopped lets it run again.
    pub(super) fn go_on(&mut self, at: u8, sink: &mut Sink<'_>) {
        if matches!(self.phase, Phase::Paused { by, .. } if by == at) {
            self.run(Some(at), sink);
        }
    }

    /// The connection of a seat is lost.
    pub(super) fn lost(&mut self, at: u8, sink: &mut Sink<'_>) {
        let until = match self.phase {
            Phase::Gathering { until } => until,
            _ => sink.now.mono.plus(self.rules.hold_ms.into()),
        };
        let Some(seat) = self.seats.get_mut(usize::from(at)) else { return };
        if seat.conn().is_none() {
            return;
        }
        seat.presence = Presence::Away { until };
        sink.figures.players -= 1;
        self.tell_others(at, SeatState::Away, sink);
        if self.runs() && self.seats.iter().all(|seat| seat.conn().is_none()) {
            self.stand(Phase::Deserted, None, sink);
        }
    }

    /// A player leaves for good.
    fn leave(&mut self, at: u8, sink: &mut Sink<'_>) {
        let Some(seat) = self.seats.get_mut(usize::from(at)) else { return };
        if seat.conn().is_some() {
            sink.figures.players -= 1;
        }
        if !seat.has_left() {
            seat.presence = Presence::Left;
            self.tell_others(at, SeatState::Left, sink);
        }
    }

    /// A player gives up. Says why the match is over, if it is.
    pub(super) fn forfeit(&mut self, at: u8, sink: &mut Sink<'_>) -> Option<EndReason> {
        let conn = self.seats.get(usize::from(at)).and_then(Seat::conn);
        self.leave(at, sink);
        if let Some(conn) = conn {
            let (tick, seats) = (self.log.last(), self.remaining());
            send(sink, conn, &ServerFrame::Ended { tick, reason: EndReason::Forfeit, seats, outcome: b"" });
        }
        if self.is_decided() {
            return Some(EndReason::Forfeit);
        }
        if self.runs() && self.seats.iter().all(|seat| seat.conn().is_none()) {
            self.stand(Phase::Deserted, None, sink);
        }
        // What the others say of the outcome may be what most say now.
        self.agreed().map(|_| EndReason::Finished)
    }

    /// The seats whose players have not left.
    fn remaining(&self) -> u64 {
        self.mask(|seat| !seat.has_left())
    }

    fn is_decided(&self) -> bool {
        self.remaining().count_ones() < 2
    }

    /// A client says what it computed as the state after a tick.
    pub(super) fn hash(&mut self, at: u8, tick: u32, hash: u32, sink: &mut Sink<'_>) {
        if tick == 0 || tick > self.log.last() {
            return;
        }
        let awaited = self.mask(|seat| seat.conn().is_some());
        if let Some(desync) = self.hashes.say(at, tick, hash, awaited) {
            self.desyncs += 1;
            sink.figures.desyncs += 1;
            let frame =
                ServerFrame::Desync { tick: desync.tick, minority: desync.minority, hash: desync.hash };
            self.tell_all(&frame, sink);
        }
        self.keep_snapshot(sink);
    }

    /// A client says what came of the match. Says that it is over, if most say so.
    pub(super) fn outcome(&mut self, at: u8, outcome: &[u8]) -> Option<EndReason> {
        if self.logic.is_some() {
            // Its module says what comes of it.
            return None;
        }
        let seat = self.seats.get_mut(usize::from(at))?;
        seat.outcome = Some(outcome.to_vec());
        self.agreed().map(|_| EndReason::Finished)
    }

    /// What most of the remaining players say came of the match; empty when all have spoken and there is no majority.
    fn agreed(&self) -> Option<&[u8]> {
        let remaining = || self.seats.iter().filter(|seat| !seat.has_left());
        let said = || remaining().filter_map(|seat| seat.outcome.as_deref());
        let votes = |outcome: &[u8]| said().filter(|other| *other == outcome).count();
        let count = remaining().count();
        let majority = said().find(|outcome| votes(outcome) * 2 > count);
        majority.or_else(|| (count > 0 && said().count() == count).then_some(&b""[..]))
    }

    /// The match is over: everybody is told. Returns how it ended, and the connections of spectators.
    pub(super) fn end(&mut self, reason: EndReason, sink: &mut Sink<'_>) -> (MatchResult, Vec<ConnId>) {
        let outcome = match reason {
            EndReason::Finished => match self.decided.take() {
                Some(outcome) => outcome,
                None => self.agreed().unwrap_or_default().to_vec(),
            },
            _ => Vec::new(),
        };
        let (tick, seats) = (self.log.last(), self.remaining());
        self.settle(sink);
        let frame = ServerFrame::Ended { tick, reason, seats, outcome: &outcome };
        self.tell_all(&frame, sink);
        let watching = self.end_watching(&frame, sink);
        sink.figures.ended.count(reason.as_str());
        sink.figures.players -= self.seats.iter().filter(|seat| seat.conn().is_some()).count() as u64;
        (MatchResult { id: self.id, reason, tick, seats, outcome }, watching)
    }

    fn tell_others(&self, at: u8, state: SeatState, sink: &mut Sink<'_>) {
        let frame = ServerFrame::Seat { tick: self.log.last(), seat: at, state };
        let others = self.seats.iter().enumerate().filter(|(other, _)| *other != usize::from(at));
        tell(others.filter_map(|(_, seat)| seat.conn()), &frame, sink);
    }

    fn tell_all(&self, frame: &ServerFrame<'_>, sink: &mut Sink<'_>) {
        tell(self.seats.iter().filter_map(Seat::conn), frame, sink);
    }
}

/// Sends a frame to connections: it is written once.
fn tell(conns: impl Iterator<Item = ConnId>, frame: &ServerFrame<'_>, sink: &mut Sink<'_>) {
    let mut written = None;
    for conn in conns {
        match written.clone() {
            Some(range) => sink.out.send_again(conn, range),
            None => {
                let start = sink.out.bytes.len();
                send(sink, conn, frame);
                written = Some(start..sink.out.bytes.len());
            }
        }
    }
}

/// Bytes of earlier ticks that a connection is given before it is looked whether it takes them.
const SLICE_BYTES: usize = 32 * 1024;
