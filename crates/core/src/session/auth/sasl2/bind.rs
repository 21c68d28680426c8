//! Bind 2 (XEP-0386): a resource is bound inline, and features are enabled with it.

use crate::session::Cx;
use crate::session::auth::Authenticated;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use carillon_wire::jid::Jid;
use carillon_wire::ns;
use carillon_wire::stanza::StanzaError;
use carillon_wire::xml::Element;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The server makes the resource, of the client's tag and something of its own (XEP-0386 §3.2). A client that says which one it is (XEP-0388 §2.3) has the
/// same resource whenever it logs in, so that what is for this client alone finds it.
pub(super) fn resource(
    authenticated: &Authenticated,
    bind: &Element,
    agent: Option<&str>,
    cx: &mut Cx<'_>,
) -> Result<Jid, StanzaError> {
    let tag = bind.child("tag", ns::BIND2).map(Element::text).filter(|tag| !tag.is_empty());
    let own = match agent {
        Some(agent) => of_agent(authenticated, agent, cx),
        None => cx.shard.random.token(),
    };
    let resource = match tag {
        Some(tag) => format!("{tag}/{}", own.get(..12).unwrap_or(&own)),
        None => own,
    };
    authenticated.resource(Some(resource), cx)
}

/// What stands for one client of an account, and does not tell others the id that it gave.
fn of_agent(authenticated: &Authenticated, agent: &str, cx: &Cx<'_>) -> String {
    let secret = &cx.shard.settings.secret;
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes a key of any length");
    mac.update(b"carillon resource");
    mac.update(authenticated.jid().as_str().as_bytes());
    mac.update(b"\0");
    mac.update(agent.as_bytes());
    URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes())
}
