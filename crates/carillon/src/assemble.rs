//! The wiring: settings become what each crate is started with. The only place that knows every concrete type.

use crate::config::Settings;
use carillon_backend::sqlite;
use carillon_core::sasl::fast;
use carillon_core::settings as core;
use carillon_server::events::{self, Kinds};
use carillon_server::tls::{self, SettingsError};
use carillon_server::{Bounds, Light, Options, WebSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a failure counter needs when the operator wants no bound.
const UNBOUNDED: u32 = u32::MAX;
/// When an idle client is asked if it never is to be: in some ten thousand years.
const NEVER_MS: u64 = u64::MAX / 65_536;

/// The core's settings. `secret` is the node's own, the same after a restart.
pub fn core(settings: &Settings, secret: [u8; 32]) -> core::Settings {
    core::Settings {
        limits: limits(settings),
        timeouts: core::Timeouts {
            auth_ms: settings.timeouts.auth_ms,
            bind_ms: settings.timeouts.bind_ms,
            close_ms: settings.timeouts.close_ms,
            ping_idle_ms: if settings.ping.idle_ms == 0 { NEVER_MS } else { settings.ping.idle_ms },
            ping_wait_ms: settings.ping.wait_ms,
        },
        fast: fast::Settings {
            token_lifetime_ms: settings.auth.token_lifetime_ms,
            remembered_accounts: settings.auth.remembered_accounts,
        },
        mechanisms: settings.auth.mechanisms.clone(),
        scram_iterations: settings.auth.scram_iterations,
        secret,
        features_disabled: settings.features.all_disabled(),
        fanout: core::Fanout {
            slice: settings.fanout.slice as usize,
            waiting_deliveries: settings.fanout.max_waiting,
            waiting_bytes: settings.fanout.max_waiting_bytes,
        },
        light: light(settings),
        notification_ttl_max_ms: settings.notifications.ttl_max_ms,
        receipt_wait_ms: settings.notifications.receipt_wait_ms,
    }
}

fn light(settings: &Settings) -> core::Light {
    let light = &settings.light;
    let domain = if light.domain.is_empty() { &settings.node.domain } else { &light.domain };
    // A domain's name as the node knows it; one that is no name is found nowhere, and the clients are told so.
    let domain = carillon_wire::jid::prepare_domain(domain).unwrap_or_default();
    core::Light {
        domain: domain.into(),
        subscriptions: light.subscriptions,
        idle_timeout_ms: if light.idle_timeout_ms == 0 { NEVER_MS } else { light.idle_timeout_ms },
    }
}

fn limits(settings: &Settings) -> core::Limits {
    let bound = |n: u32| if n == 0 { UNBOUNDED } else { n };
    let limits = &settings.limits;
    core::Limits {
        stanza_bytes: limits.stanza_bytes,
        stanza_bytes_before_auth: limits.stanza_bytes_before_auth,
        depth: limits.depth,
        auth_attempts: limits.auth_attempts,
        auth_failures_per_address: bound(limits.auth_failures_per_address),
        auth_failures_per_account_and_address: bound(limits.auth_failures_per_account_and_address),
        auth_failures_per_account: bound(limits.auth_failures_per_account),
        registrations_per_address: bound(limits.registrations_per_address),
        auth_window_ms: limits.auth_failures_window_ms,
        rates: core::Rates {
            stanzas_per_second: limits.stanzas_per_second,
            stanzas_burst: limits.stanzas_burst,
            bytes_per_second: limits.bytes_per_second,
            bytes_burst: limits.bytes_burst,
        },
        offline_messages: limits.offline_messages,
        pending_notifications: limits.pending_notifications,
        unacknowledged: limits.unacknowledged_stanzas,
        unacknowledged_bytes: limits.unacknowledged_bytes,
        topic_queue: settings.pubsub.max_waiting,
        topic_affiliations: settings.pubsub.max_affiliations,
        topic_items: settings.pubsub.max_items,
        topics_owned: settings.pubsub.max_owned,
        topics_followed: settings.pubsub.max_subscriptions,
        presence_bytes: limits.presence_bytes,
        directed_presence: limits.directed_presence,
        traces_bytes: settings.notifications.traces_bytes,
        domains_counted: settings.http.metrics_domains,
    }
}

/// The certificate: the operator's, or a self-signed one of the data folder.
pub fn certificate(settings: &Settings) -> Result<tls::Settings, SettingsError> {
    match (&settings.tls.certificate, &settings.tls.key) {
        (Some(certificate), Some(key)) => tls::Settings::load(certificate, key),
        _ => tls::Settings::self_signed_in(&settings.node.data_dir, &certified_names(settings)),
    }
}

/// Whom the self-signed certificate is for: the domain, and the names and addresses by which clients reach this machine.
fn certified_names(settings: &Settings) -> Vec<String> {
    let mut names = vec![settings.node.domain.clone()];
    // A host name in other letters cannot be in a certificate, and its ASCII form may be.
    names.extend(Some(settings.listen.host.clone()).filter(|host| !host.is_empty() && host.is_ascii()));
    names.extend(["localhost", "127.0.0.1", "::1"].map(str::to_owned));
    let addresses = settings.listen.address.iter().filter(|address| !address.is_unspecified());
    names.extend(addresses.map(ToString::to_string));
    let mut seen = std::collections::HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

/// What the server is started with.
pub fn server(settings: &Settings, tls: tls::Settings, core: Arc<core::Settings>) -> Options {
    Options {
        addresses: settings.listen.address.clone(),
        c2s: settings.c2s.enabled.then_some(settings.c2s.port),
        c2s_tls: settings.c2s_tls.enabled.then_some(settings.c2s_tls.port),
        websocket: settings.websocket.enabled.then(|| WebSocket {
            port: settings.websocket.port,
            tls: settings.websocket.tls,
            path: settings.websocket.path.clone(),
        }),
        trusted_proxies: settings.listen.trusted_proxies.clone(),
        light: settings.light.port.map(|port| Light { port, tls: settings.light.tls }),
        shards: settings.node.shards,
        backlog: settings.listen.backlog as i32,
        reuse_port: settings.listen.reuse_port,
        nodelay: settings.listen.nodelay,
        io_uring: settings.node.io_uring,
        bounds: bounds(settings),
        out_queue_bytes: settings.limits.out_queue_bytes,
        traces_kept_ms: settings.notifications.trace_retention_ms,
        events: settings.event_log.enabled.then(|| event_log(settings)),
        ..Options::new(tls, core)
    }
}

/// How the event log is kept.
fn event_log(settings: &Settings) -> events::Options {
    let log = &settings.event_log;
    events::Options {
        folder: event_folder(settings),
        format: log.format,
        kinds: event_kinds(settings),
        rotate_bytes: log.rotate_bytes,
        rotate_ms: log.rotate_interval_ms,
        compress: log.compress,
        keep_files: log.keep_files,
        keep_ms: log.keep_ms,
        memory_bytes: log.memory_bytes,
    }
}

/// The folder of the event log.
pub fn event_folder(settings: &Settings) -> PathBuf {
    settings.event_log.path.clone().unwrap_or_else(|| settings.node.data_dir.join("events"))
}

/// What the event log keeps.
pub fn event_kinds(settings: &Settings) -> Kinds {
    Kinds::of(settings.event_log.events.iter().copied())
}

/// Who gets in.
pub fn bounds(settings: &Settings) -> Bounds {
    Bounds {
        connections: settings.limits.max_connections.into(),
        connections_per_address: settings.limits.connections_per_address,
        connects_per_second: settings.limits.connect_rate_per_second,
        handshakes_in_flight: settings.limits.handshakes_in_flight,
    }
}

/// How the store is opened.
pub fn store(settings: &Settings) -> sqlite::Options {
    let path = settings.node.data_dir.join("carillon.db");
    sqlite::Options { readers: settings.store.readers.into(), ..sqlite::Options::new(path) }
}

/// What the HTTP side is started with. `ports` are those the server bound.
pub fn http(settings: &Settings, ports: carillon_server::Ports) -> carillon_http::Options {
    let host = if settings.listen.host.is_empty() { &settings.node.domain } else { &settings.listen.host };
    let scheme = if settings.websocket.tls { "wss" } else { "ws" };
    let made = ports.websocket.map(|port| format!("{scheme}://{host}:{port}{}", settings.websocket.path));
    let websocket_url =
        if settings.websocket.url.is_empty() { made } else { Some(settings.websocket.url.clone()) };
    carillon_http::Options {
        default_domain: settings.node.domain.clone(),
        body_bytes_max: settings.http.body_bytes_max,
        bodies_bytes_max: settings.http.bodies_bytes_max,
        payload_bytes_max: settings.http.payload_bytes_max,
        connections_max: settings.http.connections_max,
        streams_max: settings.http.streams_max,
        notification_ttl_max_ms: settings.notifications.ttl_max_ms,
        scram_iterations: settings.auth.scram_iterations,
        metrics_key_required: settings.http.metrics_key,
        drain_timeout_ms: settings.drain.timeout_ms,
        endpoints: carillon_http::Endpoints {
            host: (!settings.listen.host.is_empty()).then(|| settings.listen.host.clone()),
            c2s_port: ports.c2s,
            c2s_tls_port: ports.c2s_tls,
            websocket_url,
        },
        ..carillon_http::Options::default()
    }
}

/// The node's secret: 32 bytes in the data folder, made once.
pub fn secret(data_dir: &Path) -> std::io::Result<[u8; 32]> {
    let path = data_dir.join("node.secret");
    match std::fs::read(&path) {
        Ok(bytes) if bytes.len() == 32 => Ok(bytes.try_into().expect("32 bytes")),
        Ok(_) => Err(std::io::Error::other(format!(
            "{} is not 32 bytes; remove it to have a new one",
            path.display()
        ))),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            let mut bytes = [0; 32];
            getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
            crate::files::write_whole(&path, &bytes, 0o600)?;
            Ok(bytes)
        }
        Err(e) => Err(e),
    }
}
