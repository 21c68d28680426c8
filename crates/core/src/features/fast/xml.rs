//! The elements of FAST, inline in `<authenticate/>`, in its offer and in the success.

use crate::model::{AgentId, UnixMs};
use crate::sasl::fast::Mechanism;
use crate::sasl::{Failure, Inline};
use carillon_wire::ns;
use carillon_wire::xml::Element;
use sha2::{Digest, Sha256};

/// How a token is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Use {
    /// How often it was used, this time included, if the client counts.
    pub(super) count: Option<u32>,
    /// Whether the token is to be invalidated.
    pub(super) invalidate: bool,
}

/// `<fast/>`: the client logs in with a token.
pub(super) fn using(inline: &Inline) -> Option<Result<Use, Failure>> {
    let fast = inline.child("fast", ns::FAST)?;
    let count = match fast.attr("count").map(str::parse) {
        None => None,
        // XEP-0484 §3.5: a positive integer.
        Some(Ok(0) | Err(_)) => return Some(Err(Failure::MalformedRequest)),
        Some(Ok(count)) => Some(count),
    };
    Some(Ok(Use { count, invalidate: matches!(fast.attr("invalidate"), Some("true" | "1")) }))
}

/// The mechanism for which the client wants a token.
pub(super) fn token_for(inline: &Inline) -> Option<Mechanism> {
    let requests = inline.children().filter(|child| child.is("request-token", ns::FAST));
    requests.filter_map(|request| request.attr("mechanism")).find_map(Mechanism::named)
}

/// A request for a token.
pub(super) fn request(mechanism: Mechanism) -> Element {
    Element::new("request-token", ns::FAST).with_attr("mechanism", mechanism.as_str())
}

/// Clients choose their ids, of any length; a hash is enough to tell them apart.
pub(super) fn agent_id(id: &str) -> AgentId {
    let hash = Sha256::digest(id.as_bytes());
    AgentId(u64::from_be_bytes(*hash.first_chunk().expect("8 of 32 bytes")))
}

/// The offer; none if no mechanism can be used.
pub(super) fn offer(usable: impl Iterator<Item = Mechanism>) -> Option<Element> {
    let entry = |m: Mechanism| Element::new("mechanism", ns::FAST).with_text(m.as_str());
    let list = usable.fold(Element::new("fast", ns::FAST), |list, m| list.with_child(entry(m)));
    (!list.nodes().is_empty()).then_some(list)
}

/// The element that carries a token in the success of a login.
pub(super) fn token(token: &str, expires: UnixMs) -> Element {
    Element::new("token", ns::FAST).with_attr("expiry", expires.to_xmpp()).with_attr("token", token)
}
