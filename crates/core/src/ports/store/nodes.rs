//! The nodes of accounts (XEP-0163), and what is published on them.

#![expect(missing_docs, reason = "the sentence of a question says what its fields are")]

use super::items::ItemNamesAnswer;
use super::question::questions;
use super::{Load, Loads};
use crate::model::{DomainId, Item, ItemsFrom, NodeBounds, NodeChange, NodeEdit, NodeRefusal, UnixMs};
use carillon_wire::jid::BareJid;
use std::sync::Arc;

questions! {
    Nodes,
    reads {
        NodeItems => Option<Vec<Arc<Item>>>,
        NodeItemNames => Option<ItemNamesAnswer>,
        LastNodeItems => LastNodeItemsAnswer,
    }
    writes {}
    once {
        EditNode => Result<Box<NodeChange>, NodeRefusal>,
        EditNodes => EditNodesAnswer,
    }
    loads { EditNodes, }
}

/// Items that an account's node keeps, newest first, chosen as by [`page_of`](crate::model::page_of). None when there is no such node, or
/// when the item that `from` names does not exist.
#[derive(Clone, Debug)]
pub struct NodeItems {
    pub domain: DomainId,
    pub local: Box<str>,
    pub node: Box<str>,
    pub ids: Vec<Box<str>>,
    pub from: ItemsFrom,
    pub max: u32,
    pub bytes_max: usize,
}

/// Their ids.
#[derive(Clone, Debug)]
pub struct NodeItemNames {
    pub domain: DomainId,
    pub local: Box<str>,
    pub node: Box<str>,
    pub from: ItemsFrom,
    pub max: u32,
}

/// The newest items of these nodes of accounts `of`, of those nodes that give them to who becomes available
/// ([`SendLast::OnSubAndPresence`](crate::model::SendLast)) and of which `reader` is told ([`Access::tells`](crate::model::Access::tells)); none of an
/// account that blocks it. No further account is looked at once the payloads have more than `bytes_max`; one always is.
#[derive(Clone, Debug)]
pub struct LastNodeItems {
    pub reader: BareJid,
    pub nodes: Arc<[Box<str>]>,
    pub of: Vec<(DomainId, Box<str>)>,
    pub bytes_max: usize,
    pub by_lists: bool,
}

/// An answer to [`LastNodeItems`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastNodeItemsAnswer {
    /// Items, and the place of their account among those that were asked for.
    pub items: Vec<(u32, Arc<Item>)>,
    /// How many accounts were looked at.
    pub accounts: u32,
}

/// Does something with a node of an account by the rules of [`NodeEdit::configures`], within `bounds`. An item that is published takes the
/// place of one with its id; the oldest over `max_items` are removed. Where only items change, the generation of the record stays.
#[derive(Clone, Debug)]
pub struct EditNode {
    pub domain: DomainId,
    pub local: Box<str>,
    pub node: Box<str>,
    pub edit: NodeEdit,
    pub bounds: NodeBounds,
    pub now: UnixMs,
}

/// Does several things with a node of an account, one after the other as by [`EditNode`], in one commit. An edit of what is not there is passed over; the first
/// that is refused for another reason is the last, and those before it stay. At most [`EditNodes::EDITS_MAX`].
#[derive(Clone, Debug)]
pub struct EditNodes {
    pub domain: DomainId,
    pub local: Box<str>,
    pub node: Box<str>,
    pub edits: Vec<NodeEdit>,
    pub bounds: NodeBounds,
    pub now: UnixMs,
}

/// What came of [`EditNodes`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EditNodesAnswer {
    /// What the edits did that were done, each with its place in the question.
    pub changes: Vec<(u32, NodeChange)>,
    /// Why there are no more.
    pub refusal: Option<NodeRefusal>,
}

impl EditNodes {
    /// Edits of one question: other writes wait for them.
    pub const EDITS_MAX: usize = 100;

    /// Has each edit done.
    ///
    /// # Errors
    /// If doing one fails.
    pub fn each<E>(
        &self,
        mut edit: impl FnMut(&EditNode) -> Result<Result<Box<NodeChange>, NodeRefusal>, E>,
    ) -> Result<EditNodesAnswer, E> {
        let EditNodes { domain, local, node, edits, bounds, now } = self;
        let mut answer = EditNodesAnswer::default();
        for (place, wanted) in (0..).zip(edits) {
            let one = EditNode {
                domain: *domain,
                local: local.clone(),
                node: node.clone(),
                edit: wanted.clone(),
                bounds: *bounds,
                now: *now,
            };
            match edit(&one)? {
                Ok(change) => answer.changes.push((place, *change)),
                Err(NodeRefusal::NoItem | NodeRefusal::NoNode) => {}
                Err(refusal) => {
                    answer.refusal = Some(refusal);
                    break;
                }
            }
        }
        Ok(answer)
    }
}

impl Loads for EditNodes {
    fn load(&self) -> Load<'_> {
        let bytes = self.edits.iter().map(NodeEdit::bytes).sum();
        Load { bytes, account: Some((self.domain, &self.local)) }
    }
}
