//! Where the home of a name is, and where the connections of its sessions are.

use super::view;
use crate::app::App;
use crate::auth::{Admin, Granted};
use crate::extract::Named;
use crate::problem::{Code, Problem};
use crate::values::schema;
use axum::Json;
use axum::extract::State;
use carillon_core::command::{Command, Outcome, SessionInfo};
use carillon_core::model::{NodeId, RoomKind, TOPIC_HOST, bucket};
use carillon_server::CellView;
use carillon_wire::jid::{BareJid, Jid};

/// Where something is.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct LocationView {
    /// The address, as the cell knows it.
    jid: String,
    /// `account`, `topic` or `room`.
    kind: &'static str,
    /// The partition of its name, from 0 to 255. Topics and rooms of one are at home on the same node.
    partition: u16,
    /// The node that is its home, whether it exists or not. That of an account that has no session is the keeper of its partition, or for some seconds
    /// after its last session the node that had it.
    home: String,
    /// Sessions of the account; of others there are none.
    sessions: Vec<PlacedSession>,
}

/// A session, and where its connection is.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct PlacedSession {
    /// Its full JID.
    jid: String,
    /// `connected`, or `parked`: it has no connection.
    state: &'static str,
    /// The node that its connection is on; `null` where it has none.
    connection: Option<String>,
}

/// The most sessions of an account that are listed.
const SESSIONS_MAX: usize = 1000;

/// Read where an account, topic or room is
///
/// A topic is `TOPIC@pubsub.DOMAIN`, a room `ROOM@rooms.DOMAIN` or `ROOM@muclight.DOMAIN`. The home of a topic or a room is computed from its name, that of an
/// account is the node of its sessions: there is one also for what does not exist. Needs a key of the whole node.
#[utoipa::path(
    get, path = "/v1/cluster/where/{jid}", operation_id = "whereIs", tag = "admin",
    params(("jid" = String, Path, description = "A bare or full JID, percent-encoded")),
    responses((status = 200, description = "Where it is", body = LocationView), schema::Problems)
)]
pub(crate) async fn locate(
    key: Granted<Admin>,
    State(app): State<App>,
    Named(text): Named<String>,
) -> Result<Json<LocationView>, Problem> {
    key.whole_node()?;
    let wrong = |why: String| Problem::new(Code::InvalidJid, why);
    let jid = Jid::new(&text).map_err(|error| wrong(error.to_string()))?.bare();
    if jid.local().is_none() {
        return Err(wrong(
            "it names a domain: an account, a topic or a room has something before the @".into(),
        ));
    }
    let (kind, domain) = kind_of(jid.domain());
    if app.domain(domain).is_none() {
        let text = format!("the node has no domain `{domain}`");
        return Err(Problem::new(Code::UnknownDomain, text));
    }
    let cell = view(&app);
    let keeper = app.node.home(jid.as_str()).node;
    let sessions = match kind {
        "account" => sessions(&app, &jid).await?,
        _ => Vec::new(),
    };
    let home = sessions.first().map_or(keeper, |session| session.home);
    let placed = |info: &SessionInfo| PlacedSession {
        jid: info.jid.as_str().to_owned(),
        state: if info.parked { "parked" } else { "connected" },
        connection: (!info.parked).then(|| name(&cell, info.via.unwrap_or(home))),
    };
    Ok(Json(LocationView {
        jid: jid.as_str().to_owned(),
        kind,
        partition: bucket(jid.as_str()) >> 8,
        home: name(&cell, home),
        sessions: sessions.iter().map(placed).collect(),
    }))
}

/// What is at addresses with this host, and the name of its domain.
fn kind_of(host: &str) -> (&'static str, &str) {
    if let Some((_, domain)) = RoomKind::of_host(host) {
        return ("room", domain);
    }
    match host.split_once('.') {
        Some((TOPIC_HOST, domain)) => ("topic", domain),
        _ => ("account", host),
    }
}

async fn sessions(app: &App, jid: &BareJid) -> Result<Vec<SessionInfo>, Problem> {
    let command = Command::Sessions { domain: None, account: Some(jid.clone()), limit: SESSIONS_MAX };
    match app.command(command).await? {
        Outcome::Sessions(sessions) => Ok(sessions),
        other => Err(Problem::unexpected(&other)),
    }
}

/// The names of this node and of the one that an account is at home on, where there is a cell.
pub(crate) async fn own_and_home(app: &App, account: &BareJid) -> Result<Option<(String, String)>, Problem> {
    let cell = view(app);
    if cell.members.is_empty() {
        return Ok(None);
    }
    let keeper = app.node.home(account.as_str()).node;
    let home = sessions(app, account).await?.first().map_or(keeper, |session| session.home);
    Ok(Some((name(&cell, app.node.own()), name(&cell, home))))
}

/// The name of a node, as [`own_and_home`] names it.
pub(crate) fn name_of(app: &App, node: NodeId) -> String {
    name(&view(app), node)
}

/// The name of a node; its number where the name is not known yet.
fn name(cell: &CellView, node: NodeId) -> String {
    let known = cell.members.iter().find(|member| member.node == node);
    known.map_or_else(|| node.0.to_string(), |member| member.name.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_says_what_is_there() {
        assert_eq!(kind_of("rooms.example.org"), ("room", "example.org"));
        assert_eq!(kind_of("muclight.example.org"), ("room", "example.org"));
        assert_eq!(kind_of("pubsub.example.org"), ("topic", "example.org"));
        assert_eq!(kind_of("example.org"), ("account", "example.org"));
    }
}
