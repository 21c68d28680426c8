//! The nodes of accounts (XEP-0163): what an account publishes under its own address.
//!
//! What an edit makes of a node is decided here, once, so that every store decides by the same rules, in the commit that does it.

use super::{Access, ConfigChange, Fields, Generation, Item, ItemsFrom, Revision, TopicConfig, UnixMs};
use bytes::Bytes;
use carillon_wire::jid::BareJid;
use std::sync::Arc;

/// A node of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name: 1 to 1023 bytes of any text.
    pub name: Box<str>,
    /// How it behaves. Only its owner publishes to it.
    pub config: TopicConfig,
    /// When it was created.
    pub created: UnixMs,
}

crate::form! { struct Node { name, config, created } }

impl TopicConfig {
    /// How a node of an account of this name behaves of which nothing is said (XEP-0163 §7.1.3).
    pub fn of_node(name: &str) -> TopicConfig {
        let access_model = if PRIVATE.contains(&name) { Access::Whitelist } else { Access::Presence };
        TopicConfig { access_model, ..TopicConfig::default() }
    }
}

/// Nodes of accounts that nobody else may read unless their owner says so, whatever contacts may read of others: bookmarks (XEP-0402,
/// XEP-0048), which tell where somebody is, and with which passwords.
const PRIVATE: &[&str] = &["urn:xmpp:bookmarks:1", "storage:bookmarks"];

/// What an account does with one of its nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeEdit {
    /// It is created.
    Create(TopicConfig),
    /// An item is published. A node that is not there is created with `default` as `options` change it; one that is there must have these
    /// values (XEP-0060 §7.1.5).
    Publish {
        /// The item's id.
        id: Box<str>,
        /// Its payload.
        payload: Bytes,
        /// What the node must be like.
        options: ConfigChange,
        /// What it is like where nothing is said.
        default: TopicConfig,
    },
    /// It is configured.
    Configure(ConfigChange),
    /// An item is removed.
    Retract(Box<str>),
    /// All items are removed.
    Purge,
    /// It is removed, with its items.
    Delete,
}

/// What became of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeChange {
    /// The account.
    pub account: BareJid,
    /// The generation of its record before.
    pub before: Generation,
    /// The generation afterwards: the same as before where only items changed.
    pub after: Generation,
    /// What the node was.
    pub was: Option<Node>,
    /// What it is.
    pub is: Option<Node>,
    /// The item that was published.
    pub item: Option<Arc<Item>>,
}

crate::form! { struct NodeChange { account, before, after, was, is, item } }

/// Why an edit was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeRefusal {
    /// There is no such account.
    NoAccount,
    /// There is no such node.
    NoNode,
    /// There is no such item.
    NoItem,
    /// There is such a node.
    Exists,
    /// The node is not like that: these fields have other values.
    Unmet(Fields),
    /// The account has as many nodes as it may.
    TooManyNodes,
    /// Its items would take too many bytes.
    TooManyBytes,
}

/// How much an account may keep in its nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeBounds {
    /// Nodes.
    pub nodes: u32,
    /// Items per node.
    pub items: u32,
    /// Bytes of the payloads and ids of all items, and of the names of nodes.
    pub bytes: u64,
}

impl NodeEdit {
    /// The configuration that this edit leaves a node with, none where it is removed. `was`: the one that it has; `nodes`: how many the account has.
    ///
    /// # Errors
    /// Why the edit is not to be made.
    pub fn configures(
        &self,
        was: Option<&TopicConfig>,
        nodes: u32,
        bounds: NodeBounds,
    ) -> Result<Option<TopicConfig>, NodeRefusal> {
        let room = if nodes < bounds.nodes { Ok(()) } else { Err(NodeRefusal::TooManyNodes) };
        match (self, was) {
            (NodeEdit::Create(_), Some(_)) => Err(NodeRefusal::Exists),
            (NodeEdit::Create(config), None) => room.map(|()| Some(config.clone())),
            (NodeEdit::Publish { options, .. }, Some(was)) => {
                options.check_met_by(was).map_err(NodeRefusal::Unmet)?;
                Ok(Some(was.clone()))
            }
            (NodeEdit::Publish { options, default, .. }, None) => room.map(|()| Some(options.apply(default))),
            (_, None) => Err(NodeRefusal::NoNode),
            (NodeEdit::Configure(change), Some(was)) => Ok(Some(change.apply(was))),
            (NodeEdit::Retract(_) | NodeEdit::Purge, Some(was)) => Ok(Some(was.clone())),
            (NodeEdit::Delete, Some(_)) => Ok(None),
        }
    }

    /// Bytes that it takes in memory, as far as a client chose them.
    pub fn bytes(&self) -> usize {
        match self {
            NodeEdit::Publish { id, payload, .. } => id.len() + payload.len(),
            NodeEdit::Retract(id) => id.len(),
            NodeEdit::Create(_) | NodeEdit::Configure(_) | NodeEdit::Purge | NodeEdit::Delete => 0,
        }
    }
}

impl NodeChange {
    /// Bytes that it takes in memory, as far as a client chose them.
    pub fn bytes(&self) -> usize {
        let names: usize = [&self.was, &self.is].into_iter().flatten().map(Node::bytes).sum();
        names + self.item.as_ref().map_or(0, |item| item.payload.len() + item.id.len())
    }
}

impl Node {
    /// Bytes that it takes beside its own size.
    pub fn bytes(&self) -> usize {
        self.name.len() + self.config.title.len()
    }
}

/// An item that a node keeps, without its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The revision that made it.
    pub revision: Revision,
    /// Its id.
    pub id: Box<str>,
    /// Bytes of its payload.
    pub bytes: usize,
}

/// Which of a node's items, newest first, a page has: those of `ids`, or if that is empty at most `max` from `from` on; none when the item
/// that `from` names is not there. No further one once the payloads have more than `bytes_max`; one always is.
pub fn page_of<'a>(
    kept: &'a [Kept],
    ids: &[Box<str>],
    from: &ItemsFrom,
    max: u32,
    bytes_max: usize,
) -> Option<Vec<&'a Kept>> {
    let place = |id: &str| kept.iter().position(|item| *item.id == *id);
    let max = max as usize;
    let (part, is_backward): (Vec<&Kept>, bool) = match from {
        _ if !ids.is_empty() => (kept.iter().filter(|item| ids.contains(&item.id)).collect(), false),
        ItemsFrom::Newest => (kept.iter().take(max).collect(), false),
        ItemsFrom::After(id) => (kept.iter().skip(place(id)? + 1).take(max).collect(), false),
        ItemsFrom::Before(id) => (kept.iter().take(place(id)?).rev().take(max).collect(), true),
        ItemsFrom::Oldest => (kept.iter().rev().take(max).collect(), true),
    };
    let mut bytes = 0;
    let fits = part.into_iter().enumerate().take_while(|(at, item)| {
        bytes += item.bytes;
        *at == 0 || bytes <= bytes_max
    });
    let mut page: Vec<&Kept> = fits.map(|(_, item)| item).collect();
    if is_backward {
        page.reverse();
    }
    Some(page)
}
