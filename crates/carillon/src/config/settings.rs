//! Every setting, declared once. `docs/book/configuration.md` is made from this.
//!
//! The key is what people write, the field is what the code reads; a group is what belongs together in the code.
//! Names of fields end in their unit.

use super::declare::{Reload, Setting, settings};
use super::kind::{Kind, bytes, count, ms, path, port, text};
use super::unit::{DAY, GIB, HOUR, KIB, MIB, MINUTE, SECOND};
use super::value::{Field, LogFormat, LogLevel, Profile, Wanted, Words};
use carillon_core::model::{Policy, PubsubCreate, SessionPolicy};
use carillon_core::session::Mechanism;
use carillon_server::events::{Format, Kind as EventKind};
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

settings! {
    /// The node itself.
    node: Node {
        /// The domain that the node makes sure exists when it starts. More are made at run time: `carillon domain add`.
        "domain" domain: String = "localhost".to_owned(), text(1, 1023), Restart;
        /// Folder of the database, the admin key and the self-signed certificate; made when it is missing.
        "data_dir" data_dir: PathBuf = PathBuf::from("./data"), path(1), Restart;
        /// Threads that hold sessions; 0 for one a core.
        "shards" shards: u16 = 0, count(0, 1024, "shards"), Restart;
        /// Whether what goes to many sessions is handed to the kernel together, by io_uring. Where the system forbids
        /// io_uring, as many containers do, every delivery is a system call of its own: slower, the same otherwise.
        "io_uring" io_uring: bool = true, Kind::Switch, Restart;
    }

    /// Sockets that clients connect to.
    listen: Listen {
        /// Host name that enrolled devices are told to connect to; empty for the name of their domain.
        "listen.host" host: String = String::new(), text(0, 1023), Restart;
        /// Addresses to listen on, IPv4 and IPv6. All interfaces: `["0.0.0.0", "::"]`.
        "listen.address" address: Vec<IpAddr> = vec![IpAddr::V4(Ipv4Addr::LOCALHOST)], Kind::Addresses, Restart;
        /// Connections that may wait to be accepted, a listener; the kernel's `net.core.somaxconn` caps it.
        "listen.backlog" backlog: u32 = 4096, count(1, 65_535, "connections"), Restart;
        /// Whether every shard has listeners of its own (`SO_REUSEPORT`); without, one shard accepts for all.
        "listen.reuse_port" reuse_port: bool = true, Kind::Switch, Restart;
        /// Whether small writes leave at once (`TCP_NODELAY`).
        "listen.nodelay" nodelay: bool = true, Kind::Switch, Restart;
    }

    /// XMPP over TCP, secured by STARTTLS (RFC 6120).
    c2s: C2s {
        /// Whether it is offered.
        "c2s.enabled" enabled: bool = true, Kind::Switch, Restart;
        /// Its port; 0 for any free one.
        "c2s.port" port: u16 = 5222, port(), Restart;
    }

    /// XMPP over TLS from the first byte (XEP-0368).
    c2s_tls: C2sTls {
        /// Whether it is offered.
        "c2s_tls.enabled" enabled: bool = true, Kind::Switch, Restart;
        /// Its port; 0 for any free one.
        "c2s_tls.port" port: u16 = 5223, port(), Restart;
    }

    /// XMPP over WebSocket (RFC 7395).
    websocket: Websocket {
        /// Whether it is offered.
        "websocket.enabled" enabled: bool = true, Kind::Switch, Restart;
        /// Its port; 0 for any free one.
        "websocket.port" port: u16 = 5280, port(), Restart;
        /// Whether the port speaks TLS (`wss:`). Without, passwords are safe only behind a proxy that does.
        "websocket.tls" tls: bool = false, Kind::Switch, Restart;
        /// The path of the endpoint.
        "websocket.path" path: String = "/xmpp-websocket".to_owned(), text(1, 1024), Restart;
        /// URL that enrolled devices are told, such as that of a proxy; empty to make it of host, port and path.
        "websocket.url" url: String = String::new(), text(0, 2048), Restart;
    }

    /// Topics for subscribers that speak no XMPP. Frames over a socket, as `docs/book/protocol.md` has them; nobody proves
    /// anything, so only topics that are open to all are offered.
    light: Light {
        /// Its port; 0 for any free one, `"off"` for none.
        "light.port" port: Option<u16> = None, Kind::PortOrOff, Restart;
        /// Whether the port speaks TLS from the first byte.
        "light.tls" tls: bool = false, Kind::Switch, Restart;
        /// The domain whose topics are offered; empty for that of `domain`.
        "light.domain" domain: String = String::new(), text(0, 1023), Restart;
        /// Topics that one connection may follow.
        "light.subscriptions" subscriptions: usize = 100, count(1, 10_000, "topics"), Live;
        /// Silence of a client after which its connection is closed: two of the intervals at which clients send `PING`;
        /// 0 for never.
        "light.idle_timeout_ms" idle_timeout_ms: u64 = 2 * MINUTE, ms(0, DAY), Live;
    }

    /// The HTTP APIs, the metrics and the console.
    http: Http {
        /// Addresses to listen on; none means those of `listen.address`.
        "http.address" address: Vec<IpAddr> = Vec::new(), Kind::Addresses, Restart;
        /// Its port; 0 for any free one.
        "http.port" port: u16 = 8080, port(), Restart;
        /// The largest body of a request that is not read as a stream.
        "http.body_bytes_max" body_bytes_max: usize = MIB as usize, bytes(64 * KIB, 64 * MIB), Restart;
        /// What bodies larger than 16 KiB may take in memory together; one more is refused, with the time to come back.
        "http.bodies_bytes_max" bodies_bytes_max: usize = 64 * MIB as usize, bytes(MIB, 64 * GIB), Restart;
        /// The largest payload of a notification or an item.
        "http.payload_bytes_max" payload_bytes_max: usize = 32 * KIB as usize, bytes(KIB, 16 * MIB), Restart;
        /// Connections open at once; more wait to be accepted.
        "http.connections_max" connections_max: usize = 4096, count(1, 1_000_000, "connections"), Restart;
        /// Event streams open at once.
        "http.streams_max" streams_max: usize = 64, count(0, 100_000, "streams"), Restart;
        /// Whether `/metrics` needs an API key with scope `admin`.
        "http.metrics_key" metrics_key: bool = false, Kind::Switch, Restart;
        /// Domains that have figures of their own in `/metrics`; all others together have the label `domain="(other)"`.
        "http.metrics_domains" metrics_domains: usize = 100, count(0, 10_000, "domains"), Restart;
    }

    /// What one client, and all of them, may cost.
    limits: Limits {
        /// Which defaults the limits have: `benchmark` lifts those on rates and counts, but for one that is set to
        /// something else than its default.
        "limits.profile" profile: Profile = Profile::Default, Kind::Choice(Profile::WORDS), Live;
        /// Connections the node holds at once; 0 for as many as there are descriptors, which bound it anyway.
        "limits.max_connections" max_connections: u32 =
            1_000_000, count(0, 100_000_000, "connections"), Live, benchmark 0;
        /// Connections one address holds at once; 0 for any number.
        "limits.connections_per_address" connections_per_address: u32 =
            1000, count(0, 100_000_000, "connections"), Live, benchmark 0;
        /// Connections the node accepts in a second, others are told when to come back; 0 for any number.
        "limits.connect_rate_per_second" connect_rate_per_second: u32 =
            10_000, count(0, 1_000_000, "connections"), Live, benchmark 0;
        /// Connections whose TLS handshake or WebSocket upgrade is not complete; more are told when to come back; 0 for
        /// any number.
        "limits.handshakes_in_flight" handshakes_in_flight: u32 =
            8192, count(0, 1_000_000, "connections"), Live, benchmark 0;
        /// The largest stanza of a session (RFC 6120 §13.12 wants 10000 at least).
        "limits.stanza_bytes" stanza_bytes: usize = 256 * KIB as usize, bytes(10_000, 16 * MIB), Live;
        /// The largest stanza before authentication, when anyone can send it.
        "limits.stanza_bytes_before_auth" stanza_bytes_before_auth: usize =
            16 * KIB as usize, bytes(10_000, 16 * MIB), Live;
        /// How deep elements of a stanza nest.
        "limits.depth" depth: u16 = 64, count(8, 1024, "elements"), Live;
        /// Stanzas read from one session in a second, averaged over ten, the rest waits in its socket; 0 for any
        /// number.
        "limits.stanzas_per_second" stanzas_per_second: u32 =
            200, count(0, 1_000_000, "stanzas"), Live, benchmark 0;
        /// Bytes that wait for one slow reader before it is disconnected.
        "limits.out_queue_bytes" out_queue_bytes: usize = 256 * KIB as usize, bytes(16 * KIB, 64 * MIB), Live;
        /// Failed logins of one address in a window before its next ones are refused; 0 for any number.
        "limits.auth_failures_per_address" auth_failures_per_address: u32 =
            50, count(0, 1_000_000, "failures"), Live, benchmark 0;
        /// Failed logins of one account in a window before its next ones are refused; 0 for any number.
        "limits.auth_failures_per_account" auth_failures_per_account: u32 =
            10, count(0, 1_000_000, "failures"), Live, benchmark 0;
        /// The window of the two limits above.
        "limits.auth_failures_window_ms" auth_failures_window_ms: u64 = 5 * MINUTE, ms(SECOND, DAY), Live;
        /// Attempts to log in on one connection before it is closed.
        "limits.auth_attempts" auth_attempts: u8 = 3, count(1, 100, "attempts"), Live;
        /// Chat messages kept for one account while it is away; the next one is answered with an error.
        "limits.offline_messages" offline_messages: u32 =
            1000, count(0, 1_000_000, "messages"), Live, benchmark 1_000_000;
        /// Notifications that wait for one account; past it the oldest of the lowest priority is dropped.
        "limits.pending_notifications" pending_notifications: u32 =
            1000, count(1, 1_000_000, "notifications"), Live, benchmark 1_000_000;
        /// Stanzas that a client with stream management may leave unacknowledged before it is disconnected.
        "limits.unacknowledged_stanzas" unacknowledged_stanzas: u32 =
            5000, count(100, 1_000_000, "stanzas"), Live, benchmark 1_000_000;
        /// Accounts that one session may have sent directed presence to.
        "limits.directed_presence" directed_presence: usize = 500, count(0, 100_000, "accounts"), Live;
    }

    /// How long each step of a session may take.
    timeouts: Timeouts {
        /// From the acceptance of a connection to the end of authentication, TLS included.
        "timeouts.auth_ms" auth_ms: u64 = 30 * SECOND, ms(100, HOUR), Live;
        /// From authentication to a bound resource.
        "timeouts.bind_ms" bind_ms: u64 = 30 * SECOND, ms(100, HOUR), Live;
        /// How long a closed stream waits for the client's own closing tag.
        "timeouts.close_ms" close_ms: u64 = 5 * SECOND, ms(0, MINUTE), Live;
    }

    /// Finding out which clients are gone (XEP-0199, RFC 6120 §4.6).
    ping: Ping {
        /// Silence of a client after which the server asks whether it is there; 0 never asks.
        "ping.idle_ms" idle_ms: u64 = MINUTE, ms(0, DAY), Live;
        /// How long the client has to show that it is.
        "ping.wait_ms" wait_ms: u64 = 30 * SECOND, ms(100, HOUR), Live;
    }

    /// The certificate clients see. SIGHUP reads the files again.
    tls: Tls {
        /// Certificate chain (PEM); with none, a self-signed certificate in the data folder.
        "tls.certificate" certificate: Option<PathBuf> = None, path(0), Live;
        /// Its private key (PEM).
        "tls.key" key: Option<PathBuf> = None, path(0), Live;
    }

    /// How clients prove who they are.
    auth: Auth {
        /// SASL mechanisms that are offered, the preferred first. PLAIN only over TLS.
        "auth.mechanisms" mechanisms: Vec<Mechanism> =
            Mechanism::ALL.to_vec(), Kind::Choices(Mechanism::WORDS), Restart;
        /// How long a token is good that a client logs in with instead of its password (XEP-0484): that long it may stay
        /// away; 0 gives none.
        "auth.token_lifetime_ms" token_lifetime_ms: u64 = 21 * DAY, ms(0, 365 * DAY), Live;
        /// Accounts with tokens whose next login needs no question to the store, about 200 bytes each; 0 remembers none.
        "auth.remembered_accounts" remembered_accounts: usize = 1_000_000, count(0, 100_000_000, "accounts"), Live;
        /// PBKDF2 iterations of passwords that are set from now on (RFC 7677 §4 wants 4096 at least).
        "auth.scram_iterations" scram_iterations: u32 = 4096, count(4096, 10_000_000, "iterations"), Restart;
    }

    /// The policy of the domain named by `domain`. Others have their own: `carillon domain set`.
    policy: DomainPolicy {
        /// Whether anyone may make an account over XMPP (XEP-0077).
        "registration.in_band" registration: bool = false, Kind::Switch, Live;
        /// Whether a login ends the account's earlier session (`single`) or lives beside it (`multi`).
        "sessions.policy" sessions: SessionPolicy = SessionPolicy::Multi, Kind::Choice(SessionPolicy::WORDS), Live;
        /// Sessions of one account under `multi`.
        "sessions.max_per_account" sessions_max: u16 = 20, count(1, 1000, "sessions"), Live;
        /// Who makes topics over XMPP: `any` account, or only API keys (`admin`).
        "pubsub.create" pubsub_create: PubsubCreate = PubsubCreate::Any, Kind::Choice(PubsubCreate::WORDS), Live;
    }

    /// Topics of all domains.
    pubsub: Pubsub {
        /// The most items a topic can be configured to keep.
        "pubsub.max_items" max_items: u32 = 10_000, count(1, 10_000, "items"), Live;
        /// The most accounts that a topic knows as owners, publishers, members or outcasts.
        "pubsub.max_affiliations" max_affiliations: usize = 10_000, count(1, 1_000_000, "accounts"), Live;
        /// Operations that wait for one topic before further ones are refused.
        "pubsub.max_waiting" max_waiting: usize = 1000, count(1, 1_000_000, "operations"), Live;
    }

    /// What providers send.
    notifications: Notifications {
        /// The longest time to live; a longer one is shortened to it.
        "notifications.ttl_max_ms" ttl_max_ms: u64 = 30 * DAY, ms(SECOND, 30 * DAY), Restart;
        /// How long a client without stream management has to send its receipt (XEP-0184) before the socket's word
        /// counts.
        "notifications.receipt_wait_ms" receipt_wait_ms: u64 = 2 * SECOND, ms(0, MINUTE), Live;
        /// How long it can be asked what became of a notification, after it ended.
        "notifications.trace_retention_ms" trace_retention_ms: u64 = 7 * DAY, ms(MINUTE, 365 * DAY), Restart;
        /// Traces of notifications that are not kept (`active`, `connected`), in the memory of each shard.
        "notifications.traces_in_memory" traces_in_memory: usize = 100_000, count(1000, 10_000_000, "traces"), Restart;
    }

    /// Parts of XMPP that can be taken away.
    features: Features {
        /// Whether clients can have stanzas acknowledged (XEP-0198).
        "stream_management.enabled" stream_management: bool = true, Kind::Switch, Restart;
        /// Features that are not offered, by name; none of their code runs.
        "features.disabled" disabled: Vec<String> = Vec::new(), Kind::Names, Restart;
    }

    /// Delivery of one topic item to many.
    fanout: Fanout {
        /// Deliveries between two looks at other work, so that logins and direct messages do not wait.
        "fanout.slice" slice: u32 = 64, count(1, 65_536, "deliveries"), Live;
        /// Deliveries of one topic that wait in a shard before what is published to it is refused, until half of them are
        /// left. One item of a topic is taken however many follow it.
        "fanout.max_waiting" max_waiting: usize = 1_000_000, count(1, 1_000_000_000, "deliveries"), Live;
        /// Memory of what waits so in a shard, of all topics, before the same.
        "fanout.max_waiting_bytes" max_waiting_bytes: usize = 64 * MIB as usize, bytes(MIB, 16 * GIB), Live;
    }

    /// The embedded database.
    store: Store {
        /// Threads that read; one more writes.
        "store.readers" readers: u16 = 2, count(1, 64, "threads"), Restart;
    }

    /// What happens, a line each, for analysis: `docs/book/event-log.md`.
    event_log: EventLog {
        /// Whether it is kept.
        "event_log.enabled" enabled: bool = false, Kind::Switch, Restart;
        /// Folder of its files; empty for `events` in the data folder.
        "event_log.path" path: Option<PathBuf> = None, path(0), Restart;
        /// JSON objects, or values between tabs.
        "event_log.format" format: Format = Format::Json, Kind::Choice(Format::WORDS), Restart;
        /// Which events have a line.
        "event_log.events" events: Vec<EventKind> = EventKind::wanted(), Kind::Choices(EventKind::WORDS), Live;
        /// A file of this size is put away.
        "event_log.rotate_bytes" rotate_bytes: u64 = 256 * MIB, bytes(64 * KIB, 1024 * GIB), Restart;
        /// A file so old is put away; 0 for any age.
        "event_log.rotate_interval_ms" rotate_interval_ms: u64 = DAY, ms(0, 365 * DAY), Restart;
        /// Whether files that are put away are compressed (zstd).
        "event_log.compress" compress: bool = true, Kind::Switch, Restart;
        /// Files kept of those put away; 0 for all.
        "event_log.keep_files" keep_files: u32 = 100, count(0, 1_000_000, "files"), Restart;
        /// How long they are kept; 0 for ever.
        "event_log.keep_ms" keep_ms: u64 = 30 * DAY, ms(0, 3650 * DAY), Restart;
        /// Events on their way to the disk in memory; what the writer cannot take waits on disk.
        "event_log.memory_bytes" memory_bytes: usize = 32 * MIB as usize, bytes(MIB, 16 * GIB), Restart;
    }

    /// The end of the node.
    drain: Drain {
        /// How long sessions are given to end after SIGTERM; a second signal ends the node at once.
        "drain.timeout_ms" timeout_ms: u64 = 10 * SECOND, ms(0, HOUR), Restart;
    }

    /// The node's log, on standard error.
    log: Log {
        /// How much is logged.
        "log.level" level: LogLevel = LogLevel::Info, Kind::Choice(LogLevel::WORDS), Live;
        /// Lines for people, or a JSON object a line.
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
