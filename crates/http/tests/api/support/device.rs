//! A device: an XMPP client over a plain WebSocket, with no more than these tests need.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use carillon_wire::frame::websocket::{Opcode, encode_masked};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

/// A device that is logged in. Its calls block: use it on a thread that may.
pub struct Device {
    stream: TcpStream,
    read: String,
}

impl Device {
    /// Connects and logs in with a secret that is the id. Available when this returns.
    pub fn login(port: u16, id: &str) -> Device {
        let mut device = Device::open(port);
        let plain = STANDARD.encode(format!("\0{id}\0{id}"));
        device.send(OPEN);
        device.until("</stream:features>");
        device.send(&format!(
            "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>{plain}</auth>"
        ));
        device.until("<success");
        device.send(OPEN);
        device.until("</stream:features>");
        device.send("<iq xmlns='jabber:client' type='set' id='bind'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>");
        device.until("</jid>");
        device.send("<presence xmlns='jabber:client'/>");
        device.ping();
        device
    }

    fn open(port: u16) -> Device {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(UPGRADE.as_bytes()).unwrap();
        let mut device = Device { stream, read: String::new() };
        device.until("\r\n\r\n");
        device
    }

    pub fn send(&mut self, text: &str) {
        let mut frame = Vec::new();
        encode_masked(&mut frame, Opcode::Text, text.as_bytes(), [1, 2, 3, 4]);
        self.stream.write_all(&frame).unwrap();
    }

    /// Reads up to and with `end`; gives what came. Frame headers are read past: no test text has their bytes.
    pub fn until(&mut self, end: &str) -> String {
        loop {
            if let Some(at) = self.read.find(end) {
                let rest = self.read.split_off(at + end.len());
                return std::mem::replace(&mut self.read, rest);
            }
            let mut bytes = [0; 4096];
            let n =
                self.stream.read(&mut bytes).unwrap_or_else(|e| panic!("{e} before {end}: {}", self.read));
            assert!(n > 0, "ended before {end}: {}", self.read);
            self.read.push_str(&String::from_utf8_lossy(&bytes[..n]));
        }
    }

    /// Makes sure that everything sent before was handled.
    pub fn ping(&mut self) {
        self.send("<iq xmlns='jabber:client' type='get' id='ping' to='localhost'><ping xmlns='urn:xmpp:ping'/></iq>");
        self.until("id='ping'");
    }
}

const OPEN: &str = "<open xmlns='urn:ietf:params:xml:ns:xmpp-framing' to='localhost' version='1.0'/>";
const UPGRADE: &str = "GET /xmpp-websocket HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n\
    Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
    Sec-WebSocket-Protocol: xmpp\r\nSec-WebSocket-Version: 13\r\n\r\n";
