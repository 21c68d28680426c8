//! `/metrics`: the node's figures as Prometheus text. What each is for is in `docs/book/operations.md`.

mod cell;
mod intake;
mod matches;
mod process;
pub(crate) mod requests;
mod rooms;

use crate::app::App;
use crate::auth::{Admin, Granted};
use crate::cells;
use crate::diagnostics::trace::Traces;
use crate::exposition::{Histogram, Labels, Page, labels};
use crate::problem::Problem;
use crate::values::schema;
use crate::webhooks::Figures;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::header;
use axum::response::IntoResponse;
use carillon_core::ports::{StoreHealth, StoreLane};
use carillon_core::shard::{DomainCounters, DomainQuota, ModuleFigures, Reasons};
use carillon_server::events::EventLogStatus;
use carillon_server::metrics::Status;
use requests::{Answered, Endpoint};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Read the node's figures for Prometheus
///
/// Without a key, unless the node is set to ask for one with scope `admin`.
#[utoipa::path(
    get, path = "/metrics", tag = "operation",
    responses((status = 200, description = "Prometheus text", body = String, content_type = "text/plain"), schema::Problems)
)]
pub(crate) async fn metrics(State(app): State<App>, request: Request) -> Result<impl IntoResponse, Problem> {
    if app.options.settings.metrics_key_required {
        let (mut parts, _) = request.into_parts();
        Granted::<Admin>::from_request_parts(&mut parts, &app).await?.whole_node()?;
    }
    Ok(figures(&app))
}

/// The same on a port that is for this alone.
pub(crate) async fn open(State(app): State<App>) -> impl IntoResponse {
    figures(&app)
}

fn figures(app: &App) -> impl IntoResponse + use<> {
    let health = app.node.store_health();
    let webhooks = app.webhooks().figures();
    let status = app.node.status();
    let mut text = text(&status, health, app.node.is_ready(), &webhooks, &app.requests().answered());
    if let Some(cell) = cell::Cell::of(&app.node) {
        text.push_str(&cell.text(&status, Instant::now()));
    }
    let queues: Vec<_> = app.intakes().iter().map(|queue| (&*queue.options.name, queue.figures())).collect();
    text.push_str(&intake::text(&queues));
    text.push_str(&lanes(&app.node.store_lanes()));
    text.push_str(&cells::metrics::text(app));
    text.push_str(&traces(app.traces()));
    if let Some(figures) = app.telemetry().figures() {
        text.push_str(&spans(figures));
    }
    text.push_str(&pushes(app.pushes().figures()));
    if let Some(results) = app.push_service().figures() {
        text.push_str(&web_push(results));
    }
    if app.uploads().are_on() {
        text.push_str(&uploads(app.uploads().figures()));
    }
    if app.links().are_on() {
        text.push_str(&links(app.links().figures(), app.links().cache_bytes()));
    }
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text)
}

/// The figures of the connections over which a store on a server writes, where it is on one.
fn lanes(lanes: &[StoreLane]) -> String {
    let mut page = Page::default();
    let mut family = |name, kind, help, value: fn(&StoreLane) -> u64| {
        let samples = lanes.iter().zip(0_u32..).map(|(lane, number)| (number.to_string(), value(lane)));
        let samples = samples.map(|(number, value)| (labels(&[("lane", &number)]), value));
        page.family(name, kind, help, samples);
    };
    if lanes.is_empty() {
        return String::new();
    }
    let help = "Writes that wait for a connection to the database.";
    family("carillon_store_lane_waiting", "gauge", help, |lane| lane.waiting);
    let help = "Bytes of the writes that wait for a connection to the database.";
    family("carillon_store_lane_waiting_bytes", "gauge", help, |lane| lane.waiting_bytes);
    let help = "Commits over a connection to the database.";
    family("carillon_store_lane_commits_total", "counter", help, |lane| lane.commits);
    let help = "Times that a connection waited for an answer of the database.";
    family("carillon_store_lane_round_trips_total", "counter", help, |lane| lane.round_trips);
    let help = "Times that a connection to the database was made, the first one included.";
    family("carillon_store_lane_connects_total", "counter", help, |lane| lane.connects);
    let help =
        "Groups of writes that were done again, because a connection was lost or another group was met.";
    family("carillon_store_lane_repeats_total", "counter", help, |lane| lane.repeats);
    let help = "Commits without an answer of which the node found out whether they had been done.";
    family("carillon_store_lane_settled_total", "counter", help, |lane| lane.settled);
    let help =
        "Commits without an answer of which the node could not find out in time whether they had been done.";
    family("carillon_store_lane_unknown_total", "counter", help, |lane| lane.unknown);
    page.into_text()
}

/// The figures of traces of accounts.
fn traces(traces: &Traces) -> String {
    let mut page = Page::default();
    page.gauge("carillon_traces", "Traces of accounts under way.", traces.open());
    let of = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
    page.counter("carillon_trace_lines_total", "Lines that traces told.", of(&traces.lines));
    let help = "Entries that traces did not tell, because they came too fast or were not read in time.";
    page.counter("carillon_trace_missed_total", help, of(&traces.missed));
    page.into_text()
}

/// The figures of spans of OpenTelemetry, where they are exported.
fn spans(figures: &crate::telemetry::Figures) -> String {
    let mut page = Page::default();
    let of = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
    let help = "Spans of OpenTelemetry, by what became of them: `exported`, `dropped` (there was no room for them), `failed` (the receiver did not take them).";
    let results = [
        ("exported", of(&figures.exported)),
        ("dropped", of(&figures.dropped)),
        ("failed", of(&figures.failed)),
    ];
    page.counters("carillon_otel_spans_total", help, "result", results);
    page.into_text()
}

/// The figures of short links, where there are any.
fn links(figures: &crate::links::Figures, cache_bytes: usize) -> String {
    let mut page = Page::default();
    let of = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
    let help = "Requests for short links, by what came of them: `followed`, `gone` (expired or taken down), `unknown`.";
    let results =
        [("followed", of(&figures.followed)), ("gone", of(&figures.gone)), ("unknown", of(&figures.unknown))];
    page.counters("carillon_link_requests_total", help, "result", results);
    let help = "Short links looked up, in memory (`hit`) or in the store (`miss`).";
    let lookups = [("hit", of(&figures.hits)), ("miss", of(&figures.misses))];
    page.counters("carillon_link_lookups_total", help, "result", lookups);
    page.counter("carillon_links_created_total", "Short links created.", of(&figures.created));
    let help = "Clicks on short links that the store has counted.";
    page.counter("carillon_link_clicks_total", help, of(&figures.clicks));
    let help = "Clicks on links of notifications that the store has noted.";
    page.counter("carillon_notification_clicks_total", help, of(&figures.opened));
    let help = "Clicks that were dropped, because the store was too slow and there was no room for more.";
    page.counter("carillon_link_clicks_dropped_total", help, of(&figures.dropped));
    page.gauge("carillon_link_cache_bytes", "Memory of short links that were followed lately.", cache_bytes);
    page.into_text()
}

/// The figures of files that clients upload, where they do.
fn uploads(figures: &crate::upload::Figures) -> String {
    let mut page = Page::default();
    let of = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
    let help =
        "Requests to upload a file, by what came of them: `uploaded`, `failed` (refused, or not to its end).";
    let results = [("uploaded", of(&figures.uploaded)), ("failed", of(&figures.failed))];
    page.counters("carillon_upload_requests_total", help, "result", results);
    page.counter(
        "carillon_uploaded_bytes_total",
        "Bytes of files that were uploaded.",
        of(&figures.uploaded_bytes),
    );
    let help =
        "Requests for files of clients, by what came of them: `served`, `unknown` (not there, or expired).";
    let results = [("served", of(&figures.served)), ("unknown", of(&figures.unknown))];
    page.counters("carillon_upload_downloads_total", help, "result", results);
    page.counter(
        "carillon_upload_removed_total",
        "Files of clients that were removed.",
        of(&figures.removed),
    );
    page.into_text()
}

fn text(
    status: &Status,
    health: StoreHealth,
    ready: bool,
    webhooks: &Figures,
    requests: &BTreeMap<Endpoint, Answered>,
) -> String {
    let mut page = Page::default();
    node(&mut page, status, ready);
    connections(&mut page, status);
    logins(&mut page, status);
    traffic(&mut page, status);
    deliveries(&mut page, status);
    notifications(&mut page, status);
    topics(&mut page, status);
    domains(&mut page, status);
    store(&mut page, status, health);
    if let Some(log) = &status.events {
        event_log(&mut page, log);
    }
    if !status.modules.is_empty() {
        modules(&mut page, status);
    }
    matches::matches(&mut page, &status.matches);
    matches::quic(&mut page, &status.quic);
    rooms::rooms(&mut page, &status.rooms);
    self::webhooks(&mut page, webhooks);
    http(&mut page, requests);
    process::process(&mut page, status.resident_bytes);
    page.into_text()
}

fn node(page: &mut Page, status: &Status, ready: bool) {
    let build = [("version", VERSION), ("revision", REVISION), ("rustc", env!("CARILLON_RUSTC"))];
    let known: Vec<_> = build.into_iter().filter(|(_, value)| !value.is_empty()).collect();
    let help =
        "Always 1; the labels are the version of this server, the revision of its source and its compiler.";
    page.family("carillon_build_info", "gauge", help, [(labels(&known), 1)]);
    page.gauge(
        "carillon_ready",
        "1 while the node takes sessions, 0 while it starts or drains.",
        u8::from(ready),
    );
    let uptime = status.uptime_ms as f64 / 1000.0;
    page.gauge("carillon_uptime_seconds", "Time since the node was started, in seconds.", uptime);
    page.gauge("carillon_shards", "Shards of the node: threads that hold sessions.", status.shards);
    if let Some(expires) = status.certificate_expires {
        let help = "Time at which the TLS certificate in use expires, in seconds since the Unix epoch.";
        page.gauge("carillon_tls_certificate_expiry_timestamp_seconds", help, expires.0 / 1000);
    }
}

fn connections(page: &mut Page, status: &Status) {
    let help = "Client connections that are open now, logged in or not.";
    page.gauge("carillon_connections", help, status.connections);
    let help = "Connections that are open now whose TLS handshake or WebSocket upgrade is not complete.";
    page.gauge("carillon_handshakes_in_flight", help, status.handshakes_in_flight);
    page.gauge("carillon_sessions", "XMPP sessions that are bound now.", status.sessions);
    let help = "XMPP sessions that have no connection now, and wait for their clients to resume them.";
    page.gauge("carillon_sessions_parked", help, status.parked);
    let help = "XMPP sessions that have available presence now.";
    page.gauge("carillon_sessions_available", help, status.available);
    let help = "Sessions of the light protocol that are open now.";
    page.gauge("carillon_light_sessions", help, status.light_sessions);
    let help = "Client connections accepted.";
    page.counter("carillon_connections_accepted_total", help, status.accepted);
    let help = "Client connections refused before any handshake, by the bound that was reached.";
    page.counters("carillon_connections_refused_total", help, "reason", status.refusals.iter().copied());
    page.counter("carillon_tls_handshakes_total", "TLS handshakes completed.", status.handshakes);
    let help = "Sessions that clients resumed over another connection.";
    page.counter("carillon_sessions_resumed_total", help, status.resumed);
    let help = "Parked sessions restored from the previous process.";
    page.counter("carillon_sessions_restored_total", help, status.restored);
    let help = "Parked sessions of the previous process whose time was up at the start.";
    page.counter("carillon_sessions_not_restored_total", help, status.not_restored);
    let help = "XMPP sessions that ended: `closed` by the client, `lost` with the connection, or ended by the server \
                with this stream error.";
    page.counters("carillon_sessions_ended_total", help, "reason", status.sessions_ended.iter());
    let help = "Stream errors sent to clients, by condition (RFC 6120, section 4.9.3).";
    page.counters("carillon_stream_errors_total", help, "condition", status.stream_errors.iter());
    let help = "Errors sent to clients of the light protocol, by code.";
    page.counters("carillon_light_errors_total", help, "code", status.light_errors.iter());
    let help = "Connections closed because the client read too slowly and its output queue was full.";
    page.counter("carillon_overflows_total", help, status.overflows);
    let help = "Connections closed because clients read too slowly and all output queues together were full.";
    page.counter("carillon_common_overflows_total", help, status.common_overflows);
    let help = "Memory of what waits now for clients that read too slowly: all output queues together.";
    page.gauge("carillon_out_queue_bytes", help, status.out_queue_bytes);
}

fn logins(page: &mut Page, status: &Status) {
    page.counter("carillon_logins_total", "XMPP logins that succeeded.", status.logins);
    let help = "Those of the successful XMPP logins that needed no query to the store.";
    page.counter("carillon_logins_remembered_total", help, status.logins_remembered);
    let help = "XMPP logins that failed, by the SASL condition that the client was told.";
    page.counters("carillon_login_failures_total", help, "reason", status.login_failures.iter());
    let help =
        "Time from a client's first SASL element to the server's success, the client's own part included.";
    one(page, "carillon_login_duration_seconds", help, &status.login);
}

fn traffic(page: &mut Page, status: &Status) {
    let help = "Stanzas received from clients.";
    page.counter("carillon_stanzas_received_total", help, status.stanzas_in);
    page.counter("carillon_stanzas_sent_total", "Stanzas sent to clients.", status.stanzas_out);
    let help = "Stanzas that go no further than to a feature, by what it did with them.";
    page.counters("carillon_stanzas_taken_total", help, "reason", status.stanzas_taken.iter());
    let help = "Stanzas that were not given to a session when they came, by the reason.";
    page.counters("carillon_stanzas_held_total", help, "reason", status.stanzas_held.iter());
    let help = "Bytes received from clients, after decryption.";
    page.counter("carillon_received_bytes_total", help, status.bytes_in);
    page.counter("carillon_sent_bytes_total", "Bytes sent to clients, before encryption.", status.bytes_out);
    let help = "Parts of client streams given to the kernel to be sent, each for one connection.";
    page.counter("carillon_sends_total", help, status.sends);
    let help = "System calls that sent parts of client streams; with io_uring one call sends many parts.";
    page.counter("carillon_send_calls_total", help, status.send_calls);
}

fn deliveries(page: &mut Page, status: &Status) {
    let help = "Topic items and notifications given to client connections.";
    page.counter("carillon_deliveries_total", help, status.deliveries);
    let help = "Time from the acceptance of a topic item or a notification to its being given to a connection, of \
                what did not wait in the store.";
    one(page, "carillon_delivery_duration_seconds", help, &status.delivery);
    let help = "Deliveries of topic items, and of what rooms say, that wait now for their turn.";
    page.gauge("carillon_fanout_waiting_deliveries", help, status.waiting_deliveries);
    let help = "Memory of the topic items, and of what rooms say, whose deliveries wait now, in bytes.";
    page.gauge("carillon_fanout_waiting_bytes", help, status.waiting_bytes);
}

fn notifications(page: &mut Page, status: &Status) {
    let help = "Notifications accepted from providers.";
    page.counter("carillon_notifications_accepted_total", help, status.notifications_accepted);
    let help = "Notifications that ended because they were acknowledged.";
    page.counter("carillon_notifications_acknowledged_total", help, status.notifications_acknowledged);
    let help = "Times that broadcasts were given to connections.";
    page.counter("carillon_broadcasts_given_total", help, status.broadcasts_given);
    let help = "Accounts that acknowledged broadcasts.";
    page.counter("carillon_broadcasts_acknowledged_total", help, status.broadcasts_acknowledged);
    let help = "Notifications that ended without an acknowledgement: `expired`, `replaced`, `cancelled`, or dropped \
                for this reason.";
    page.counters("carillon_notifications_ended_total", help, "reason", status.notifications_ended.iter());
    let help = "Time from a notification's being given to a connection to its acknowledgement by the device, by \
                stream management (XEP-0198) or a receipt (XEP-0184).";
    one(page, "carillon_acknowledgement_duration_seconds", help, &status.acknowledgement);
}

fn topics(page: &mut Page, status: &Status) {
    page.counter("carillon_items_published_total", "Items published to topics.", status.published);
    let help = "Items that did not come to a shard from the topic's home, and were read from the store for its subscribers there.";
    page.counter("carillon_items_recovered_total", help, status.items_recovered);
    let help = "Publications refused because deliveries of the topic's earlier items still waited.";
    page.counter("carillon_publications_refused_total", help, status.too_fast);
}

fn domains(page: &mut Page, status: &Status) {
    let mut by_domain = |name: &str, kind: &str, help: &str, figure: fn(&DomainCounters) -> u64| {
        let samples = status.domains.iter().map(|domain| {
            let name = domain.name.as_deref().unwrap_or(OTHER_DOMAINS);
            (labels(&[("domain", name)]), figure(&domain.counters))
        });
        page.family(name, kind, help, samples);
    };
    let help =
        "XMPP sessions that are bound now, by domain; `(other)` is all domains beyond http.metrics_domains.";
    by_domain("carillon_domain_sessions", "gauge", help, |d| d.sessions);
    let help = "Topic items and notifications given to XMPP sessions, by domain.";
    by_domain("carillon_domain_deliveries_total", "counter", help, |d| d.deliveries);
    let help = "Notifications accepted from providers, by domain.";
    by_domain("carillon_domain_notifications_accepted_total", "counter", help, |d| d.notifications_accepted);
    let help = "Notifications that ended because they were acknowledged, by domain.";
    let name = "carillon_domain_notifications_acknowledged_total";
    by_domain(name, "counter", help, |d| d.notifications_acknowledged);
    let help = "Notifications that ended without an acknowledgement, by domain.";
    by_domain("carillon_domain_notifications_ended_total", "counter", help, |d| d.notifications_ended);
    let help = "Times that a session was read more slowly because the clients of its domain had sent as much as they may, by domain.";
    by_domain("carillon_domain_sends_delayed_total", "counter", help, |d| d.sends_delayed);
    let refused = status.domains.iter().flat_map(|domain| {
        let name = domain.name.as_deref().unwrap_or(OTHER_DOMAINS);
        DomainQuota::ALL.map(|quota| {
            (labels(&[("domain", name), ("quota", quota.as_str())]), domain.counters.refused.by(quota))
        })
    });
    let help = "What clients and publishers were refused because the domain, or an account of it, has as much as the domain's policy allows, by domain and quota.";
    page.family("carillon_domain_refused_total", "counter", help, refused);
}

fn store(page: &mut Page, status: &Status, health: StoreHealth) {
    let store = &status.store;
    page.gauge("carillon_store_waiting", "Queries and writes that wait for the store now.", store.waiting);
    let help = "Queries and writes that the store answered.";
    page.counter("carillon_store_answered_total", help, store.answered);
    let help = "Queries and writes of sessions and topics that the store failed to carry out.";
    page.counter("carillon_store_failures_total", help, status.faults);
    let help = "Acknowledged notifications and messages that may be delivered again, because the store failed and more \
                acknowledgements waited to be written than fit in memory.";
    page.counter("carillon_store_given_up_total", help, status.given_up);
    let help = "1 while the last read or the last write of the store failed.";
    page.gauge("carillon_store_failing", help, u64::from(health.fails));
    let help = "1 since the store met damage, or a disk that it could not read, until the next start.";
    page.gauge("carillon_store_damaged", help, u64::from(health.may_be_damaged));
    let help = "How long the commit of the store that is under way has taken so far; 0 while there is none.";
    let committing = health.committing.unwrap_or_default().as_secs_f64();
    page.gauge("carillon_store_committing_seconds", help, committing);
    page.counter("carillon_store_commits_total", "Commits of the store.", store.commits);
    let help = "Writes to the store; several that wait together share a commit.";
    page.counter("carillon_store_writes_total", help, store.writes);
    let help = "Time that a commit of the store took to be on disk.";
    one(page, "carillon_store_commit_duration_seconds", help, &store.commit);
    page.gauge("carillon_store_size_bytes", "Size of the database in bytes.", store.bytes);
}

fn named(module: &ModuleFigures, key: &str, value: &str) -> Labels {
    labels(&[("module", &*module.name), (key, value)])
}

/// The figures of modules, where any is active.
fn modules(page: &mut Page, status: &Status) {
    let modules = &status.modules;
    let by = |of: fn(&ModuleFigures) -> &Reasons, key| {
        let samples = modules.iter().flat_map(move |module| {
            of(module).iter().map(move |(word, count)| (named(module, key, word), count))
        });
        samples.collect::<Vec<_>>()
    };
    let help = "Decisions of modules that are active, by verdict.";
    page.family("carillon_module_verdicts_total", "counter", help, by(|module| &module.verdicts, "verdict"));
    let help = "Calls of modules that are active without a verdict, by the reason.";
    page.family("carillon_module_failures_total", "counter", help, by(|module| &module.failures, "reason"));
    let one = |module: &ModuleFigures| labels(&[("module", &*module.name)]);
    let help = "Fuel that modules used: about one unit per instruction.";
    let samples = modules.iter().map(|module| (one(module), module.fuel));
    page.family("carillon_module_fuel_total", "counter", help, samples);
    let help = "Which version of a module decides: 0 the activated one, 1 the version before, which a shard went back to, 2 none.";
    let samples = modules.iter().map(|module| (one(module), module.standing as u8));
    page.family("carillon_module_standing", "gauge", help, samples);
    let help = "Calls of versions in shadow, by whether they agreed with the version that decides.";
    let shadow = modules.iter().flat_map(|module| {
        [("same", module.same), ("different", module.different)]
            .map(|(said, n)| (named(module, "said", said), n))
    });
    page.family("carillon_module_shadow_total", "counter", help, shadow.filter(|(_, count)| *count > 0));
    let help = "The counters that modules keep themselves, by their numbers.";
    let own = modules.iter().flat_map(|module| {
        let numbered = module.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        numbered.map(move |(number, count)| (named(module, "counter", &number.to_string()), *count))
    });
    page.family("carillon_module_count_total", "counter", help, own);
}

/// The figures of the node as a push service.
fn web_push(results: [(&'static str, u64); 5]) -> String {
    let mut page = Page::default();
    let help = "Pushes to endpoints of this node as a push service: `taken`, to endpoints that are `gone`, by senders who are `unauthorized`, \
                `too_many` for the account or the domain, or `refused` otherwise.";
    page.counters("carillon_web_push_messages_total", help, "result", results);
    page.into_text()
}

/// The figures of pushes.
fn pushes(pushes: crate::push::Figures) -> String {
    let mut page = Page::default();
    let help = "Pushes to apps: `taken` by the push service, `refused` for good, `failed`, or answered that the app is `gone`.";
    page.counters("carillon_push_requests_total", help, "result", pushes.pushes);
    let help = "Pushes that were put off without a request, because their push service fails or has no room.";
    page.counter("carillon_push_postponed_total", help, pushes.postponed);
    let help = "Questions to the store whether a push is due.";
    page.counter("carillon_push_looks_total", help, pushes.looks);
    page.gauge("carillon_push_held", "Pushes that this node has claimed.", pushes.waiting);
    let help = "Push services that get nothing because they fail.";
    page.gauge("carillon_push_services_closed", help, pushes.closed);
    page.into_text()
}

fn webhooks(page: &mut Page, webhooks: &Figures) {
    let help =
        "Requests to webhooks: `taken` by the receiver, `refused`, `failed`, or answered that it is `gone`.";
    page.counters("carillon_webhook_requests_total", help, "result", webhooks.requests);
    page.counter("carillon_webhook_events_total", "Events that receivers of webhooks took.", webhooks.events);
    let help = "Events that became dead letters because the receiver of a webhook did not take them.";
    page.counter("carillon_webhook_dead_letters_total", help, webhooks.letters);
    let help = "Events that the webhook that is the furthest behind has before it.";
    page.gauge("carillon_webhook_behind_events", help, webhooks.behind);
}

fn event_log(page: &mut Page, log: &EventLogStatus) {
    page.counter("carillon_event_log_lines_total", "Lines written to the event log.", log.lines);
    page.counter("carillon_event_log_bytes_total", "Bytes written to the event log.", log.bytes);
    let help = "Bytes of events that were written to a temporary file first because the event log's writer was behind.";
    page.counter("carillon_event_log_spilled_bytes_total", help, log.spilled_bytes);
    let help = "Memory of events that are not yet written to the event log, in bytes.";
    page.gauge("carillon_event_log_held_bytes", help, log.held_bytes);
    let help = "Events that are missing in the event log because memory was full and the disk took none.";
    page.counter("carillon_event_log_dropped_total", help, log.dropped);
    let help = "Writes of the event log that failed and were tried again.";
    page.counter("carillon_event_log_failures_total", help, log.failures);
}

fn http(page: &mut Page, requests: &BTreeMap<Endpoint, Answered>) {
    let pairs = |endpoint: &Endpoint| labels(&[("route", &endpoint.route), ("method", endpoint.method)]);
    let counts = requests.iter().flat_map(|(endpoint, answered)| {
        answered.by_status.iter().map(move |(status, count)| {
            (format!("{},{}", pairs(endpoint), labels(&[("status", &status.to_string())])), *count)
        })
    });
    let help = "HTTP requests answered, by route, method and status.";
    page.family("carillon_http_requests_total", "counter", help, counts);
    let took = requests.iter().map(|(endpoint, answered)| (pairs(endpoint), Histogram::from(&answered.took)));
    let help = "Time from the head of an HTTP request to the beginning of its response, by route and method.";
    page.histograms("carillon_http_request_duration_seconds", help, took);
}

/// A histogram without labels.
fn one<'a, T>(page: &mut Page, name: &str, help: &str, figures: &'a T)
where
    Histogram: From<&'a T>,
{
    page.histograms(name, help, [(Labels::new(), Histogram::from(figures))]);
}

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The revision of the source; whoever builds the server says it.
const REVISION: &str = match option_env!("CARILLON_REVISION") {
    Some(revision) => revision,
    None => "",
};
/// The label of all domains that have none of their own. No domain has a name like this.
const OTHER_DOMAINS: &str = "(other)";

#[cfg(test)]
mod tests;
