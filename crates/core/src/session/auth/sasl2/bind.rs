//! Bind 2 (XEP-0386): a resource is bound inline, and features are enabled with it.

use crate::session::Cx;
use crate::session::auth::Authenticated;
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
