//! What happens on the nodes of accounts (XEP-0163), and who learns of it.

use super::pubsub_xml::{write_event, write_items};
use super::{Access, Item, NodeChange, NodeEdit, Shown, Standing, UnixMs};
use carillon_wire::jid::{BareJid, Jid};
use carillon_wire::stanza::{MessageType, Payload, Stanza};
use carillon_wire::xml::writer::Writer;
use std::sync::Arc;

/// What happened on a node of an account.
#[derive(Clone, Debug)]
pub struct NodeEvent {
    /// The account.
    pub owner: Jid,
    /// The node.
    pub node: Box<str>,
    payload: Payload,
}

crate::form! { struct NodeEvent { owner, node, payload } }

/// The nodes of which a client wants the events: those with `NODE+notify` among its features. Sorted.
pub type Wants = Arc<[Box<str>]>;

/// Who reads a node, seen from its account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// The account itself.
    Owner,
    /// Another account, as it stands in the roster.
    Other(Standing),
}

impl Access {
    /// Whether these may read a node of an account. No groups are said with `roster`: whoever is given the account's presence is in it.
    pub fn admits(self, reader: Reader) -> bool {
        match (self, reader) {
            (_, Reader::Owner) | (Access::Open, _) => true,
            (Access::Presence | Access::Roster, Reader::Other(standing)) => standing.from,
            (Access::Whitelist, Reader::Other(_)) => false,
        }
    }

    /// Whether they are told of what happens on it. A node that is open to all is no reason to tell all.
    pub fn tells(self, reader: Reader) -> bool {
        let is_near = matches!(reader, Reader::Owner | Reader::Other(Standing { from: true, .. }));
        is_near && self.admits(reader)
    }
}

impl NodeEvent {
    /// What those are told who want to know of the node; none for what is not told.
    pub fn of(change: &NodeChange, edit: &NodeEdit) -> Option<NodeEvent> {
        let node = change.is.as_ref().or(change.was.as_ref())?;
        let payload = match (edit, &change.item) {
            (NodeEdit::Publish { .. }, Some(item)) => published(item, node.config.shows(), None),
            (NodeEdit::Retract(id), _) if node.config.notify_retract => event(None, |writer| {
                writer.start("items").attr("node", &node.name).close_start();
                writer.start("retract").attr("id", id).close_empty().end("items");
            }),
            (NodeEdit::Purge, _) if node.config.notify_retract => event(None, |writer| {
                writer.start("purge").attr("node", &node.name).close_empty();
            }),
            (NodeEdit::Delete, _) if node.config.notify_delete => event(None, |writer| {
                writer.start("delete").attr("node", &node.name).close_empty();
            }),
            _ => return None,
        };
        Some(NodeEvent { owner: change.account.to_jid(), node: node.name.clone(), payload })
    }

    /// An item of a node, as it is told when it is published.
    pub fn new(owner: &BareJid, item: &Item) -> NodeEvent {
        let payload = published(item, Shown::Payload, None);
        NodeEvent { owner: owner.to_jid(), node: (*item.name).into(), payload }
    }

    /// The last item of a node, for who was not there when it was published.
    pub fn last(owner: &BareJid, item: &Item) -> NodeEvent {
        let payload = published(item, Shown::Payload, Some((owner.as_str(), item.published)));
        NodeEvent { owner: owner.to_jid(), node: (*item.name).into(), payload }
    }

    /// As it is told to a session.
    pub fn to(&self, session: &Jid) -> Stanza {
        let told = Stanza::message(MessageType::Headline).with_from(self.owner.clone());
        Stanza { payload: self.payload.clone(), ..told.with_to(session.clone()) }
    }

    /// Bytes that it takes in memory, as far as a client chose them.
    pub fn bytes(&self) -> usize {
        self.node.len() + self.payload.bytes().len()
    }
}

fn published(item: &Item, shown: Shown, stamp: Option<(&str, UnixMs)>) -> Payload {
    event(stamp, |writer| {
        write_items(writer, item, shown);
    })
}

fn event(stamp: Option<(&str, UnixMs)>, inside: impl FnOnce(&mut Writer<'_>)) -> Payload {
    let mut out = Vec::with_capacity(512);
    write_event(&mut Writer::new(&mut out), stamp, inside);
    Payload::from_raw(out.into())
}
