//! Lists of notifications, newest first: those that wait and those that have ended, read side by side.
//!
//! An id begins with the time of acceptance, so the keys of both tables are in the order of the list. An account's are found
//! by an index of its own in `trace`, and by its queue, which is bounded, in `notification`. What else is asked for (states,
//! an API key, a domain) is looked for row by row, up to [`ROWS_MAX`]: an index for each would cost every delivery a write.

use super::column::{Code, code, id_blob, int, notification_id, text};
use super::{account, domain, ending};
use carillon_core::model::*;
use carillon_core::ports::Answer;
use carillon_wire::jid::BareJid;
use rusqlite::types::Type;
use rusqlite::{Connection, Error, Params, Result, Row, params};

/// Rows of a table that are looked at for one answer: other reads wait meanwhile.
const ROWS_MAX: usize = 10_000;

pub(super) fn list(db: &Connection, query: &NotificationQuery) -> Result<Answer> {
    let mut names = Names { db, last: None };
    let parts = [waiting(&mut names, query)?, ended(&mut names, query)?];
    // Only what both were looked through for is the list: below it, one may have more.
    let seen = parts.iter().filter_map(|part| part.stopped).max();
    let mut traces: Vec<Trace> = parts.into_iter().flat_map(|part| part.traces).collect();
    traces.retain(|trace| seen.is_none_or(|seen| trace.id >= seen));
    traces.sort_unstable_by_key(|trace| std::cmp::Reverse(trace.id));
    let more = traces.len() > usize::from(query.limit);
    traces.truncate(usize::from(query.limit));
    let next = if more { traces.last().map(|last| last.id) } else { seen };
    Ok(Answer::Notifications { traces, next })
}

/// What was found in one table.
#[derive(Default)]
struct Part {
    traces: Vec<Trace>,
    /// The last id that was looked at, when there may be more behind it.
    stopped: Option<NotificationId>,
}

const WAITING: &str = "SELECT id, local, domain, audience, rank,
         CASE WHEN due IS NOT NULL THEN ?3 WHEN sent IS NOT NULL THEN ?4 ELSE ?5 END,
         accepted, send_at, stored, sent, NULL, NULL, NULL, expires, collapse_key, key";
const ENDED: &str = "SELECT id, local, domain, audience, rank, state, accepted, send_at, stored, sent, ended, acknowledged_by,
         reason, expires, collapse_key, key";

/// Those that have not ended.
fn waiting(names: &mut Names<'_>, query: &NotificationQuery) -> Result<Part> {
    use NotificationState::{Scheduled, Sent, Stored};
    if ![Scheduled, Sent, Stored].into_iter().any(|state| query.states.contains(state)) {
        return Ok(Part::default());
    }
    let (from, before) = (id_blob(query.from), id_blob(query.before));
    let states = [Scheduled.code(), Sent.code(), Stored.code()];
    let [scheduled, sent, stored] = states;
    match &query.whose {
        Whose::Account(domain, local) => {
            let Some(account) = account::find(names.db, *domain, local)? else { return Ok(Part::default()) };
            let sql = format!(
                "{WAITING} FROM notification INDEXED BY notification_queue
                 WHERE account = ?6 AND id >= ?1 AND id < ?2 ORDER BY id DESC"
            );
            look(names, query, &sql, params![from, before, scheduled, sent, stored, int(account.0)])
        }
        Whose::Anyones | Whose::Domain(_) => {
            let sql = format!("{WAITING} FROM notification WHERE id >= ?1 AND id < ?2 ORDER BY id DESC");
            look(names, query, &sql, params![from, before, scheduled, sent, stored])
        }
    }
}

/// Those that have ended.
fn ended(names: &mut Names<'_>, query: &NotificationQuery) -> Result<Part> {
    let (from, before) = (id_blob(query.from), id_blob(query.before));
    match &query.whose {
        Whose::Account(domain, local) => {
            let sql = format!(
                "{ENDED} FROM trace INDEXED BY trace_account
                 WHERE domain = ?3 AND local = ?4 AND id >= ?1 AND id < ?2 ORDER BY id DESC"
            );
            look(names, query, &sql, params![from, before, domain.0, local])
        }
        Whose::Anyones | Whose::Domain(_) => {
            let sql = format!("{ENDED} FROM trace WHERE id >= ?1 AND id < ?2 ORDER BY id DESC");
            look(names, query, &sql, params![from, before])
        }
    }
}

/// Looks through the rows of a question, in their order, until there is one more than is wanted.
fn look(names: &mut Names<'_>, query: &NotificationQuery, sql: &str, params: impl Params) -> Result<Part> {
    let mut statement = names.db.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    let mut part = Part::default();
    let mut looked_at = 0;
    while let Some(row) = rows.next()? {
        looked_at += 1;
        part.traces.extend(listed(names, query, row)?);
        if part.traces.len() > usize::from(query.limit) || looked_at == ROWS_MAX {
            part.stopped = Some(notification_id(row, 0)?);
            break;
        }
    }
    Ok(part)
}

/// The trace in a row, if it is to be listed.
fn listed(names: &mut Names<'_>, query: &NotificationQuery, row: &Row<'_>) -> Result<Option<Trace>> {
    let domain = DomainId(row.get(2)?);
    let is_theirs = match query.whose {
        Whose::Anyones => true,
        Whose::Domain(wanted) | Whose::Account(wanted, _) => wanted == domain,
    };
    if !is_theirs || !query.states.contains(code(row, 5)?) {
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
            self.last = Some((id, domain::name(self.db, id)?));
        }
        Ok(self.last.as_ref().and_then(|(_, name)| name.as_deref()))
    }
}
