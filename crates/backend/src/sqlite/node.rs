//! The nodes of accounts, and their items.

use super::column::{blob, corrupt, int, ms, text, uint};
use super::snapshot::Snapshot;
use super::topic::{CONFIG, config};
use super::transaction::Transaction;
use super::{blocking, lookup};
use crate::rows::code::Code;
use crate::rows::node::{self as edits, FoundNode, NodeEffect, NodeOwner, NodeRows, RemovedItem};
use bytes::Bytes;
use carillon_core::model::*;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::items::ItemNamesAnswer;
use carillon_core::ports::store::nodes::{
    EditNode, EditNodes, EditNodesAnswer, LastNodeItems, LastNodeItemsAnswer, NodeItemNames, NodeItems,
};
use carillon_wire::jid::BareJid;
use rusqlite::{Connection, Error, OptionalExtension, Result, Row, params};
use std::sync::Arc;

/// The node in the columns from `first`.
pub(super) fn node(row: &Row<'_>, first: usize) -> Result<Node> {
    Ok(Node { name: text(row, first)?, created: ms(row, first + 1)?, config: config(row, first + 2)? })
}

impl Answers<NodeItems, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &NodeItems) -> Result<Option<Vec<Arc<Item>>>> {
        let Some(id) = find(self.db, asked.domain, &asked.local, &asked.node)? else { return Ok(None) };
        let kept = kept(self.db, id)?;
        let Some(page) = page_of(&kept, &asked.ids, &asked.from, asked.max, asked.bytes_max) else {
            return Ok(None);
        };
        let name: Arc<str> = (*asked.node).into();
        let items = page.into_iter().map(|kept| read(self.db, asked.domain, &name, id, kept));
        items.collect::<Result<_>>().map(Some)
    }
}

impl Answers<NodeItemNames, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &NodeItemNames) -> Result<Option<ItemNamesAnswer>> {
        let Some(id) = find(self.db, asked.domain, &asked.local, &asked.node)? else { return Ok(None) };
        let kept = kept(self.db, id)?;
        let page = page_of(&kept, &[], &asked.from, asked.max, usize::MAX);
        Ok(page.map(|page| ItemNamesAnswer {
            ids: page.into_iter().map(|kept| kept.id.clone()).collect(),
            count: kept.len() as u32,
        }))
    }
}

impl Answers<LastNodeItems, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &LastNodeItems) -> Result<LastNodeItemsAnswer> {
        let mut answer = LastNodeItemsAnswer::default();
        let mut bytes = 0;
        for (place, (domain, local)) in asked.of.iter().enumerate() {
            if place > 0 && bytes > asked.bytes_max {
                break;
            }
            answer.accounts += 1;
            for (id, node) in told(self.db, *domain, local, asked)? {
                let Some(kept) = newest(self.db, id)? else { continue };
                bytes += kept.bytes;
                let item = read(self.db, *domain, &(*node.name).into(), id, &kept)?;
                answer.items.push((place as u32, item.shown(&node.config)));
            }
        }
        Ok(answer)
    }
}

/// The nodes of an account whose last items are given to this reader.
fn told(db: &Connection, domain: DomainId, local: &str, asked: &LastNodeItems) -> Result<Vec<(i64, Node)>> {
    let Some(account) = lookup::account(db, domain, local)? else { return Ok(Vec::new()) };
    let sql =
        format!("SELECT id, name, created, {CONFIG} FROM account_node WHERE account = ?1 ORDER BY name");
    let mut query = db.prepare_cached(&sql)?;
    let nodes = query.query_map([int(account.0)], |row| Ok((row.get(0)?, node(row, 1)?)))?;
    let is_given = |node: &Node| {
        node.config.send_last_published_item == SendLast::OnSubAndPresence && asked.nodes.contains(&node.name)
    };
    let nodes = nodes.filter(|node| node.as_ref().map_or(true, |(_, node)| is_given(node)));
    let nodes: Vec<(i64, Node)> = nodes.collect::<Result<_>>()?;
    if nodes.is_empty() {
        return Ok(Vec::new());
    }
    let is_own = asked.reader.local() == Some(local)
        && lookup::domain_name(db, domain)?.is_some_and(|name| *name == *asked.reader.domain());
    let reader =
        if is_own { Some(Reader::Owner) } else { other(db, account, &asked.reader, asked.by_lists)? };
    let told = nodes
        .into_iter()
        .filter(|(_, node)| reader.is_some_and(|reader| node.config.access_model.tells(reader)));
    Ok(told.collect())
}

/// Who another account is to this one; none whom it blocks.
fn other(db: &Connection, account: AccountId, reader: &BareJid, by_lists: bool) -> Result<Option<Reader>> {
    if blocking::shuns(db, account, reader, by_lists)? {
        return Ok(None);
    }
    let sql = "SELECT standing FROM contact WHERE account = ?1 AND jid = ?2";
    let mut query = db.prepare_cached(sql)?;
    let standing = query.query_row(params![int(account.0), reader.as_str()], |row| row.get(0)).optional()?;
    Ok(Some(Reader::Other(standing.map(Standing::of_bits).unwrap_or_default())))
}

/// The newest item of a node, without its payload.
fn newest(db: &Connection, node: i64) -> Result<Option<Kept>> {
    let sql = "SELECT revision, id, length(payload) FROM account_node_item WHERE node = ?1
        ORDER BY revision DESC LIMIT 1";
    db.prepare_cached(sql)?.query_row([node], kept_in).optional()
}

fn find(db: &Connection, domain: DomainId, local: &str, name: &str) -> Result<Option<i64>> {
    let sql = "SELECT n.id FROM account CROSS JOIN account_node n ON n.account = account.id AND name = ?3
        WHERE domain = ?1 AND local = ?2";
    db.prepare_cached(sql)?.query_row(params![domain.0, local, name], |row| row.get(0)).optional()
}

/// The items of a node, newest first, without their payloads.
fn kept(db: &Connection, node: i64) -> Result<Vec<Kept>> {
    let sql =
        "SELECT revision, id, length(payload) FROM account_node_item WHERE node = ?1 ORDER BY revision DESC";
    db.prepare_cached(sql)?.query_map([node], kept_in)?.collect()
}

fn kept_in(row: &Row<'_>) -> Result<Kept> {
    Ok(Kept { revision: Revision(uint(row, 0)?), id: text(row, 1)?, bytes: uint(row, 2)? as usize })
}

fn read(db: &Connection, domain: DomainId, name: &Arc<str>, node: i64, kept: &Kept) -> Result<Arc<Item>> {
    let sql = "SELECT published, payload FROM account_node_item WHERE node = ?1 AND revision = ?2";
    db.prepare_cached(sql)?.query_row(params![node, int(kept.revision.0)], |row| {
        Ok(Arc::new(Item {
            topic: TopicId::default(),
            domain,
            name: name.clone(),
            id: kept.id.clone(),
            publisher: None,
            published: ms(row, 0)?,
            payload: Bytes::copy_from_slice(blob(row, 1)?),
            revision: kept.revision,
        }))
    })
}

impl Answers<EditNode, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &EditNode) -> Result<std::result::Result<Box<NodeChange>, NodeRefusal>> {
        edits::edit(self, asked)
    }
}

impl Answers<EditNodes, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &EditNodes) -> Result<EditNodesAnswer> {
        asked.each(|edit| self.answer(edit))
    }
}

impl NodeRows for Transaction<'_> {
    type Error = Error;

    fn find(&self, asked: &EditNode) -> Result<Option<(NodeOwner, Option<FoundNode>)>> {
        let sql = "SELECT id, record, nodes, node_bytes FROM account WHERE domain = ?1 AND local = ?2";
        let owner = |row: &Row<'_>| Ok((row.get(0)?, Generation(uint(row, 1)?), row.get(2)?, uint(row, 3)?));
        let mut query = self.db.prepare_cached(sql)?;
        let owner = query.query_row(params![asked.domain.0, asked.local], owner).optional()?;
        let (Some((id, record, nodes, bytes)), Some(domain)) =
            (owner, lookup::domain_name(self.db, asked.domain)?)
        else {
            return Ok(None);
        };
        let jid = BareJid::from_parts(Some(&asked.local), &domain);
        let jid = jid.map_err(|_| corrupt(0, "not an address"))?;
        let found = found_of(self.db, id, &asked.node)?;
        Ok(Some((NodeOwner { id, jid, record, nodes, bytes }, found)))
    }

    fn named(&self, node: i64, id: &str) -> Result<Option<RemovedItem>> {
        let sql = "SELECT revision, length(CAST(id AS BLOB)) + length(payload) FROM account_node_item
            WHERE node = ?1 AND id = ?2";
        self.db.prepare_cached(sql)?.query_row(params![node, id], taken).optional()
    }

    fn oldest(&self, node: i64, removed: i64, count: u64) -> Result<Vec<RemovedItem>> {
        if count == 0 {
            return Ok(Vec::new());
        }
        let sql = "SELECT revision, length(CAST(id AS BLOB)) + length(payload) FROM account_node_item
            WHERE node = ?1 AND revision <> ?2 ORDER BY revision LIMIT ?3";
        self.db.prepare_cached(sql)?.query_map(params![node, removed, int(count)], taken)?.collect()
    }

    fn write(&self, account: i64, found: Option<&FoundNode>, node: &Node, effect: &NodeEffect) -> Result<()> {
        let revision =
            effect.item.as_ref().map_or(found.map_or(0, |found| found.revision), |item| item.revision.0);
        let config = &node.config;
        let sql = "INSERT INTO account_node (account, name, created, revision, bytes, title, access_model, publish_model, max_items,
                 persist_items, send_last, notify_retract, notify_delete, deliver_payloads, items)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)
             ON CONFLICT (account, name) DO UPDATE SET revision = ?4, bytes = ?5, title = ?6, access_model = ?7, publish_model = ?8,
                 max_items = ?9, persist_items = ?10, send_last = ?11, notify_retract = ?12, notify_delete = ?13, deliver_payloads = ?14,
                 items = ?15
             RETURNING id";
        let row = params![
            account,
            node.name,
            int(node.created.0),
            int(revision),
            int(effect.bytes(node, found)),
            config.title,
            config.access_model.code(),
            config.publish_model.code(),
            config.max_items,
            config.persist_items,
            config.send_last_published_item.code(),
            config.notify_retract,
            config.notify_delete,
            config.deliver_payloads,
            int(effect.items(found))
        ];
        let id: i64 = self.db.prepare_cached(sql)?.query_row(row, |row| row.get(0))?;
        if effect.is_purged {
            self.run("DELETE FROM account_node_item WHERE node = ?1", [id])?;
        }
        for taken in &effect.removed {
            let sql = "DELETE FROM account_node_item WHERE node = ?1 AND revision = ?2";
            self.run(sql, params![id, taken.revision])?;
        }
        if let Some(item) = effect.item.as_ref().filter(|_| effect.is_kept) {
            self.run(
                "INSERT INTO account_node_item (node, revision, id, published, payload) VALUES (?1, ?2, ?3, ?4, ?5)",
                params![id, int(item.revision.0), item.id, int(item.published.0), &item.payload[..]],
            )?;
        }
        Ok(())
    }

    fn remove(&self, node: i64) -> Result<()> {
        self.run("DELETE FROM account_node_item WHERE node = ?1", [node])?;
        self.run("DELETE FROM account_node WHERE id = ?1", [node])?;
        Ok(())
    }

    fn write_owner(&self, account: i64, record: Generation, nodes: u32, bytes: u64) -> Result<()> {
        self.run(
            "UPDATE account SET record = ?2, nodes = ?3, node_bytes = ?4 WHERE id = ?1",
            params![account, int(record.0), nodes, int(bytes)],
        )?;
        Ok(())
    }
}

fn found_of(db: &Connection, account: i64, name: &str) -> Result<Option<FoundNode>> {
    let sql = format!(
        "SELECT id, revision, bytes, items, name, created, {CONFIG} FROM account_node WHERE account = ?1 AND name = ?2"
    );
    let found = |row: &Row<'_>| {
        let (bytes, items) = (uint(row, 2)?, uint(row, 3)?);
        Ok(FoundNode { id: row.get(0)?, revision: uint(row, 1)?, bytes, items, node: node(row, 4)? })
    };
    db.prepare_cached(&sql)?.query_row(params![account, name], found).optional()
}

fn taken(row: &Row<'_>) -> Result<RemovedItem> {
    Ok(RemovedItem { revision: row.get(0)?, bytes: uint(row, 1)? })
}
