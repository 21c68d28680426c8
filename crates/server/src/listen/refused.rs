//! Refused connections: the client is told why and when to come back, where that is possible without TLS.
//!
//! A refusal costs an accept, a write and a close: no key exchange and no session. Where TLS comes first nothing can be
//! sent before the handshake, so the connection is reset: that leaves nothing behind, neither here nor in the kernel, and
//! the client knows at once.

use super::admission::Refusal;
use super::service::Service;
use carillon_core::model::Mono;
use carillon_wire::ns;
use carillon_wire::stream::{HeaderOut, write_header};
use socket2::Socket;
use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::time::Duration;

/// Refused connections that have not been closed yet. What the client sent meanwhile is read before the close: otherwise
/// the close would be a reset, which discards what the client has not read.
#[derive(Debug)]
pub(crate) struct RefusedConns {
    lingering: VecDeque<(Mono, Socket)>,
    hasher: RandomState,
    count: u64,
}

impl RefusedConns {
    /// Creates an empty set.
    pub(crate) fn new() -> RefusedConns {
        RefusedConns { lingering: VecDeque::new(), hasher: RandomState::new(), count: 0 }
    }

    /// Refuses a connection of this service.
    pub(crate) fn refuse(&mut self, socket: Socket, service: Service, refusal: Refusal, now: Mono) {
        let Some(words) = words(service, self.retry_after_s(refusal)) else {
            // This fails only if the peer is gone.
            let _ = socket.set_linger(Some(Duration::ZERO));
            return;
        };
        // The buffer of a new socket has room for a few hundred bytes, so this fails only if the peer is gone.
        if (&socket).write_all(&words).is_ok() && socket.shutdown(Shutdown::Write).is_ok() {
            if self.lingering.len() == LINGERING_MAX
                && let Some((_, oldest)) = self.lingering.pop_front()
            {
                close(&oldest);
            }
            self.lingering.push_back((now.plus(LINGER_MS), socket));
        }
    }

    /// What a client is answered who asked for a WebSocket and is refused.
    pub(crate) fn unavailable(&mut self, refusal: Refusal) -> Vec<u8> {
        unavailable(self.retry_after_s(refusal))
    }

    /// Closes the connections whose time is over.
    pub(crate) fn expire(&mut self, now: Mono) {
        while let Some((_, socket)) = self.lingering.pop_front_if(|(until, _)| *until <= now) {
            close(&socket);
        }
    }

    /// When the next connection is to be closed.
    pub(crate) fn due(&self) -> Option<Mono> {
        self.lingering.front().map(|(until, _)| *until)
    }

    /// A random time between once and three times the least: clients that were refused together must not come back
    /// together.
    fn retry_after_s(&mut self, refusal: Refusal) -> u32 {
        self.count += 1;
        let patience = refusal.patience_s();
        patience + (self.hasher.hash_one(self.count) % u64::from(2 * patience + 1)) as u32
    }
}

/// What a refused client is sent before TLS; none where nothing can be sent.
fn words(service: Service, retry_after_s: u32) -> Option<Vec<u8>> {
    match service {
        Service::StartTls => {
            let mut out = Vec::with_capacity(512);
            write_header(&mut out, &HeaderOut { from: None, to: None, id: None, lang: Some("en") });
            out.extend_from_slice(
                format!(
                    "<stream:error><resource-constraint xmlns='{errors}'/>\
                     <text xmlns='{errors}' xml:lang='en'>no room for another connection now</text>\
                     <retry-after xmlns='{retry}' seconds='{retry_after_s}'/></stream:error></stream:stream>",
                    errors = ns::STREAM_ERRORS,
                    retry = ns::RETRY,
                )
                .as_bytes(),
            );
            Some(out)
        }
        Service::WebSocket => Some(unavailable(retry_after_s)),
        Service::Light => Some(
            format!(
                "{{\"error\":\"busy\",\"message\":\"no room for another connection now\",\
                 \"retry_after\":{retry_after_s}}}\x01"
            )
            .into_bytes(),
        ),
        Service::DirectTls | Service::WebSocketTls | Service::LightTls => None,
    }
}

fn unavailable(retry_after_s: u32) -> Vec<u8> {
    format!(
        "HTTP/1.1 503 Service Unavailable\r\nRetry-After: {retry_after_s}\r\nContent-Length: 0\r\n\
         Connection: close\r\n\r\n"
    )
    .into_bytes()
}

/// Reads what came, so that the close is not a reset.
fn close(socket: &Socket) {
    let mut bytes = [0; 4096];
    // The result does not matter, as the socket is dropped next.
    let _ = (&*socket).read(&mut bytes);
}

/// Refused connections per shard that are not closed yet; one more, and the oldest is closed. Their descriptors are not
/// counted.
const LINGERING_MAX: usize = 16;
/// How long a refused client has to read why, in milliseconds.
const LINGER_MS: u64 = 1000;

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;
    use std::net::{Ipv4Addr, TcpListener, TcpStream};

    /// A client and its connection as the server has it.
    fn pair() -> (TcpStream, Socket) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let accepted = listener.accept().unwrap().0;
        accepted.set_nonblocking(true).unwrap();
        (client, accepted.into())
    }

    #[test]
    fn a_client_reads_why_although_it_spoke() {
        let mut refused_conns = RefusedConns::new();
        for (service, first) in [
            (Service::StartTls, "<?xml"),
            (Service::WebSocket, "HTTP/1.1 503 "),
            (Service::Light, "{\"error\":\"busy\","),
        ] {
            let (mut client, socket) = pair();
            client.write_all(&[b'x'; 1000]).unwrap();
            refused_conns.refuse(socket, service, Refusal::Rate, Mono(0));
            assert_eq!(refused_conns.due(), Some(Mono(LINGER_MS)));
            refused_conns.expire(Mono(LINGER_MS));
            assert_eq!(refused_conns.due(), None);
            let mut text = String::new();
            client.read_to_string(&mut text).unwrap();
            assert!(text.starts_with(first), "{text}");
        }
    }

    #[test]
    fn inside_tls_it_is_reset() {
        let (mut client, socket) = pair();
        RefusedConns::new().refuse(socket, Service::DirectTls, Refusal::Full, Mono(0));
        assert_eq!(client.read(&mut [0; 8]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    }

    #[test]
    fn refused_clients_do_not_come_back_together() {
        let mut refused_conns = RefusedConns::new();
        let times: Vec<u32> = (0..1000).map(|_| refused_conns.retry_after_s(Refusal::Full)).collect();
        assert!(times.iter().all(|s| (15..=45).contains(s)));
        let distinct: std::collections::HashSet<_> = times.iter().collect();
        assert!(distinct.len() > 20, "{}", distinct.len());
    }

    #[test]
    fn few_linger() {
        let mut refused_conns = RefusedConns::new();
        let clients: Vec<_> = (0..=LINGERING_MAX)
            .map(|_| {
                let (client, socket) = pair();
                refused_conns.refuse(socket, Service::StartTls, Refusal::Full, Mono(0));
                client
            })
            .collect();
        assert_eq!((clients.len(), refused_conns.lingering.len()), (LINGERING_MAX + 1, LINGERING_MAX));
    }
}
