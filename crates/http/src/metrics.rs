//! `/metrics`: the node's figures as Prometheus text (exposition format 0.0.4).

use crate::app::App;
use crate::auth::{Admin, Granted};
use crate::problem::Problem;
use crate::schema;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::header;
use axum::response::IntoResponse;
use carillon_server::events::EventLogStatus;
use carillon_server::metrics::Status;
use std::fmt::{Display, Write};

/// Read the node's figures for Prometheus
///
/// Without a key, unless the node is set to ask for one with scope `admin`.
#[utoipa::path(
    get, path = "/metrics", tag = "operation",
    responses((status = 200, description = "Prometheus text", body = String, content_type = "text/plain"), schema::Problems)
)]
pub(crate) async fn metrics(State(app): State<App>, request: Request) -> Result<impl IntoResponse, Problem> {
    if app.options.metrics_key_required {
        let (mut parts, _) = request.into_parts();
        Granted::<Admin>::from_request_parts(&mut parts, &app).await?.whole_node()?;
    }
    let mut page = Page::default();
    node(&mut page, &app.node.status(), app.node.is_ready());
    requests(&mut page, &app);
    process(&mut page, &app.node.status());
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], page.0))
}

fn node(page: &mut Page, status: &Status, ready: bool) {
    page.gauge("ready", "Whether the node takes sessions.", u8::from(ready));
    page.gauge("uptime_seconds", "Time since the node was started.", status.uptime_ms as f64 / 1000.0);
    page.gauge("shards", "Shards of the node.", status.shards);
    page.gauge("connections", "Connections open now.", status.connections);
    page.gauge("sessions", "Sessions bound now.", status.sessions);
    page.gauge("sessions_available", "Sessions with available presence now.", status.available);
    page.gauge("light_sessions", "Sessions of the light protocol now.", status.light_sessions);
    page.counter("connections_accepted_total", "Connections accepted.", status.accepted);
    let refusals = status.refusals.iter().map(|(reason, count)| (format!("reason=\"{reason}\""), *count));
    page.family(
        "connections_refused_total",
        "counter",
        "Connections refused at a bound, by reason.",
        refusals,
    );
    page.gauge(
        "handshakes_in_flight",
        "Connections whose handshake is not complete.",
        status.handshakes_in_flight,
    );
    page.counter("logins_remembered_total", "Logins that asked no store.", status.logins_remembered);
    page.counter("tls_handshakes_total", "TLS handshakes completed.", status.handshakes);
    page.counter("logins_total", "Logins that succeeded.", status.logins);
    page.counter("login_failures_total", "Logins that failed.", status.login_failures);
    page.counter("stanzas_received_total", "Stanzas received from clients.", status.stanzas_in);
    page.counter("stanzas_sent_total", "Stanzas sent to clients.", status.stanzas_out);
    page.counter("received_bytes_total", "Bytes received, after decryption.", status.bytes_in);
    page.counter("sent_bytes_total", "Bytes sent, before encryption.", status.bytes_out);
    page.counter("deliveries_total", "Items and notifications given to connections.", status.deliveries);
    let quantiles =
        [("quantile=\"0.5\"", status.delivery_p50_ms), ("quantile=\"0.99\"", status.delivery_p99_ms)];
    page.family(
        "delivery_seconds",
        "gauge",
        "Time from acceptance to the connection over the last minute, at quantiles.",
        quantiles.map(|(label, ms)| (label.to_owned(), ms / 1000.0)),
    );
    page.counter("notifications_accepted_total", "Notifications accepted.", status.notifications_accepted);
    page.counter(
        "notifications_acknowledged_total",
        "Notifications acknowledged by their device.",
        status.notifications_acknowledged,
    );
    page.counter(
        "notifications_ended_total",
        "Notifications expired, replaced, cancelled or dropped.",
        status.notifications_ended,
    );
    page.counter("items_published_total", "Items published to topics.", status.published);
    page.counter(
        "publications_refused_total",
        "Publications refused because the topic's followers could not be given them as fast.",
        status.too_fast,
    );
    page.gauge("fanout_waiting_deliveries", "Deliveries of topics that wait.", status.waiting_deliveries);
    page.gauge("fanout_waiting_bytes", "Memory of what waits so.", status.waiting_bytes);
    let errors = status.stream_errors.iter();
    let errors = errors.map(|(condition, count)| (format!("condition=\"{}\"", escape(condition)), *count));
    page.family("stream_errors_total", "counter", "Stream errors sent, by condition.", errors);
    let errors = status.light_errors.iter();
    let errors = errors.map(|(code, count)| (format!("code=\"{}\"", escape(code)), *count));
    page.family("light_errors_total", "counter", "Errors sent over the light protocol, by code.", errors);
    page.counter("sends_total", "Parts of streams given to the kernel, each for one client.", status.sends);
    page.counter("send_calls_total", "System calls that these took.", status.send_calls);
    page.counter("overflows_total", "Slow readers disconnected.", status.overflows);
    page.gauge("resident_bytes", "Resident memory of the process.", status.resident_bytes);
    page.gauge("store_waiting", "Questions waiting for the store.", status.store.waiting);
    page.counter("store_answered_total", "Questions answered by the store.", status.store.answered);
    page.counter("store_commits_total", "Commits of the store.", status.store.commits);
    page.counter("store_writes_total", "Writes that shared those commits.", status.store.writes);
    page.gauge("store_size_bytes", "Size of the database.", status.store.bytes);
    if let Some(log) = &status.events {
        event_log(page, log);
    }
}

fn event_log(page: &mut Page, log: &EventLogStatus) {
    page.counter("event_log_lines_total", "Lines written to the event log.", log.lines);
    page.counter("event_log_bytes_total", "Bytes of those lines.", log.bytes);
    page.counter(
        "event_log_spilled_bytes_total",
        "Bytes of events that went by way of the disk because the writer was behind.",
        log.spilled_bytes,
    );
    page.gauge("event_log_held_bytes", "Memory of events on their way to the disk.", log.held_bytes);
    page.counter(
        "event_log_dropped_total",
        "Events lost: memory was full and the disk took none.",
        log.dropped,
    );
    page.counter("event_log_failures_total", "Writes that failed and were tried again.", log.failures);
}

fn requests(page: &mut Page, app: &App) {
    let counts = app.requests.counts().into_iter().map(|(kind, count)| {
        let (route, method, status) = (escape(&kind.route), kind.method, kind.status);
        (format!("route=\"{route}\",method=\"{method}\",status=\"{status}\""), count)
    });
    page.family("http_requests_total", "counter", "HTTP requests, by route, method and status.", counts);
}

/// The process by the names that every Prometheus client library gives them, so that its tools find them.
fn process(page: &mut Page, status: &Status) {
    let memory = [(String::new(), status.resident_bytes)];
    page.named("process_resident_memory_bytes", "gauge", "Resident memory of the process.", memory);
    if let Some(seconds) = cpu_seconds() {
        let cpu = [(String::new(), seconds)];
        page.named("process_cpu_seconds_total", "counter", "User and system time of the process.", cpu);
    }
}

/// User and system time of this process; nothing where the system does not tell.
fn cpu_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // proc_pid_stat(5): the command in parentheses may hold anything; utime and stime are the 12th and 13th behind it.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some((user + system) as f64 / TICKS_PER_SECOND)
}

/// `USER_HZ`: 100 on every Linux architecture that Rust runs on.
const TICKS_PER_SECOND: f64 = 100.0;

/// A page of metrics, as it grows.
#[derive(Default)]
struct Page(String);

impl Page {
    fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, "gauge", help, [(String::new(), value)]);
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.family(name, "counter", help, [(String::new(), value)]);
    }

    fn family<V: Display>(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        samples: impl IntoIterator<Item = (String, V)>,
    ) {
        self.named(&format!("carillon_{name}"), kind, help, samples);
    }

    /// A family by its whole name.
    fn named<V: Display>(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        samples: impl IntoIterator<Item = (String, V)>,
    ) {
        let out = &mut self.0;
        let written = write!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        written.expect("writing to a string does not fail");
        for (labels, value) in samples {
            let written = if labels.is_empty() {
                writeln!(out, "{name} {value}")
            } else {
                writeln!(out, "{name}{{{labels}}} {value}")
            };
            written.expect("writing to a string does not fail");
        }
    }
}

fn escape(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_help_type_or_a_sample() {
        let mut page = Page::default();
        let status = Status {
            uptime_ms: 1500,
            stream_errors: vec![("conflict", 2)],
            delivery_p99_ms: 12.5,
            events: Some(EventLogStatus { lines: 7, ..EventLogStatus::default() }),
            ..Status::default()
        };
        node(&mut page, &status, true);
        process(&mut page, &status);
        assert!(page.0.contains("\nprocess_resident_memory_bytes 0\n"));
        assert!(page.0.contains("\nprocess_cpu_seconds_total "));
        assert!(page.0.contains("\ncarillon_uptime_seconds 1.5\n"));
        assert!(page.0.contains("\ncarillon_stream_errors_total{condition=\"conflict\"} 2\n"));
        assert!(page.0.contains("\ncarillon_delivery_seconds{quantile=\"0.99\"} 0.0125\n"));
        assert!(page.0.contains("\ncarillon_event_log_lines_total 7\n"));
        let mut family = String::new();
        for line in page.0.lines() {
            if let Some(name) = line.strip_prefix("# TYPE ").and_then(|l| l.split(' ').next()) {
                family = name.to_owned();
            } else if !line.starts_with("# HELP ") {
                let (name, value) = line.rsplit_once(' ').unwrap();
                assert!(name.starts_with(&family) && value.parse::<f64>().is_ok(), "{line}");
            }
        }
    }
}
