//! A device: the load tester's XMPP client, over a plain WebSocket.

use carillon_load::blocking::Client;
use carillon_load::client::{ClientEvent, Options, Profile, Settings, StreamManagement, Transport};
use carillon_wire::jid::BareJid;
use carillon_wire::stanza::Stanza;
use carillon_wire::stream::Condition;
use std::net::Ipv4Addr;
use std::time::Duration;

/// A device that is logged in and available.
pub(crate) struct Device(Client);

impl Device {
    /// Connects and logs in to `localhost` with a secret that is the id.
    pub(crate) async fn login(port: u16, id: &'static str) -> Device {
        blocking(move || {
            let settings = Settings {
                transport: Transport::WebSocket { path: "/xmpp-websocket".to_owned() },
                stream_management: StreamManagement::On,
                ..Settings::default()
            };
            let profile = Profile::new(settings).unwrap();
            let jid = BareJid::from_parts(Some(id), "localhost").unwrap();
            Device(Client::connect((Ipv4Addr::LOCALHOST, port), Options::new(jid, id, &profile)).unwrap())
        })
        .await
    }

    /// The next message, which the client acknowledges by itself when the server asks.
    pub(crate) async fn message(mut self) -> (Device, Stanza) {
        blocking(move || {
            let stanza = self.0.wait_for(|stanza| stanza.name() == "message", PATIENCE).unwrap();
            (self, stanza)
        })
        .await
    }

    /// Keeps reading, so that what the server asks is answered, until the server ends the stream; gives the condition.
    pub(crate) async fn end(mut self) -> Condition {
        blocking(move || {
            let end = self
                .0
                .wait_for_event(|event| matches!(event, ClientEvent::StreamError(_)), PATIENCE)
                .unwrap();
            let ClientEvent::StreamError(error) = end else { unreachable!("only errors are wanted") };
            error.condition
        })
        .await
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap()
}

const PATIENCE: Duration = Duration::from_secs(20);
