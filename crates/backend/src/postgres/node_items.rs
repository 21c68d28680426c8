//! The nodes of accounts, and their items, as they are read: `node_edit` changes them.

use super::blocking;
use super::column::{blob, int, ms, opt_number, short, text, uint};
use super::connection::Connection;
use super::error::{Error, Result};
use super::snapshot::Snapshot;
use super::topic::config;
use bytes::Bytes;
use carillon_core::model::*;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::items::ItemNamesAnswer;
use carillon_core::ports::store::nodes::{LastNodeItems, LastNodeItemsAnswer, NodeItemNames, NodeItems};
use std::sync::Arc;
use tokio_postgres::Row;

/// The node in the columns from `first`.
pub(super) fn node(row: &Row, first: usize) -> Result<Node> {
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
        let wanted: Vec<Wanted<'_>> = page
            .into_iter()
            .map(|kept| Wanted { domain: asked.domain, node: id, name: &name, kept })
            .collect();
        read(self.db, &wanted).map(Some)
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
        let mut told = told(self.db, asked)?;
        let mut left = told.iter().peekable();
        let (mut accounts, mut given, mut bytes) = (0, 0, 0);
        while accounts < asked.of.len() && (accounts == 0 || bytes <= asked.bytes_max) {
            while let Some(last) = left.next_if(|last| last.place == accounts) {
                bytes += last.kept.bytes;
                given += 1;
            }
            accounts += 1;
        }
        told.truncate(given);
        let wanted = told.iter().map(|last| Wanted {
            domain: asked.of[last.place].0,
            node: last.id,
            name: &last.name,
            kept: &last.kept,
        });
        let items = read(self.db, &wanted.collect::<Vec<_>>())?;
        let items = told.iter().zip(items).map(|(last, item)| (last.place as u32, item.shown(&last.config)));
        Ok(LastNodeItemsAnswer { items: items.collect(), accounts: accounts as u32 })
    }
}

/// The last item of a node, without its payload.
struct Last {
    /// The place of the account among those that were asked for.
    place: usize,
    id: i64,
    name: Arc<str>,
    config: TopicConfig,
    kept: Kept,
}

/// The last items that this reader is told of all accounts that were asked for, in the order of these.
fn told(db: &Connection, asked: &LastNodeItems) -> Result<Vec<Last>> {
    let domains: Vec<i64> = asked.of.iter().map(|(domain, _)| domain.0.into()).collect();
    let locals: Vec<&str> = asked.of.iter().map(|(_, local)| &**local).collect();
    let rows = db.query(
        TOLD,
        &[
            &domains,
            &locals,
            &&asked.nodes[..],
            &short(SendLast::OnSubAndPresence),
            &asked.reader.as_str(),
            &asked.reader.domain(),
        ],
    )?;
    let mut told = Vec::new();
    for row in &rows {
        let Some(reader) = reader(row)? else { continue };
        if asked.by_lists
            && reader != Reader::Owner
            && blocking::shuns_by_lists(db, row.try_get(18)?, &asked.reader)?
        {
            continue;
        }
        let config = config(row, 9)?;
        if config.access_model.tells(reader) {
            let place: i64 = row.try_get(0)?;
            let place = usize::try_from(place - 1).map_err(|_| Error::Corrupt("no place"))?;
            let (id, name) = (row.try_get(1)?, text(row, 2)?.into());
            told.push(Last { place, id, name, config, kept: kept_in(row, 6)? });
        }
    }
    Ok(told)
}

/// Who reads a row of [`TOLD`]; nobody whom its account blocks.
fn reader(row: &Row) -> Result<Option<Reader>> {
    if row.try_get(3)? {
        return Ok(Some(Reader::Owner));
    }
    if row.try_get(4)? {
        return Ok(None);
    }
    let bits = opt_number(row, 5)?.unwrap_or_default();
    let bits = bits.try_into().map_err(|_| Error::Corrupt("no standing"))?;
    Ok(Some(Reader::Other(Standing::of_bits(bits))))
}

const TOLD: &str = "SELECT r.place, n.id, n.name, a.local || '@' || d.name = $5,
        EXISTS (SELECT 1 FROM blocked b WHERE b.account = a.id AND b.jid IN ($5, $6)
            AND hashtextextended(b.jid, 0) IN (hashtextextended($5, 0), hashtextextended($6, 0))), c.standing,
        i.revision, i.id, i.bytes, n.title, n.access_model, n.publish_model, n.max_items, n.persist_items, n.send_last,
        n.notify_retract, n.notify_delete, n.deliver_payloads, a.id
    FROM unnest($1::bigint[], $2::text[]) WITH ORDINALITY AS r (domain, local, place)
    JOIN account a ON a.domain = r.domain AND a.local = r.local
    JOIN domain d ON d.id = a.domain
    JOIN account_node n ON n.account = a.id AND n.name = ANY ($3::text[]) AND n.send_last = $4
    CROSS JOIN LATERAL (
        SELECT revision, id, length(payload)::bigint AS bytes FROM account_node_item WHERE node = n.id
        ORDER BY revision DESC LIMIT 1) i
    LEFT JOIN contact c ON c.account = a.id AND c.jid = $5
    ORDER BY r.place, n.name";

fn find(db: &Connection, domain: DomainId, local: &str, name: &str) -> Result<Option<i64>> {
    let sql = "SELECT n.id FROM account a JOIN account_node n ON n.account = a.id AND n.name = $3
        WHERE a.domain = $1 AND a.local = $2";
    let found = db.opt(sql, &[&i64::from(domain.0), &local, &name])?;
    found.map(|row| Ok(row.try_get(0)?)).transpose()
}

/// The items of a node, newest first, without their payloads.
fn kept(db: &Connection, node: i64) -> Result<Vec<Kept>> {
    let sql = "SELECT revision, id, length(payload)::bigint FROM account_node_item WHERE node = $1 ORDER BY revision DESC";
    db.query(sql, &[&node])?.iter().map(|row| kept_in(row, 0)).collect()
}

/// The item in the three columns from `first`.
fn kept_in(row: &Row, first: usize) -> Result<Kept> {
    let (revision, bytes) = (Revision(uint(row, first)?), uint(row, first + 2)? as usize);
    Ok(Kept { revision, id: text(row, first + 1)?, bytes })
}

/// An item to be read, of a node of an account.
struct Wanted<'a> {
    domain: DomainId,
    node: i64,
    name: &'a Arc<str>,
    kept: &'a Kept,
}

/// Reads items by one statement, in their order.
fn read(db: &Connection, wanted: &[Wanted<'_>]) -> Result<Vec<Arc<Item>>> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let nodes: Vec<i64> = wanted.iter().map(|wanted| wanted.node).collect();
    let revisions: Vec<i64> = wanted.iter().map(|wanted| int(wanted.kept.revision.0)).collect();
    let rows = db.query(
        "SELECT i.published, i.payload FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS r (node, revision, place)
         JOIN account_node_item i ON i.node = r.node AND i.revision = r.revision ORDER BY r.place",
        &[&nodes, &revisions],
    )?;
    if rows.len() != wanted.len() {
        return Err(Error::Corrupt("an item of a node is missing"));
    }
    let item = |(wanted, row): (&Wanted<'_>, &Row)| {
        Ok(Arc::new(Item {
            topic: TopicId::default(),
            domain: wanted.domain,
            name: wanted.name.clone(),
            id: wanted.kept.id.clone(),
            publisher: None,
            published: ms(row, 0)?,
            payload: Bytes::copy_from_slice(blob(row, 1)?),
            revision: wanted.kept.revision,
        }))
    };
    wanted.iter().zip(&rows).map(item).collect()
}
