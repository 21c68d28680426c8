//! Session establishment of RFC 3921: without effect since RFC 6121, but old clients require it.

use crate::error::StanzaError;
use crate::session::hook::{At, Feature, Hooks, IqAnswer, IqHandler, Request, Spec};
use crate::session::{BoundSession, Cx};
use carillon_wire::ns;
use carillon_wire::stanza::IqType;
use carillon_wire::xml::Element;

/// The feature.
pub const FEATURE: Feature = Feature {
    name: "session_establishment",
    about: "Lets old clients establish a session after binding, which does nothing.",
    specs: &[Spec {
        id: "RFC 3921",
        title: "XMPP: Instant Messaging and Presence",
        version: "",
        coverage: "§3 only: offered as optional and answered with an empty result.",
    }],
    hooks: Hooks {
        offer: Some(|_, features| {
            features
                .push(Element::new("session", ns::SESSION).with_child(Element::new("optional", ns::SESSION)));
        }),
        iq: &[IqHandler {
            kind: IqType::Set,
            name: "session",
            ns: ns::SESSION,
            at: At::Both,
            handle: establish,
        }],
        ..Hooks::NONE
    },
    ..Feature::NONE
};

fn establish(
    _live: &mut BoundSession,
    _request: &Request<'_>,
    _cx: &mut Cx<'_>,
) -> Result<IqAnswer, StanzaError> {
    Ok(IqAnswer::Empty)
}
