//! What comes from the bus: records become items of the shards' inboxes.

use crate::cell::{NodeReport, NodeRequest, Record, Said, Tells, Unsettled};
use crate::channels::inbox::{Inbox, InboxItem};
use crate::channels::replies::Replies;
use crate::clock::Clock;
use crate::node::Node;
use carillon_core::command::{Command, ReplyTo};
use carillon_core::form::{Clock as FormClock, decode};
use carillon_core::message::ShardMessage;
use carillon_core::model::{Epoch, NodeId, ShardId};
use carillon_core::ports::bus::Hears;
use carillon_core::ports::{Heard, Subject};
use std::sync::{Arc, OnceLock};

/// What a record needs to come in.
pub(crate) struct Intake {
    pub(crate) own: NodeId,
    pub(crate) inboxes: Arc<[Arc<Inbox>]>,
    pub(crate) replies: Arc<Replies>,
    pub(crate) unsettled: Arc<Unsettled>,
    pub(crate) clock: Clock,
    pub(crate) told: Option<Tells>,
    /// The node, as soon as there is one: until then nobody knows of it either.
    pub(crate) node: Arc<OnceLock<Node>>,
}

impl Intake {
    /// What the bus is to call.
    pub(crate) fn hears(self) -> Hears {
        Arc::new(move |heard| self.hear(heard))
    }

    fn hear(&self, heard: Heard) {
        match heard {
            Heard::Record { from, record, .. } => self.record(from, &record),
            Heard::Gap { from, subject: Subject::Node(_) } => self.lost(from),
            // Members are the business of those who know them.
            Heard::Gap { .. } | Heard::Beat { .. } | Heard::Away | Heard::Back => {}
        }
    }

    fn record(&self, from: Epoch, bytes: &[u8]) {
        let clock = FormClock { now_ms: self.clock.mono().0, elapsed_ms: 0 };
        let record = match decode::<Record>(bytes, clock) {
            Ok(record) => record,
            Err(error) => {
                tracing::warn!(%from, %error, "a record of another node cannot be read");
                return self.lost(from);
            }
        };
        let is_taken = match record {
            Record::Message { shard, message } => self.give(shard, InboxItem::ShardMessage(message)),
            Record::MessageToAll(message) => self.give_all(message, bytes, clock),
            Record::CommandToAll { command, reply } => {
                self.command(&command, reply);
                true
            }
            Record::Outcome { to, outcome } => {
                self.replies.give(to, outcome);
                true
            }
            Record::Forwarded { settlement, to } => {
                let shard = settlement.place.shard;
                let said = self.unsettled.forwarded(&settlement, to);
                said.into_iter().all(|message| self.give(shard, InboxItem::ShardMessage(message)))
            }
            Record::CommandForwarded { reply, to } => {
                self.replies.forwarded(reply, to);
                true
            }
            Record::DomainsChanged => {
                self.node.get().into_iter().for_each(|node| node.reload_own_domains(Box::new(|()| {})));
                true
            }
            Record::ModulesChanged => {
                self.node.get().into_iter().for_each(|node| node.load_modules(Box::new(|_| {})));
                true
            }
            Record::Leaving => self.said(from, Said::Leaves),
            Record::Known => self.said(from, Said::Knows),
            Record::Logs(are_kept) => self.said(from, Said::Logs(are_kept)),
            Record::Returning => self.said(from, Said::Returns),
            Record::Request { request, number } => self.request(from, request, number),
            Record::Report { number, report } => self.report(from, number, *report),
            Record::Claim { shard, edge, claim } => self.give(shard, InboxItem::Claim { edge, claim }),
            Record::FromClient { shard, edge, input } => {
                self.give(shard, InboxItem::FromClient { edge, input })
            }
            Record::ToClient { shard, conn, output } => {
                self.give(shard, InboxItem::ToClient { conn, output })
            }
        };
        if !is_taken {
            self.lost(from);
        }
    }

    /// A node says something of itself.
    fn said(&self, from: Epoch, said: Said) -> bool {
        if let (Some(told), Ok(node)) = (&self.told, u32::try_from(from.0)) {
            told(NodeId(node), said);
        }
        true
    }

    /// Whether a shard takes an item. The number of a home that another node computed is brought into range by the remainder.
    fn give(&self, shard: ShardId, item: InboxItem) -> bool {
        let at = usize::from(shard.0) % self.inboxes.len().max(1);
        self.inboxes.get(at).is_some_and(|inbox| inbox.take_in(item))
    }

    /// The same for every shard, each of which gets one of its own: what a message shares belongs to one thread at a time.
    fn give_all(&self, first: ShardMessage, bytes: &[u8], clock: FormClock) -> bool {
        let others = (1..self.inboxes.len()).filter_map(|_| match decode(bytes, clock) {
            Ok(Record::MessageToAll(message)) => Some(message),
            _ => None,
        });
        let messages = std::iter::once(first).chain(others).zip(self.inboxes.iter());
        messages.fold(true, |all, (message, inbox)| inbox.take_in(InboxItem::ShardMessage(message)) && all)
    }

    /// Has every shard of this node carry a command out, and answers the node that gave it.
    fn command(&self, command: &Command, reply: ReplyTo) {
        if let Some(node) = self.node.get() {
            node.command_here(command, reply);
        }
    }

    /// An operator asks something of this node by another, which is answered.
    fn request(&self, from: Epoch, request: NodeRequest, number: u64) -> bool {
        if let (Some(node), Ok(from)) = (self.node.get(), u32::try_from(from.0)) {
            let report = Box::new(node.answer(request));
            node.post_far(NodeId(from), &Record::Report { number, report });
        }
        true
    }

    fn report(&self, from: Epoch, number: u64, report: NodeReport) -> bool {
        if let (Some(node), Ok(from)) = (self.node.get(), u32::try_from(from.0)) {
            node.answered(NodeId(from), number, report);
        }
        true
    }

    /// Something that a node sent was lost.
    fn lost(&self, from: Epoch) {
        let Ok(node) = u32::try_from(from.0) else { return };
        if NodeId(node) != self.own {
            self.replies.lose(NodeId(node), false);
            self.node.get().into_iter().for_each(Node::modules_may_have_changed);
            self.inboxes
                .iter()
                .for_each(|inbox| inbox.push(InboxItem::Lost { node: NodeId(node), is_gone: false }));
        }
    }
}
