//! What others than this machine reach without TLS, or without a key.

use super::Finding;
use crate::config::Settings;
use std::net::{IpAddr, SocketAddr};

/// What is exposed. An address counts unless it is one of loopback: who else reaches it, the settings cannot say.
pub(super) fn inspect(settings: &Settings) -> Vec<Finding> {
    let (server, node) = (&settings.server, &settings.node);
    let clients = |port: Option<u16>| exposed(&server.addresses, port?);
    let http = exposed(settings.http_addresses(), node.http_port);
    let https = node.https_port.and_then(|port| exposed(settings.https_addresses(), port));
    let metrics = http.as_deref().or(https.as_deref());
    let websocket = clients(server.websocket.wanted()).filter(|_| !server.websocket.tls);
    let light = clients(server.light.port).filter(|_| !server.light.tls);
    // Whoever names proxies has one in front of this port.
    let websocket = websocket.filter(|_| server.trusted_proxies.is_empty());
    let found = [
        http.as_deref().map(|at| http_without_tls(at, node.http_addresses.is_empty())),
        metrics.filter(|_| !settings.http.metrics_key_required).map(open_metrics),
        websocket.as_deref().map(plain_websocket),
        light.as_deref().map(plain_light),
    ];
    found.into_iter().flatten().collect()
}

/// Where a port listens that others than this machine may reach.
fn exposed(addresses: &[IpAddr], port: u16) -> Option<String> {
    let others = addresses.iter().filter(|address| !address.to_canonical().is_loopback());
    let listed: Vec<String> = others.map(|address| SocketAddr::new(*address, port).to_string()).collect();
    (!listed.is_empty()).then(|| listed.join(", "))
}

fn http_without_tls(at: &str, is_of_clients: bool) -> Finding {
    let whose =
        if is_of_clients { " (it is empty, which means the addresses of listen.address)" } else { "" };
    Finding::warning(
        "http.address",
        format!(
            "the HTTP APIs listen on {at} without TLS{whose}: API keys and passwords can be read on the way"
        ),
        "set it to [\"127.0.0.1\"] and https.port for others, or let nothing but a proxy with TLS reach the port",
    )
}

fn open_metrics(at: &str) -> Finding {
    Finding::warning(
        "http.metrics_key",
        format!("whoever reaches {at} can read /metrics, the names of domains among them"),
        "set it to true, and give Prometheus an API key with scope admin; or let nobody else reach the port",
    )
}

fn plain_websocket(at: &str) -> Finding {
    Finding::warning(
        "websocket.tls",
        format!(
            "the WebSocket port listens on {at} without TLS: passwords and messages can be read on the way"
        ),
        "set it to true; or let nothing but a proxy with TLS reach the port, and list the proxy in listen.trusted_proxies; or set \
         websocket.enabled to false",
    )
}

fn plain_light(at: &str) -> Finding {
    Finding::warning(
        "light.tls",
        format!(
            "the light protocol listens on {at} without TLS: what is published can be read and altered on the way"
        ),
        "set it to true, unless what is published is public and need not be believed",
    )
}
