//! Parked sessions go on in another process: the node restarts in an orderly way, or they leave it and come back.

use super::World;
use crate::form::{Clock, Form, Reader, Writer};
use crate::machine::{Group, Restored};
use crate::model::{DrainSlice, Farewell};
use crate::session::Moved;
use crate::{Effects, Input};
use std::sync::Arc;

/// Bytes of a group: few, so that there are several.
const GROUP_BYTES: usize = 2048;
/// In so many pieces sessions are parked.
const SLICES: u32 = 3;

impl World {
    /// The node ends as it does when it is asked to, and starts again `away_ms` later: sessions that can be resumed go on. Returns what
    /// became of them.
    pub fn restart(&mut self, away_ms: u64) -> Restored {
        self.trace.note(format_args!("restart"));
        let farewell = Arc::new(Farewell::Restart { least_s: 1, spread_s: 0 });
        for slices_left in (0..SLICES).rev() {
            let slice = DrainSlice { farewell: Arc::clone(&farewell), slices_left, slices: SLICES };
            self.every_shard(|| Input::DrainSlice(slice.clone()));
        }
        self.settle();
        let groups: Vec<_> = (0..self.shards.len()).flat_map(|shard| self.take_parked(shard)).collect();
        for key in 0..self.links.len() {
            self.lose(key);
        }
        self.crash();
        self.leap(away_ms);
        let mut all = Restored::default();
        for group in groups {
            for shard in 0..self.shards.len() {
                let restored = self.put_parked(shard, &group, away_ms);
                all.restored += restored.restored;
                all.expired += restored.expired;
                all.refused += restored.refused;
            }
        }
        self.settle();
        all
    }

    /// The parked sessions of shards that wait for nothing leave their shard, and come back.
    pub fn move_parked(&mut self) {
        for shard in 0..self.shards.len() {
            if self.shards[shard].awaited() > 0 {
                continue;
            }
            for group in self.take_parked(shard) {
                let restored = self.put_parked(shard, &group, 0);
                assert_eq!(restored.restored + restored.expired, group.sessions, "{restored:?}");
            }
        }
        self.settle();
    }

    fn take_parked(&mut self, shard: usize) -> Vec<Group> {
        let mut groups = Vec::new();
        while let Some(group) =
            self.run(shard, |machine, now, effects| machine.write_parked(now, GROUP_BYTES, effects))
        {
            groups.push(group);
        }
        groups
    }

    fn put_parked(&mut self, shard: usize, group: &Group, elapsed_ms: u64) -> Restored {
        self.check(group);
        self.run(shard, |machine, now, effects| {
            machine.restore(now, elapsed_ms, &group.bytes, effects).expect("a group that this release wrote")
        })
    }

    /// What is read of a group is written as it was.
    fn check(&self, group: &Group) {
        let clock = Clock { now_ms: self.now.mono.0, elapsed_ms: 0 };
        let mut input = Reader::new(&group.bytes, clock).expect("a head");
        let mut out = Writer::new(clock.now_ms);
        let mut count = 0;
        while !input.is_done() {
            Moved::read(&mut input).expect("a session").write(&mut out);
            count += 1;
        }
        assert_eq!((count, out.finish()), (group.sessions, group.bytes.clone()));
    }

    fn run<T>(
        &mut self,
        shard: usize,
        run: impl FnOnce(&mut crate::machine::ShardMachine, crate::model::Now, &mut Effects) -> T,
    ) -> T {
        let mut effects = std::mem::take(&mut self.effects);
        effects.journal.keep(self.logs);
        let result = run(&mut self.shards[shard], self.now, &mut effects);
        self.carry_out(shard, effects);
        // What is left to do it does with the next input.
        self.give(shard, Input::Tick);
        result
    }
}
