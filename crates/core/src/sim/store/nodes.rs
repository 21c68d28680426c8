//! The nodes of accounts.

use super::tables::HeldNode;
use super::{Committed, answers};
use crate::model::{
    Item, Kept, Node, NodeChange, NodeEdit, NodeRefusal, Reader, Revision, SendLast, TopicConfig, TopicId,
    page_of,
};
use crate::ports::store::items::ItemNamesAnswer;
use crate::ports::store::nodes::{
    EditNode, EditNodes, EditNodesAnswer, LastNodeItems, LastNodeItemsAnswer, NodeItemNames, NodeItems,
};
use std::sync::Arc;

answers! {
    NodeItems => items;
    NodeItemNames => names;
    LastNodeItems => last;
    EditNode => edit;
    EditNodes => edit_all;
}

fn items(store: &Committed, asked: &NodeItems) -> Option<Vec<Arc<Item>>> {
    let account = store.accounts.get(&store.account_id(asked.domain, &asked.local)?)?;
    let held = account.nodes.get(&asked.node)?;
    let kept = held.kept();
    let page = page_of(&kept, &asked.ids, &asked.from, asked.max, asked.bytes_max)?;
    Some(page.into_iter().filter_map(|kept| held.items.get(&kept.revision)).cloned().collect())
}

fn names(store: &Committed, asked: &NodeItemNames) -> Option<ItemNamesAnswer> {
    let account = store.accounts.get(&store.account_id(asked.domain, &asked.local)?)?;
    let kept = account.nodes.get(&asked.node)?.kept();
    let page = page_of(&kept, &[], &asked.from, asked.max, usize::MAX)?;
    let ids = page.into_iter().map(|kept| kept.id.clone()).collect();
    Some(ItemNamesAnswer { ids, count: kept.len() as u32 })
}

fn last(store: &Committed, asked: &LastNodeItems) -> LastNodeItemsAnswer {
    let mut answer = LastNodeItemsAnswer::default();
    let mut bytes = 0;
    for (place, (domain, local)) in asked.of.iter().enumerate() {
        if place > 0 && bytes > asked.bytes_max {
            break;
        }
        answer.accounts += 1;
        let Some(account) = store.account_id(*domain, local).and_then(|id| store.accounts.get(&id)) else {
            continue;
        };
        let standing = account.roster.get(&asked.reader).map(|contact| contact.standing);
        let reader = if account.jid == asked.reader {
            Reader::Owner
        } else {
            Reader::Other(standing.unwrap_or_default())
        };
        if account.shuns(&asked.reader, asked.by_lists) {
            continue;
        }
        for held in account.nodes.values().filter(|held| asked.nodes.contains(&held.node.name)) {
            let config = &held.node.config;
            let is_given = config.send_last_published_item == SendLast::OnSubAndPresence;
            if let Some((_, item)) =
                held.items.last_key_value().filter(|_| is_given && config.access_model.tells(reader))
            {
                bytes += item.payload.len();
                answer.items.push((place as u32, item.shown(config)));
            }
        }
    }
    answer
}

fn edit(store: &mut Committed, asked: &EditNode) -> Result<Box<NodeChange>, NodeRefusal> {
    let account = store.account_mut(asked.domain, &asked.local).ok_or(NodeRefusal::NoAccount)?;
    let was = account.nodes.get(&asked.node).map(|held| held.node.clone());
    let nodes = account.nodes.len() as u32;
    let config = asked.edit.configures(was.as_ref().map(|node| &node.config), nodes, asked.bounds)?;
    let created = was.as_ref().map_or(asked.now, |node| node.created);
    let is = config.map(|config| Node { name: asked.node.clone(), config, created });
    let (jid, before) = (account.jid.clone(), account.record);
    let used: u64 = account.nodes.values().map(HeldNode::bytes).sum();
    let mut item = None;
    match &is {
        None => drop(account.nodes.remove(&asked.node)),
        Some(node) => {
            let new =
                HeldNode { node: node.clone(), revision: Revision::default(), items: Default::default() };
            let mut held = account.nodes.get(&asked.node).cloned().unwrap_or(new);
            let others = used - if was.is_some() { held.bytes() } else { 0 };
            held.node = node.clone();
            item = held.change(asked)?;
            let uses = others + held.bytes();
            if uses > used && uses > asked.bounds.bytes {
                return Err(NodeRefusal::TooManyBytes);
            }
            account.nodes.insert(asked.node.clone(), held);
        }
    }
    if was != is {
        account.record.0 += 1;
    }
    Ok(Box::new(NodeChange { account: jid, before, after: account.record, was, is, item }))
}

fn edit_all(store: &mut Committed, asked: &EditNodes) -> EditNodesAnswer {
    let done: Result<EditNodesAnswer, std::convert::Infallible> = asked.each(|one| Ok(edit(store, one)));
    done.unwrap_or_else(|never| match never {})
}

impl HeldNode {
    /// Its items, newest first.
    fn kept(&self) -> Vec<Kept> {
        let kept = |(revision, item): (&Revision, &Arc<Item>)| Kept {
            revision: *revision,
            id: item.id.clone(),
            bytes: item.payload.len(),
        };
        self.items.iter().rev().map(kept).collect()
    }

    /// Bytes of its name and its items.
    fn bytes(&self) -> u64 {
        let items: usize = self.items.values().map(|item| item.payload.len() + item.id.len()).sum();
        (self.node.name.len() + items) as u64
    }

    /// Does to its items what the edit says.
    fn change(&mut self, asked: &EditNode) -> Result<Option<Arc<Item>>, NodeRefusal> {
        let mut item = None;
        match &asked.edit {
            NodeEdit::Publish { id, payload, .. } => {
                self.revision.0 += 1;
                let published = Arc::new(Item {
                    topic: TopicId::default(),
                    domain: asked.domain,
                    name: (*asked.node).into(),
                    id: id.clone(),
                    publisher: None,
                    published: asked.now,
                    payload: payload.clone(),
                    revision: self.revision,
                });
                if self.node.config.persist_items {
                    self.items.retain(|_, item| item.id != *id);
                    self.items.insert(self.revision, published.clone());
                }
                item = Some(published);
            }
            NodeEdit::Retract(id) => {
                let count = self.items.len();
                self.items.retain(|_, item| item.id != *id);
                if self.items.len() == count {
                    return Err(NodeRefusal::NoItem);
                }
            }
            NodeEdit::Purge => self.items.clear(),
            NodeEdit::Create(_) | NodeEdit::Configure(_) | NodeEdit::Delete => {}
        }
        let TopicConfig { max_items, .. } = self.node.config;
        while self.items.len() > max_items as usize {
            self.items.pop_first();
        }
        Ok(item)
    }
}
