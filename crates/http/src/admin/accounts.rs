//! Accounts, as an operator manages them: with passwords that people chose.

use crate::accounts::{self, Account, find};
use crate::app::App;
use crate::auth::{Admin, Granted};
use crate::extract::{DomainQuery, JsonBody, Named, PageQuery, Params, limit};
use crate::problem::{Code, Problem};
use crate::values::schema;
use crate::values::time::Time;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use carillon_core::model::AccountState;
use carillon_core::ports::store::accounts::Enrolment;

/// An account to be created.
#[derive(serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AccountBody {
    /// Its bare JID, or its local part.
    jid: String,
    /// Its password.
    password: String,
}

/// A new password.
#[derive(serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PasswordBody {
    /// The password.
    password: String,
    /// Whether its sessions may go on.
    #[serde(default)]
    keep_sessions: bool,
}

/// An account.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct AccountView {
    /// Its bare JID.
    jid: String,
    /// `enabled` or `disabled`.
    state: &'static str,
    /// When it was created.
    created_at: Time,
    /// How many notifications wait for it.
    pending: u32,
    /// How many sessions it has now; not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    sessions: Option<usize>,
    /// The topics it follows; not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    topics: Option<Vec<String>>,
}

/// An account that was created.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct AccountCreated {
    /// Its bare JID.
    jid: String,
}

/// A page of accounts, in the order of their local parts.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct AccountPage {
    /// The accounts.
    accounts: Vec<AccountView>,
    /// What to give as `after` for the next page; none on the last.
    next: Option<String>,
}

/// List accounts
#[utoipa::path(
    get, path = "/v1/admin/accounts", operation_id = "listAccounts", tag = "admin", params(PageQuery),
    responses((status = 200, description = "A page of accounts", body = AccountPage), schema::Problems)
)]
pub(crate) async fn list(
    key: Granted<Admin>,
    State(app): State<App>,
    Params(query): Params<PageQuery>,
) -> Result<Json<AccountPage>, Problem> {
    let domain = key.domain(&app, query.domain.as_deref())?;
    let (enrolments, next) = accounts::list(&app, &domain, query.after, limit(query.limit)?).await?;
    Ok(Json(AccountPage { accounts: enrolments.iter().map(AccountView::of).collect(), next }))
}

/// Create an account
#[utoipa::path(
    post, path = "/v1/admin/accounts", operation_id = "createAccount", tag = "admin", params(DomainQuery),
    request_body = AccountBody,
    responses((status = 201, description = "It is created", body = AccountCreated), schema::Problems)
)]
pub(crate) async fn create(
    key: Granted<Admin>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    JsonBody { value: body, .. }: JsonBody<AccountBody>,
) -> Result<(StatusCode, Json<AccountCreated>), Problem> {
    let (domain, jid) =
        find(&key, &app, &body.jid, query.domain.as_deref()).map_err(|problem| problem.at("/jid"))?;
    let keys = app.derivations().derive(body.password, app.options.core.scram_iterations).await;
    let credentials = keys.map_err(|problem| problem.at("/password"))?;
    Account { app: &app, domain: &domain, jid: &jid, missing: Code::UnknownAccount }
        .create(credentials)
        .await?;
    Ok((StatusCode::CREATED, Json(AccountCreated { jid: jid.as_str().to_owned() })))
}

/// Read an account
#[utoipa::path(
    get, path = "/v1/admin/accounts/{jid}", operation_id = "getAccount", tag = "admin",
    params(DomainQuery, ("jid" = String, Path, description = "Its bare JID or local part")),
    responses((status = 200, description = "The account", body = AccountView), schema::Problems)
)]
pub(crate) async fn get(
    key: Granted<Admin>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named(jid): Named<String>,
) -> Result<Json<AccountView>, Problem> {
    let (domain, jid) = find(&key, &app, &jid, query.domain.as_deref())?;
    let account = Account { app: &app, domain: &domain, jid: &jid, missing: Code::UnknownAccount };
    let enrolment = account.read().await?;
    let sessions = Some(account.sessions().await?);
    let topics = Some(enrolment.topics.iter().map(ToString::to_string).collect());
    Ok(Json(AccountView { sessions, topics, ..AccountView::of(&enrolment) }))
}

/// Remove an account
///
/// With all that belongs to it; its sessions end.
#[utoipa::path(
    delete, path = "/v1/admin/accounts/{jid}", operation_id = "deleteAccount", tag = "admin",
    params(DomainQuery, ("jid" = String, Path, description = "Its bare JID or local part")),
    responses((status = 204, description = "It is gone"), schema::Problems)
)]
pub(crate) async fn delete(
    key: Granted<Admin>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named(jid): Named<String>,
) -> Result<StatusCode, Problem> {
    let (domain, jid) = find(&key, &app, &jid, query.domain.as_deref())?;
    Account { app: &app, domain: &domain, jid: &jid, missing: Code::UnknownAccount }.delete().await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Change an account's password
///
/// Its sessions end, unless `keep_sessions` says otherwise.
#[utoipa::path(
    put, path = "/v1/admin/accounts/{jid}/password", operation_id = "setPassword", tag = "admin",
    params(DomainQuery, ("jid" = String, Path, description = "Its bare JID or local part")),
    request_body = PasswordBody,
    responses((status = 204, description = "It is changed"), schema::Problems)
)]
pub(crate) async fn set_password(
    key: Granted<Admin>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named(jid): Named<String>,
    JsonBody { value: body, .. }: JsonBody<PasswordBody>,
) -> Result<StatusCode, Problem> {
    let (domain, jid) = find(&key, &app, &jid, query.domain.as_deref())?;
    let keys = app.derivations().derive(body.password, app.options.core.scram_iterations).await;
    let credentials = keys.map_err(|problem| problem.at("/password"))?;
    let account = Account { app: &app, domain: &domain, jid: &jid, missing: Code::UnknownAccount };
    account.set_credentials(credentials, body.keep_sessions).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Revoke an account's tokens
///
/// Each of its clients needs the password for its next login (XEP-0484). Its sessions go on.
#[utoipa::path(
    delete, path = "/v1/admin/accounts/{jid}/tokens", operation_id = "revokeTokens", tag = "admin",
    params(DomainQuery, ("jid" = String, Path, description = "Its bare JID or local part")),
    responses((status = 204, description = "The tokens are revoked"), schema::Problems)
)]
pub(crate) async fn revoke_tokens(
    key: Granted<Admin>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named(jid): Named<String>,
) -> Result<StatusCode, Problem> {
    let (domain, jid) = find(&key, &app, &jid, query.domain.as_deref())?;
    let account = Account { app: &app, domain: &domain, jid: &jid, missing: Code::UnknownAccount };
    account.revoke_tokens().await?;
    Ok(StatusCode::NO_CONTENT)
}

impl AccountView {
    fn of(enrolment: &Enrolment) -> AccountView {
        AccountView {
            jid: enrolment.jid.as_str().to_owned(),
            state: match enrolment.state {
                AccountState::Enabled => "enabled",
                AccountState::Disabled(_) => "disabled",
            },
            created_at: Time(enrolment.created),
            pending: enrolment.pending,
            sessions: None,
            topics: None,
        }
    }
}
