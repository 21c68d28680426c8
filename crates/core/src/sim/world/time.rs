//! Time.

use super::World;
use crate::Input;
use crate::model::{Mono, Now, UnixMs};

impl World {
    /// Time passes: what is due is done when it is due, and all that comes of it.
    pub fn pass(&mut self, ms: u64) {
        let until = self.now.mono.plus(ms);
        while self.now.mono < until {
            let due = self.next_wake().map_or(until, |at| at.min(until));
            self.leap(due.since(self.now.mono).max(1));
            self.tick();
            self.settle();
        }
    }

    /// When the next timer is due.
    pub fn next_wake(&self) -> Option<Mono> {
        self.shards.iter().filter_map(crate::machine::ShardMachine::next_wake).min()
    }

    /// Time passes, and nobody notices yet.
    pub fn leap(&mut self, ms: u64) {
        let now = self.now();
        self.set_clock(Now { mono: now.mono.plus(ms), unix: now.unix.plus(ms) });
    }

    /// The system clock is set forwards or back; the clock of timers goes on as before.
    pub fn set_wall_clock(&mut self, unix: UnixMs) {
        self.set_clock(Now { unix, ..self.now() });
    }

    /// Tells the shards whose timers are due.
    pub fn tick(&mut self) {
        if self.is_frozen {
            return;
        }
        for shard in 0..self.shards.len() {
            if self.shards[shard].next_wake().is_some_and(|at| at <= self.now.mono) {
                self.give(shard, Input::Tick);
            }
        }
    }
}
