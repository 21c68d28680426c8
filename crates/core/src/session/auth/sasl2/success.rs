//! `<success/>`: at once, or with the resource where one is bound inline.

use super::bind;
use crate::connection::{Client, Io};
use crate::sasl::{self, Failure, Inline, SaslProfile};
use crate::session::auth::proven::Proved;
use crate::session::auth::{Binding, Greeting};
use crate::session::{Closing, Cx, Loading, Session};
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
    match success.inline.bind().map(|bind| bind::resource(&authenticated, bind, cx)) {
        None => {
            io.send_element(&success.element(authenticated.jid().as_str()), cx);
            Binding::offer(io, authenticated, cx)
        }
        Some(Ok(jid)) => Loading::begin(io, authenticated, jid, Greeting::Success(success), cx),
        Some(Err(_)) => success.refuse(io, Failure::MalformedRequest, cx),
    }
}

impl Success {
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
