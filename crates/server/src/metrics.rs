//! The node's figures, summed over its shards.

use crate::listen::Refusal;
use carillon_core::node::Counters;
use std::sync::{Arc, Mutex, PoisonError};

/// A snapshot of the node's figures. Counters count since the start; nothing is ever reset.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    /// Milliseconds since the node was started.
    pub uptime_ms: u64,
    /// Connections open now, logged in or not.
    pub connections: u64,
    /// Sessions bound now.
    pub sessions: u64,
    /// Sessions with available presence now.
    pub available: u64,
    /// Sessions of the light protocol now.
    pub light_sessions: u64,
    /// Connections accepted.
    pub accepted: u64,
    /// Connections refused at a bound, before any handshake.
    pub refused: u64,
    /// The same by reason.
    pub refusals: Vec<(&'static str, u64)>,
    /// Connections whose handshake is not complete now.
    pub handshakes_in_flight: u64,
    /// TLS handshakes completed.
    pub handshakes: u64,
    /// Logins that succeeded.
    pub logins: u64,
    /// Of these, those that asked no store.
    pub logins_remembered: u64,
    /// Logins that failed.
    pub login_failures: u64,
    /// Logins a second over the last ten seconds.
    pub logins_per_second: f64,
    /// Stanzas received from clients.
    pub stanzas_in: u64,
    /// Stanzas sent to clients.
    pub stanzas_out: u64,
    /// Bytes received, after decryption.
    pub bytes_in: u64,
    /// Bytes sent, before encryption.
    pub bytes_out: u64,
    /// Parts of the stream given to the kernel, each for one client.
    pub sends: u64,
    /// System calls that these took: fewer, where io_uring is allowed.
    pub send_calls: u64,
    /// Topic items and notifications given to connections.
    pub deliveries: u64,
    /// The same a second over the last ten seconds.
    pub deliveries_per_second: f64,
    /// Median of the time from acceptance to the connection, in milliseconds, over the last minute.
    pub delivery_p50_ms: f64,
    /// 99th percentile of the same.
    pub delivery_p99_ms: f64,
    /// Notifications accepted.
    pub notifications_accepted: u64,
    /// Notifications acknowledged.
    pub notifications_acknowledged: u64,
    /// Notifications expired, replaced, cancelled or dropped.
    pub notifications_ended: u64,
    /// Items published.
    pub published: u64,
    /// What was not published because the topic's followers could not be given it as fast.
    pub too_fast: u64,
    /// Deliveries of topics that wait now.
    pub waiting_deliveries: u64,
    /// Memory of what waits so.
    pub waiting_bytes: u64,
    /// Stream errors sent, by condition.
    pub stream_errors: Vec<(&'static str, u64)>,
    /// Errors sent over the light protocol, by code.
    pub light_errors: Vec<(&'static str, u64)>,
    /// Slow readers disconnected because their queue was full.
    pub overflows: u64,
    /// Resident memory of the process in bytes.
    pub resident_bytes: u64,
    /// The store's figures.
    pub store: carillon_core::ports::StoreStats,
    /// The event log's figures; none when there is no event log.
    pub events: Option<crate::events::EventLogStatus>,
    /// Shards of the node.
    pub shards: u16,
}

/// What a shard counts besides its core: sockets and TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) accepted: u64,
    /// By [`Refusal::index`].
    pub(crate) refusals: [u64; Refusal::ALL.len()],
    pub(crate) handshakes: u64,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
    pub(crate) sends: u64,
    pub(crate) send_calls: u64,
    pub(crate) overflows: u64,
}

/// The figures of a shard as last published.
#[derive(Default)]
pub(crate) struct Board(Mutex<Snapshot>);

/// The figures of a shard, or of several, at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot {
    pub(crate) tally: Tally,
    pub(crate) core: Counters,
}

impl Board {
    /// Publishes figures, unless somebody reads them at this moment: a shard does not wait. Whether it did.
    pub(crate) fn publish(&self, tally: &Tally, core: &Counters) -> bool {
        let Ok(mut snapshot) = self.0.try_lock() else { return false };
        *snapshot = Snapshot { tally: *tally, core: core.clone() };
        true
    }

    /// Publishes figures that somebody waits for.
    pub(crate) fn publish_asked(&self, tally: &Tally, core: &Counters) {
        let snapshot = Snapshot { tally: *tally, core: core.clone() };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = snapshot;
    }

    /// The figures as last published.
    pub(crate) fn read(&self) -> Snapshot {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Snapshot {
    /// The sum over the shards.
    pub(crate) fn sum<'a>(boards: impl IntoIterator<Item = &'a Arc<Board>>) -> Snapshot {
        boards.into_iter().map(|board| board.read()).fold(Snapshot::default(), Snapshot::plus)
    }

    fn plus(mut self, other: Snapshot) -> Snapshot {
        let (a, b) = (&mut self.tally, &other.tally);
        a.accepted += b.accepted;
        a.refusals.iter_mut().zip(b.refusals).for_each(|(a, b)| *a += b);
        a.handshakes += b.handshakes;
        a.bytes_in += b.bytes_in;
        a.bytes_out += b.bytes_out;
        a.sends += b.sends;
        a.send_calls += b.send_calls;
        a.overflows += b.overflows;
        let (a, b) = (&mut self.core, other.core);
        a.connections += b.connections;
        a.sessions += b.sessions;
        a.available += b.available;
        a.light += b.light;
        a.logins += b.logins;
        a.logins_remembered += b.logins_remembered;
        a.login_failures += b.login_failures;
        a.stanzas_in += b.stanzas_in;
        a.stanzas_out += b.stanzas_out;
        a.deliveries += b.deliveries;
        a.notifications_accepted += b.notifications_accepted;
        a.notifications_acknowledged += b.notifications_acknowledged;
        a.notifications_ended += b.notifications_ended;
        a.published += b.published;
        a.too_fast += b.too_fast;
        a.backlog.deliveries += b.backlog.deliveries;
        a.backlog.bytes += b.backlog.bytes;
        a.faults += b.faults;
        add_each(&mut a.stream_errors, b.stream_errors);
        add_each(&mut a.light_errors, b.light_errors);
        a.latency.add(&b.latency);
        self
    }

    /// The part of the status that is counted by shards.
    pub(crate) fn status(self) -> Status {
        let Snapshot { tally, core } = self;
        Status {
            sessions: core.sessions,
            available: core.available,
            light_sessions: core.light,
            accepted: tally.accepted,
            refused: tally.refusals.iter().sum(),
            refusals: Refusal::ALL.map(|refusal| (refusal.label(), tally.refusals[refusal.index()])).into(),
            handshakes: tally.handshakes,
            logins: core.logins,
            logins_remembered: core.logins_remembered,
            login_failures: core.login_failures,
            stanzas_in: core.stanzas_in,
            stanzas_out: core.stanzas_out,
            bytes_in: tally.bytes_in,
            bytes_out: tally.bytes_out,
            sends: tally.sends,
            send_calls: tally.send_calls,
            deliveries: core.deliveries,
            notifications_accepted: core.notifications_accepted,
            notifications_acknowledged: core.notifications_acknowledged,
            notifications_ended: core.notifications_ended,
            published: core.published,
            too_fast: core.too_fast,
            waiting_deliveries: core.backlog.deliveries as u64,
            waiting_bytes: core.backlog.bytes as u64,
            stream_errors: core.stream_errors.iter().map(|(c, n)| (c.as_str(), *n)).collect(),
            light_errors: core.light_errors,
            overflows: tally.overflows,
            ..Status::default()
        }
    }
}

/// Adds counts by label.
fn add_each<L: PartialEq>(sums: &mut Vec<(L, u64)>, more: Vec<(L, u64)>) {
    for (label, count) in more {
        match sums.iter_mut().find(|(l, _)| *l == label) {
            Some((_, sum)) => *sum += count,
            None => sums.push((label, count)),
        }
    }
}

/// Resident memory of this process in bytes; 0 where the system does not tell.
pub(crate) fn resident_bytes() -> u64 {
    // Unlike `statm` this needs no page size.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
