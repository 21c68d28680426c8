//! What a presence stanza carries.

use crate::error::StanzaError;
use crate::model::Availability;
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, Stanza};

/// `<show/>` and `<priority/>` (RFC 6121 §4.7.2).
pub(super) fn parse(stanza: &Stanza) -> Result<(Availability, i8), StanzaError> {
    let text = |name| stanza.payload.find(name, ns::CLIENT).map(|child| child.element().text());
    let availability = match text("show").as_deref().map(str::trim) {
        None | Some("") => Availability::Available,
        Some("chat") => Availability::Chat,
        Some("away") => Availability::Away,
        Some("xa") => Availability::Xa,
        Some("dnd") => Availability::Dnd,
        Some(_) => return Err(StanzaError::new(Condition::BadRequest).with_text("unknown <show/>")),
    };
    let priority = match text("priority") {
        None => 0,
        Some(text) => text.trim().parse().map_err(|_| {
            StanzaError::new(Condition::BadRequest).with_text("a priority is a number from -128 to 127")
        })?,
    };
    Ok((availability, priority))
}
