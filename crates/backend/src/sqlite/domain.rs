//! Domains.

use super::column::{code, int, number, opt_text, text, uint};
use super::lookup;
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use crate::rows::code::Code;
use crate::rows::removal::{self, GoneDomain};
use carillon_core::model::{Domain, DomainId, Policy, RosterChange};
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::domains::{
    ChangePolicy, DeleteDomain, DomainUsage, Domains, NoteStored, Overtaken, PutDomain, PutDomainAnswer,
    SetPushTemplates, StoredBytes, StoredKind, StoredPart, Usage,
};
use carillon_core::ports::{Missing, Part};
use rusqlite::{Connection, Error, OptionalExtension, Result, Row, params, params_from_iter};

/// Domains with their policies and what they are granted, as [`read`] wants them.
macro_rules! domains {
    () => {
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
         FROM domain d JOIN domain_grant g ON g.domain = d.id"
    };
}
impl Answers<Domains, Error> for Snapshot<'_> {
    fn answer(&mut self, Domains: &Domains) -> Result<Vec<Domain>> {
        let mut query = self.db.prepare_cached(concat!(domains!(), " ORDER BY name"))?;
        let domains = query.query_map([], read)?;
        domains.collect()
    }
}

impl Answers<DomainUsage, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &DomainUsage) -> Result<Option<Usage>> {
        let usage = |row: &Row<'_>| {
            Ok(Usage { accounts: row.get(0)?, topics: row.get(1)?, rooms: row.get(2)?, keys: row.get(3)? })
        };
        self.db
            .prepare_cached(
                "SELECT accounts, topics, rooms, (SELECT count(*) FROM api_key WHERE domain = d.id)
                 FROM domain d WHERE id = ?1",
            )?
            .query_row([asked.domain.0], usage)
            .optional()
    }
}

impl Answers<StoredBytes, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &StoredBytes) -> Result<StoredPart> {
        let mut query = self.db.prepare_cached(match asked.kind {
            StoredKind::Accounts => {
                "SELECT a.local, a.roster_bytes + a.private_bytes + a.blocked_bytes + a.node_bytes + a.offline_bytes
                     + coalesce((SELECT bytes FROM archive WHERE account = a.id), 0)
                     + coalesce((SELECT length(xml) FROM vcard WHERE account = a.id), 0)
                     + coalesce((SELECT bytes FROM upload_account WHERE account = a.id), 0)
                 FROM account a WHERE a.domain = ?1 AND a.local > ?2 ORDER BY a.local LIMIT ?3"
            }
            StoredKind::Topics => {
                "SELECT name, bytes FROM topic WHERE domain = ?1 AND name > ?2 ORDER BY name LIMIT ?3"
            }
        })?;
        // No name is empty.
        let after = asked.after.as_deref().unwrap_or_default();
        let mut rows = query.query(params![asked.domain.0, after, asked.limit])?;
        let (mut part, mut count) = (StoredPart::default(), 0);
        while let Some(row) = rows.next()? {
            part.bytes += uint(row, 1)?;
            part.last = Some(text(row, 0)?);
            count += 1;
        }
        part.last = part.last.filter(|_| count == asked.limit);
        Ok(part)
    }
}

impl Answers<NoteStored, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &NoteStored) -> Result<Result<(), Missing>> {
        self.change(
            "UPDATE domain SET stored_bytes = ?2 WHERE id = ?1",
            params![asked.domain.0, int(asked.bytes)],
        )
    }
}

impl Answers<SetPushTemplates, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &SetPushTemplates) -> Result<Result<(), Missing>> {
        self.change(
            "UPDATE domain SET push_templates = ?2 WHERE id = ?1",
            params![asked.domain.0, asked.templates],
        )
    }
}

impl Answers<PutDomain, Error> for Transaction<'_> {
    fn answer(&mut self, question: &PutDomain) -> Result<PutDomainAnswer> {
        let PutDomain { name, policy: granted } = question;
        let known = named(self.db, name)?;
        let policy =
            known.as_ref().map_or(*granted, |known| known.policy.after_grant(&known.granted, granted));
        let domain = put(self, known.as_ref(), name, *granted, policy)?;
        Ok(PutDomainAnswer { domain, created: known.is_none() })
    }
}

impl Answers<ChangePolicy, Error> for Transaction<'_> {
    fn answer(&mut self, question: &ChangePolicy) -> Result<Result<Domain, Overtaken>> {
        let ChangePolicy { name, was, granted, policy } = question;
        let known = named(self.db, name)?;
        if known.as_ref().map(|known| (known.granted, known.policy)) != was.as_deref().copied() {
            return Ok(Err(Overtaken));
        }
        Ok(Ok(put(self, known.as_ref(), name, *granted, *policy)?))
    }
}

impl Answers<DeleteDomain, Error> for Transaction<'_> {
    fn answer(&mut self, question: &DeleteDomain) -> Result<Result<Part<RosterChange>, Missing>> {
        let DeleteDomain { domain, now, rows_max } = *question;
        let Some(name) = lookup::domain_name(self.db, domain)? else { return Ok(Err(Missing)) };
        let gone = GoneDomain { domain, name: &name, now };
        self.overwriting(|write| removal::domain(write, &gone, rows_max as usize)).map(Ok)
    }
}

/// Columns of a policy.
const POLICY_COLUMNS: usize = 28;

/// The domain of this name.
pub(super) fn named(db: &Connection, name: &str) -> Result<Option<Domain>> {
    db.prepare_cached(concat!(domains!(), " WHERE d.name = ?1"))?.query_row([name], read).optional()
}

fn read(row: &Row<'_>) -> Result<Domain> {
    Ok(Domain {
        id: DomainId(row.get(0)?),
        name: text(row, 1)?.into(),
        policy: policy(row, 2)?,
        granted: policy(row, 2 + POLICY_COLUMNS)?,
        stored_bytes: uint(row, 2 + 2 * POLICY_COLUMNS)?,
        push_templates: opt_text(row, 3 + 2 * POLICY_COLUMNS)?.map(Into::into),
        is_being_removed: row.get(4 + 2 * POLICY_COLUMNS)?,
    })
}

fn policy(row: &Row<'_>, first: usize) -> Result<Policy> {
    Ok(Policy {
        sessions: code(row, first)?,
        registration: row.get(first + 1)?,
        pubsub_create: code(row, first + 2)?,
        sessions_max: row.get(first + 3)?,
        messages_durable: row.get(first + 4)?,
        resumption_ms_max: row.get(first + 5)?,
        archive: row.get(first + 6)?,
        archive_days: row.get(first + 7)?,
        archive_messages_max: row.get(first + 8)?,
        archive_bytes_max: uint(row, first + 9)?,
        keys_max: row.get(first + 10)?,
        account_management: row.get(first + 11)?,
        other_domains: row.get(first + 12)?,
        requests_per_second: row.get(first + 13)?,
        stanzas_per_second: row.get(first + 14)?,
        bytes_per_second: row.get(first + 15)?,
        rooms_create: code(row, first + 16)?,
        rooms_owned_max: row.get(first + 17)?,
        rooms_max: row.get(first + 18)?,
        accounts_max: row.get(first + 19)?,
        topics_max: row.get(first + 20)?,
        topics_owned_max: row.get(first + 21)?,
        subscriptions_max: row.get(first + 22)?,
        sessions_total_max: row.get(first + 23)?,
        bytes_out_per_second: row.get(first + 24)?,
        stored_bytes_max: uint(row, first + 25)?,
        room_events: code(row, first + 26)?,
        room_archive_days: row.get(first + 27)?,
    })
}

fn put(
    write: &mut Transaction<'_>,
    known: Option<&Domain>,
    name: &str,
    granted: Policy,
    policy: Policy,
) -> Result<Domain> {
    let id = match known {
        Some(known) => known.id,
        None => {
            write.run(
                "INSERT INTO domain (name, sessions, registration, pubsub_create, sessions_max)
                 VALUES (?1, 0, 0, 0, 0)",
                [name],
            )?;
            DomainId(number(write.db.last_insert_rowid())?)
        }
    };
    let columns = |policy: Policy| {
        params_from_iter([
            i64::from(id.0),
            policy.sessions.code(),
            policy.registration.into(),
            policy.pubsub_create.code(),
            policy.sessions_max.into(),
            policy.messages_durable.into(),
            policy.resumption_ms_max.into(),
            policy.archive.into(),
            policy.archive_days.into(),
            policy.archive_messages_max.into(),
            int(policy.archive_bytes_max),
            policy.keys_max.into(),
            policy.account_management.into(),
            policy.other_domains.into(),
            policy.requests_per_second.into(),
            policy.stanzas_per_second.into(),
            policy.bytes_per_second.into(),
            policy.rooms_create.code(),
            policy.rooms_owned_max.into(),
            policy.rooms_max.into(),
            policy.accounts_max.into(),
            policy.topics_max.into(),
            policy.topics_owned_max.into(),
            policy.subscriptions_max.into(),
            policy.sessions_total_max.into(),
            policy.bytes_out_per_second.into(),
            int(policy.stored_bytes_max),
            policy.room_events.code(),
            policy.room_archive_days.into(),
        ])
    };
    write.run(
        "UPDATE domain SET sessions = ?2, registration = ?3, pubsub_create = ?4, sessions_max = ?5,
         messages_durable = ?6, resumption_ms_max = ?7, archive = ?8, archive_days = ?9,
         archive_messages_max = ?10, archive_bytes_max = ?11, keys_max = ?12, account_management = ?13, other_domains = ?14,
         requests_per_second = ?15, stanzas_per_second = ?16, bytes_per_second = ?17,
         rooms_create = ?18, rooms_owned_max = ?19, rooms_max = ?20, accounts_max = ?21, topics_max = ?22,
         topics_owned_max = ?23, subscriptions_max = ?24, sessions_total_max = ?25, bytes_out_per_second = ?26,
         stored_bytes_max = ?27, room_events = ?28, room_archive_days = ?29 WHERE id = ?1",
        columns(policy),
    )?;
    write.run(
        "INSERT OR REPLACE INTO domain_grant VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15,
         ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29)",
        columns(granted),
    )?;
    let domain = known.cloned().unwrap_or_else(|| Domain::new(id, name, policy));
    Ok(Domain { policy, granted, ..domain })
}
