//! SASL as XEP-0388 frames it, with Bind 2 (XEP-0386) inline.

mod bind;
mod success;

pub(super) use success::succeed;

use super::Authenticating;
use crate::connection::{FeatureClaim, FeatureProof, Proof};
use crate::sasl::{self, Inline, SaslProfile};
use crate::session::{Cx, Session};
use carillon_wire::xml::Element;

/// An `<authenticate/>`: the mechanism, its first message if the client sends one, and what it asks for inline.
pub(super) fn begin(client: Box<Authenticating>, authenticate: Element, cx: &mut Cx<'_>) -> Session {
    let (inline, initial) = Inline::of(authenticate);
    for handler in cx.pipeline.proofs() {
        match (handler.claim)(&client, &inline, initial.as_ref(), cx) {
            None => {}
            Some(Ok(FeatureClaim { account, message })) => {
                let proof = FeatureProof { kind: handler.kind, inline, message };
                return client.claim(account, Proof::Feature(proof));
            }
            Some(Err(failure)) => {
                return Authenticating::refuse(
                    client.client,
                    &SaslProfile::Sasl2(inline),
                    failure.into(),
                    cx,
                );
            }
        }
    }
    // XEP-0388: an empty <initial-response/> is an empty message, a missing one is none.
    let first = match &initial {
        Some(initial) => sasl::decode(initial).map(|data| Some(data.unwrap_or_default())),
        None => Ok(None),
    };
    let mechanism = inline.mechanism().map(str::to_owned);
    client.choose(SaslProfile::Sasl2(inline), mechanism.as_deref(), first, cx)
}
