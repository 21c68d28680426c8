//! Rooms at `rooms.DOMAIN` (XEP-0045). What clients say goes to the room's home ([`crate::room`]); what rooms say is given to clients here.

mod private;

use crate::command::PendingIq;
use crate::error::StanzaError;
use crate::event::Leave;
use crate::feature_state::muc::Joined;
use crate::message::{Announcement, RoomAbout, RoomAudience, RoomEvent, RoomOp, RoomSeat, ShardMessage};
use crate::model::{Domain, RoomKind, RoomPresence};
use crate::ports::Directory;
use crate::ports::store::rooms::Rooms;
use crate::room::xml;
use crate::session::hook::{Feature, Flow, Hooks, Service, Spec, Taken};
use crate::session::{BoundSession, Cx, Sessions, Wait, account_reads, rsm};
use crate::shard::{Addressee, Names, RoomSlice, Track};
use carillon_wire::jid::{BareJid, Jid};
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, IqType, Kind, PresenceType, Stanza};
use carillon_wire::xml::Element;
use private::Screened;
use std::sync::Arc;

/// The feature.
pub const FEATURE: Feature = Feature {
    name: "muc",
    about: "Rooms: conversations of many.",
    specs: &[
        Spec {
            id: "XEP-0045",
            title: "Multi-User Chat",
            version: "1.35.5",
            coverage: "Rooms at `rooms.DOMAIN` for accounts of the domain, and of others where both policies say so: entering, history, subject, private messages, mediated invitations, \
                       voice, kicks, bans of accounts and domains, roles, affiliations, configuration, registration of nicks, \
                       destruction. All status codes of §15.6.2 but 102 and 103, for no room shows who is not \
                       available, and 210, for no nick is changed. Not there: `muc#roomconfig_getmemberlist` other than what is done anyway.",
        },
        Spec {
            id: "XEP-0054",
            title: "vcard-temp",
            version: "1.3.0",
            coverage: "That of a room is set by its owners at its bare JID, as long as `limits.vcard_bytes` says, and read by whoever may see the room; those of \
                       occupants are read at their addresses in the room.",
        },
        Spec {
            id: "XEP-0153",
            title: "vCard-Based Avatars",
            version: "1.1.1",
            coverage: "The avatar of a room, in a presence from its bare JID to those who enter, and to all when it changes.",
        },
        Spec {
            id: "XEP-0313",
            title: "Message Archive Management",
            version: "1.1.3",
            coverage: "The archives of rooms (§3.1).",
        },
        Spec {
            id: "XEP-0410",
            title: "MUC Self-Ping (Schrödinger's Chat)",
            version: "1.1.0",
            coverage: "The room answers.",
        },
        Spec { id: "XEP-0421", title: "Occupant identifiers", version: "1.0.1", coverage: "All of it." },
        Spec {
            id: "XEP-0424",
            title: "Message Retraction",
            version: "0.4.2",
            coverage: "In rooms, by whoever said it; a tombstone stays in the archive.",
        },
        Spec {
            id: "XEP-0425",
            title: "Moderated Message Retraction",
            version: "0.3.0",
            coverage: "Moderators retract messages; a tombstone stays in the archive.",
        },
        Spec {
            id: "XEP-0486",
            title: "MUC Avatars",
            version: "0.1.0",
            coverage: "All of it; a vCard has at most four photos.",
        },
    ],
    services: &[SERVICE],
    hooks: Hooks {
        announced: Some(announced),
        shutdown: Some(shutdown),
        close: Some(close),
        restored: Some(restored),
        homes_moved: Some(homes_moved),
        room: Some(give),
        hears: Some(hears),
        ..Hooks::NONE
    },
    ..Feature::NONE
};

const KIND: RoomKind = RoomKind::Muc;

const SERVICE: Service = Service {
    host: KIND.host(),
    name: "Rooms",
    identity: ("conference", "text"),
    submit,
    place: Some(|name, domain| KIND.address(name, domain)),
    is_for_others: true,
};

/// Whether a session is given what a room says: it is in it.
fn hears(session: &BoundSession, room: &BareJid) -> bool {
    session.state.muc.is_in(room.as_str())
}

/// Rooms of a page of the list.
const PAGE: u16 = 100;

/// A stanza for a room, or for the service.
fn submit(session: &mut BoundSession, stanza: &mut Stanza, cx: &mut Cx<'_>) -> Result<Flow, StanzaError> {
    let Some(to) = stanza.to.clone() else { return Ok(Flow::Pass) };
    let Some(domain) = domain_of(&to, cx) else { return Ok(Flow::Pass) };
    let Some(name) = to.local().map(Box::<str>::from) else {
        return of_service(session, stanza, &domain, cx);
    };
    let stanza_for_room = stanza.clone();
    let presences = match stanza.kind {
        Kind::Presence(kind) => track(session, kind, &to, &stanza_for_room, cx)?,
        Kind::Iq(_) | Kind::Message(_) => 0,
    };
    let is_read = match stanza.kind {
        Kind::Iq(IqType::Get) => to.is_bare(),
        Kind::Iq(IqType::Set) => to.is_bare() && stanza.payload.find("query", ns::MAM).is_some(),
        Kind::Iq(_) | Kind::Message(_) | Kind::Presence(_) => false,
    };
    let seat = seat(session, presences, cx);
    let (at, domain) = (SERVICE.home(&name, &domain.name, cx), domain.id);
    if is_read {
        return Ok(Flow::Wait(Wait::reply(at.node, move |id, cx| {
            let mut stanza = Box::new(stanza_for_room);
            stanza.id = Some(id);
            let op = RoomOp::Stanza { seat, stanza, settlement: None };
            cx.post(at, ShardMessage::Room { domain, kind: KIND, name, op });
        })));
    }
    let settlement = match stanza.kind {
        Kind::Message(_) => cx.settlement_of(session, stanza),
        _ => None,
    };
    let mut stanza_for_room = Box::new(stanza_for_room);
    if matches!(stanza.kind, Kind::Iq(IqType::Set)) && to.is_bare() {
        let pending = PendingIq::new(stanza, &session.jid);
        stanza_for_room.id = Some(account_reads::id_elsewhere(&pending, at, cx));
    }
    let op = RoomOp::Stanza { seat, stanza: stanza_for_room, settlement };
    cx.post(at, ShardMessage::Room { domain, kind: KIND, name, op });
    Ok(Flow::Taken(Taken::Request))
}

/// The domain of a room, which need not be that of who is in it.
fn domain_of(room: &Jid, cx: &Cx<'_>) -> Option<Arc<Domain>> {
    cx.shard.domains.named(room.domain().split_once('.')?.1).cloned()
}

/// Where the session is, to a room.
fn seat(session: &BoundSession, presences: u32, cx: &Cx<'_>) -> RoomSeat {
    RoomSeat { place: cx.shard.place, session: session.id, presences }
}

/// Remembers where the session enters and the presence that it sends there. Returns how many it had sent there before.
fn track(
    session: &mut BoundSession,
    kind: PresenceType,
    to: &Jid,
    stanza: &Stanza,
    cx: &Cx<'_>,
) -> Result<u32, StanzaError> {
    let limits = &cx.shard.settings.limits;
    if stanza.payload.bytes().len() > limits.presence_bytes {
        let text = format!("a presence carries at most {} bytes", limits.presence_bytes);
        return Err(StanzaError::new(Condition::PolicyViolation).with_text(text));
    }
    if kind != PresenceType::Available || to.is_bare() {
        return Ok(0);
    }
    let rooms = &mut session.state.muc;
    let count = rooms.len();
    match rooms.of(to.bare_str()) {
        Some(joined) => {
            joined.presence = RoomPresence::of(stanza);
            joined.presences = joined.presences.wrapping_add(1);
            return Ok(joined.presences);
        }
        None if count >= limits.rooms_joined as usize => {
            return Err(
                StanzaError::new(Condition::ResourceConstraint).with_text("you are in too many rooms")
            );
        }
        None => rooms.enter(Some(&session.jid), to.clone(), RoomPresence::of(stanza)),
    }
    Ok(0)
}

/// A stanza for the service itself: it lists its rooms.
fn of_service(
    session: &mut BoundSession,
    stanza: &Stanza,
    domain: &Domain,
    cx: &mut Cx<'_>,
) -> Result<Flow, StanzaError> {
    if stanza.kind != Kind::Iq(IqType::Get) {
        return Ok(Flow::Pass);
    }
    if let Some(query) = stanza.payload.find("query", ns::DISCO_INFO).map(|query| query.element())
        && query.attr("node").is_none()
    {
        session.send(&stanza.result_reply().with_payload(info()), &Track::Nothing, cx);
        return Ok(Flow::Taken(Taken::Request));
    }
    let Some(query) = stanza.payload.find("query", ns::DISCO_ITEMS).map(|query| query.element()) else {
        return Ok(Flow::Pass);
    };
    if query.attr("node").is_some() {
        return Ok(Flow::Pass);
    }
    let page = rsm::Page::of(&query)?;
    let (after, limit) = (page.after()?, page.max(PAGE, PAGE));
    let question = Rooms { domain: domain.id, kind: KIND, after, limit, all: false };
    let name = domain.name.clone();
    Ok(Flow::Wait(Wait::ask(question, move |session, stanza, answer, cx| {
        let rooms = answer.map_err(|_| StanzaError::new(Condition::InternalServerError))?;
        // A client that does not page is told that there are more.
        let is_paged = page.is_asked() || rooms.len() == usize::from(PAGE);
        let query = xml::rooms(&rooms, &name, is_paged);
        session.send(&stanza.result_reply().with_payload(query), &Track::Nothing, cx);
        Ok(Flow::Taken(Taken::Request))
    })))
}

/// The disco#info of the service.
fn info() -> Element {
    let identity = Element::new("identity", ns::DISCO_INFO)
        .with_attr("category", "conference")
        .with_attr("type", "text")
        .with_attr("name", SERVICE.name);
    let mut query = Element::new("query", ns::DISCO_INFO).with_child(identity);
    for var in [ns::DISCO_INFO, ns::DISCO_ITEMS, ns::MUC, ns::RSM, ns::OCCUPANT_ID, ns::VCARD] {
        query.push(Element::new("feature", ns::DISCO_INFO).with_attr("var", var));
    }
    query
}

/// A room gives something to clients of this shard.
fn give(slice: &RoomSlice<'_>, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    let RoomEvent { to: RoomAudience::Clients(to), except, about, .. } = slice.event else { return };
    let room = slice.event.room();
    let private = match private::screened(slice.event, sessions, cx) {
        Screened::Goes => None,
        Screened::Changed(stanza) => Some(stanza),
        Screened::Ends => return,
    };
    for (at, stanzas, is_first) in slice.recipients() {
        let Some(recipient) = to.get(at).filter(|recipient| !except.contains(&recipient.session)) else {
            continue;
        };
        let Some(session) = sessions.bound(recipient.session) else { continue };
        if !matches!(about, RoomAbout::Left { .. }) && room.is_some_and(|room| is_apart(session, room, cx)) {
            continue;
        }
        if is_first {
            note(session, about, cx);
        }
        for of in stanzas {
            let stanza = of.full.as_ref().filter(|_| recipient.sees_addresses).unwrap_or(&of.stanza);
            let stanza = private.as_ref().unwrap_or(stanza);
            session.give_shared(stanza, Addressee::Client, cx);
        }
    }
}

/// Notes in which room a session is now, or is not any more.
fn note(session: &mut BoundSession, about: &RoomAbout, cx: &mut Cx<'_>) {
    match about {
        RoomAbout::Others => {}
        RoomAbout::Entered(occupant, role) => match session.state.muc.of(occupant.bare_str()) {
            Some(joined) => (joined.occupant, joined.role) = (occupant.clone(), Some(*role)),
            // It would stay in the room for ever.
            None => gone(session, occupant, true, cx),
        },
        RoomAbout::Left { occupant, presences } => {
            session.state.muc.leave(occupant.bare_str(), *presences);
        }
    }
}

/// Whether a session is not given anything of a room any more, because the policies have come to keep their domains apart: then it leaves.
fn is_apart(session: &mut BoundSession, room: &Jid, cx: &mut Cx<'_>) -> bool {
    let own = session.bare.domain();
    let Some((_, domain)) = room.domain().split_once('.') else { return false };
    if domain == own || cx.shard.domains.reachable(own, domain).is_some() {
        return false;
    }
    if let Some(occupant) = session.state.muc.of(room.bare_str()).map(|joined| joined.occupant.clone()) {
        gone(session, &occupant, false, cx);
    }
    true
}

/// A session that is not available any more is in no room (XEP-0045 §7.14).
fn announced(session: &mut BoundSession, _: &Stanza, step: Announcement, cx: &mut Cx<'_>) {
    if step == Announcement::Gone {
        leave_all(session, false, cx);
    }
}

/// The client is told that it is in none of its rooms any more (XEP-0045 §15.6.2, code 332).
fn shutdown(session: &mut BoundSession, cx: &mut Cx<'_>) {
    let entered = session.state.muc.iter().filter(|joined| joined.role.is_some());
    let told: Vec<Stanza> =
        entered.map(|joined| xml::shut_down(&joined.occupant).with_to(session.jid.clone())).collect();
    told.iter().for_each(|stanza| session.send(stanza, &Track::Nothing, cx));
}

fn close(session: &mut BoundSession, leave: Leave, cx: &mut Cx<'_>) {
    leave_all(session, leave != Leave::Closed, cx);
}

/// The session leaves all its rooms, and forgets each when that has told it so.
fn leave_all(session: &mut BoundSession, is_lost: bool, cx: &mut Cx<'_>) {
    let mut rooms = std::mem::take(&mut session.state.muc);
    for joined in rooms.iter_mut() {
        joined.role = None;
        gone(session, &joined.occupant, is_lost, cx);
    }
    session.state.muc = rooms;
}

fn gone(session: &BoundSession, occupant: &Jid, is_lost: bool, cx: &mut Cx<'_>) {
    let op = RoomOp::Gone { client: session.jid.clone(), seat: seat(session, 0, cx), is_lost };
    tell(occupant, op, cx);
}

/// A session came from another process: it is in its rooms here, too. Those that had not answered it there do not answer it any more.
fn restored(session: &mut BoundSession, _: &mut Names, cx: &mut Cx<'_>) {
    session.state.muc.forget_unanswered();
    come_back(session, |_| true, cx);
}

/// Rooms are at home on other nodes, which know nothing of who is in them.
fn homes_moved(session: &mut BoundSession, before: &dyn Directory, cx: &mut Cx<'_>) {
    let moved: Vec<bool> = {
        let has_moved = |joined: &Joined| {
            let name = joined.occupant.local().unwrap_or_default();
            let domain = joined.occupant.domain().split_once('.').map_or("", |(_, domain)| domain);
            SERVICE.home_by(name, domain, before) != SERVICE.home(name, domain, cx)
        };
        session.state.muc.iter().map(has_moved).collect()
    };
    let mut moved = moved.into_iter();
    come_back(session, |_| moved.next().unwrap_or_default(), cx);
}

/// Tells rooms that the session is in them.
fn come_back(session: &BoundSession, mut is_told: impl FnMut(&Joined) -> bool, cx: &mut Cx<'_>) {
    for joined in session.state.muc.iter() {
        let is_told = is_told(joined);
        let Some(role) = joined.role.filter(|_| is_told) else { continue };
        let presence = Box::new(joined.sent(Some(session.jid.clone())));
        let seat = seat(session, joined.presences, cx);
        tell(&joined.occupant, RoomOp::Back { seat, presence, role }, cx);
    }
}

fn tell(occupant: &Jid, op: RoomOp, cx: &mut Cx<'_>) {
    let (Some(name), Some(domain)) = (occupant.local(), domain_of(occupant, cx)) else { return };
    let at = SERVICE.home(name, &domain.name, cx);
    cx.post(at, ShardMessage::Room { domain: domain.id, kind: KIND, name: name.into(), op });
}
