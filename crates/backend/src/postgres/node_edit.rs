//! Editing the nodes of accounts.

use super::column::{int, number, short, uint};
use super::error::{Error, Result};
use super::node_items::node;
use super::transaction::Transaction;
use crate::rows::node::{self as edits, FoundNode, NodeEffect, NodeOwner, NodeRows, RemovedItem};
use carillon_core::model::*;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::nodes::{EditNode, EditNodes, EditNodesAnswer};
use carillon_wire::jid::BareJid;
use tokio_postgres::Row;

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
        let row = self.db.opt(
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
        let owner = NodeOwner { id, jid, record, nodes: number(&row, 2)?, bytes: uint(&row, 3)? };
        let found = match row.try_get::<_, Option<i64>>(5)? {
            Some(id) => Some(FoundNode {
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

    fn named(&self, node: i64, id: &str) -> Result<Option<RemovedItem>> {
        let sql = "SELECT revision, octet_length(id) + length(payload)::bigint FROM account_node_item
            WHERE node = $1 AND hashtextextended(id, 0) = hashtextextended($2, 0) AND id = $2";
        self.db.opt(sql, &[&node, &id])?.as_ref().map(taken).transpose()
    }

    fn oldest(&self, node: i64, removed: i64, count: u64) -> Result<Vec<RemovedItem>> {
        if count == 0 {
            return Ok(Vec::new());
        }
        let sql = "SELECT revision, octet_length(id) + length(payload)::bigint FROM account_node_item
            WHERE node = $1 AND revision <> $2 ORDER BY revision LIMIT $3";
        self.db.query(sql, &[&node, &removed, &int(count)])?.iter().map(taken).collect()
    }

    fn write(&self, account: i64, found: Option<&FoundNode>, node: &Node, effect: &NodeEffect) -> Result<()> {
        if let Some(found) = found {
            if effect.is_purged {
                self.run("DELETE FROM account_node_item WHERE node = $1", &[&found.id])?;
            }
            if !effect.removed.is_empty() {
                let gone: Vec<i64> = effect.removed.iter().map(|taken| taken.revision).collect();
                let sql = "DELETE FROM account_node_item WHERE node = $1 AND revision = ANY ($2::bigint[])";
                self.run(sql, &[&found.id, &gone])?;
            }
        }
        let revision =
            effect.item.as_ref().map_or(found.map_or(0, |found| found.revision), |item| item.revision.0);
        let config = &node.config;
        let new = effect.item.as_ref().filter(|_| effect.is_kept);
        self.run(
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

    fn remove(&self, node: i64) -> Result<()> {
        self.run("DELETE FROM account_node_item WHERE node = $1", &[&node])?;
        self.run("DELETE FROM account_node WHERE id = $1", &[&node])?;
        Ok(())
    }

    fn write_owner(&self, account: i64, record: Generation, nodes: u32, bytes: u64) -> Result<()> {
        self.run(
            "UPDATE account SET record = $2, nodes = $3, node_bytes = $4 WHERE id = $1",
            &[&account, &int(record.0), &i64::from(nodes), &int(bytes)],
        )?;
        Ok(())
    }
}

fn taken(row: &Row) -> Result<RemovedItem> {
    Ok(RemovedItem { revision: row.try_get(0)?, bytes: uint(row, 1)? })
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
