//! Whom, and what, an account does not let add it to rooms (§4.5).

use crate::error::{StanzaError, store_unavailable};
use crate::model::RoomBlock;
use crate::ports::Fault;
use crate::ports::store::rooms::{ChangeRoomBlocks, ChangeRoomBlocksAnswer, RoomBlocks};
use crate::session::hook::{Flow, Taken};
use crate::session::{BoundSession, Cx, Wait};
use crate::shard::Track;
use carillon_wire::jid::Jid;
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, Stanza};
use carillon_wire::xml::Element;

/// Entries of one request.
const ENTRIES_MAX: usize = 200;

/// Tells the account whom it blocks.
pub(super) fn list(session: &BoundSession) -> Flow {
    let question = RoomBlocks { domain: session.domain, local: session.bare.local().into() };
    Flow::Wait(Wait::ask(question, |session, stanza, answer: Result<Vec<RoomBlock>, Fault>, cx| {
        let blocks = answer.map_err(|_| store_unavailable())?;
        let mut query = Element::new("query", ns::MUCLIGHT_BLOCKING);
        for block in blocks {
            let name = if block.is_room { "room" } else { "user" };
            let entry = Element::new(name, ns::MUCLIGHT_BLOCKING).with_attr("action", "deny");
            query.push(entry.with_text(block.jid.as_str()));
        }
        session.send(&stanza.result_reply().with_payload(query), &Track::Nothing, cx);
        Ok(Flow::Taken(Taken::Request))
    }))
}

/// Changes whom the account blocks.
pub(super) fn change(
    session: &BoundSession,
    stanza: &Stanza,
    query: &Element,
    cx: &Cx<'_>,
) -> Result<Flow, StanzaError> {
    let question = ChangeRoomBlocks {
        domain: session.domain,
        local: session.bare.local().into(),
        changes: read(query)?,
        max: cx.shard.settings.limits.block_list.addresses,
    };
    let reply = stanza.result_reply();
    Ok(Flow::Wait(Wait::write(question, move |answer, cx| match answer {
        Ok(ChangeRoomBlocksAnswer::Changed) => {
            cx.reply(reply);
            Ok(Flow::Taken(Taken::Request))
        }
        Ok(ChangeRoomBlocksAnswer::Full) => {
            Err(StanzaError::new(Condition::ResourceConstraint).with_text("your block list is full"))
        }
        Ok(ChangeRoomBlocksAnswer::NoAccount) => Err(StanzaError::new(Condition::ItemNotFound)),
        Err(_) => Err(store_unavailable()),
    })))
}

/// What a request wants: entries that are to be there, and entries that are not.
fn read(query: &Element) -> Result<Vec<(RoomBlock, bool)>, StanzaError> {
    let bad_request = || StanzaError::new(Condition::BadRequest);
    if query.children().count() > ENTRIES_MAX {
        let text = format!("at most {ENTRIES_MAX} entries in one request");
        return Err(StanzaError::new(Condition::PolicyViolation).with_text(text));
    }
    let mut changes = Vec::new();
    for entry in query.children() {
        let is_room = match entry.name() {
            "room" => true,
            "user" => false,
            _ => return Err(bad_request()),
        };
        let is_wanted = match entry.attr("action") {
            Some("deny") => true,
            Some("allow") => false,
            _ => return Err(bad_request()),
        };
        let jid = Jid::new(entry.text().trim()).map_err(|_| StanzaError::new(Condition::JidMalformed))?;
        changes.push((RoomBlock { is_room, jid: jid.bare() }, is_wanted));
    }
    if changes.is_empty() {
        return Err(bad_request());
    }
    Ok(changes)
}
