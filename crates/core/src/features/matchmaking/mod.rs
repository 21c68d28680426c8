//! Tickets of the matchmaker, by IQ: an account enters one in a queue at `QUEUE@matches.DOMAIN`, looks at it, and withdraws it. The queue
//! answers, and tells whoever entered a ticket what becomes of it (`game::players`). Which queues there are is said over HTTP.

mod xml;

use crate::command::PendingIq;
use crate::error::StanzaError;
use crate::message::{GameMessage, QueueAddress, ShardMessage};
use crate::model::queue_address;
use crate::session::hook::{Feature, Flow, Hooks, Service, Taken};
use crate::session::{BoundSession, Cx, account_reads};
use carillon_wire::stanza::{IqType, Kind, Stanza};

/// The feature.
pub const FEATURE: Feature = Feature {
    name: "matchmaking",
    about: "Lets accounts enter tickets of the matchmaker themselves, in queues that are open to them.",
    services: &[SERVICE],
    is_on: |settings| settings.matches.max > 0,
    hooks: Hooks::NONE,
    ..Feature::NONE
};

const SERVICE: Service = Service {
    host: "matches",
    name: "Matches",
    identity: ("component", "generic"),
    submit,
    place: Some(queue_address),
    is_for_others: false,
};

/// A stanza for a queue.
fn submit(session: &mut BoundSession, stanza: &mut Stanza, cx: &mut Cx<'_>) -> Result<Flow, StanzaError> {
    let Some(to) = stanza.to.as_ref().filter(|to| to.is_bare()) else { return Ok(Flow::Pass) };
    let (Some(queue), Kind::Iq(kind @ (IqType::Get | IqType::Set))) = (to.local(), stanza.kind) else {
        return Ok(Flow::Pass);
    };
    let Some(wish) = xml::read(kind, &stanza.payload)? else { return Ok(Flow::Pass) };
    cx.check_room(session.domain)?;
    let place = SERVICE.home(queue, session.bare.domain(), cx);
    let queue = QueueAddress { place, domain: session.domain, name: queue.into() };
    let pending = PendingIq::new(stanza, &session.jid);
    let iq = PendingIq { id: account_reads::id_elsewhere(&pending, place, cx), ..pending };
    let ticket = format!("{:016x}{:016x}", cx.shard.random.number(), cx.shard.random.number());
    let asked = GameMessage::Asked { queue, wish: Box::new(wish), ticket: ticket.into(), iq: Box::new(iq) };
    cx.post(place, ShardMessage::Game(Box::new(asked)));
    Ok(Flow::Taken(Taken::Request))
}
