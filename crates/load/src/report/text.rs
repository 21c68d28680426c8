//! A report as text, for terminals.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::SystemTime;

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::figures::Cost;
use super::model::{PhaseReport, PhaseState, Report};
use super::percentiles::Percentiles;
use super::upgrade::UpgradeReport;

impl Report {
    /// What a reader wants to know first, in a page of a terminal.
    pub fn summary(&self) -> String {
        let mut out = String::new();
        let (verdict, _, reasons) = self.verdict();
        line(&mut out, "verdict", verdict);
        for reason in &reasons {
            line(&mut out, "", reason);
        }
        for checked in self.assertions.iter().filter(|checked| checked.holds) {
            line(&mut out, "", &format!("{} holds", checked.assertion));
        }
        let Self { scenario, players, target, .. } = self;
        let transport = target.transport_name();
        line(
            &mut out,
            "scenario",
            &format!("{}: {players} players, {transport}, at {}", scenario.name, target.address),
        );
        line(&mut out, "players", &format!("{} successful, {} failed", self.successful, self.failed));
        for phase in self.reached() {
            out.push('\n');
            describe(phase, &mut out);
        }
        out.push('\n');
        for (name, words) in self.upgrade.iter().flat_map(UpgradeReport::lines) {
            line(&mut out, name, &words);
        }
        for (kind, count) in &self.errors {
            line(&mut out, "error", &format!("{count} × {kind}"));
        }
        for note in &self.notes {
            line(&mut out, "note", note);
        }
        for worker in self.workers.iter().filter(|_| self.workers.len() > 1) {
            let mib = worker.pss_bytes as f64 / MIB;
            let words = format!(
                "{}: {} players, {:.1} s of CPU, {mib:.0} MiB",
                worker.name, worker.players, worker.cpu_seconds
            );
            line(&mut out, "worker", &words);
        }
        line(&mut out, "took", &format!("{:.1} s", self.seconds));
        out
    }
}

impl super::TargetReport {
    /// The transport in the field's words.
    pub(super) fn transport_name(&self) -> &'static str {
        use crate::plan::TransportKind;
        match self.transport {
            TransportKind::Starttls => "TCP with STARTTLS",
            TransportKind::Tls => "direct TLS",
            TransportKind::Ws => "WebSocket without TLS",
            TransportKind::Wss => "WebSocket over TLS",
            TransportKind::Plain => "TCP without TLS",
            TransportKind::Quic => "QUIC",
        }
    }
}

impl PhaseState {
    /// The word for it in a report.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Ahead => "not reached",
            Self::Running => "under way",
            Self::Done => "done",
            Self::TimedOut => "timed out",
            Self::Skipped => "skipped",
            Self::GivenUp => "given up",
        }
    }
}

fn describe(phase: &PhaseReport, out: &mut String) {
    let state = if phase.state == PhaseState::Done { "" } else { phase.state.words() };
    let comma = if state.is_empty() { "" } else { ", " };
    line(out, &phase.name, &format!("{:.2} s, {} online{comma}{state}", phase.seconds, phase.online));
    for (name, count) in &phase.counts {
        let rate = phase.rates.get(name).copied().unwrap_or_default();
        line(out, &format!("  {name}"), &format!("{count}, {rate:.1} per second"));
    }
    for (name, percentiles) in &phase.metrics {
        line(out, &format!("  {name}"), &latencies(percentiles));
    }
    for (who, cost) in [("server", phase.server.as_ref()), ("tester", Some(&phase.tester))] {
        for (what, words) in cost.map(costs).unwrap_or_default() {
            line(out, &format!("  {who} {what}"), &words);
        }
    }
}

fn line(out: &mut String, name: &str, words: &str) {
    // Writing to a string does not fail.
    let _ = writeln!(out, "{name:<22} {words}");
}

fn latencies(percentiles: &Percentiles) -> String {
    format!(
        "p50 {:.2}, p90 {:.2}, p99 {:.2}, p99.9 {:.2}, max {:.2} ms of {}",
        percentiles.percentile50,
        percentiles.percentile90,
        percentiles.percentile99,
        percentiles.percentile99_9,
        percentiles.max,
        percentiles.count
    )
}

/// The figures of a cost, each with its name and unit.
pub(super) fn costs(cost: &Cost) -> Vec<(&'static str, String)> {
    let mut all = vec![("CPU", format!("{:.2} s, {:.2} cores", cost.cpu_seconds, cost.cores))];
    let mut add = |name, value: Option<f64>, scale: f64, unit: &str| {
        if let Some(value) = value {
            all.push((name, format!("{:.2} {unit}", value / scale)));
        }
    };
    add("CPU", cost.cpu_ms_per_login, 1.0, "ms per login");
    add("CPU", cost.cpu_ms_per_resumption, 1.0, "ms per resumption, everything else included");
    add("CPU", cost.cpu_seconds_per_million_deliveries, 1.0, "s per million deliveries");
    let presences = "s per million presences, everything else included";
    add("CPU", cost.cpu_seconds_per_million_presences, 1.0, presences);
    add("CPU", cost.cpu_seconds_per_million_sent, 1.0, "s per million sent");
    add("idle CPU", cost.idle_percent_of_core, 1.0, "% of a core");
    add("memory", cost.memory_bytes.map(|bytes| bytes as f64), MIB, "MiB");
    add("memory", cost.memory_bytes_per_connection, KIB, "KiB per connection");
    add("kernel", cost.kernel_bytes_per_connection, KIB, "KiB per connection, both ends of the machine");
    add("kernel", cost.kernel_bytes_per_connection_server_end, KIB, "KiB per connection, server's end");
    add("kernel queues", cost.kernel_queued_bytes_per_connection, KIB, "KiB per connection");
    all
}

/// A moment as RFC 3339 in UTC, to the second.
pub(super) fn rfc3339(time: SystemTime) -> String {
    let at = OffsetDateTime::from(time).truncate_to_second();
    at.format(&Rfc3339).expect("the clock is before the year 10,000")
}

/// Names and counts in a row, the largest first.
pub(super) fn in_order(counts: &BTreeMap<String, u64>) -> Vec<(&String, u64)> {
    let mut all: Vec<_> = counts.iter().map(|(name, count)| (name, *count)).collect();
    all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    all
}

const KIB: f64 = 1024.0;
const MIB: f64 = 1024.0 * 1024.0;
