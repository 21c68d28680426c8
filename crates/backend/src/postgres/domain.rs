//! Domains.

use super::column::{code, int, number, opt_text, short, text, uint};
use super::connection::Connection;
use super::error::{Error, Result};
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use carillon_core::model::{Domain, DomainId, Policy};
use carillon_core::ports::Missing;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::domains::{
    ChangePolicy, DomainUsage, Domains, NoteStored, Overtaken, PutDomain, PutDomainAnswer, SetPushTemplates,
    StoredBytes, StoredKind, StoredPart, Usage,
};
use tokio_postgres::Row;

/// Domains with their policies and what they are granted, as [`read`] wants them.
macro_rules! domains {
    ($rest:literal) => {
        concat!(
            "SELECT d.id, d.name,
             d.sessions, d.registration, d.pubsub_create, d.sessions_max, d.messages_durable, d.resumption_ms_max,
             d.archive, d.archive_days, d.archive_messages_max, d.archive_bytes_max, d.keys_max, d.account_management,
             d.other_domains, d.requests_per_second, d.stanzas_per_second, d.bytes_per_second,
             d.rooms_create, d.rooms_owned_max, d.rooms_max, d.accounts_max, d.topics_max, d.topics_owned_max,
             d.subscriptions_max, d.sessions_total_max, d.bytes_out_per_second, d.stored_bytes_max, d.room_events,
             d.room_archive_days,
             g.sessions, g.registration, g.pubsub_create, g.sessions_max, g.messages_durable, g.resumption_ms_max,
             g.archive, g.archive_days, g.archive_messages_max, g.archive_bytes_max, g.keys_max, g.account_management,
             g.other_domains, g.requests_per_second, g.stanzas_per_second, g.bytes_per_second,
             g.rooms_create, g.rooms_owned_max, g.rooms_max, g.accounts_max, g.topics_max, g.topics_owned_max,
             g.subscriptions_max, g.sessions_total_max, g.bytes_out_per_second, g.stored_bytes_max, g.room_events,
             g.room_archive_days, d.stored_bytes,
             d.push_templates, EXISTS (SELECT 1 FROM removal WHERE account = 0 AND domain = d.id)
             FROM domain d JOIN domain_grant g ON g.domain = d.id ",
            $rest
        )
    };
}

impl Answers<Domains, Error> for Snapshot<'_> {
    fn answer(&mut self, Domains: &Domains) -> Result<Vec<Domain>> {
        self.db.query(domains!("ORDER BY d.name"), &[])?.iter().map(read).collect()
    }
}

impl Answers<DomainUsage, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &DomainUsage) -> Result<Option<Usage>> {
        let row = self.db.opt(
            "SELECT (SELECT count(*) FROM account WHERE domain = d.id), (SELECT count(*) FROM topic WHERE domain = d.id),
                 (SELECT count(*) FROM room WHERE domain = d.id), (SELECT count(*) FROM api_key WHERE domain = d.id)
             FROM domain d WHERE id = $1",
            &[&i64::from(asked.domain.0)],
        )?;
        let usage = |row: &Row| {
            Ok(Usage {
                accounts: number(row, 0)?,
                topics: number(row, 1)?,
                rooms: number(row, 2)?,
                keys: number(row, 3)?,
            })
        };
        row.as_ref().map(usage).transpose()
    }
}

impl Answers<StoredBytes, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &StoredBytes) -> Result<StoredPart> {
        let sql = match asked.kind {
            StoredKind::Accounts => {
                "SELECT a.local, a.roster_bytes + a.private_bytes + a.blocked_bytes + a.node_bytes + a.offline_bytes
                     + coalesce((SELECT bytes FROM archive WHERE account = a.id), 0)
                     + coalesce((SELECT octet_length(xml)::bigint FROM vcard WHERE account = a.id), 0)
                     + coalesce((SELECT bytes FROM upload_account WHERE account = a.id), 0)
                 FROM account a WHERE a.domain = $1 AND a.local > $2 ORDER BY a.local LIMIT $3"
            }
            StoredKind::Topics => {
                "SELECT name, bytes FROM topic WHERE domain = $1 AND name > $2 ORDER BY name LIMIT $3"
            }
        };
        // No name is empty.
        let after = asked.after.as_deref().unwrap_or_default();
        let rows = self.db.query(sql, &[&i64::from(asked.domain.0), &after, &i64::from(asked.limit)])?;
        let mut part = StoredPart::default();
        for row in &rows {
            part.bytes += uint(row, 1)?;
            part.last = Some(text(row, 0)?);
        }
        part.last = part.last.filter(|_| rows.len() == asked.limit as usize);
        Ok(part)
    }
}

impl Answers<NoteStored, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &NoteStored) -> Result<std::result::Result<(), Missing>> {
        self.change(
            "UPDATE domain SET stored_bytes = $2 WHERE id = $1",
            &[&i64::from(asked.domain.0), &int(asked.bytes)],
        )
    }
}

impl Answers<SetPushTemplates, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &SetPushTemplates) -> Result<std::result::Result<(), Missing>> {
        self.change(
            "UPDATE domain SET push_templates = $2 WHERE id = $1",
            &[&i64::from(asked.domain.0), &asked.templates],
        )
    }
}

impl Answers<PutDomain, Error> for Transaction<'_> {
    fn answer(&mut self, question: &PutDomain) -> Result<PutDomainAnswer> {
        let PutDomain { name, policy: granted } = question;
        let known = named(self.db, name)?;
        let policy =
            known.as_ref().map_or(*granted, |known| known.policy.after_grant(&known.granted, granted));
        let domain = put(self, name, *granted, policy)?;
        Ok(PutDomainAnswer { domain, created: known.is_none() })
    }
}

impl Answers<ChangePolicy, Error> for Transaction<'_> {
    fn answer(&mut self, question: &ChangePolicy) -> Result<std::result::Result<Domain, Overtaken>> {
        let ChangePolicy { name, was, granted, policy } = question;
        let known = named(self.db, name)?;
        if known.as_ref().map(|known| (known.granted, known.policy)) != was.as_deref().copied() {
            return Ok(Err(Overtaken));
        }
        Ok(Ok(put(self, name, *granted, *policy)?))
    }
}

/// Columns of a policy.
const POLICY_COLUMNS: usize = 28;

/// The domain of this name.
pub(super) fn named(db: &Connection, name: &str) -> Result<Option<Domain>> {
    db.opt(domains!("WHERE d.name = $1"), &[&name])?.as_ref().map(read).transpose()
}

fn read(row: &Row) -> Result<Domain> {
    Ok(Domain {
        id: DomainId(number(row, 0)?),
        name: text(row, 1)?.into(),
        policy: policy(row, 2)?,
        granted: policy(row, 2 + POLICY_COLUMNS)?,
        stored_bytes: uint(row, 2 + 2 * POLICY_COLUMNS)?,
        push_templates: opt_text(row, 3 + 2 * POLICY_COLUMNS)?.map(Into::into),
        is_being_removed: row.try_get(4 + 2 * POLICY_COLUMNS)?,
    })
}

fn policy(row: &Row, first: usize) -> Result<Policy> {
    Ok(Policy {
        sessions: code(row, first)?,
        registration: row.try_get(first + 1)?,
        pubsub_create: code(row, first + 2)?,
        sessions_max: number(row, first + 3)?
            .try_into()
            .map_err(|_| Error::Corrupt("a number out of its range"))?,
        messages_durable: row.try_get(first + 4)?,
        resumption_ms_max: number(row, first + 5)?,
        archive: row.try_get(first + 6)?,
        archive_days: number(row, first + 7)?,
        archive_messages_max: number(row, first + 8)?,
        archive_bytes_max: uint(row, first + 9)?,
        keys_max: number(row, first + 10)?,
        account_management: row.try_get(first + 11)?,
        other_domains: row.try_get(first + 12)?,
        requests_per_second: number(row, first + 13)?,
        stanzas_per_second: number(row, first + 14)?,
        bytes_per_second: number(row, first + 15)?,
        rooms_create: code(row, first + 16)?,
        rooms_owned_max: number(row, first + 17)?,
        rooms_max: number(row, first + 18)?,
        accounts_max: number(row, first + 19)?,
        topics_max: number(row, first + 20)?,
        topics_owned_max: number(row, first + 21)?,
        subscriptions_max: number(row, first + 22)?,
        sessions_total_max: number(row, first + 23)?,
        bytes_out_per_second: number(row, first + 24)?,
        stored_bytes_max: uint(row, first + 25)?,
        room_events: code(row, first + 26)?,
        room_archive_days: number(row, first + 27)?,
    })
}

/// How many more accounts a domain may have; none where its policy has no bound. Counted only where there is one, and no further than it: to
/// keep a count would have those who create accounts wait for each other.
pub(super) fn room_for_accounts(db: &Connection, domain: DomainId) -> Result<Option<u32>> {
    let sql = "SELECT d.accounts_max
             - (SELECT count(*) FROM (SELECT 1 FROM account WHERE domain = d.id LIMIT d.accounts_max) a)
         FROM domain d WHERE d.id = $1 AND d.accounts_max > 0";
    db.opt(sql, &[&i64::from(domain.0)])?.as_ref().map(|row| number(row, 0)).transpose()
}

/// Whether a domain has as many topics as its policy allows. Counted in the same way.
pub(super) fn is_full_of_topics(db: &Connection, domain: DomainId) -> Result<bool> {
    let sql = "SELECT (SELECT count(*) FROM (SELECT 1 FROM topic WHERE domain = d.id LIMIT d.topics_max) t) >= d.topics_max
         FROM domain d WHERE d.id = $1 AND d.topics_max > 0";
    match db.opt(sql, &[&i64::from(domain.0)])? {
        Some(row) => Ok(row.try_get(0)?),
        None => Ok(false),
    }
}

/// Writes a domain with its policy and its grant, whether it is there or not.
fn put(write: &Transaction<'_>, name: &str, granted: Policy, policy: Policy) -> Result<Domain> {
    let domain = put_policy(
        write,
        "INSERT INTO domain (name, sessions, registration, pubsub_create, sessions_max, messages_durable,
             resumption_ms_max, archive, archive_days, archive_messages_max, archive_bytes_max, keys_max, account_management,
             other_domains, requests_per_second, stanzas_per_second, bytes_per_second, rooms_create,
             rooms_owned_max, rooms_max, accounts_max, topics_max, topics_owned_max, subscriptions_max,
             sessions_total_max, bytes_out_per_second, stored_bytes_max, room_events, room_archive_days)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17,
             $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29)
         ON CONFLICT (name) DO UPDATE SET sessions = $2, registration = $3, pubsub_create = $4, sessions_max = $5,
             messages_durable = $6, resumption_ms_max = $7, archive = $8, archive_days = $9,
             archive_messages_max = $10, archive_bytes_max = $11, keys_max = $12, account_management = $13,
             other_domains = $14, requests_per_second = $15, stanzas_per_second = $16, bytes_per_second = $17,
             rooms_create = $18, rooms_owned_max = $19, rooms_max = $20, accounts_max = $21,
             topics_max = $22, topics_owned_max = $23, subscriptions_max = $24, sessions_total_max = $25,
             bytes_out_per_second = $26, stored_bytes_max = $27, room_events = $28,
             room_archive_days = $29
         RETURNING id",
        &name,
        &policy,
    )?;
    put_policy(
        write,
        "INSERT INTO domain_grant (domain, sessions, registration, pubsub_create, sessions_max, messages_durable,
             resumption_ms_max, archive, archive_days, archive_messages_max, archive_bytes_max, keys_max, account_management,
             other_domains, requests_per_second, stanzas_per_second, bytes_per_second, rooms_create,
             rooms_owned_max, rooms_max, accounts_max, topics_max, topics_owned_max, subscriptions_max,
             sessions_total_max, bytes_out_per_second, stored_bytes_max, room_events, room_archive_days)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17,
             $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29)
         ON CONFLICT (domain) DO UPDATE SET sessions = $2, registration = $3, pubsub_create = $4, sessions_max = $5,
             messages_durable = $6, resumption_ms_max = $7, archive = $8, archive_days = $9,
             archive_messages_max = $10, archive_bytes_max = $11, keys_max = $12, account_management = $13,
             other_domains = $14, requests_per_second = $15, stanzas_per_second = $16, bytes_per_second = $17,
             rooms_create = $18, rooms_owned_max = $19, rooms_max = $20, accounts_max = $21,
             topics_max = $22, topics_owned_max = $23, subscriptions_max = $24, sessions_total_max = $25,
             bytes_out_per_second = $26, stored_bytes_max = $27, room_events = $28,
             room_archive_days = $29
         RETURNING domain",
        &i64::from(domain),
        &granted,
    )?;
    let known = named(write.db, name)?.unwrap_or_else(|| Domain::new(DomainId(domain), name, policy));
    Ok(Domain { policy, granted, ..known })
}

/// Runs a statement about a policy, whose first parameter says whose; the number that it returns.
fn put_policy(
    write: &Transaction<'_>,
    sql: &str,
    whose: &(dyn tokio_postgres::types::ToSql + Sync),
    policy: &Policy,
) -> Result<u32> {
    let row = write.returning_one(
        sql,
        &[
            whose,
            &short(policy.sessions),
            &policy.registration,
            &short(policy.pubsub_create),
            &i64::from(policy.sessions_max),
            &policy.messages_durable,
            &i64::from(policy.resumption_ms_max),
            &policy.archive,
            &i64::from(policy.archive_days),
            &i64::from(policy.archive_messages_max),
            &int(policy.archive_bytes_max),
            &i64::from(policy.keys_max),
            &policy.account_management,
            &policy.other_domains,
            &i64::from(policy.requests_per_second),
            &i64::from(policy.stanzas_per_second),
            &i64::from(policy.bytes_per_second),
            &short(policy.rooms_create),
            &i64::from(policy.rooms_owned_max),
            &i64::from(policy.rooms_max),
            &i64::from(policy.accounts_max),
            &i64::from(policy.topics_max),
            &i64::from(policy.topics_owned_max),
            &i64::from(policy.subscriptions_max),
            &i64::from(policy.sessions_total_max),
            &i64::from(policy.bytes_out_per_second),
            &int(policy.stored_bytes_max),
            &short(policy.room_events),
            &i64::from(policy.room_archive_days),
        ],
    )?;
    number(&row, 0)
}
