//! What a client is sent when it has logged in: `<success/>` of SASL2, alone or with the resource that Bind 2 bound, or the result of a bind IQ.

use crate::connection::Io;
use crate::sasl::{self, Failure, Inline, SaslProfile};
use crate::session::{BoundSession, Closing, Cx, Session};
use carillon_wire::ns;
use carillon_wire::stanza::{IqType, Stanza};
use carillon_wire::xml::Element;

/// What a client is sent when its session is bound.
#[derive(Debug)]
pub enum Greeting {
    /// The success of SASL2, with the resource that Bind 2 bound.
    Success(Success),
    /// The result of the bind IQ with this id.
    Bind {
        /// The IQ's id.
        id: Box<str>,
    },
}

/// A success of which the client is told when its resource is bound.
#[derive(Debug)]
pub struct Success {
    pub(super) inline: Inline,
    /// The data that the mechanism sends with the success.
    pub(super) data: Option<Vec<u8>>,
    /// What the features add.
    pub(super) added: Vec<Element>,
}

impl Greeting {
    /// Tells the client that its session is bound.
    pub fn send(self, session: &mut BoundSession, cx: &mut Cx<'_>) {
        match self {
            Greeting::Success(success) => bound(success, session, cx),
            Greeting::Bind { id } => result(id, session, cx),
        }
    }
}

impl Success {
    /// With something more to be told.
    pub(crate) fn with(mut self, added: Element) -> Success {
        self.added.push(added);
        self
    }

    /// Tells the client of its success, and this of its session.
    pub(crate) fn send_with(self, added: Element, identifier: &str, io: &Io, cx: &mut Cx<'_>) {
        io.send_element(&self.with(added).element(identifier), cx);
        // XEP-0388 §2.6: features follow a success at once.
        io.send_features(&[], cx);
    }

    /// The login fails after all: the account may not log in any more, or the resource cannot be bound.
    pub(in crate::session) fn refuse(self, io: Io, failure: Failure, cx: &mut Cx<'_>) -> Session {
        io.send_element(&SaslProfile::Sasl2(self.inline).failure(failure, None), cx);
        Closing::politely(io, cx)
    }

    pub(super) fn element(self, identifier: &str) -> Element {
        let mut success = Element::new("success", ns::SASL2);
        if let Some(data) = self.data {
            success.push(Element::new("additional-data", ns::SASL2).with_text(sasl::encode(&data)));
        }
        success.push(Element::new("authorization-identifier", ns::SASL2).with_text(identifier));
        self.added.into_iter().for_each(|added| success.push(added));
        success
    }
}

/// Tells the client that its session is bound: `<bound/>`, with the features' replies to what the client asked for inline.
fn bound(success: Success, session: &mut BoundSession, cx: &mut Cx<'_>) {
    let mut bound = Element::new("bound", ns::BIND2);
    for asked in success.inline.bind().into_iter().flat_map(Element::children) {
        if let Some(handle) = cx.pipeline.nonza_handler(asked.name(), asked.ns())
            && let Ok(Some(reply)) = handle(session, asked, cx)
        {
            bound.push(reply);
        }
    }
    let success = success.element(session.jid.as_str()).with_child(bound);
    if let Some(io) = &session.io {
        io.send_element(&success, cx);
        // XEP-0388 §2.6: features follow a success at once. All that could be negotiated was, inline.
        io.send_features(&[], cx);
    }
}

/// Tells the client that its session is bound: the result of its bind IQ.
fn result(id: Box<str>, session: &mut BoundSession, cx: &mut Cx<'_>) {
    let jid = Element::new("jid", ns::BIND).with_text(session.jid.as_str());
    let result = Stanza::iq(IqType::Result).with_id(id);
    let result = result.with_payload(Element::new("bind", ns::BIND).with_child(jid));
    if let Some(io) = &session.io {
        io.send_stanza(&result, cx);
    }
}
