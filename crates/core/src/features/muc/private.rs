//! A private message of an occupant has come for an account: a module may decide on it, as on any message that has come.

use super::tell;
use crate::message::{RoomAbout, RoomAudience, RoomEvent, RoomOp};
use crate::session::tapping::note_route;
use crate::session::{Cx, Sessions};
use carillon_wire::jid::Jid;
use carillon_wire::ns;
use carillon_wire::stanza::{Kind, MessageType, SharedStanza, Stanza};
use std::sync::Arc;

/// What becomes of something that a room gives.
pub(super) enum Screened {
    /// It goes on.
    Goes,
    /// This is given in its place.
    Changed(Arc<SharedStanza>),
    /// It ends here.
    Ends,
}

/// Has a module decide on a private message, once for all clients of the occupant. Whoever sent it hears of a refusal through the room, which knows who
/// that is.
pub(super) fn screened(event: &RoomEvent, sessions: &mut Sessions, cx: &mut Cx<'_>) -> Screened {
    let Some(screen) = cx.pipeline.screen_arrived else { return Screened::Goes };
    let Some(private) = private_of(event) else { return Screened::Goes };
    let RoomAudience::Clients(clients) = &event.to else { return Screened::Goes };
    let Some(client) = clients.iter().find(|client| sessions.bound(client.session).is_some()) else {
        return Screened::Goes;
    };
    let Some(session) = sessions.bound(client.session) else { return Screened::Goes };
    let room = private.from.as_ref().map(Jid::bare_str).unwrap_or_default();
    let occupant = session.state.muc.of(room).map(|joined| joined.occupant.clone());
    let mut message = private.clone().with_to(session.bare.to_jid());
    let (what, detail) = match screen(&mut message, cx) {
        Ok(None) if message.payload.bytes() == private.payload.bytes() => return Screened::Goes,
        Ok(None) => {
            message.to = None;
            return Screened::Changed(Arc::new(SharedStanza::new(message)));
        }
        Ok(Some(how)) => {
            cx.shard.counters.stanzas_taken.count(how.name());
            ("taken", how.name())
        }
        Err(error) => {
            if let (Some(mut reply), Some(occupant)) = (message.error_reply(&error), occupant) {
                reply.from = Some(occupant.clone());
                tell(&occupant, RoomOp::Refused { error: Box::new(reply) }, cx);
            }
            ("refused", error.condition.as_str())
        }
    };
    if !cx.shard.taps.is_empty() {
        note_route(&message, what, detail, cx);
    }
    Screened::Ends
}

/// The private message that this is.
fn private_of(event: &RoomEvent) -> Option<&Stanza> {
    let [only] = &event.stanzas[..] else { return None };
    let stanza = only.stanza.stanza();
    let is_message =
        matches!(stanza.kind, Kind::Message(MessageType::Chat | MessageType::Normal | MessageType::Headline));
    let is_of_occupant = stanza.from.as_ref().is_some_and(|from| from.resource().is_some());
    let is_private = is_message && is_of_occupant && event.about == RoomAbout::Others;
    (is_private && stanza.payload.find("x", ns::MUC_USER).is_some()).then_some(stanza)
}
