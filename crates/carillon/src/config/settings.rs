//! Every setting: its key, its field, what it takes, whether SIGHUP applies it, and its sentence. Its type and its default
//! are declared beside what uses it, in the struct that holds the field. `docs/book/configuration.md` is made from this.

use super::declare::{Reload, Setting, settings};
use super::kind::{Kind, bytes, count, ms, path, port, text};
use super::unit::{DAY, GIB, HOUR, KIB, MIB, MINUTE, SECOND};
use super::value::{Field, Profile, Words};
use crate::options::{Cell, Node, Queue};
use crate::process::telemetry::{Log, LogFormat, LogLevel};
use crate::upgrade;
use carillon_backend::StoreOptions;
use carillon_core::form::{VERSION, WRITTEN_OLDEST};
use carillon_core::model::{Policy, PubsubCreate, PushShown, RoomEvents, RoomsCreate, SessionPolicy};
use carillon_core::sasl::Mechanism;
use carillon_server::ClientPort;
use carillon_server::events::{Format, Kind as EventKind};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Everything a node can be told, as those hold it who use it. [`Config::load`](super::Config::load) fills it; whoever
/// assembles the node reads it. Every value is within its bounds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Settings of the binary itself.
    pub node: Node,
    /// The cell that it is in.
    pub cell: Cell,
    /// The queues that messages are taken from, by their names.
    pub queues: BTreeMap<String, Queue>,
    /// The apps that push services of makers of devices know, by their names.
    pub push_apps: BTreeMap<String, carillon_http::PushAppSettings>,
    /// What devices show of pushes, by the names of the templates.
    pub push_templates: BTreeMap<String, carillon_http::PushTemplateSettings>,
    /// The node's log.
    pub log: Log,
    /// Live upgrades.
    pub upgrade: upgrade::Options,
    /// Which defaults the limits have.
    pub profile: Profile,
    /// The policy of the domain named by `domain`. Other domains have policies of their own.
    pub policy: Policy,
    /// The core's settings.
    pub core: carillon_core::settings::Settings,
    /// The server's options.
    pub server: carillon_server::Options,
    /// The settings of the HTTP side.
    pub http: carillon_http::Settings,
    /// The store's options.
    pub store: StoreOptions,
}

impl Settings {
    /// Where the HTTP APIs listen.
    pub fn http_addresses(&self) -> &[IpAddr] {
        match self.node.http_addresses.as_slice() {
            [] => &self.server.addresses,
            some => some,
        }
    }

    /// Where they listen with TLS.
    pub fn https_addresses(&self) -> &[IpAddr] {
        match self.node.https_addresses.as_slice() {
            [] => &self.server.addresses,
            some => some,
        }
    }
}

impl Setting {
    /// The setting of this key.
    pub fn named(key: &str) -> Option<&'static Setting> {
        SETTINGS.iter().find(|setting| setting.key == key)
    }
}

settings! {
    /// Every setting there is, in the order people read them, but for those of each queue ([`QUEUE`](super::QUEUE)), of each app
    /// that is woken ([`PUSH_APP`](super::PUSH_APP)) and of each template ([`PUSH_TEMPLATE`](super::PUSH_TEMPLATE)).
    SETTINGS of Settings;

    "The node itself." {
        /// Domain that the node creates at its start if it does not exist. `carillon domain create` creates more at run
        /// time.
        "domain" = node.domain, text(1, 1023), Restart;
        /// Folder of the database, the admin key and the self-signed certificate. It is created if it does not exist.
        "data_dir" = node.data_dir, path(1), Restart;
        /// Number of threads that hold sessions; 0 for one per CPU core.
        "shards" = server.shards, count(0, 1024, "shards"), Restart;
        /// Whether deliveries to many sessions are handed to the kernel in batches, by io_uring. Where the system
        /// forbids io_uring, as many containers do, each delivery is a system call of its own: slower, with the same
        /// result.
        "io_uring" = server.io_uring, Kind::Switch, Restart;
        /// Whether a crash may write the memory of the process to a file (a core dump), and whether other processes of its user may
        /// read it with a debugger. That memory holds keys, passwords and messages.
        "core_dumps" = node.core_dumps, Kind::Switch, Restart;
        /// What the node is called among those that share a PostgreSQL database. Of two processes of one name only the one that was started last
        /// writes. Empty for a name of its own, which is made once and kept in the file `node.name` of the data folder.
        "node.name" = node.name, text(0, 255), Restart;
    }

    "Sockets that clients connect to." {
        /// Host name that enrolled devices are told to connect to; empty for the name of their domain.
        "listen.host" = node.host, text(0, 1023), Restart;
        /// Addresses that clients connect to, IPv4 and IPv6. All interfaces: `["0.0.0.0", "::"]`.
        "listen.address" = server.addresses, Kind::Addresses, Restart;
        /// Connections per listener that may wait to be accepted; the kernel's `net.core.somaxconn` is an upper bound.
        "listen.backlog" = server.backlog, count(1, 65_535, "connections"), Restart;
        /// Whether every shard has listeners of its own (`SO_REUSEPORT`); otherwise one shard accepts all connections.
        "listen.reuse_port" = server.reuse_port, Kind::Switch, Restart;
        /// Proxies and load balancers in front of this server, as addresses or networks such as `10.0.0.0/8`. The address of a client that connects through one of them is taken from its `X-Forwarded-For` on the WebSocket port and where short links are made without a key, and from its PROXY header on the ports of `listen.proxy_protocol`. From any other address, `X-Forwarded-For` is ignored.
        "listen.trusted_proxies" = server.trusted_proxies, Kind::Networks, Restart;
        /// Ports on which every connection from one of `listen.trusted_proxies` begins with a header of the PROXY protocol, version 1
        /// or 2 (HAProxy's `send-proxy`); one that does not is refused. Connections from other addresses have none.
        "listen.proxy_protocol" = server.proxy_protocol, Kind::Choices(ClientPort::WORDS), Restart;
        /// Whether small writes are sent at once (`TCP_NODELAY`).
        "listen.nodelay" = server.nodelay, Kind::Switch, Restart;
    }

    "XMPP over TCP, secured by STARTTLS (RFC 6120)." {
        /// Whether clients can connect by XMPP over TCP with STARTTLS.
        "c2s.enabled" = server.c2s.enabled, Kind::Switch, Restart;
        /// Port of XMPP over TCP with STARTTLS; 0 for any free port.
        "c2s.port" = server.c2s.port, port(), Restart;
    }

    "XMPP over TLS from the first byte (XEP-0368)." {
        /// Whether clients can connect by XMPP over TLS from the first byte.
        "c2s_tls.enabled" = server.c2s_tls.enabled, Kind::Switch, Restart;
        /// Port of XMPP over TLS from the first byte; 0 for any free port.
        "c2s_tls.port" = server.c2s_tls.port, port(), Restart;
    }

    "XMPP over WebSocket (RFC 7395)." {
        /// Whether clients can connect by XMPP over WebSocket.
        "websocket.enabled" = server.websocket.enabled, Kind::Switch, Restart;
        /// Port of XMPP over WebSocket; 0 for any free port.
        "websocket.port" = server.websocket.port, port(), Restart;
        /// Whether the WebSocket port speaks TLS (`wss:`). Without TLS, passwords are safe only behind a proxy that
        /// provides it.
        "websocket.tls" = server.websocket.tls, Kind::Switch, Restart;
        /// Path of the WebSocket endpoint.
        "websocket.path" = server.websocket.path, text(1, 1024), Restart;
        /// WebSocket URL that enrolled devices are told, such as that of a proxy; empty to derive it from host, port
        /// and path.
        "websocket.url" = node.websocket_url, text(0, 2048), Restart;
    }

    "Topics for subscribers that speak no XMPP. They speak frames over a socket, as `docs/book/protocol.md` describes them, \
     and prove nothing: only topics that are open to all are offered." {
        /// Port of the light protocol; 0 for any free port, `"off"` for none.
        "light.port" = server.light.port, Kind::PortOrOff, Restart;
        /// Whether the port of the light protocol speaks TLS from the first byte.
        "light.tls" = server.light.tls, Kind::Switch, Restart;
        /// Domain whose topics the light protocol offers; empty for the domain in `domain`.
        "light.domain" = core.light.domain, text(0, 1023), Restart;
        /// Topics that one connection of the light protocol may follow.
        "light.subscriptions" = core.light.subscriptions, count(1, 10_000, "topics"), Live;
        /// Silence of a client of the light protocol after which its connection is closed: twice the interval at which
        /// clients send `PING`; 0 for never.
        "light.idle_timeout_ms" = core.light.idle_timeout_ms, ms(0, DAY), Live;
    }

    "The HTTP APIs, the metrics and the console." {
        /// Addresses of the HTTP APIs without TLS; an empty list for those of `listen.address`. For others than this machine there is `https.port`.
        "http.address" = node.http_addresses, Kind::Addresses, Restart;
        /// Port of the HTTP APIs; 0 for any free port.
        "http.port" = node.http_port, port(), Restart;
        /// Largest body of an HTTP request, except for bodies that are read as a stream.
        "http.body_bytes_max" = http.body_bytes_max, bytes(64 * KIB, 64 * MIB), Restart;
        /// Memory that all request bodies larger than 16 KiB may take together; a request beyond it is refused with
        /// `Retry-After`.
        "http.bodies_bytes_max" = http.bodies_bytes_max, bytes(MIB, 64 * GIB), Restart;
        /// Largest payload of a notification or an item that is sent over HTTP.
        "http.payload_bytes_max" = http.payload_bytes_max, bytes(KIB, 16 * MIB), Restart;
        /// HTTP connections open at the same time; further ones wait to be accepted.
        "http.connections_max" = http.connections_max, count(1, 1_000_000, "connections"), Restart;
        /// Bytes that are kept for the idempotency keys of one API key, for 24 hours each: 128 beside its name, the response and 8 for each line of a
        /// batch. Past it, or past four times as much for all keys of a domain, requests with new ones are answered `429`
        /// `too-many-idempotency-keys`.
        "http.idempotency_bytes_max" = http.idempotency_bytes_max, bytes(MIB, 1024 * GIB), Restart;
        /// HTTP event streams open at the same time.
        "http.streams_max" = http.streams_max, count(0, 100_000, "streams"), Restart;
        /// Days for which administrative acts are kept (`carillon audit`).
        "http.audit_days" = http.audit_days, count(1, 36_500, "days"), Restart;
        /// Whether `/metrics` needs an API key with scope `admin`.
        "http.metrics_key" = http.metrics_key_required, Kind::Switch, Restart;
        /// Domains that have figures of their own in `/metrics`; all others together have the label `domain="(other)"`.
        "http.metrics_domains" = core.limits.domains_counted, count(0, 10_000, "domains"), Restart;
        /// Port of the HTTP APIs with TLS (`https:`), by the certificate in `tls.certificate`; 0 for any free port, `"off"` for none.
        "https.port" = node.https_port, Kind::PortOrOff, Restart;
        /// Addresses of the HTTP APIs with TLS; an empty list for those of `listen.address`.
        "https.address" = node.https_addresses, Kind::Addresses, Restart;
        /// A file with the certificates (PEM) of the authorities by which certificates of clients of `https.port` are known, for keys that are bound to
        /// certificates; empty: no client is asked for one. It is read again when the node reloads its configuration.
        "https.client_ca" = node.https_client_ca, path(0), Restart;
        /// Whether every client of `https.port` has to show such a certificate, browsers included. Needs `https.client_ca`.
        "https.client_required" = node.https_client_required, Kind::Switch, Restart;
        /// Port on which nothing is served but `/healthz`, `/readyz` and `/metrics`, without TLS and without a key, for probes and Prometheus; 0 for any free port, `"off"` for none.
        "health.port" = node.health_port, Kind::PortOrOff, Restart;
        /// Addresses of that port.
        "health.address" = node.health_addresses, Kind::Addresses, Restart;
    }

    "What one client, and all clients together, may use." {
        /// Which defaults the limits have: `benchmark` lifts the limits on rates and counts, except those that are set
        /// to something other than their default.
        "limits.profile" = profile, Kind::Choice(Profile::WORDS), Live;
        /// Connections of clients open at the same time; 0 for as many as there are file descriptors, which bound them
        /// in any case.
        "limits.max_connections" = server.bounds.connections, count(0, 100_000_000, "connections"), Live, benchmark 0;
        /// Connections from one address open at the same time; 0 for no limit.
        "limits.connections_per_address" = server.bounds.connections_per_address,
            count(0, 100_000_000, "connections"), Live, benchmark 0;
        /// New connections per second; further clients are told when to come back; 0 for no limit.
        "limits.connect_rate_per_second" = server.bounds.connects_per_second,
            count(0, 1_000_000, "connections"), Live, benchmark 0;
        /// Connections whose TLS handshake or WebSocket upgrade is not complete; further clients are told when to come
        /// back; 0 for no limit.
        "limits.handshakes_in_flight" = server.bounds.handshakes_in_flight,
            count(0, 1_000_000, "connections"), Live, benchmark 0;
        /// Largest stanza of a session (RFC 6120 §13.12 requires at least 10000 bytes).
        "limits.stanza_bytes" = core.limits.stanza_bytes, bytes(10_000, 16 * MIB), Live;
        /// Largest stanza before authentication, when anyone can send one.
        "limits.stanza_bytes_before_auth" = core.limits.stanza_bytes_before_auth, bytes(10_000, 16 * MIB), Live;
        /// Levels of elements within each other in a stanza.
        "limits.depth" = core.limits.depth, count(8, 1024, "elements"), Live;
        /// Stanzas per second, and other elements that are answered, that the sessions of one account may send together; what exceeds the rate waits in their sockets; 0 for no limit. Each connection of the light protocol has the same limit of its own.
        "limits.stanzas_per_second" = core.limits.rates.stanzas_per_second,
            count(0, 1_000_000, "stanzas"), Live, benchmark 0;
        /// Stanzas that they may send at once before that rate applies. Logging in again does not refill it.
        "limits.stanzas_burst" = core.limits.rates.stanzas_burst, count(1, 1_000_000, "stanzas"), Live;
        /// Bytes per second that the sessions of one account may send together; each element counts as 256 bytes at least; what exceeds the rate waits in their sockets; 0 for no limit. Each connection of the light protocol has the same limit of its own.
        "limits.bytes_per_second" = core.limits.rates.bytes_per_second, bytes(0, GIB), Live, benchmark 0;
        /// Bytes that they may send at once before that rate applies. Logging in again does not refill it.
        "limits.bytes_burst" = core.limits.rates.bytes_burst, bytes(16 * KIB, GIB), Live;
        /// Bytes that may wait for one slow reader before it is disconnected.
        "limits.out_queue_bytes" = server.out_queues.each_bytes, bytes(16 * KIB, 64 * MIB), Live;
        /// Memory that may wait for all slow readers together; each shard has an even part. From three quarters of it on those for
        /// whom most waits are ended with `resource-constraint`; past it connections that do not read that either are dropped.
        "limits.all_out_queue_bytes" = server.out_queues.all_bytes, bytes(16 * MIB, 1024 * GIB), Live;
        /// Failed logins from one address within `limits.auth_failures_window_ms` before further ones are refused; 0
        /// for no limit.
        "limits.auth_failures_per_address" = core.limits.auth_failures_per_address,
            count(0, 1_000_000, "failures"), Live, benchmark 0;
        /// Failed logins from one address to one account within `limits.auth_failures_window_ms` before further ones from
        /// there are refused; 0 for no limit.
        "limits.auth_failures_per_account_and_address" = core.limits.auth_failures_per_account_and_address,
            count(0, 1_000_000, "failures"), Live, benchmark 0;
        /// Failed logins to one account from all addresses within `limits.auth_failures_window_ms` before further ones are
        /// refused, except from addresses that have recently logged in to it; 0 for no limit.
        "limits.auth_failures_per_account" = core.limits.auth_failures_per_account,
            count(0, 1_000_000, "failures"), Live, benchmark 0;
        /// In-band registrations (XEP-0077) from one address within `limits.auth_failures_window_ms` before further ones are
        /// refused; 0 for no limit.
        "limits.registrations_per_address" = core.limits.registrations_per_address,
            count(0, 1_000_000, "registrations"), Live, benchmark 0;
        /// How long nobody can register the name of a removed account in-band, by an invitation too; 0 for no time. Over HTTP and the command line it can be created again at once.
        "limits.removed_names_held_ms" = core.removed_names_held_ms, ms(0, 365 * DAY), Live;
        /// Window in which failed logins and in-band registrations are counted.
        "limits.auth_failures_window_ms" = core.limits.auth_window_ms, ms(SECOND, DAY), Live;
        /// Failed logins on one connection before it is closed. Attempts with an unsupported type of channel binding are
        /// counted separately.
        "limits.auth_attempts" = core.limits.auth_attempts, count(1, 100, "attempts"), Live;
        /// Chat messages that are stored for one account while it is offline; further ones are answered with an error.
        "limits.offline_messages" = core.limits.offline_messages,
            count(0, 1_000_000, "messages"), Live, benchmark 1_000_000;
        /// Bytes of the chat messages that are stored for one account while it is offline; further ones are answered with an error.
        "limits.offline_bytes" = core.limits.offline_bytes, bytes(256 * KIB, 1024 * GIB), Live, benchmark GIB;
        /// Notifications that may wait for one account; beyond that, the oldest of the lowest priority is dropped.
        "limits.pending_notifications" = core.limits.pending_notifications,
            count(1, 1_000_000, "notifications"), Live, benchmark 1_000_000;
        /// Stanzas that a client with stream management may leave unacknowledged before it is disconnected.
        "limits.unacknowledged_stanzas" = core.limits.unacknowledged,
            count(100, 1_000_000, "stanzas"), Live, benchmark 1_000_000;
        /// Bytes of chat messages that are kept for a client with stream management until it acknowledges them; beyond that the client is disconnected, and they are delivered to another session or stored.
        "limits.unacknowledged_bytes" = core.limits.unacknowledged_bytes, bytes(64 * KIB, GIB), Live;
        /// Bytes that the node keeps for all clients with stream management together until they acknowledge them, those that
        /// are away included; each shard has an even part. Past it the sessions with the most are ended with
        /// `resource-constraint`, and what they had is delivered elsewhere or kept for later.
        "limits.all_unacknowledged_bytes" = core.limits.all_unacknowledged_bytes, bytes(16 * MIB, 1024 * GIB), Live;
        /// Largest content of one presence stanza: status, capabilities and other extensions.
        "limits.presence_bytes" = core.limits.presence_bytes, bytes(KIB, 16 * MIB), Live;
        /// Accounts that one session may have sent directed presence to.
        "limits.directed_presence" = core.limits.directed_presence, count(0, 100_000, "accounts"), Live;
        /// Contacts in the roster of one account.
        "limits.roster_contacts" = core.limits.roster.contacts, count(0, 100_000, "contacts"), Live;
        /// Subscription requests that wait for the answer of one account, from accounts that are not in its roster; 512 bytes of each are kept. A further one replaces the oldest; 0 for none.
        "limits.roster_requests" = core.limits.roster.requests, count(0, 100_000, "accounts"), Live;
        /// Bytes of the roster of one account: addresses, names and groups of its contacts, without the requests of others.
        "limits.roster_bytes" = core.limits.roster.bytes, bytes(4 * KIB, 16 * MIB), Live;
        /// Addresses that one account blocks.
        "limits.blocked_addresses" = core.limits.block_list.addresses, count(0, 100_000, "addresses"), Live;
        /// Bytes of the addresses that one account blocks.
        "limits.blocked_bytes" = core.limits.block_list.bytes, bytes(4 * KIB, 16 * MIB), Live;
        /// Bytes of what the clients of one account keep in its private storage (XEP-0049).
        "limits.private_bytes" = core.limits.private_bytes, bytes(0, 16 * MIB), Live;
        /// Nodes on which one account publishes under its own address (XEP-0163).
        "limits.nodes_per_account" = core.limits.nodes.nodes, count(0, 10_000, "nodes"), Live;
        /// Items that one of these nodes can keep; a node configured with `max` keeps this many.
        "limits.node_items" = core.limits.nodes.items, count(1, 10_000, "items"), Live;
        /// Bytes of all that one account keeps on its nodes: names, ids and payloads.
        "limits.node_bytes" = core.limits.nodes.bytes, bytes(4 * KIB, GIB), Live;
        /// Bytes of clients' capabilities, by the hashes in their presence (XEP-0115), that are kept in memory; beyond that, the oldest are dropped, and asked for again when they are needed.
        "limits.capabilities_bytes" = core.limits.capabilities_bytes, bytes(64 * KIB, GIB), Live;
        /// Bytes of the vCard of one account, or of one room, with its photo (XEP-0054).
        "limits.vcard_bytes" = core.limits.vcard_bytes, bytes(0, 16 * MIB), Live;
        /// Bytes of accounts' records (rosters, block lists, nodes) that are kept in memory; beyond that, those read first are dropped, and read again when they are needed.
        "limits.records_bytes" = core.limits.records_bytes, bytes(64 * KIB, 64 * GIB), Live;
    }

    "How long each step of a session may take." {
        /// Time from the acceptance of a connection to the end of authentication, TLS included.
        "timeouts.auth_ms" = core.timeouts.auth_ms, ms(100, HOUR), Live;
        /// Time from authentication to a bound resource.
        "timeouts.bind_ms" = core.timeouts.bind_ms, ms(100, HOUR), Live;
        /// How long a closed stream waits for the client's closing tag.
        "timeouts.close_ms" = core.timeouts.close_ms, ms(0, MINUTE), Live;
    }

    "Finding out which clients are gone (XEP-0199, RFC 6120 §4.6)." {
        /// Silence of a client after which the server pings it; 0 for never.
        "ping.idle_ms" = core.timeouts.ping_idle_ms, ms(0, DAY), Live;
        /// How long a client that was pinged may take to answer, and one with stream management (XEP-0198) to acknowledge a chat message
        /// whose sender waits for that, before its connection counts as lost.
        "ping.wait_ms" = core.timeouts.ping_wait_ms, ms(100, HOUR), Live;
        /// How long a session whose connection is lost waits for its client to resume it (XEP-0198 §5), at most: a client may ask for
        /// less, and a domain's policy `resumption_ms_max` may allow less. 0 where sessions end with their connections. Sessions that
        /// exist keep what their client was told.
        "resumption.timeout_ms" = core.timeouts.resume_ms, ms(0, DAY), Live;
        /// Bytes of parked sessions that are stored when the process ends, so that their clients can resume them after a restart. Sessions for which there is no room end, and their clients log in anew; 0 to store none.
        "resumption.stored_bytes" = server.parked_bytes_max, bytes(0, 64 * GIB), Restart;
    }

    "The certificate clients see. The files are read again when they have changed, and at SIGHUP." {
        /// Certificate chain (PEM), the server's own certificate first; empty for a self-signed certificate in the data
        /// folder.
        "tls.certificate" = node.certificate, path(0), Live;
        /// Private key (PEM) of `tls.certificate`.
        "tls.key" = node.certificate_key, path(0), Live;
        /// Folder of further certificates, for clients that ask for their hosts (SNI, RFC 6066 §3): a folder for each with `fullchain.pem` and
        /// `privkey.pem`, as `/etc/letsencrypt/live` of certbot. Of two for the same host the one that expires later is shown. Other clients
        /// are shown that of `tls.certificate`.
        "tls.certificates" = node.certificates, path(0), Live;
        /// How often the files are looked at; 0 for only at SIGHUP.
        "tls.watch_ms" = node.certificates_watch_ms, ms(0, DAY), Restart;
    }

    "How clients prove who they are." {
        /// SASL mechanisms that are offered, the preferred first. PLAIN is offered only over TLS.
        "auth.mechanisms" = core.mechanisms, Kind::Choices(Mechanism::WORDS), Restart;
        /// Lifetime of a token that a client logs in with instead of its password (XEP-0484), and so the time that it
        /// may stay away; 0 for no tokens.
        "auth.token_lifetime_ms" = core.fast.token_lifetime_ms, ms(0, 365 * DAY), Live;
        /// Accounts with tokens whose next login needs no question to the store, about 200 bytes each; 0 for none.
        "auth.remembered_accounts" = core.fast.remembered_accounts, count(0, 100_000_000, "accounts"), Live;
        /// PBKDF2 iterations of passwords that are set from now on (RFC 7677 §4 requires at least 4096).
        "auth.scram_iterations" = core.scram_iterations, count(4096, 10_000_000, "iterations"), Restart;
    }

    "Invitations: tokens by which people register an account (XEP-0445) and become contacts of whoever invited them (XEP-0379)." {
        /// Whether clients are offered to register by an invitation, in every domain, also where the domain does not let anyone create
        /// an account.
        "invitations.enabled" = core.invitations.enabled, Kind::Switch, Live;
        /// Invitations in the name of an account, whoever made them, past which it makes no more itself by a command of its client
        /// (XEP-0401); 0 for no such command. They count until they expire.
        "invitations.per_account" = core.invitations.per_account, count(0, 10_000, "invitations"), Live;
        /// Invitations that a domain may have. Those that have expired do not count.
        "invitations.per_domain" = core.invitations.per_domain, count(1, 10_000, "invitations"), Live;
        /// How long an invitation can be used that does not say otherwise.
        "invitations.valid_ms" = core.invitations.valid_ms, ms(MINUTE, 365 * DAY), Live;
        /// Base URL under which people reach the pages of invitations, such as `https://chat.example.org`; empty for no pages. A proxy
        /// passes the paths that begin with `/invitations/` to the port of the HTTP APIs.
        "invitations.url" = core.invitations.url, text(0, 1024), Restart;
    }

    "The policy of the domain named by `domain`. Other domains have policies of their own: `carillon domain set`." {
        /// Whether anyone can create an account over XMPP (XEP-0077).
        "registration.in_band" = policy.registration, Kind::Switch, Live;
        /// Whether accounts change their passwords and remove themselves over XMPP (XEP-0077 §3.2, §3.3).
        "registration.account_management" = policy.account_management, Kind::Switch, Live;
        /// Whether a login ends the account's earlier session (`single`) or is added to it (`multi`).
        "sessions.policy" = policy.sessions, Kind::Choice(SessionPolicy::WORDS), Live;
        /// Sessions of one account at the same time under `sessions.policy = "multi"`.
        "sessions.max_per_account" = policy.sessions_max, count(1, 1000, "sessions"), Live;
        /// Whether a chat message is acknowledged to its sender (XEP-0198) when it is stored or the recipient's client has acknowledged
        /// it (`true`), or when it was routed, so that a crash can lose it (`false`).
        "messages.durable" = policy.messages_durable, Kind::Switch, Live;
        /// Whether accounts of the domain exchange messages, presence and requests with those of other domains of the node whose policy
        /// says so, too. Otherwise other domains are to them as domains that are not served here.
        "messages.other_domains" = policy.other_domains, Kind::Switch, Live;
        /// Whether the domain archives chat messages (XEP-0313); an account may opt out.
        "archive.enabled" = policy.archive, Kind::Switch, Live;
        /// Days for which an archive keeps a message; 0 for ever.
        "archive.days" = policy.archive_days, count(0, 36_500, "days"), Live;
        /// Messages that the archive of one account keeps, the newest; 0 for any number.
        "archive.messages_max" = policy.archive_messages_max, count(0, 4_000_000_000, "messages"), Live;
        /// Bytes of messages that the archive of one account keeps, the newest; 0 for any number.
        "archive.bytes_max" = policy.archive_bytes_max, bytes(0, 1024 * GIB), Live;
        /// Who can create topics over XMPP: any account (`any`), or none, so that only API keys create them (`admin`).
        "pubsub.create" = policy.pubsub_create, Kind::Choice(PubsubCreate::WORDS), Live;
        /// Who can create rooms over XMPP: any account (`any`), or none, so that only API keys create them (`admin`).
        "rooms.create" = policy.rooms_create, Kind::Choice(RoomsCreate::WORDS), Live;
        /// Rooms that the domain may have, also by API keys; 0 for any number.
        "rooms.max" = policy.rooms_max, count(0, 1_000_000, "rooms"), Live;
        /// Days for which archives of rooms keep a message; 0 for as long as `archive.days`. A room can be configured to keep it for a shorter time.
        "rooms.archive_days" = policy.room_archive_days, count(0, 36_500, "days"), Live;
        /// What event streams and webhooks that ask for it are told of the domain's rooms: nothing (`off`), that they are created and destroyed and
        /// what accounts are to them (`membership`), or also what is said in those that have archives (`all`).
        "rooms.events" = policy.room_events, Kind::Choice(RoomEvents::WORDS), Live;
    }

    "Topics of all domains." {
        /// Largest number of items that a topic can be configured to keep.
        "pubsub.max_items" = core.limits.topic_items, count(1, 10_000, "items"), Live;
        /// Bytes of the items that one topic keeps, ids and payloads; beyond it the oldest are removed, as beyond its number of
        /// items. The last one always stays.
        "pubsub.max_bytes" = core.limits.topic_bytes, bytes(256 * KIB, 1024 * GIB), Live;
        /// Largest number of accounts that a topic can have as owners, publishers, members and outcasts.
        "pubsub.max_affiliations" = core.limits.topic_affiliations, count(1, 1_000_000, "accounts"), Live;
        /// Topics that one account may own; it cannot create further ones over XMPP. Topics created over HTTP have no owner.
        "pubsub.max_owned" = core.limits.topics_owned, count(0, 1_000_000, "topics"), Live;
        /// Topics that one account may be subscribed to; it cannot subscribe to further ones over XMPP.
        "pubsub.max_subscriptions" = core.limits.topics_followed, count(0, 1_000_000, "topics"), Live;
        /// Operations that may wait for one topic; further ones are refused.
        "pubsub.max_waiting" = core.limits.topic_queue, count(1, 1_000_000, "operations"), Live;
    }

    "Rooms of all domains: `docs/book/rooms.md`." {
        /// Occupants of one room at most; the configuration of a room can allow fewer. Admins and owners still enter.
        "rooms.max_occupants" = core.limits.room_occupants, count(1, 1_000_000, "occupants"), Live;
        /// Occupants of a room of which everybody is shown the presence. In a larger room only moderators are shown.
        "rooms.presence_max" = core.limits.room_presence, count(0, 1_000_000, "occupants"), Live;
        /// Largest number of accounts that a room can have as owners, admins, members and outcasts.
        "rooms.max_members" = core.limits.room_members, count(1, 1_000_000, "accounts"), Live;
        /// Rooms that one account may own; it cannot create further ones.
        "rooms.max_owned" = core.limits.rooms_owned, count(0, 1_000_000, "rooms"), Live;
        /// Rooms that one session may be in, and of which one account may be made a member.
        "rooms.max_joined" = core.limits.rooms_joined, count(1, 100_000, "rooms"), Live;
        /// Stanzas that may wait for one room; further ones are refused.
        "rooms.max_waiting" = core.limits.room_queue, count(1, 1_000_000, "stanzas"), Live;
    }

    "MUC Light in all domains: `docs/book/rooms.md`." {
        /// Whether all occupants configure a room, not only its owner. The subject is everybody's to change.
        "muclight.all_can_configure" = core.muclight.all_can_configure, Kind::Switch, Live;
        /// Whether all occupants add others to a room, not only its owner.
        "muclight.all_can_invite" = core.muclight.all_can_invite, Kind::Switch, Live;
        /// Occupants of one room at most.
        "muclight.max_occupants" = core.muclight.occupants, count(1, 1_000_000, "occupants"), Live;
        /// Rooms that one account can be in; it is not added to further ones.
        "muclight.rooms_per_user" = core.muclight.rooms_per_user, count(1, 1_000_000, "rooms"), Live;
        /// Rooms of one page of those that an account is in.
        "muclight.rooms_per_page" = core.muclight.rooms_per_page, count(1, 1000, "rooms"), Live;
        /// Fields of a room's configuration beside `roomname` and `subject`, by their names.
        "muclight.fields" = core.muclight.fields, Kind::Names, Live;
    }

    "Privacy lists (XEP-0016), for old clients; new ones block by XEP-0191: `docs/book/protocol.md`." {
        /// Whether accounts have privacy lists. They need the feature `blocking`.
        "privacy_lists.enabled" = core.privacy_lists.enabled, Kind::Switch, Restart;
        /// Lists of one account.
        "privacy_lists.max" = core.privacy_lists.bounds.lists, count(1, 1000, "lists"), Live;
        /// Rules of one list; those of the default list that block an address are bounded by `limits.blocked_addresses` instead.
        "privacy_lists.rules" = core.privacy_lists.bounds.rules, count(1, 10_000, "rules"), Live;
        /// Bytes of all lists of one account: names, addresses and groups, and 16 for each list and rule.
        "privacy_lists.bytes" = core.privacy_lists.bounds.bytes, bytes(KIB, 16 * MIB), Live;
    }

    "Real-time matches: `docs/book/matches.md`." {
        /// Matches at a time on this node; 0 for none: then players cannot connect.
        "matches.max" = core.matches.max, count(0, 100_000, "matches"), Restart;
        /// Queues of the matchmaker on this node.
        "matches.queues" = core.matches.queues, count(1, 10_000, "queues"), Live;
        /// Tickets on this node, those included whose match is played.
        "matches.tickets" = core.matches.tickets, count(1, 10_000_000, "tickets"), Live;
        /// Memory of ticks that each match keeps for players who come back.
        "matches.log_bytes" = core.matches.log_bytes, bytes(4 * KIB, 64 * MIB), Live;
        /// Matches at a time on this node that a module decides. Each has an instance of its module, with at most 4 MiB of memory.
        "matches.authoritative_max" = core.matches.authoritative_max, count(0, 100_000, "matches"), Live;
        /// For how long it is kept how a match was played that is over; 0 for not at all.
        "matches.replay_ms" = core.matches.replay_ms, ms(0, DAY), Live;
        /// Memory of all that is kept of matches that are over. Those that ended first give way.
        "matches.replay_bytes" = core.matches.replay_bytes, bytes(0, 4 * GIB), Live;
        /// Port of UDP for players who connect by QUIC; 0 for any free port, `"off"` for none.
        "matches.quic_port" = server.quic, Kind::PortOrOff, Restart;
        /// Whether the HTTP side serves a game for two windows of a browser at `/demo/match`, to this machine alone. Whoever opens it plays without an account.
        "matches.demo" = http.match_demo, Kind::Switch, Restart;
    }

    "What providers send." {
        /// Longest time to live of a notification; a request for a longer one is refused.
        "notifications.ttl_max_ms" = core.notification_ttl_max_ms, ms(SECOND, 30 * DAY), Restart;
        /// How long a client without stream management may take to send its receipt (XEP-0184); after that, a
        /// notification counts as delivered once the client's TCP acknowledged it.
        "notifications.receipt_wait_ms" = core.receipt_wait_ms, ms(0, MINUTE), Live;
        /// How long the trace of a notification can be read after the notification ended.
        "notifications.trace_retention_ms" = server.traces_kept_ms, ms(MINUTE, 365 * DAY), Restart;
        /// Traces of notifications that are on their way or not stored (`active`, `connected`), in the memory of each shard.
        "notifications.traces_bytes" = core.limits.traces_bytes, bytes(256 * KIB, 4 * GIB), Restart;
    }

    "Broadcasts: notifications for every account of a domain: `docs/book/broadcasts.md`." {
        /// Broadcasts of a domain that have not ended.
        "broadcasts.per_domain_max" = http.broadcasts.per_domain_max, count(1, 1000, "broadcasts"), Restart;
        /// Bytes that they can take up: their payloads, the name of their topic, and 256 each.
        "broadcasts.bytes_per_domain_max" = http.broadcasts.bytes_per_domain_max, bytes(64 * KIB, GIB), Restart;
    }

    "Several cells behind one API: `docs/book/cells.md`." {
        /// Whether the node is a front: it has no devices of its own, listens for no clients, and its API is that of several cells.
        "cells.front" = http.cells.front, Kind::Switch, Restart;
        /// How long a request to a cell may take. A cell that does not answer in time is away until it answers again.
        "cells.timeout_ms" = http.cells.timeout_ms, ms(100, MINUTE), Restart;
        /// Requests to one cell that may be under way at once; more wait.
        "cells.requests_max" = http.cells.requests_max, count(1, 1024, "requests"), Restart;
        /// What may be held for a cell that is away: requests with 128 bytes each. Beyond it they are refused.
        "cells.held_bytes_max" = http.cells.held_bytes_max, bytes(MIB, 64 * GIB), Restart;
        /// How long an item is held for a cell that is away. Notifications and broadcasts are held as long as their `ttl`.
        "cells.items_held_ms" = http.cells.items_held_ms, ms(SECOND, DAY), Restart;
        /// Devices that may be moving between cells at once.
        "cells.moves_max" = http.cells.moves_max, count(1, 1024, "devices"), Restart;
    }

    "Spans of OpenTelemetry: `docs/book/operations.md`." {
        /// Where spans are exported to by OTLP over HTTP, as a URL without `/v1/traces`, such as `http://127.0.0.1:4318`; empty for nowhere.
        "otel.endpoint" = http.otel.endpoint, text(0, 255), Restart;
        /// Of a million requests that come without a `traceparent`, how many are sampled. Of others whoever sends them decides.
        "otel.sample_per_million" = http.otel.sample_per_million, count(0, 1_000_000, "requests"), Restart;
    }

    "Webhooks: URLs that are told how notifications ended: `docs/book/webhooks.md`." {
        /// Whether webhooks can have `http://` URLs with public addresses. Without TLS, anyone on the way can read what is sent.
        "webhooks.allow_http" = http.webhooks.allow_http, Kind::Switch, Restart;
        /// Addresses that webhooks can have besides those of the public Internet, as addresses or networks such as
        /// `10.0.0.0/8`; by `http://`, too. Whoever can create a webhook can send requests there.
        "webhooks.allow_addresses" = http.webhooks.allow_addresses, Kind::Networks, Restart;
        /// Certificates of authorities (PEM) that the receivers of webhooks can have theirs from, besides those that the
        /// system trusts; empty for none.
        "webhooks.ca_file" = http.webhooks.ca_file, path(0), Restart;
        /// How long a request to a webhook may take as a whole.
        "webhooks.timeout_ms" = http.webhooks.timeout_ms, ms(100, MINUTE), Restart;
        /// Longest wait after the first request that failed; it doubles with each further failure, up to five minutes.
        "webhooks.retry_first_ms" = http.webhooks.retry_first_ms, ms(10, MINUTE), Restart;
        /// Age of an event from which on a failed attempt to send it makes it a dead letter.
        "webhooks.give_up_after_ms" = http.webhooks.give_up_after_ms, ms(SECOND, 30 * DAY), Restart;
    }

    "Pushes, by which apps are woken (XEP-0357): `docs/book/push.md`." {
        /// The most that a push tells of what waits: nothing of it, who sent it, or the whole of it. An app may want less.
        "push.shown" = http.push.shown, Kind::Choice(PushShown::WORDS), Restart;
        /// How long a live session may take to acknowledge what is stored for its account, before the account's apps are woken.
        "push.grace_ms" = core.push.grace_ms, ms(0, HOUR), Live;
        /// Registrations that one account may have.
        "push.per_account_max" = core.push.per_account_max, count(0, 1000, "registrations"), Live;
        /// A file with the key by which push services know this server (RFC 8292): PEM, or the number in base64url. Empty: a key that follows
        /// from the node's secret.
        "push.vapid_key_file" = http.push.vapid_key_file, path(0), Restart;
        /// Whom push services ask if something is wrong, as `mailto:admin@example.com` or a URL. Empty: `postmaster` of the domain.
        "push.vapid_subject" = http.push.vapid_subject, text(0, 255), Restart;
        /// Whether pushes can go to `http://` URLs with public addresses. Without TLS, anyone on the way can read to whom they are.
        "push.allow_http" = http.push.allow_http, Kind::Switch, Restart;
        /// Addresses that pushes can go to besides those of the public Internet, as addresses or networks such as
        /// `10.0.0.0/8`; by `http://`, too. The URLs are those that users give.
        "push.allow_addresses" = http.push.allow_addresses, Kind::Networks, Restart;
        /// How long a request to a push service may take as a whole.
        "push.timeout_ms" = http.push.timeout_ms, ms(100, MINUTE), Restart;
        /// What the URLs begin with at which senders of Web Push and UnifiedPush reach applications on devices, whose clients distribute the pushes: `https://` and
        /// the host by which the HTTP side is reached from outside. Empty: this server is no push service.
        "push.service_url" = core.push.service.url, text(0, 255), Restart;
        /// Endpoints that one account may have.
        "push.endpoints_per_account" = core.push.service.per_account_max, count(0, 1000, "endpoints"), Live;
        /// How long an endpoint takes pushes after its client asked for it last. Clients ask again in time.
        "push.endpoint_ms" = core.push.service.endpoint_ms, ms(MINUTE, 365 * DAY), Live;
    }

    "Short links, on hosts of their own: `docs/book/links.md`." {
        /// Hosts of short links, each with the domain that it belongs to: `go.example.com=example.com`. Its short URLs begin with
        /// `https://`; what they begin with otherwise is written in full: `http://localhost:8080=localhost`. A domain can have several, the
        /// first of which is in the links of notifications. A host of links serves nothing else.
        "links.hosts" = http.links.hosts, Kind::Names, Restart;
        /// Schemes of apps that links can lead to, besides `http` and `https`.
        "links.app_schemes" = http.links.app_schemes, Kind::Names, Restart;
        /// Whether people without an API key can make links. They can lead to `links.public_targets` only.
        "links.public" = http.links.public, Kind::Switch, Restart;
        /// Hosts that links of people without a key can lead to, with their subdomains.
        "links.public_targets" = http.links.public_targets, Kind::Names, Restart;
        /// Links that people without a key can make per minute from one address. Behind a proxy all have its address.
        "links.public_per_minute" = http.links.public_per_minute, count(1, 10_000, "links"), Restart;
        /// Memory for links that were followed lately. A link that is in it is answered without the store.
        "links.cache_bytes" = http.links.cache_bytes, bytes(64 * KIB, 16 * GIB), Restart;
        /// Links that a domain can have, those that are taken down among them.
        "links.per_domain_max" = http.links.per_domain_max, count(1, 1_000_000_000, "links"), Restart;
        /// Bytes of the codes and URLs of a domain's links.
        "links.bytes_per_domain_max" = http.links.bytes_per_domain_max, bytes(64 * KIB, 1024 * GIB), Restart;
    }

    "Files that clients upload (XEP-0363): `docs/book/upload.md`." {
        /// What the URLs of files begin with: `https://`, a host that is for nothing else, and its port if that is needed. What comes for this host
        /// at the port of the HTTP side is for files. Empty: nothing is uploaded.
        "upload.url" = core.upload.url, text(0, 255), Restart;
        /// Largest file.
        "upload.file_bytes" = core.upload.file_bytes, bytes(1, 1024 * GIB), Live;
        /// Bytes of the files of one account, and of the slots that it has asked for; each counts 4,096 more.
        "upload.account_bytes" = core.upload.account_bytes, bytes(1, 1024 * GIB), Live;
        /// Bytes of the files and slots of one domain, counted in the same way.
        "upload.domain_bytes" = core.upload.domain_bytes, bytes(1, 1024 * 1024 * GIB), Live;
        /// Media types of files that are taken, such as `image/*` or `text/plain`. Empty: all, and files without one.
        "upload.types" = core.upload.types, Kind::Names, Live;
        /// For how long a client can begin to put a file into its slot.
        "upload.slot_ms" = core.upload.slot_ms, ms(SECOND, DAY), Live;
        /// For how long a file is kept.
        "upload.kept_ms" = core.upload.kept_ms, ms(SECOND, 3650 * DAY), Restart;
        /// The folder of the files. Empty: `uploads` in the data folder. Nodes with one store share it.
        "upload.folder" = http.upload.folder, path(0), Restart;
        /// A bucket of Amazon S3, or of another store with its protocol, for the files. What is being uploaded is in `upload.folder` until it is whole, and files that are there stay there. Empty: the
        /// folder alone. The binary has to be built with it.
        "upload.s3_bucket" = http.upload.s3.bucket, text(0, 63), Restart;
        /// What the names of the objects begin with, such as `files/`.
        "upload.s3_prefix" = http.upload.s3.prefix, text(0, 255), Restart;
        /// The region of the bucket. Empty: `AWS_REGION`. Credentials are found as the tools of AWS find theirs.
        "upload.s3_region" = http.upload.s3.region, text(0, 64), Restart;
        /// The URL of another service than AWS, `https://HOST`. Empty: AWS.
        "upload.s3_endpoint" = http.upload.s3.endpoint, text(0, 255), Restart;
        /// A file with the certificates, PEM, that this service is known by; without it those of the system.
        "upload.s3_ca_file" = http.upload.s3.ca_file, path(0), Restart;
        /// How long uploading a file may take.
        "upload.put_ms" = http.upload.put_ms, ms(SECOND, DAY), Restart;
        /// How often what has expired or was deleted is removed from the folder.
        "upload.sweep_ms" = http.upload.sweep_ms, ms(100, HOUR), Restart;
    }

    "Features that can be switched off." {
        /// Whether clients can use stream management (XEP-0198).
        "stream_management.enabled" = node.stream_management, Kind::Switch, Restart;
        /// Features that are switched off, by name; none of their code runs.
        "features.disabled" = core.features_disabled, Kind::Names, Restart;
    }

    "Delivery of one topic item, or of what is said in a room, to many." {
        /// Deliveries of an item between two looks at other work, so that logins and direct messages do not wait.
        "fanout.slice" = core.fanout.slice, count(1, 65_536, "deliveries"), Live;
        /// Deliveries of one topic, or of one room, that may wait in a shard; beyond that, publishing to the topic is refused until half
        /// of them are left, and so is what occupants say in the room. One item, or message, is accepted however many are given it.
        "fanout.max_waiting" = core.fanout.waiting_deliveries, count(1, 1_000_000_000, "deliveries"), Live;
        /// Memory that the waiting deliveries of all topics may take in a shard, and those of all rooms; beyond that, more is refused in
        /// the same way.
        "fanout.max_waiting_bytes" = core.fanout.waiting_bytes, bytes(MIB, 16 * GIB), Live;
    }

    "A cell: several nodes that serve as one (docs/book/cluster.md)." {
        /// The NATS servers that the nodes of the cell share, `nats://HOST:PORT` or `tls://HOST:PORT`, with commas between. Empty for a node that
        /// runs alone. Needs `store.url` and `cell.secret_file`; the binary has to be built with it.
        "cell.nats" = cell.nats, text(0, 4096), Restart;
        /// A file of NATS credentials, by which the node says who it is.
        "cell.nats_credentials" = cell.nats_credentials, path(0), Restart;
        /// A file with the certificates, PEM, that NATS servers are known by over TLS; without it those of the system.
        "cell.nats_ca_file" = cell.nats_ca_file, path(0), Restart;
        /// A file with the certificate (PEM) by which the node says who it is to NATS servers that verify clients. Needs `cell.nats_key`.
        "cell.nats_certificate" = cell.nats_certificate, path(0), Restart;
        /// A file with the private key (PEM) of `cell.nats_certificate`.
        "cell.nats_key" = cell.nats_key, path(0), Restart;
        /// What the subjects of this cell begin with on NATS: cells that share servers have different ones.
        "cell.prefix" = cell.prefix, text(1, 64), Restart;
        /// The newest version of what nodes say to each other that this node takes part in; a cell uses the newest that all its nodes do. Less than what
        /// the release knows keeps the way back to the release before open until the new one has proved itself on all nodes.
        "cell.form_max" = cell.form_max, count(WRITTEN_OLDEST as u64, VERSION as u64, ""), Restart;
        /// A file of 32 random bytes that all nodes of the cell share: what one gives to a client, such as a token, another knows.
        "cell.secret_file" = cell.secret_file, path(0), Restart;
        /// A Redis or Valkey in which nodes write down the sessions that can be resumed, `redis://HOST:PORT` or `rediss://HOST:PORT` with TLS: if a node
        /// dies, the others go on with them. Empty: they end with their node. All nodes of a cell have the same. The binary has to be built with it.
        "cell.redis" = cell.redis, text(0, 4096), Restart;
        /// A file with the password for `cell.redis`.
        "cell.redis_password_file" = cell.redis_password_file, path(0), Restart;
        /// A file with the certificates, PEM, that Redis is known by over TLS; without it those of the system.
        "cell.redis_ca_file" = cell.redis_ca_file, path(0), Restart;
        /// A file with the certificate (PEM) by which the node says who it is to a Redis that verifies clients. Needs `cell.redis_key`.
        "cell.redis_certificate" = cell.redis_certificate, path(0), Restart;
        /// A file with the private key (PEM) of `cell.redis_certificate`.
        "cell.redis_key" = cell.redis_key, path(0), Restart;
    }

    "The database." {
        /// A PostgreSQL database, `postgresql://USER@HOST/DATABASE`, in place of the embedded one: `docs/book/postgresql.md`. Parameters such as
        /// `sslmode`, `sslrootcert`, `sslcert`, `sslkey` and `connect_timeout` follow after `?`; there is no password in it. The binary has to be
        /// built with it.
        "store.url" = node.store_url, text(0, 4096), Restart;
        /// A file with the password for `store.url`, read for each connection. Without it the variable `PGPASSWORD` is taken, if there is one.
        "store.password_file" = node.store_password_file, path(0), Restart;
        /// Whether the embedded database overwrites everything that is deleted, such as messages that were delivered, also where a whole page is given
        /// up, which costs writing it. What is removed with an account, a domain or an archive is overwritten in any case.
        "store.secure_delete" = store.secure_delete, Kind::Switch, Restart;
        /// Threads that read from the database; one more thread writes.
        "store.readers" = store.readers, count(1, 64, "threads"), Restart;
    }

    "The event log. One line per event, for analysis: `docs/book/event-log.md`." {
        /// Whether the event log is written.
        "event_log.enabled" = server.event_log.enabled, Kind::Switch, Restart;
        /// Folder of the event log's files; empty for `events` in the data folder.
        "event_log.path" = server.event_log.folder, path(0), Restart;
        /// Form of a line of the event log: a JSON object (`json`), or values between tabs (`compact`).
        "event_log.format" = server.event_log.format, Kind::Choice(Format::WORDS), Restart;
        /// Events that the event log has a line for.
        "event_log.events" = server.event_log.kinds, Kind::Choices(EventKind::WORDS), Live;
        /// Size at which a file of the event log is closed and the next one begins.
        "event_log.rotate_bytes" = server.event_log.rotate_bytes, bytes(64 * KIB, 1024 * GIB), Restart;
        /// Age at which a file of the event log is closed and the next one begins; 0 for any age.
        "event_log.rotate_interval_ms" = server.event_log.rotate_ms, ms(0, 365 * DAY), Restart;
        /// Whether closed files of the event log are compressed (zstd).
        "event_log.compress" = server.event_log.compress, Kind::Switch, Restart;
        /// Closed files of the event log that are kept; 0 for all.
        "event_log.keep_files" = server.event_log.keep_files, count(0, 1_000_000, "files"), Restart;
        /// How long closed files of the event log are kept; 0 for ever.
        "event_log.keep_ms" = server.event_log.keep_ms, ms(0, 3650 * DAY), Restart;
        /// Memory for events on their way to the disk; events beyond that wait in files.
        "event_log.memory_bytes" = server.event_log.memory_bytes, bytes(MIB, 16 * GIB), Restart;
    }

    "The end of the node." {
        /// How long the node goes on as before after SIGTERM while `/readyz` already answers 503: as long as a load balancer
        /// needs to notice. A second signal ends the wait.
        "drain.delay_ms" = node.drain_delay_ms, ms(0, HOUR), Live;
        /// Over how long streams are closed after SIGTERM and `drain.delay_ms`, in slices of 100 or more, so that clients do not return all
        /// at once. Clients that know `<retry-after xmlns='urn:carillon:retry:0'/>` are told to come back over as long a time.
        "drain.spread_ms" = node.drain_spread_ms, ms(0, HOUR), Restart;
        /// How long sessions are given to end after that; one more signal ends the node at once.
        "drain.timeout_ms" = node.drain_timeout_ms, ms(0, HOUR), Restart;
    }

    "Live upgrades: the node goes on in the process of another binary." {
        /// How long the new process may take until it has checked everything.
        "upgrade.start_timeout_ms" = upgrade.start_timeout_ms, ms(SECOND, HOUR), Live;
        /// How long HTTP requests and logins that are under way are given to end before the node is handed over. Those that come
        /// meanwhile wait.
        "upgrade.requests_timeout_ms" = upgrade.requests_timeout_ms, ms(0, MINUTE), Live;
        /// How long clients may wait until the new process has every session; after that the old process goes on.
        "upgrade.pause_timeout_ms" = upgrade.pause_timeout_ms, ms(100, MINUTE), Live;
        /// How long the old process stays for connections under TLS 1.2, which only it can read. After that they are closed, and their
        /// clients resume their sessions.
        "upgrade.relay_timeout_ms" = upgrade.relay_timeout_ms, ms(0, 7 * DAY), Live;
        /// Whether the process that was started first stays after it handed the node over, passes signals on to the process that has
        /// the node, and ends with it: for a parent that takes its end for the node's. PID 1 of a container always stays; systemd needs
        /// no such process.
        "upgrade.stay" = upgrade.stay, Kind::Switch, Live;
    }

    "The node's log, on standard error." {
        /// Lowest level that is logged.
        "log.level" = log.level, Kind::Choice(LogLevel::WORDS), Live;
        /// Form of a line of the log: text for people, or a JSON object.
        "log.format" = log.format, Kind::Choice(LogFormat::WORDS), Restart;
    }
}
