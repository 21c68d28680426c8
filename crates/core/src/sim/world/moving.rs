//! What conversations do to a node that rests: it restarts in an orderly way, or sessions leave it and come back.

use super::World;
use super::leaving::GROUP_BYTES;
use crate::form::{Clock, Form, Writer};
use crate::machine::{Group, Part, Restored, ShardMachine};
use crate::model::Now;
use crate::{Effects, Input};

/// In so many pieces sessions are parked.
const SLICES: u32 = 3;

impl World {
    /// The node ends as it does when it is asked to, and starts again `away_ms` later: sessions that can be resumed go on. Returns what
    /// became of them.
    pub fn restart(&mut self, away_ms: u64) -> Restored {
        self.trace.note(format_args!("restart"));
        (0..SLICES).rev().for_each(|slices_left| self.end_slice(slices_left, SLICES));
        self.settle();
        let mut groups = Vec::new();
        for shard in 0..self.shards.len() {
            let node = self.node_of(shard);
            groups.extend(self.take_parked(shard).into_iter().map(|group| (node, group)));
        }
        for key in 0..self.links.len() {
            self.lose(key);
        }
        self.lose_all();
        self.leap(away_ms);
        let mut all = Restored::default();
        for (node, group) in groups {
            let shards = usize::from(self.plan.shards);
            for shard in node * shards..(node + 1) * shards {
                let restored = self.put_parked(shard, &group, away_ms);
                all.restored += restored.restored;
                all.expired += restored.expired;
                all.refused += restored.refused;
            }
        }
        self.first_turn();
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

    /// All sessions of a node that rests are handed over, those with a connection, too, and taken back at once, under other names of their
    /// connections. Nobody is sent anything by it.
    pub fn hand_over(&mut self) {
        if !self.rests() {
            return;
        }
        self.prepare_hand_over();
        self.settle();
        if !self.rests() {
            return;
        }
        let estate = self.take_out();
        self.take_in(estate, 0, &[]);
        self.settle();
    }

    /// Has a shard do something of which nobody hears.
    pub(super) fn quietly<T>(
        &mut self,
        shard: usize,
        run: impl FnOnce(&mut ShardMachine, Now, &mut Effects) -> T,
    ) -> T {
        let mut effects = std::mem::take(&mut self.effects);
        let result = run(&mut self.shards[shard], self.now, &mut effects);
        assert!(effects.list.is_empty(), "{:?}", effects.list);
        self.effects = effects;
        result
    }

    pub(super) fn take_parked(&mut self, shard: usize) -> Vec<Group> {
        let mut groups = Vec::new();
        while let Some(group) =
            self.run(shard, |machine, now, effects| machine.write_parked(now, GROUP_BYTES, effects))
        {
            groups.push(group);
        }
        groups
    }

    pub(super) fn put_parked(&mut self, shard: usize, group: &Group, elapsed_ms: u64) -> Restored {
        self.check(group);
        self.run(shard, |machine, now, effects| {
            machine.restore(now, elapsed_ms, &group.bytes, effects).expect("a group that this release wrote")
        })
    }

    /// What is read of a group is written as it was.
    fn check(&self, group: &Group) {
        let clock = Clock { now_ms: self.now.mono.0, elapsed_ms: 0 };
        let (mut out, mut count) = (Writer::new(clock.now_ms), 0);
        for part in Part::read_all(&group.bytes, clock).expect("a group") {
            count += u32::from(matches!(part, Part::Session(_)));
            part.write(&mut out);
        }
        assert_eq!((count, out.finish()), (group.sessions, group.bytes.clone()));
    }

    pub(super) fn run<T>(
        &mut self,
        shard: usize,
        run: impl FnOnce(&mut ShardMachine, Now, &mut Effects) -> T,
    ) -> T {
        let mut effects = std::mem::take(&mut self.effects);
        effects.journal.keep(self.logs);
        let result = run(&mut self.shards[shard], self.now, &mut effects);
        self.carry_out(shard, effects);
        if !self.is_restoring || self.plan.nodes == 1 {
            // What is left to do it does with the next input.
            self.give(shard, Input::Tick);
        }
        result
    }
}
