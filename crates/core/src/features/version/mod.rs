//! Software version (XEP-0092): which server this is.

use crate::error::StanzaError;
use crate::session::hook::{At, Feature, Hooks, IqAnswer, IqHandler, Request, Spec};
use crate::session::{BoundSession, Cx};
use carillon_wire::stanza::IqType;
use carillon_wire::xml::Element;

/// Its namespace.
const NS: &str = "jabber:iq:version";

/// The feature.
pub const FEATURE: Feature = Feature {
    name: "version",
    about: "Tells clients which server this is.",
    specs: &[Spec {
        id: "XEP-0092",
        title: "Software Version",
        version: "1.1",
        coverage: "Name and version of the server; its operating system is nobody's business.",
    }],
    server_features: &[NS],
    hooks: Hooks {
        iq: &[IqHandler { kind: IqType::Get, name: "query", ns: NS, at: At::Server, handle: answer }],
        ..Hooks::NONE
    },
    ..Feature::NONE
};

fn answer(
    _live: &mut BoundSession,
    _request: &Request<'_>,
    _cx: &mut Cx<'_>,
) -> Result<IqAnswer, StanzaError> {
    let name = Element::new("name", NS).with_text("Carillon");
    let version = Element::new("version", NS).with_text(env!("CARGO_PKG_VERSION"));
    Ok(IqAnswer::Payload(Element::new("query", NS).with_child(name).with_child(version)))
}
