//! What a client says of tokens in its `<authenticate/>`.

use super::Mechanism;
use crate::model::{AgentId, UnixMs};
use carillon_wire::ns;
use carillon_wire::xml::Element;
use sha2::{Digest, Sha256};

/// What a client says of tokens when it logs in by SASL2.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Which of the account's clients it is. Without an id it gets no tokens (XEP-0484 §3.2).
    pub agent: Option<AgentId>,
    /// The mechanism for which it wants a token.
    pub token_for: Option<Mechanism>,
    /// Its use of a token, if it logs in with one.
    pub using: Option<Use>,
}

/// How a token is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// How often it was used, this time included, if the client counts.
    pub count: Option<u32>,
    /// Whether the token is to be invalidated.
    pub invalidate: bool,
}

/// The count is not a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl Wanted {
    /// Reads an `<authenticate/>`.
    pub fn read(authenticate: &Element) -> Result<Wanted, Malformed> {
        let agent = authenticate.child("user-agent", ns::SASL2).and_then(|agent| agent.attr("id"));
        let token_for = authenticate.child("request-token", ns::FAST).and_then(|e| e.attr("mechanism"));
        Ok(Wanted {
            agent: agent.filter(|id| !id.is_empty()).map(agent_id),
            token_for: token_for.and_then(Mechanism::named),
            using: authenticate.child("fast", ns::FAST).map(Use::read).transpose()?,
        })
    }

    /// Whether the account is worth remembering for its next login.
    pub fn is_returning(&self) -> bool {
        self.agent.is_some() && (self.token_for.is_some() || self.using.is_some())
    }
}

impl Use {
    fn read(fast: &Element) -> Result<Use, Malformed> {
        let count = match fast.attr("count").map(str::parse) {
            None => None,
            // XEP-0484 §3.5: a positive integer.
            Some(Ok(0) | Err(_)) => return Err(Malformed),
            Some(Ok(count)) => Some(count),
        };
        Ok(Use { count, invalidate: matches!(fast.attr("invalidate"), Some("true" | "1")) })
    }
}

/// The element that carries a token in the success of a login.
pub fn element(token: &str, expires: UnixMs) -> Element {
    Element::new("token", ns::FAST).with_attr("expiry", expires.to_xmpp()).with_attr("token", token)
}

/// Clients choose their ids, of any length; a hash is enough to tell them apart.
fn agent_id(id: &str) -> AgentId {
    let hash = Sha256::digest(id.as_bytes());
    AgentId(u64::from_be_bytes(*hash.first_chunk().expect("8 of 32 bytes")))
}
