//! Items: published to a topic, read again, retracted.

use super::idempotency::{self, Answer, Identity, KeyDecision, Publication};
use super::topics::check_name;
use crate::app::App;
use crate::auth::{Granted, Topics};
use crate::extract::{DomainQuery, JsonBody, Named, Params, limit};
use crate::problem::{Code, Problem};
use crate::values::payload;
use crate::values::schema;
use crate::values::text::fits;
use crate::values::time::Time;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use carillon_core::command::{TopicOp, TopicOutcome};
use carillon_core::model::{Item, ItemsFrom, Payload};
use serde_json::value::RawValue;

/// An item to be published.
#[derive(Debug, serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ItemBody {
    /// Its id, unique in the topic: an item of the same id is replaced. The server makes one where none is given.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 1023)]
    id: Option<String>,
    /// What it carries: any JSON value.
    #[serde(default, deserialize_with = "payload::present")]
    #[schema(value_type = Option<serde_json::Value>)]
    payload: Option<Box<RawValue>>,
    /// What it carries instead: one XML element in a namespace of its own.
    #[serde(default)]
    payload_xml: Option<String>,
}

/// An item that was published.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct Published {
    /// Its id.
    id: String,
    /// When the server accepted it.
    published_at: Time,
}

/// A kept item.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct ItemView {
    /// Its id.
    id: String,
    /// When the server accepted it.
    published_at: Time,
    /// The account that published it; none when it came by HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    publisher: Option<String>,
    /// What it carries, if that is JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    payload: Option<Box<RawValue>>,
    /// What it carries, if that is XML.
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_xml: Option<String>,
}

/// A topic's newest items.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct ItemList {
    /// Newest first.
    items: Vec<ItemView>,
}

/// Selects items.
#[derive(Debug, serde::Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ItemsQuery {
    /// The domain to act in, for a key of the whole node; by default the node's first.
    domain: Option<String>,
    /// Only the item of this id.
    id: Option<String>,
    /// Number of items in a page, at most.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<u16>,
}

/// Publish to a topic
///
/// To everyone who follows it. `202` says that it is on disk, where the topic keeps items, and on its way. With an
/// `Idempotency-Key`, the same request again publishes nothing a second time.
#[utoipa::path(
    post, path = "/v1/topics/{topic}/items", operation_id = "publishItem", tag = "topics",
    params(
        DomainQuery,
        ("topic" = String, Path, description = "The topic's name, percent-encoded"),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes the request safe to send again for 24 hours: 1 to 255 printable ASCII characters"),
    ),
    request_body = ItemBody,
    responses(
        (status = 202, description = "It is published", body = Published,
            headers(("Idempotent-Replayed" = bool, description = "Given when the response is that of an earlier request"))),
        schema::Problems
    )
)]
pub(crate) async fn publish(
    key: Granted<Topics>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named(topic): Named<String>,
    uri: Uri,
    headers: HeaderMap,
    JsonBody { value: body, bytes, .. }: JsonBody<ItemBody>,
) -> Result<Response, Problem> {
    let given = idempotency::given(&key, &headers)?;
    let identity = Identity { given, ..Identity::of_request(idempotency::header(&headers)?, &uri, &bytes) };
    let answer = publish_as(app, key, query.domain.as_deref(), &topic, body, identity).await;
    answer.map(IntoResponse::into_response)
}

/// Publishes an item that came by HTTP, or as a message of a queue.
pub(crate) async fn publish_as(
    app: App,
    key: Granted<Topics>,
    domain: Option<&str>,
    topic: &str,
    body: ItemBody,
    identity: Identity,
) -> Result<Answer, Problem> {
    let domain = key.domain(&app, domain)?;
    check_name(topic)?;
    let max = app.options.settings.payload_bytes_max;
    let payload = payload::read(body.payload.as_deref(), body.payload_xml.as_deref(), max)?;
    let id = body.id.map(|id| check_id(&id).map(|()| id.into())).transpose()?;
    let (publisher, topic) = (key.key.id, topic.to_owned());
    idempotency::to_the_end(identity.is_reserved(), async move {
        let reserved = match identity.begin(&app, publisher).await? {
            KeyDecision::Go(reserved) => reserved,
            KeyDecision::Replay(replay) => return Ok(replay),
        };
        let op = publish_op(id, payload, reserved.publication());
        match app.topic(&domain, &topic, op, Code::UnknownTopic).await {
            Ok(TopicOutcome::Published(item)) => {
                let published = Published { id: item.id.to_string(), published_at: Time(item.published) };
                let text = serde_json::to_string(&published).map_err(|error| Problem::unexpected(&error))?;
                Ok(reserved.answer(StatusCode::ACCEPTED, text).await)
            }
            Ok(other) => Err(Problem::unexpected(&other)),
            Err(problem) => Err(reserved.refuse(problem).await),
        }
    })
    .await
}

/// With a name, it is done once.
fn publish_op(id: Option<Box<str>>, payload: Payload, name: Option<Publication>) -> TopicOp {
    match name {
        Some(Publication { item, operation }) => {
            TopicOp::Publish { id: Some(id.unwrap_or(item)), payload, operation: Some(operation) }
        }
        None => TopicOp::Publish { id, payload, operation: None },
    }
}

/// Read a topic's kept items
#[utoipa::path(
    get, path = "/v1/topics/{topic}/items", operation_id = "listItems", tag = "topics",
    params(ItemsQuery, ("topic" = String, Path, description = "The topic's name, percent-encoded")),
    responses((status = 200, description = "The newest items", body = ItemList), schema::Problems)
)]
pub(crate) async fn list(
    key: Granted<Topics>,
    State(app): State<App>,
    Params(query): Params<ItemsQuery>,
    Named(topic): Named<String>,
) -> Result<Json<ItemList>, Problem> {
    let domain = key.domain(&app, query.domain.as_deref())?;
    check_name(&topic)?;
    let max = Some(u32::from(limit(query.limit)?));
    let ids = query.id.into_iter().map(Into::into).collect();
    let op = TopicOp::Items { ids, from: ItemsFrom::Newest, max, bytes_max: LIST_BYTES_MAX };
    match app.topic(&domain, &topic, op, Code::UnknownTopic).await? {
        TopicOutcome::Items(items) => {
            Ok(Json(ItemList { items: items.iter().map(|item| ItemView::of(item)).collect() }))
        }
        other => Err(Problem::unexpected(&other)),
    }
}

/// Retract an item
#[utoipa::path(
    delete, path = "/v1/topics/{topic}/items/{id}", operation_id = "retractItem", tag = "topics",
    params(
        DomainQuery,
        ("topic" = String, Path, description = "The topic's name, percent-encoded"),
        ("id" = String, Path, description = "The item's id, percent-encoded"),
    ),
    responses((status = 204, description = "It is gone"), schema::Problems)
)]
pub(crate) async fn retract(
    key: Granted<Topics>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named((topic, id)): Named<(String, String)>,
) -> Result<StatusCode, Problem> {
    let domain = key.domain(&app, query.domain.as_deref())?;
    check_name(&topic)?;
    let op = TopicOp::Retract { id: id.into(), notify: None };
    app.topic(&domain, &topic, op, Code::UnknownItem).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Bytes of payloads in one answer at most; one item always is.
const LIST_BYTES_MAX: usize = 16 << 20;

impl ItemView {
    pub(crate) fn of(item: &Item) -> ItemView {
        let (payload, payload_xml) = payload::show(item);
        ItemView {
            id: item.id.to_string(),
            published_at: Time(item.published),
            publisher: item.publisher.as_ref().map(|jid| jid.as_str().to_owned()),
            payload,
            payload_xml,
        }
    }
}

fn check_id(id: &str) -> Result<(), Problem> {
    if fits(id, 1..=1023) {
        return Ok(());
    }
    let detail = "an item's id has 1 to 1023 bytes, none of them a control character";
    Err(Problem::new(Code::InvalidValue, detail).at("/id"))
}
