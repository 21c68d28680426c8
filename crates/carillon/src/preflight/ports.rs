//! Whether every listener can have its addresses and its port.

use super::{Finding, Purpose};
use crate::config::Settings;
use crate::files::NodeFile;
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::Path;

/// Ports below this one need a privilege.
const UNPRIVILEGED: u16 = 1024;

/// What is wrong with the listeners.
pub(super) fn inspect(settings: &Settings, purpose: Purpose) -> Vec<Finding> {
    let running = running(&settings.node.data_dir);
    let mut findings = Vec::new();
    for (setting, addresses, port) in listeners(settings) {
        for &address in addresses {
            let at = SocketAddr::new(address, port);
            let Err(error) = bind(at) else { continue };
            // The server leaves an IPv6 wildcard out where the host has no IPv6.
            let left_out = address == Ipv6Addr::UNSPECIFIED && addresses.len() > 1;
            if left_out && error.kind() != ErrorKind::AddrInUse {
                continue;
            }
            let node = running.as_ref().filter(|_| error.kind() == ErrorKind::AddrInUse);
            match node.filter(|node| node.ports.contains(&port)) {
                Some(_) if purpose != Purpose::Start => {}
                node => findings.push(finding(setting, at, &error, node)),
            }
        }
    }
    findings
}

/// Every listener that is wanted: the setting of its port, its addresses and its port.
fn listeners(s: &Settings) -> Vec<(&'static str, &[IpAddr], u16)> {
    let clients = s.server.addresses.as_slice();
    // A front listens for no clients.
    let server = crate::assemble::server(s);
    let all = [
        (server.c2s.wanted(), "c2s.port", clients),
        (server.c2s_tls.wanted(), "c2s_tls.port", clients),
        (server.websocket.wanted(), "websocket.port", clients),
        (server.light.port, "light.port", clients),
        (Some(s.node.http_port), "http.port", s.http_addresses()),
        (s.node.https_port, "https.port", s.https_addresses()),
        (s.node.health_port, "health.port", s.node.health_addresses.as_slice()),
    ];
    all.into_iter().filter_map(|(port, setting, addresses)| Some((setting, addresses, port?))).collect()
}

/// The node that runs on a data folder. A file that a crashed node left names no process of this program.
fn running(data_dir: &Path) -> Option<NodeFile> {
    let node = NodeFile::read(data_dir).ok()??;
    let name = std::fs::read_to_string(format!("/proc/{}/comm", node.pid)).ok()?;
    (node.pid != std::process::id() && name.trim() == "carillon").then_some(node)
}

/// Binds as the server does, and lets go again. Nobody can connect meanwhile: the socket does not listen.
fn bind(at: SocketAddr) -> io::Result<()> {
    let socket = Socket::new(Domain::for_address(at), Type::STREAM, Some(Protocol::TCP))?;
    if at.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    socket.bind(&at.into())
}

fn finding(setting: &'static str, at: SocketAddr, error: &io::Error, node: Option<&NodeFile>) -> Finding {
    let port = at.port();
    match (error.kind(), node) {
        (ErrorKind::AddrInUse, Some(node)) => Finding::error(
            setting,
            format!("{at} is in use by the node that runs on this data folder (process {})", node.pid),
            "end that node first",
        ),
        (ErrorKind::AddrInUse, None) => Finding::error(
            setting,
            format!("{at} is in use by another program (`ss -ltnp 'sport = :{port}'` names it)"),
            format!("end that program, or set {setting} to another port"),
        ),
        (ErrorKind::PermissionDenied, _) if port < UNPRIVILEGED => Finding::error(
            setting,
            format!("this user must not listen on port {port}"),
            format!(
                "grant CAP_NET_BIND_SERVICE (systemd: AmbientCapabilities=), or set {setting} to {UNPRIVILEGED} or more"
            ),
        ),
        (ErrorKind::AddrNotAvailable, _) => {
            let list = match setting {
                "http.port" => "http.address or listen.address",
                "https.port" => "https.address or listen.address",
                "health.port" => "health.address",
                _ => "listen.address",
            };
            Finding::error(
                setting,
                format!("this machine has no address {}", at.ip()),
                format!("take it out of {list}"),
            )
        }
        _ => Finding::error(setting, format!("cannot listen on {at}: {error}"), ""),
    }
}
