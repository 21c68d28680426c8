//! What clients are sent waits until the log has it (ADR 54). All other effects of a turn are carried out at once.
//!
//! ```text
//!  effects ─► the sessions that changed ─► SessionLog::write(number) ····► Written(number)
//!     └──► for their connections: held, in order ──────────────────────────────┴──► carried out
//! ```
//!
//! While the engine is away nothing is held, and nothing written; when it is back, all sessions are written anew.

use super::EventLoop;
use crate::channels::inbox::LogNews;
use crate::machine::Machine;
use carillon_core::machine::LogTurn;
use carillon_core::model::{ConnId, Map, ShardId};
use carillon_core::ports::SessionLog;
use carillon_core::{Effect, Effects};
use std::collections::VecDeque;
use std::sync::Arc;

/// The log of a shard.
pub(crate) struct ShardLog {
    shard: ShardId,
    log: Arc<dyn SessionLog>,
    /// Whether the engine keeps what is written.
    is_kept: bool,
    /// It is kept, and nothing is written for now: the sessions are on their way to another process.
    rests: bool,
    /// What was written last, and what of it the log has.
    number: u64,
    written: u64,
    held: VecDeque<Held>,
    held_bytes: usize,
    /// Connections to which nothing may be sent until the log has what was written under this number.
    conns: Map<ConnId, u64>,
    /// Whether all sessions are to be written anew.
    anew: bool,
    turn: LogTurn,
    /// Memory that is used again.
    sent_to: Vec<ConnId>,
    kept: Vec<Effect>,
}

/// Effects that wait.
struct Held {
    number: u64,
    effects: Effects,
}

/// Bytes that wait at most: with more of them the log is given up until the engine is reached anew.
const HELD_BYTES_MAX: usize = 32 << 20;

impl ShardLog {
    pub(crate) fn new(shard: ShardId, log: Arc<dyn SessionLog>) -> ShardLog {
        ShardLog {
            shard,
            log,
            is_kept: false,
            rests: false,
            number: 0,
            written: 0,
            held: VecDeque::new(),
            held_bytes: 0,
            conns: Map::default(),
            anew: false,
            turn: LogTurn::default(),
            sent_to: Vec::new(),
            kept: Vec::new(),
        }
    }

    /// How much waits.
    pub(super) fn awaited(&self) -> usize {
        self.held.len()
    }

    /// Takes out of `effects` what has to wait.
    fn hold(&mut self, effects: &mut Effects) {
        let waits =
            |effect: &Effect| connection_of(effect).is_some_and(|conn| self.conns.contains_key(&conn));
        if self.conns.is_empty() || !effects.list.iter().any(waits) {
            return;
        }
        let mut held = Effects::default();
        for effect in effects.list.drain(..) {
            let Some(conn) = connection_of(&effect).filter(|conn| self.conns.contains_key(conn)) else {
                self.kept.push(effect);
                continue;
            };
            self.conns.insert(conn, self.number);
            match effect {
                Effect::Send { range, .. } => {
                    held.send(conn, |out| out.extend_from_slice(&effects.bytes[range]));
                }
                other => held.push(other),
            }
        }
        std::mem::swap(&mut effects.list, &mut self.kept);
        self.held_bytes += held.bytes.len();
        self.held.push_back(Held { number: self.number, effects: held });
    }

    /// The next of those that wait no longer.
    fn next(&mut self) -> Option<Effects> {
        let is_due = self.held.front().is_some_and(|held| held.number <= self.written || !self.is_kept);
        let held = if is_due { self.held.pop_front() } else { None }?;
        self.held_bytes -= held.effects.bytes.len();
        Some(held.effects)
    }
}

/// The connection of an effect that its client notices, where that has a session.
fn connection_of(effect: &Effect) -> Option<ConnId> {
    match effect {
        Effect::Send { conn, .. }
        | Effect::WatchFlush { conn }
        | Effect::CountUnacked { conn, .. }
        | Effect::Close { conn } => Some(*conn),
        _ => None,
    }
}

impl<M: Machine> EventLoop<M> {
    /// Carries out the effects, but for what has to wait for the log.
    pub(super) fn carry_out(&mut self) {
        if self.log.is_some() {
            self.write_log();
        }
        if !self.effects.list.is_empty() {
            self.io.carry_out(&mut self.effects);
        }
    }

    fn write_log(&mut self) {
        let Some(log) = self.log.as_mut().filter(|log| log.is_kept) else { return };
        log.sent_to.clear();
        let sends = self.effects.list.iter().filter_map(|effect| match effect {
            Effect::Send { conn, .. } => Some(*conn),
            _ => None,
        });
        log.sent_to.extend(sends);
        log.sent_to.sort_unstable_by_key(|conn| (conn.slot, conn.generation));
        log.sent_to.dedup();
        self.machine.log(self.now, &log.sent_to, &mut log.turn);
        let anew = std::mem::take(&mut log.anew);
        if anew || !log.turn.entries.is_empty() {
            log.number += 1;
            let entries = std::mem::take(&mut log.turn.entries);
            self.io.counters.log_writes += 1;
            self.io.counters.sessions_logged += entries.len() as u64;
            log.log.write(log.shard, log.number, anew, entries);
            let number = log.number;
            log.conns.extend(log.turn.conns.drain(..).map(|conn| (conn, number)));
        }
        log.turn.conns.clear();
        log.hold(&mut self.effects);
        if log.held_bytes > HELD_BYTES_MAX {
            tracing::warn!(
                "too much waits for the log of sessions: it is given up until its engine is reached anew"
            );
            self.log_news(LogNews::Away);
        }
    }

    /// Writes nothing for now, as the sessions leave the shard: what is written of them stays as it is, for the case that the process that
    /// takes them fails.
    pub(super) fn rest_log(&mut self) {
        if let Some(log) = self.log.as_mut().filter(|log| log.is_kept) {
            (log.is_kept, log.rests) = (false, true);
            self.machine.keep_log(false);
        }
    }

    /// The sessions are here again.
    pub(super) fn wake_log(&mut self) {
        if self.log.as_ref().is_some_and(|log| log.rests) {
            self.log_news(LogNews::Back);
        }
    }

    /// Something is heard of the log.
    pub(super) fn log_news(&mut self, news: LogNews) {
        let Some(log) = &mut self.log else { return };
        match news {
            LogNews::Written(number) => log.written = log.written.max(number),
            LogNews::Away => {
                (log.is_kept, log.rests) = (false, false);
                self.machine.keep_log(false);
            }
            LogNews::Back => {
                (log.is_kept, log.anew, log.rests) = (true, true, false);
                self.machine.keep_log(true);
            }
        }
        self.release_held_back();
    }

    /// Carries out what need not wait any longer.
    fn release_held_back(&mut self) {
        while let Some(mut effects) = self.log.as_mut().and_then(|log| log.next()) {
            self.io.carry_out(&mut effects);
        }
        if let Some(log) = &mut self.log {
            let (written, is_kept) = (log.written, log.is_kept);
            log.conns.retain(|_, number| is_kept && *number > written);
        }
        self.run_effects();
    }
}
