//! Topics: created, changed, listed, removed, and who follows them.

use crate::app::App;
use crate::auth::{Granted, Topics};
use crate::extract::{DomainQuery, Named, PageQuery, Params, Patch, Wanted, cut, limit};
use crate::problem::{Code, Problem};
use crate::values::jids;
use crate::values::schema;
use crate::values::text::fits;
use crate::values::time::Time;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use carillon_core::command::{Command, Outcome, TopicFigures, TopicOp, TopicOutcome};
use carillon_core::model::{Affiliation, Domain, TopicConfig, TopicId, TopicRecord};
use carillon_core::ports::store::subscriptions::SubscriberCount;
use carillon_core::ports::store::topics::Topics as ListTopics;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A topic.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct TopicView {
    /// Its name.
    name: String,
    /// Its domain.
    domain: String,
    /// When it was created.
    created_at: Time,
    /// Its configuration.
    #[schema(value_type = schema::TopicConfig)]
    config: TopicConfig,
    /// How accounts stand to it (XEP-0060 §4.1), by bare JID.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = std::collections::HashMap<String, String>)]
    affiliations: BTreeMap<String, Affiliation>,
    /// What was counted of it. Not in the answer to a change.
    #[serde(skip_serializing_if = "Option::is_none")]
    figures: Option<FiguresView>,
}

/// What was counted of a topic. Each shard of a node counts up to 10,000 topics; of others, the counts are 0.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct FiguresView {
    /// How many accounts follow it. Not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    subscribers: Option<u64>,
    /// How many sessions follow it now, also those of clients without an account.
    sessions: u64,
    /// How many items were published on it since the node started.
    published: u64,
    /// How many times an item of it was given to a connection since the node started.
    delivered: u64,
}

/// A page of topics, in the order of their names.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct TopicPage {
    /// The topics.
    topics: Vec<TopicView>,
    /// What to give as `after` for the next page; none on the last.
    next: Option<String>,
}

/// A page of subscribers, in the order of their JIDs.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct SubscriberPage {
    /// Bare JIDs.
    subscribers: Vec<String>,
    /// What to give as `after` for the next page; none on the last.
    next: Option<String>,
}

/// List topics
#[utoipa::path(
    get, path = "/v1/topics", operation_id = "listTopics", tag = "topics", params(PageQuery),
    responses((status = 200, description = "A page of topics", body = TopicPage), schema::Problems)
)]
pub(crate) async fn list(
    key: Granted<Topics>,
    State(app): State<App>,
    Params(query): Params<PageQuery>,
) -> Result<Json<TopicPage>, Problem> {
    let domain = key.domain(&app, query.domain.as_deref())?;
    let limit = limit(query.limit)?;
    let ask = ListTopics { domain: domain.id, after: query.after.map(Into::into), limit: limit + 1 };
    let mut records = app.ask(ask).await?;
    let more = cut(&mut records, limit);
    let next = records.last().filter(|_| more).map(|last| last.name.to_string());
    let figures = figures(&app, records.iter().map(|record| record.id).collect()).await?;
    let view = |(record, figures): (&TopicRecord, TopicFigures)| TopicView {
        figures: Some(FiguresView::of(figures, None)),
        ..TopicView::of(record, &domain.name)
    };
    Ok(Json(TopicPage { topics: records.iter().zip(figures).map(view).collect(), next }))
}

/// Create a topic
///
/// Members that are left out have their defaults. A topic that exists is left as it is: `200` when it has all that the request names,
/// else `409` with the names of the members that differ. `PATCH` changes a topic.
#[utoipa::path(
    put, path = "/v1/topics/{topic}", operation_id = "putTopic", tag = "topics",
    params(DomainQuery, ("topic" = String, Path, description = "The topic's name, percent-encoded: 1 to 1023 bytes")),
    request_body = schema::TopicConfig,
    responses(
        (status = 200, description = "It exists as the request wants it, and was not changed", body = TopicView),
        (status = 201, description = "It was created", body = TopicView),
        schema::Problems
    )
)]
pub(crate) async fn put(
    key: Granted<Topics>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named(name): Named<String>,
    Wanted(wanted): Wanted<TopicConfig>,
) -> Result<(StatusCode, Json<TopicView>), Problem> {
    let domain = key.domain(&app, query.domain.as_deref())?;
    check_name(&name)?;
    let config = wanted.over(&TopicConfig::default())?;
    check(&config)?;
    let (status, record) =
        match app.topic(&domain, &name, TopicOp::Create { config }, Code::UnknownTopic).await {
            Err(problem) if problem.code() == Code::AlreadyExists => {
                let record = record(&app, &domain, &name, TopicOp::Describe).await?;
                wanted.is_met_by(&record.config, &format!("the topic `{name}`"))?;
                (StatusCode::OK, record)
            }
            answer => (StatusCode::CREATED, of_record(answer?)?),
        };
    Ok((status, Json(TopicView::of(&record, &domain.name))))
}

/// Change a topic
///
/// A JSON merge patch (RFC 7396): what is left out stays as it is, and what is `null` gets its default. Also taken as `application/json`.
#[utoipa::path(
    patch, path = "/v1/topics/{topic}", operation_id = "updateTopic", tag = "topics",
    params(DomainQuery, ("topic" = String, Path, description = "The topic's name, percent-encoded")),
    request_body(content = schema::TopicConfig, content_type = "application/merge-patch+json"),
    responses((status = 200, description = "The topic as it is now", body = TopicView), schema::Problems)
)]
pub(crate) async fn update(
    key: Granted<Topics>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named(name): Named<String>,
    Patch(patch): Patch<TopicConfig>,
) -> Result<Json<TopicView>, Problem> {
    let domain = key.domain(&app, query.domain.as_deref())?;
    check_name(&name)?;
    check(&patch.over(&TopicConfig::default())?)?;
    let record = record(&app, &domain, &name, TopicOp::Amend { change: patch.to()? }).await?;
    Ok(Json(TopicView::of(&record, &domain.name)))
}

/// Read a topic
///
/// With its figures: how many follow it, and what was published and delivered.
#[utoipa::path(
    get, path = "/v1/topics/{topic}", operation_id = "getTopic", tag = "topics",
    params(DomainQuery, ("topic" = String, Path, description = "The topic's name, percent-encoded")),
    responses((status = 200, description = "The topic", body = TopicView), schema::Problems)
)]
pub(crate) async fn get(
    key: Granted<Topics>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named(name): Named<String>,
) -> Result<Json<TopicView>, Problem> {
    let domain = key.domain(&app, query.domain.as_deref())?;
    check_name(&name)?;
    let record = record(&app, &domain, &name, TopicOp::Describe).await?;
    let counted = figures(&app, [record.id].into()).await?.into_iter().next().unwrap_or_default();
    let subscribers = app.ask(SubscriberCount { topic: record.id }).await?;
    let figures = Some(FiguresView::of(counted, Some(subscribers)));
    Ok(Json(TopicView { figures, ..TopicView::of(&record, &domain.name) }))
}

/// The record that an operation on a topic, which is there, answers with.
async fn record(app: &App, domain: &Domain, name: &str, op: TopicOp) -> Result<Arc<TopicRecord>, Problem> {
    of_record(app.topic(domain, name, op, Code::UnknownTopic).await?)
}

fn of_record(outcome: TopicOutcome) -> Result<Arc<TopicRecord>, Problem> {
    match outcome {
        TopicOutcome::Record { record, .. } => Ok(record),
        other => Err(Problem::unexpected(&other)),
    }
}

/// What the shards counted of each topic.
async fn figures(app: &App, topics: Arc<[TopicId]>) -> Result<Vec<TopicFigures>, Problem> {
    match app.command(Command::TopicFigures { topics }).await? {
        Outcome::TopicFigures(figures) => Ok(figures),
        other => Err(Problem::unexpected(&other)),
    }
}

/// Remove a topic
///
/// With its items and subscriptions.
#[utoipa::path(
    delete, path = "/v1/topics/{topic}", operation_id = "deleteTopic", tag = "topics",
    params(DomainQuery, ("topic" = String, Path, description = "The topic's name, percent-encoded")),
    responses((status = 204, description = "It is gone"), schema::Problems)
)]
pub(crate) async fn delete(
    key: Granted<Topics>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named(name): Named<String>,
) -> Result<StatusCode, Problem> {
    let domain = key.domain(&app, query.domain.as_deref())?;
    check_name(&name)?;
    app.topic(&domain, &name, TopicOp::Delete, Code::UnknownTopic).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// List a topic's subscribers
#[utoipa::path(
    get, path = "/v1/topics/{topic}/subscribers", operation_id = "listSubscribers", tag = "topics",
    params(PageQuery, ("topic" = String, Path, description = "The topic's name, percent-encoded")),
    responses((status = 200, description = "A page of subscribers", body = SubscriberPage), schema::Problems)
)]
pub(crate) async fn subscribers(
    key: Granted<Topics>,
    State(app): State<App>,
    Params(query): Params<PageQuery>,
    Named(name): Named<String>,
) -> Result<Json<SubscriberPage>, Problem> {
    let domain = key.domain(&app, query.domain.as_deref())?;
    check_name(&name)?;
    let limit = limit(query.limit)?;
    let after = query.after.as_deref().map(|after| jids::account(after, &domain.name)).transpose()?;
    let op = TopicOp::Subscribers { after, max: limit + 1 };
    match app.topic(&domain, &name, op, Code::UnknownTopic).await? {
        TopicOutcome::Jids(mut jids) => {
            let more = cut(&mut jids, limit);
            let subscribers: Vec<String> = jids.iter().map(|jid| jid.as_str().to_owned()).collect();
            let next = subscribers.last().filter(|_| more).cloned();
            Ok(Json(SubscriberPage { subscribers, next }))
        }
        other => Err(Problem::unexpected(&other)),
    }
}

impl TopicView {
    fn of(record: &TopicRecord, domain: &str) -> TopicView {
        TopicView {
            name: record.name.to_string(),
            domain: domain.to_owned(),
            created_at: Time(record.created),
            config: record.config.clone(),
            affiliations: record.affiliations.iter().map(|(jid, a)| (jid.as_str().to_owned(), *a)).collect(),
            figures: None,
        }
    }
}

impl FiguresView {
    fn of(figures: TopicFigures, subscribers: Option<u64>) -> FiguresView {
        let TopicFigures { sessions, published, delivered } = figures;
        FiguresView { subscribers, sessions, published, delivered }
    }
}

/// Refuses a name that no topic can have.
pub(crate) fn check_name(name: &str) -> Result<(), Problem> {
    if fits(name, 1..=1023) {
        return Ok(());
    }
    let detail = "a topic's name has 1 to 1023 bytes, none of them a control character";
    Err(Problem::new(Code::InvalidParameter, detail))
}

fn check(config: &TopicConfig) -> Result<(), Problem> {
    if !fits(&config.title, 0..=256) {
        let detail = "`title` has at most 256 bytes, none of them a control character";
        return Err(Problem::new(Code::InvalidValue, detail).at("/title"));
    }
    if !(1..=10_000).contains(&config.max_items) {
        return Err(Problem::new(Code::InvalidValue, "`max_items` is from 1 to 10000").at("/max_items"));
    }
    Ok(())
}
