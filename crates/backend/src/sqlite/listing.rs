//! Lists of notifications, newest first: those that wait and those that have ended, read side by side.
//!
//! An id begins with the time of acceptance, so the keys of both tables are in the order of the list. An account's are found
//! run by run (`run.rs`) in `trace`, and by its queue, which is bounded, in `notification`. What else is asked for (states, an
//! API key, a domain) is looked for row by row, up to [`ROWS_MAX`]: an index for each would cost every delivery a write.

use super::column::{code, id_blob, int, notification_id, text};
use super::snapshot::Snapshot;
use super::{ending, lookup};
use crate::rows::code::Code;
use carillon_core::model::*;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::notifications::{Listing, NotificationQuery, Whose};
use carillon_wire::jid::BareJid;
use rusqlite::types::Type;
use rusqlite::{Connection, Error, Params, Result, Row, Statement, params};
use std::sync::LazyLock;

/// Rows of a table that are looked at for one answer, a run counted as one: other reads wait meanwhile.
const ROWS_MAX: usize = 10_000;

impl Answers<NotificationQuery, Error> for Snapshot<'_> {
    fn answer(&mut self, query: &NotificationQuery) -> Result<Listing> {
        list_within(self.db, query, ROWS_MAX)
    }
}

pub(super) fn list_within(db: &Connection, query: &NotificationQuery, rows_max: usize) -> Result<Listing> {
    let mut names = Names { db, last: None };
    let parts = [waiting(&mut names, query, rows_max)?, ended(&mut names, query, rows_max)?];
    // Only what both were looked through for is the list: below it, one may have more.
    let seen = parts.iter().filter_map(|part| part.stopped).max();
    let mut traces: Vec<Trace> = parts.into_iter().flat_map(|part| part.traces).collect();
    traces.retain(|trace| seen.is_none_or(|seen| trace.id >= seen));
    traces.sort_unstable_by_key(|trace| std::cmp::Reverse(trace.id));
    let more = traces.len() > usize::from(query.limit);
    traces.truncate(usize::from(query.limit));
    let next = if more { traces.last().map(|last| last.id) } else { seen };
    Ok(Listing { traces, next })
}

/// What was found in one table.
struct Found {
    traces: Vec<Trace>,
    /// The last id that was looked at, when there may be more behind it.
    stopped: Option<NotificationId>,
    /// Rows that may still be looked at.
    rows_left: usize,
}

impl Found {
    fn new(rows_max: usize) -> Found {
        Found { traces: Vec::new(), stopped: None, rows_left: rows_max }
    }

    /// Notes that the list was looked through down to `id`; whether that is enough: there is one more than is wanted, or too
    /// much was looked at.
    fn looked_at(&mut self, id: NotificationId, limit: u16) -> bool {
        self.rows_left = self.rows_left.saturating_sub(1);
        let is_enough = self.traces.len() > usize::from(limit) || self.rows_left == 0;
        if is_enough {
            self.stopped = Some(id);
        }
        is_enough
    }
}

const WAITING: &str = "SELECT id, local, domain, audience, rank,
         CASE WHEN due IS NOT NULL THEN ?3 WHEN sent IS NOT NULL THEN ?4 ELSE ?5 END,
         accepted, send_at, stored, sent, NULL, NULL, NULL, expires, collapse_key, key, NULL, NULL
         FROM notification";
const ENDED: &str = "SELECT id, local, domain, audience, rank, state, accepted, send_at, stored, sent, ended, acknowledged_by,
         reason, expires, collapse_key, key, opened, agent FROM trace";
const NEWEST_FIRST: &str = "id >= ?1 AND id < ?2 ORDER BY id DESC";

static WAITING_ALL: LazyLock<String> = LazyLock::new(|| format!("{WAITING} WHERE {NEWEST_FIRST}"));
static WAITING_OF: LazyLock<String> = LazyLock::new(|| {
    format!("{WAITING} INDEXED BY notification_queue WHERE account = ?6 AND {NEWEST_FIRST}")
});
static ENDED_ALL: LazyLock<String> = LazyLock::new(|| format!("{ENDED} WHERE {NEWEST_FIRST}"));
pub(super) static ENDED_OF: LazyLock<String> = LazyLock::new(|| {
    format!("{ENDED} INDEXED BY trace_run WHERE run = ?3 AND domain = ?4 AND local = ?5 AND {NEWEST_FIRST}")
});
pub(super) const RUNS: &str = "SELECT number, first FROM run WHERE first < ?1 ORDER BY first DESC";

/// Those that have not ended.
fn waiting(names: &mut Names<'_>, query: &NotificationQuery, rows_max: usize) -> Result<Found> {
    use NotificationState::{Scheduled, Sent, Stored};
    let mut part = Found::new(rows_max);
    if ![Scheduled, Sent, Stored].into_iter().any(|state| query.states.contains(state)) {
        return Ok(part);
    }
    let (db, from, before) = (names.db, id_blob(query.from), id_blob(query.before));
    let [scheduled, sent, stored] = [Scheduled, Sent, Stored].map(Code::code);
    match &query.whose {
        Whose::Account(domain, local) => {
            let Some(account) = lookup::account(db, *domain, local)? else { return Ok(part) };
            let mut statement = db.prepare_cached(&WAITING_OF)?;
            let params = params![from, before, scheduled, sent, stored, int(account.0)];
            look(names, query, &mut part, &mut statement, params)?;
        }
        Whose::Anyones | Whose::Domain(_) => {
            let mut statement = db.prepare_cached(&WAITING_ALL)?;
            let params = params![from, before, scheduled, sent, stored];
            look(names, query, &mut part, &mut statement, params)?;
        }
    }
    Ok(part)
}

/// Those that have ended.
fn ended(names: &mut Names<'_>, query: &NotificationQuery, rows_max: usize) -> Result<Found> {
    let mut part = Found::new(rows_max);
    match &query.whose {
        Whose::Account(domain, local) => ended_of(names, query, *domain, local, &mut part)?,
        Whose::Anyones | Whose::Domain(_) => {
            let mut statement = names.db.prepare_cached(&ENDED_ALL)?;
            let params = params![id_blob(query.from), id_blob(query.before)];
            look(names, query, &mut part, &mut statement, params)?;
        }
    }
    Ok(part)
}

/// Those of an account that have ended, run by run: the ids of a run are all newer than those of the runs before it.
fn ended_of(
    names: &mut Names<'_>,
    query: &NotificationQuery,
    domain: DomainId,
    local: &str,
    part: &mut Found,
) -> Result<()> {
    let (db, from, before) = (names.db, id_blob(query.from), id_blob(query.before));
    let mut traces = db.prepare_cached(&ENDED_OF)?;
    let mut runs = db.prepare_cached(RUNS)?;
    let mut runs = runs.query([before])?;
    while let Some(run) = runs.next()? {
        let (number, first) = (run.get::<_, i64>(0)?, notification_id(run, 1)?);
        look(names, query, part, &mut traces, params![from, before, number, domain.0, local])?;
        if part.stopped.is_some() || first <= query.from || part.looked_at(first, query.limit) {
            break;
        }
    }
    Ok(())
}

/// Looks through the rows of a question, in their order, until there is one more than is wanted.
fn look(
    names: &mut Names<'_>,
    query: &NotificationQuery,
    part: &mut Found,
    statement: &mut Statement<'_>,
    params: impl Params,
) -> Result<()> {
    let mut rows = statement.query(params)?;
    while let Some(row) = rows.next()? {
        part.traces.extend(listed(names, query, row)?);
        if part.looked_at(notification_id(row, 0)?, query.limit) {
            break;
        }
    }
    Ok(())
}

/// The trace in a row, if it is to be listed.
fn listed(names: &mut Names<'_>, query: &NotificationQuery, row: &Row<'_>) -> Result<Option<Trace>> {
    let domain = DomainId(row.get(2)?);
    let is_theirs = match query.whose {
        Whose::Anyones => true,
        Whose::Domain(wanted) | Whose::Account(wanted, _) => wanted == domain,
    };
    let is_opened = ending::opened(row)?.is_some();
    let shown = if is_opened { NotificationState::Opened } else { code(row, 5)? };
    if !is_theirs || !query.states.contains(shown) {
        return Ok(None);
    }
    if query.key.is_some() && row.get::<_, Option<u32>>(15)?.map(KeyId) != query.key {
        return Ok(None);
    }
    // One of a domain that is gone is never found.
    let Some(name) = names.of(domain)? else { return Ok(None) };
    let to = BareJid::from_parts(Some(&text(row, 1)?), name)
        .map_err(|e| Error::FromSqlConversionFailure(1, Type::Text, Box::new(e)))?;
    ending::trace_of(row, to).map(Some)
}

/// The names of domains. The last is remembered: the next row is most often of the same.
struct Names<'a> {
    db: &'a Connection,
    last: Option<(DomainId, Option<Box<str>>)>,
}

impl Names<'_> {
    fn of(&mut self, id: DomainId) -> Result<Option<&str>> {
        if self.last.as_ref().is_none_or(|(last, _)| *last != id) {
            self.last = Some((id, lookup::domain_name(self.db, id)?));
        }
        Ok(self.last.as_ref().and_then(|(_, name)| name.as_deref()))
    }
}
