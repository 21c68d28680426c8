//! What clients and the server tell each other of endpoints.

use crate::error::StanzaError;
use crate::model::{Endpoint, PushName, SenderKey, UNIFIED_PUSH, UnixMs};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use carillon_wire::stanza::Condition;
use carillon_wire::xml::Element;

/// The endpoint that a client asks for.
pub(super) struct Wanted {
    pub(super) application: PushName,
    pub(super) instance: PushName,
    /// Whose pushes alone it is to take.
    pub(super) sender: Option<SenderKey>,
}

/// Reads `<register/>`. Applications and instances are hashes, as the draft recommends, so that the server learns nothing of what is on a device.
pub(super) fn read(register: &Element) -> Result<Wanted, StanzaError> {
    let name = |attribute: &str| register.attr(attribute).and_then(name_of);
    let application = name("application")
        .ok_or_else(|| bad_request("`application` is the SHA-256 of something, in base64"))?;
    let instance =
        name("instance").ok_or_else(|| bad_request("`instance` is the SHA-256 of something, in base64"))?;
    let sender = register.attr("vapid").map(|text| {
        let key = URL_SAFE_NO_PAD.decode(text).ok().and_then(|key| SenderKey::try_from(key).ok());
        let text = "`vapid` is an uncompressed point of P-256, in base64url";
        key.filter(|key| key[0] == 4).ok_or_else(|| bad_request(text))
    });
    Ok(Wanted { application, instance, sender: sender.transpose()? })
}

/// Only what is written back as it came is taken: the client compares.
fn name_of(text: &str) -> Option<PushName> {
    let name = PushName::try_from(STANDARD.decode(text).ok()?).ok()?;
    (STANDARD.encode(name) == text).then_some(name)
}

/// What a client is told of its endpoint.
pub(super) fn registered(url: &str, token: &str, expires: UnixMs) -> Element {
    Element::new("registered", UNIFIED_PUSH)
        .with_attr("endpoint", format!("{}/push/{token}", url.trim_end_matches('/')))
        .with_attr("expiration", expires.to_xmpp())
}

/// The endpoints of an account. Their URLs are told to the clients that asked for them, and to nobody else.
pub(super) fn endpoints(all: &[Endpoint], ns: &str) -> Element {
    all.iter().fold(Element::new("endpoints", ns), |list, endpoint| {
        let element = Element::new("endpoint", ns)
            .with_attr("id", endpoint.id.to_string())
            .with_attr("resource", &*endpoint.resource)
            .with_attr("application", STANDARD.encode(endpoint.application))
            .with_attr("instance", STANDARD.encode(endpoint.instance))
            .with_attr("created", endpoint.created.to_xmpp())
            .with_attr("expiration", endpoint.expires.to_xmpp());
        list.with_child(element)
    })
}

fn bad_request(text: &'static str) -> StanzaError {
    StanzaError::new(Condition::BadRequest).with_text(text)
}
