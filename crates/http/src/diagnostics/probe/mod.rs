//! `POST /v1/trace/send`: a notification that is sent to see each of its steps.

mod report;

pub(crate) use report::ProbeView;

use crate::app::App;
use crate::auth::{Admin, Granted};
use crate::cluster::locate;
use crate::extract::{DomainQuery, JsonBody, Params};
use crate::hops::Followed;
use crate::problem::{Code, Problem};
use crate::provider::notifications::unknown_device;
use crate::random;
use crate::request_id;
use crate::telemetry;
use crate::values::{jids, payload, schema};
use axum::Json;
use axum::extract::State;
use carillon_core::command::{Command, Outcome};
use carillon_core::model::{
    Audience, DropReason, HopStep, Notification, NotificationId, Payload, Priority, Trace, TraceContext,
    UnixMs, bucket,
};
use carillon_server::HopSeen;
use report::Probe;
use serde_json::value::RawValue;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

/// A probe to be sent.
#[derive(Debug, serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProbeBody {
    /// The account: its bare JID or local part.
    to: String,
    /// When it is worth delivering, as of any notification. One for `always` is committed first.
    #[serde(default = "always")]
    #[schema(value_type = schema::Audience, default = "always")]
    audience: Audience,
    /// How long its steps are waited for, in seconds. What has not been delivered by then is cancelled.
    #[serde(default = "default_timeout")]
    #[schema(minimum = 1, maximum = 60, default = 10)]
    timeout: u32,
    /// What it carries: any JSON.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    payload: Option<Box<RawValue>>,
}

fn always() -> Audience {
    Audience::Always
}

fn default_timeout() -> u32 {
    10
}

/// Probes under way.
pub(crate) struct Probes(Semaphore);

impl Default for Probes {
    fn default() -> Probes {
        Probes(Semaphore::new(PROBES_MAX))
    }
}

impl App {
    /// Probes under way.
    fn probes(&self) -> &Probes {
        self.part()
    }
}

/// Send a probe
///
/// Sends a notification to an account and answers with each of its steps, up to the acknowledgement of the device: when it happened, in microseconds since the request was taken,
/// and on which shard. `missing` has the steps that did not happen until `timeout`, each with the reason. It is a notification like any: its trace, webhooks and pushes tell of it, and
/// one that is for `always` and could not be delivered in time is cancelled.
///
/// In a cell, steps at a home on another node are known from its trace only, to the millisecond.
#[utoipa::path(
    post, path = "/v1/trace/send", operation_id = "sendProbe", tag = "admin", params(DomainQuery),
    request_body = ProbeBody,
    responses((status = 200, description = "Its steps", body = ProbeView), schema::Problems)
)]
pub(crate) async fn send(
    key: Granted<Admin>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    JsonBody { value: body, .. }: JsonBody<ProbeBody>,
) -> Result<Json<ProbeView>, Problem> {
    if app.as_front().is_some() {
        return Err(Problem::new(Code::NotAtFront, "the cell of the device sends probes to it"));
    }
    let began = request_id::taken_at().unwrap_or_else(SystemTime::now);
    let to =
        jids::account(&body.to, &key.domain(&app, query.domain.as_deref())?.name).map_err(|p| p.at("/to"))?;
    let domain = key.reach(&app, to.domain())?.id;
    if !(1..=TIMEOUT_MAX).contains(&body.timeout) {
        let detail = format!("`timeout` is from 1 to {TIMEOUT_MAX} seconds");
        return Err(Problem::new(Code::InvalidValue, detail).at("/timeout"));
    }
    let content = match body.payload.as_deref() {
        None => Payload::Json(DEFAULT_PAYLOAD.into()),
        given => payload::read(given, None, app.options.settings.payload_bytes_max)?,
    };
    let _permit = app.probes().0.try_acquire().map_err(|_| {
        let detail = format!("{PROBES_MAX} probes are under way; wait until one ends");
        Problem::new(Code::TooManyStreams, detail).retry_after(1)
    })?;
    tracing::info!(key = &*key.key.name, key_id = key.key.id.0, account = to.as_str(), "a probe is sent");
    let places = match app.node.cell() {
        Some(_) => locate::own_and_home(&app, &to).await?,
        None => None,
    };
    let accepted =
        UnixMs(began.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis() as u64);
    let id = NotificationId::new(accepted, bucket(to.as_str()), random::number());
    let notification = Notification {
        id,
        domain,
        to,
        audience: body.audience,
        priority: Priority::High,
        expires: Some(accepted.plus(u64::from(body.timeout) * 1000 + EXPIRY_GRACE_MS)),
        collapse_key: None,
        key: Some(key.key.id),
        payload: content,
        accepted,
        send_at: None,
    };
    // Its spans have none above them.
    let context = TraceContext { trace: telemetry::new_trace(), span: 0 };
    let deadline = Instant::now() + Duration::from_secs(body.timeout.into());
    let steps = app.follow(id);
    let notification = Arc::new(notification);
    let command = Command::NotifyFollowed { notification: Arc::clone(&notification), context };
    let trace = match app.command(command).await? {
        Outcome::Notified(trace) if trace.reason == Some(DropReason::UnknownDevice) => {
            return Err(unknown_device(&trace.to));
        }
        Outcome::Notified(trace) => *trace,
        other => return Err(Problem::unexpected(&other)),
    };
    let (trace, seen) = wait(&app, trace, steps, deadline, places.is_some()).await?;
    Ok(Json(Probe { began, notification: &notification, context, trace, seen, places }.view(&app)))
}

/// Waits for the steps until the last one, or the deadline. What became of it, and its steps as far as they are seen here.
async fn wait(
    app: &App,
    trace: Trace,
    steps: Followed,
    deadline: Instant,
    is_in_cell: bool,
) -> Result<(Trace, Vec<HopSeen>), Problem> {
    let mut seen = Vec::new();
    let trace = match is_in_cell {
        // Its home may be a node whose steps are not seen here; those that are seen wait meanwhile.
        true => {
            let trace = until_ended(app, trace, deadline).await?;
            gather(steps, Instant::now() + ARRIVAL, &mut seen).await;
            trace
        }
        false => {
            gather(steps, deadline, &mut seen).await;
            latest(app, trace).await?
        }
    };
    Ok((trace, seen))
}

/// The steps until the last one, or the deadline.
async fn gather(mut steps: Followed, deadline: Instant, seen: &mut Vec<HopSeen>) {
    let mut deadline = deadline;
    let mut has_ended = false;
    while !(has_ended && has_arrived(seen)) {
        let Ok(step) = timeout_at(deadline, steps.next()).await else { return };
        if matches!(step.hop.step, HopStep::Ended(..)) {
            has_ended = true;
            deadline = deadline.min(Instant::now() + ARRIVAL);
        }
        seen.push(step);
    }
}

/// Whether nothing that was written is on its way any more.
fn has_arrived(seen: &[HopSeen]) -> bool {
    let count = |word| seen.iter().filter(|seen| seen.hop.step.word() == word).count();
    count("written") == count("arrived")
}

/// What became of it. One that waits is cancelled.
async fn latest(app: &App, trace: Trace) -> Result<Trace, Problem> {
    let command = match app.command(Command::Trace { id: trace.id }).await? {
        Outcome::Trace(trace) if trace.state.is_end() => return Ok(*trace),
        Outcome::Trace(_) => Command::Cancel { id: trace.id },
        _ => return Ok(trace),
    };
    match app.command(command).await? {
        Outcome::Trace(trace) => Ok(*trace),
        _ => Ok(trace),
    }
}

/// What became of one in a cell.
async fn until_ended(app: &App, mut trace: Trace, deadline: Instant) -> Result<Trace, Problem> {
    while !trace.state.is_end() && Instant::now() < deadline {
        tokio::time::sleep(LOOK).await;
        if let Outcome::Trace(now) = app.command(Command::Trace { id: trace.id }).await? {
            trace = *now;
        }
    }
    latest(app, trace).await
}

/// Probes of a node at once.
const PROBES_MAX: usize = 16;
const TIMEOUT_MAX: u32 = 60;
/// So long after the deadline a probe expires that could not be cancelled.
const EXPIRY_GRACE_MS: u64 = 5000;
/// How long the acknowledgement of TCP is waited for after that of the device.
const ARRIVAL: Duration = Duration::from_millis(200);
/// How often its home is asked in a cell.
const LOOK: Duration = Duration::from_millis(50);
const DEFAULT_PAYLOAD: &str = r#"{"carillon":"probe"}"#;
