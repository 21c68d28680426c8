//! Scheduled notifications: taken from the store when they are due, and delivered like any other.

use crate::node::{Node, home_of};
use carillon_core::command::ReplyTo;
use carillon_core::command::{Command, Outcome};
use carillon_core::message::ShardMessage;
use carillon_core::model::Notification;
use std::collections::VecDeque;
use std::sync::Arc;

/// Notifications that are due and not handed to their homes yet.
#[derive(Default)]
pub(super) struct Due(VecDeque<Arc<Notification>>);

impl Due {
    /// The store hands these out.
    pub(super) fn add(&mut self, notifications: Vec<Notification>) {
        // Due now: for its home it is a notification like any other.
        self.0.extend(notifications.into_iter().map(|n| Arc::new(Notification { send_at: None, ..n })));
    }

    /// Hands over what the shards take. A home that is too busy gets the rest later: taken from the store, a
    /// notification that is not kept exists nowhere else.
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

    /// Whether more may be taken from the store.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
