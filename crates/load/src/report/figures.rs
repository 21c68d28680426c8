//! The cost of the server, or of the workers, between two samples.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::percentiles::thousandths;
use crate::measure::{KernelMemory, Reading};

/// CPU time and memory, in total and per event. A figure without meaning is missing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Cost {
    /// CPU time, in seconds.
    pub cpu_seconds: f64,
    /// Cores kept busy, on average.
    pub cores: f64,
    /// CPU time per login, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_ms_per_login: Option<f64>,
    /// CPU time per resumed stream, in milliseconds; what else happened in the phase included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_ms_per_resumption: Option<f64>,
    /// CPU time per million deliveries, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_seconds_per_million_deliveries: Option<f64>,
    /// CPU time per million presences of contacts that were received, in seconds; logins and rosters of the phase included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_seconds_per_million_presences: Option<f64>,
    /// CPU time per million messages, notifications or items sent, in seconds, where none of them was delivered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_seconds_per_million_sent: Option<f64>,
    /// CPU time of idling, in percent of one core.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_percent_of_core: Option<f64>,
    /// Memory at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Growth of memory since before the first login, per connection; missing where it shrank.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes_per_connection: Option<f64>,
    /// Growth of kernel objects since then, per connection, in the whole machine: sockets, descriptors, poll registrations.
    /// If the workers run on the server's machine, both ends of each connection count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_bytes_per_connection: Option<f64>,
    /// The server's end of that: half, because both ends are sockets of the same kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_bytes_per_connection_server_end: Option<f64>,
    /// Bytes queued in the machine's TCP sockets, per connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_queued_bytes_per_connection: Option<f64>,
}

/// CPU time and memory of the server, the workers and the kernel at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ResourceSample {
    /// The server, if it is measured.
    pub server: Option<Reading>,
    /// CPU time of all workers so far, in seconds.
    pub tester_cpu_s: f64,
    /// Memory of all workers.
    pub tester_bytes: u64,
    /// The kernel's memory, where the server runs on this machine.
    pub kernel: Option<KernelMemory>,
}

/// The events between two samples, to which the cost is related.
pub(super) struct Events<'a> {
    pub(super) counts: &'a BTreeMap<String, u64>,
    pub(super) seconds: f64,
    /// Whether all players were idle.
    pub(super) idle: bool,
    /// Connections at the end.
    pub(super) online: u32,
    /// Whether the workers run on this machine, so that their ends of the connections are in the kernel's figures, too.
    pub(super) both_ends: bool,
}

impl Cost {
    fn of_cpu(cpu_s: f64, events: &Events<'_>) -> Self {
        let cpu_s = cpu_s.max(0.0);
        let each = |name: &str, scale: f64| {
            let count = events.counts.get(name).copied().filter(|count| *count > 0)?;
            Some(thousandths(cpu_s * scale / count as f64))
        };
        let deliveries = each("deliveries", 1e6);
        // An item that reached thousands is not dear: the price is that of a delivery where there were any.
        let sent = each("sent", 1e6).filter(|_| deliveries.is_none());
        let seconds = events.seconds.max(0.001);
        Self {
            cpu_seconds: thousandths(cpu_s),
            cores: thousandths(cpu_s / seconds),
            cpu_ms_per_login: each("logins", 1e3).filter(|_| sent.is_none() && deliveries.is_none()),
            cpu_ms_per_resumption: each("streams_resumed", 1e3),
            cpu_seconds_per_million_deliveries: deliveries,
            cpu_seconds_per_million_presences: each("presences", 1e6),
            cpu_seconds_per_million_sent: sent,
            idle_percent_of_core: events.idle.then(|| thousandths(100.0 * cpu_s / seconds)),
            ..Self::default()
        }
    }

    /// What the server spent.
    pub(super) fn of_server(
        before: &ResourceSample,
        after: &ResourceSample,
        first: Option<&ResourceSample>,
        events: &Events<'_>,
    ) -> Option<Self> {
        let (was, is) = (before.server?, after.server?);
        let mut cost = Self::of_cpu(is.cpu_s - was.cpu_s, events);
        cost.memory_bytes = Some(is.memory_bytes);
        let Some(first) = first.filter(|_| events.online > 0) else { return Some(cost) };
        cost.memory_bytes_per_connection =
            first.server.and_then(|server| growth_each(is.memory_bytes, server.memory_bytes, events));
        if let (Some(kernel), Some(was)) = (after.kernel, first.kernel) {
            let slab = growth_each(kernel.slab_bytes, was.slab_bytes, events);
            cost.kernel_bytes_per_connection = slab;
            cost.kernel_bytes_per_connection_server_end =
                slab.map(|slab| if events.both_ends { thousandths(slab / 2.0) } else { slab });
            cost.kernel_queued_bytes_per_connection =
                growth_each(kernel.tcp_queued_bytes, was.tcp_queued_bytes, events);
        }
        Some(cost)
    }

    /// What the workers spent, together.
    pub(super) fn of_tester(
        before: &ResourceSample,
        after: &ResourceSample,
        first: Option<&ResourceSample>,
        events: &Events<'_>,
    ) -> Self {
        let mut cost = Self::of_cpu(after.tester_cpu_s - before.tester_cpu_s, events);
        cost.memory_bytes = Some(after.tester_bytes);
        if let Some(first) = first.filter(|_| events.online > 0) {
            cost.memory_bytes_per_connection = growth_each(after.tester_bytes, first.tester_bytes, events);
        }
        cost
    }
}

/// What came per connection; nothing where there is less than before, which says that something else gave memory back.
fn growth_each(now: u64, before: u64, events: &Events<'_>) -> Option<f64> {
    let grown = now.checked_sub(before)?;
    Some(thousandths(grown as f64 / f64::from(events.online)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spent_is_shared_out() {
        let counts = BTreeMap::from([("logins".to_owned(), 100)]);
        let events = Events { counts: &counts, seconds: 2.0, idle: false, online: 100, both_ends: true };
        let server = |cpu_s, memory_bytes| Some(Reading { cpu_s, memory_bytes });
        let kernel = |slab_bytes| Some(KernelMemory { tcp_queued_bytes: 0, slab_bytes });
        let first =
            ResourceSample { server: server(1.0, 1000), kernel: kernel(5000), ..ResourceSample::default() };
        let after = ResourceSample {
            server: server(1.5, 201_000),
            kernel: kernel(805_000),
            ..ResourceSample::default()
        };
        let cost = Cost::of_server(&first, &after, Some(&first), &events).expect("in sight");
        assert_eq!(cost.cpu_ms_per_login, Some(5.0));
        assert_eq!(cost.cores, 0.25);
        assert_eq!(cost.memory_bytes_per_connection, Some(2000.0));
        assert_eq!(cost.kernel_bytes_per_connection, Some(8000.0));
        assert_eq!(cost.kernel_bytes_per_connection_server_end, Some(4000.0));
        assert_eq!(cost.cpu_seconds_per_million_deliveries, None);
        let fewer =
            ResourceSample { server: server(1.5, 900), kernel: kernel(4000), ..ResourceSample::default() };
        let cost = Cost::of_server(&first, &fewer, Some(&first), &events).expect("in sight");
        assert_eq!((cost.memory_bytes_per_connection, cost.kernel_bytes_per_connection), (None, None));
        assert_eq!(Cost::of_server(&ResourceSample::default(), &after, None, &events), None);
    }
}
