//! What a shard does with other nodes: it sends them records, relays its clients to sessions there, and has sessions of their clients.

mod carried;
mod intake;
mod relay;

pub(crate) use intake::Intake;

use crate::cell::{Record, post};
use crate::shard_io::ShardIo;
use carillon_core::command::ReplyTo;
use carillon_core::message::{ClaimMessage, ShardMessage};
use carillon_core::model::{NodeId, Place};

/// Bytes of a client that may be on their way to its session: as much as one read of its socket takes, several times.
const WINDOW: usize = 256 * 1024;

/// Who waits for the outcome of a command that is in a message.
fn reply_of(message: &ShardMessage) -> Option<ReplyTo> {
    match message {
        ShardMessage::Command { reply, .. } => Some(*reply),
        ShardMessage::Claim(claim) => match &**claim {
            ClaimMessage::Command { reply, .. } | ClaimMessage::Find { reply, .. } => Some(*reply),
            _ => None,
        },
        _ => None,
    }
}

impl ShardIo {
    /// Sends a record to another node. Without a bus there is none: what is for one, such as for a session of an earlier process, is for nobody.
    pub(crate) fn post_far(&self, to: NodeId, record: &Record) {
        if let Some(bus) = &self.cell.bus {
            post(&**bus, to, record, self.mono);
        }
    }

    /// Sends a message to a shard of another node.
    pub(crate) fn post_message_far(&mut self, to: Place, message: ShardMessage) {
        if let Some(settlement) = self.cell.unsettled.sent(to.node, &message) {
            let (sender, to) = (settlement.place.node, to.node);
            self.post_far(sender, &Record::Forwarded { settlement, to });
        }
        if let Some(reply) = reply_of(&message) {
            match reply.node == self.place.node {
                true => self.replies.forwarded(reply, to.node),
                false => self.post_far(reply.node, &Record::CommandForwarded { reply, to: to.node }),
            }
        }
        self.post_far(to.node, &Record::Message { shard: to.shard, message });
    }
}
