//! Rules that hold between settings, or that a bound cannot say.

use super::{Config, Origin, Place, Problem, Setting, Settings, push_apps, push_templates, queues};
use carillon_core::pipeline::ORDER;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Problems of settings that do not fit together.
pub(super) fn check(config: &Config) -> Vec<Problem> {
    let settings = &config.settings;
    let broken = [
        ports(settings),
        some_listener(settings),
        listen_address(settings),
        proxy_protocol(settings),
        stanza_bytes(settings),
        tls(settings),
        websocket_path(settings),
        mechanisms(settings),
        features(settings),
        links(settings),
        uploads(settings),
        push_service(settings),
        otel(settings),
        match_demo(settings),
        cell(settings),
        https_clients(settings),
        bus_certificate(settings),
        log_certificate(settings),
    ];
    let rules = broken.into_iter().flatten().map(|Broken { settings, rule }| Problem::Rule {
        place: place(config, &settings),
        key: settings[0].into(),
        rule,
    });
    let of_tables = [queues::check(config), push_apps::check(config), push_templates::check(config)];
    rules.chain(of_tables.into_iter().flatten()).collect()
}

/// A rule that is broken.
struct Broken {
    /// The settings that break it together; the first is the one to change.
    settings: Vec<&'static str>,
    rule: String,
}

fn broken(settings: &[&'static str], rule: impl Into<String>) -> Option<Broken> {
    Some(Broken { settings: settings.to_vec(), rule: rule.into() })
}

/// Where the first of `keys` was set that was.
fn place(config: &Config, keys: &[&str]) -> Place {
    let origins = keys.iter().map(|key| {
        config.origin(Setting::named(key).expect("rules name settings that exist: a test breaks each"))
    });
    let mut places = origins.filter_map(|origin| match origin {
        Origin::Set(place) => Some(place.clone()),
        Origin::Default | Origin::Profile => None,
    });
    places.next().expect("defaults alone break no rule: a test loads them")
}

/// Two listeners cannot share a port; 0 is never the same one.
fn ports(s: &Settings) -> Option<Broken> {
    let listeners = [
        (s.server.c2s.wanted(), "c2s.port"),
        (s.server.c2s_tls.wanted(), "c2s_tls.port"),
        (s.server.websocket.wanted(), "websocket.port"),
        (s.server.light.port, "light.port"),
        (Some(s.node.http_port), "http.port"),
        (s.node.https_port, "https.port"),
        (s.node.health_port, "health.port"),
    ];
    let mut taken = BTreeMap::new();
    for (port, key) in listeners {
        let Some(port) = port.filter(|port| *port != 0) else { continue };
        if let Some(other) = taken.insert(port, key) {
            return broken(&[key, other], format!("port {port} is that of {other} already"));
        }
    }
    None
}

fn some_listener(s: &Settings) -> Option<Broken> {
    if s.server.c2s.enabled || s.server.c2s_tls.enabled || s.server.websocket.enabled {
        return None;
    }
    broken(
        &["c2s.enabled", "c2s_tls.enabled", "websocket.enabled"],
        "one of c2s.enabled, c2s_tls.enabled and websocket.enabled has to be true",
    )
}

fn listen_address(s: &Settings) -> Option<Broken> {
    if s.server.addresses.is_empty() {
        broken(&["listen.address"], "it needs at least one address")
    } else {
        None
    }
}

/// PROXY headers that nobody is trusted to send.
fn proxy_protocol(s: &Settings) -> Option<Broken> {
    if s.server.proxy_protocol.is_empty() || !s.server.trusted_proxies.is_empty() {
        return None;
    }
    broken(
        &["listen.trusted_proxies", "listen.proxy_protocol"],
        "it needs the addresses of the proxies, because listen.proxy_protocol is set",
    )
}

fn stanza_bytes(s: &Settings) -> Option<Broken> {
    let (before, after) = (s.core.limits.stanza_bytes_before_auth, s.core.limits.stanza_bytes);
    if before <= after {
        return None;
    }
    broken(
        &["limits.stanza_bytes_before_auth", "limits.stanza_bytes"],
        format!("{before} is over limits.stanza_bytes, which is {after}"),
    )
}

fn tls(s: &Settings) -> Option<Broken> {
    match (&s.node.certificate, &s.node.certificate_key) {
        (Some(_), None) => {
            broken(&["tls.key", "tls.certificate"], "it has to be set, because tls.certificate is")
        }
        (None, Some(_)) => broken(&["tls.certificate", "tls.key"], "it has to be set, because tls.key is"),
        _ => None,
    }
}

/// Certificates are demanded that nobody could know.
fn https_clients(s: &Settings) -> Option<Broken> {
    if !s.node.https_client_required || s.node.https_client_ca.is_some() {
        return None;
    }
    broken(
        &["https.client_ca", "https.client_required"],
        "it has to be set, because https.client_required is",
    )
}

fn bus_certificate(s: &Settings) -> Option<Broken> {
    match (&s.cell.nats_certificate, &s.cell.nats_key) {
        (Some(_), None) => broken(
            &["cell.nats_key", "cell.nats_certificate"],
            "it has to be set, because cell.nats_certificate is",
        ),
        (None, Some(_)) => {
            broken(&["cell.nats_certificate", "cell.nats_key"], "it has to be set, because cell.nats_key is")
        }
        _ => None,
    }
}

fn log_certificate(s: &Settings) -> Option<Broken> {
    match (&s.cell.redis_certificate, &s.cell.redis_key) {
        (Some(_), None) => broken(
            &["cell.redis_key", "cell.redis_certificate"],
            "it has to be set, because cell.redis_certificate is",
        ),
        (None, Some(_)) => broken(
            &["cell.redis_certificate", "cell.redis_key"],
            "it has to be set, because cell.redis_key is",
        ),
        _ => None,
    }
}

fn websocket_path(s: &Settings) -> Option<Broken> {
    if s.server.websocket.path.starts_with('/') {
        None
    } else {
        broken(&["websocket.path"], "it has to begin with /")
    }
}

fn mechanisms(s: &Settings) -> Option<Broken> {
    if s.core.mechanisms.is_empty() { broken(&["auth.mechanisms"], "it needs at least one") } else { None }
}

fn features(s: &Settings) -> Option<Broken> {
    let names: Vec<&str> = ORDER.iter().map(|feature| feature.name).collect();
    let unknown = s.core.features_disabled.iter().find(|name| !names.contains(&name.as_str()))?;
    broken(&["features.disabled"], format!("there is no feature {unknown}; there are {}", names.join(", ")))
}

fn links(s: &Settings) -> Option<Broken> {
    carillon_http::check_links(&s.http.links)
        .err()
        .and_then(|(key, rule)| broken(&[key, "links.public"], rule))
}

/// A game that anybody plays without an account, where others reach it.
fn match_demo(s: &Settings) -> Option<Broken> {
    let is_far = |addresses: &[IpAddr]| addresses.iter().any(|address| !address.to_canonical().is_loopback());
    let is_reached =
        is_far(s.http_addresses()) || (s.node.https_port.is_some() && is_far(s.https_addresses()));
    if !s.http.match_demo || !is_reached {
        return None;
    }
    broken(
        &["matches.demo", "http.address", "https.address"],
        "it is for nodes whose HTTP side only this machine reaches: set it to false, or http.address to 127.0.0.1",
    )
}

fn uploads(s: &Settings) -> Option<Broken> {
    carillon_http::check_uploads(&s.core.upload, &s.http.links)
        .err()
        .and_then(|(key, rule)| broken(&[key, "upload.url"], rule))
}

fn push_service(s: &Settings) -> Option<Broken> {
    carillon_http::check_push_service(&s.core.push.service).err().and_then(|(key, rule)| broken(&[key], rule))
}

fn otel(s: &Settings) -> Option<Broken> {
    carillon_http::check_otel(&s.http.otel.endpoint).err().and_then(|rule| broken(&["otel.endpoint"], rule))
}

/// What a node of a cell needs besides the bus.
fn cell(s: &Settings) -> Option<Broken> {
    if s.cell.nats.is_empty() {
        return None;
    }
    let because = "it has to be set, because cell.nats is";
    if !cfg!(all(feature = "nats", feature = "postgres")) {
        let rule =
            "this binary was built without NATS and PostgreSQL: build it with `--features nats,postgres`";
        return broken(&["cell.nats"], rule);
    }
    if s.node.store_url.is_empty() {
        return broken(
            &["store.url", "cell.nats"],
            format!("{because}: the nodes of a cell share a PostgreSQL database"),
        );
    }
    if s.cell.secret_file.is_none() {
        return broken(
            &["cell.secret_file", "cell.nats"],
            format!("{because}: the nodes of a cell share a secret"),
        );
    }
    None
}
