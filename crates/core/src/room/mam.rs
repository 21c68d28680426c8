//! The archive of a room (XEP-0313 §3.1), and the moderation of what is in it (XEP-0425).

use super::asker::{Asker, refuse, reply};
use super::home::Home;
use super::occupants::OccupantId;
use super::speak::send;
use super::step::{Change, Moderating, Reading, Step};
use super::xml::user;
use crate::command::RoomRefusal;
use crate::error::StanzaError;
use crate::message::RoomSeat;
use crate::model::{ArchiveEnds, ArchiveId, RoomAffiliation, RoomKey, RoomRecord, RoomRole as Role};
use crate::ports::Fault;
use crate::ports::store::archive::ArchivePageAnswer;
use crate::ports::store::rooms::{ReadRoomArchiveEnds, RoomArchivePage, RoomArchivedMessages};
use crate::session::mam::{self, Fin, Query};
use crate::session::{Cx, rsm};
use carillon_wire::jid::{BareJid, Jid};
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, IqType, Kind, MessageType, Payload, Stanza};
use carillon_wire::xml::Element;
use std::sync::Arc;

impl Home {
    /// A request for the archive.
    pub(super) fn read_archive(
        &mut self,
        record: &RoomRecord,
        seat: RoomSeat,
        payload: &Element,
        stanza: &Stanza,
        key: &RoomKey,
        cx: &mut Cx<'_>,
    ) -> Result<(), StanzaError> {
        let client = stanza.from.as_ref();
        let affiliation =
            client.map_or(RoomAffiliation::None, |client| record.affiliation(client.bare_str()));
        let is_in = client.is_some_and(|client| self.state.occupants.of(client).is_some());
        let is_closed = record.config.members_only || !record.config.password.is_empty();
        if affiliation == RoomAffiliation::Outcast
            || (!is_in && affiliation < RoomAffiliation::Member && is_closed)
        {
            return Err(StanzaError::new(Condition::Forbidden));
        }
        let (room, since) =
            (record.id, client.map_or(ArchiveId(0), |client| record.heard_since(client.bare_str())));
        match (stanza.kind, payload.name()) {
            (Kind::Iq(IqType::Get), "query") => {
                reply(stanza.result_reply().with_payload(mam::form()), cx);
            }
            (Kind::Iq(IqType::Get), "metadata") => {
                self.ask(key, ReadRoomArchiveEnds { room, since }, Step::Ends(Box::new(stanza.clone())), cx);
            }
            (Kind::Iq(IqType::Set), "query") => {
                let query = Query::of(payload)?;
                let shows = record.config.non_anonymous || affiliation >= RoomAffiliation::Admin;
                if query.filter.with.is_some() && !shows {
                    // It would tell who has which nick.
                    return Err(StanzaError::new(Condition::Forbidden));
                }
                let (filter, start, page) = (query.filter.clone(), query.start, query.bounds());
                let ids = query.ids.clone();
                let step = Step::Page(Box::new(Reading { seat, request: stanza.clone(), query }));
                match ids.is_empty() {
                    true => self.ask(key, RoomArchivePage { room, since, filter, start, page }, step, cx),
                    false => self.ask(key, RoomArchivedMessages { room, since, ids }, step, cx),
                }
            }
            _ => return Err(StanzaError::new(Condition::ServiceUnavailable)),
        }
        Ok(())
    }

    /// A page was read.
    pub(super) fn page(&self, reading: &Reading, answer: Result<ArchivePageAnswer, Fault>, cx: &mut Cx<'_>) {
        let Reading { seat, request, query } = reading;
        let error = match answer {
            Ok(ArchivePageAnswer::Page { messages, more, reached }) => {
                let Some(client) = &request.from else { return };
                cx.shard.counters.rooms.archive_pages += 1;
                let result = |message| mam::result(&self.state.address, client, query, message);
                let mut results: Vec<Stanza> = messages.iter().map(result).collect();
                if query.is_flipped {
                    results.reverse();
                }
                send(*seat, results, cx);
                let fin = Fin::of(query, &messages, more, reached);
                return reply(request.result_reply().with_payload(fin.element()), cx);
            }
            Ok(ArchivePageAnswer::NotFound) => StanzaError::new(Condition::ItemNotFound)
                .with_text("a message that the query names is not in the archive"),
            Ok(ArchivePageAnswer::NoAccount) => StanzaError::new(Condition::ItemNotFound),
            Err(_) => StanzaError::new(Condition::InternalServerError),
        };
        refuse(request, &error, cx);
    }

    /// The ends of the archive were read.
    pub(super) fn ends(&self, request: &Stanza, answer: Result<Option<ArchiveEnds>, Fault>, cx: &mut Cx<'_>) {
        match answer {
            Ok(ends) => reply(request.result_reply().with_payload(mam::metadata(ends)), cx),
            Err(_) => refuse(request, &StanzaError::new(Condition::InternalServerError), cx),
        }
    }

    /// A moderator retracts what somebody said (XEP-0425 §3).
    pub(super) fn moderate(
        &mut self,
        record: &Arc<RoomRecord>,
        moderate: &Element,
        stanza: Box<Stanza>,
        key: &RoomKey,
        cx: &mut Cx<'_>,
    ) -> Result<(), StanzaError> {
        let sender = self.sender(&stanza)?;
        let by = Some((sender.address.clone(), sender.id));
        if sender.role < Role::Moderator {
            return Err(StanzaError::new(Condition::Forbidden));
        }
        if moderate.child("retract", ns::RETRACT).is_none() {
            return Err(StanzaError::new(Condition::FeatureNotImplemented));
        }
        let id = rsm::number(moderate.attr("id").ok_or(StanzaError::new(Condition::BadRequest))?)?;
        let reason = moderate.child("reason", ns::MODERATE).map(Element::text);
        self.find(
            Moderating { record: record.clone(), id, reason, by, asker: Asker::client(stanza) },
            key,
            cx,
        );
        Ok(())
    }

    /// Reads the message that is to be moderated.
    pub(super) fn find(&mut self, of: Moderating, key: &RoomKey, cx: &mut Cx<'_>) {
        let question = RoomArchivedMessages { room: of.record.id, since: ArchiveId(0), ids: vec![of.id] };
        self.hold();
        self.ask(key, question, Step::Moderating(Box::new(of)), cx);
    }

    /// The message to be moderated was read.
    pub(super) fn found(
        &mut self,
        of: Moderating,
        answer: Result<ArchivePageAnswer, Fault>,
        key: &RoomKey,
        cx: &mut Cx<'_>,
    ) {
        let Moderating { record, id, reason, by, asker } = of;
        self.open(record.clone());
        let original = match answer {
            Ok(ArchivePageAnswer::Page { messages, .. }) => {
                messages.first().and_then(crate::model::ArchivedMessage::read)
            }
            Ok(_) => None,
            Err(fault) => return asker.refused(fault.into(), cx),
        };
        let Some(original) = original else { return asker.refused(RoomRefusal::NoMessage, cx) };
        let by = by.as_ref().map(|(address, id)| (address, *id));
        let stamp = cx.now.unix.to_xmpp();
        let (left, told) = moderated(&self.state.address, id, &original, by, reason.as_deref(), &stamp);
        let change = Change::Moderate { id, left: Box::new(left), told: Box::new(told) };
        self.change(&record, change, asker, key, cx);
    }
}

/// The message that is left of one that was moderated, and what all are told (XEP-0425 §3, §5).
fn moderated(
    room: &BareJid,
    id: ArchiveId,
    original: &Stanza,
    by: Option<(&Jid, OccupantId)>,
    reason: Option<&str>,
    stamp: &str,
) -> (Stanza, Stanza) {
    let mut moderated = Element::new("moderated", ns::MODERATE);
    if let Some((by, by_id)) = by {
        moderated.set_attr("by", by.as_str());
        moderated.push(user::occupant_id(by_id));
    }
    let with_reason = |element: Element, ns: &'static str| match reason.filter(|reason| !reason.is_empty()) {
        Some(reason) => element.with_child(Element::new("reason", ns).with_text(reason)),
        None => element,
    };
    let retracted = Element::new("retracted", ns::RETRACT)
        .with_attr("id", id.to_string())
        .with_attr("stamp", stamp)
        .with_child(moderated.clone());
    let mut left = original.clone();
    left.payload = Payload::from_element(&with_reason(retracted, ns::RETRACT));
    let retract = Element::new("retract", ns::RETRACT).with_attr("id", id.to_string()).with_child(moderated);
    let mut told = Stanza::message(MessageType::Groupchat).with_from(room.clone());
    told.id = Some(format!("retract-{id}").into());
    told.payload = Payload::from_element(&with_reason(retract, ns::RETRACT));
    (left, told)
}
