//! The nodes of accounts, and their items.

use super::column::{Code, blob, corrupt, int, ms, text, uint};
use super::snapshot::Snapshot;
use super::topic::{CONFIG, config};
use super::transaction::Transaction;
use super::{blocking, lookup};
use bytes::Bytes;
use carillon_core::model::*;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::items::ItemNamesAnswer;
use carillon_core::ports::store::nodes::{
    EditNode, LastNodeItems, LastNodeItemsAnswer, NodeItemNames, NodeItems,
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
            for (node, name) in told(self.db, *domain, local, asked)? {
                let Some(kept) = newest(self.db, node)? else { continue };
                bytes += kept.bytes;
                answer.items.push((place as u32, read(self.db, *domain, &(*name).into(), node, &kept)?));
            }
        }
        Ok(answer)
    }
}

/// The nodes of an account whose last items are given to this reader.
fn told(
    db: &Connection,
    domain: DomainId,
    local: &str,
    asked: &LastNodeItems,
) -> Result<Vec<(i64, Box<str>)>> {
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
    let reader = if is_own { Some(Reader::Owner) } else { other(db, account, &asked.reader)? };
    let told = nodes
        .into_iter()
        .filter(|(_, node)| reader.is_some_and(|reader| node.config.access_model.tells(reader)));
    Ok(told.map(|(id, node)| (id, node.name)).collect())
}

/// Who another account is to this one; none whom it blocks.
fn other(db: &Connection, account: AccountId, reader: &BareJid) -> Result<Option<Reader>> {
    if blocking::list(db, account)?.iter().any(|entry| is_covered(&reader.to_jid(), entry)) {
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

/// A node as it was found.
struct Found {
    id: i64,
    node: Node,
    revision: u64,
    bytes: u64,
}

/// What an edit does to the items of a node.
struct Effect {
    removed: Vec<Revision>,
    item: Option<Arc<Item>>,
    is_kept: bool,
    /// Bytes of the node afterwards.
    bytes: u64,
}

impl Answers<EditNode, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &EditNode) -> Result<std::result::Result<Box<NodeChange>, NodeRefusal>> {
        let sql = "SELECT id, record FROM account WHERE domain = ?1 AND local = ?2";
        let found = self.db.prepare_cached(sql)?.query_row(params![asked.domain.0, asked.local], |row| {
            Ok((row.get::<_, i64>(0)?, Generation(uint(row, 1)?)))
        });
        let (Some((account, before)), Some(domain)) =
            (found.optional()?, lookup::domain_name(self.db, asked.domain)?)
        else {
            return Ok(Err(NodeRefusal::NoAccount));
        };
        let found = found_of(self.db, account, &asked.node)?;
        let (nodes, used) = usage(self.db, account)?;
        let was = found.as_ref().map(|found| found.node.clone());
        let config = match asked.edit.configures(was.as_ref().map(|node| &node.config), nodes, asked.bounds) {
            Ok(config) => config,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let created = was.as_ref().map_or(asked.now, |node| node.created);
        let is = config.map(|config| Node { name: asked.node.clone(), config, created });
        let mut item = None;
        match (&is, &found) {
            (None, Some(found)) => {
                self.run("DELETE FROM account_node_item WHERE node = ?1", [found.id])?;
                self.run("DELETE FROM account_node WHERE id = ?1", [found.id])?;
            }
            (Some(node), found) => {
                let effect = match effect(self.db, asked, node, found.as_ref())? {
                    Ok(effect) => effect,
                    Err(refusal) => return Ok(Err(refusal)),
                };
                let uses = used - found.as_ref().map_or(0, |found| found.bytes) + effect.bytes;
                if uses > used && uses > asked.bounds.bytes {
                    return Ok(Err(NodeRefusal::TooManyBytes));
                }
                apply(self, account, found.as_ref(), node, &effect)?;
                item = effect.item;
            }
            (None, None) => {}
        }
        let after = Generation(before.0 + u64::from(was != is));
        if after != before {
            self.run("UPDATE account SET record = ?2 WHERE id = ?1", params![account, int(after.0)])?;
        }
        let account =
            BareJid::from_parts(Some(&asked.local), &domain).map_err(|_| corrupt(0, "not an address"))?;
        Ok(Ok(Box::new(NodeChange { account, before, after, was, is, item })))
    }
}

fn found_of(db: &Connection, account: i64, name: &str) -> Result<Option<Found>> {
    let sql = format!(
        "SELECT id, revision, bytes, name, created, {CONFIG} FROM account_node WHERE account = ?1 AND name = ?2"
    );
    let found = |row: &Row<'_>| {
        Ok(Found { id: row.get(0)?, revision: uint(row, 1)?, bytes: uint(row, 2)?, node: node(row, 3)? })
    };
    db.prepare_cached(&sql)?.query_row(params![account, name], found).optional()
}

/// How many nodes an account has, and the bytes of all.
fn usage(db: &Connection, account: i64) -> Result<(u32, u64)> {
    let sql = "SELECT count(*), coalesce(sum(bytes), 0) FROM account_node WHERE account = ?1";
    db.prepare_cached(sql)?.query_row([account], |row| Ok((row.get(0)?, uint(row, 1)?)))
}

/// What an edit does to the items of a node, which is like this afterwards.
fn effect(
    db: &Connection,
    asked: &EditNode,
    node: &Node,
    found: Option<&Found>,
) -> Result<std::result::Result<Effect, NodeRefusal>> {
    let kept = found.map_or(Ok(Vec::new()), |found| kept(db, found.id))?;
    let mut item = None;
    let mut removed: Vec<&Kept> = match &asked.edit {
        NodeEdit::Publish { id, payload, .. } => {
            let revision = Revision(found.map_or(0, |found| found.revision) + 1);
            item = Some(Arc::new(Item {
                topic: TopicId::default(),
                domain: asked.domain,
                name: (*asked.node).into(),
                id: id.clone(),
                publisher: None,
                published: asked.now,
                payload: payload.clone(),
                revision,
            }));
            kept.iter().filter(|kept| node.config.persist_items && kept.id == *id).collect()
        }
        NodeEdit::Retract(id) => {
            let Some(kept) = kept.iter().find(|kept| kept.id == *id) else {
                return Ok(Err(NodeRefusal::NoItem));
            };
            vec![kept]
        }
        NodeEdit::Purge => kept.iter().collect(),
        NodeEdit::Create(_) | NodeEdit::Configure(_) | NodeEdit::Delete => Vec::new(),
    };
    let is_kept = item.is_some() && node.config.persist_items;
    let left: Vec<&Kept> = kept.iter().filter(|kept| !removed.contains(kept)).collect();
    let room = (node.config.max_items as usize).saturating_sub(usize::from(is_kept));
    removed.extend(left.iter().skip(room));
    let bytes: usize = left.iter().take(room).map(|kept| kept.bytes + kept.id.len()).sum();
    let own = item.as_ref().filter(|_| is_kept).map_or(0, |item| item.payload.len() + item.id.len());
    let removed = removed.into_iter().map(|kept| kept.revision).collect();
    Ok(Ok(Effect { removed, item, is_kept, bytes: (node.name.len() + bytes + own) as u64 }))
}

fn apply(
    write: &Transaction<'_>,
    account: i64,
    found: Option<&Found>,
    node: &Node,
    effect: &Effect,
) -> Result<()> {
    let revision =
        effect.item.as_ref().map_or(found.map_or(0, |found| found.revision), |item| item.revision.0);
    let config = &node.config;
    let sql = "INSERT INTO account_node (account, name, created, revision, bytes, title, access_model, publish_model, max_items,
             persist_items, send_last, notify_retract, notify_delete)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
         ON CONFLICT (account, name) DO UPDATE SET revision = ?4, bytes = ?5, title = ?6, access_model = ?7, publish_model = ?8,
             max_items = ?9, persist_items = ?10, send_last = ?11, notify_retract = ?12, notify_delete = ?13
         RETURNING id";
    let row = params![
        account,
        node.name,
        int(node.created.0),
        int(revision),
        int(effect.bytes),
        config.title,
        config.access_model.code(),
        config.publish_model.code(),
        config.max_items,
        config.persist_items,
        config.send_last_published_item.code(),
        config.notify_retract,
        config.notify_delete
    ];
    let id: i64 = write.db.prepare_cached(sql)?.query_row(row, |row| row.get(0))?;
    for revision in &effect.removed {
        let sql = "DELETE FROM account_node_item WHERE node = ?1 AND revision = ?2";
        write.run(sql, params![id, int(revision.0)])?;
    }
    if let Some(item) = effect.item.as_ref().filter(|_| effect.is_kept) {
        write.run(
            "INSERT INTO account_node_item (node, revision, id, published, payload) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![id, int(item.revision.0), item.id, int(item.published.0), &item.payload[..]],
        )?;
    }
    Ok(())
}
