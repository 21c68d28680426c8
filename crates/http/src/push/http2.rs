//! The client of HTTP/2 for push services of makers of devices: one connection to each, with many requests under way.

use crate::options::WebhookRoots;
use crate::outgoing::origin::Origin;
use bytes::Bytes;
use futures_util::future::poll_fn;
use h2::client::{self, ResponseFuture, SendRequest};
use h2::{Ping, PingPong, RecvStream};
use hyper::header::{self, HeaderMap};
use rustls::ClientConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio_rustls::TlsConnector;

/// A push service, and the connection to it, which is made for the first request and made again when it is gone.
pub(super) struct Http2 {
    origin: Origin,
    trusts: Trusts,
    /// How long a request may take as a whole, with its connection.
    timeout: Duration,
    state: Mutex<ConnectionState>,
}

#[derive(Default)]
struct ConnectionState {
    tls: Option<TlsConnector>,
    connection: Option<Connection>,
    /// Connections made so far.
    made: u64,
}

/// Whom a push service is known by, and who it takes the client for.
pub(super) struct Trusts {
    pub(super) roots: WebhookRoots,
    /// The certificate of the client, if it shows one.
    pub(super) certificate: Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>,
}

/// A request by POST.
pub(super) struct Request {
    pub(super) path: String,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Vec<u8>,
}

/// What was answered.
#[derive(Debug)]
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) retry_after: Option<Duration>,
    /// The beginning of it.
    pub(super) body: Vec<u8>,
}

/// A connection. Its task ends when the last handle is gone, or the other side does not answer.
#[derive(Clone)]
struct Connection {
    number: u64,
    requests: SendRequest<Bytes>,
    /// Requests that wait for their answers.
    open: Arc<AtomicUsize>,
}

/// Why a request was not answered.
enum Failure {
    /// The other side has not begun with it: it is made again on another connection, without being done twice.
    NotBegun(String),
    /// It may have been done.
    Unknown(String),
}

impl Http2 {
    pub(super) fn new(origin: Origin, trusts: Trusts, timeout: Duration) -> Http2 {
        Http2 { origin, trusts, timeout, state: Mutex::default() }
    }

    /// Makes a request.
    ///
    /// # Errors
    /// Why it was not answered. Whether it was done is not known then.
    pub(super) async fn post(&self, request: &Request) -> Result<Response, Box<str>> {
        match tokio::time::timeout(self.timeout, self.try_post(request)).await {
            Ok(answered) => answered.map_err(Into::into),
            Err(_) => Err("the push service did not answer in time".into()),
        }
    }

    async fn try_post(&self, request: &Request) -> Result<Response, String> {
        let mut reason = String::new();
        for _ in 0..TRIES {
            let connection = self.connection().await?;
            match connection.post(&self.origin, request).await {
                Ok(response) => return Ok(response),
                Err(Failure::Unknown(reason)) => return Err(reason),
                Err(Failure::NotBegun(because)) => {
                    reason = because;
                    self.forget(connection.number).await;
                }
            }
        }
        Err(reason)
    }

    /// The connection. It is made once, however many wait for it.
    async fn connection(&self) -> Result<Connection, String> {
        let mut state = self.state.lock().await;
        if let Some(connection) = &mut state.connection {
            // Ready also when it has failed: then it says so.
            if poll_fn(|cx| connection.requests.poll_ready(cx)).await.is_ok() {
                return Ok(connection.clone());
            }
            state.connection = None;
        }
        state.made += 1;
        let number = state.made;
        let connection = self.connect(&mut state.tls, number).await.map_err(|error| error.to_string())?;
        state.connection = Some(connection.clone());
        Ok(connection)
    }

    /// Takes a connection out of use. What is under way on it is not ended.
    async fn forget(&self, number: u64) {
        let mut state = self.state.lock().await;
        if state.connection.as_ref().is_some_and(|present| present.number == number) {
            state.connection = None;
        }
    }

    async fn connect(&self, tls: &mut Option<TlsConnector>, number: u64) -> io::Result<Connection> {
        let Origin { host, port, is_tls, .. } = &self.origin;
        let socket = TcpStream::connect((host.as_str(), *port)).await?;
        socket.set_nodelay(true)?;
        if !is_tls {
            return start(socket, number).await;
        }
        let connector = match tls {
            Some(connector) => connector,
            None => tls.insert(self.trusts.connector()?),
        };
        let name = ServerName::try_from(host.clone()).map_err(io::Error::other)?;
        let stream = connector.connect(name, socket).await?;
        if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
            return Err(io::Error::other("the push service does not speak HTTP/2"));
        }
        start(stream, number).await
    }
}

impl Trusts {
    fn connector(&self) -> io::Result<TlsConnector> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut roots = rustls::RootCertStore::empty();
        roots.add_parsable_certificates(self.roots.certificates());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_root_certificates(roots);
        let mut config = match &self.certificate {
            Some((chain, key)) => {
                config.with_client_auth_cert(chain.clone(), key.clone_key()).map_err(io::Error::other)?
            }
            None => config.with_no_client_auth(),
        };
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(TlsConnector::from(Arc::new(config)))
    }
}

/// Begins with HTTP/2, and has a task see to the connection.
async fn start(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    number: u64,
) -> io::Result<Connection> {
    let (requests, mut connection) = client::Builder::new()
        // Until the other side has said how many requests it takes: APNs wants to see a token first.
        .initial_max_send_streams(1)
        .enable_push(false)
        .max_header_list_size(HEAD_BYTES_MAX)
        .handshake(stream)
        .await
        .map_err(io::Error::other)?;
    let open = Arc::new(AtomicUsize::new(0));
    let ping = connection.ping_pong().expect("it is taken once");
    let watched = watch(ping, open.clone());
    tokio::spawn(async move {
        tokio::select! {
            ended = connection => if let Err(error) = ended {
                tracing::debug!(%error, "a connection to a push service ended");
            },
            () = watched => tracing::info!("a push service answers no more on a connection; another one is made"),
        }
    });
    Ok(Connection { number, requests, open })
}

/// Returns when the other side does not answer any more: seen by pings, often while it owes answers, and seldom otherwise.
async fn watch(mut ping: PingPong, open: Arc<AtomicUsize>) {
    let mut idle = 0;
    loop {
        tokio::time::sleep(PING_EVERY).await;
        idle = if open.load(Ordering::Relaxed) == 0 { idle + 1 } else { 0 };
        if idle % PING_IDLE != 0 {
            continue;
        }
        // An error is one of the connection, which ends by itself.
        if tokio::time::timeout(PONG_WITHIN, ping.ping(Ping::opaque())).await.is_err() {
            return;
        }
    }
}

impl Connection {
    async fn post(&self, origin: &Origin, request: &Request) -> Result<Response, Failure> {
        let mut head = hyper::Request::post(origin.url(&request.path));
        for (name, value) in &request.headers {
            head = head.header(*name, value);
        }
        let head = head.header(header::CONTENT_LENGTH, request.body.len()).body(());
        let head = head.map_err(|error| Failure::Unknown(error.to_string()))?;
        let not_begun = |error: h2::Error| Failure::NotBegun(error.to_string());
        let mut requests = self.requests.clone().ready().await.map_err(not_begun)?;
        let (response, mut body) = requests.send_request(head, false).map_err(not_begun)?;
        let _open = Open::new(&self.open);
        body.send_data(Bytes::copy_from_slice(&request.body), true).map_err(|error| failure(&error))?;
        read(response).await.map_err(|error| failure(&error))
    }
}

/// A request that waits for its answer.
struct Open<'a>(&'a AtomicUsize);

impl Open<'_> {
    fn new(open: &AtomicUsize) -> Open<'_> {
        open.fetch_add(1, Ordering::Relaxed);
        Open(open)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn read(response: ResponseFuture) -> Result<Response, h2::Error> {
    let (head, body) = response.await?.into_parts();
    let body = read_body(body).await?;
    Ok(Response { status: head.status.as_u16(), retry_after: retry_after(&head.headers), body })
}

/// The beginning of a body; the rest is not waited for.
async fn read_body(mut stream: RecvStream) -> Result<Vec<u8>, h2::Error> {
    let mut body = Vec::new();
    while body.len() < BODY_BYTES_MAX
        && let Some(piece) = stream.data().await
    {
        let piece = piece?;
        stream.flow_control().release_capacity(piece.len())?;
        body.extend_from_slice(&piece[..piece.len().min(BODY_BYTES_MAX - body.len())]);
    }
    Ok(body)
}

/// RFC 9113 §6.8 and §8.7: what is above the last stream of a GOAWAY, and what is refused, was not begun with.
fn failure(error: &h2::Error) -> Failure {
    let is_refused = error.is_reset() && error.reason() == Some(h2::Reason::REFUSED_STREAM);
    let text = error.to_string();
    match error.is_remote() && (error.is_go_away() || is_refused) {
        true => Failure::NotBegun(text),
        false => Failure::Unknown(text),
    }
}

/// What `Retry-After` says, if that is a number of seconds.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?;
    text.trim().parse().ok().map(Duration::from_secs)
}

/// Connections on which a request is tried that none of them began with.
const TRIES: usize = 3;
/// How often the other side is asked whether it is there: while it owes answers, and how many times less often while it does not.
const PING_EVERY: Duration = Duration::from_secs(2);
const PING_IDLE: usize = 30;
/// How long it may take to answer that.
const PONG_WITHIN: Duration = Duration::from_secs(2);
/// The longest head of a response, in bytes.
const HEAD_BYTES_MAX: u32 = 16 * 1024;
/// How much of a body is read.
const BODY_BYTES_MAX: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    /// A server that answers one request per connection, if it answers at all, and says then that it goes away.
    async fn server(listener: TcpListener, mut refusing: usize) {
        while let Ok((socket, _)) = listener.accept().await {
            let mut connection = h2::server::handshake(socket).await.expect("HTTP/2");
            if refusing > 0 {
                refusing -= 1;
                let (_, mut respond) = connection.accept().await.expect("a request").expect("a request");
                respond.send_reset(h2::Reason::REFUSED_STREAM);
            } else {
                let (request, mut respond) =
                    connection.accept().await.expect("a request").expect("a request");
                let answer = hyper::Response::builder().status(503).header("retry-after", "7").body(());
                let mut body = respond.send_response(answer.expect("an answer"), false).expect("sent");
                body.send_data(Bytes::from(request.uri().path().to_owned()), true).expect("sent");
                connection.graceful_shutdown();
            }
            tokio::spawn(async move { while connection.accept().await.is_some() {} });
        }
    }

    async fn client(refusing: usize) -> Http2 {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let origin =
            Origin::of(&format!("http://{}", listener.local_addr().expect("an address"))).expect("a URL");
        tokio::spawn(server(listener, refusing));
        let trusts = Trusts { roots: WebhookRoots::default(), certificate: None };
        Http2::new(origin, trusts, Duration::from_secs(20))
    }

    fn request(n: usize) -> Request {
        Request { path: format!("/{n}"), headers: vec![("x", "y".to_owned())], body: b"hi".to_vec() }
    }

    #[tokio::test]
    async fn what_was_not_begun_with_is_done_on_another_connection() {
        let client = client(2).await;
        for n in 0..4 {
            let response = client.post(&request(n)).await.expect("it is answered");
            assert_eq!((response.status, response.retry_after), (503, Some(Duration::from_secs(7))));
            assert_eq!(response.body, format!("/{n}").into_bytes());
        }
    }

    #[tokio::test]
    async fn who_never_begins_is_not_asked_for_ever() {
        let client = client(9).await;
        let error = client.post(&request(0)).await.expect_err("it is refused each time");
        assert!(error.contains("refused"), "{error}");
    }
}
