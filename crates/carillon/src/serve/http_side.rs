//! The HTTP side of a node: its listeners, and what serves them.

use crate::config::Settings;
use carillon_http::{Listener, Serves, https};
use carillon_server::{Server, tls};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};

/// The HTTP APIs.
pub(super) struct HttpSide {
    pub(super) at: SocketAddr,
    pub(super) ports: Ports,
    options: carillon_http::Options,
    /// The listening sockets once more, for a process that takes over.
    pub(super) listeners: Vec<std::net::TcpListener>,
    tls: watch::Sender<tls::Settings>,
    clients: Option<Clients>,
    /// What ends them, and what tells that they ended.
    serving: Option<(oneshot::Sender<()>, oneshot::Receiver<()>)>,
}

impl HttpSide {
    /// Serves on these sockets.
    pub(super) fn start(
        runtime: &tokio::runtime::Runtime,
        Bound { listeners, at, ports }: Bound,
        server: &Server,
        (tls, clients): (&tls::Settings, Option<Clients>),
        options: carillon_http::Options,
    ) -> std::io::Result<HttpSide> {
        let copy = |listener: &TcpListener| Ok(listener.as_fd().try_clone_to_owned()?.into());
        let copies = listeners.iter().map(copy).collect::<std::io::Result<_>>()?;
        let tls = watch::Sender::new(secured(tls, clients.as_ref()).map_err(std::io::Error::other)?);
        let mut http = HttpSide { at, ports, options, listeners: copies, tls, clients, serving: None };
        http.serve(runtime, listeners, server)?;
        Ok(http)
    }

    /// Gives this certificate to clients from now on.
    pub(super) fn reload_tls(&self, settings: &tls::Settings) {
        match secured(settings, self.clients.as_ref()) {
            Ok(new) if self.clients.is_none() => {
                self.tls.send_modify(|present| *present = new.sharing_tickets_of(present));
            }
            Ok(new) => drop(self.tls.send_replace(new)),
            Err(error) => tracing::error!(%error, "https.client_ca cannot be used; HTTPS goes on as it was"),
        }
    }

    fn serve(
        &mut self,
        runtime: &tokio::runtime::Runtime,
        listeners: Vec<TcpListener>,
        server: &Server,
    ) -> std::io::Result<()> {
        let spoken = |socket: TcpListener| {
            let port = Some(socket.local_addr()?.port());
            let serves = match port {
                _ if port == self.ports.https => Serves::Secured(self.tls.subscribe()),
                _ if port == self.ports.health => Serves::Health,
                _ => Serves::All,
            };
            Ok(Listener { socket, serves })
        };
        let listeners = listeners.into_iter().map(spoken).collect::<std::io::Result<_>>()?;
        let (end, told) = oneshot::channel::<()>();
        let (sender, ended) = oneshot::channel();
        let serving = carillon_http::serve(listeners, server.node(), self.options.clone(), told);
        runtime.spawn(async move {
            serving.await;
            let _ = sender.send(());
        });
        self.serving = Some((end, ended));
        Ok(())
    }

    /// Accepts no more connections and lets the requests end that are under way, for `timeout` at most.
    pub(super) fn end(&mut self, runtime: &tokio::runtime::Runtime, timeout: Duration) {
        let Some((end, ended)) = self.serving.take() else { return };
        let _ = end.send(());
        let in_time = runtime.block_on(async { tokio::time::timeout(timeout, ended).await });
        if in_time.is_err() {
            tracing::warn!("requests are under way for too long; they may fail");
        }
    }

    /// Serves again.
    pub(super) fn resume(
        &mut self,
        runtime: &tokio::runtime::Runtime,
        server: &Server,
    ) -> std::io::Result<()> {
        let _within = runtime.enter();
        let copy = |listener: &std::net::TcpListener| TcpListener::from_std(listener.try_clone()?);
        let listeners = self.listeners.iter().map(copy).collect::<std::io::Result<_>>()?;
        self.serve(runtime, listeners, server)
    }
}

/// Whose certificates clients show (`https.client_ca`).
#[derive(Clone, Debug)]
pub(super) struct Clients {
    authorities: PathBuf,
    is_required: bool,
}

impl Clients {
    pub(super) fn of(settings: &Settings) -> Option<Clients> {
        let authorities = settings.node.https_client_ca.clone()?;
        Some(Clients { authorities, is_required: settings.node.https_client_required })
    }
}

/// The TLS settings of HTTP. The authorities are read anew.
fn secured(settings: &tls::Settings, clients: Option<&Clients>) -> Result<tls::Settings, tls::SettingsError> {
    let load = |clients: &Clients| tls::ClientAuthority::load(&clients.authorities, clients.is_required);
    https(settings, clients.map(load).transpose()?.as_ref())
}

/// The sockets of the HTTP side.
pub(super) struct Bound {
    listeners: Vec<TcpListener>,
    /// Where the first is, which serves everything without TLS.
    at: SocketAddr,
    ports: Ports,
}

/// The ports of listeners that serve something else than everything without TLS.
#[derive(Clone, Copy)]
pub(super) struct Ports {
    pub(super) https: Option<u16>,
    pub(super) health: Option<u16>,
}

/// Binds the addresses of the HTTP side, unless another process left its sockets there.
pub(super) async fn bind(settings: &Settings, mut left: Vec<std::net::TcpListener>) -> Result<Bound, String> {
    let node = &settings.node;
    let mut listeners = bind_all(settings.http_addresses(), node.http_port, "http.port", &mut left).await?;
    let Some(first) = listeners.first() else {
        return Err("no address to listen on (listen.address)".into());
    };
    let at = first.local_addr().map_err(|e| e.to_string())?;
    let mut more = async |addresses: &[IpAddr], port: Option<u16>, setting| {
        let Some(port) = port else { return Ok(None) };
        let bound = bind_all(addresses, port, setting, &mut left).await?;
        let at = bound.first().map(TcpListener::local_addr).transpose().map_err(|e| e.to_string())?;
        listeners.extend(bound);
        Ok::<_, String>(at.map(|at| at.port()))
    };
    let https = more(settings.https_addresses(), node.https_port, "https.port").await?;
    let health = more(&node.health_addresses, node.health_port, "health.port").await?;
    Ok(Bound { listeners, at, ports: Ports { https, health } })
}

async fn bind_all(
    addresses: &[IpAddr],
    mut port: u16,
    setting: &str,
    left: &mut Vec<std::net::TcpListener>,
) -> Result<Vec<TcpListener>, String> {
    let mut listeners: Vec<TcpListener> = Vec::new();
    for address in addresses {
        let at = SocketAddr::new(*address, port);
        let fits = |left: &std::net::TcpListener| {
            left.local_addr().is_ok_and(|bound| bound.ip() == at.ip() && (port == 0 || bound.port() == port))
        };
        let listener = match left.iter().position(fits) {
            Some(n) => TcpListener::from_std(left.remove(n)),
            None => TcpListener::bind(at).await,
        };
        let listener = listener.map_err(|e| format!("cannot listen on {at} ({setting}): {e}"))?;
        // Port 0: the first choice is good for all addresses.
        port = listener.local_addr().map_err(|e| e.to_string())?.port();
        listeners.push(listener);
    }
    Ok(listeners)
}
