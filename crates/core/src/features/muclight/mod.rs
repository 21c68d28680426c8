//! MUC Light at `muclight.DOMAIN`. What clients say goes to the room's home ([`crate::room`]); what rooms say is given to the sessions of
//! their occupants here.
//!
//! An occupant hears its rooms in all its sessions that take messages. What is said while it has none is not among its offline messages: it is in the
//! room's archive, and its inbox says so.

mod blocking;

use crate::error::StanzaError;
use crate::message::{RoomAudience, RoomOp, RoomSeat, ShardMessage};
use crate::model::{RoomKind, SessionId, room_version};
use crate::ports::store::rooms::RoomsOf;
use crate::session::hook::{Feature, Flow, Hooks, Service, Spec, Taken};
use crate::session::{BoundSession, Cx, Sessions, Wait, rsm};
use crate::shard::{Addressee, RoomSlice, Track};
use carillon_wire::jid::{BareJid, Jid};
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, IqType, Kind, Stanza};
use carillon_wire::xml::Element;
use smallvec::SmallVec;

/// The feature.
pub const FEATURE: Feature = Feature {
    name: "muclight",
    about: "Rooms whose occupants are accounts, without presence.",
    specs: &[Spec {
        id: "urn:xmpp:muclight:0",
        title: "MUC Light",
        version: "0",
        coverage: "All of it, at `muclight.DOMAIN` for accounts of the domain, but rooms in rosters: creation with a name of one's own or of the \
                   server, configuration, affiliations with one owner, information by version, blocking of rooms, accounts and domains, the \
                   rooms that one is in, archives. A message of a room goes to all sessions of its occupants that take messages.",
    }],
    services: &[SERVICE],
    hooks: Hooks { room: Some(give), hears: Some(hears), ..Hooks::NONE },
    ..Feature::NONE
};

const KIND: RoomKind = RoomKind::MucLight;

const SERVICE: Service = Service {
    host: KIND.host(),
    name: "MUC Light",
    identity: ("conference", "text"),
    submit,
    place: Some(|name, domain| KIND.address(name, domain)),
    is_for_others: false,
};

/// A stanza for a room, or for the service.
fn submit(session: &mut BoundSession, stanza: &mut Stanza, cx: &mut Cx<'_>) -> Result<Flow, StanzaError> {
    if let Kind::Presence(_) = stanza.kind {
        // §7.2
        return Ok(Flow::Taken(Taken::Request));
    }
    let Some(to) = stanza.to.clone() else { return Ok(Flow::Pass) };
    match to.local() {
        Some(name) => Ok(of_room(session, name.into(), &to, stanza.clone(), cx)),
        None => of_service(session, stanza, cx),
    }
}

/// A stanza for a room: its home deals with it. What only reads waits, so that answers come one by one.
fn of_room(session: &mut BoundSession, name: Box<str>, to: &Jid, stanza: Stanza, cx: &mut Cx<'_>) -> Flow {
    let seat = RoomSeat { place: cx.shard.place, session: session.id, presences: 0 };
    let (at, domain) = (SERVICE.home(&name, session.bare.domain(), cx), session.domain);
    let is_read = match stanza.kind {
        Kind::Iq(IqType::Get) => to.is_bare(),
        Kind::Iq(IqType::Set) => to.is_bare() && stanza.payload.find("query", ns::MAM).is_some(),
        Kind::Iq(_) | Kind::Message(_) | Kind::Presence(_) => false,
    };
    let room = move |stanza, settlement| {
        let op = RoomOp::Stanza { seat, stanza: Box::new(stanza), settlement };
        ShardMessage::Room { domain, kind: KIND, name, op }
    };
    if is_read {
        return Flow::Wait(Wait::reply(at.node, move |id, cx| {
            cx.post(at, room(Stanza { id: Some(id), ..stanza }, None));
        }));
    }
    let settlement = match stanza.kind {
        Kind::Message(_) => cx.settlement_of(session, &stanza),
        _ => None,
    };
    // A set keeps its id, because what the room tells of it has that id. So it is not awaited, and has no answer if the room's node dies.
    cx.post(at, room(stanza, settlement));
    Flow::Taken(Taken::Request)
}

/// A stanza for the service itself.
fn of_service(session: &mut BoundSession, stanza: &Stanza, cx: &mut Cx<'_>) -> Result<Flow, StanzaError> {
    let Kind::Iq(kind @ (IqType::Get | IqType::Set)) = stanza.kind else { return Ok(Flow::Pass) };
    let Some(query) = stanza.payload.children().next().map(|query| query.element()) else {
        return Ok(Flow::Pass);
    };
    match (kind, query.ns(), query.name()) {
        (IqType::Get, ns::DISCO_INFO, "query") if query.attr("node").is_none() => {
            session.send(&stanza.result_reply().with_payload(info()), &Track::Nothing, cx);
            Ok(Flow::Taken(Taken::Request))
        }
        (IqType::Get, ns::DISCO_ITEMS, "query") if query.attr("node").is_none() => {
            own_rooms(session, &query, cx)
        }
        (IqType::Get, ns::MUCLIGHT_BLOCKING, "query") => Ok(blocking::list(session)),
        (IqType::Set, ns::MUCLIGHT_BLOCKING, "query") => blocking::change(session, stanza, &query, cx),
        (IqType::Set, ns::MUCLIGHT_CREATE, "query") => create_unique(session, stanza, cx),
        _ => Ok(Flow::Pass),
    }
}

/// The rooms that the account is in (§3.3).
fn own_rooms(session: &BoundSession, query: &Element, cx: &Cx<'_>) -> Result<Flow, StanzaError> {
    let page = rsm::Page::of(query)?;
    // The entry of a page is the address of a room.
    let after = page.after()?.map(|after| after.split('@').next().unwrap_or_default().into());
    let limit =
        page.max(cx.shard.settings.muclight.rooms_per_page, cx.shard.settings.muclight.rooms_per_page);
    let (domain, jid) = (session.domain, session.bare.to_bare());
    let question = RoomsOf { domain, kind: KIND, jid, after, limit };
    Ok(Flow::Wait(Wait::ask(question, move |session, stanza, answer, cx| {
        let rooms = answer.map_err(|_| StanzaError::new(Condition::InternalServerError))?;
        let mut query = Element::new("query", ns::DISCO_ITEMS);
        let address = |name: &str| KIND.address(name, session.bare.domain());
        for room in &rooms {
            let name = if room.title.is_empty() { &room.name } else { &room.title };
            let item = Element::new("item", ns::DISCO_ITEMS)
                .with_attr("jid", address(&room.name))
                .with_attr("name", &**name)
                .with_attr("version", room_version(room.id, room.version));
            query.push(item);
        }
        // A client that does not page is told that there are more.
        if page.is_asked() || rooms.len() == usize::from(limit) {
            let (first, last) = (rooms.first(), rooms.last());
            let (first, last) = (first.map(|room| address(&room.name)), last.map(|room| address(&room.name)));
            query.push(rsm::set(first.as_deref(), last.as_deref(), None));
        }
        session.send(&stanza.result_reply().with_payload(query), &Track::Nothing, cx);
        Ok(Flow::Taken(Taken::Request))
    })))
}

/// Creates a room under a name that the server makes (§5.1.1). The answer comes from the room.
fn create_unique(session: &mut BoundSession, stanza: &Stanza, cx: &mut Cx<'_>) -> Result<Flow, StanzaError> {
    let random = cx.shard.random.bytes();
    let name: String = random.iter().take(UNIQUE_NAME_BYTES).map(|byte| format!("{byte:02x}")).collect();
    let address = KIND.address(&name, session.bare.domain());
    let to = Jid::new(&address).map_err(|_| StanzaError::new(Condition::InternalServerError))?;
    let stanza = stanza.clone().with_to(to.clone());
    Ok(of_room(session, name.into(), &to, stanza, cx))
}

/// Random bytes of a name that the server makes.
const UNIQUE_NAME_BYTES: usize = 12;

/// The disco#info of the service.
fn info() -> Element {
    let identity = Element::new("identity", ns::DISCO_INFO)
        .with_attr("category", SERVICE.identity.0)
        .with_attr("type", SERVICE.identity.1)
        .with_attr("name", SERVICE.name);
    let mut query = Element::new("query", ns::DISCO_INFO).with_child(identity);
    for var in [ns::DISCO_INFO, ns::DISCO_ITEMS, ns::MUCLIGHT, ns::RSM] {
        query.push(Element::new("feature", ns::DISCO_INFO).with_attr("var", var));
    }
    query
}

/// A room gives something to accounts of this shard.
fn give(slice: &RoomSlice<'_>, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    let RoomAudience::Accounts(accounts) = &slice.event.to else { return };
    for (at, stanzas, _) in slice.recipients() {
        let Some(account) = accounts.get(at) else { continue };
        for session in takers(account, sessions) {
            let Some(session) = sessions.bound(session) else { continue };
            for of in stanzas {
                session.give_shared(&of.stanza, Addressee::Account, cx);
            }
        }
    }
}

/// Whether a session is given what a room says.
fn hears(session: &BoundSession, room: &BareJid) -> bool {
    let of_host = RoomKind::of_host(room.domain());
    of_host.is_some_and(|(kind, _)| kind == KIND) && session.presence.takes_messages()
}

/// The sessions of an account that take messages.
fn takers(account: &BareJid, sessions: &Sessions) -> SmallVec<[SessionId; 4]> {
    let bound = sessions.bound_of(account.as_str());
    bound.iter().filter(|session| session.presence.takes_messages()).map(|session| session.id).collect()
}
