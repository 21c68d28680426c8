//! The node's figures over the last ten minutes.

use crate::app::App;
use crate::auth::{Admin, Granted};
use crate::extract::Params;
use crate::problem::Problem;
use crate::values::schema;
use crate::values::time::Time;
use axum::Json;
use axum::extract::State;
use carillon_server::history::{INTERVAL_MS, Sample};

/// The node's figures over the last ten minutes, since its start at most.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct HistoryView {
    /// Milliseconds between two samples.
    interval_ms: u64,
    /// Oldest first.
    samples: Vec<SampleView>,
}

/// The figures of one interval. Rates and latencies are of this interval alone.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct SampleView {
    /// The end of the interval.
    at: Time,
    /// Connections open at its end, logged in or not.
    connections: u64,
    /// Sessions bound at its end.
    sessions: u64,
    /// Successful logins per second.
    logins_per_second: f64,
    /// Failed logins per second.
    login_failures_per_second: f64,
    /// Topic items and notifications given to connections, per second.
    deliveries_per_second: f64,
    /// Notifications acknowledged, per second.
    acknowledgements_per_second: f64,
    /// Errors sent to clients per second: stream errors, and errors of the light protocol.
    errors_per_second: f64,
    /// Processor time used by the process, in processors: 1.5 is one and a half of them.
    cpu: f64,
    /// Resident memory of the process at the end of the interval, in bytes.
    resident_bytes: u64,
    /// Median of the time from acceptance to the connection, in milliseconds; null when nothing was delivered.
    delivery_p50_ms: Option<u32>,
    /// 99th percentile of the same.
    delivery_p99_ms: Option<u32>,
}

/// Selects samples.
#[derive(Debug, serde::Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct HistoryQuery {
    /// Only what follows the sample of this time, its `at`. All samples when the node has none of this time.
    #[param(value_type = Option<String>, format = DateTime)]
    after: Option<Time>,
}

/// Read the node's figures over the last ten minutes
///
/// The node takes a sample every two seconds and keeps 300 of them in memory. Needs a key of the whole node.
#[utoipa::path(
    get, path = "/v1/admin/history", operation_id = "getHistory", tag = "admin", params(HistoryQuery),
    responses((status = 200, description = "The samples", body = HistoryView), schema::Problems)
)]
pub(crate) async fn history(
    key: Granted<Admin>,
    State(app): State<App>,
    Params(query): Params<HistoryQuery>,
) -> Result<Json<HistoryView>, Problem> {
    key.whole_node()?;
    let samples = app.node.history(query.after.map(|Time(at)| at));
    Ok(Json(HistoryView { interval_ms: INTERVAL_MS, samples: samples.iter().map(SampleView::of).collect() }))
}

impl SampleView {
    fn of(sample: &Sample) -> SampleView {
        let (p50, p99) = sample.delivery_ms.unzip();
        SampleView {
            at: Time(sample.at),
            connections: sample.connections,
            sessions: sample.sessions,
            logins_per_second: sample.logins_per_second,
            login_failures_per_second: sample.login_failures_per_second,
            deliveries_per_second: sample.deliveries_per_second,
            acknowledgements_per_second: sample.acknowledgements_per_second,
            errors_per_second: sample.errors_per_second,
            cpu: sample.cpu,
            resident_bytes: sample.resident_bytes,
            delivery_p50_ms: p50,
            delivery_p99_ms: p99,
        }
    }
}
