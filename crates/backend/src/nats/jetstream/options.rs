//! How a queue of JetStream is opened.

use super::super::{Auth, OpenError, Tls};
use std::time::Duration;

/// How a queue of JetStream is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The servers, `nats://HOST:PORT` or `tls://HOST:PORT`.
    pub servers: Vec<Box<str>>,
    /// How the node says who it is.
    pub auth: Auth,
    /// TLS, which is used where a server demands it or its address begins with `tls://`.
    pub tls: Tls,
    /// The stream, which somebody has made.
    pub stream: Box<str>,
    /// The durable consumer, which is made if it is missing.
    pub consumer: Box<str>,
    /// The subject that a consumer which is made takes; all of the stream if there is none.
    pub subject: Option<Box<str>>,
    /// How long a consumer which is made waits until it delivers again.
    pub ack_wait: Duration,
    /// How many messages all nodes together may have, of a consumer which is made.
    pub unsettled_max: u32,
    /// The stream of dead letters, which is made if it is missing.
    pub dead_stream: Box<str>,
    /// Its subject.
    pub dead_subject: Box<str>,
}

impl Options {
    /// The defaults for a stream of a server, and a queue of this name.
    pub fn new(server: &str, stream: &str, name: &str) -> Options {
        Options {
            servers: vec![server.into()],
            auth: Auth::None,
            tls: Tls::default(),
            stream: stream.into(),
            consumer: "carillon".into(),
            subject: None,
            ack_wait: Duration::from_secs(30),
            unsettled_max: 10_000,
            dead_stream: format!("carillon_dead_{name}").into(),
            dead_subject: format!("carillon.dead.{name}").into(),
        }
    }

    /// Refuses names that JetStream does not take.
    pub(super) fn check(&self) -> Result<(), OpenError> {
        let is_name = |name: &str| {
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
        };
        match [&self.stream, &self.consumer, &self.dead_stream].into_iter().find(|name| !is_name(name)) {
            Some(name) => Err(OpenError::Name(name.clone())),
            None => Ok(()),
        }
    }
}
