//! Every setting, declared once. `docs/book/configuration.md` is made from this.
//!
//! The key is what people write, the field is what the code reads; a group is what belongs together in the code.
//! Names of fields end in their unit.

use super::declare::{Reload, Setting, settings};
use super::kind::{Kind, bytes, count, ms, path, port, text};
use super::unit::{DAY, GIB, HOUR, KIB, MIB, MINUTE, SECOND};
use super::value::{Field, LogFormat, LogLevel, Profile, Wanted, Words};
use carillon_core::model::{Policy, PubsubCreate, SessionPolicy};
use carillon_core::sasl::Mechanism;
use carillon_server::Network;
use carillon_server::events::{Format, Kind as EventKind};
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

settings! {
    /// The node itself.
    node: Node {
        /// Domain that the node creates at its start if it does not exist. `carillon domain add` creates more at run
        /// time.
        "domain" domain: String = "localhost".to_owned(), text(1, 1023), Restart;
        /// Folder of the database, the admin key and the self-signed certificate. It is created if it does not exist.
        "data_dir" data_dir: PathBuf = PathBuf::from("./data"), path(1), Restart;
        /// Number of threads that hold sessions; 0 for one per CPU core.
        "shards" shards: u16 = 0, count(0, 1024, "shards"), Restart;
        /// Whether deliveries to many sessions are handed to the kernel in batches, by io_uring. Where the system
        /// forbids io_uring, as many containers do, each delivery is a system call of its own: slower, with the same
        /// result.
        "io_uring" io_uring: bool = true, Kind::Switch, Restart;
    }

    /// Sockets that clients connect to.
    listen: Listen {
        /// Host name that enrolled devices are told to connect to; empty for the name of their domain.
        "listen.host" host: String = String::new(), text(0, 1023), Restart;
        /// Addresses that clients connect to, IPv4 and IPv6. All interfaces: `["0.0.0.0", "::"]`.
        "listen.address" address: Vec<IpAddr> = vec![IpAddr::V4(Ipv4Addr::LOCALHOST)], Kind::Addresses, Restart;
        /// Connections per listener that may wait to be accepted; the kernel's `net.core.somaxconn` is an upper bound.
        "listen.backlog" backlog: u32 = 4096, count(1, 65_535, "connections"), Restart;
        /// Whether every shard has listeners of its own (`SO_REUSEPORT`); otherwise one shard accepts all connections.
        "listen.reuse_port" reuse_port: bool = true, Kind::Switch, Restart;
        /// Proxies in front of the WebSocket port, as addresses or networks such as `10.0.0.0/8`. Their `X-Forwarded-For` is
        /// the client's address; from any other address the field is ignored.
        "listen.trusted_proxies" trusted_proxies: Vec<Network> = Vec::new(), Kind::Networks, Restart;
        /// Whether small writes are sent at once (`TCP_NODELAY`).
        "listen.nodelay" nodelay: bool = true, Kind::Switch, Restart;
    }

    /// XMPP over TCP, secured by STARTTLS (RFC 6120).
    c2s: C2s {
        /// Whether clients can connect by XMPP over TCP with STARTTLS.
        "c2s.enabled" enabled: bool = true, Kind::Switch, Restart;
        /// Port of XMPP over TCP with STARTTLS; 0 for any free port.
        "c2s.port" port: u16 = 5222, port(), Restart;
    }

    /// XMPP over TLS from the first byte (XEP-0368).
    c2s_tls: C2sTls {
        /// Whether clients can connect by XMPP over TLS from the first byte.
        "c2s_tls.enabled" enabled: bool = true, Kind::Switch, Restart;
        /// Port of XMPP over TLS from the first byte; 0 for any free port.
        "c2s_tls.port" port: u16 = 5223, port(), Restart;
    }

    /// XMPP over WebSocket (RFC 7395).
    websocket: Websocket {
        /// Whether clients can connect by XMPP over WebSocket.
        "websocket.enabled" enabled: bool = true, Kind::Switch, Restart;
        /// Port of XMPP over WebSocket; 0 for any free port.
        "websocket.port" port: u16 = 5280, port(), Restart;
        /// Whether the WebSocket port speaks TLS (`wss:`). Without TLS, passwords are safe only behind a proxy that
        /// provides it.
        "websocket.tls" tls: bool = false, Kind::Switch, Restart;
        /// Path of the WebSocket endpoint.
        "websocket.path" path: String = "/xmpp-websocket".to_owned(), text(1, 1024), Restart;
        /// WebSocket URL that enrolled devices are told, such as that of a proxy; empty to derive it from host, port
        /// and path.
        "websocket.url" url: String = String::new(), text(0, 2048), Restart;
    }

    /// Topics for subscribers that speak no XMPP. They speak frames over a socket, as `docs/book/protocol.md` describes them,
    /// and prove nothing: only topics that are open to all are offered.
    light: Light {
        /// Port of the light protocol; 0 for any free port, `"off"` for none.
        "light.port" port: Option<u16> = None, Kind::PortOrOff, Restart;
        /// Whether the port of the light protocol speaks TLS from the first byte.
        "light.tls" tls: bool = false, Kind::Switch, Restart;
        /// Domain whose topics the light protocol offers; empty for the domain in `domain`.
        "light.domain" domain: String = String::new(), text(0, 1023), Restart;
        /// Topics that one connection of the light protocol may follow.
        "light.subscriptions" subscriptions: usize = 100, count(1, 10_000, "topics"), Live;
        /// Silence of a client of the light protocol after which its connection is closed: twice the interval at which
        /// clients send `PING`; 0 for never.
        "light.idle_timeout_ms" idle_timeout_ms: u64 = 2 * MINUTE, ms(0, DAY), Live;
    }

    /// The HTTP APIs, the metrics and the console.
    http: Http {
        /// Addresses of the HTTP APIs; an empty list for those of `listen.address`.
        "http.address" address: Vec<IpAddr> = Vec::new(), Kind::Addresses, Restart;
        /// Port of the HTTP APIs; 0 for any free port.
        "http.port" port: u16 = 8080, port(), Restart;
        /// Largest body of an HTTP request, except for bodies that are read as a stream.
        "http.body_bytes_max" body_bytes_max: usize = MIB as usize, bytes(64 * KIB, 64 * MIB), Restart;
        /// Memory that all request bodies larger than 16 KiB may take together; a request beyond it is refused with
        /// `Retry-After`.
        "http.bodies_bytes_max" bodies_bytes_max: usize = 64 * MIB as usize, bytes(MIB, 64 * GIB), Restart;
        /// Largest payload of a notification or an item that is sent over HTTP.
        "http.payload_bytes_max" payload_bytes_max: usize = 32 * KIB as usize, bytes(KIB, 16 * MIB), Restart;
        /// HTTP connections open at the same time; further ones wait to be accepted.
        "http.connections_max" connections_max: usize = 4096, count(1, 1_000_000, "connections"), Restart;
        /// HTTP event streams open at the same time.
        "http.streams_max" streams_max: usize = 64, count(0, 100_000, "streams"), Restart;
        /// Whether `/metrics` needs an API key with scope `admin`.
        "http.metrics_key" metrics_key: bool = false, Kind::Switch, Restart;
        /// Domains that have figures of their own in `/metrics`; all others together have the label `domain="(other)"`.
        "http.metrics_domains" metrics_domains: usize = 100, count(0, 10_000, "domains"), Restart;
    }

    /// What one client, and all clients together, may use.
    limits: Limits {
        /// Which defaults the limits have: `benchmark` lifts the limits on rates and counts, except those that are set
        /// to something other than their default.
        "limits.profile" profile: Profile = Profile::Default, Kind::Choice(Profile::WORDS), Live;
        /// Connections of clients open at the same time; 0 for as many as there are file descriptors, which bound them
        /// in any case.
        "limits.max_connections" max_connections: u32 =
            1_000_000, count(0, 100_000_000, "connections"), Live, benchmark 0;
        /// Connections from one address open at the same time; 0 for no limit.
        "limits.connections_per_address" connections_per_address: u32 =
            1000, count(0, 100_000_000, "connections"), Live, benchmark 0;
        /// New connections per second; further clients are told when to come back; 0 for no limit.
        "limits.connect_rate_per_second" connect_rate_per_second: u32 =
            10_000, count(0, 1_000_000, "connections"), Live, benchmark 0;
        /// Connections whose TLS handshake or WebSocket upgrade is not complete; further clients are told when to come
        /// back; 0 for no limit.
        "limits.handshakes_in_flight" handshakes_in_flight: u32 =
            8192, count(0, 1_000_000, "connections"), Live, benchmark 0;
        /// Largest stanza of a session (RFC 6120 §13.12 requires at least 10000 bytes).
        "limits.stanza_bytes" stanza_bytes: usize = 256 * KIB as usize, bytes(10_000, 16 * MIB), Live;
        /// Largest stanza before authentication, when anyone can send one.
        "limits.stanza_bytes_before_auth" stanza_bytes_before_auth: usize =
            16 * KIB as usize, bytes(10_000, 16 * MIB), Live;
        /// Levels of elements within each other in a stanza.
        "limits.depth" depth: u16 = 64, count(8, 1024, "elements"), Live;
        /// Stanzas per second that one session may send, and other elements that want an answer; what is beyond waits
        /// in its socket; 0 for no limit.
        "limits.stanzas_per_second" stanzas_per_second: u32 =
            200, count(0, 1_000_000, "stanzas"), Live, benchmark 0;
        /// Stanzas that one session may send at once, before that rate applies.
        "limits.stanzas_burst" stanzas_burst: u32 = 1000, count(1, 1_000_000, "stanzas"), Live;
        /// Bytes per second that one session may send, counted as 256 for each element at least; what is beyond waits
        /// in its socket; 0 for no limit.
        "limits.bytes_per_second" bytes_per_second: u32 = MIB as u32, bytes(0, GIB), Live, benchmark 0;
        /// Bytes that one session may send at once, before that rate applies.
        "limits.bytes_burst" bytes_burst: u32 = 4 * MIB as u32, bytes(16 * KIB, GIB), Live;
        /// Bytes that may wait for one slow reader before it is disconnected.
        "limits.out_queue_bytes" out_queue_bytes: usize = 256 * KIB as usize, bytes(16 * KIB, 64 * MIB), Live;
        /// Failed logins from one address within `limits.auth_failures_window_ms` before further ones are refused; 0
        /// for no limit.
        "limits.auth_failures_per_address" auth_failures_per_address: u32 =
            50, count(0, 1_000_000, "failures"), Live, benchmark 0;
        /// Failed logins from one address to one account within `limits.auth_failures_window_ms` before further ones from
        /// there are refused; 0 for no limit.
        "limits.auth_failures_per_account_and_address" auth_failures_per_account_and_address: u32 =
            10, count(0, 1_000_000, "failures"), Live, benchmark 0;
        /// Failed logins to one account from all addresses within `limits.auth_failures_window_ms` before further ones are
        /// refused, except from addresses that have recently logged in to it; 0 for no limit.
        "limits.auth_failures_per_account" auth_failures_per_account: u32 =
            100, count(0, 1_000_000, "failures"), Live, benchmark 0;
        /// In-band registrations (XEP-0077) from one address within `limits.auth_failures_window_ms` before further ones are
        /// refused; 0 for no limit.
        "limits.registrations_per_address" registrations_per_address: u32 =
            100, count(0, 1_000_000, "registrations"), Live, benchmark 0;
        /// Window in which failed logins and in-band registrations are counted.
        "limits.auth_failures_window_ms" auth_failures_window_ms: u64 = 5 * MINUTE, ms(SECOND, DAY), Live;
        /// Failed logins on one connection before it is closed. Attempts with an unsupported type of channel binding are
        /// counted separately.
        "limits.auth_attempts" auth_attempts: u8 = 5, count(1, 100, "attempts"), Live;
        /// Chat messages that are stored for one account while it is offline; further ones are answered with an error.
        "limits.offline_messages" offline_messages: u32 =
            1000, count(0, 1_000_000, "messages"), Live, benchmark 1_000_000;
        /// Notifications that may wait for one account; beyond that, the oldest of the lowest priority is dropped.
        "limits.pending_notifications" pending_notifications: u32 =
            1000, count(1, 1_000_000, "notifications"), Live, benchmark 1_000_000;
        /// Stanzas that a client with stream management may leave unacknowledged before it is disconnected.
        "limits.unacknowledged_stanzas" unacknowledged_stanzas: u32 =
            5000, count(100, 1_000_000, "stanzas"), Live, benchmark 1_000_000;
        /// Bytes of chat messages that are kept for a client with stream management until it acknowledges them; past it
        /// the client is disconnected, and they are delivered elsewhere or kept for later.
        "limits.unacknowledged_bytes" unacknowledged_bytes: usize =
            4 * MIB as usize, bytes(64 * KIB, GIB), Live;
        /// The most that one presence carries (status, capabilities and other extensions).
        "limits.presence_bytes" presence_bytes: usize = 16 * KIB as usize, bytes(KIB, 16 * MIB), Live;
        /// Accounts that one session may have sent directed presence to.
        "limits.directed_presence" directed_presence: usize = 500, count(0, 100_000, "accounts"), Live;
    }

    /// How long each step of a session may take.
    timeouts: Timeouts {
        /// Time from the acceptance of a connection to the end of authentication, TLS included.
        "timeouts.auth_ms" auth_ms: u64 = 30 * SECOND, ms(100, HOUR), Live;
        /// Time from authentication to a bound resource.
        "timeouts.bind_ms" bind_ms: u64 = 30 * SECOND, ms(100, HOUR), Live;
        /// How long a closed stream waits for the client's closing tag.
        "timeouts.close_ms" close_ms: u64 = 5 * SECOND, ms(0, MINUTE), Live;
    }

    /// Finding out which clients are gone (XEP-0199, RFC 6120 §4.6).
    ping: Ping {
        /// Silence of a client after which the server pings it; 0 for never.
        "ping.idle_ms" idle_ms: u64 = MINUTE, ms(0, DAY), Live;
        /// How long a client that was pinged may take to answer before its connection counts as lost.
        "ping.wait_ms" wait_ms: u64 = 30 * SECOND, ms(100, HOUR), Live;
    }

    /// The certificate clients see. SIGHUP reads the files again.
    tls: Tls {
        /// Certificate chain (PEM), the server's own certificate first; empty for a self-signed certificate in the data
        /// folder.
        "tls.certificate" certificate: Option<PathBuf> = None, path(0), Live;
        /// Private key (PEM) of `tls.certificate`.
        "tls.key" key: Option<PathBuf> = None, path(0), Live;
    }

    /// How clients prove who they are.
    auth: Auth {
        /// SASL mechanisms that are offered, the preferred first. PLAIN is offered only over TLS.
        "auth.mechanisms" mechanisms: Vec<Mechanism> =
            Mechanism::ALL.to_vec(), Kind::Choices(Mechanism::WORDS), Restart;
        /// Lifetime of a token that a client logs in with instead of its password (XEP-0484), and so the time that it
        /// may stay away; 0 for no tokens.
        "auth.token_lifetime_ms" token_lifetime_ms: u64 = 21 * DAY, ms(0, 365 * DAY), Live;
        /// Accounts with tokens whose next login needs no question to the store, about 200 bytes each; 0 for none.
        "auth.remembered_accounts" remembered_accounts: usize = 1_000_000, count(0, 100_000_000, "accounts"), Live;
        /// PBKDF2 iterations of passwords that are set from now on (RFC 7677 §4 requires at least 4096).
        "auth.scram_iterations" scram_iterations: u32 = 4096, count(4096, 10_000_000, "iterations"), Restart;
    }

    /// The policy of the domain named by `domain`. Other domains have policies of their own: `carillon domain set`.
    policy: DomainPolicy {
        /// Whether anyone can create an account over XMPP (XEP-0077).
        "registration.in_band" registration: bool = false, Kind::Switch, Live;
        /// Whether a login ends the account's earlier session (`single`) or is added to it (`multi`).
        "sessions.policy" sessions: SessionPolicy = SessionPolicy::Multi, Kind::Choice(SessionPolicy::WORDS), Live;
        /// Sessions of one account at the same time under `sessions.policy = "multi"`.
        "sessions.max_per_account" sessions_max: u16 = 20, count(1, 1000, "sessions"), Live;
        /// Who can create topics over XMPP: any account (`any`), or none, so that only API keys create them (`admin`).
        "pubsub.create" pubsub_create: PubsubCreate = PubsubCreate::Any, Kind::Choice(PubsubCreate::WORDS), Live;
    }

    /// Topics of all domains.
    pubsub: Pubsub {
        /// Largest number of items that a topic can be configured to keep.
        "pubsub.max_items" max_items: u32 = 10_000, count(1, 10_000, "items"), Live;
        /// Largest number of accounts that a topic can have as owners, publishers, members and outcasts.
        "pubsub.max_affiliations" max_affiliations: usize = 10_000, count(1, 1_000_000, "accounts"), Live;
        /// Topics that one account may own; it cannot create further ones over XMPP. Topics created over HTTP have no owner.
        "pubsub.max_owned" max_owned: u32 = 100, count(0, 1_000_000, "topics"), Live;
        /// Topics that one account may be subscribed to; it cannot subscribe to further ones over XMPP.
        "pubsub.max_subscriptions" max_subscriptions: u32 = 1000, count(0, 1_000_000, "topics"), Live;
        /// Operations that may wait for one topic; further ones are refused.
        "pubsub.max_waiting" max_waiting: usize = 1000, count(1, 1_000_000, "operations"), Live;
    }

    /// What providers send.
    notifications: Notifications {
        /// Longest time to live of a notification; a request for a longer one is refused.
        "notifications.ttl_max_ms" ttl_max_ms: u64 = 30 * DAY, ms(SECOND, 30 * DAY), Restart;
        /// How long a client without stream management may take to send its receipt (XEP-0184); after that, a
        /// notification counts as delivered once the client's TCP acknowledged it.
        "notifications.receipt_wait_ms" receipt_wait_ms: u64 = 2 * SECOND, ms(0, MINUTE), Live;
        /// How long the trace of a notification can be read after the notification ended.
        "notifications.trace_retention_ms" trace_retention_ms: u64 = 7 * DAY, ms(MINUTE, 365 * DAY), Restart;
        /// Traces of notifications that are on their way or not stored (`active`, `connected`), in the memory of each shard.
        "notifications.traces_bytes" traces_bytes: usize = 32 * MIB as usize, bytes(256 * KIB, 4 * GIB), Restart;
    }

    /// Features that can be switched off.
    features: Features {
        /// Whether clients can use stream management (XEP-0198).
        "stream_management.enabled" stream_management: bool = true, Kind::Switch, Restart;
        /// Features that are switched off, by name; none of their code runs.
        "features.disabled" disabled: Vec<String> = Vec::new(), Kind::Names, Restart;
    }

    /// Delivery of one topic item to many.
    fanout: Fanout {
        /// Deliveries of an item between two looks at other work, so that logins and direct messages do not wait.
        "fanout.slice" slice: u32 = 64, count(1, 65_536, "deliveries"), Live;
        /// Deliveries of one topic that may wait in a shard; beyond that, publishing to the topic is refused until half
        /// of them are left. One item of a topic is accepted however many follow it.
        "fanout.max_waiting" max_waiting: usize = 1_000_000, count(1, 1_000_000_000, "deliveries"), Live;
        /// Memory that the waiting deliveries of all topics may take in a shard; beyond that, publishing is refused in
        /// the same way.
        "fanout.max_waiting_bytes" max_waiting_bytes: usize = 64 * MIB as usize, bytes(MIB, 16 * GIB), Live;
    }

    /// The embedded database.
    store: Store {
        /// Threads that read from the database; one more thread writes.
        "store.readers" readers: u16 = 2, count(1, 64, "threads"), Restart;
    }

    /// The event log. One line per event, for analysis: `docs/book/event-log.md`.
    event_log: EventLog {
        /// Whether the event log is written.
        "event_log.enabled" enabled: bool = false, Kind::Switch, Restart;
        /// Folder of the event log's files; empty for `events` in the data folder.
        "event_log.path" path: Option<PathBuf> = None, path(0), Restart;
        /// Form of a line of the event log: a JSON object (`json`), or values between tabs (`compact`).
        "event_log.format" format: Format = Format::Json, Kind::Choice(Format::WORDS), Restart;
        /// Events that the event log has a line for.
        "event_log.events" events: Vec<EventKind> = EventKind::wanted(), Kind::Choices(EventKind::WORDS), Live;
        /// Size at which a file of the event log is closed and the next one begins.
        "event_log.rotate_bytes" rotate_bytes: u64 = 256 * MIB, bytes(64 * KIB, 1024 * GIB), Restart;
        /// Age at which a file of the event log is closed and the next one begins; 0 for any age.
        "event_log.rotate_interval_ms" rotate_interval_ms: u64 = DAY, ms(0, 365 * DAY), Restart;
        /// Whether closed files of the event log are compressed (zstd).
        "event_log.compress" compress: bool = true, Kind::Switch, Restart;
        /// Closed files of the event log that are kept; 0 for all.
        "event_log.keep_files" keep_files: u32 = 100, count(0, 1_000_000, "files"), Restart;
        /// How long closed files of the event log are kept; 0 for ever.
        "event_log.keep_ms" keep_ms: u64 = 30 * DAY, ms(0, 3650 * DAY), Restart;
        /// Memory for events on their way to the disk; events beyond that wait in files.
        "event_log.memory_bytes" memory_bytes: usize = 32 * MIB as usize, bytes(MIB, 16 * GIB), Restart;
    }

    /// The end of the node.
    drain: Drain {
        /// How long the node goes on as before after SIGTERM while `/readyz` already answers 503: as long as a load balancer
        /// needs to notice. A second signal ends the wait.
        "drain.delay_ms" delay_ms: u64 = 0, ms(0, HOUR), Live;
        /// How long sessions are given to end after SIGTERM and `drain.delay_ms`; one more signal ends the node at once.
        "drain.timeout_ms" timeout_ms: u64 = 10 * SECOND, ms(0, HOUR), Restart;
    }

    /// The node's log, on standard error.
    log: Log {
        /// Lowest level that is logged.
        "log.level" level: LogLevel = LogLevel::Info, Kind::Choice(LogLevel::WORDS), Live;
        /// Form of a line of the log: text for people, or a JSON object.
        "log.format" format: LogFormat = LogFormat::Text, Kind::Choice(LogFormat::WORDS), Restart;
    }
}

impl DomainPolicy {
    /// As the core knows it.
    pub fn to_policy(&self) -> Policy {
        Policy {
            sessions: self.sessions,
            registration: self.registration,
            pubsub_create: self.pubsub_create,
            sessions_max: self.sessions_max,
        }
    }
}

impl Features {
    /// The names of all features that are off, as the core takes them.
    pub fn all_disabled(&self) -> Vec<String> {
        let stream_management = (!self.stream_management).then(|| "stream_management".to_owned());
        self.disabled.iter().cloned().chain(stream_management).collect()
    }
}
