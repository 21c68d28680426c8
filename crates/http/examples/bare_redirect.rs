//! What a redirect costs at least: hyper alone, on the runtime that the node uses, answering every request with 308 and one URL. `bench/links`
//! compares the node with it.
//!
//! `bare_redirect [PORT]` prints its port and serves until it is ended.

use axum::body::Body;
use axum::http::{HeaderValue, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::time::Duration;
use tokio::net::TcpListener;

fn main() {
    let port = std::env::args().nth(1).map_or(0, |port| port.parse().expect("a port"));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime starts");
    runtime.block_on(serve(port));
}

async fn serve(port: u16) {
    let listener = TcpListener::bind(("127.0.0.1", port)).await.expect("the port is free");
    println!("{}", listener.local_addr().expect("it is bound").port());
    loop {
        let Ok((socket, _)) = listener.accept().await else { continue };
        let _ = socket.set_nodelay(true);
        tokio::spawn(async move {
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(Duration::from_secs(30))
                .serve_connection(TokioIo::new(socket), service_fn(redirect));
            let _ = connection.await;
        });
    }
}

async fn redirect(_: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::PERMANENT_REDIRECT;
    let location = HeaderValue::from_static("https://example.com/offers?id=7");
    response.headers_mut().insert(header::LOCATION, location);
    Ok(response)
}
