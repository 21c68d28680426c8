//! What carries the stanzas of a connection.

use carillon_wire::Framing;

/// What carries a connection's stanzas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transport {
    /// How stanzas are framed.
    pub framing: Framing,
    /// Whether this node encrypts the connection; none if the release that accepted it did not say.
    pub tls: Option<bool>,
}

crate::form! { struct Transport { framing, tls } }

impl Transport {
    /// Its name in the event log and the API.
    pub fn word(self) -> &'static str {
        match self.framing {
            Framing::Tcp => "tcp",
            Framing::WebSocket => "websocket",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::testing::proves;

    #[test]
    fn its_form() {
        let transport = |framing, tls| Transport { framing, tls };
        proves(
            "Transport",
            &vec![
                transport(Framing::Tcp, Some(true)),
                transport(Framing::WebSocket, Some(false)),
                transport(Framing::WebSocket, None),
            ],
        );
    }
}
