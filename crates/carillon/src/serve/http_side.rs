//! The HTTP side of a node: its listeners, and what serves them.

use carillon_server::Server;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// The HTTP APIs.
pub(super) struct HttpSide {
    pub(super) at: SocketAddr,
    options: carillon_http::Options,
    /// The listening sockets once more, for a process that takes over.
    pub(super) listeners: Vec<std::net::TcpListener>,
    /// What ends them, and what tells that they ended.
    serving: Option<(oneshot::Sender<()>, oneshot::Receiver<()>)>,
}

impl HttpSide {
    /// Serves on these sockets.
    pub(super) fn start(
        runtime: &tokio::runtime::Runtime,
        listeners: Vec<TcpListener>,
        at: SocketAddr,
        server: &Server,
        options: carillon_http::Options,
    ) -> std::io::Result<HttpSide> {
        let copy = |listener: &TcpListener| Ok(listener.as_fd().try_clone_to_owned()?.into());
        let copies = listeners.iter().map(copy).collect::<std::io::Result<_>>()?;
        let mut http = HttpSide { at, options, listeners: copies, serving: None };
        http.serve(runtime, listeners, server);
        Ok(http)
    }

    fn serve(&mut self, runtime: &tokio::runtime::Runtime, listeners: Vec<TcpListener>, server: &Server) {
        let (end, told) = oneshot::channel::<()>();
        let (sender, ended) = oneshot::channel();
        let serving = carillon_http::serve(listeners, server.node(), self.options.clone(), told);
        runtime.spawn(async move {
            serving.await;
            let _ = sender.send(());
        });
        self.serving = Some((end, ended));
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
        self.serve(runtime, listeners, server);
        Ok(())
    }
}

/// Binds the addresses of the HTTP APIs, unless another process left its sockets there.
pub(super) async fn bind(
    settings: &crate::config::Settings,
    mut left: Vec<std::net::TcpListener>,
) -> Result<Vec<TcpListener>, String> {
    let mut listeners: Vec<TcpListener> = Vec::new();
    let mut port = settings.node.http_port;
    for address in settings.http_addresses() {
        let at = SocketAddr::new(*address, port);
        let fits = |left: &std::net::TcpListener| {
            left.local_addr().is_ok_and(|bound| bound.ip() == at.ip() && (port == 0 || bound.port() == port))
        };
        let listener = match left.iter().position(fits) {
            Some(n) => TcpListener::from_std(left.swap_remove(n)),
            None => TcpListener::bind(at).await,
        };
        let listener = listener.map_err(|e| format!("cannot listen on {at} (http.port): {e}"))?;
        // Port 0: the first choice is good for all addresses.
        port = listener.local_addr().map_err(|e| e.to_string())?.port();
        listeners.push(listener);
    }
    if listeners.is_empty() { Err("no address to listen on (listen.address)".into()) } else { Ok(listeners) }
}
