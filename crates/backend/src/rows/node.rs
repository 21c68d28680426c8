//! How the nodes of accounts are edited, whatever database keeps them: what an edit does to a node and its items, within the bounds of the account.

use carillon_core::model::*;
use carillon_core::ports::store::nodes::EditNode;
use carillon_wire::jid::BareJid;
use std::sync::Arc;

/// An account whose node is edited.
pub(crate) struct NodeOwner {
    pub(crate) id: i64,
    pub(crate) jid: BareJid,
    /// The generation of its record before the edit.
    pub(crate) record: Generation,
    pub(crate) nodes: u32,
    pub(crate) bytes: u64,
}

/// A node as it was found.
pub(crate) struct FoundNode {
    pub(crate) id: i64,
    pub(crate) node: Node,
    pub(crate) revision: u64,
    pub(crate) bytes: u64,
    pub(crate) items: u64,
}

/// What an edit does to the items of a node.
#[derive(Default)]
pub(crate) struct NodeEffect {
    pub(crate) removed: Vec<RemovedItem>,
    /// The item that is published.
    pub(crate) item: Option<Arc<Item>>,
    /// Whether it is kept, or only sent.
    pub(crate) is_kept: bool,
    /// Whether all items that there were are removed.
    pub(crate) is_purged: bool,
}

/// An item that is removed.
pub(crate) struct RemovedItem {
    pub(crate) revision: i64,
    /// Of its id and its payload.
    pub(crate) bytes: u64,
}

/// The nodes of a database, within a transaction.
pub(crate) trait NodeRows {
    /// What goes wrong with it.
    type Error;

    /// The account that an edit is about, and the node if it is there.
    fn find(&self, asked: &EditNode) -> Result<Option<(NodeOwner, Option<FoundNode>)>, Self::Error>;

    /// The item of this id, to be removed.
    fn named(&self, node: i64, id: &str) -> Result<Option<RemovedItem>, Self::Error>;

    /// The oldest items, so many of them, except the one of the revision `removed`, which is removed already.
    fn oldest(&self, node: i64, removed: i64, count: u64) -> Result<Vec<RemovedItem>, Self::Error>;

    /// Writes a node as it is after an edit, with what that does to its items.
    fn write(
        &self,
        account: i64,
        found: Option<&FoundNode>,
        node: &Node,
        effect: &NodeEffect,
    ) -> Result<(), Self::Error>;

    /// Removes a node with its items.
    fn remove(&self, node: i64) -> Result<(), Self::Error>;

    /// Writes what an account has after an edit.
    fn write_owner(
        &self,
        account: i64,
        record: Generation,
        nodes: u32,
        bytes: u64,
    ) -> Result<(), Self::Error>;
}

/// Edits a node.
pub(crate) fn edit<R: NodeRows>(
    rows: &R,
    asked: &EditNode,
) -> Result<Result<Box<NodeChange>, NodeRefusal>, R::Error> {
    let Some((owner, found)) = rows.find(asked)? else { return Ok(Err(NodeRefusal::NoAccount)) };
    let was = found.as_ref().map(|found| found.node.clone());
    let config = match asked.edit.configures(was.as_ref().map(|node| &node.config), owner.nodes, asked.bounds)
    {
        Ok(config) => config,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let created = was.as_ref().map_or(asked.now, |node| node.created);
    let is = config.map(|config| Node { name: asked.node.clone(), config, created });
    let others = owner.bytes.saturating_sub(found.as_ref().map_or(0, |found| found.bytes));
    let (mut item, mut bytes, mut nodes) = (None, others, owner.nodes);
    match (&is, &found) {
        (None, Some(found)) => {
            rows.remove(found.id)?;
            nodes = nodes.saturating_sub(1);
        }
        (Some(node), found) => {
            let effect = match effect(rows, asked, node, found.as_ref())? {
                Ok(effect) => effect,
                Err(refusal) => return Ok(Err(refusal)),
            };
            bytes += effect.bytes(node, found.as_ref());
            if bytes > owner.bytes && bytes > asked.bounds.bytes {
                return Ok(Err(NodeRefusal::TooManyBytes));
            }
            rows.write(owner.id, found.as_ref(), node, &effect)?;
            nodes += u32::from(found.is_none());
            item = effect.item;
        }
        (None, None) => {}
    }
    let before = owner.record;
    let after = Generation(before.0 + u64::from(was != is));
    if (after, nodes, bytes) != (before, owner.nodes, owner.bytes) {
        rows.write_owner(owner.id, after, nodes, bytes)?;
    }
    Ok(Ok(Box::new(NodeChange { account: owner.jid, before, after, was, is, item })))
}

/// What an edit does to the items of a node, which is like this afterwards.
fn effect<R: NodeRows>(
    rows: &R,
    asked: &EditNode,
    node: &Node,
    found: Option<&FoundNode>,
) -> Result<Result<NodeEffect, NodeRefusal>, R::Error> {
    let mut effect = NodeEffect::default();
    match &asked.edit {
        NodeEdit::Publish { id, payload, .. } => {
            let revision = Revision(found.map_or(0, |found| found.revision) + 1);
            effect.item = Some(Arc::new(Item {
                topic: TopicId::default(),
                domain: asked.domain,
                name: (*asked.node).into(),
                id: id.clone(),
                publisher: None,
                published: asked.now,
                payload: payload.clone(),
                revision,
            }));
            effect.is_kept = node.config.persist_items;
            if let Some(found) = found.filter(|_| effect.is_kept) {
                effect.removed.extend(rows.named(found.id, id)?);
            }
        }
        NodeEdit::Retract(id) => match found.map(|found| rows.named(found.id, id)).transpose()?.flatten() {
            Some(taken) => effect.removed.push(taken),
            None => return Ok(Err(NodeRefusal::NoItem)),
        },
        NodeEdit::Purge => effect.is_purged = true,
        NodeEdit::Create(_) | NodeEdit::Configure(_) | NodeEdit::Delete => {}
    }
    if let Some(found) = found.filter(|_| !effect.is_purged) {
        let room = u64::from(node.config.max_items).saturating_sub(u64::from(effect.is_kept));
        let left = found.items.saturating_sub(effect.removed.len() as u64);
        let replaced = effect.removed.first().map_or(-1, |taken| taken.revision);
        effect.removed.extend(rows.oldest(found.id, replaced, left.saturating_sub(room))?);
    }
    Ok(Ok(effect))
}

impl NodeEffect {
    /// Bytes of the node afterwards.
    pub(crate) fn bytes(&self, node: &Node, found: Option<&FoundNode>) -> u64 {
        let name = node.name.len() as u64;
        let kept = if self.is_purged { name } else { found.map_or(name, |found| found.bytes) };
        let removed: u64 = self.removed.iter().map(|taken| taken.bytes).sum();
        let own = self.item.as_ref().filter(|_| self.is_kept);
        kept.saturating_sub(removed) + own.map_or(0, |item| (item.payload.len() + item.id.len()) as u64)
    }

    /// Items of the node afterwards.
    pub(crate) fn items(&self, found: Option<&FoundNode>) -> u64 {
        let kept = found.filter(|_| !self.is_purged).map_or(0, |found| found.items);
        kept.saturating_sub(self.removed.len() as u64) + u64::from(self.is_kept)
    }
}
