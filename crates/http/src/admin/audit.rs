//! The log of administrative acts, and commands of operators for it.

use crate::app::App;
use crate::auth::acts::{self, Command};
use crate::auth::{Admin, Granted};
use crate::extract::{JsonBody, Params, limit};
use crate::problem::{Code, Problem};
use crate::values::schema;
use crate::values::time::Time;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use carillon_core::model::{Act, ActId, KeyId};
use carillon_core::ports::store::acts::ListActs;

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
/// As an administrative act, and as a line of the node's log ("an operator's command") with the key. `carillon shell` logs each of its commands, also those
/// that it refuses.
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
    acts::note_command(Command { text: command, reason, outcome });
    Ok(StatusCode::NO_CONTENT)
}

/// Which acts.
#[derive(Debug, serde::Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct AuditQuery {
    /// Only acts by the key of this number.
    key: Option<u32>,
    /// Only acts whose `what` has this text in it, in whatever case.
    #[param(max_length = 256)]
    what: Option<String>,
    /// Only acts that ended in this way.
    #[param(inline)]
    outcome: Option<OutcomeFilter>,
    /// Only acts after this one in the list: the `next` of the page before.
    after: Option<u64>,
    /// The most that are listed.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<u16>,
}

/// How acts ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OutcomeFilter {
    /// It was done: a status below 400; a command that was begun or done.
    Done,
    /// It was refused: a status from 400 to 499; a command that was refused.
    Refused,
    /// It failed: a status from 500; a command that failed.
    Failed,
}

/// Administrative acts.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct AuditList {
    /// The acts, the newest first.
    acts: Vec<ActView>,
    /// The value of `after` for the next page; none when there are no more.
    next: Option<String>,
}

/// What was done by which key.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct ActView {
    /// Its number.
    id: u64,
    /// When it was answered.
    at: Time,
    /// The number of the key.
    key_id: u32,
    /// The name of the key at that time.
    key: String,
    /// The domain that the key is bound to; none for a key of the whole node, or where the domain is gone.
    domain: Option<String>,
    /// Where the request came from.
    address: Option<String>,
    /// Method and path of a request, or a command.
    #[schema(example = "DELETE /v1/admin/accounts/alice@example.com")]
    what: String,
    /// Why, if that was said.
    reason: Option<String>,
    /// What became of it: a status, and the code of a problem; of a command, a word.
    #[schema(example = "404 unknown-account")]
    outcome: String,
    /// The id of the request, which is in the node's log, too.
    request_id: String,
}

/// List administrative acts
///
/// What was asked for with keys of scope `admin` and changes something, done or refused; who traced an account or read its messages; commands of `carillon shell`.
/// The newest first, for `http.audit_days`. With `what` or `outcome` a page may have fewer than `limit`, or none, and not be the last: `next` says. A key that is bound to a domain is shown the acts of the domain's keys.
#[utoipa::path(
    get, path = "/v1/admin/audit", operation_id = "listActs", tag = "admin", params(AuditQuery),
    responses((status = 200, description = "The acts", body = AuditList), schema::Problems)
)]
pub(crate) async fn list(
    key: Granted<Admin>,
    State(app): State<App>,
    Params(query): Params<AuditQuery>,
) -> Result<Json<AuditList>, Problem> {
    let limit = limit(query.limit)?;
    let wanted = Wanted::of(&query)?;
    let mut before = ActId(query.after.unwrap_or(u64::MAX));
    let (mut acts, mut next) = (Vec::new(), None);
    // Acts that are passed over cost their reading, which is bounded: whoever wants more asks again.
    for _ in 0..PAGES_PASSED_MAX {
        let (domain, of_key) = (key.key.domain, query.key.map(KeyId));
        let mut found = app.ask(ListActs { domain, key: of_key, before, limit: limit + 1 }).await?;
        let mut more = found.len() > usize::from(limit);
        found.truncate(limit.into());
        for (id, act) in found {
            if acts.len() >= usize::from(limit) {
                more = true;
                break;
            }
            before = id;
            if wanted.has(&act) {
                acts.push(ActView::of(&app, id, act));
            }
        }
        next = more.then(|| before.to_string());
        if !more || acts.len() >= usize::from(limit) {
            break;
        }
    }
    Ok(Json(AuditList { acts, next }))
}

/// Pages of acts that one request passes over.
const PAGES_PASSED_MAX: usize = 20;

/// Which acts are listed.
struct Wanted {
    what: String,
    outcome: Option<OutcomeFilter>,
}

impl Wanted {
    fn of(query: &AuditQuery) -> Result<Wanted, Problem> {
        let what = query.what.as_deref().unwrap_or_default();
        if what.len() > 256 {
            let detail = "`what` has at most 256 bytes";
            return Err(Problem::new(Code::InvalidParameter, detail));
        }
        Ok(Wanted { what: what.to_lowercase(), outcome: query.outcome })
    }

    fn has(&self, act: &Act) -> bool {
        let ended = |outcome| outcome == ended_as(&act.outcome);
        self.outcome.is_none_or(ended)
            && (self.what.is_empty() || act.what.to_lowercase().contains(&self.what))
    }
}

/// What an outcome amounts to: a status with a code, or the word of a command.
fn ended_as(outcome: &str) -> OutcomeFilter {
    match outcome.as_bytes().first() {
        Some(b'4') => OutcomeFilter::Refused,
        Some(b'5') => OutcomeFilter::Failed,
        _ if outcome == "refused" => OutcomeFilter::Refused,
        _ if outcome == "failed" => OutcomeFilter::Failed,
        _ => OutcomeFilter::Done,
    }
}

impl ActView {
    fn of(app: &App, id: ActId, act: Act) -> ActView {
        let domain = act.domain.map(|domain| app.domain_name(domain).to_string());
        ActView {
            id: id.0,
            at: Time(act.at),
            key_id: act.key.0,
            key: act.key_name.into(),
            domain: domain.filter(|name| !name.is_empty()),
            address: act.address.map(Into::into),
            what: act.what.into(),
            reason: act.reason.map(Into::into),
            outcome: act.outcome.into(),
            request_id: act.request.into(),
        }
    }
}

fn within(name: &str, text: &str, max: usize) -> Result<(), Problem> {
    if text.len() <= max && !text.contains(char::is_control) {
        return Ok(());
    }
    let detail = format!("`{name}` has at most {max} bytes, and no control characters");
    Err(Problem::new(Code::InvalidValue, detail).at(format!("/{name}")))
}
