//! Real-time matches: players find each other, take their seats, and send each other inputs many times per second.
//!
//! A queue of the matchmaker (`matchmaker`, `pool`) has its home by its name, like a topic. It makes a match of tickets that fit, picks
//! the shard of the node that has the fewest, and sends it there ([`GameMessage`]): from then on everything about the match is decided on
//! that shard, which its id names. A match (`play`) is in memory only. It does not use the engine of homes: it has no record to
//! wait for, and an input is done with when it is read.
//!
//! A player's connection is of a kind of its own: it is in none of the lists of sessions. It is accepted on any shard, and moves to its
//! match's with the token that it sends first ([`Joining`]), so that inputs and ticks never cross shards. What is on it is
//! [`carillon_wire::frame::game`].

mod asked;
#[cfg(test)]
mod datagram_tests;
mod datagrams;
mod hashes;
mod log;
mod logic;
mod matchmaker;
mod modules;
mod play;
mod players;
mod pool;
mod refused;
mod replays;
mod seat;
mod sink;
#[cfg(test)]
mod tests;
mod token;
mod watching;

use crate::Effect;
use crate::connection::{Allowance, Joining, Received};
use crate::event::{Entry, Kind};
use crate::message::{GameMessage, NewMatch, QueueAddress, ShardMessage};
use crate::model::{ConnId, DomainId, Domains, Map, MatchId, Mono};
use crate::ports::modules::ActiveModule;
use crate::session::Cx;
use crate::shard::Deadline;
use carillon_wire::frame::game::{CLIENT_BYTES_MAX, ClientFrame, EndReason, ErrorCode, ServerFrame, cut};
use matchmaker::{Matchmaker, QueueKey};
use modules::{MatchModules, TurnFuel, Version};
use play::{Match, Sink};
use refused::{code, text};
use replays::Replays;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use token::{SPECTATOR, SeatClaim};

/// The matches, the players and the queues of a shard.
#[derive(Debug, Default)]
pub(crate) struct Matches {
    players: Map<ConnId, Player>,
    matches: Map<MatchId, Scheduled>,
    /// When each match has something to do. An entry that is not the match's present one is passed over.
    due: BinaryHeap<Reverse<(Mono, MatchId)>>,
    maker: Matchmaker,
    /// No match is taken before this: ticks were closed late.
    late_until: Mono,
    /// Of matches that are over, how they were played.
    replays: Replays,
    /// Matches that a module decides.
    authoritative: usize,
    /// What decides these.
    modules: MatchModules,
    /// What they have used in this turn.
    turn: TurnFuel,
    /// Nothing is looked at before this: the fuel of the turn before was used up.
    not_before: Mono,
}

/// A match, and when it is looked at next.
#[derive(Debug)]
struct Scheduled {
    play: Box<Match>,
    at: Mono,
}

/// The connection of a player.
#[derive(Debug)]
struct Player {
    stage: Stage,
    /// Whether datagrams may be sent to it.
    datagrams: bool,
    /// The beginning of a frame, or frames of a player who is too fast.
    rest: Vec<u8>,
    /// When something came last.
    heard: Mono,
    /// How much a spectator may send: that of players is of their seats.
    allowance: Allowance,
}

/// The stages of a player's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It has to say whose seat it takes.
    Opening,
    /// It has a seat.
    Seated(MatchId, u8),
    /// It watches.
    Watching(MatchId),
    /// It is being closed.
    Closing,
}

/// Whether the next frame of a connection is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    On,
    /// The player is too fast.
    Wait,
    /// The connection is somewhere else, or being closed.
    Gone,
}

fn sink<'a>(cx: &'a mut Cx<'_>) -> Sink<'a> {
    Sink {
        now: cx.now,
        out: cx.out,
        figures: &mut cx.shard.counters.matches,
        modules: &mut cx.shard.counters.modules,
        log_bytes_max: cx.shard.settings.matches.log_bytes,
    }
}

impl Matches {
    /// When something is to be done by itself.
    pub(crate) fn due(&self) -> Option<Mono> {
        let first = self.due.peek().map(|Reverse((at, _))| (*at).max(self.not_before));
        first.into_iter().chain(self.maker.due()).chain(self.replays.due()).min()
    }

    /// A player's connection was accepted.
    pub(crate) fn open(&mut self, conn: ConnId, datagrams: bool, cx: &mut Cx<'_>) {
        self.add(conn, datagrams, cx);
        cx.set_deadline(conn, cx.shard.settings.timeouts.auth_ms, Deadline::Login);
    }

    /// One that another shard accepted moved here, to take its seat.
    pub(crate) fn arrived(&mut self, conn: ConnId, joining: Joining, cx: &mut Cx<'_>) {
        let Joining { token, have, rest, datagrams } = joining;
        self.add(conn, datagrams, cx);
        if self.join(conn, &token, have, &rest, cx) == Flow::On {
            self.read(conn, &rest, cx);
        }
    }

    fn add(&mut self, conn: ConnId, datagrams: bool, cx: &mut Cx<'_>) {
        cx.shard.counters.connections += 1;
        let (heard, allowance) = (cx.now.mono, Allowance::new(cx.now.mono));
        let player = Player { stage: Stage::Opening, datagrams, rest: Vec::new(), heard, allowance };
        self.players.insert(conn, player);
    }

    /// Reads what came from a player.
    pub(crate) fn read(&mut self, conn: ConnId, bytes: &[u8], cx: &mut Cx<'_>) {
        let Some(player) = self.players.get_mut(&conn) else { return };
        if player.stage == Stage::Closing {
            return;
        }
        player.heard = cx.now.mono;
        let mut kept = std::mem::take(&mut player.rest);
        let mut input = match kept.is_empty() {
            true => bytes,
            false => {
                kept.extend_from_slice(bytes);
                &kept[..]
            }
        };
        loop {
            let flow = match cut(input, CLIENT_BYTES_MAX) {
                Ok(None) => break,
                Ok(Some((frame, rest))) => {
                    input = rest;
                    self.frame(conn, frame, rest, cx)
                }
                Err(malformed) => self.refuse(conn, code(malformed), cx),
            };
            match flow {
                Flow::On => {}
                Flow::Wait => break,
                Flow::Gone => return,
            }
        }
        if !input.is_empty()
            && let Some(player) = self.players.get_mut(&conn)
        {
            player.rest = input.to_vec();
        }
    }

    /// Handles a frame, behind which `rest` was received.
    fn frame(&mut self, conn: ConnId, frame: &[u8], rest: &[u8], cx: &mut Cx<'_>) -> Flow {
        let bytes = frame.len();
        let frame = match ClientFrame::read(frame) {
            Ok(frame) => frame,
            Err(malformed) => return self.refuse(conn, code(malformed), cx),
        };
        let Some(player) = self.players.get(&conn) else { return Flow::Gone };
        match (player.stage, frame) {
            (Stage::Opening, ClientFrame::Join { have, token }) => self.join(conn, token, have, rest, cx),
            (Stage::Opening, _) => self.refuse(conn, ErrorCode::NotJoined, cx),
            (Stage::Seated(id, seat), frame) => self.play(conn, (id, seat), &frame, bytes, cx),
            (Stage::Watching(_), frame) => self.watched(conn, &frame, bytes, cx),
            (Stage::Closing, _) => Flow::Gone,
        }
    }

    /// Has a player take a seat, where the match is.
    fn join(&mut self, conn: ConnId, token: &[u8], have: u32, rest: &[u8], cx: &mut Cx<'_>) -> Flow {
        let Some(claim) = SeatClaim::read(token) else {
            return self.refuse(conn, ErrorCode::BadToken, cx);
        };
        let (here, home) = (cx.shard.place, claim.id.home());
        if home.node != here.node {
            return self.refuse(conn, ErrorCode::Elsewhere, cx);
        }
        if home.shard.0 >= cx.shard.shard_count {
            return self.refuse(conn, ErrorCode::BadToken, cx);
        }
        let datagrams = self.players.get(&conn).is_some_and(|player| player.datagrams);
        if home != here {
            self.players.remove(&conn);
            cx.shard.counters.connections -= 1;
            let joining = Box::new(Joining { token: token.into(), have, rest: rest.into(), datagrams });
            cx.out.push(Effect::MovePlayer { conn, to: home, joining });
            return Flow::Gone;
        }
        if claim.seat == SPECTATOR.0 {
            return self.watch(conn, &claim, cx);
        }
        let Some(scheduled) = self.matches.get_mut(&claim.id) else {
            return self.refuse(conn, ErrorCode::NoMatch, cx);
        };
        match scheduled.play.join(&claim, conn, have, &mut sink(cx)) {
            Ok(before) => {
                if datagrams {
                    scheduled.play.use_datagrams(claim.seat);
                }
                if let Some(seat) = scheduled.play.seats.get_mut(usize::from(claim.seat)) {
                    // What it waited for, the connection before this one waited for.
                    seat.allowance.lift();
                }
                if let Some(player) = self.players.get_mut(&conn) {
                    player.stage = Stage::Seated(claim.id, claim.seat);
                }
                cx.set_deadline(conn, IDLE_MS, Deadline::Idle);
                self.reschedule(claim.id);
                if let Some(before) = before {
                    self.close(before, Some(ErrorCode::Replaced), cx);
                }
                Flow::On
            }
            Err(code) => self.refuse(conn, code, cx),
        }
    }

    /// A frame of a player who has a seat.
    fn play(
        &mut self,
        conn: ConnId,
        (id, at): (MatchId, u8),
        frame: &ClientFrame<'_>,
        bytes: usize,
        cx: &mut Cx<'_>,
    ) -> Flow {
        let Some(Scheduled { play, .. }) = self.matches.get_mut(&id) else { return Flow::Gone };
        let rates = play.rates();
        let is_wanted = matches!(*frame, ClientFrame::Snapshot { tick, offset, total, .. } if play.wants(at, tick, offset, total));
        let Some(seat) = play.seats.get_mut(usize::from(at)) else { return Flow::Gone };
        // What the server asked for may come at once.
        let wait = match is_wanted {
            true => None,
            false => seat.allowance.debit(cx.now.mono, Received { counts: true, bytes }, &rates),
        };
        let mut out = sink(cx);
        let ended = match *frame {
            ClientFrame::Join { .. } => return self.refuse(conn, ErrorCode::Malformed, cx),
            ClientFrame::Input { header, inputs } => match play.input(at, header, inputs, &mut out) {
                Ok(()) => {
                    if play.settles_by_itself() {
                        self.reschedule(id);
                    }
                    None
                }
                Err(code) => return self.refuse(conn, code, cx),
            },
            ClientFrame::Hash { tick, hash } => {
                play.hash(at, tick, hash, &mut out);
                None
            }
            ClientFrame::Ping { stamp } => {
                play::send(&mut out, conn, &ServerFrame::Pong { stamp });
                None
            }
            ClientFrame::Pause | ClientFrame::Continue => {
                let turn = if *frame == ClientFrame::Pause { Match::pause } else { Match::go_on };
                turn(play, at, &mut out);
                self.reschedule(id);
                None
            }
            ClientFrame::Forfeit => {
                let ended = play.forfeit(at, &mut out);
                self.close(conn, None, cx);
                self.reschedule(id);
                ended
            }
            ClientFrame::Outcome { outcome, .. } => play.outcome(at, outcome),
            ClientFrame::Snapshot { total, part, .. } => {
                if is_wanted {
                    play.take_part(total, part, &mut out);
                }
                None
            }
        };
        if let Some(reason) = ended {
            self.end(id, reason, cx);
            return Flow::Gone;
        }
        if self.players.get(&conn).is_none_or(|player| player.stage == Stage::Closing) {
            return Flow::Gone;
        }
        pause(conn, wait, cx)
    }

    /// Tells a player what is wrong, and ends the connection. A seat stays held.
    fn refuse(&mut self, conn: ConnId, code: ErrorCode, cx: &mut Cx<'_>) -> Flow {
        let stage = self.players.get(&conn).map(|player| player.stage);
        self.close(conn, Some(code), cx);
        self.left(conn, stage, cx);
        Flow::Gone
    }

    /// Closes a player's connection, whatever becomes of the seat.
    fn close(&mut self, conn: ConnId, code: Option<ErrorCode>, cx: &mut Cx<'_>) {
        let Some(player) = self.players.get_mut(&conn).filter(|player| player.stage != Stage::Closing) else {
            return;
        };
        player.stage = Stage::Closing;
        player.rest = Vec::new();
        if let Some(code) = code {
            cx.shard.counters.matches.errors.count(code.as_str());
            let text = text(code).as_bytes();
            play::send(&mut sink(cx), conn, &ServerFrame::Error { code, text });
        }
        cx.out.push(Effect::Close { conn });
    }

    /// Leaves the match that a connection was in at this stage.
    fn left(&mut self, conn: ConnId, stage: Option<Stage>, cx: &mut Cx<'_>) {
        match stage {
            Some(Stage::Seated(id, seat)) => self.lost(id, seat, conn, cx),
            Some(Stage::Watching(id)) => self.unwatch(id, conn, cx),
            Some(Stage::Opening | Stage::Closing) | None => {}
        }
    }

    /// The connection of a seat is lost.
    fn lost(&mut self, id: MatchId, seat: u8, conn: ConnId, cx: &mut Cx<'_>) {
        let Some(Scheduled { play, .. }) = self.matches.get_mut(&id) else { return };
        // Another connection may have it by now.
        if play.seats.get(usize::from(seat)).is_some_and(|seat| seat.conn() == Some(conn)) {
            play.lost(seat, &mut sink(cx));
            self.reschedule(id);
        }
    }

    /// A connection is gone. Whether it was a player's.
    pub(crate) fn closed(&mut self, conn: ConnId, cx: &mut Cx<'_>) -> bool {
        let Some(player) = self.players.remove(&conn) else { return false };
        cx.shard.counters.connections -= 1;
        self.left(conn, Some(player.stage), cx);
        true
    }

    /// A player takes what it was sent: it is given more of what it lacks.
    pub(crate) fn flushed(&mut self, conn: ConnId, cx: &mut Cx<'_>) {
        match self.players.get(&conn).map(|player| player.stage) {
            Some(Stage::Seated(id, seat)) => {
                if let Some(Scheduled { play, .. }) = self.matches.get_mut(&id) {
                    play.feed(seat, &mut sink(cx));
                }
            }
            Some(Stage::Watching(id)) => self.feed_spectator(id, conn, cx),
            Some(Stage::Opening | Stage::Closing) | None => {}
        }
    }

    /// A player reads too slowly. Whether the connection is a player's.
    pub(crate) fn overflowed(&mut self, conn: ConnId, cx: &mut Cx<'_>) -> bool {
        let is_player = self.players.contains_key(&conn);
        if is_player {
            self.refuse(conn, ErrorCode::TooSlow, cx);
        }
        is_player
    }

    /// A timer of a connection fired.
    pub(crate) fn wake(&mut self, conn: ConnId, deadline: Deadline, cx: &mut Cx<'_>) {
        let Some(player) = self.players.get(&conn) else { return };
        match (player.stage, deadline) {
            (Stage::Opening, Deadline::Login) => {
                self.refuse(conn, ErrorCode::NotJoined, cx);
            }
            (Stage::Seated(..) | Stage::Watching(_), Deadline::Idle) => match cx.now.mono.since(player.heard)
            {
                silent if silent >= IDLE_MS => {
                    self.refuse(conn, ErrorCode::Idle, cx);
                }
                silent => cx.set_deadline(conn, IDLE_MS - silent, Deadline::Idle),
            },
            (Stage::Watching(_), Deadline::Unthrottle) => self.lift(conn, cx),
            (Stage::Seated(id, at), Deadline::Unthrottle) => {
                let seat = self.matches.get_mut(&id).and_then(|it| it.play.seats.get_mut(usize::from(at)));
                if seat.is_some_and(|seat| seat.conn() == Some(conn) && seat.allowance.lift()) {
                    cx.out.push(Effect::Resume { conn });
                    self.read(conn, b"", cx);
                }
            }
            _ => {}
        }
    }

    /// Something came from the matchmaker, or for it.
    pub(crate) fn message(&mut self, message: GameMessage, cx: &mut Cx<'_>) {
        let key = |queue: QueueAddress| -> QueueKey { (queue.domain, queue.name) };
        match message {
            GameMessage::Begin(new) => self.begin(*new, cx),
            GameMessage::Refused { queue, id } => {
                self.maker.refused(&key(queue), id, cx.now.mono, &mut cx.shard.counters.matches);
                self.tell(cx);
            }
            GameMessage::Ended { queue, result } => {
                self.maker.ended(&key(queue), &result, cx.now.mono, &mut cx.shard.counters.matches);
            }
            GameMessage::Asked { queue, wish, ticket, iq } => self.asked(&key(queue), *wish, ticket, *iq, cx),
        }
    }

    fn begin(&mut self, new: NewMatch, cx: &mut Cx<'_>) {
        let (settings, shards) = (&cx.shard.settings.matches, cx.shard.shard_count);
        let domain = cx.shard.domains.numbered(new.queue.domain);
        let name = domain.map_or("", |domain| &*domain.name);
        let version =
            new.rules.module.as_deref().map(|module| self.modules.choose(module, name, new.id).cloned());
        let is_full = self.matches.len() >= share(settings.max, shards)
            || version.is_some() && self.authoritative >= share(settings.authoritative_max, shards);
        let has_none = version.as_ref().is_some_and(Option::is_none);
        if is_full || has_none || cx.shard.is_draining() || cx.now.mono < self.late_until {
            cx.shard.counters.matches.refused += 1;
            post(GameMessage::Refused { queue: new.queue, id: new.id }, cx);
            return;
        }
        cx.shard.counters.matches.begun += 1;
        let id = new.id;
        self.authoritative += usize::from(version.is_some());
        let play = Box::new(Match::new(new, cx.now.mono, version.flatten().as_ref()));
        self.matches.insert(id, Scheduled { play, at: Mono(u64::MAX) });
        self.reschedule(id);
        self.count(cx);
    }

    fn count(&self, cx: &mut Cx<'_>) {
        let figures = &mut cx.shard.counters.matches;
        (figures.matches, figures.authoritative) = (self.matches.len() as u64, self.authoritative as u64);
    }

    /// Other modules are active. Matches that are played go on with another version of theirs from their next tick on; those whose module
    /// is active no more, with the version that they have.
    pub(crate) fn set_modules(&mut self, modules: &[ActiveModule], domains: &Domains) {
        self.modules = MatchModules::of(modules);
        for (id, Scheduled { play, .. }) in &mut self.matches {
            let domain = domains.numbered(play.queue.domain);
            let name = domain.map_or("", |domain| &*domain.name);
            let version: Option<Version> =
                play.module().and_then(|module| self.modules.choose(module, name, *id).cloned());
            if let Some(version) = version {
                play.change_to(&version);
            }
        }
    }

    /// A match may have something to do earlier than it had.
    fn reschedule(&mut self, id: MatchId) {
        let Some(Scheduled { play, at }) = self.matches.get_mut(&id) else { return };
        let due = play.due();
        if due < *at {
            *at = due;
            self.due.push(Reverse((due, id)));
        }
    }

    /// A match is over: its players, its queue and the event log are told, once.
    fn end(&mut self, id: MatchId, reason: EndReason, cx: &mut Cx<'_>) {
        let Some(Scheduled { mut play, .. }) = self.matches.remove(&id) else { return };
        self.authoritative -= usize::from(play.module().is_some());
        let (result, watching) = play.end(reason, &mut sink(cx));
        for conn in play.seats.iter().filter_map(seat::Seat::conn).chain(watching) {
            self.close(conn, None, cx);
        }
        let (settings, shards) = (&cx.shard.settings.matches, cx.shard.shard_count);
        if settings.replay_ms > 0 {
            let until = cx.now.mono.plus(settings.replay_ms);
            let most = share(settings.replay_bytes, shards);
            self.replays.keep(play.queue.domain, play.replay(Some(&result)), until, most);
        }
        self.count(cx);
        let (name, queue) = (id.to_string(), &play.queue);
        let outcome = String::from_utf8_lossy(&result.outcome);
        let entry = || Entry::MatchEnded {
            id: &name,
            queue: &queue.name,
            reason: reason.as_str(),
            ticks: result.tick,
            outcome: &outcome,
        };
        cx.out.journal.note(cx.now.unix, Kind::MatchEnded, entry);
        post(GameMessage::Ended { queue: play.queue.clone(), result }, cx);
    }

    /// Ends all matches: the node shuts down.
    pub(crate) fn end_all(&mut self, cx: &mut Cx<'_>) {
        let all: Vec<MatchId> = self.matches.keys().copied().collect();
        all.into_iter().for_each(|id| self.end(id, EndReason::Shutdown, cx));
        let opening: Vec<ConnId> = self.players.keys().copied().collect();
        opening.into_iter().for_each(|conn| self.close(conn, Some(ErrorCode::Shutdown), cx));
    }

    /// The domains changed: what was of domains that are gone is gone.
    pub(crate) fn domains_changed(&mut self, domains: &Domains, cx: &mut Cx<'_>) {
        let is_there = |domain: DomainId| domains.numbered(domain).is_some();
        self.maker.keep(|(domain, _)| is_there(*domain), &mut cx.shard.counters.matches);
        let gone = self.matches.iter().filter(|(_, it)| !is_there(it.play.queue.domain));
        for id in gone.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.end(id, EndReason::Shutdown, cx);
        }
    }

    /// Nodes came or went: queues that are at home elsewhere now are forgotten. Matches stay where they are.
    pub(crate) fn keep_homes(&mut self, is_here: impl Fn(DomainId, &str) -> bool, cx: &mut Cx<'_>) {
        self.maker.keep(|(domain, name)| is_here(*domain, name), &mut cx.shard.counters.matches);
    }

    /// Time passed.
    pub(crate) fn tick(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now.mono;
        self.turn.begin(now);
        let mut later = Vec::new();
        while let Some(&Reverse((at, id))) = self.due.peek()
            && at <= now
        {
            self.due.pop();
            let Some(scheduled) = self.matches.get_mut(&id).filter(|it| it.at == at) else { continue };
            let wanted = scheduled.play.fuel_wanted();
            if wanted > 0 && !self.turn.has(wanted) {
                later.push(Reverse((at, id)));
                continue;
            }
            if now.since(at) > LATE_MS {
                self.late_until = now.plus(LATE_PAUSE_MS);
            }
            scheduled.at = Mono(u64::MAX);
            match scheduled.play.advance(&mut sink(cx), &mut self.turn) {
                Some(reason) => self.end(id, reason, cx),
                None => self.reschedule(id),
            }
        }
        if !later.is_empty() {
            self.not_before = now.plus(1);
            self.due.extend(later);
        }
        self.replays.forget(now);
        if self.maker.due().is_some_and(|at| at <= now) {
            self.make(cx);
            self.tell(cx);
        }
    }

    fn make(&mut self, cx: &mut Cx<'_>) {
        let places = (cx.shard.place, cx.shard.shard_count);
        let shard = &mut *cx.shard;
        let new = self.maker.run(cx.now, places, &mut shard.random, &mut shard.counters.matches);
        for new in new {
            post(GameMessage::Begin(Box::new(new)), cx);
        }
    }
}

/// Reads a player who is too fast no further for so many milliseconds.
fn pause(conn: ConnId, wait: Option<u64>, cx: &mut Cx<'_>) -> Flow {
    let Some(wait) = wait else { return Flow::On };
    cx.set_deadline(conn, wait, Deadline::Unthrottle);
    cx.out.push(Effect::Pause { conn });
    Flow::Wait
}

fn post(message: GameMessage, cx: &mut Cx<'_>) {
    let to = message.to();
    cx.post(to, ShardMessage::Game(Box::new(message)));
}

/// What one of so many shards may have of what a node may have.
fn share(of_node: usize, shards: u16) -> usize {
    of_node.div_ceil(usize::from(shards.max(1)))
}

/// How long a player may be silent, in milliseconds.
const IDLE_MS: u64 = 30_000;
/// A tick that is closed so late says that the shard has too much to do: for a while it takes no more matches.
const LATE_MS: u64 = 50;
const LATE_PAUSE_MS: u64 = 1000;
