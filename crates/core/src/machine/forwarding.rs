//! A message came for a home that is on another node by now: whoever sent it had not heard of that yet. It goes on to where the home is.

use super::Turn;
use crate::command::Command;
use crate::message::{RoomAudience, ShardMessage};
use crate::model::{DomainId, Place, topic_address};

impl Turn<'_> {
    /// Where the home of a message is, if that is on another node.
    pub(super) fn home_elsewhere(&self, message: &ShardMessage) -> Option<Place> {
        if self.cx.shard.directory.other_nodes().is_empty() {
            return None;
        }
        let own = self.cx.shard.place.node;
        self.home_of(message).filter(|home| home.node != own)
    }

    /// The home that a message is for; none if it is for this shard, whatever moves.
    fn home_of(&self, message: &ShardMessage) -> Option<Place> {
        let home = |name: &str| Some(self.cx.shard.directory.home(name));
        match message {
            ShardMessage::Stanza { stanza, .. } => home(stanza.to.as_ref()?.bare_str()),
            // All of them were at home in one partition when it was sent; those of one partition move together.
            ShardMessage::Letter { to, .. } => home(to.first()?.as_str()),
            ShardMessage::Subscribed { account, .. } | ShardMessage::Unsubscribed { account, .. } => {
                home(account.as_str())
            }
            ShardMessage::Topic { domain, name, .. } => home(&topic_address(name, &self.name_of(*domain)?)),
            ShardMessage::Room { domain, kind, name, .. } => {
                home(&kind.address(name, &self.name_of(*domain)?))
            }
            ShardMessage::RoomEvent(event) => match &event.to {
                RoomAudience::Accounts(accounts) => home(accounts.first()?.as_str()),
                RoomAudience::Clients(_) => None,
            },
            ShardMessage::Command { command, .. } => match command {
                Command::Notify(notification) => home(notification.to.as_str()),
                Command::Cancel { id } | Command::Trace { id } => {
                    Some(self.cx.shard.directory.home_of_notification(*id))
                }
                Command::Topic { domain, name, .. } => home(&topic_address(name, &self.name_of(*domain)?)),
                Command::Room { domain, kind, name, .. } => {
                    home(&kind.address(name, &self.name_of(*domain)?))
                }
                Command::Act { account, .. }
                | Command::RevokeTokens { account, .. }
                | Command::RemoveAccount { account, .. } => home(account.as_str()),
                _ => None,
            },
            _ => None,
        }
    }

    fn name_of(&self, domain: DomainId) -> Option<String> {
        self.cx.shard.domains.numbered(domain).map(|domain| domain.name.to_string())
    }
}
