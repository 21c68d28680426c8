//! Notifications found again: by account, state, sender and time, newest first.

use super::trace::NotificationView;
use crate::app::App;
use crate::auth::{Granted, Send};
use crate::extract::{Params, limit};
use crate::problem::{Code, Problem};
use crate::values::jids;
use crate::values::schema;
use crate::values::time::Time;
use axum::Json;
use axum::extract::State;
use carillon_core::command::{Command, Outcome};
use carillon_core::model::{KeyId, NotificationId, NotificationState, States, Trace};
use carillon_core::ports::store::notifications::{self, Listing, NotificationQuery, Whose};
use futures_util::future::try_join_all;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A page of notifications, newest first.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct NotificationPage {
    /// The notifications.
    notifications: Vec<NotificationView>,
    /// What to give as `cursor` for the next page; none on the last. A page may have fewer than `limit` notifications, or
    /// none, and still have this.
    next: Option<String>,
}

/// Selects notifications.
#[derive(Debug, serde::Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// For a key of the whole node: only this domain's. All domains' by default.
    domain: Option<String>,
    /// Only those to this account: its bare JID, or its local part.
    #[param(example = "alice@localhost")]
    to: Option<String>,
    /// Only those in these states, separated by commas.
    #[param(example = "stored,sent")]
    state: Option<String>,
    /// Only those that this API key sent, by its number.
    key: Option<u32>,
    /// Only those accepted at this time or later.
    #[param(value_type = Option<String>, format = DateTime)]
    after: Option<Time>,
    /// Only those accepted before this time.
    #[param(value_type = Option<String>, format = DateTime)]
    before: Option<Time>,
    /// The maximum number of notifications in the page.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<u16>,
    /// Where the page begins: `next` of the page before.
    cursor: Option<String>,
}

/// List notifications
///
/// Newest first, by the time of acceptance. Notifications with audience `always` and scheduled ones are listed until the node
/// forgets them (`notifications.trace_retention_ms` after they ended). The others are not kept: each shard of the node lists
/// the newest 4,096 of them until it restarts. A key of a domain sees that domain's notifications. For one page the node
/// looks through up to 10,000 notifications, so a search for something rare may give a short page with `next`.
#[utoipa::path(
    get, path = "/v1/notifications", operation_id = "listNotifications", tag = "notifications", params(ListQuery),
    responses((status = 200, description = "A page of notifications", body = NotificationPage), schema::Problems)
)]
pub(crate) async fn list(
    key: Granted<Send>,
    State(app): State<App>,
    Params(query): Params<ListQuery>,
) -> Result<Json<NotificationPage>, Problem> {
    let query = read(&app, &key, &query)?;
    let (mut stored, next) = stored(&app, &query).await?;
    let remembered = remembered(&app, &query, &stored).await?;
    read_again(&app, &mut stored, &remembered).await?;
    let (traces, next) = merge(&query, stored, next, remembered);
    let notifications = traces.iter().map(NotificationView::from).collect();
    Ok(Json(NotificationPage { notifications, next: next.map(|id| id.to_string()) }))
}

fn read(app: &App, key: &Granted<Send>, query: &ListQuery) -> Result<NotificationQuery, Problem> {
    let cursor = query.cursor.as_deref().map(str::parse::<NotificationId>).transpose();
    let cursor = cursor.map_err(|_| {
        Problem::new(Code::InvalidParameter, "`cursor` is not one: give `next` of the page before")
    })?;
    let before = query.before.map_or(NotificationId(u128::MAX), |Time(at)| NotificationId::first_at(at));
    Ok(NotificationQuery {
        whose: whose(app, key, query)?,
        states: query.state.as_deref().map_or(Ok(States::ALL), read_states)?,
        key: query.key.map(KeyId),
        from: query.after.map_or(NotificationId(0), |Time(at)| NotificationId::first_at(at)),
        before: cursor.map_or(before, |cursor| cursor.min(before)),
        limit: limit(query.limit)?,
    })
}

fn whose(app: &App, key: &Granted<Send>, query: &ListQuery) -> Result<Whose, Problem> {
    let domain = query.domain.as_deref();
    if let Some(to) = &query.to {
        let jid = jids::account(to, &key.domain(app, domain)?.name)?;
        let domain = key.reach(app, jid.domain())?.id;
        return Ok(Whose::Account(domain, jids::local(&jid)));
    }
    Ok(match (domain, key.key.domain) {
        (None, None) => Whose::Anyones,
        _ => Whose::Domain(key.domain(app, domain)?.id),
    })
}

/// What the store has, and where to go on.
async fn stored(
    app: &App,
    query: &NotificationQuery,
) -> Result<(Vec<Trace>, Option<NotificationId>), Problem> {
    // To the store one that a connection was given is stored until it ends: which of the two it is, its home knows.
    let either = States::from(NotificationState::Stored).with(NotificationState::Sent.into());
    let states = if query.states.intersects(either) { query.states.with(either) } else { query.states };
    let Listing { traces, next } = app.ask(NotificationQuery { states, ..query.clone() }).await?;
    Ok((traces, next))
}

/// What the homes have in memory.
async fn remembered(app: &App, query: &NotificationQuery, stored: &[Trace]) -> Result<Vec<Trace>, Problem> {
    let ids: Arc<[NotificationId]> =
        stored.iter().filter(|trace| trace.ended.is_none()).map(|trace| trace.id).collect();
    match app.command(Command::TracesInMemory { query: Arc::new(query.clone()), ids }).await? {
        Outcome::Traces(traces) => Ok(traces),
        Outcome::Missing => Ok(Vec::new()),
        other => Err(Problem::unexpected(&other)),
    }
}

/// Reads again what waited and no home knows. It may have been given to a connection and have ended after the list was read:
/// its home forgets it when its end is committed.
async fn read_again(app: &App, stored: &mut [Trace], remembered: &[Trace]) -> Result<(), Problem> {
    let known: HashSet<NotificationId> = remembered.iter().map(|trace| trace.id).collect();
    let unknown = stored.iter_mut().filter(|trace| trace.ended.is_none() && !known.contains(&trace.id));
    // Asked together, they are answered from one transaction.
    try_join_all(unknown.map(async |trace| {
        if let Some(now) = app.ask(notifications::Trace { id: trace.id }).await? {
            *trace = *now;
        }
        Ok::<_, Problem>(())
    }))
    .await?;
    Ok(())
}

/// The page: what both know, of each the later state, down to where the store stopped.
fn merge(
    query: &NotificationQuery,
    stored: Vec<Trace>,
    next: Option<NotificationId>,
    remembered: Vec<Trace>,
) -> (Vec<Trace>, Option<NotificationId>) {
    let mut traces: HashMap<NotificationId, Trace> = stored.into_iter().map(|t| (t.id, t)).collect();
    traces.extend(remembered.into_iter().map(|t| (t.id, t)));
    let mut traces: Vec<Trace> = traces.into_values().collect();
    traces.retain(|t| next.is_none_or(|next| t.id >= next) && query.states.contains(t.shown()));
    traces.sort_unstable_by_key(|t| Reverse(t.id));
    let more = traces.len() > usize::from(query.limit);
    traces.truncate(usize::from(query.limit));
    let last = traces.last().map(|t| t.id);
    (traces, if more { last } else { next })
}

/// The states that a parameter names.
pub(crate) fn read_states(text: &str) -> Result<States, Problem> {
    let states = |word: &str| {
        let json = format!("\"{word}\"");
        serde_json::from_str::<NotificationState>(&json).map(States::from).ok()
    };
    text.split(',').map(states).try_fold(States::NONE, |all, one| Some(all.with(one?))).ok_or_else(|| {
        let words = schema::NotificationState::WORDS.join(",");
        Problem::new(Code::InvalidParameter, format!("`state` is one or more of {words}"))
    })
}
