//! `<success/>`: at once, or with the resource where one is bound inline.

use super::bind;
use crate::connection::{Client, Io};
use crate::sasl::{self, Failure, Inline, SaslProfile};
use crate::session::auth::proven::Proved;
use crate::session::auth::{Authenticated, Binding, Greeting};
use crate::session::{Closing, Cx, Loading, Resuming, Session};
use carillon_wire::ns;
use carillon_wire::xml::Element;

/// A success of which the client is told when its resource is bound.
#[derive(Debug)]
pub struct Success {
    pub(super) inline: Inline,
    /// The data that the mechanism sends with the success.
    data: Option<Vec<u8>>,
    /// What the features add.
    added: Vec<Element>,
}

/// Tells the client of its success: at once, or with the resource if it asks for one inline.
pub(in crate::session::auth) fn succeed(
    mut client: Client,
    inline: Inline,
    mut proved: Proved,
    cx: &mut Cx<'_>,
) -> Session {
    let hooks = &cx.pipeline.success;
    let added = hooks.iter().filter_map(|hook| hook(&mut proved, &inline, &client.protection, cx)).collect();
    let success = Success { inline, data: proved.data.take(), added };
    let authenticated = proved.authenticated(&mut client, cx);
    let io = client.io;
    // XEP-0198 §9.2: what a client wants to resume comes before what it wants to bind otherwise.
    match cx.pipeline.resumption.and_then(|handler| (handler.inline)(&success.inline)) {
        None => success.go_on(io, authenticated, cx),
        Some(Err(failed)) => success.with(failed).go_on(io, authenticated, cx),
        Some(Ok(resume)) => {
            Session::Resuming(Box::new(Resuming { io, authenticated, resume, success: Some(success) }))
        }
    }
}

impl Success {
    /// Binds a resource if the client asks for that inline; else it is told of its success, and may bind one.
    pub(crate) fn go_on(self, io: Io, authenticated: Authenticated, cx: &mut Cx<'_>) -> Session {
        match self.inline.bind().map(|bind| bind::resource(&authenticated, bind, cx)) {
            None => {
                io.send_element(&self.element(authenticated.jid().as_str()), cx);
                Binding::offer(io, authenticated, cx)
            }
            Some(Ok(jid)) => Loading::begin(io, authenticated, jid, Greeting::Success(self), cx),
            Some(Err(_)) => self.refuse(io, Failure::MalformedRequest, cx),
        }
    }

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
        io.send_element(&SaslProfile::Sasl2(self.inline).failure(failure), cx);
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
