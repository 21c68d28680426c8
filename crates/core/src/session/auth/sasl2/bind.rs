//! Bind 2 (XEP-0386): a resource is bound inline, and features are enabled with it.

use super::Success;
use crate::session::auth::Authenticated;
use crate::session::{BoundSession, Cx};
use carillon_wire::jid::Jid;
use carillon_wire::ns;
use carillon_wire::stanza::StanzaError;
use carillon_wire::xml::Element;

/// The server makes the resource, of the client's tag and something of its own (XEP-0386 §3.2).
pub(super) fn resource(
    authenticated: &Authenticated,
    bind: &Element,
    cx: &mut Cx<'_>,
) -> Result<Jid, StanzaError> {
    let tag = bind.child("tag", ns::BIND2).map(Element::text).filter(|tag| !tag.is_empty());
    let own = cx.shard.random.token();
    let resource = match tag {
        Some(tag) => format!("{tag}/{}", own.get(..12).unwrap_or(&own)),
        None => own,
    };
    authenticated.resource(Some(resource), cx)
}

/// Tells the client that its session is bound: `<bound/>`, with the features' replies to what the client asked for inline.
pub(in crate::session::auth) fn greet(success: Success, session: &mut BoundSession, cx: &mut Cx<'_>) {
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
