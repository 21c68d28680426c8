//! Entity time (XEP-0202): what time it is at the server.

use crate::error::StanzaError;
use crate::session::hook::{At, Feature, Hooks, IqAnswer, IqHandler, Request, Spec};
use crate::session::{BoundSession, Cx};
use carillon_wire::stanza::IqType;
use carillon_wire::xml::Element;

/// Its namespace.
const NS: &str = "urn:xmpp:time";

/// The feature.
pub const FEATURE: Feature = Feature {
    name: "time",
    about: "Tells clients what time it is.",
    specs: &[Spec {
        id: "XEP-0202",
        title: "Entity Time",
        version: "2.0",
        coverage: "The server's time, in UTC.",
    }],
    server_features: &[NS],
    hooks: Hooks {
        iq: &[IqHandler { kind: IqType::Get, name: "time", ns: NS, at: At::Server, handle: answer }],
        ..Hooks::NONE
    },
    ..Feature::NONE
};

fn answer(
    _live: &mut BoundSession,
    _request: &Request<'_>,
    cx: &mut Cx<'_>,
) -> Result<IqAnswer, StanzaError> {
    let zone = Element::new("tzo", NS).with_text("+00:00");
    let utc = Element::new("utc", NS).with_text(cx.now.unix.to_xmpp());
    Ok(IqAnswer::Payload(Element::new("time", NS).with_child(zone).with_child(utc)))
}
