//! The queues as an operator sees them: how taking from them goes, their dead letters, and having these sent again.

use super::{Figures, Intake};
use crate::app::App;
use crate::auth::{Admin, Granted};
use crate::extract::{Named, Params};
use crate::problem::{Code, Problem};
use crate::values::schema;
use crate::values::time::Time;
use axum::Json;
use axum::extract::State;
use carillon_core::ports::QueueFault;
use carillon_core::ports::queue::DeadMessage;
use std::collections::BTreeMap;

/// The queues that a node takes messages from.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct QueueList {
    /// In the order of their names.
    queues: Vec<QueueView>,
}

/// A queue that a node takes messages from. Counts are of that node since its start.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct QueueView {
    /// Its name in the settings.
    name: String,
    /// How it goes: `pulling`, `starting`, `resting` (the node is not ready, or ends), `behind` (the store does not keep up), `away` (the queue
    /// cannot be reached), `wrong` (the queue or its settings have to be changed).
    #[schema(example = "pulling")]
    state: String,
    /// Why it is so, where something is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    /// Messages that no node was given yet; left out until the queue has counted them.
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting: Option<u64>,
    /// Messages that were given to a node, this or another, and are not settled.
    #[serde(skip_serializing_if = "Option::is_none")]
    unsettled: Option<u64>,
    /// Since when the oldest of both waits, if the queue can tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    oldest: Option<Time>,
    /// Dead letters.
    #[serde(skip_serializing_if = "Option::is_none")]
    dead: Option<u64>,
    /// Milliseconds since the queue counted these.
    #[serde(skip_serializing_if = "Option::is_none")]
    counted_age_ms: Option<u64>,
    /// Deliveries that came.
    received: u64,
    /// Of these, deliveries of messages that had been delivered before.
    redelivered: u64,
    /// Messages that were done.
    accepted: u64,
    /// Of these, messages of which all had been done before.
    repeated: u64,
    /// Messages that became dead letters, by the code of the reason.
    refused: BTreeMap<String, u64>,
    /// Deliveries that were put back, by the code of the reason.
    put_back: BTreeMap<String, u64>,
    /// Deliveries under way.
    in_flight: u64,
    /// What their bodies have, in bytes.
    in_flight_bytes: u64,
}

/// Dead letters of a queue.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct DeadMessages {
    /// Oldest first.
    dead: Vec<DeadMessageView>,
}

/// A message that became a dead letter.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct DeadMessageView {
    /// The queue's name of the dead letter.
    letter: String,
    /// The name of the message itself.
    id: String,
    /// When the queue accepted the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    sent_at: Option<Time>,
    /// When it became a dead letter.
    died_at: Time,
    /// Why: a code of this API.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    /// Why, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    /// The number of bytes of its body.
    bytes: u64,
    /// The first 4096 bytes of its body, as text.
    body: String,
}

/// Bounds a list of dead letters.
#[derive(Debug, serde::Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct MaxQuery {
    /// The number of the oldest dead letters, at most.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    max: Option<u16>,
}

/// How many dead letters were sent again.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct Redriven {
    /// Dead letters that are messages of the queue again.
    redriven: u64,
}

/// List the queues that the node takes messages from
///
/// Needs a key of the whole node. Counts are of the node that is asked.
#[utoipa::path(
    get, path = "/v1/queues", operation_id = "listQueues", tag = "admin",
    responses((status = 200, description = "The queues", body = QueueList), schema::Problems)
)]
pub(crate) async fn list(key: Granted<Admin>, State(app): State<App>) -> Result<Json<QueueList>, Problem> {
    key.whole_node()?;
    Ok(Json(QueueList { queues: app.intakes().iter().map(QueueView::of).collect() }))
}

/// Read how taking messages from a queue goes
#[utoipa::path(
    get, path = "/v1/queues/{queue}", operation_id = "getQueue", tag = "admin",
    params(("queue" = String, Path, description = "The queue's name in the settings")),
    responses((status = 200, description = "The queue", body = QueueView), schema::Problems)
)]
pub(crate) async fn get(
    key: Granted<Admin>,
    State(app): State<App>,
    Named(queue): Named<String>,
) -> Result<Json<QueueView>, Problem> {
    key.whole_node()?;
    Ok(Json(QueueView::of(named(&app, &queue)?)))
}

/// List the dead letters of a queue
///
/// The oldest, with why they were refused. They stay where they are.
#[utoipa::path(
    get, path = "/v1/queues/{queue}/dead", operation_id = "listDeadMessages", tag = "admin",
    params(MaxQuery, ("queue" = String, Path, description = "The queue's name in the settings")),
    responses((status = 200, description = "The dead letters", body = DeadMessages), schema::Problems)
)]
pub(crate) async fn dead(
    key: Granted<Admin>,
    State(app): State<App>,
    Params(query): Params<MaxQuery>,
    Named(queue): Named<String>,
) -> Result<Json<DeadMessages>, Problem> {
    key.whole_node()?;
    let max = max(&query)?;
    let letters = named(&app, &queue)?.options.queue.dead(max).await.map_err(|fault| failed(&fault))?;
    Ok(Json(DeadMessages { dead: letters.into_iter().map(DeadMessageView::of).collect() }))
}

/// Send the dead letters of a queue again
///
/// The oldest become messages of the queue again, under the names that they had: what was done of them is not done twice.
#[utoipa::path(
    post, path = "/v1/queues/{queue}/redrive", operation_id = "redriveQueue", tag = "admin",
    params(MaxQuery, ("queue" = String, Path, description = "The queue's name in the settings")),
    responses((status = 200, description = "They are sent again", body = Redriven), schema::Problems)
)]
pub(crate) async fn redrive(
    key: Granted<Admin>,
    State(app): State<App>,
    Params(query): Params<MaxQuery>,
    Named(queue): Named<String>,
) -> Result<Json<Redriven>, Problem> {
    key.whole_node()?;
    let max = max(&query)?;
    let redriven = named(&app, &queue)?.options.queue.redrive(max).await.map_err(|fault| failed(&fault))?;
    tracing::info!(queue, redriven, "dead letters are sent again");
    Ok(Json(Redriven { redriven: redriven as u64 }))
}

fn named<'a>(app: &'a App, name: &str) -> Result<&'a Intake, Problem> {
    let found = app.intakes().iter().find(|intake| *intake.options.name == *name);
    found.ok_or_else(|| Problem::new(Code::UnknownQueue, format!("the settings name no queue `{name}`")))
}

fn max(query: &MaxQuery) -> Result<usize, Problem> {
    let max = query.max.unwrap_or(100);
    if (1..=1000).contains(&max) {
        return Ok(max.into());
    }
    Err(Problem::new(Code::InvalidParameter, "`max` is from 1 to 1000"))
}

fn failed(fault: &QueueFault) -> Problem {
    Problem::unavailable(&fault.to_string())
}

impl QueueView {
    fn of(intake: &Intake) -> QueueView {
        let Figures { state, depth, dead, put_back, received, redelivered, accepted, repeated, .. } =
            intake.figures();
        let Figures { in_flight, in_flight_bytes, .. } = intake.figures();
        let counts = |counts: BTreeMap<Box<str>, u64>| {
            counts.into_iter().map(|(reason, count)| (reason.into_string(), count)).collect()
        };
        QueueView {
            name: intake.options.name.to_string(),
            state: state.word().to_owned(),
            why: state.why().map(str::to_owned),
            waiting: depth.map(|(depth, _)| depth.waiting),
            unsettled: depth.map(|(depth, _)| depth.unsettled),
            oldest: depth.and_then(|(depth, _)| depth.oldest).map(Time),
            dead: depth.map(|(depth, _)| depth.dead),
            counted_age_ms: depth.map(|(_, at)| at.elapsed().as_millis() as u64),
            received,
            redelivered,
            accepted,
            repeated,
            refused: counts(dead),
            put_back: counts(put_back),
            in_flight,
            in_flight_bytes,
        }
    }
}

/// How much of a body is shown.
const BODY_SHOWN: usize = 4096;

impl DeadMessageView {
    fn of(dead: DeadMessage) -> DeadMessageView {
        let (code, detail) = dead.reason.map(|reason| (reason.code.into(), reason.detail.into())).unzip();
        let shown = &dead.body[..dead.body.len().min(BODY_SHOWN)];
        DeadMessageView {
            letter: dead.letter.into(),
            id: dead.id.into(),
            sent_at: dead.sent.map(Time),
            died_at: Time(dead.died),
            code,
            detail,
            bytes: dead.body.len() as u64,
            body: String::from_utf8_lossy(shown).into_owned(),
        }
    }
}
