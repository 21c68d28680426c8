//! Parked sessions go on in another process: the node restarts in an orderly way, or they leave it and come back.

use super::World;
use crate::form::{Clock, Form, Writer};
use crate::machine::{Group, Handed, Part, Restored, ShardMachine};
use crate::model::{ConnId, DrainSlice, Farewell, Now};
use crate::shard::Counters;
use crate::{Effects, Input};
use std::collections::VecDeque;
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

    /// All sessions of a node that rests are handed over, those with a connection, too, and taken over at once, under other names of their
    /// connections. Nobody is sent anything by it.
    pub fn hand_over(&mut self) {
        if !self.rests() {
            return;
        }
        for shard in 0..self.shards.len() {
            self.run(shard, ShardMachine::prepare_hand_over);
        }
        self.settle();
        if !self.rests() {
            return;
        }
        for shard in 0..self.shards.len() {
            let mut groups = Vec::new();
            while let Some(group) =
                self.quietly(shard, |machine, now, effects| machine.hand_over(now, GROUP_BYTES, effects))
            {
                groups.push(group);
            }
            let gauges = |counters: &Counters| {
                (counters.sessions, counters.available, counters.parked, counters.light)
            };
            assert_eq!(gauges(self.shards[shard].counters()), (0, 0, 0, 0), "nobody is left");
            let (mut traces, mut all) = (Vec::new(), Vec::new());
            for group in groups {
                let mut conns = group.conns.into_iter();
                let handed = Handed::read(&group.bytes, self.now.mono, 0).expect("a group");
                traces.extend(handed.traces);
                for session in handed.sessions {
                    let conn = session.is_connected().then(|| conns.next().expect("its connection"));
                    all.push((session, conn.map(|conn| self.rename(conn))));
                }
            }
            let count = all.len() as u32;
            let taken = self.run(shard, |machine, now, effects| machine.take_over(now, traces, all, effects));
            assert_eq!(taken.restored + taken.expired, count, "{taken:?}");
        }
        self.settle();
    }

    /// Whether nothing is under way.
    fn rests(&self) -> bool {
        self.shards.iter().all(|shard| shard.awaited() == 0)
            && self.walking.iter().all(|walks| !walks)
            && self.posts.iter().all(VecDeque::is_empty)
            && self.derived.is_empty()
    }

    /// Gives a connection another name.
    fn rename(&mut self, conn: ConnId) -> ConnId {
        let link = &mut self.links[conn.slot as usize];
        assert_eq!(link.conn, conn);
        link.conn.generation += 1;
        link.conn
    }

    /// Has a shard do something of which nobody hears.
    fn quietly<T>(&mut self, shard: usize, run: impl FnOnce(&mut ShardMachine, Now, &mut Effects) -> T) -> T {
        let mut effects = std::mem::take(&mut self.effects);
        let result = run(&mut self.shards[shard], self.now, &mut effects);
        assert!(effects.list.is_empty(), "{:?}", effects.list);
        self.effects = effects;
        result
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
        let (mut out, mut count) = (Writer::new(clock.now_ms), 0);
        for part in Part::read_all(&group.bytes, clock).expect("a group") {
            count += u32::from(matches!(part, Part::Session(_)));
            part.write(&mut out);
        }
        assert_eq!((count, out.finish()), (group.sessions, group.bytes.clone()));
    }

    fn run<T>(&mut self, shard: usize, run: impl FnOnce(&mut ShardMachine, Now, &mut Effects) -> T) -> T {
        let mut effects = std::mem::take(&mut self.effects);
        effects.journal.keep(self.logs);
        let result = run(&mut self.shards[shard], self.now, &mut effects);
        self.carry_out(shard, effects);
        // What is left to do it does with the next input.
        self.give(shard, Input::Tick);
        result
    }
}
