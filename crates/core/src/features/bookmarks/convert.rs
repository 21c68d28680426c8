//! From lists to items: what a client stores, and what was stored before there was a conversion.
//!
//! Everything that an account has of bookmarks is read, then its edits are written together, a hundred in a commit: what stands in the items is right whenever it
//! stops in between, because a list that is left over only adds to them when bookmarks are read the next time.

use super::xml::{Bookmark, LIST, List, NODE};
use crate::command::{NoRoom, Refusal};
use crate::error::{StanzaError, store_unavailable};
use crate::message::AccountMessage;
use crate::model::{
    ConfigChange, DomainId, Item, ItemsFrom, Map, NodeEdit, NodeRefusal, SendLast, TopicConfig,
};
use crate::ports::store::nodes::{EditNodes, NodeItems};
use crate::ports::store::private::{PrivateElement, ReadPrivate, StorePrivate, StorePrivateAnswer};
use crate::ports::{Fault, Missing};
use crate::session::Cx;
use crate::session::home::node_edited;
use crate::session::homes::AtHome;
use crate::topic::xml::Terms;
use bytes::Bytes;
use carillon_wire::jid::BareJid;
use carillon_wire::stanza::{Condition, Payload};
use carillon_wire::xml::Element;
use std::sync::Arc;

/// Whose bookmarks.
#[derive(Clone, Debug)]
pub(super) struct Owner {
    /// The account's domain.
    pub(super) domain: DomainId,
    /// Its address.
    pub(super) account: BareJid,
    /// The part of it before `@`.
    local: Box<str>,
}

/// What follows, with the list as it is then.
pub(super) type Then = Box<dyn FnOnce(Result<List, StanzaError>, &mut Cx<'_>) + Send>;

/// What follows when something was written.
type Written = Box<dyn FnOnce(Result<(), StanzaError>, &mut Cx<'_>) + Send>;

/// What an account has.
struct Found {
    /// The list in private storage.
    private: Option<List>,
    /// The list on a node of its own.
    published: Option<List>,
    /// The items, newest first; none where there is no node of them.
    items: Option<Vec<Arc<Item>>>,
}

/// What is to be written so that the items say what a list says.
struct Plan {
    /// The list as it is then.
    list: List,
    /// Edits of the node of the items.
    edits: Vec<NodeEdit>,
    /// Whether what a list has besides is to be kept in private storage.
    is_kept: bool,
    /// Whether there is a node of the list.
    is_published: bool,
}

/// Makes one form of the two: lists of before become items. `wanted` takes the place of all that there is.
pub(super) fn settle(owner: Owner, wanted: Option<List>, then: Then, cx: &mut Cx<'_>) {
    let (domain, local) = (owner.domain, owner.local());
    let private = ReadPrivate { domain, local, name: "storage".into(), ns: LIST.into() };
    cx.ask(private, move |private, _, cx| {
        let private = match private {
            Ok(Ok(private)) => private.and_then(|xml| Element::parse(&xml, "").ok()),
            Ok(Err(Missing)) => return then(Err(StanzaError::new(Condition::ItemNotFound)), cx),
            Err(_) => return then(Err(store_unavailable()), cx),
        };
        let published = owner.items(LIST, cx);
        cx.ask(published, move |published, _, cx| {
            let Ok(published) = published else { return then(Err(store_unavailable()), cx) };
            let items = owner.items(NODE, cx);
            cx.ask(items, move |items, _, cx| {
                let Ok(items) = items else { return then(Err(store_unavailable()), cx) };
                let storage = |items: Vec<Arc<Item>>| {
                    let newest = items.first().and_then(|item| Element::parse(&item.payload, "").ok());
                    newest.map_or(List::default(), |storage| List::of(&storage))
                };
                let private = private.map(|storage| List::of(&storage));
                let found = Found { private, published: published.map(storage), items };
                write(owner, found.plan(wanted, cx), then, cx);
            });
        });
    });
}

impl Owner {
    /// The account at this home.
    pub(super) fn of(home: &AtHome<'_>) -> Owner {
        Owner { domain: home.domain, account: home.account.clone(), local: home.local.into() }
    }

    /// The account's local part.
    pub(super) fn local(&self) -> Box<str> {
        self.local.clone()
    }

    /// All items of a node: an account has no more than it may keep.
    fn items(&self, node: &str, cx: &Cx<'_>) -> NodeItems {
        let bounds = cx.shard.settings.limits.nodes;
        NodeItems {
            domain: self.domain,
            local: self.local(),
            node: node.into(),
            ids: Vec::new(),
            from: ItemsFrom::Newest,
            max: bounds.items,
            bytes_max: usize::try_from(bounds.bytes).unwrap_or(usize::MAX),
        }
    }
}

impl Found {
    fn plan(self, wanted: Option<List>, cx: &Cx<'_>) -> Plan {
        let items = self.items.as_deref().unwrap_or_default();
        let read = |item: &Arc<Item>| {
            let payload = Element::parse(&item.payload, "").ok()?;
            Some((Bookmark::of_item(&item.id, &payload)?, payload))
        };
        let kept: Vec<(Bookmark, Element)> = items.iter().rev().filter_map(read).collect();
        let has_old =
            [&self.private, &self.published].into_iter().flatten().any(|old| !old.bookmarks.is_empty());
        let is_replaced = wanted.is_some();
        let list = wanted.unwrap_or_else(|| {
            let bookmarks = kept.iter().map(|(bookmark, _)| bookmark.clone()).collect();
            let mut list = List { bookmarks, rest: Vec::new() };
            [self.private, self.published.clone()].into_iter().flatten().for_each(|old| list.adopt(old));
            list
        });
        let is_published = self.published.is_some();
        let is_kept = is_replaced || has_old || is_published;
        let edits = if is_kept { edits(&kept, &list, self.items.is_some(), cx) } else { Vec::new() };
        Plan { list, edits, is_kept, is_published }
    }
}

/// What makes the items say what the list says; one that says it already stays as it is.
fn edits(kept: &[(Bookmark, Element)], list: &List, has_node: bool, cx: &Cx<'_>) -> Vec<NodeEdit> {
    let was: Map<&str, &(Bookmark, Element)> = kept.iter().map(|known| (&*known.0.room, known)).collect();
    let rooms: Map<&str, ()> = list.bookmarks.iter().map(|bookmark| (&*bookmark.room, ())).collect();
    let gone = kept.iter().filter(|(bookmark, _)| !rooms.contains_key(&*bookmark.room));
    let mut edits: Vec<NodeEdit> =
        gone.map(|(bookmark, _)| NodeEdit::Retract(bookmark.room.clone())).collect();
    let max_items = cx.shard.settings.limits.nodes.items;
    if has_node && list.bookmarks.iter().any(|bookmark| !was.contains_key(&*bookmark.room)) {
        // A client that did not say so made a node for one item.
        let room = ConfigChange { max_items: Some(max_items), ..ConfigChange::default() };
        edits.push(NodeEdit::Configure(room));
    }
    let default = TopicConfig {
        max_items,
        send_last_published_item: SendLast::Never,
        ..Terms::of_account(&cx.shard.settings.limits).default_of(NODE)
    };
    for bookmark in &list.bookmarks {
        let was = was.get(&*bookmark.room);
        if was.is_none_or(|(was, _)| was != bookmark) {
            let mut payload = Vec::with_capacity(256);
            bookmark.to_item(was.map(|(_, payload)| payload)).write(&mut payload, "");
            let (id, payload) = (bookmark.room.clone(), Bytes::from(payload));
            let options = ConfigChange::default();
            edits.push(NodeEdit::Publish { id, payload, options, default: default.clone() });
        }
    }
    edits
}

/// Writes the items, then what is kept besides, and removes the list that was published.
fn write(owner: Owner, plan: Plan, then: Then, cx: &mut Cx<'_>) {
    let Plan { list, edits, is_kept, is_published } = plan;
    let after_edits = {
        let owner = owner.clone();
        move |done: Result<(), StanzaError>, cx: &mut Cx<'_>| match done {
            Ok(()) if is_kept => keep(owner, list, is_published, then, cx),
            done => then(done.map(|()| list), cx),
        }
    };
    edit(owner, NODE, edits, Box::new(after_edits), cx);
}

/// Keeps what a list has besides rooms.
fn keep(owner: Owner, list: List, is_published: bool, then: Then, cx: &mut Cx<'_>) {
    let xml = match list.rest.is_empty() {
        true => Bytes::new(),
        false => Payload::from_element(&list.to_rest()).bytes().clone(),
    };
    let elements = vec![PrivateElement { name: "storage".into(), ns: LIST.into(), xml }];
    let bytes_max = cx.shard.settings.limits.private_bytes;
    let question = StorePrivate { domain: owner.domain, local: owner.local(), elements, bytes_max };
    cx.ask(question, move |answer, _, cx| {
        match answer {
            Ok(StorePrivateAnswer::Stored) => {}
            Ok(StorePrivateAnswer::Full) => {
                let text = "your private storage is full";
                return then(Err(StanzaError::new(Condition::ResourceConstraint).with_text(text)), cx);
            }
            Ok(StorePrivateAnswer::NoAccount) => {
                return then(Err(StanzaError::new(Condition::ItemNotFound)), cx);
            }
            Err(_) => return then(Err(store_unavailable()), cx),
        }
        let gone: Vec<NodeEdit> = is_published.then_some(NodeEdit::Delete).into_iter().collect();
        let done = move |done: Result<(), StanzaError>, cx: &mut Cx<'_>| then(done.map(|()| list), cx);
        edit(owner, LIST, gone, Box::new(done), cx);
    });
}

/// Makes edits, as many in a commit as one may have.
fn edit(owner: Owner, node: &'static str, mut edits: Vec<NodeEdit>, then: Written, cx: &mut Cx<'_>) {
    if edits.is_empty() {
        return then(Ok(()), cx);
    }
    let rest = edits.split_off(edits.len().min(EditNodes::EDITS_MAX));
    let question = EditNodes {
        domain: owner.domain,
        local: owner.local(),
        node: node.into(),
        edits: edits.clone(),
        bounds: cx.shard.settings.limits.nodes,
        now: cx.now.unix,
    };
    cx.ask(question, move |answer, _, cx| {
        let done = match answer {
            Ok(done) => done,
            Err(fault) => {
                if fault == Fault::Unknown {
                    cx.tell_account(owner.account, AccountMessage::Reload);
                }
                return then(Err(store_unavailable()), cx);
            }
        };
        for (place, change) in done.changes {
            if let Some(edit) = edits.get(place as usize) {
                node_edited(&Arc::new(change), edit, owner.account.clone(), cx);
            }
        }
        match done.refusal {
            Some(refusal) => then(Err(refused(refusal)), cx),
            None => edit(owner, node, rest, then, cx),
        }
    });
}

fn refused(refusal: NodeRefusal) -> StanzaError {
    let refusal = match refusal {
        NodeRefusal::TooManyNodes => Refusal::NoRoom(NoRoom::Nodes),
        NodeRefusal::TooManyBytes => Refusal::NoRoom(NoRoom::NodeBytes),
        NodeRefusal::NoAccount | NodeRefusal::NoNode | NodeRefusal::NoItem => Refusal::NotFound,
        NodeRefusal::Exists => Refusal::Exists,
        NodeRefusal::Unmet(fields) => Refusal::PreconditionNotMet(fields),
    };
    StanzaError::from(refusal)
}
