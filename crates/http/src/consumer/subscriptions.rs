//! What a device follows.

use crate::accounts::Account;
use crate::app::App;
use crate::auth::{Enrol, Granted};
use crate::extract::{DomainQuery, Named, Params};
use crate::problem::{Code, Problem};
use crate::provider::topics::check_name;
use crate::values::jids;
use crate::values::schema;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use carillon_core::command::{TopicOp, TopicOutcome};

/// What a device follows.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct Subscriptions {
    /// The names of topics, in order.
    topics: Vec<String>,
}

/// A subscription.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct SubscriptionView {
    /// The topic's name.
    topic: String,
    /// The device's bare JID.
    jid: String,
}

/// List what a device follows
#[utoipa::path(
    get, path = "/v1/devices/{id}/subscriptions", operation_id = "listSubscriptions", tag = "devices",
    params(DomainQuery, ("id" = String, Path, description = "The device's id")),
    responses((status = 200, description = "The topics it follows", body = Subscriptions), schema::Problems)
)]
pub(crate) async fn list(
    key: Granted<Enrol>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named(id): Named<String>,
) -> Result<Json<Subscriptions>, Problem> {
    let domain = key.domain(&app, query.domain.as_deref())?;
    let jid = jids::device(&id, &domain)?;
    let account = Account { app: &app, domain: &domain, jid: &jid, missing: Code::UnknownDevice };
    let mut topics: Vec<String> = account.read().await?.topics.into_iter().map(Into::into).collect();
    topics.sort_unstable();
    Ok(Json(Subscriptions { topics }))
}

/// Subscribe a device to a topic
///
/// The topic's last item is sent to it, where the topic sends that.
#[utoipa::path(
    put, path = "/v1/devices/{id}/subscriptions/{topic}", operation_id = "subscribeDevice", tag = "devices",
    params(
        DomainQuery,
        ("id" = String, Path, description = "The device's id"),
        ("topic" = String, Path, description = "The topic's name, percent-encoded"),
    ),
    responses(
        (status = 200, description = "It followed the topic already", body = SubscriptionView),
        (status = 201, description = "It follows the topic now", body = SubscriptionView),
        schema::Problems
    )
)]
pub(crate) async fn put(
    key: Granted<Enrol>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named((id, topic)): Named<(String, String)>,
) -> Result<(StatusCode, Json<SubscriptionView>), Problem> {
    let domain = key.domain(&app, query.domain.as_deref())?;
    let jid = jids::device(&id, &domain)?;
    check_name(&topic)?;
    // The operation itself does not tell a missing account from a missing topic.
    Account { app: &app, domain: &domain, jid: &jid, missing: Code::UnknownDevice }.read().await?;
    let op = TopicOp::Subscribe { account: jid.clone() };
    match app.topic(&domain, &topic, op, Code::UnknownTopic).await? {
        TopicOutcome::Subscribed { new } => {
            let status = if new { StatusCode::CREATED } else { StatusCode::OK };
            Ok((status, Json(SubscriptionView { topic, jid: jid.as_str().to_owned() })))
        }
        other => Err(Problem::unexpected(&other)),
    }
}

/// Unsubscribe a device from a topic
#[utoipa::path(
    delete, path = "/v1/devices/{id}/subscriptions/{topic}", operation_id = "unsubscribeDevice", tag = "devices",
    params(
        DomainQuery,
        ("id" = String, Path, description = "The device's id"),
        ("topic" = String, Path, description = "The topic's name, percent-encoded"),
    ),
    responses((status = 204, description = "It no longer follows the topic"), schema::Problems)
)]
pub(crate) async fn delete(
    key: Granted<Enrol>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named((id, topic)): Named<(String, String)>,
) -> Result<StatusCode, Problem> {
    let domain = key.domain(&app, query.domain.as_deref())?;
    let jid = jids::device(&id, &domain)?;
    check_name(&topic)?;
    app.topic(&domain, &topic, TopicOp::Unsubscribe { account: jid }, Code::NotSubscribed).await?;
    Ok(StatusCode::NO_CONTENT)
}
