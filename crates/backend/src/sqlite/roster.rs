//! Rosters, and the records of accounts that they are part of.

use super::column::{address, corrupt, int, uint, whole_jid};
use super::contact::{CONTACT, contact, said};
use super::snapshot::Snapshot;
use super::topic::CONFIG;
use super::transaction::Transaction;
use super::{blocking, lookup, node};
use crate::rows::roster::{self, RosterOwner, Rosters};
use carillon_core::form::encode;
use carillon_core::model::*;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::roster::{
    ChangeSubscription, ChangeSubscriptionAnswer, PutContact, PutContactAnswer, ReadRecord, RemoveContact,
    RemoveContactAnswer,
};
use carillon_wire::jid::{BareJid, Jid};
use rusqlite::types::Value;
use rusqlite::vtab::array::Array;
use rusqlite::{Error, OptionalExtension, Result, Row, params};
use std::rc::Rc;

impl Answers<ReadRecord, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &ReadRecord) -> Result<Option<Box<Record>>> {
        Ok(records(self, &[asked])?.pop().flatten())
    }
}

/// Reads many records by few queries, in their order.
pub(super) fn records(snapshot: &mut Snapshot<'_>, asks: &[&ReadRecord]) -> Result<Vec<Option<Box<Record>>>> {
    let mut found: Vec<Option<Box<Record>>> = asks.iter().map(|_| None).collect();
    if asks.is_empty() {
        return Ok(found);
    }
    let mut query = snapshot.db.prepare_cached(RECORD)?;
    for (ask, found) in asks.iter().zip(&mut found) {
        *found =
            query.query_row(params![ask.domain.0, ask.local], |row| record(row, ask.parts)).optional()?;
    }
    // The accounts in the places of those questions that want all of a part, nothing in the others.
    let wanting = |wants: fn(&ReadRecord) -> bool, found: &[Option<Box<Record>>]| -> Option<Array> {
        let account = |(ask, found): (&&ReadRecord, &Option<Box<Record>>)| {
            found.as_ref().filter(|_| wants(ask)).map_or(Value::Null, |record| id_value(record.account))
        };
        asks.iter().any(|ask| wants(ask)).then(|| Rc::new(asks.iter().zip(found).map(account).collect()))
    };
    if let Some(accounts) = wanting(|ask| ask.parts.roster && ask.about.is_empty(), &found) {
        contacts(snapshot, asks, &accounts, &mut found)?;
    }
    if let Some(accounts) = wanting(|ask| ask.parts.blocked && ask.about.is_empty(), &found) {
        blocked(snapshot, asks, &accounts, &mut found)?;
    }
    if let Some(accounts) = wanting(|ask| ask.parts.nodes, &found) {
        nodes(snapshot, asks, &accounts, &mut found)?;
    }
    if let Some(accounts) = wanting(|ask| ask.parts.privacy, &found) {
        privacy(snapshot, asks, &accounts, &mut found)?;
    }
    for (ask, found) in asks.iter().zip(&mut found).filter(|(ask, _)| !ask.about.is_empty()) {
        if let Some(record) = found {
            about(snapshot, ask, record)?;
        }
    }
    Ok(found)
}

/// What a roster and a block list say of some: each is looked up.
fn about(snapshot: &Snapshot<'_>, ask: &ReadRecord, record: &mut Record) -> Result<()> {
    let account = int(record.account.0);
    if ask.parts.roster || record.privacy.as_ref().is_some_and(|lists| lists.is_about_contacts()) {
        let mut contacts: Vec<BareJid> = ask.about.iter().map(Jid::bare).collect();
        contacts.sort();
        contacts.dedup();
        let mut query = snapshot.db.prepare_cached(CONTACT)?;
        for jid in &contacts {
            let found = query.query_row(params![account, jid.as_str()], |row| contact(row, 0)).optional()?;
            record.roster.contacts.extend(found);
        }
    }
    if ask.parts.blocked {
        let sql = "SELECT jid FROM blocked WHERE account = ?1 AND jid IN (?2, ?3, ?4, ?5)";
        let mut query = snapshot.db.prepare_cached(sql)?;
        for jid in &ask.about {
            let (domain, bare) = (jid.domain(), jid.bare_str());
            let of_domain = jid.resource().map(|resource| [domain, "/", resource].concat());
            let params = params![account, domain, bare, jid.as_str(), of_domain];
            let entries: Result<Vec<Jid>> = query.query_map(params, |row| address(row, 0))?.collect();
            record.blocked.extend(entries?);
        }
        record.blocked.sort();
        record.blocked.dedup();
    }
    Ok(())
}

fn contacts(
    snapshot: &Snapshot<'_>,
    asks: &[&ReadRecord],
    accounts: &Array,
    found: &mut [Option<Box<Record>>],
) -> Result<()> {
    let mut query = snapshot.db.prepare_cached(CONTACTS)?;
    let mut rows = query.query([accounts])?;
    while let Some(row) = rows.next()? {
        let place = row.get::<_, u32>(0)? as usize - 1;
        if let (Some(Some(record)), true) = (found.get_mut(place), asks[place].parts.roster) {
            record.roster.contacts.push(contact(row, 1)?);
        }
    }
    Ok(())
}

fn blocked(
    snapshot: &Snapshot<'_>,
    asks: &[&ReadRecord],
    accounts: &Array,
    found: &mut [Option<Box<Record>>],
) -> Result<()> {
    let mut query = snapshot.db.prepare_cached(BLOCKED)?;
    let mut rows = query.query([accounts])?;
    while let Some(row) = rows.next()? {
        let place = row.get::<_, u32>(0)? as usize - 1;
        if let (Some(Some(record)), true) = (found.get_mut(place), asks[place].parts.blocked) {
            record.blocked.push(address(row, 1)?);
        }
    }
    Ok(())
}

fn privacy(
    snapshot: &Snapshot<'_>,
    asks: &[&ReadRecord],
    accounts: &Array,
    found: &mut [Option<Box<Record>>],
) -> Result<()> {
    let mut query = snapshot.db.prepare_cached(PRIVACY)?;
    let mut rows = query.query([accounts])?;
    while let Some(row) = rows.next()? {
        let place = row.get::<_, u32>(0)? as usize - 1;
        if let (Some(Some(record)), true) = (found.get_mut(place), asks[place].parts.privacy) {
            record.privacy = Some(Box::new(blocking::privacy_of(row, 1)?));
        }
    }
    Ok(())
}

fn nodes(
    snapshot: &Snapshot<'_>,
    asks: &[&ReadRecord],
    accounts: &Array,
    found: &mut [Option<Box<Record>>],
) -> Result<()> {
    let sql = format!(
        "SELECT r.rowid, name, created, {CONFIG} FROM rarray(?1) r CROSS JOIN account_node ON account = r.value
            ORDER BY r.rowid, name"
    );
    let mut query = snapshot.db.prepare_cached(&sql)?;
    let mut rows = query.query([accounts])?;
    while let Some(row) = rows.next()? {
        let place = row.get::<_, u32>(0)? as usize - 1;
        if let (Some(Some(record)), true) = (found.get_mut(place), asks[place].parts.nodes) {
            record.nodes.push(node::node(row, 1)?);
        }
    }
    Ok(())
}

const RECORD: &str = "SELECT id, record, roster FROM account WHERE domain = ?1 AND local = ?2";
const CONTACTS: &str = "SELECT r.rowid, jid, name, groups, standing, listed, request FROM rarray(?1) r
    CROSS JOIN contact ON account = r.value ORDER BY r.rowid, jid";

const BLOCKED: &str =
    "SELECT r.rowid, jid FROM rarray(?1) r CROSS JOIN blocked ON account = r.value ORDER BY r.rowid, jid";

const PRIVACY: &str = "SELECT r.rowid, lists FROM rarray(?1) r CROSS JOIN privacy ON account = r.value";

fn id_value(account: AccountId) -> Value {
    Value::from(int(account.0))
}

fn record(row: &Row<'_>, parts: RecordParts) -> Result<Box<Record>> {
    let version = if parts.roster { Generation(uint(row, 2)?) } else { Generation::default() };
    let roster = Roster { version, contacts: Vec::new() };
    let (account, generation) = (AccountId(uint(row, 0)?), Generation(uint(row, 1)?));
    Ok(Box::new(Record {
        account,
        generation,
        roster,
        blocked: Vec::new(),
        nodes: Vec::new(),
        privacy: None,
    }))
}

/// Whose rosters say something of subscriptions between them and the account `?1`, whose address is `?2`: those that are in its own, as both
/// sides say the same of a subscription; and those that have asked in vain, or grant something in advance.
const WITH_SUBSCRIPTION: &str = "SELECT jid FROM contact WHERE account = ?1
    UNION SELECT a.local || '@' || d.name FROM contact c CROSS JOIN account a ON a.id = c.account
    CROSS JOIN domain d ON d.id = a.domain WHERE c.jid = ?2 AND c.standing & 20 <> 0 ORDER BY 1 LIMIT ?3";

impl Rosters for Transaction<'_> {
    type Error = Error;

    fn owner(&self, domain: DomainId, local: &str) -> Result<Option<RosterOwner>> {
        let Some(name) = lookup::domain_name(self.db, domain)? else { return Ok(None) };
        let sql = "SELECT id, record, contacts, requests, roster_bytes FROM account WHERE domain = ?1 AND local = ?2";
        let found = self.db.prepare_cached(sql)?.query_row(params![domain.0, local], |row| {
            let used = RosterUse { contacts: row.get(2)?, requests: row.get(3)?, bytes: uint(row, 4)? };
            Ok((AccountId(uint(row, 0)?), Generation(uint(row, 1)?), used))
        });
        let Some((account, record, used)) = found.optional()? else { return Ok(None) };
        let jid = BareJid::from_parts(Some(local), &name).map_err(|_| corrupt(0, "not an address"))?;
        Ok(Some(RosterOwner { account, jid, record, used }))
    }

    fn domain_named(&self, name: &str) -> Result<Option<DomainId>> {
        lookup::domain_named(self.db, name)
    }

    fn contact(&self, account: AccountId, jid: &BareJid) -> Result<Option<Contact>> {
        said(self.db, account, jid)
    }

    fn oldest_request(&self, account: AccountId) -> Result<Option<Contact>> {
        let sql = "SELECT jid, name, groups, standing, listed, request FROM contact
            WHERE account = ?1 AND listed = 0 ORDER BY asked LIMIT 1";
        let mut query = self.db.prepare_cached(sql)?;
        query.query_row([int(account.0)], |row| contact(row, 0)).optional()
    }

    fn shuns(&self, account: AccountId, other: &BareJid, by_lists: bool) -> Result<bool> {
        blocking::shuns(self.db, account, other, by_lists)
    }

    fn write_contact(
        &self,
        account: AccountId,
        after: Generation,
        used: RosterUse,
        jid: &BareJid,
        is: Option<&Contact>,
    ) -> Result<()> {
        let id = int(account.0);
        self.run(
            "UPDATE account SET record = ?2, roster = ?2, contacts = ?3, requests = ?4, roster_bytes = ?5 WHERE id = ?1",
            params![id, int(after.0), used.contacts, used.requests, int(used.bytes)],
        )?;
        match is {
            None => {
                self.run("DELETE FROM contact WHERE account = ?1 AND jid = ?2", params![id, jid.as_str()])?;
            }
            Some(is) => {
                let groups = (!is.groups.is_empty()).then(|| encode(&is.groups, 0));
                self.run(
                    "INSERT OR REPLACE INTO contact (account, jid, name, groups, standing, listed, request, asked)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                    params![
                        id,
                        jid.as_str(),
                        is.name,
                        groups,
                        is.standing.bits(),
                        is.is_listed,
                        is.request.as_deref(),
                        (!is.is_listed).then_some(int(after.0)),
                    ],
                )?;
            }
        }
        Ok(())
    }
}

impl Transaction<'_> {
    /// Ends what the rosters of others say of the subscriptions between them and an account that is being removed, and what its own says of them: of so
    /// many contacts at most. How many these were, and what changed in the rosters of others.
    pub(super) fn end_subscriptions(
        &self,
        account: AccountId,
        jid: &BareJid,
        max: usize,
    ) -> Result<(usize, Vec<RosterChange>)> {
        let mut query = self.db.prepare_cached(WITH_SUBSCRIPTION)?;
        let max = i64::try_from(max).unwrap_or(i64::MAX);
        let contacts =
            query.query_map(params![int(account.0), jid.as_str(), max], |row| whole_jid(row, 0))?;
        let contacts = contacts.collect::<Result<Vec<BareJid>>>()?;
        let mut changes = Vec::new();
        for contact in &contacts {
            self.run(
                "DELETE FROM contact WHERE account = ?1 AND jid = ?2",
                params![int(account.0), contact.as_str()],
            )?;
            changes.extend(roster::end_at_contact(self, jid, contact)?);
        }
        Ok((contacts.len(), changes))
    }
}

impl Answers<PutContact, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &PutContact) -> Result<PutContactAnswer> {
        roster::put(self, asked)
    }
}

impl Answers<RemoveContact, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &RemoveContact) -> Result<RemoveContactAnswer> {
        roster::remove(self, asked)
    }
}

impl Answers<ChangeSubscription, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &ChangeSubscription) -> Result<ChangeSubscriptionAnswer> {
        roster::change(self, asked)
    }
}
