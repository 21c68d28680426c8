//! Sessions that are live now.

use crate::accounts;
use crate::app::App;
use crate::auth::{Admin, Granted};
use crate::extract::{DomainQuery, Named, Params, limit};
use crate::problem::{Code, Problem};
use crate::values::jids;
use crate::values::schema;
use crate::values::time::Time;
use axum::Json;
use axum::extract::State;
use carillon_core::command::{Command, KickReason, Outcome, SessionInfo};
use carillon_core::model::Transport;

/// A live session.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct SessionView {
    /// Its full JID.
    jid: String,
    /// `connected`, or `parked`: its connection is lost, and it waits for its client to resume it (XEP-0198 §5).
    state: &'static str,
    /// The client's address; of a parked session, the last one.
    address: Option<String>,
    /// `tcp` or `websocket`; of a parked session, the last one.
    transport: Option<&'static str>,
    /// Whether this node encrypts the connection: always with `tcp`; not with `websocket` behind a proxy that does. Of a parked
    /// session, of its last connection. Left out if the node was upgraded from a release that did not tell it.
    #[serde(skip_serializing_if = "Option::is_none")]
    tls: Option<bool>,
    /// When it was bound.
    since: Time,
    /// `unavailable`, `available`, `away`, `xa`, `dnd` or `chat`.
    presence: &'static str,
    /// Whether stream management (XEP-0198) is on.
    stream_management: bool,
    /// How many topics it follows.
    topics: u32,
    /// Notifications given to it and not yet acknowledged.
    unacknowledged: u32,
}

/// Live sessions.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct SessionList {
    /// The sessions, in no order.
    sessions: Vec<SessionView>,
}

/// How many sessions ended.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct Ended {
    /// Number of sessions that ended.
    sessions_ended: u64,
}

/// Selects sessions.
#[derive(Debug, serde::Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SessionsQuery {
    /// For a key of the whole node: only this domain's. All domains' by default.
    domain: Option<String>,
    /// Only this account's: its bare JID or local part.
    account: Option<String>,
    /// Number of entries in a page, at most.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<u16>,
}

/// List live sessions
#[utoipa::path(
    get, path = "/v1/admin/sessions", operation_id = "listSessions", tag = "admin", params(SessionsQuery),
    responses((status = 200, description = "Live sessions", body = SessionList), schema::Problems)
)]
pub(crate) async fn list(
    key: Granted<Admin>,
    State(app): State<App>,
    Params(query): Params<SessionsQuery>,
) -> Result<Json<SessionList>, Problem> {
    let limit = usize::from(limit(query.limit)?);
    let mut domain = match (query.domain.as_deref(), key.key.domain) {
        (None, own) => own,
        (Some(name), _) => Some(key.reach(&app, name)?.id),
    };
    let account = match &query.account {
        None => None,
        Some(text) => {
            let jid = jids::account(text, &key.domain(&app, query.domain.as_deref())?.name)?;
            domain = Some(key.reach(&app, jid.domain())?.id);
            Some(jid)
        }
    };
    match app.command(Command::Sessions { domain, account, limit }).await? {
        Outcome::Sessions(mut sessions) => {
            // Each shard gives as many.
            sessions.truncate(limit);
            Ok(Json(SessionList { sessions: sessions.iter().map(SessionView::of).collect() }))
        }
        other => Err(Problem::unexpected(&other)),
    }
}

/// End sessions
///
/// Those of an account, or one of them when the JID is full. `404` when there is none.
#[utoipa::path(
    delete, path = "/v1/admin/sessions/{jid}", operation_id = "endSessions", tag = "admin",
    params(DomainQuery, ("jid" = String, Path, description = "A bare or full JID, percent-encoded")),
    responses((status = 200, description = "They are ended", body = Ended), schema::Problems)
)]
pub(crate) async fn end(
    key: Granted<Admin>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named(jid): Named<String>,
) -> Result<Json<Ended>, Problem> {
    let jid = jids::session(&jid, &key.domain(&app, query.domain.as_deref())?.name)?;
    key.reach(&app, jid.domain())?;
    match accounts::kick(&app, jid.clone(), KickReason::Operator).await? {
        0 => Err(Problem::new(Code::UnknownSession, format!("`{jid}` has no session"))),
        sessions_ended => Ok(Json(Ended { sessions_ended })),
    }
}

impl SessionView {
    fn of(info: &SessionInfo) -> SessionView {
        SessionView {
            jid: info.jid.as_str().to_owned(),
            state: if info.parked { "parked" } else { "connected" },
            address: info.address.map(|address| address.to_string()),
            transport: info.transport.map(Transport::word),
            tls: info.transport.and_then(|transport| transport.tls),
            since: Time(info.since),
            presence: info.presence.word(),
            stream_management: info.stream_management,
            topics: info.topics,
            unacknowledged: info.unacknowledged,
        }
    }
}
