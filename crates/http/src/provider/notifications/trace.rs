//! What became of a notification, and taking it back.

use crate::app::App;
use crate::auth::{Granted, Send};
use crate::extract::Named;
use crate::problem::{Code, Problem};
use crate::values::schema;
use crate::values::time::Time;
use axum::Json;
use axum::extract::State;
use carillon_core::command::{Command, Outcome};
use carillon_core::model::{
    AcknowledgedBy, AgentClass, Audience, DropReason, NotificationId, NotificationState, Priority, PushState,
    PushStep, Trace,
};
use carillon_core::ports::store::notifications;
use carillon_core::ports::store::push::PushSteps;

/// What became of a notification.
#[derive(Clone, Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct NotificationView {
    /// Its id.
    #[schema(example = "01KAG8X4RZ5T9V7Q2M3N6P8W0Y")]
    id: String,
    /// Its target, as a bare JID.
    to: String,
    /// When it was worth delivering.
    #[schema(value_type = schema::Audience)]
    audience: Audience,
    /// Those of higher priority are delivered first.
    #[schema(value_type = schema::Priority)]
    priority: Priority,
    /// Its state.
    #[schema(value_type = schema::NotificationState)]
    state: NotificationState,
    /// When it was taken from its sender.
    accepted_at: Time,
    /// When it stops, or stopped, being worth delivering.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<Time>,
    /// A newer notification with the same key replaces it while it is undelivered.
    #[serde(skip_serializing_if = "Option::is_none")]
    collapse_key: Option<String>,
    /// The number of the API key that sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<u32>,
    /// When it was, or is to be, due.
    #[serde(skip_serializing_if = "Option::is_none")]
    send_at: Option<Time>,
    /// When it was committed to the store.
    #[serde(skip_serializing_if = "Option::is_none")]
    stored_at: Option<Time>,
    /// When a connection last took it.
    #[serde(skip_serializing_if = "Option::is_none")]
    sent_at: Option<Time>,
    /// When it was acknowledged.
    #[serde(skip_serializing_if = "Option::is_none")]
    acknowledged_at: Option<Time>,
    /// When it reached its last state.
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<Time>,
    /// Who says that the device has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::AcknowledgedBy>)]
    acknowledged_by: Option<AcknowledgedBy>,
    /// Why it was dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::DropReason>)]
    reason: Option<DropReason>,
    /// When its link was followed, for the first time.
    #[serde(skip_serializing_if = "Option::is_none")]
    opened_at: Option<Time>,
    /// What its link was followed with.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::AgentClass>)]
    opened_by: Option<AgentClass>,
    /// The pushes that told of it, where one notification is read: one for each registration that was sent any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pushes: Vec<PushView>,
}

/// The pushes of a notification to one registration: the last request, and how many there were.
#[derive(Clone, Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct PushView {
    /// The number of the registration, which may have ended since.
    registration: u64,
    /// The name that its app gave it.
    node: String,
    /// How the push got there: `web_push`, `apns`, `fcm` or `webhook`.
    channel: &'static str,
    /// What came of it: the push service took it, refused it for good, could not take it, which is tried again, or said that the app is gone.
    #[schema(value_type = schema::PushState)]
    state: PushState,
    /// Why it was not taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Requests that were made.
    requests: u32,
    /// When the last of them was sent.
    sent_at: Time,
    /// When it was answered, or found to have failed.
    answered_at: Time,
}

impl From<PushStep> for PushView {
    fn from(step: PushStep) -> PushView {
        PushView {
            registration: step.registration.0,
            node: step.node.into(),
            channel: step.kind.as_str(),
            state: step.state,
            reason: step.reason.map(Into::into),
            requests: step.requests,
            sent_at: Time(step.sent),
            answered_at: Time(step.answered),
        }
    }
}

impl From<&Trace> for NotificationView {
    fn from(trace: &Trace) -> NotificationView {
        let acknowledged = trace.acknowledged_by.is_some();
        NotificationView {
            id: trace.id.to_string(),
            to: trace.to.as_str().to_owned(),
            audience: trace.audience,
            priority: trace.priority,
            state: trace.shown(),
            accepted_at: Time(trace.accepted),
            expires_at: trace.expires.map(Time),
            collapse_key: trace.collapse_key.as_deref().map(str::to_owned),
            key: trace.key.map(|key| key.0),
            send_at: trace.send_at.map(Time),
            stored_at: trace.stored.map(Time),
            sent_at: trace.sent.map(Time),
            acknowledged_at: trace.ended.filter(|_| acknowledged).map(Time),
            ended_at: trace.ended.map(Time),
            acknowledged_by: trace.acknowledged_by,
            reason: trace.reason,
            opened_at: trace.opened.map(|opened| Time(opened.at)),
            opened_by: trace.opened.map(|opened| opened.agent),
            pushes: Vec::new(),
        }
    }
}

/// Follow a notification
///
/// How far it has come, and when it came there.
#[utoipa::path(
    get, path = "/v1/notifications/{id}", operation_id = "getNotification", tag = "notifications",
    params(("id" = String, Path, description = "The notification's id")),
    responses((status = 200, description = "What became of it", body = NotificationView), schema::Problems)
)]
pub(crate) async fn trace(
    key: Granted<Send>,
    State(app): State<App>,
    Named(id): Named<String>,
) -> Result<Json<NotificationView>, Problem> {
    let trace = find(&app, &key, read_id(&id)?).await?;
    let pushes = pushes(&app, &trace).await?;
    let view = NotificationView::from(&opened(&app, trace).await?);
    Ok(Json(NotificationView { pushes, ..view }))
}

/// The pushes that told of a notification: of those that are kept alone any are sent.
async fn pushes(app: &App, trace: &Trace) -> Result<Vec<PushView>, Problem> {
    if trace.audience != Audience::Always {
        return Ok(Vec::new());
    }
    Ok(app.ask(PushSteps { id: trace.id }).await?.into_iter().map(PushView::from).collect())
}

/// Cancel a notification
///
/// Only while it has not been given to a connection. Otherwise the answer is `409` `too-late`, with its state.
#[utoipa::path(
    delete, path = "/v1/notifications/{id}", operation_id = "cancelNotification", tag = "notifications",
    params(("id" = String, Path, description = "The notification's id")),
    responses((status = 200, description = "It is cancelled", body = NotificationView), schema::Problems)
)]
pub(crate) async fn cancel(
    key: Granted<Send>,
    State(app): State<App>,
    Named(id): Named<String>,
) -> Result<Json<NotificationView>, Problem> {
    let id = read_id(&id)?;
    // Whose it is must be known before it is touched.
    find(&app, &key, id).await?;
    let trace = expect_trace(app.command(Command::Cancel { id }).await?, id)?;
    if trace.state == NotificationState::Cancelled {
        return Ok(Json((&trace).into()));
    }
    let word = state_word(trace.state);
    Err(Problem::new(Code::TooLate, format!("the notification is {word} already")).with_state(word))
}

/// A trace with what only the store knows: that the link was followed, while the device's home waits for it to say that it has it.
async fn opened(app: &App, trace: Trace) -> Result<Trace, Problem> {
    if trace.state.is_end() || !trace.is_kept() || !app.links().are_on() {
        return Ok(trace);
    }
    let stored = app.ask(notifications::Trace { id: trace.id }).await?;
    Ok(stored.map(|stored| *stored).filter(|stored| stored.opened.is_some()).unwrap_or(trace))
}

async fn find(app: &App, key: &Granted<Send>, id: NotificationId) -> Result<Trace, Problem> {
    let trace = expect_trace(app.command(Command::Trace { id }).await?, id)?;
    let reached = match key.key.domain {
        Some(domain) => *app.domain_name(domain) == *trace.to.domain(),
        None => true,
    };
    // That another domain has it is nobody's business.
    if reached { Ok(trace) } else { Err(unknown(id)) }
}

fn expect_trace(outcome: Outcome, id: NotificationId) -> Result<Trace, Problem> {
    match outcome {
        Outcome::Trace(trace) => Ok(*trace),
        Outcome::Missing => Err(unknown(id)),
        other => Err(Problem::unexpected(&other)),
    }
}

fn read_id(text: &str) -> Result<NotificationId, Problem> {
    text.parse().map_err(|_| {
        Problem::new(Code::InvalidParameter, "a notification id has 26 characters of Crockford's base 32")
    })
}

fn unknown(id: NotificationId) -> Problem {
    Problem::new(Code::UnknownNotification, format!("there is no notification {id}"))
}

/// A state as it stands in JSON.
pub(crate) fn state_word(state: NotificationState) -> &'static str {
    match state {
        NotificationState::Scheduled => "scheduled",
        NotificationState::Accepted => "accepted",
        NotificationState::Stored => "stored",
        NotificationState::Sent => "sent",
        NotificationState::Acknowledged => "acknowledged",
        NotificationState::Expired => "expired",
        NotificationState::Replaced => "replaced",
        NotificationState::Cancelled => "cancelled",
        NotificationState::Dropped => "dropped",
        NotificationState::Opened => "opened",
    }
}
