//! The ready file (`--ready-file PATH`): says which ports a node listens on, once it does. For tests and service managers:
//! with ports set to 0 it is the only way to know them.

use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

/// What the ready file says. A listener that is not enabled has no port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// The node's process.
    pub pid: u32,
    /// Port of XMPP over TCP.
    pub c2s: Option<u16>,
    /// Port of XMPP over TLS.
    pub c2s_tls: Option<u16>,
    /// Port of XMPP over WebSocket.
    pub websocket: Option<u16>,
    /// Port of the light protocol.
    pub light: Option<u16>,
    /// Port of UDP for the players of matches.
    #[serde(default)]
    pub quic: Option<u16>,
    /// Port of the HTTP APIs.
    pub http: Option<u16>,
    /// Port of the HTTP APIs with TLS.
    #[serde(default)]
    pub https: Option<u16>,
    /// Port of nothing but how the node is.
    #[serde(default)]
    pub health: Option<u16>,
}

impl Ready {
    /// All ports in use.
    pub fn ports(&self) -> Vec<u16> {
        [self.c2s, self.c2s_tls, self.websocket, self.light, self.quic, self.http, self.https, self.health]
            .into_iter()
            .flatten()
            .collect()
    }

    /// Writes the file. It appears whole, so whoever sees it can read it.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        super::write_whole(path, serde_json::to_string(self)?.as_bytes(), 0o644)
    }

    /// The ports, as a sentence for people.
    pub fn sentence(&self) -> String {
        let ports = [
            ("XMPP", self.c2s),
            ("XMPP over TLS", self.c2s_tls),
            ("WebSocket", self.websocket),
            ("the light protocol", self.light),
            ("QUIC", self.quic),
            ("HTTP", self.http),
            ("HTTPS", self.https),
            ("health", self.health),
        ];
        let ports = ports.into_iter().filter_map(|(what, port)| Some(format!("{} ({what})", port?)));
        format!("Listening on the ports {}.", ports.collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_the_ports_in_one_line_of_json() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ready.json");
        let ready = Ready {
            pid: 7,
            c2s: Some(40_001),
            c2s_tls: Some(40_002),
            websocket: None,
            light: None,
            quic: None,
            http: Some(40_003),
            https: None,
            health: None,
        };
        ready.write(&path).expect("written");
        let text = std::fs::read_to_string(&path).expect("readable");
        assert_eq!(
            text,
            r#"{"pid":7,"c2s":40001,"c2s_tls":40002,"websocket":null,"light":null,"quic":null,"http":40003,"https":null,"health":null}"#
        );
        assert_eq!(serde_json::from_str::<Ready>(&text).expect("its own JSON"), ready);
    }
}
