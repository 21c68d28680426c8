//! The log of sessions within one process, for tests that run several nodes.

use carillon_core::model::{Epoch, SessionId, ShardId};
use carillon_core::ports::{Left, LogEntry, LogHeard, LogHears, Reply, SessionLog, Unavailable};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What all nodes write.
#[derive(Clone, Default)]
pub struct Logs(Arc<Mutex<BTreeMap<Epoch, OfNode>>>);

/// What one node writes.
#[derive(Default)]
struct OfNode {
    sessions: BTreeMap<(ShardId, u32, u32), Vec<u8>>,
    /// The shards that have written all their sessions.
    complete: BTreeSet<ShardId>,
    is_away: bool,
    hears: Option<LogHears>,
}

impl OfNode {
    fn tell(&self, heard: LogHeard) {
        self.hears.iter().for_each(|hears| hears(heard));
    }
}

struct Log {
    own: Epoch,
    logs: Logs,
}

impl Logs {
    /// Opens the log of a node.
    pub fn open(&self, own: Epoch, hears: LogHears) -> Arc<dyn SessionLog> {
        self.lock().insert(own, OfNode { hears: Some(hears), ..OfNode::default() });
        let log = Log { own, logs: self.clone() };
        self.set_away(own, false);
        Arc::new(log)
    }

    /// Whether a node cannot reach it.
    pub fn set_away(&self, own: Epoch, is_away: bool) {
        let mut logs = self.lock();
        let Some(of_node) = logs.get_mut(&own) else { return };
        of_node.is_away = is_away;
        if !is_away {
            of_node.sessions.clear();
        }
        of_node.complete.clear();
        of_node.tell(if is_away { LogHeard::Away } else { LogHeard::Back });
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Epoch, OfNode>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionLog for Log {
    fn write(&self, shard: ShardId, number: u64, anew: bool, entries: Vec<LogEntry>) {
        let mut logs = self.logs.lock();
        let Some(of_node) = logs.get_mut(&self.own).filter(|of_node| !of_node.is_away) else { return };
        if anew {
            of_node.complete.insert(shard);
        }
        if !of_node.complete.contains(&shard) {
            return;
        }
        for LogEntry { session: SessionId { slot, generation }, bytes } in entries {
            let name = (shard, slot, generation);
            match bytes {
                Some(bytes) => drop(of_node.sessions.insert(name, bytes)),
                None => drop(of_node.sessions.remove(&name)),
            }
        }
        of_node.tell(LogHeard::Written(shard, number));
    }

    fn take(&self, epoch: Epoch, reply: Reply<Result<Vec<Left>, Unavailable>>) {
        let mut logs = self.logs.lock();
        if logs.get(&self.own).is_none_or(|own| own.is_away) {
            drop(logs);
            return reply(Err(Unavailable));
        }
        let sessions = logs.get_mut(&epoch).map(|of_node| std::mem::take(&mut of_node.sessions));
        drop(logs);
        let left = |((shard, slot, generation), bytes)| Left {
            shard,
            session: SessionId { slot, generation },
            bytes,
        };
        reply(Ok(sessions.into_iter().flatten().map(left).collect()));
    }

    fn leave(&self) {
        if let Some(of_node) = self.logs.lock().get_mut(&self.own) {
            of_node.complete.clear();
            of_node.is_away = true;
        }
    }

    fn close(&self) {
        if let Some(of_node) = self.logs.lock().get_mut(&self.own) {
            of_node.sessions.clear();
            of_node.complete.clear();
            of_node.is_away = true;
        }
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").field("own", &self.own).finish_non_exhaustive()
    }
}
