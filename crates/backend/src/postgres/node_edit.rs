//! Editing the nodes of accounts.

use super::column::{int, number, short, uint};
use super::connection::Connection;
use super::error::{Error, Result};
use super::node_items::node;
use super::transaction::Transaction;
use carillon_core::model::*;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::nodes::{EditNode, EditNodes, EditNodesAnswer};
use carillon_wire::jid::BareJid;
use std::sync::Arc;
use tokio_postgres::Row;

impl Answers<EditNode, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &EditNode) -> Result<std::result::Result<Box<NodeChange>, NodeRefusal>> {
        let Some((owner, found)) = owner(self.db, asked)? else { return Ok(Err(NodeRefusal::NoAccount)) };
        let was = found.as_ref().map(|found| found.node.clone());
        let config =
            match asked.edit.configures(was.as_ref().map(|node| &node.config), owner.nodes, asked.bounds) {
                Ok(config) => config,
                Err(refusal) => return Ok(Err(refusal)),
            };
        let created = was.as_ref().map_or(asked.now, |node| node.created);
        let is = config.map(|config| Node { name: asked.node.clone(), config, created });
        let others = owner.bytes.saturating_sub(found.as_ref().map_or(0, |found| found.bytes));
        let (mut item, mut bytes, mut nodes) = (None, others, owner.nodes);
        match (&is, &found) {
            (None, Some(found)) => {
                self.run("DELETE FROM account_node_item WHERE node = $1", &[&found.id])?;
                self.run("DELETE FROM account_node WHERE id = $1", &[&found.id])?;
                nodes = nodes.saturating_sub(1);
            }
            (Some(node), found) => {
                let effect = match effect(self.db, asked, node, found.as_ref())? {
                    Ok(effect) => effect,
                    Err(refusal) => return Ok(Err(refusal)),
                };
                bytes += effect.bytes(node, found.as_ref());
                if bytes > owner.bytes && bytes > asked.bounds.bytes {
                    return Ok(Err(NodeRefusal::TooManyBytes));
                }
                apply(self, owner.id, found.as_ref(), node, &effect)?;
                nodes += u32::from(found.is_none());
                item = effect.item;
            }
            (None, None) => {}
        }
        let before = owner.record;
        let after = Generation(before.0 + u64::from(was != is));
        if (after, nodes, bytes) != (before, owner.nodes, owner.bytes) {
            self.run(
                "UPDATE account SET record = $2, nodes = $3, node_bytes = $4 WHERE id = $1",
                &[&owner.id, &int(after.0), &i64::from(nodes), &int(bytes)],
            )?;
        }
        Ok(Ok(Box::new(NodeChange { account: owner.jid, before, after, was, is, item })))
    }
}

impl Answers<EditNodes, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &EditNodes) -> Result<EditNodesAnswer> {
        asked.each(|edit| self.answer(edit))
    }
}

/// A node as it was found.
struct Found {
    id: i64,
    node: Node,
    revision: u64,
    bytes: u64,
    items: u64,
}

/// An account whose node is edited.
struct Owner {
    id: i64,
    jid: BareJid,
    record: Generation,
    nodes: u32,
    bytes: u64,
}

/// What an edit does to the items of a node.
#[derive(Default)]
struct Effect {
    removed: Vec<Taken>,
    item: Option<Arc<Item>>,
    is_kept: bool,
    is_purged: bool,
}

/// An item that is removed.
struct Taken {
    revision: i64,
    /// Of its id and its payload.
    bytes: u64,
}

/// The account that an edit is about, and the node if it is there.
fn owner(db: &Connection, asked: &EditNode) -> Result<Option<(Owner, Option<Found>)>> {
    let row = db.opt(
        "SELECT a.id, a.record, a.nodes, a.node_bytes, d.name, n.id, n.revision, n.bytes, n.items, n.name, n.created,
             n.title, n.access_model, n.publish_model, n.max_items, n.persist_items, n.send_last, n.notify_retract,
             n.notify_delete, n.deliver_payloads
         FROM account a JOIN domain d ON d.id = a.domain LEFT JOIN account_node n ON n.account = a.id AND n.name = $3
         WHERE a.domain = $1 AND a.local = $2",
        &[&i64::from(asked.domain.0), &asked.local, &asked.node],
    )?;
    let Some(row) = row else { return Ok(None) };
    let jid = BareJid::from_parts(Some(&asked.local), row.try_get(4)?);
    let jid = jid.map_err(|_| Error::Corrupt("not an address"))?;
    let (id, record) = (row.try_get(0)?, Generation(uint(&row, 1)?));
    let owner = Owner { id, jid, record, nodes: number(&row, 2)?, bytes: uint(&row, 3)? };
    let found = match row.try_get::<_, Option<i64>>(5)? {
        Some(id) => Some(Found {
            id,
            revision: uint(&row, 6)?,
            bytes: uint(&row, 7)?,
            items: uint(&row, 8)?,
            node: node(&row, 9)?,
        }),
        None => None,
    };
    Ok(Some((owner, found)))
}

/// What an edit does to the items of a node, which is like this afterwards.
fn effect(
    db: &Connection,
    asked: &EditNode,
    node: &Node,
    found: Option<&Found>,
) -> Result<std::result::Result<Effect, NodeRefusal>> {
    let mut effect = Effect::default();
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
                effect.removed.extend(named(db, found.id, id)?);
            }
        }
        NodeEdit::Retract(id) => match found.map(|found| named(db, found.id, id)).transpose()?.flatten() {
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
        effect.removed.extend(oldest(db, found.id, replaced, left.saturating_sub(room))?);
    }
    Ok(Ok(effect))
}

impl Effect {
    /// Bytes of the node afterwards.
    fn bytes(&self, node: &Node, found: Option<&Found>) -> u64 {
        let name = node.name.len() as u64;
        let kept = if self.is_purged { name } else { found.map_or(name, |found| found.bytes) };
        let removed: u64 = self.removed.iter().map(|taken| taken.bytes).sum();
        let own = self.item.as_ref().filter(|_| self.is_kept);
        kept.saturating_sub(removed) + own.map_or(0, |item| (item.payload.len() + item.id.len()) as u64)
    }

    /// Items of the node afterwards.
    fn items(&self, found: Option<&Found>) -> u64 {
        let kept = found.filter(|_| !self.is_purged).map_or(0, |found| found.items);
        kept.saturating_sub(self.removed.len() as u64) + u64::from(self.is_kept)
    }
}

/// The item of this id, to be removed.
fn named(db: &Connection, node: i64, id: &str) -> Result<Option<Taken>> {
    let sql = "SELECT revision, octet_length(id) + length(payload)::bigint FROM account_node_item
        WHERE node = $1 AND hashtextextended(id, 0) = hashtextextended($2, 0) AND id = $2";
    db.opt(sql, &[&node, &id])?.as_ref().map(taken).transpose()
}

/// The oldest items, so many of them, but for one that is removed already.
fn oldest(db: &Connection, node: i64, removed: i64, count: u64) -> Result<Vec<Taken>> {
    if count == 0 {
        return Ok(Vec::new());
    }
    let sql = "SELECT revision, octet_length(id) + length(payload)::bigint FROM account_node_item
        WHERE node = $1 AND revision <> $2 ORDER BY revision LIMIT $3";
    db.query(sql, &[&node, &removed, &int(count)])?.iter().map(taken).collect()
}

fn taken(row: &Row) -> Result<Taken> {
    Ok(Taken { revision: row.try_get(0)?, bytes: uint(row, 1)? })
}

/// Writes a node as it is after an edit, with what that does to its items.
fn apply(
    write: &Transaction<'_>,
    account: i64,
    found: Option<&Found>,
    node: &Node,
    effect: &Effect,
) -> Result<()> {
    if let Some(found) = found {
        if effect.is_purged {
            write.run("DELETE FROM account_node_item WHERE node = $1", &[&found.id])?;
        }
        if !effect.removed.is_empty() {
            let gone: Vec<i64> = effect.removed.iter().map(|taken| taken.revision).collect();
            let sql = "DELETE FROM account_node_item WHERE node = $1 AND revision = ANY ($2::bigint[])";
            write.run(sql, &[&found.id, &gone])?;
        }
    }
    let revision =
        effect.item.as_ref().map_or(found.map_or(0, |found| found.revision), |item| item.revision.0);
    let config = &node.config;
    let new = effect.item.as_ref().filter(|_| effect.is_kept);
    write.run(
        APPLY,
        &[
            &account,
            &node.name,
            &int(node.created.0),
            &int(revision),
            &int(effect.bytes(node, found)),
            &&*config.title,
            &short(config.access_model),
            &short(config.publish_model),
            &i64::from(config.max_items),
            &config.persist_items,
            &short(config.send_last_published_item),
            &config.notify_retract,
            &config.notify_delete,
            &config.deliver_payloads,
            &int(effect.items(found)),
            &new.map(|item| &*item.id),
            &new.map(|item| int(item.published.0)),
            &new.map(|item| &item.payload[..]),
        ],
    )?;
    Ok(())
}

/// A node, and the item that made its revision where one is kept.
const APPLY: &str = "WITH written AS (
        INSERT INTO account_node (account, name, created, revision, bytes, title, access_model, publish_model, max_items,
            persist_items, send_last, notify_retract, notify_delete, deliver_payloads, items)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
        ON CONFLICT (account, name) DO UPDATE SET revision = $4, bytes = $5, title = $6, access_model = $7, publish_model = $8,
            max_items = $9, persist_items = $10, send_last = $11, notify_retract = $12, notify_delete = $13,
            deliver_payloads = $14, items = $15
        RETURNING id)
    INSERT INTO account_node_item (node, revision, id, published, payload)
    SELECT written.id, $4, $16::text, $17::bigint, $18::bytea FROM written WHERE $16::text IS NOT NULL";
