//! The node's figures as JSON.

use crate::app::App;
use crate::auth::{Admin, Granted};
use crate::problem::Problem;
use crate::values::schema;
use axum::Json;
use axum::extract::State;
use carillon_server::metrics::Status;
use std::collections::BTreeMap;

/// The node's figures. Counters count since the start.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct StatusView {
    /// The version of this server.
    version: &'static str,
    /// Whether the node takes sessions.
    ready: bool,
    /// Milliseconds since the node was started.
    uptime_ms: u64,
    /// Shards of the node.
    shards: u16,
    /// Connections open now, logged in or not.
    connections: u64,
    /// Sessions bound now.
    sessions: u64,
    /// Of these, the sessions that have no connection, and wait for their clients to resume them (XEP-0198).
    parked: u64,
    /// Sessions with available presence now.
    available: u64,
    /// Sessions of the light protocol now.
    light_sessions: u64,
    /// Connections accepted.
    accepted: u64,
    /// Connections refused at a bound, before any handshake.
    refused: u64,
    /// TLS handshakes completed.
    handshakes: u64,
    /// Logins that succeeded.
    logins: u64,
    /// Logins that failed.
    login_failures: u64,
    /// Logins per second over the last ten seconds.
    logins_per_second: f64,
    /// Stanzas received from clients.
    stanzas_in: u64,
    /// Stanzas sent to clients.
    stanzas_out: u64,
    /// Bytes received from clients, after decryption.
    bytes_in: u64,
    /// Bytes sent to clients, before encryption.
    bytes_out: u64,
    /// Topic items and notifications given to connections.
    deliveries: u64,
    /// Deliveries per second over the last ten seconds.
    deliveries_per_second: f64,
    /// Median time from the acceptance of an item or a notification to its being given to a connection, over the last
    /// minute, in milliseconds.
    delivery_p50_ms: f64,
    /// 99th percentile of the time from the acceptance of an item or a notification to its being given to a connection,
    /// over the last minute, in milliseconds.
    delivery_p99_ms: f64,
    /// Notifications accepted from providers.
    notifications_accepted: u64,
    /// Notifications that ended because they were acknowledged.
    notifications_acknowledged: u64,
    /// Notifications that ended without an acknowledgement: expired, replaced, cancelled or dropped.
    notifications_ended: u64,
    /// Items published to topics.
    published: u64,
    /// Publications refused because deliveries of the topic's earlier items still waited.
    publications_refused: u64,
    /// Deliveries of topic items that wait now.
    waiting_deliveries: u64,
    /// Memory of the topic items whose deliveries wait now, in bytes.
    waiting_bytes: u64,
    /// Stream errors sent, by condition.
    stream_errors: BTreeMap<&'static str, u64>,
    /// Errors sent over the light protocol, by code.
    light_errors: BTreeMap<&'static str, u64>,
    /// Connections closed because the client read too slowly and its output queue was full.
    overflows: u64,
    /// Connections closed because clients read too slowly and all output queues together were full.
    common_overflows: u64,
    /// Memory of what waits now for clients that read too slowly, in bytes: all output queues together.
    out_queue_bytes: u64,
    /// Resident memory of the process in bytes.
    resident_bytes: u64,
    /// The store's figures.
    store: StoreView,
}

/// The store's figures.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct StoreView {
    /// Queries and writes that wait for the store now.
    waiting: u64,
    /// Queries and writes answered.
    answered: u64,
    /// Commits: several writes that wait together share one.
    commits: u64,
    /// Writes.
    writes: u64,
    /// Size of the database in bytes.
    bytes: u64,
}

/// Read the node's figures
///
/// Needs a key of the whole node.
#[utoipa::path(
    get, path = "/v1/admin/status", operation_id = "getStatus", tag = "admin",
    responses((status = 200, description = "The figures", body = StatusView), schema::Problems)
)]
pub(crate) async fn status(key: Granted<Admin>, State(app): State<App>) -> Result<Json<StatusView>, Problem> {
    key.whole_node()?;
    Ok(Json(StatusView::of(&app.node.status(), app.node.is_ready())))
}

impl StatusView {
    fn of(status: &Status, ready: bool) -> StatusView {
        let store = &status.store;
        StatusView {
            version: env!("CARGO_PKG_VERSION"),
            ready,
            uptime_ms: status.uptime_ms,
            shards: status.shards,
            connections: status.connections,
            sessions: status.sessions,
            parked: status.parked,
            available: status.available,
            light_sessions: status.light_sessions,
            accepted: status.accepted,
            refused: status.refused,
            handshakes: status.handshakes,
            logins: status.logins,
            login_failures: status.login_failures.total(),
            logins_per_second: status.logins_per_second,
            stanzas_in: status.stanzas_in,
            stanzas_out: status.stanzas_out,
            bytes_in: status.bytes_in,
            bytes_out: status.bytes_out,
            deliveries: status.deliveries,
            deliveries_per_second: status.deliveries_per_second,
            delivery_p50_ms: status.delivery_p50_ms,
            delivery_p99_ms: status.delivery_p99_ms,
            notifications_accepted: status.notifications_accepted,
            notifications_acknowledged: status.notifications_acknowledged,
            notifications_ended: status.notifications_ended.total(),
            published: status.published,
            publications_refused: status.too_fast,
            waiting_deliveries: status.waiting_deliveries,
            waiting_bytes: status.waiting_bytes,
            stream_errors: status.stream_errors.iter().collect(),
            light_errors: status.light_errors.iter().collect(),
            overflows: status.overflows,
            common_overflows: status.common_overflows,
            out_queue_bytes: status.out_queue_bytes,
            resident_bytes: status.resident_bytes,
            store: StoreView {
                waiting: store.waiting,
                answered: store.answered,
                commits: store.commits,
                writes: store.writes,
                bytes: store.bytes,
            },
        }
    }
}
