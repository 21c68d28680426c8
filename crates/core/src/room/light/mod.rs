//! Rooms of MUC Light (`urn:xmpp:muclight:0`): their occupants are accounts, whether they have a session or not, and there is no presence.
//!
//! It is the home of any other room, with its archive and its commands; other is who hears it, and who may do what. Whoever is no occupant is told
//! the same as if there were no such room.

mod affiliations;
mod carry;
mod configuration;
mod create;
mod notice;
mod xml;

pub(super) use xml::is_field;

use super::asker::{Asker, refuse, reply};
use super::home::Home;
use super::speak::clean;
use super::step::Change;
use super::xml::request;
use crate::error::StanzaError;
use crate::message::RoomSeat;
use crate::model::{RoomKey, RoomRecord, Settlement};
use crate::session::Cx;
use carillon_wire::jid::Jid;
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, IqType, Kind, MessageType, Stanza};
use carillon_wire::xml::Element;
use std::sync::Arc;

impl Home {
    /// A stanza of a client for a room that is there.
    pub(super) fn light(
        &mut self,
        record: &Arc<RoomRecord>,
        seat: RoomSeat,
        stanza: Box<Stanza>,
        settlement: Option<Settlement>,
        key: &RoomKey,
        cx: &mut Cx<'_>,
    ) {
        let is_to_room = stanza.to.as_ref().is_some_and(Jid::is_bare);
        let is_occupant = occupant(record, &stanza);
        let result = match stanza.kind {
            // §7.2
            Kind::Presence(_) | Kind::Iq(IqType::Result | IqType::Error) => Ok(()),
            Kind::Message(MessageType::Error) => Ok(()),
            // §5.1.2: it must be told that the name is taken.
            Kind::Iq(IqType::Set) if is_to_room && is_creation(&stanza) => {
                Err(StanzaError::new(Condition::Conflict))
            }
            // §7.1
            _ if !is_occupant => Err(StanzaError::new(Condition::ItemNotFound)),
            Kind::Message(MessageType::Groupchat) if is_to_room => {
                return self.light_message(record, stanza, settlement, key, cx);
            }
            Kind::Iq(_) if is_to_room => return self.light_request(record, seat, &stanza, key, cx),
            // §7.3
            Kind::Message(_) | Kind::Iq(_) => Err(StanzaError::new(Condition::BadRequest)),
        };
        if let Err(error) = result {
            refuse(&stanza, &error, cx);
        }
        cx.settle(settlement);
    }

    /// A stanza of a client for a room that is not there.
    pub(super) fn light_absent(&mut self, stanza: &Stanza, key: &RoomKey, cx: &mut Cx<'_>) {
        match stanza.kind {
            Kind::Presence(_) | Kind::Message(MessageType::Error) => {}
            Kind::Iq(IqType::Set) if is_creation(stanza) && stanza.to.as_ref().is_some_and(Jid::is_bare) => {
                self.light_create(stanza, key, cx);
            }
            Kind::Message(_) | Kind::Iq(_) => {
                refuse(stanza, &StanzaError::new(Condition::ItemNotFound), cx);
            }
        }
    }

    /// An occupant says something to all (§4.1), or changes the subject (§7.4).
    fn light_message(
        &mut self,
        record: &Arc<RoomRecord>,
        stanza: Box<Stanza>,
        settlement: Option<Settlement>,
        key: &RoomKey,
        cx: &mut Cx<'_>,
    ) {
        let Some(sender) = stanza.from.as_ref().map(Jid::bare) else { return };
        let asker = Asker::Client { stanza: stanza.clone(), settlement };
        if request::is_subject(&stanza.payload) {
            let subject = stanza.payload.find("subject", ns::CLIENT).map(|subject| subject.element().text());
            return self.light_subject(record, &subject.unwrap_or_default(), asker, key, cx);
        }
        let Ok(from) = self.state.address.with_resource(sender.as_str()) else {
            return cx.settle(settlement);
        };
        let mut said = *stanza;
        (said.from, said.to) = (Some(from), None);
        clean(&mut said);
        for ns in [ns::MUCLIGHT_AFFILIATIONS, ns::MUCLIGHT_CONFIGURATION, ns::MUCLIGHT_DESTROY] {
            // Only the room says these.
            said.payload.remove("x", ns);
        }
        self.utter(record, said, sender, asker, key, cx);
    }

    /// A request of an occupant.
    fn light_request(
        &mut self,
        record: &Arc<RoomRecord>,
        seat: RoomSeat,
        stanza: &Stanza,
        key: &RoomKey,
        cx: &mut Cx<'_>,
    ) {
        let Some(payload) = stanza.payload.children().next().map(|child| child.element()) else {
            return refuse(stanza, &StanzaError::new(Condition::BadRequest), cx);
        };
        let is_get = stanza.kind == Kind::Iq(IqType::Get);
        let result = match (payload.ns(), payload.name()) {
            (ns::MUCLIGHT_CONFIGURATION | ns::MUCLIGHT_AFFILIATIONS | ns::MUCLIGHT_INFO, "query")
                if is_get =>
            {
                let empty = stanza.result_reply();
                let answer = match xml::information(record, &payload) {
                    Some(information) => empty.with_payload(information),
                    None => empty,
                };
                reply(answer, cx);
                Ok(())
            }
            (ns::MUCLIGHT_CONFIGURATION, "query") => {
                self.light_configure(record, &payload, Box::new(stanza.clone()), key, cx)
            }
            (ns::MUCLIGHT_AFFILIATIONS, "query") => {
                self.light_affiliations(record, &payload, Box::new(stanza.clone()), key, cx)
            }
            (ns::MUCLIGHT_DESTROY, "query") if !is_get => {
                self.light_destroy(record, Box::new(stanza.clone()), key, cx)
            }
            (ns::MAM, _) => self.read_archive(record, seat, &payload, stanza, key, cx),
            (ns::DISCO_INFO, "query") if is_get => xml::described(record, &payload).map(|info| {
                reply(stanza.result_reply().with_payload(info), cx);
            }),
            (ns::DISCO_ITEMS, "query") if is_get => {
                reply(stanza.result_reply().with_payload(Element::new("query", ns::DISCO_ITEMS)), cx);
                Ok(())
            }
            (ns::PING, "ping") if is_get => {
                reply(stanza.result_reply(), cx);
                Ok(())
            }
            _ => Err(StanzaError::new(Condition::ServiceUnavailable)),
        };
        if let Err(error) = result {
            refuse(stanza, &error, cx);
        }
    }

    /// The owner destroys the room (§5.2).
    fn light_destroy(
        &mut self,
        record: &Arc<RoomRecord>,
        stanza: Box<Stanza>,
        key: &RoomKey,
        cx: &mut Cx<'_>,
    ) -> Result<(), StanzaError> {
        if !affiliations::is_owner(record, stanza.from.as_ref()) {
            return Err(StanzaError::new(Condition::NotAllowed));
        }
        let change = Change::Destroy { reason: None, venue: None, password: None };
        self.change(record, change, Asker::client(stanza), key, cx);
        Ok(())
    }
}

/// Whether the sender of a stanza is an occupant.
fn occupant(record: &RoomRecord, stanza: &Stanza) -> bool {
    let member = stanza.from.as_ref().and_then(|from| record.member(from.bare_str()));
    member.is_some_and(crate::model::RoomMember::is_member)
}

/// Whether somebody wants to create a room.
fn is_creation(stanza: &Stanza) -> bool {
    stanza.payload.find("query", ns::MUCLIGHT_CREATE).is_some()
}
