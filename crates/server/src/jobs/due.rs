//! Scheduled notifications: read from the store when they are due, and delivered like any other.

use crate::node::{Node, home_of};
use carillon_core::command::ReplyTo;
use carillon_core::command::{Command, Outcome};
use carillon_core::message::ShardMessage;
use carillon_core::model::Notification;
use std::collections::VecDeque;
use std::sync::Arc;

/// Notifications that are due and that their home shards do not have yet.
#[derive(Default)]
pub(super) struct Due(VecDeque<Arc<Notification>>);

impl Due {
    /// Adds notifications that the store returned as due.
    pub(super) fn add(&mut self, notifications: Vec<Notification>) {
        // It is due now, so its home treats it like any other notification.
        self.0.extend(notifications.into_iter().map(|n| Arc::new(Notification { send_at: None, ..n })));
    }

    /// Hands the notifications to their home shards until one of them is too busy. The rest is kept for later, as the
    /// store has given them away: they exist nowhere else.
    pub(super) fn hand_over(&mut self, node: &Node) {
        while let Some(notification) = self.0.pop_front() {
            let command = Command::Notify(notification);
            let Some(home) = home_of(&command, node) else { continue };
            let reply = ReplyTo(Box::new(|_: Outcome| ()));
            let refused = node.inbox(home).offer(ShardMessage::Command { command, reply });
            if let Err(ShardMessage::Command { command: Command::Notify(notification), .. }) = refused {
                self.0.push_front(notification);
                return;
            }
        }
    }

    /// Whether all were handed over, so that more may be read from the store.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
