//! One notification on its way into the node, and what became of it.

use super::body::{Draft, NotificationBody};
use super::trace::state_word;
use crate::app::App;
use crate::auth::{Granted, Send};
use crate::problem::{Code, Problem};
use crate::provider::idempotency::Ids;
use crate::telemetry;
use crate::values::jids;
use carillon_core::command::{Command, Outcome};
use carillon_core::model::{
    DomainId, DropReason, Notification, NotificationId, NotificationState, Trace, UnixMs, bucket,
};
use carillon_core::ports::store::accounts::{Account, Enrolment};
use carillon_wire::jid::BareJid;
use std::sync::Arc;

/// What became of a notification to one target.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct SendResult {
    /// The target: as a bare JID, or as the request names it where it cannot be read.
    pub(crate) to: String,
    /// The notification's id; none where nothing was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "01KAG8X4RZ5T9V7Q2M3N6P8W0Y")]
    pub(crate) id: Option<String>,
    /// How far it has come; none where it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<crate::values::schema::NotificationState>)]
    pub(crate) state: Option<NotificationState>,
    /// Why it was dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<crate::values::schema::DropReason>)]
    pub(crate) reason: Option<DropReason>,
    /// Why it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<crate::values::schema::Problem>)]
    pub(crate) error: Option<Problem>,
    /// When it was stored, where that is known.
    #[serde(skip)]
    pub(crate) stored: Option<UnixMs>,
}

/// A target that the key reaches.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// Its account.
    pub(crate) jid: BareJid,
    /// Its domain.
    pub(crate) domain: DomainId,
}

/// Reads a target. `domain` completes a bare local part.
pub(crate) fn target(app: &App, key: &Granted<Send>, text: &str, domain: &str) -> Result<Target, Problem> {
    if text.is_empty() {
        return Err(Problem::new(Code::InvalidJid, "`to` is empty: give a device id, or LOCAL@DOMAIN"));
    }
    let jid = jids::account(text, domain)?;
    let domain = key.reach(app, jid.domain())?.id;
    Ok(Target { jid, domain })
}

/// Sends `draft` to one target, or with `dry_run` only checks that the target is there.
pub(crate) async fn submit(
    app: &App,
    body: &NotificationBody,
    draft: &Draft,
    target: Target,
    ids: &Ids,
    index: u64,
) -> Result<SendResult, Problem> {
    if body.dry_run {
        return rehearse(app, target).await;
    }
    let notification = address(draft, target.clone(), ids, index);
    if let Some(elsewhere) = app.elsewhere() {
        return elsewhere.send(app, &notification).await;
    }
    let command = match telemetry::current() {
        Some(context) => Command::NotifyFollowed { notification, context },
        None => Command::Notify(notification),
    };
    match app.command(command).await? {
        Outcome::Notified(trace) => sent(&trace),
        Outcome::Missing => Err(unknown_device(&target.jid)),
        other => Err(Problem::unexpected(&other)),
    }
}

/// The `index`th notification of a request.
pub(super) fn address(draft: &Draft, target: Target, ids: &Ids, index: u64) -> Arc<Notification> {
    let id = NotificationId::new(draft.accepted(), bucket(target.jid.as_str()), ids.random(index));
    Arc::new(draft.to(target.jid, target.domain, id))
}

async fn rehearse(app: &App, target: Target) -> Result<SendResult, Problem> {
    if let Some(elsewhere) = app.elsewhere() {
        return elsewhere.rehearse(app, &target.jid).await;
    }
    rehearsed(&target, app.ask(question(&target)).await?.as_deref())
}

/// Whether the target is there.
pub(super) fn question(target: &Target) -> Account {
    Account { domain: target.domain, local: jids::local(&target.jid) }
}

/// What the answer to [`question`] means.
pub(super) fn rehearsed(target: &Target, found: Option<&Enrolment>) -> Result<SendResult, Problem> {
    match found {
        Some(_) => Ok(SendResult::rehearsed(&target.jid)),
        None => Err(unknown_device(&target.jid)),
    }
}

/// What the trace that answers a notification means.
pub(crate) fn sent(trace: &Trace) -> Result<SendResult, Problem> {
    if trace.reason == Some(DropReason::UnknownDevice) {
        return Err(unknown_device(&trace.to));
    }
    Ok(SendResult {
        to: trace.to.as_str().to_owned(),
        id: Some(trace.id.to_string()),
        state: Some(trace.state),
        reason: trace.reason,
        error: None,
        stored: trace.stored,
    })
}

pub(crate) fn unknown_device(jid: &BareJid) -> Problem {
    Problem::new(Code::UnknownDevice, format!("there is no device `{jid}`"))
        .with_state(state_word(NotificationState::Dropped))
}

impl SendResult {
    /// The result of a target that is there, where nothing is sent.
    pub(crate) fn rehearsed(jid: &BareJid) -> SendResult {
        let (to, state) = (jid.as_str().to_owned(), Some(NotificationState::Accepted));
        SendResult { to, id: None, state, reason: None, error: None, stored: None }
    }

    /// The result of a target that was refused.
    pub(crate) fn refused(to: String, problem: Problem) -> SendResult {
        SendResult { to, id: None, state: None, reason: None, error: Some(problem), stored: None }
    }

    /// Whether it was stored before `began`.
    pub(super) fn is_older_than(&self, began: UnixMs) -> bool {
        self.stored.is_some_and(|stored| stored < began)
    }
}
