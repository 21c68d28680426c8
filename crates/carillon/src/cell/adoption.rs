//! The log of this node's sessions, and who goes on with those of a node that died.

use super::told::Told;
use crate::backends::redis::LogOptions;
use carillon_core::model::{Epoch, NodeId, ShardId};
use carillon_core::ports::{Left, LogHeard, Reply, SessionLog, Unavailable};
use carillon_server::OpenLog;
use std::collections::BTreeSet;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tokio::runtime::Handle;

/// The log, once it was opened.
pub(super) type OpenedLog = Arc<OnceLock<Arc<dyn SessionLog>>>;

/// What opens the log. The thread that watches the nodes is told what is heard of it, too.
pub(super) fn open(
    options: LogOptions,
    own: Epoch,
    runtime: &Handle,
    sender: SyncSender<Told>,
    opened: OpenedLog,
) -> OpenLog {
    let runtime = runtime.clone();
    Box::new(move |hears| {
        let written = Mutex::new(BTreeSet::new());
        let hears = Arc::new(move |heard| {
            let mut written = written.lock().unwrap_or_else(PoisonError::into_inner);
            // The first that each shard writes is all that it has.
            let is_news = match heard {
                LogHeard::Written(shard, _) => written.insert(shard),
                LogHeard::Away | LogHeard::Back => {
                    written.clear();
                    true
                }
            };
            drop(written);
            if is_news {
                drop(sender.try_send(Told::Log(heard)));
            }
            hears(heard);
        });
        let log = options.open(own, hears, &runtime)?;
        // It is opened once.
        drop(opened.set(Arc::clone(&log)));
        Ok(log)
    })
}

/// What the thread that watches the nodes knows of logs.
pub(super) struct Adoption {
    log: Option<Arc<dyn SessionLog>>,
    shards: u16,
    /// Shards that have not written all their sessions since the engine was reached.
    behind: BTreeSet<ShardId>,
    is_away: bool,
    /// Nodes whose sessions are not written down, as they have said: what there is of them is old.
    unkept: BTreeSet<NodeId>,
}

impl Adoption {
    pub(super) fn new(log: Option<Arc<dyn SessionLog>>, shards: u16) -> Adoption {
        Adoption { log, shards, behind: BTreeSet::new(), is_away: false, unkept: BTreeSet::new() }
    }

    /// Something is heard of this node's own log: whether it is kept, if that changed.
    pub(super) fn heard(&mut self, heard: LogHeard) -> Option<bool> {
        let before = self.is_kept();
        match heard {
            LogHeard::Away => self.is_away = true,
            LogHeard::Back => {
                self.is_away = false;
                self.behind = (0..self.shards).map(ShardId).collect();
            }
            LogHeard::Written(shard, _) => {
                self.behind.remove(&shard);
            }
        }
        (before != self.is_kept()).then(|| self.is_kept())
    }

    /// Whether what there is of this node's sessions is as they are. Where there is no log there is nothing of them.
    pub(super) fn is_kept(&self) -> bool {
        self.log.is_none() || (!self.is_away && self.behind.is_empty())
    }

    /// What another node says of its log.
    pub(super) fn said(&mut self, node: NodeId, are_kept: bool) {
        match are_kept {
            true => self.unkept.remove(&node),
            false => self.unkept.insert(node),
        };
    }

    /// A node is dead: whether this one of its heirs has its sessions go on.
    pub(super) fn loses(&mut self, node: NodeId, heirs: impl Iterator<Item = NodeId>, own: NodeId) -> bool {
        let is_old = self.unkept.remove(&node);
        if is_old {
            tracing::warn!(
                node = node.0,
                "a dead node could not write its sessions down: its clients log in anew"
            );
        }
        // Any rule will do by which all choose the same; one of two that choose otherwise gets nothing.
        let heir = heirs.max_by_key(|heir| (heir.0.wrapping_mul(node.0 | 1).reverse_bits(), heir.0));
        self.log.is_some() && !is_old && heir == Some(own)
    }

    /// Takes what a dead node left.
    pub(super) fn take(&self, node: NodeId, reply: Reply<Result<Vec<Left>, Unavailable>>) {
        if let Some(log) = &self.log {
            log.take(Epoch(node.0.into()), reply);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_heir_is_chosen_and_nobody_goes_on_with_what_is_old() {
        let nodes = [NodeId(3), NodeId(4), NodeId(7)];
        let log = || Some(log_of_nobody());
        let chosen = |dead, unkept: bool| {
            let is_chosen = |own: &&NodeId| {
                let mut adoption = Adoption::new(log(), 2);
                if unkept {
                    adoption.said(NodeId(dead), false);
                }
                adoption.loses(NodeId(dead), nodes.into_iter(), **own)
            };
            nodes.iter().filter(is_chosen).count()
        };
        assert!((8..40).all(|dead| chosen(dead, false) == 1));
        assert_eq!(chosen(8, true), 0);
    }

    #[test]
    fn a_log_is_kept_once_every_shard_has_written() {
        let mut adoption = Adoption::new(Some(log_of_nobody()), 2);
        assert!(adoption.is_kept(), "there is nothing to be written yet");
        assert_eq!(adoption.heard(LogHeard::Back), Some(false));
        assert_eq!(adoption.heard(LogHeard::Written(ShardId(0), 1)), None);
        assert_eq!(adoption.heard(LogHeard::Written(ShardId(1), 1)), Some(true));
        assert_eq!(adoption.heard(LogHeard::Away), Some(false));
    }

    fn log_of_nobody() -> Arc<dyn SessionLog> {
        carillon_backend::memory::Logs::default().open(Epoch(1), Arc::new(|_| {}))
    }
}
