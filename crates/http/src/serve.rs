//! The HTTP server: connections accepted, bounded, and drained at shutdown.

use crate::app::App;
use crate::intake;
use crate::links::{Front, clicks};
use crate::options::Options;
use crate::upload::sweep;
use crate::{routes, webhooks};
use axum::Router;
use carillon_server::node::Node;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;

/// Serves the API of `node` on all of `listeners` until `shutdown`, and sends events to webhooks. Then event streams end, open
/// requests are waited for as long as the options say, and this returns. A connection that fails is logged, and accepting goes on.
pub async fn serve(listeners: Vec<TcpListener>, node: Node, options: Options, shutdown: impl Future) {
    let drain = Duration::from_millis(options.drain_timeout_ms);
    let head_timeout = Duration::from_millis(options.settings.read_timeout_ms);
    let connections = Arc::new(Semaphore::new(options.settings.connections_max));
    let app = App::new(node, options);
    let front = routes::build(app.clone());
    let sender = tokio::spawn(webhooks::run(app.clone()));
    let clicks = tokio::spawn(clicks::run(app.clone()));
    let sweep = tokio::spawn(sweep::run(app.clone()));
    let intake = tokio::spawn(intake::run(app.clone()));
    let graceful = GracefulShutdown::new();
    let (accepted, mut sockets) = mpsc::channel(1);
    let mut accepting = JoinSet::new();
    for listener in listeners {
        accepting.spawn(accept_all(listener, connections.clone(), accepted.clone()));
    }
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let next = tokio::select! {
            next = sockets.recv() => next,
            _ = &mut shutdown => break,
        };
        let (socket, permit) = next.expect("a sender is held here");
        let peer = socket.peer_addr().ok().map(|address| address.ip());
        tokio::spawn(connection(socket, permit, front.of_peer(peer), head_timeout, graceful.watcher()));
    }
    accepting.shutdown().await;
    // It fails only when no stream ever listened.
    let _ = app.closing.send(true);
    let ended = async { tokio::join!(graceful.shutdown(), sender, clicks, sweep, intake) };
    if tokio::time::timeout(drain, ended).await.is_err() {
        tracing::warn!("requests were still open when the drain timeout ran out");
    }
}

/// The API of `node` as a router, for those who serve it themselves or test it. Within a runtime of Tokio, which sends the events to
/// webhooks.
pub fn router(node: Node, options: Options) -> Router {
    let app = App::new(node, options);
    tokio::spawn(webhooks::run(app.clone()));
    tokio::spawn(clicks::run(app.clone()));
    tokio::spawn(sweep::run(app.clone()));
    tokio::spawn(intake::run(app.clone()));
    Router::new().fallback_service(routes::build(app))
}

/// Gives every connection of a listener to `accepted`.
async fn accept_all(listener: TcpListener, connections: Arc<Semaphore>, accepted: mpsc::Sender<Accepted>) {
    while accepted.send(accept(&listener, &connections).await).await.is_ok() {}
}

/// A connection, and the room that it takes.
type Accepted = (TcpStream, OwnedSemaphorePermit);

/// The next connection. Past the bound, new ones wait in the listener's backlog.
async fn accept(listener: &TcpListener, connections: &Arc<Semaphore>) -> Accepted {
    let permit = connections.clone().acquire_owned().await.expect("the semaphore is never closed");
    loop {
        match listener.accept().await {
            Ok((socket, _)) => return (socket, permit),
            Err(error) => {
                // Most often out of file descriptors: accepting again at once would only spin.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn connection(
    socket: TcpStream,
    permit: OwnedSemaphorePermit,
    front: Front,
    head_timeout: Duration,
    watcher: Watcher,
) {
    // Small results of a stream must not wait for more of them.
    let _ = socket.set_nodelay(true);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(head_timeout)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(socket), TowerToHyperService::new(front));
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(%error, "a connection ended early");
    }
    drop(permit);
}

const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Also the size of a connection's read buffer.
const HEAD_BYTES_MAX: usize = 64 * 1024;
