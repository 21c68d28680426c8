//! Who of many accounts is there.

use crate::app::App;
use crate::auth::{Granted, Send};
use crate::extract::{DomainQuery, JsonBody, Params};
use crate::problem::{Code, Problem};
use crate::values::jids;
use crate::values::schema;
use crate::values::time::Time;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use carillon_core::command::{AccountPresence, Command, Outcome, Reach};
use carillon_wire::jid::BareJid;
use std::sync::Arc;

/// Accounts to be looked up.
#[derive(Debug, serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PresenceBody {
    /// Each as a bare JID, or as a local part of the domain.
    #[schema(min_items = 1, max_items = 1000, example = json!(["alice", "bob@localhost"]))]
    accounts: Vec<String>,
}

/// What the accounts of a request are, in the order of the request.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct PresenceList {
    /// One for each.
    presence: Vec<PresenceView>,
}

/// What an account is now.
#[derive(Debug, Default, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct PresenceView {
    /// Its bare JID; as the request names it where it cannot be read.
    jid: String,
    /// Whether it has a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    online: Option<bool>,
    /// Which notifications reach it. `active`: all. `asleep`: all but those for the audience `active`. `unavailable`: it is
    /// connected, and none reaches it before it sends presence. `offline`: it has no session.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Reach>)]
    state: Option<&'static str>,
    /// How many sessions it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    sessions: Option<usize>,
    /// When the oldest of its sessions was bound. Not known of an account that is offline.
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<Time>,
    /// Why it cannot be looked up.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Problem>)]
    error: Option<Problem>,
}

/// Look up the presence of accounts
///
/// Of up to 1,000 accounts: who is connected, and who is active. The accounts' homes answer from memory, so one that does not
/// exist is `offline`. The status is `207` when at least one account has an `error`.
#[utoipa::path(
    post, path = "/v1/presence", operation_id = "lookUpPresence", tag = "notifications",
    params(DomainQuery), request_body = PresenceBody,
    responses(
        (status = 200, description = "What each account is", body = PresenceList),
        (status = 207, description = "The same, and at least one has an `error`", body = PresenceList),
        schema::Problems
    )
)]
pub(crate) async fn look_up(
    key: Granted<Send>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    JsonBody { value: body, .. }: JsonBody<PresenceBody>,
) -> Result<(StatusCode, Json<PresenceList>), Problem> {
    let domain = &key.domain(&app, query.domain.as_deref())?.name;
    let count = body.accounts.len();
    if count == 0 {
        let detail = "`accounts` is an empty list: name at least one";
        return Err(Problem::new(Code::InvalidValue, detail).at("/accounts"));
    }
    if count > ACCOUNTS_MAX {
        let detail = format!("`accounts` names {count} accounts; a request may name {ACCOUNTS_MAX}");
        return Err(Problem::new(Code::TooManyTargets, detail).at("/accounts"));
    }
    let read = |(i, text): (usize, &String)| {
        let account = jids::account(text, domain).and_then(|jid| key.reach(&app, jid.domain()).map(|_| jid));
        account.map_err(|problem| PresenceView::wrong(text, problem.at(format!("/accounts/{i}"))))
    };
    let accounts: Vec<Result<BareJid, PresenceView>> = body.accounts.iter().enumerate().map(read).collect();
    let status = if accounts.iter().all(Result::is_ok) { StatusCode::OK } else { StatusCode::MULTI_STATUS };
    let asked: Arc<[BareJid]> = accounts.iter().flatten().cloned().collect();
    let mut found = found(&app, asked).await?.into_iter();
    let view = |account: Result<BareJid, PresenceView>| match account {
        Ok(jid) => PresenceView::of(&jid, found.next().flatten()),
        Err(view) => view,
    };
    Ok((status, Json(PresenceList { presence: accounts.into_iter().map(view).collect() })))
}

/// What the homes say of each account.
async fn found(app: &App, asked: Arc<[BareJid]>) -> Result<Vec<Option<AccountPresence>>, Problem> {
    let mut found = vec![None; asked.len()];
    match app.command(Command::Presence { accounts: asked }).await? {
        Outcome::Presence(all) => all.into_iter().for_each(|one| found[one.index] = Some(one)),
        other => return Err(Problem::unexpected(&other)),
    }
    Ok(found)
}

impl PresenceView {
    fn of(jid: &BareJid, found: Option<AccountPresence>) -> PresenceView {
        let state = match found.map(|found| found.reach) {
            Some(Reach::Active) => "active",
            Some(Reach::Asleep) => "asleep",
            Some(Reach::Unavailable) => "unavailable",
            None => "offline",
        };
        PresenceView {
            jid: jid.as_str().to_owned(),
            online: Some(found.is_some()),
            state: Some(state),
            sessions: Some(found.map_or(0, |found| found.sessions)),
            since: found.map(|found| Time(found.since)),
            error: None,
        }
    }

    fn wrong(text: &str, problem: Problem) -> PresenceView {
        PresenceView { jid: text.to_owned(), error: Some(problem), ..PresenceView::default() }
    }
}

const ACCOUNTS_MAX: usize = 1000;
