//! The node leaves its process at any moment: it restarts in order, or goes on in another process with its connections, or begins
//! to and takes them back. What the server does between two of these steps is up to whoever drives the node.

use super::World;
use super::link::Stage;
use crate::Input;
use crate::machine::{Group, Handed, HandedGroup, ShardMachine};
use crate::model::{ConnId, DrainSlice, Farewell};
use crate::ports::Page;
use crate::ports::store::parked::{ForgetParked, ParkedGroup, ParkedGroups, StoreParked, StoreParkedAnswer};
use crate::shard::Counters;
use carillon_wire::jid::BareJid;
use std::sync::Arc;

/// Bytes of a group: few, so that there are several.
pub(super) const GROUP_BYTES: usize = 2048;

/// All sessions of a node on their way to another process.
#[derive(Debug)]
pub struct Estate {
    /// Each with the number of the node that it is of.
    groups: Vec<(usize, HandedGroup)>,
}

/// A restart, in the order in which it happens.
impl World {
    /// One of the slices in which sessions are parked, their streams closed, and others ended.
    pub fn end_slice(&mut self, slices_left: u32, slices: u32) {
        let farewell = Arc::new(Farewell::Restart { least_s: 1, spread_s: 0 });
        let slice = DrainSlice { farewell, slices_left, slices, is_last: slices_left == 0 };
        self.every_shard(|| Input::DrainSlice(slice.clone()));
    }

    /// The parked sessions are written to the store, as many groups as fill so many bytes. Those of others go back to their shard.
    pub fn store_parked(&mut self, bytes_max: u64) {
        let mut number = 0;
        for shard in 0..self.shards.len() {
            let mut returned = Vec::new();
            for group in self.take_parked(shard) {
                let parked = self.parked(shard, number, &group);
                number += 1;
                if self.ask(StoreParked { group: parked, bytes_max }) == StoreParkedAnswer::Full {
                    returned.push(group);
                }
            }
            for group in returned {
                self.put_parked(shard, &group, 0);
            }
        }
    }

    fn parked(&self, shard: usize, number: u32, group: &Group) -> ParkedGroup {
        ParkedGroup {
            number,
            shard: shard as u16,
            shards: self.planned() as u16,
            sessions: group.sessions,
            written: self.now.unix,
            bytes: group.bytes.clone().into(),
        }
    }

    /// The process ends: what is left of streams is closed, and what the store was asked to write it writes.
    pub fn end(&mut self) {
        self.trace.note(format_args!("ends"));
        self.every_shard(|| Input::Drain);
        self.disk.close();
    }

    /// The next process starts `away_ms` later, with so many shards, and restores what was parked.
    pub fn start_again(&mut self, shards: u16, away_ms: u64) {
        self.plan.shards = shards;
        self.lose_all();
        self.leap(away_ms);
        let all = self.ask(ParkedGroups { after: None, page: Page { entries: u16::MAX, bytes: usize::MAX } });
        self.ask(ForgetParked);
        for ParkedGroup { shard, shards, sessions, written, bytes, .. } in all.entries {
            let node = usize::from(shard / (shards / self.plan.nodes).max(1));
            let group = Group { bytes: bytes.to_vec(), sessions };
            let elapsed_ms = self.now.unix.0.saturating_sub(written.0);
            for own in 0..self.shards.len() {
                let is_theirs = usize::from(shards) != self.planned() || usize::from(shard) == own;
                if is_theirs && self.node_of(own) == node {
                    self.put_parked(own, &group, elapsed_ms);
                }
            }
        }
        self.first_turn();
    }
}

/// A live upgrade, in the order in which it happens.
impl World {
    /// No connection is read from now on, and no timer runs; or they are again.
    pub fn freeze(&mut self, is_frozen: bool) {
        self.trace.note(format_args!("freeze {is_frozen}"));
        self.is_frozen = is_frozen;
    }

    /// Whether no connection is read and no timer runs.
    pub fn is_frozen(&self) -> bool {
        self.is_frozen
    }

    /// Whether nothing is under way: no answer of the store, no message between shards, no fan-out.
    pub fn rests(&self) -> bool {
        self.shards.iter().all(|shard| shard.awaited() == 0)
            && self.walking.iter().all(|walks| !walks)
            && self.posts.iter().all(std::collections::VecDeque::is_empty)
            && self.derived.is_empty()
    }

    /// Accounts of which a shard is finding out where they are at home.
    pub fn sought(&self) -> Vec<BareJid> {
        self.shards.iter().flat_map(ShardMachine::sought).collect()
    }

    /// What senders of chat messages wait for is stored.
    pub fn prepare_hand_over(&mut self) {
        for shard in 0..self.shards.len() {
            self.run(shard, ShardMachine::prepare_hand_over);
        }
    }

    /// All sessions leave their shards, without anybody being sent anything.
    pub fn take_out(&mut self) -> Estate {
        let mut groups = Vec::new();
        for shard in 0..self.shards.len() {
            while let Some(group) =
                self.quietly(shard, |machine, now, effects| machine.hand_over(now, GROUP_BYTES, effects))
            {
                groups.push((self.node_of(shard), group));
            }
            let gauges = |counters: &Counters| {
                (counters.sessions, counters.available, counters.parked, counters.light)
            };
            assert_eq!(gauges(self.shards[shard].counters()), (0, 0, 0, 0), "nobody is left");
        }
        Estate { groups }
    }

    /// Other shards take the place of these, in the process that goes on: it has the sessions, their connections and the store, and
    /// nothing else. Connections without a session are closed.
    pub fn replace(&mut self, estate: &Estate, shards: u16) {
        self.trace.note(format_args!("goes on in {shards} other shards"));
        self.disk.close();
        let goes_along = |conn: ConnId| estate.groups.iter().any(|(_, group)| group.conns.contains(&conn));
        for link in &mut self.links {
            if link.is_open() && !goes_along(link.conn) {
                link.lose();
            }
        }
        self.plan.shards = shards;
        self.start();
    }

    /// The shards that there are take the sessions, written `elapsed_ms` ago. These connections were lost on the way.
    pub fn take_in(&mut self, estate: Estate, elapsed_ms: u64, lost: &[usize]) {
        let count = self.shards.len();
        let mut all: Vec<(Vec<_>, Vec<_>)> = self.shards.iter().map(|_| Default::default()).collect();
        for (node, group) in estate.groups {
            let directory = self.member(node * usize::from(self.plan.shards)).directory;
            let mut conns = group.conns.into_iter();
            let handed = Handed::read(&group.bytes, self.now.mono, elapsed_ms).expect("a group");
            for trace in handed.traces {
                all[self.at(trace.home(&*directory))].0.push(trace);
            }
            for session in handed.sessions {
                let conn = session.is_connected().then(|| conns.next().expect("its connection"));
                // One that is at home in any shard stays, if its shard is still there.
                let present = conn.map_or(0, |conn| self.links[conn.slot as usize].shard);
                let shard = session.home(&*directory).map_or(present % count, |home| self.at(home));
                let conn = conn.and_then(|conn| self.attach(conn, shard, lost));
                all[shard].1.push((session, conn));
            }
        }
        for (shard, (traces, sessions)) in all.into_iter().enumerate() {
            let count = sessions.len() as u32;
            let taken = self
                .run(shard, |machine, now, effects| machine.take_over(now, false, traces, sessions, effects));
            assert_eq!(taken.restored + taken.expired, count, "{taken:?}");
        }
        self.first_turn();
    }

    /// A connection goes on under another name, unless it is lost.
    fn attach(&mut self, conn: ConnId, shard: usize, lost: &[usize]) -> Option<ConnId> {
        let link = &mut self.links[conn.slot as usize];
        assert_eq!((link.conn, link.stage), (conn, Stage::Open));
        if lost.contains(&(conn.slot as usize)) {
            link.lose();
            return None;
        }
        link.conn.generation += 1;
        link.shard = shard;
        Some(link.conn)
    }
}
