//! What a cell does for its front: it takes notifications that the front has accepted, tells all of an account that moves to another cell, and
//! takes an account that comes from one.

use super::document::Document;
use crate::accounts::{self, Account};
use crate::admin::import::{RecordKeys, iterations_max};
use crate::app::App;
use crate::auth::{Admin, Granted, acts};
use crate::extract::{JsonBody, Named, Params};
use crate::problem::{Code, Problem};
use crate::provider::notifications::{SendResult, sent, unknown_device};
use crate::values::jids;
use crate::values::schema;
use crate::values::time::{Time, now};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use carillon_core::command::{Command, Outcome, TopicOp};
use carillon_core::model::{AcknowledgedBy, Audience, Credentials, Domain, Notification, NotificationId};
use carillon_core::ports::Page;
use carillon_core::ports::store::accounts::{ImportAccounts, ImportRefused, ImportedAccount};
use carillon_core::ports::store::broadcasts::{
    AccountEnd, BroadcastEndOf, Broadcasts, EndBroadcasts, EndedBroadcasts,
};
use carillon_core::ports::store::notifications::Unended;
use carillon_wire::jid::BareJid;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use std::sync::Arc;

/// An account on its way to another cell, or a part of it.
#[derive(serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Transfer {
    /// Its keys; only in the first part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    keys: Option<TransferKeys>,
    /// The topics that it follows; only in the first part.
    #[serde(default)]
    topics: Vec<String>,
    /// Broadcasts that it has acknowledged and that are still open; only in the first part.
    #[serde(default)]
    acknowledged: Vec<Acknowledged>,
    /// Notifications that have not ended, in the order of their ids.
    #[serde(default)]
    notifications: Vec<Document>,
    /// What to give as `after` for the next part; none in the last.
    #[serde(default)]
    pub(super) next: Option<String>,
}

/// An account's keys.
#[derive(serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TransferKeys {
    /// For SCRAM-SHA-1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scram_sha1: Option<RecordKeys>,
    /// For SCRAM-SHA-256.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scram_sha256: Option<RecordKeys>,
}

/// A broadcast that an account has acknowledged.
#[derive(Debug, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Acknowledged {
    /// The broadcast.
    id: String,
    /// When.
    at: Time,
    /// How.
    #[schema(value_type = schema::AcknowledgedBy)]
    by: AcknowledgedBy,
}

/// What was taken of an account.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct Transferred {
    /// Notifications that are in this cell now.
    notifications: usize,
    /// Topics that this cell does not have: the account does not follow them here.
    topics_missing: Vec<String>,
}

/// Which part.
#[derive(Debug, serde::Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct TransferQuery {
    /// For the next part: `next` of the one before.
    after: Option<String>,
}

/// Take a notification that a front has accepted
///
/// With its id and its times. One that is known is left as it is: the answer is what became of it. Needs a key of the whole node.
#[utoipa::path(
    post, path = "/v1/admin/notifications", operation_id = "takeNotification", tag = "cells", request_body = Document,
    responses((status = 202, description = "It is here", body = SendResult), schema::Problems)
)]
pub(crate) async fn take(
    key: Granted<Admin>,
    State(app): State<App>,
    JsonBody { value: document, .. }: JsonBody<Document>,
) -> Result<(StatusCode, Json<SendResult>), Problem> {
    key.whole_node()?;
    acts::forget();
    let name = document.to.rsplit('@').next().unwrap_or_default();
    let domain = key.reach(&app, name)?;
    let notification = document.read(&app, &domain)?;
    Ok((StatusCode::ACCEPTED, Json(deliver(&app, notification).await?)))
}

/// Read an account that moves to another cell
///
/// All that goes with it: its keys, its topics, the broadcasts that it has acknowledged and the notifications that have not ended. Disable it before:
/// what is delivered meanwhile would be delivered again. Needs a key of the whole node.
#[utoipa::path(
    get, path = "/v1/admin/accounts/{jid}/transfer", operation_id = "readTransfer", tag = "cells",
    params(TransferQuery, ("jid" = String, Path, description = "The account's bare JID")),
    responses((status = 200, description = "A part of it", body = Transfer), schema::Problems)
)]
pub(crate) async fn read(
    key: Granted<Admin>,
    State(app): State<App>,
    Named(jid): Named<String>,
    Params(query): Params<TransferQuery>,
) -> Result<Json<Transfer>, Problem> {
    let (jid, domain) = found(&key, &app, &jid)?;
    // Its keys are in it.
    acts::note_read();
    let invalid =
        |_| Problem::new(Code::InvalidParameter, "`after` is not one: give `next` of the part before");
    let after = query.after.as_deref().map(str::parse::<NotificationId>).transpose().map_err(invalid)?;
    let account = Account { app: &app, domain: &domain, jid: &jid, missing: Code::UnknownAccount };
    let page = Page { entries: PART_ENTRIES, bytes: PART_BYTES };
    let from = after.unwrap_or(NotificationId(0));
    let asked = Unended { domain: domain.id, local: jids::local(&jid), after: from, page, now: now() };
    let (keys, topics, acknowledged) = match after {
        Some(_) => Default::default(),
        None => first(&app, &account).await?,
    };
    let part = app.ask(asked).await?;
    let last = part.entries.last().filter(|_| part.more).map(|last| last.id.to_string());
    let notifications = part.entries.iter().map(Document::of).collect();
    Ok(Json(Transfer { keys, topics, acknowledged, notifications, next: last }))
}

/// Take an account that comes from another cell
///
/// It is disabled here until it is enabled. The same part again changes nothing. Needs a key of the whole node.
#[utoipa::path(
    put, path = "/v1/admin/accounts/{jid}/transfer", operation_id = "takeTransfer", tag = "cells", request_body = Transfer,
    params(("jid" = String, Path, description = "The account's bare JID")),
    responses((status = 200, description = "It is here", body = Transferred), schema::Problems)
)]
pub(crate) async fn put(
    key: Granted<Admin>,
    State(app): State<App>,
    Named(jid): Named<String>,
    JsonBody { value: part, .. }: JsonBody<Transfer>,
) -> Result<Json<Transferred>, Problem> {
    let (jid, domain) = found(&key, &app, &jid)?;
    let notifications = part.notifications.iter().map(|document| document.read(&app, &domain));
    let notifications: Vec<_> = notifications.collect::<Result<_, _>>()?;
    let account = Account { app: &app, domain: &domain, jid: &jid, missing: Code::UnknownAccount };
    if let Some(keys) = part.keys {
        import(&account, keys.read(&app)?).await?;
    }
    let topics_missing = subscribe(&account, part.topics).await?;
    acknowledge(&account, &part.acknowledged).await?;
    // Asked in their order: the order in which they began to wait is that in which they are delivered.
    let at_once = app.options.settings.pending_max;
    let taken: Vec<_> = stream::iter(notifications)
        .map(|notification| deliver(&app, notification))
        .buffered(at_once)
        .try_collect()
        .await?;
    Ok(Json(Transferred { notifications: taken.len(), topics_missing }))
}

/// What the first part has besides notifications.
async fn first(
    app: &App,
    account: &Account<'_>,
) -> Result<(Option<TransferKeys>, Vec<String>, Vec<Acknowledged>), Problem> {
    let (credentials, _) = account.credentials().await?;
    let enrolment = account.read().await?;
    let topics = enrolment.topics.iter().map(ToString::to_string).collect();
    let all = Broadcasts { domain: account.domain.id, before: NotificationId(u128::MAX), limit: 1000 };
    let open = app.ask(all).await?.into_iter().filter(|report| report.broadcast.is_open());
    let broadcasts: Vec<_> = open.map(|report| report.broadcast.id).collect();
    let mut acknowledged = Vec::new();
    if !broadcasts.is_empty() {
        for (id, account) in app.ask(EndedBroadcasts { broadcasts, accounts: vec![enrolment.id] }).await? {
            if let Some(end) = app.ask(BroadcastEndOf { id, account }).await? {
                acknowledged.push(Acknowledged { id: id.to_string(), at: Time(end.at), by: end.by });
            }
        }
    }
    Ok((Some(TransferKeys::of(&credentials)), topics, acknowledged))
}

/// Creates the account, or gives it these keys; it cannot log in.
async fn import(account: &Account<'_>, credentials: Credentials) -> Result<(), Problem> {
    let accounts = vec![ImportedAccount { local: jids::local(account.jid), credentials }];
    let ask = ImportAccounts { domain: account.domain.id, accounts, now: now() };
    match account.app.ask(ask).await? {
        Ok(()) => {}
        Err(ImportRefused::DomainFull) => return Err(accounts::full()),
        Err(ImportRefused::IsBeingRemoved) => return Err(accounts::is_being_removed()),
        Err(ImportRefused::NoDomain) => {
            return Err(Problem::new(Code::UnknownDomain, "the domain has just been deleted"));
        }
    }
    accounts::changed(account.app, [account.jid.clone()].into()).await?;
    account.set_enabled(false).await
}

/// Has it follow topics; those that are not here.
async fn subscribe(account: &Account<'_>, topics: Vec<String>) -> Result<Vec<String>, Problem> {
    let mut missing = Vec::new();
    for topic in topics {
        let op = TopicOp::Subscribe { account: account.jid.clone() };
        match account.app.topic(account.domain, &topic, op, Code::UnknownTopic).await {
            Err(problem) if problem.code() == Code::UnknownTopic => missing.push(topic),
            Err(problem) => return Err(problem),
            Ok(_) => {}
        }
    }
    Ok(missing)
}

/// Notes the broadcasts that it has had elsewhere.
async fn acknowledge(account: &Account<'_>, broadcasts: &[Acknowledged]) -> Result<(), Problem> {
    if broadcasts.is_empty() {
        return Ok(());
    }
    let number = account.read().await?.id;
    let end = |Acknowledged { id, at, by }: &Acknowledged| {
        let id =
            id.parse().map_err(|_| Problem::new(Code::InvalidValue, "an id of `acknowledged` is none"))?;
        Ok(AccountEnd { id, account: number, at: at.0, by: *by })
    };
    let ends: Vec<AccountEnd> = broadcasts.iter().map(end).collect::<Result<_, Problem>>()?;
    account.app.ask(EndBroadcasts { ends, given: Vec::new() }).await
}

/// Gives a notification that has an id to its device, once.
async fn deliver(app: &App, notification: Notification) -> Result<SendResult, Problem> {
    let (id, to) = (notification.id, notification.to.clone());
    let is_kept = notification.audience == Audience::Always || notification.send_at.is_some();
    // The store knows those that it keeps; of the others the home of their account remembers the newest.
    if !is_kept && let Outcome::Trace(trace) = app.command(Command::Trace { id }).await? {
        return sent(&trace);
    }
    match app.command(Command::Notify(Arc::new(notification))).await? {
        Outcome::Notified(trace) => sent(&trace),
        Outcome::Missing => Err(unknown_device(&to)),
        other => Err(Problem::unexpected(&other)),
    }
}

fn found(key: &Granted<Admin>, app: &App, jid: &str) -> Result<(BareJid, Arc<Domain>), Problem> {
    key.whole_node()?;
    let jid = jids::account(jid, &app.options.default_domain)?;
    let domain = key.reach(app, jid.domain())?;
    Ok((jid, domain))
}

impl TransferKeys {
    fn of(credentials: &Credentials) -> TransferKeys {
        TransferKeys {
            scram_sha1: credentials.sha1.as_ref().map(RecordKeys::of),
            scram_sha256: credentials.sha256.as_ref().map(RecordKeys::of),
        }
    }

    fn read(self, app: &App) -> Result<Credentials, Problem> {
        let most = iterations_max(app.options.core.scram_iterations);
        let keys = |keys: Option<RecordKeys>, bytes| keys.map(|keys| keys.read(bytes, most)).transpose();
        Ok(Credentials { sha1: keys(self.scram_sha1, 20)?, sha256: keys(self.scram_sha256, 32)? })
    }
}

/// The notifications of a part, and the bytes of their payloads: with what JSON escapes less than the body of a request may have.
const PART_ENTRIES: u16 = 200;
const PART_BYTES: usize = 128 << 10;
