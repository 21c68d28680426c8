//! An XMPP client that knows nothing of the server: a socket, rustls, and patience.

#[path = "../../src/testing/trusting.rs"]
mod trusting;

use base64::Engine;
use rustls::{ClientConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

pub(crate) type Tls = StreamOwned<ClientConnection, TcpStream>;

/// A stream, and what was read of it and not yet expected.
pub(crate) struct Client<S> {
    pub stream: S,
    pub read: String,
}

impl Client<TcpStream> {
    pub(crate) fn connect(port: u16) -> Client<TcpStream> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Client { stream, read: String::new() }
    }

    /// Secures it as RFC 6120 §5 says.
    pub(crate) fn starttls(mut self) -> Client<Tls> {
        self.send(HEADER);
        self.until("</stream:features>");
        self.send("<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>");
        self.until("<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>");
        assert_eq!(self.read, "");
        Client { stream: tls(self.stream), read: String::new() }
    }
}

impl<S: Read + Write> Client<S> {
    pub(crate) fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).unwrap();
    }

    /// Reads up to and with `end`; gives what came.
    pub(crate) fn until(&mut self, end: &str) -> String {
        loop {
            if let Some(at) = self.read.find(end) {
                let rest = self.read.split_off(at + end.len());
                return std::mem::replace(&mut self.read, rest);
            }
            let mut bytes = [0; 4096];
            let n =
                self.stream.read(&mut bytes).unwrap_or_else(|e| panic!("{e} before {end}: {}", self.read));
            assert!(n > 0, "ended before {end}: {}", self.read);
            self.read.push_str(std::str::from_utf8(&bytes[..n]).unwrap());
        }
    }

    /// Logs in, binds and is available.
    pub(crate) fn login(&mut self, user: &str) {
        self.send(HEADER);
        self.until("</stream:features>");
        self.send(&auth(user));
        self.until("<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>");
        self.send(HEADER);
        self.until("</stream:features>");
        self.send(BIND);
        self.until("</iq>");
        self.send("<presence/>");
        self.ping();
    }

    /// Makes sure that everything sent before was handled.
    pub(crate) fn ping(&mut self) {
        self.send("<iq type='get' id='ping' to='localhost'><ping xmlns='urn:xmpp:ping'/></iq>");
        self.until("id='ping'");
        self.until("/>");
    }
}

pub(crate) fn auth(user: &str) -> String {
    let token = base64::engine::general_purpose::STANDARD.encode(format!("\0{user}\0secret"));
    format!("<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>{token}</auth>")
}

pub(crate) const HEADER: &str = "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' \
    to='localhost' version='1.0'>";
pub(crate) const BIND: &str = "<iq type='set' id='bind'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>\
    <resource>test</resource></bind></iq>";

pub(crate) fn tls(stream: TcpStream) -> Tls {
    let name = "localhost".try_into().unwrap();
    StreamOwned::new(ClientConnection::new(trusting::client_config(&[]), name).unwrap(), stream)
}
