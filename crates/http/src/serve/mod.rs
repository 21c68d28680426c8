//! The HTTP server: connections accepted, bounded, and drained at shutdown, with TLS where a listener has it.

mod linger;
#[cfg(test)]
mod tests;
mod unread;

use self::linger::Lingering;
use self::unread::{GaveUp, ReadsRest};
use crate::auth::Shown;
use crate::intake;
use crate::links::{Front, clicks};
use crate::options::Options;
use crate::upload::sweep;
use crate::{cells, parts, push, routes, webhooks};
use axum::Router;
use carillon_server::node::Node;
use carillon_server::tls;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use rustls::server::Acceptor;
use std::io::{self, Cursor};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::task::JoinSet;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;

/// A socket that listens, and what is spoken on it.
#[derive(Debug)]
pub struct Listener {
    /// The socket.
    pub socket: TcpListener,
    /// What is served on it.
    pub serves: Serves,
}

/// What a listener serves.
#[derive(Clone, Debug)]
pub enum Serves {
    /// Everything, without TLS.
    All,
    /// Everything, with TLS: the certificate and what else it needs, the newest for each connection ([`https`]).
    Secured(watch::Receiver<tls::Settings>),
    /// How the node is, and nothing else: without TLS and without a key.
    Health,
}

/// The settings of TLS as HTTP needs them, with the authorities by which certificates of clients are known where there are some.
///
/// # Errors
/// No configuration can be made with these authorities.
pub fn https(
    settings: &tls::Settings,
    clients: Option<&tls::ClientAuthority>,
) -> Result<tls::Settings, tls::SettingsError> {
    let protocols: &[&[u8]] = &[H2, b"http/1.1"];
    match clients {
        None => Ok(settings.whole(protocols)),
        Some(clients) => settings.whole_with_clients(protocols, clients),
    }
}

/// Serves the API of `node` on all of `listeners` until `shutdown`, sends events to webhooks, and wakes apps. Then event streams end, open
/// requests are waited for as long as the options say, and this returns. A connection that fails is logged, and accepting goes on.
pub async fn serve(listeners: Vec<Listener>, node: Node, options: Options, shutdown: impl Future) {
    let drain = Duration::from_millis(options.drain_timeout_ms);
    let read_timeout = Duration::from_millis(options.settings.read_timeout_ms);
    let connections = Arc::new(Semaphore::new(options.settings.connections_max));
    let of_health = Arc::new(Semaphore::new(HEALTH_CONNECTIONS_MAX));
    let app = parts::app(node, options);
    let (front, health) = (routes::build(app.clone()), routes::health(app.clone()));
    let sender = tokio::spawn(webhooks::run(app.clone()));
    let pushes = tokio::spawn(push::run(app.clone()));
    let clicks = tokio::spawn(clicks::run(app.clone()));
    let sweep = tokio::spawn(sweep::run(app.clone()));
    let intake = tokio::spawn(intake::run(app.clone()));
    let keeper = tokio::spawn(cells::run(app.clone()));
    let graceful = GracefulShutdown::new();
    let (accepted, mut sockets) = mpsc::channel(1);
    let mut accepting = JoinSet::new();
    for listener in listeners {
        // Who asks how the node is gets an answer while the others have all connections that they may have.
        let connections = if matches!(listener.serves, Serves::Health) { &of_health } else { &connections };
        accepting.spawn(accept_all(listener, connections.clone(), accepted.clone()));
    }
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let next = tokio::select! {
            next = sockets.recv() => next,
            _ = &mut shutdown => break,
        };
        let Accepted { socket, serves, permit } = next.expect("a sender is held here");
        let peer = socket.peer_addr().ok().map(|address| address.ip());
        let front = if matches!(serves, Serves::Health) { &health } else { &front };
        let served = Served { front: front.of_peer(peer), read_timeout, watcher: graceful.watcher() };
        tokio::spawn(async move {
            served.on(socket, serves).await;
            drop(permit);
        });
    }
    accepting.shutdown().await;
    // It fails only when no stream ever listened.
    let _ = app.closing.send(true);
    let ended = async { tokio::join!(graceful.shutdown(), sender, pushes, clicks, sweep, intake, keeper) };
    if tokio::time::timeout(drain, ended).await.is_err() {
        tracing::warn!("requests were still open when the drain timeout ran out");
    }
    app.telemetry().close().await;
}

/// The API of `node` as a router, for those who serve it themselves or test it. Within a runtime of Tokio, which sends the events to
/// webhooks.
pub fn router(node: Node, options: Options) -> Router {
    let app = parts::app(node, options);
    tokio::spawn(webhooks::run(app.clone()));
    tokio::spawn(push::run(app.clone()));
    tokio::spawn(clicks::run(app.clone()));
    tokio::spawn(sweep::run(app.clone()));
    tokio::spawn(intake::run(app.clone()));
    tokio::spawn(cells::run(app.clone()));
    Router::new().fallback_service(routes::build(app))
}

/// Gives every connection of a listener to `accepted`.
async fn accept_all(listener: Listener, connections: Arc<Semaphore>, accepted: mpsc::Sender<Accepted>) {
    while accepted.send(accept(&listener, &connections).await).await.is_ok() {}
}

/// A connection, and the room that it takes.
struct Accepted {
    socket: TcpStream,
    serves: Serves,
    permit: OwnedSemaphorePermit,
}

/// The next connection. Past the bound, new ones wait in the listener's backlog.
async fn accept(listener: &Listener, connections: &Arc<Semaphore>) -> Accepted {
    let permit = connections.clone().acquire_owned().await.expect("the semaphore is never closed");
    loop {
        match listener.socket.accept().await {
            Ok((socket, _)) => return Accepted { socket, serves: listener.serves.clone(), permit },
            Err(error) => {
                // Most often out of file descriptors: accepting again at once would only spin.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// What serves a connection.
struct Served {
    front: Front,
    /// For a request's head, for a body that is refused, and for a handshake.
    read_timeout: Duration,
    watcher: Watcher,
}

impl Served {
    async fn on(mut self, socket: TcpStream, serves: Serves) {
        // Small results of a stream must not wait for more of them.
        let _ = socket.set_nodelay(true);
        let Serves::Secured(newest) = serves else { return self.speak(socket).await };
        let tls = newest.borrow().clone();
        match tokio::time::timeout(self.read_timeout, secured(socket, &tls)).await {
            Ok(Ok(stream)) => {
                let connection = stream.get_ref().1;
                if let Some(own) = connection.peer_certificates().and_then(<[_]>::first) {
                    self.front = self.front.of_client(Shown(tls::client_names(own).into()));
                }
                match connection.alpn_protocol() == Some(H2) {
                    true => self.speak_h2(stream).await,
                    false => self.speak(stream).await,
                }
            }
            Ok(Err(error)) => tracing::debug!(%error, "a connection was not secured"),
            Err(_) => tracing::debug!("a TLS handshake took too long"),
        }
    }

    async fn speak(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let gave_up = GaveUp::default();
        let stream = TokioIo::new(Lingering::new(stream, gave_up.clone()));
        let service = TowerToHyperService::new(ReadsRest::new(self.front, self.read_timeout, gave_up));
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.read_timeout)
            .max_buf_size(HEAD_BYTES_MAX)
            .serve_connection(stream, service);
        if let Err(error) = self.watcher.watch(connection).await {
            tracing::debug!(%error, "a connection ended early");
        }
    }
}

impl Served {
    /// Several requests at a time (RFC 9113). What a client may have in flight is bounded in requests, in bytes of their heads and of what it does not
    /// read; requests that it takes back before they are answered count, too.
    async fn speak_h2(self, stream: TlsStream<TcpStream>) {
        let (mut reader, writer) = tokio::io::split(stream);
        let mut preface = [0; PREFACE.len()];
        match tokio::time::timeout(self.read_timeout, reader.read_exact(&mut preface)).await {
            Ok(Ok(_)) if preface == PREFACE => {}
            _ => return tracing::debug!("a client that chose HTTP/2 does not speak it"),
        }
        let stream = tokio::io::join(Cursor::new(preface).chain(reader), writer);
        let connection = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_concurrent_streams(H2_REQUESTS_MAX)
            .max_header_list_size(HEAD_BYTES_MAX as u32)
            .initial_stream_window_size(H2_STREAM_BYTES)
            .initial_connection_window_size(H2_CONNECTION_BYTES)
            .max_send_buf_size(H2_STREAM_BYTES as usize)
            .keep_alive_interval(self.read_timeout)
            .keep_alive_timeout(self.read_timeout)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(self.front));
        if let Err(error) = self.watcher.watch(connection).await {
            tracing::debug!(%error, "a connection ended early");
        }
    }
}

/// Shakes hands with a client, whose first message decides by which configuration.
async fn secured(socket: TcpStream, tls: &tls::Settings) -> io::Result<TlsStream<TcpStream>> {
    let hello = LazyConfigAcceptor::new(Acceptor::default(), socket).await?;
    let config = tls.config_for(&hello.client_hello()).clone();
    hello.into_stream(config).await
}

/// Connections open at the same time to listeners of nothing but health.
const HEALTH_CONNECTIONS_MAX: usize = 64;
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// HTTP/2 in ALPN, and what its clients say first (RFC 9113 §3.4).
const H2: &[u8] = b"h2";
const PREFACE: [u8; 24] = *b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Requests that a connection of HTTP/2 may have in flight.
const H2_REQUESTS_MAX: u32 = 64;
/// Bytes that are taken of a request's body, and kept of an answer, before the other side goes on.
const H2_STREAM_BYTES: u32 = 64 * 1024;
/// The same for all requests of a connection.
const H2_CONNECTION_BYTES: u32 = 1024 * 1024;
/// Also the size of a connection's read buffer.
const HEAD_BYTES_MAX: usize = 64 * 1024;
