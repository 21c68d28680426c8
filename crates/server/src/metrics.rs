//! The node's figures, summed over its shards.

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
    /// Connections accepted.
    pub accepted: u64,
    /// Connections refused at a bound, before any handshake.
    pub refused: u64,
    /// TLS handshakes completed.
    pub handshakes: u64,
    /// Logins that succeeded.
    pub logins: u64,
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
    /// Stream errors sent, by condition.
    pub stream_errors: Vec<(&'static str, u64)>,
    /// Slow readers disconnected because their queue was full.
    pub overflows: u64,
    /// Resident memory of the process in bytes.
    pub resident_bytes: u64,
    /// The store's figures.
    pub store: carillon_core::ports::StoreStats,
    /// Shards of the node.
    pub shards: u16,
}
