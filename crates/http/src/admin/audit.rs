//! The log of what operators did by a shell.

use crate::auth::{Admin, Granted};
use crate::extract::JsonBody;
use crate::problem::{Code, Problem};
use crate::schema;
use axum::http::StatusCode;

/// What became of a command.
#[derive(Clone, Copy, Debug, serde::Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AuditOutcome {
    /// It is about to change something.
    Begun,
    /// It was done.
    Done,
    /// It failed.
    Failed,
    /// It was not allowed, or is none.
    Refused,
}

/// A command that an operator gave.
#[derive(Debug, serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AuditEntry {
    /// The command, at most 1024 bytes.
    #[schema(example = "session end alice@example.com")]
    command: String,
    /// Why things are changed, at most 256 bytes.
    reason: Option<String>,
    /// What became of it.
    outcome: AuditOutcome,
    /// How long it took, in milliseconds.
    took_ms: u64,
}

/// Log a command of an operator
///
/// A line of the node's log ("an operator's command") with the key. `carillon shell` logs each of its commands, also those that it refuses.
#[utoipa::path(
    post, path = "/v1/admin/audit", operation_id = "logCommand", tag = "admin", request_body = AuditEntry,
    responses((status = 204, description = "It is logged"), schema::Problems)
)]
pub(crate) async fn log(
    key: Granted<Admin>,
    JsonBody { value: entry, .. }: JsonBody<AuditEntry>,
) -> Result<StatusCode, Problem> {
    let AuditEntry { command, reason, outcome, took_ms } = entry;
    within("command", &command, 1024)?;
    within("reason", reason.as_deref().unwrap_or_default(), 256)?;
    let outcome = match outcome {
        AuditOutcome::Begun => "begun",
        AuditOutcome::Done => "done",
        AuditOutcome::Failed => "failed",
        AuditOutcome::Refused => "refused",
    };
    tracing::info!(
        key = &*key.key.name,
        key_id = key.key.id.0,
        command,
        reason,
        outcome,
        took_ms,
        "an operator's command"
    );
    Ok(StatusCode::NO_CONTENT)
}

fn within(name: &str, text: &str, max: usize) -> Result<(), Problem> {
    if text.len() <= max && !text.contains(char::is_control) {
        return Ok(());
    }
    let detail = format!("`{name}` has at most {max} bytes, and no control characters");
    Err(Problem::new(Code::InvalidValue, detail).at(format!("/{name}")))
}
