//! A page with everything on it is read as Prometheus reads it.

use super::*;
use axum::http::StatusCode;
use carillon_core::model::{Epoch, NodeId, UnixMs};
use carillon_core::ports::Subject;
use carillon_core::ports::bus::{BusFigures, Traffic};
use carillon_core::shard::{ModuleStanding, RoomFigures};
use carillon_server::metrics::DomainFigures;
use carillon_server::{CellView, HomeMoves, MemberView, Standing};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A page on which no family is without a sample.
fn full() -> String {
    let mut status = Status {
        uptime_ms: 1500,
        restored: 12,
        common_overflows: 6,
        out_queue_bytes: 4321,
        not_restored: 2,
        refusals: vec![("node", 1)],
        certificate_expires: Some(UnixMs(1_900_000_000_000)),
        events: Some(EventLogStatus { lines: 7, ..EventLogStatus::default() }),
        ..Status::default()
    };
    status.stream_errors.count("conflict");
    status.stream_errors.count("conflict");
    status.light_errors.count("slow-reader");
    status.sessions_ended.count("lost");
    status.stanzas_taken.count("presence");
    status.stanzas_held.count("backlog");
    status.login_failures.count("not-authorized");
    status.notifications_ended.count("queue-full");
    [3, 70, 4000].into_iter().for_each(|ms| status.delivery.record(ms));
    status.login.record(12);
    status.acknowledgement.record(90);
    status.given_up = 3;
    status.broadcasts_given = 8;
    status.matches.ended.count("finished");
    status.matches.errors.count("idle");
    status.matches.module_failures.count("trap");
    status.rooms = rooms();
    status.store.commit.record(Duration::from_micros(700));
    let mut counters = DomainCounters { sessions: 5, sends_delayed: 4, ..DomainCounters::default() };
    counters.refused.count(DomainQuota::Topics);
    status.domains = vec![
        DomainFigures { name: Some("example.org".into()), counters },
        DomainFigures { name: None, counters: DomainCounters::default() },
    ];
    status.modules = vec![module()];
    let requests = requests::Requests::default();
    let endpoint = Endpoint { route: "/v1/topics/{topic}".to_owned(), method: "GET" };
    requests.add(endpoint, StatusCode::OK, Duration::from_millis(3));
    let health =
        StoreHealth { fails: true, committing: Some(Duration::from_millis(2500)), ..StoreHealth::default() };
    let webhooks = Figures {
        requests: [("taken", 5), ("refused", 1), ("failed", 2), ("gone", 0)],
        events: 9,
        letters: 1,
        behind: 3,
    };
    let figures = crate::links::Figures::default();
    figures.followed.fetch_add(4, Ordering::Relaxed);
    let files = crate::upload::Figures::default();
    files.uploaded.fetch_add(2, Ordering::Relaxed);
    files.uploaded_bytes.fetch_add(77, Ordering::Relaxed);
    let lane = StoreLane { waiting: 5, waiting_bytes: 4096, settled: 2, ..StoreLane::default() };
    (status.relayed, status.carried, status.unsettled, status.unsettled_bytes) = (3, 2, 1, 120);
    (status.log.writes, status.log.sessions, status.log.adopted, status.log.not_adopted) = (30, 31, 32, 33);
    status.log.away = 34;
    text(&status, health, true, &webhooks, &requests.answered())
        + &in_a_cell(&status)
        + &lanes(&[StoreLane::default(), lane])
        + &links(&figures, 512)
        + &uploads(&files)
        + &web_push([("taken", 8), ("gone", 2), ("unauthorized", 0), ("too_many", 0), ("refused", 0)])
        + &pushes(crate::push::Figures {
            postponed: 6,
            looks: 3,
            closed: 1,
            ..crate::push::Figures::default()
        })
}

fn module() -> ModuleFigures {
    let mut module = ModuleFigures { name: "filter".into(), ..ModuleFigures::default() };
    module.verdicts.count("reject");
    module.failures.count("trap");
    (module.fuel, module.standing, module.different, module.counts[3]) =
        (900, ModuleStanding::RolledBack, 5, 6);
    module
}

fn rooms() -> RoomFigures {
    let mut rooms = RoomFigures { occupants: 14, messages: 15, ..RoomFigures::default() };
    rooms.removed.count("kicked");
    rooms.refused.count("forbidden");
    rooms
}

/// A cell of two, one of which was not heard for five seconds, and a dead one.
fn in_a_cell(status: &Status) -> String {
    let now = Instant::now() + Duration::from_secs(60);
    let ago = |seconds| now - Duration::from_secs(seconds);
    let member = |node, name: &str, standing, heard| MemberView {
        node: NodeId(node),
        name: name.into(),
        standing,
        heard: Some(ago(heard)),
    };
    let members = vec![
        member(1, "a", Standing::Lives, 1),
        member(2, "b", Standing::Lives, 5),
        member(3, "c", Standing::Dead, 50),
    ];
    let view = CellView { own: NodeId(1), fence: None, read: ago(2), members };
    let other = (Epoch(2), Subject::Node(Epoch(1)));
    let bus = BusFigures {
        is_connected: true,
        waiting_bytes: 11,
        dropped: 12,
        gaps: [(other, 4), ((Epoch(2), Subject::All), 5)].into(),
        posted: [(Subject::Node(Epoch(2)), Traffic { records: 6, bytes: 600 })].into(),
        heard: [(Epoch(2), Traffic { records: 7, bytes: 700 })].into(),
    };
    let homes = [(NodeId(1), 200), (NodeId(2), 56)].into();
    let moves = HomeMoves { came: 8, went: 9 };
    cell::Cell { view, bus, homes, moves }.text(status, now)
}

#[test]
fn figures_of_pushes_are_where_they_belong() {
    let page = full();
    for line in [
        "carillon_push_postponed_total 6",
        "carillon_push_looks_total 3",
        "carillon_push_services_closed 1",
        "carillon_web_push_messages_total{result=\"taken\"} 8",
    ] {
        assert!(page.lines().any(|on_page| on_page == line), "{line}");
    }
}

#[test]
fn figures_of_modules_are_where_they_belong() {
    let page = full();
    for line in [
        "carillon_module_verdicts_total{module=\"filter\",verdict=\"reject\"} 1",
        "carillon_module_failures_total{module=\"filter\",reason=\"trap\"} 1",
        "carillon_module_fuel_total{module=\"filter\"} 900",
        "carillon_module_standing{module=\"filter\"} 1",
        "carillon_module_shadow_total{module=\"filter\",said=\"different\"} 5",
        "carillon_module_count_total{module=\"filter\",counter=\"3\"} 6",
    ] {
        assert!(page.lines().any(|found| found == line), "{line} is not in\n{page}");
    }
}

/// These lines are on a page.
fn has(page: &str, lines: &[&str]) {
    for line in lines {
        assert!(page.lines().any(|there| there == *line), "{line} is missing in\n{page}");
    }
}

#[test]
fn figures_of_a_cell_are_where_they_belong() {
    has(
        &full(),
        &[
            "carillon_cell_nodes{state=\"alive\"} 1",
            "carillon_cell_nodes{state=\"silent\"} 1",
            "carillon_cell_nodes{state=\"dead\"} 1",
            "carillon_cell_beat_age_seconds{node=\"b\"} 5",
            "carillon_cell_fenced 0",
            "carillon_cell_read_age_seconds 2",
            "carillon_cell_partitions{node=\"a\"} 200",
            "carillon_cell_partitions_moved_total{way=\"went\"} 9",
            "carillon_cell_connections{side=\"relayed\"} 3",
            "carillon_cell_connections{side=\"carried\"} 2",
            "carillon_cell_unsettled 1",
            "carillon_cell_unsettled_bytes 120",
            "carillon_cell_session_log_writes_total 30",
            "carillon_cell_session_log_sessions_total 31",
            "carillon_cell_session_log_away 34",
            "carillon_cell_sessions_left_total{outcome=\"adopted\"} 32",
            "carillon_cell_sessions_left_total{outcome=\"lost\"} 33",
            "carillon_cell_bus_connected 1",
            "carillon_cell_bus_waiting_bytes 11",
            "carillon_cell_bus_dropped_total 12",
            "carillon_cell_gaps_total{node=\"b\",subject=\"node\"} 4",
            "carillon_cell_gaps_total{node=\"b\",subject=\"all\"} 5",
            "carillon_cell_posted_records_total{node=\"b\"} 6",
            "carillon_cell_posted_bytes_total{node=\"b\"} 600",
            "carillon_cell_taken_records_total{node=\"b\"} 7",
            "carillon_cell_taken_bytes_total{node=\"b\"} 700",
        ],
    );
}

#[test]
fn figures_are_where_they_belong() {
    has(
        &full(),
        &[
            "carillon_uptime_seconds 1.5",
            "carillon_link_requests_total{result=\"followed\"} 4",
            "carillon_link_cache_bytes 512",
            "carillon_upload_requests_total{result=\"uploaded\"} 2",
            "carillon_uploaded_bytes_total 77",
            "carillon_common_overflows_total 6",
            "carillon_out_queue_bytes 4321",
            "carillon_stream_errors_total{condition=\"conflict\"} 2",
            "carillon_sessions_ended_total{reason=\"lost\"} 1",
            "carillon_stanzas_taken_total{reason=\"presence\"} 1",
            "carillon_stanzas_held_total{reason=\"backlog\"} 1",
            "carillon_login_failures_total{reason=\"not-authorized\"} 1",
            "carillon_notifications_ended_total{reason=\"queue-full\"} 1",
            "carillon_sessions_restored_total 12",
            "carillon_sessions_not_restored_total 2",
            "carillon_delivery_duration_seconds_bucket{le=\"0.005\"} 1",
            "carillon_delivery_duration_seconds_bucket{le=\"0.08\"} 2",
            "carillon_delivery_duration_seconds_bucket{le=\"+Inf\"} 3",
            "carillon_delivery_duration_seconds_sum 4.073",
            "carillon_delivery_duration_seconds_count 3",
            "carillon_store_commit_duration_seconds_bucket{le=\"0.001\"} 1",
            "carillon_store_given_up_total 3",
            "carillon_store_failing 1",
            "carillon_store_damaged 0",
            "carillon_store_committing_seconds 2.5",
            "carillon_store_lane_waiting{lane=\"1\"} 5",
            "carillon_store_lane_waiting_bytes{lane=\"1\"} 4096",
            "carillon_store_lane_settled_total{lane=\"1\"} 2",
            "carillon_domain_sessions{domain=\"example.org\"} 5",
            "carillon_domain_sessions{domain=\"(other)\"} 0",
            "carillon_domain_sends_delayed_total{domain=\"example.org\"} 4",
            "carillon_domain_refused_total{domain=\"example.org\",quota=\"topics\"} 1",
            "carillon_domain_refused_total{domain=\"(other)\",quota=\"bytes-out\"} 0",
            "carillon_http_requests_total{route=\"/v1/topics/{topic}\",method=\"GET\",status=\"200\"} 1",
            "carillon_http_request_duration_seconds_bucket{route=\"/v1/topics/{topic}\",method=\"GET\",le=\"0.005\"} 1",
            "carillon_tls_certificate_expiry_timestamp_seconds 1900000000",
            "carillon_event_log_lines_total 7",
            "carillon_webhook_requests_total{result=\"taken\"} 5",
            "carillon_webhook_requests_total{result=\"failed\"} 2",
            "carillon_webhook_events_total 9",
            "carillon_webhook_dead_letters_total 1",
            "carillon_webhook_behind_events 3",
        ],
    );
}

#[test]
fn figures_of_rooms_are_told() {
    let page = full();
    for line in [
        "carillon_rooms 0",
        "carillon_room_occupants 14",
        "carillon_room_messages_total 15",
        "carillon_room_removals_total{reason=\"kicked\"} 1",
        "carillon_room_refusals_total{condition=\"forbidden\"} 1",
    ] {
        assert!(page.lines().any(|there| there == line), "{line} is missing");
    }
}

#[test]
fn the_build_is_told() {
    let page = full();
    let build = page.lines().find(|line| line.starts_with("carillon_build_info{")).unwrap();
    assert!(build.contains(concat!("version=\"", env!("CARGO_PKG_VERSION"), "\"")), "{build}");
    assert!(build.contains("rustc=\"1."), "{build}");
}

#[test]
fn every_family_has_one_help_that_is_a_sentence_one_type_and_a_sample() {
    let page = full();
    let (mut family, mut samples, mut seen) = (String::new(), 1, BTreeSet::new());
    for line in page.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            assert!(samples > 0, "{family} has no sample");
            let (name, words) = help.split_once(' ').unwrap();
            assert!(
                words.ends_with('.') && words.starts_with(|c: char| c.is_uppercase() || c == '1'),
                "{line}"
            );
            // What stands alone does not point at its neighbours.
            let words = format!(" {} ", words.to_lowercase());
            assert!(
                ![" the same ", " these ", " of those ", " so. "].iter().any(|w| words.contains(w)),
                "{line}"
            );
            assert!(seen.insert(name.to_owned()), "{name} stands there twice");
            (family, samples) = (name.to_owned(), 0);
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            assert!(kind.starts_with(&format!("{family} ")), "{line}");
        } else {
            let (name, value) = line.rsplit_once(' ').unwrap();
            assert!(name.starts_with(&family) && value.parse::<f64>().is_ok(), "{line}");
            samples += 1;
        }
    }
    assert!(samples > 0, "{family} has no sample");
}

#[test]
fn promtool_has_nothing_to_say() {
    let spawned = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    // It is installed for the interop tests, where the page of a real node is checked; here where it is there.
    let Ok(mut promtool) = spawned else { return };
    promtool.stdin.take().expect("it is piped").write_all(full().as_bytes()).expect("promtool reads it");
    let output = promtool.wait_with_output().expect("promtool ends");
    let said =
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.is_empty(), "{said}");
}
