//! SASL as RFC 6120 §6 frames it.

mod bind;
mod success;

pub use bind::{Binding, Restarting};
pub(super) use success::succeed;

use super::Authenticating;
use crate::sasl::{self, SaslProfile};
use crate::session::{Cx, Session};
use carillon_wire::xml::Element;

/// An `<auth/>`: the mechanism, and its first message if the client sends one.
pub(super) fn begin(client: Box<Authenticating>, auth: &Element, cx: &mut Cx<'_>) -> Session {
    client.choose(SaslProfile::Classic, auth.attr("mechanism"), sasl::decode(auth), cx)
}
