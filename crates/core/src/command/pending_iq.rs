//! An IQ request that is answered later.

use carillon_wire::jid::Jid;
use carillon_wire::stanza::{IqType, Payload, Stanza, StanzaError};

/// A request that is still to be answered. Plain data: whoever answers it needs neither the session nor its shard.
#[derive(Clone, Debug)]
pub struct PendingIq {
    /// The client.
    pub from: Jid,
    /// The address that the request was for; none for the client's own account.
    pub to: Option<Jid>,
    /// The request's id.
    pub id: Box<str>,
}

crate::form! { struct PendingIq { from, to, id } }

impl PendingIq {
    /// The request of this client.
    pub fn new(request: &Stanza, client: &Jid) -> PendingIq {
        let id = request.id.clone().unwrap_or_default();
        PendingIq { from: client.clone(), to: request.to.clone(), id }
    }

    /// The reply: a result or an error.
    pub fn reply(self, result: Result<Payload, StanzaError>) -> Stanza {
        let kind = if result.is_ok() { IqType::Result } else { IqType::Error };
        let mut reply = Stanza::iq(kind).with_to(self.from).with_id(self.id);
        reply.from = self.to;
        reply.payload = result.unwrap_or_else(|error| Payload::from_element(&error.to_element()));
        reply
    }

    /// The address that was asked, as the client wrote it.
    pub fn service(&self) -> &str {
        self.to.as_ref().map_or("", Jid::as_str)
    }
}
