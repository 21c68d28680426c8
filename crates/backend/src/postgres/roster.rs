//! Rosters, and the records of accounts that they are part of.

use super::column::{int, number, uint, whole_jid};
use super::contact::{contact, said};
use super::error::{Error, Result};
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use super::{blocking, lookup, node_items};
use crate::rows::roster::{self, RosterOwner, Rosters};
use carillon_core::form::encode;
use carillon_core::model::*;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::roster::{
    ChangeSubscription, ChangeSubscriptionAnswer, PutContact, PutContactAnswer, ReadRecord, RemoveContact,
    RemoveContactAnswer,
};
use carillon_wire::jid::{BareJid, Jid};
use tokio_postgres::Row;

impl Answers<ReadRecord, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &ReadRecord) -> Result<Option<Box<Record>>> {
        Ok(records(self, &[asked])?.pop().flatten())
    }
}

/// Reads many records by few statements, in their order.
pub(super) fn records(snapshot: &mut Snapshot<'_>, asks: &[&ReadRecord]) -> Result<Vec<Option<Box<Record>>>> {
    let domains: Vec<i64> = asks.iter().map(|ask| ask.domain.0.into()).collect();
    let locals: Vec<&str> = asks.iter().map(|ask| &*ask.local).collect();
    let mut found: Vec<Option<Box<Record>>> = asks.iter().map(|_| None).collect();
    for row in snapshot.db.query(RECORDS, &[&domains, &locals])? {
        let place = place(&row)?;
        found[place] = Some(record(&row, asks[place].parts)?);
    }
    // The accounts in the places of those questions that want all of a part, nothing in the others.
    let wanting =
        |wants: fn(&ReadRecord) -> bool, found: &[Option<Box<Record>>]| -> Option<Vec<Option<i64>>> {
            let account = |(ask, found): (&&ReadRecord, &Option<Box<Record>>)| {
                found.as_ref().filter(|_| wants(ask)).map(|record| int(record.account.0))
            };
            asks.iter().any(|ask| wants(ask)).then(|| asks.iter().zip(found).map(account).collect())
        };
    if let Some(accounts) = wanting(|ask| ask.parts.roster && ask.about.is_empty(), &found) {
        each(snapshot, CONTACTS, &accounts, &mut found, |record, row| {
            record.roster.contacts.push(contact(row, 1)?);
            Ok(())
        })?;
    }
    if let Some(accounts) = wanting(|ask| ask.parts.blocked && ask.about.is_empty(), &found) {
        each(snapshot, BLOCKED, &accounts, &mut found, |record, row| {
            record.blocked.push(blocking::address(row, 1)?);
            Ok(())
        })?;
    }
    if let Some(accounts) = wanting(|ask| ask.parts.nodes, &found) {
        each(snapshot, NODES, &accounts, &mut found, |record, row| {
            record.nodes.push(node_items::node(row, 1)?);
            Ok(())
        })?;
    }
    if let Some(accounts) = wanting(|ask| ask.parts.privacy, &found) {
        each(snapshot, PRIVACY, &accounts, &mut found, |record, row| {
            record.privacy = Some(Box::new(blocking::privacy_of(row, 1)?));
            Ok(())
        })?;
    }
    for (ask, found) in asks.iter().zip(&mut found).filter(|(ask, _)| !ask.about.is_empty()) {
        if let Some(record) = found {
            about(snapshot, ask, record)?;
        }
    }
    Ok(found)
}

/// Gives each row of accounts to the record in its place.
fn each(
    snapshot: &Snapshot<'_>,
    sql: &str,
    accounts: &[Option<i64>],
    found: &mut [Option<Box<Record>>],
    take: fn(&mut Record, &Row) -> Result<()>,
) -> Result<()> {
    for row in snapshot.db.query(sql, &[&accounts])? {
        if let Some(Some(record)) = found.get_mut(place(&row)?) {
            take(record, &row)?;
        }
    }
    Ok(())
}

/// What a roster and a block list say of some: each is looked up.
fn about(snapshot: &Snapshot<'_>, ask: &ReadRecord, record: &mut Record) -> Result<()> {
    let account = int(record.account.0);
    if ask.parts.roster || record.privacy.as_ref().is_some_and(|lists| lists.is_about_contacts()) {
        let jids: Vec<BareJid> = ask.about.iter().map(Jid::bare).collect();
        let jids: Vec<&str> = jids.iter().map(BareJid::as_str).collect();
        let sql = "SELECT jid, name, groups, standing, listed, request FROM contact
            WHERE account = $1 AND jid = ANY ($2::text[]) ORDER BY jid";
        for row in snapshot.db.query(sql, &[&account, &jids])? {
            record.roster.contacts.push(contact(&row, 0)?);
        }
    }
    if ask.parts.blocked {
        let mut jids: Vec<String> = Vec::new();
        for jid in &ask.about {
            jids.extend([jid.domain(), jid.bare_str(), jid.as_str()].map(str::to_owned));
            jids.extend(jid.resource().map(|resource| [jid.domain(), "/", resource].concat()));
        }
        let sql = "SELECT jid FROM blocked WHERE account = $1 AND jid = ANY ($2::text[])
            AND hashtextextended(jid, 0) = ANY (ARRAY (SELECT hashtextextended(wanted, 0) FROM unnest($2::text[]) AS wanted))";
        for row in snapshot.db.query(sql, &[&account, &jids])? {
            record.blocked.push(blocking::address(&row, 0)?);
        }
        record.blocked.sort();
        record.blocked.dedup();
    }
    Ok(())
}

const RECORDS: &str = "SELECT r.place, id, record, roster
    FROM unnest($1::bigint[], $2::text[]) WITH ORDINALITY AS r (domain, local, place)
    JOIN account a ON a.domain = r.domain AND a.local = r.local";
const CONTACTS: &str = "SELECT r.place, jid, name, groups, standing, listed, request
    FROM unnest($1::bigint[]) WITH ORDINALITY AS r (account, place) JOIN contact c ON c.account = r.account ORDER BY r.place, jid";
const BLOCKED: &str = "SELECT r.place, jid
    FROM unnest($1::bigint[]) WITH ORDINALITY AS r (account, place) JOIN blocked b ON b.account = r.account ORDER BY r.place, jid";
const PRIVACY: &str = "SELECT r.place, lists
    FROM unnest($1::bigint[]) WITH ORDINALITY AS r (account, place) JOIN privacy p ON p.account = r.account";
const NODES: &str = "SELECT r.place, name, created, title, access_model, publish_model, max_items, persist_items, send_last,
        notify_retract, notify_delete, deliver_payloads
    FROM unnest($1::bigint[]) WITH ORDINALITY AS r (account, place) JOIN account_node n ON n.account = r.account ORDER BY r.place, name";

/// Where in the arrays a row comes from: PostgreSQL counts from 1.
fn place(row: &Row) -> Result<usize> {
    usize::try_from(row.try_get::<_, i64>(0)? - 1).map_err(|_| Error::Corrupt("no place"))
}

fn record(row: &Row, parts: RecordParts) -> Result<Box<Record>> {
    let version = if parts.roster { Generation(uint(row, 3)?) } else { Generation::default() };
    let roster = Roster { version, contacts: Vec::new() };
    let (account, generation) = (AccountId(uint(row, 1)?), Generation(uint(row, 2)?));
    Ok(Box::new(Record {
        account,
        generation,
        roster,
        blocked: Vec::new(),
        nodes: Vec::new(),
        privacy: None,
    }))
}

/// Whose rosters say something of subscriptions between them and the account `$1`, whose address is `$2`: those that are in its own, as both
/// sides say the same of a subscription; and those that have asked in vain, or grant something in advance.
const WITH_SUBSCRIPTION: &str = "SELECT jid COLLATE \"C\" FROM contact WHERE account = $1
    UNION SELECT (a.local || '@' || d.name) COLLATE \"C\" FROM contact c JOIN account a ON a.id = c.account
    JOIN domain d ON d.id = a.domain WHERE c.jid = $2 AND c.standing & 20 <> 0 ORDER BY 1 LIMIT $3";

impl Rosters for Transaction<'_> {
    type Error = Error;

    fn owner(&self, domain: DomainId, local: &str) -> Result<Option<RosterOwner>> {
        let found = self.db.opt(
            "SELECT a.id, a.record, a.contacts, a.requests, a.roster_bytes, d.name
             FROM account a JOIN domain d ON d.id = a.domain WHERE a.domain = $1 AND a.local = $2",
            &[&i64::from(domain.0), &local],
        )?;
        let Some(row) = found else { return Ok(None) };
        let used =
            RosterUse { contacts: number(&row, 2)?, requests: number(&row, 3)?, bytes: uint(&row, 4)? };
        let jid = BareJid::from_parts(Some(local), row.try_get(5)?);
        let jid = jid.map_err(|_| Error::Corrupt("not an address"))?;
        let (account, record) = (AccountId(uint(&row, 0)?), Generation(uint(&row, 1)?));
        Ok(Some(RosterOwner { account, jid, record, used }))
    }

    fn domain_named(&self, name: &str) -> Result<Option<DomainId>> {
        lookup::domain_named(self.db, name)
    }

    fn contact(&self, account: AccountId, jid: &BareJid) -> Result<Option<Contact>> {
        said(self.db, account, jid)
    }

    fn oldest_request(&self, account: AccountId) -> Result<Option<Contact>> {
        let row = self.db.opt(
            "SELECT jid, name, groups, standing, listed, request FROM contact
             WHERE account = $1 AND NOT listed ORDER BY asked LIMIT 1",
            &[&int(account.0)],
        )?;
        row.map(|row| contact(&row, 0)).transpose()
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
            "UPDATE account SET record = $2, roster = $2, contacts = $3, requests = $4, roster_bytes = $5 WHERE id = $1",
            &[&id, &int(after.0), &i64::from(used.contacts), &i64::from(used.requests), &int(used.bytes)],
        )?;
        match is {
            None => {
                self.run("DELETE FROM contact WHERE account = $1 AND jid = $2", &[&id, &jid.as_str()])?;
            }
            Some(is) => {
                let groups = (!is.groups.is_empty()).then(|| encode(&is.groups, 0));
                self.run(
                    "INSERT INTO contact (account, jid, name, groups, standing, listed, request, asked)
                     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
                     ON CONFLICT (account, jid) DO UPDATE SET name = $3, groups = $4, standing = $5, listed = $6,
                         request = $7, asked = $8",
                    &[
                        &id,
                        &jid.as_str(),
                        &is.name,
                        &groups,
                        &i64::from(is.standing.bits()),
                        &is.is_listed,
                        &is.request.as_deref(),
                        &(!is.is_listed).then_some(int(after.0)),
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
        max: i64,
    ) -> Result<(usize, Vec<RosterChange>)> {
        let rows = self.db.query(WITH_SUBSCRIPTION, &[&int(account.0), &jid.as_str(), &max])?;
        let contacts = rows.iter().map(|row| whole_jid(row, 0)).collect::<Result<Vec<BareJid>>>()?;
        let names: Vec<&str> = contacts.iter().map(BareJid::as_str).collect();
        self.run("DELETE FROM contact WHERE account = $1 AND jid = ANY ($2)", &[&int(account.0), &names])?;
        let mut changes = Vec::new();
        for contact in &contacts {
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
