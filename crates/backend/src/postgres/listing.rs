//! Lists of notifications, newest first: those that wait and those that have ended, read side by side.
//!
//! An id begins with the time of acceptance, so the keys of both tables are in the order of the list. What else is asked for (states, an
//! API key, a domain) is looked for row by row, up to [`ROWS_MAX`]: an index for each would cost every delivery a write.

use super::column::{Id, code, int, notification_id, opt_ms, opt_number, opt_text, short};
use super::error::{Error, Result};
use super::snapshot::Snapshot;
use super::{ending, lookup};
use carillon_core::model::*;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::notifications::{Listing, NotificationQuery, Whose};
use tokio_postgres::Row;

/// Rows of a table that are looked at for one answer: other reads wait meanwhile.
const ROWS_MAX: usize = 10_000;
/// Of those, how many are read at a time.
const STEP: usize = 1_000;

impl Answers<NotificationQuery, Error> for Snapshot<'_> {
    fn answer(&mut self, query: &NotificationQuery) -> Result<Listing> {
        let parts = [self.waiting(query)?, self.ended(query)?];
        // The list ends where the search of either table stopped: beyond that there may be more.
        let seen = parts.iter().filter_map(|part| part.stopped).max();
        let mut traces: Vec<Trace> = parts.into_iter().flat_map(|part| part.traces).collect();
        traces.retain(|trace| seen.is_none_or(|seen| trace.id >= seen));
        traces.sort_unstable_by_key(|trace| std::cmp::Reverse(trace.id));
        let more = traces.len() > usize::from(query.limit);
        traces.truncate(usize::from(query.limit));
        let next = if more { traces.last().map(|last| last.id) } else { seen };
        Ok(Listing { traces, next })
    }
}

/// What was found in one table.
#[derive(Default)]
struct Found {
    traces: Vec<Trace>,
    /// The last id that was looked at, when there may be more behind it.
    stopped: Option<NotificationId>,
}

/// Those that wait, of a table with the columns of `notification`.
macro_rules! waiting {
    ($with:literal, $from:literal) => {
        concat!(
            $with,
            "SELECT n.id, n.local, d.name, n.audience, n.rank,
                 CASE WHEN n.due IS NOT NULL THEN $4::smallint WHEN n.sent IS NOT NULL THEN $5::smallint ELSE $6::smallint END,
                 n.accepted, n.send_at, n.stored, n.sent, NULL::bigint, NULL::smallint, NULL::smallint, n.expires,
                 n.collapse_key, n.key, NULL::bigint, NULL::smallint, n.domain
             FROM ",
            $from,
            " n LEFT JOIN domain d ON d.id = n.domain WHERE n.id >= $1 AND n.id < $2 ORDER BY n.id DESC LIMIT $3"
        )
    };
}

const WAITING: &str = waiting!("", "notification");
/// Uses the account's index: in the order of ids, the rows of all other accounts would be read.
const WAITING_OF: &str = waiting!(
    "WITH own AS MATERIALIZED (
         SELECT id, local, domain, audience, rank, due, accepted, send_at, stored, sent, expires, collapse_key, key
         FROM notification WHERE account = $7) ",
    "own"
);
const ENDED: &str = "SELECT t.id, t.local, d.name, t.audience, t.rank, t.state, t.accepted, t.send_at, t.stored, t.sent, t.ended,
        t.acknowledged_by, t.reason, t.expires, t.collapse_key, t.key, t.opened, t.agent, t.domain
    FROM trace t LEFT JOIN domain d ON d.id = t.domain WHERE t.id >= $1 AND t.id < $2 ORDER BY t.id DESC LIMIT $3";
const ENDED_OF: &str = "SELECT t.id, t.local, d.name, t.audience, t.rank, t.state, t.accepted, t.send_at, t.stored, t.sent, t.ended,
        t.acknowledged_by, t.reason, t.expires, t.collapse_key, t.key, t.opened, t.agent, t.domain
    FROM trace t LEFT JOIN domain d ON d.id = t.domain
    WHERE t.domain = $4 AND t.local = $5 AND t.id >= $1 AND t.id < $2 ORDER BY t.id DESC LIMIT $3";

impl Snapshot<'_> {
    /// Those that have not ended.
    fn waiting(&self, query: &NotificationQuery) -> Result<Found> {
        use NotificationState::{Scheduled, Sent, Stored};
        if ![Scheduled, Sent, Stored].into_iter().any(|state| query.states.contains(state)) {
            return Ok(Found::default());
        }
        let from = Id::from(query.from);
        let [scheduled, sent, stored] = [Scheduled, Sent, Stored].map(short);
        match &query.whose {
            Whose::Account(domain, local) => {
                let Some(account) = lookup::account(self.db, *domain, local)? else {
                    return Ok(Found::default());
                };
                let account = int(account.0);
                look(query, |before, step| {
                    self.db.query(WAITING_OF, &[&from, &before, &step, &scheduled, &sent, &stored, &account])
                })
            }
            Whose::Anyones | Whose::Domain(_) => look(query, |before, step| {
                self.db.query(WAITING, &[&from, &before, &step, &scheduled, &sent, &stored])
            }),
        }
    }

    /// Those that have ended.
    fn ended(&self, query: &NotificationQuery) -> Result<Found> {
        let from = Id::from(query.from);
        match &query.whose {
            Whose::Account(domain, local) => look(query, |before, step| {
                self.db.query(ENDED_OF, &[&from, &before, &step, &i64::from(domain.0), local])
            }),
            Whose::Anyones | Whose::Domain(_) => {
                look(query, |before, step| self.db.query(ENDED, &[&from, &before, &step]))
            }
        }
    }
}

/// Looks through rows, in their order, until there is one more than is wanted, or too much was looked at.
fn look(query: &NotificationQuery, read: impl Fn(Id, i64) -> Result<Vec<Row>>) -> Result<Found> {
    let (mut found, mut before, mut looked_at) = (Found::default(), Id::from(query.before), 0);
    let first = (usize::from(query.limit) + 1).clamp(64, STEP);
    let mut step = first;
    loop {
        let rows = read(before, step as i64)?;
        for row in &rows {
            found.traces.extend(listed(query, row)?);
            let id = notification_id(row, 0)?;
            looked_at += 1;
            before = id.into();
            if found.traces.len() > usize::from(query.limit) || looked_at == ROWS_MAX {
                found.stopped = Some(id);
                return Ok(found);
            }
        }
        if rows.len() < step {
            return Ok(found);
        }
        step = STEP;
    }
}

/// The trace in a row, if it is to be listed. One of a domain that is gone is never found.
fn listed(query: &NotificationQuery, row: &Row) -> Result<Option<Trace>> {
    let is_theirs = match query.whose {
        Whose::Anyones => true,
        Whose::Domain(wanted) | Whose::Account(wanted, _) => opt_number(row, 18)? == Some(wanted.0),
    };
    let is_opened = opt_ms(row, 16)?.is_some();
    let shown = if is_opened { NotificationState::Opened } else { code(row, 5)? };
    let is_of_key = query.key.is_none() || opt_number(row, 15)?.map(KeyId) == query.key;
    if !is_theirs || !is_of_key || !query.states.contains(shown) || opt_text(row, 2)?.is_none() {
        return Ok(None);
    }
    ending::trace(row).map(Some)
}
