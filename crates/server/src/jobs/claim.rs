//! Scheduled notifications that are due: claimed from the store and given to their homes like any other. Their homes store them, and then
//! they are no longer claimed.
//!
//! A claim ends by itself ([`LEASE_MS`]). So what a node claimed that then stopped, or could not hand over, is due again, here or at
//! another node. Nobody hands over anything of a claim that may have ended.

use super::JobMessage;
use crate::node::{Node, home_of};
use carillon_core::command::{Command, Outcome};
use carillon_core::message::ShardMessage;
use carillon_core::model::Notification;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

/// What a node has claimed, from one question to the store to the next.
pub(super) struct Claim {
    /// Those that their home shards do not have yet.
    left: VecDeque<Arc<Notification>>,
    /// Nothing is handed over from then on: the claim may have ended.
    ends: Instant,
    homes: Option<Arc<Homes>>,
}

/// The homes that have not answered. Tells the thread of the jobs when none is left.
struct Homes(SyncSender<JobMessage>);

impl Claim {
    /// A claim that the store was asked for at `asked`.
    pub(super) fn new(claimed: Vec<Notification>, asked: Instant, sender: &SyncSender<JobMessage>) -> Claim {
        let left = claimed.into_iter().map(Arc::new).collect();
        Claim { left, ends: asked + HAND_OVER, homes: Some(Arc::new(Homes(sender.clone()))) }
    }

    /// Hands the notifications to their home shards until one of them is too busy: the rest is kept for later. When all are handed
    /// over and answered, [`JobMessage::HandedOver`] follows.
    pub(super) fn hand_over(&mut self, node: &Node) {
        let Some(homes) = self.homes.clone() else { return };
        if Instant::now() >= self.ends {
            self.left.clear();
        }
        while let Some(notification) = self.left.pop_front() {
            let command = Command::Notify(notification);
            let Some(home) = home_of(&command, node) else { continue };
            let homes = homes.clone();
            if !node.is_own(home) {
                node.command(command, Box::new(move |_| drop(homes)));
                continue;
            }
            let home = home.shard;
            let reply = node.replies().add(home, Box::new(move |_: Outcome| drop(homes)), node.mono());
            let refused = node.inbox(home).offer(ShardMessage::Command { command, reply });
            if let Err(ShardMessage::Command { command: Command::Notify(notification), .. }) = refused {
                drop(node.replies().take(reply));
                self.left.push_front(notification);
                return;
            }
        }
        self.homes = None;
    }
}

impl Drop for Homes {
    fn drop(&mut self) {
        // There is room for it; and the thread may have ended.
        drop(self.0.try_send(JobMessage::HandedOver));
    }
}

/// How long a claim holds, in milliseconds.
pub(super) const LEASE_MS: u64 = 30_000;
/// For how long of that notifications are handed over: the clocks of two nodes may differ, and a home may take its time.
const HAND_OVER: Duration = Duration::from_millis(LEASE_MS * 2 / 3);
