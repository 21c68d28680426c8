//! What is asked of a queue.

use crate::error::StanzaError;
use crate::message::Wish;
use crate::model::NewTicket;
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, IqType, Payload};
use carillon_wire::xml::Element;

/// What is wanted of a queue; none of a request about something else.
pub(super) fn read(kind: IqType, payload: &Payload) -> Result<Option<Wish>, StanzaError> {
    if kind == IqType::Set && payload.find("cancel", ns::MATCHES).is_some() {
        return Ok(Some(Wish::Cancel));
    }
    let Some(ticket) = payload.find("ticket", ns::MATCHES).map(|ticket| ticket.element()) else {
        return Ok(None);
    };
    match kind {
        IqType::Set => enter(&ticket).map(Some),
        _ => Ok(Some(Wish::Look)),
    }
}

fn enter(ticket: &Element) -> Result<Wish, StanzaError> {
    let rating = ticket.attr("rating").map_or(Ok(0), str::parse);
    let rating = rating.ok().filter(|rating: &i64| rating.unsigned_abs() <= NewTicket::RATING_MAX.into());
    let rating =
        rating.ok_or_else(|| bad_request("`rating` is an integer from -1000000000 to 1000000000"))?;
    let mut alike: Vec<(Box<str>, Box<str>)> = Vec::new();
    for child in ticket.children().filter(|child| child.is("alike", ns::MATCHES)) {
        let name = child.attr("name").unwrap_or_default();
        let value = child.text();
        if alike.len() == NewTicket::ALIKE_MAX
            || name.is_empty()
            || name.len() > NewTicket::ALIKE_BYTES_MAX
            || value.len() > NewTicket::ALIKE_BYTES_MAX
        {
            return Err(bad_request(
                "there are at most 16 `alike`, with names of 1 to 64 bytes and values of at most 64",
            ));
        }
        alike.push((name.into(), value.into()));
    }
    alike.sort_unstable();
    let given = alike.len();
    alike.dedup_by(|(one, _), (other, _)| one == other);
    if alike.len() < given {
        return Err(bad_request("each `alike` has a name of its own"));
    }
    Ok(Wish::Enter { rating, alike })
}

fn bad_request(text: &'static str) -> StanzaError {
    StanzaError::new(Condition::BadRequest).with_text(text)
}
