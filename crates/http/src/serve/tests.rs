//! Bodies that nobody reads, over a pipe in place of a socket.

use super::linger::{DISCARDED_BYTES_MAX, Lingering};
use super::unread::{GaveUp, REST_BYTES_MAX, ReadsRest};
use axum::Router;
use axum::http::StatusCode;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::task::JoinHandle;

/// A client whose requests are all refused without a look at their bodies.
fn refused() -> DuplexStream {
    served().0
}

/// The same, with what serves it.
fn served() -> (DuplexStream, JoinHandle<()>) {
    let (client, server) = duplex(16 * 1024);
    let gave_up = GaveUp::default();
    let stream = TokioIo::new(Lingering::new(server, gave_up.clone()));
    let routes = Router::new().fallback(|| async { StatusCode::UNAUTHORIZED });
    let service = TowerToHyperService::new(ReadsRest::new(routes, PATIENCE, gave_up));
    let connection = http1::Builder::new().serve_connection(stream, service);
    (client, tokio::spawn(async { connection.await.expect("an orderly end") }))
}

const PATIENCE: Duration = Duration::from_secs(30);

fn head(fields: &str) -> String {
    format!("POST / HTTP/1.1\r\nhost: a\r\n{fields}\r\n\r\n")
}

/// The head of an answer, none of which has a body.
async fn answer(client: &mut DuplexStream) -> String {
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(client.read_u8().await.expect("an answer"));
    }
    String::from_utf8(answer).expect("text").to_lowercase()
}

async fn has_ended(client: &mut DuplexStream) -> bool {
    client.read(&mut [0]).await.expect("an end without a reset") == 0
}

#[tokio::test(start_paused = true)]
async fn the_rest_of_a_small_one_is_read_and_the_next_request_is_served() {
    for length in [1, REST_BYTES_MAX] {
        let mut client = refused();
        for _ in 0..3 {
            client.write_all(head(&format!("content-length: {length}")).as_bytes()).await.expect("open");
            let answer = answer(&mut client).await;
            assert!(answer.starts_with("http/1.1 401 ") && !answer.contains("connection: close"), "{answer}");
            client.write_all(&vec![b'x'; usize::try_from(length).expect("small")]).await.expect("open");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn one_without_a_length_is_read_to_its_end() {
    let mut client = refused();
    for _ in 0..3 {
        client.write_all(head("transfer-encoding: chunked").as_bytes()).await.expect("open");
        assert!(answer(&mut client).await.starts_with("http/1.1 401 "));
        client.write_all(b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n").await.expect("open");
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_does_not_come_ends_the_connection_in_time() {
    let began = tokio::time::Instant::now();
    let mut client = refused();
    client.write_all(head("content-length: 10").as_bytes()).await.expect("open");
    assert!(answer(&mut client).await.starts_with("http/1.1 401 "));
    assert!(has_ended(&mut client).await);
    assert_eq!(began.elapsed().as_secs(), PATIENCE.as_secs());
}

#[tokio::test(start_paused = true)]
async fn one_that_is_large_ends_the_connection_after_the_answer() {
    for fields in [format!("content-length: {}", REST_BYTES_MAX + 1), "transfer-encoding: chunked".into()] {
        let mut client = refused();
        client.write_all(head(&fields).as_bytes()).await.expect("open");
        let answer = answer(&mut client).await;
        assert!(answer.starts_with("http/1.1 401 "));
        assert_eq!(answer.contains("connection: close"), fields.contains("length"));
        // What its client sends is taken, more of it than a pipe has room for.
        client.write_all(b"fffff\r\n").await.expect("open");
        client.write_all(&[b'x'; 0x000f_ffff]).await.expect("the server goes on taking it");
        assert!(has_ended(&mut client).await);
    }
}

#[tokio::test(start_paused = true)]
async fn what_comes_after_the_end_is_bounded() {
    let mut client = refused();
    client.write_all(head("content-length: 1000000000").as_bytes()).await.expect("open");
    let mut sent = 0;
    while client.write_all(&[b'x'; 4096]).await.is_ok() {
        sent += 4096;
    }
    assert!((DISCARDED_BYTES_MAX..2 * DISCARDED_BYTES_MAX).contains(&sent), "{sent}");
    // Nor does a client that neither sends nor ends keep the connection.
    let (mut client, connection) = served();
    client.write_all(head("content-length: 1000000000").as_bytes()).await.expect("open");
    assert!(answer(&mut client).await.starts_with("http/1.1 401 ") && has_ended(&mut client).await);
    connection.await.expect("an end while the client is there");
}

#[tokio::test(start_paused = true)]
async fn one_that_its_client_holds_back_is_not_asked_for() {
    let mut client = refused();
    client.write_all(head("content-length: 10\r\nexpect: 100-continue").as_bytes()).await.expect("open");
    let answer = answer(&mut client).await;
    assert!(answer.starts_with("http/1.1 401 ") && answer.contains("connection: close"), "{answer}");
    assert!(has_ended(&mut client).await);
}
