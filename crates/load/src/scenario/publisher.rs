//! Who publishes the items of a fan-out: a client of its own, or a provider over HTTP.

use std::time::Duration;

use carillon_wire::jid::Jid;
use serde_json::json;

use crate::blocking::{Client, ConnectError, StreamLost};
use crate::client::{Options, stanzas};

/// How long the answer to a publication may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// A publisher, ready to publish to one topic.
pub enum Publisher {
    /// By XEP-0060.
    Xmpp(Box<XmppPublisher>),
    /// By the provider API.
    Http(HttpPublisher),
}

/// A logged-in client that publishes.
pub struct XmppPublisher {
    client: Client,
    service: Jid,
    topic: String,
    serial: usize,
}

/// A provider that publishes.
pub struct HttpPublisher {
    agent: ureq::Agent,
    url: String,
    authorization: String,
}

/// Why an item was not published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The publisher's stream was lost, or the answer did not come.
    #[error("{0}")]
    Stream(#[from] StreamLost),
    /// The service refused.
    #[error("the service answered {0}")]
    Refused(String),
    /// The API refused, or could not be reached.
    #[error("HTTP: {0}")]
    Http(#[from] Box<ureq::Error>),
}

impl Publisher {
    /// Logs a publisher in. If `create`, it creates the topic first; that it exists already is no error.
    pub fn xmpp(
        address: std::net::SocketAddr,
        options: Options,
        service: Jid,
        topic: &str,
        create: bool,
    ) -> Result<Result<Self, PublishError>, ConnectError> {
        let client = Client::connect(address, options)?;
        let mut publisher = XmppPublisher { client, service, topic: topic.to_owned(), serial: 0 };
        let created = if create { publisher.create() } else { Ok(()) };
        Ok(created.map(|()| Self::Xmpp(Box::new(publisher))))
    }

    /// A provider with a key of the API at `url`.
    pub fn http(url: &str, key: &str, topic: &str) -> Self {
        let config = ureq::Agent::config_builder().timeout_global(Some(ANSWER_TIMEOUT)).build();
        Self::Http(HttpPublisher {
            agent: config.into(),
            url: format!("{}/v1/topics/{topic}/items", url.trim_end_matches('/')),
            authorization: format!("Bearer {key}"),
        })
    }

    /// Publishes one item: JSON text, which is an object with `text` in it. Returns when the server has confirmed it.
    pub fn publish(&mut self, text: &str) -> Result<(), PublishError> {
        let item = json!({ "text": text });
        match self {
            Self::Xmpp(publisher) => publisher.publish(&item.to_string()),
            Self::Http(publisher) => publisher.publish(&json!({ "payload": item })),
        }
    }
}

impl XmppPublisher {
    fn create(&mut self) -> Result<(), PublishError> {
        let answer = self.client.iq(stanzas::create(self.service.clone(), &self.topic), ANSWER_TIMEOUT)?;
        match stanzas::error(&answer) {
            Some(error) if error.condition != carillon_wire::stanza::Condition::Conflict => {
                Err(PublishError::Refused(error.to_string()))
            }
            _ => Ok(()),
        }
    }

    fn publish(&mut self, json: &str) -> Result<(), PublishError> {
        // What else came for the publisher is of no interest, and must not pile up.
        while self.client.recv(Duration::ZERO)?.is_some() {}
        self.serial += 1;
        let id = self.serial.to_string();
        let payload = stanzas::json(json);
        let request = stanzas::publish(self.service.clone(), &self.topic, Some(&id), payload);
        let answer = self.client.iq(request, ANSWER_TIMEOUT)?;
        stanzas::error(&answer).map_or(Ok(()), |error| Err(PublishError::Refused(error.to_string())))
    }
}

impl HttpPublisher {
    fn publish(&self, body: &serde_json::Value) -> Result<(), PublishError> {
        let request = self.agent.post(&self.url).header("authorization", &self.authorization);
        request.send_json(body).map_err(Box::new)?;
        Ok(())
    }
}

impl std::fmt::Debug for Publisher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Xmpp(_) => "Publisher::Xmpp",
            Self::Http(_) => "Publisher::Http",
        })
    }
}
