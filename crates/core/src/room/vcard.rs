//! What the room tells of itself, its avatar with it (XEP-0054, XEP-0486): its owners set it, and whoever may see the room reads it. What occupants tell of
//! themselves, asked for by their addresses in the room: it is answered from what their accounts keep, so that it is there whatever their clients do.

use super::admin::CONFIG_CHANGED;
use super::asker::{Asker, refuse, reply};
use super::home::{Home, RoomState};
use super::speak::of_room;
use super::step::{Change, Step};
use super::xml::{avatar, user};
use crate::command::{RoomPhoto, RoomRefusal};
use crate::error::{StanzaError, store_unavailable};
use crate::message::RoomStanza;
use crate::model::{PhotoHash, RoomAffiliation, RoomKey, RoomRecord};
use crate::ports::Fault;
use crate::ports::store::rooms::ReadRoomVcard;
use crate::ports::store::vcard::ReadVcard;
use crate::session::Cx;
use bytes::Bytes;
use carillon_wire::jid::Jid;
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, IqType, Kind, Payload, Stanza};
use carillon_wire::xml::Element;
use std::sync::Arc;

impl Home {
    /// Whether a request to an occupant is for its vCard.
    pub(super) fn is_for_vcard(stanza: &Stanza) -> bool {
        stanza.kind == Kind::Iq(IqType::Get) && stanza.payload.find("vCard", ns::VCARD).is_some()
    }

    /// An occupant asks for the vCard of another.
    pub(super) fn read_vcard(
        &mut self,
        stanza: &Stanza,
        key: &RoomKey,
        cx: &mut Cx<'_>,
    ) -> Result<(), StanzaError> {
        self.sender(stanza)?;
        let nick = stanza.to.as_ref().and_then(Jid::resource).unwrap_or_default();
        let of = self.state.occupants.named(nick).ok_or(StanzaError::new(Condition::ItemNotFound))?;
        let account = of.clients.first().map(|client| &client.jid);
        let domain = account.and_then(|account| cx.shard.domains.named(account.domain()));
        let local = account.and_then(Jid::local);
        let (Some(domain), Some(local)) = (domain.map(|domain| domain.id), local.map(Box::from)) else {
            return Err(StanzaError::new(Condition::ServiceUnavailable));
        };
        self.ask(key, ReadVcard { domain, local }, Step::Vcard(Box::new(stanza.clone())), cx);
        Ok(())
    }

    /// An owner sets the vCard of the room; an empty one removes it.
    pub(super) fn set_vcard(
        &mut self,
        record: &Arc<RoomRecord>,
        vcard: &Element,
        stanza: Box<Stanza>,
        key: &RoomKey,
        cx: &mut Cx<'_>,
    ) {
        let affiliation =
            stanza.from.as_ref().map_or(RoomAffiliation::None, |from| record.affiliation(from.bare_str()));
        match new_vcard(affiliation, vcard, key, cx) {
            Ok((xml, photos)) => {
                self.change(record, Change::Vcard { xml, photos }, Asker::client(stanza), key, cx);
            }
            Err(error) => refuse(&stanza, &error, cx),
        }
    }

    /// The room is to have another avatar, or none. What else its vCard says stays, so it is read first.
    pub(super) fn set_avatar(
        &mut self,
        record: &Arc<RoomRecord>,
        photo: Option<Box<RoomPhoto>>,
        asker: Asker,
        key: &RoomKey,
        cx: &mut Cx<'_>,
    ) {
        self.hold();
        let step = Step::Avatar { record: record.clone(), photo, asker };
        self.ask(key, ReadRoomVcard { room: record.id }, step, cx);
    }

    /// The vCard was read whose photos are to be replaced.
    pub(super) fn replace_avatar(
        &mut self,
        record: &Arc<RoomRecord>,
        photo: Option<&RoomPhoto>,
        asker: Asker,
        answer: Result<Option<Bytes>, Fault>,
        key: &RoomKey,
        cx: &mut Cx<'_>,
    ) {
        let before = match answer {
            Ok(before) => before,
            Err(fault) => {
                self.open(record.clone());
                return asker.refused(fault.into(), cx);
            }
        };
        let (xml, photos) = avatar::replaced(before, photo);
        self.open(record.clone());
        match xml.len() > cx.shard.settings.limits.vcard_bytes {
            true => asker.refused(RoomRefusal::TooLarge, cx),
            false => self.change(record, Change::Vcard { xml, photos }, asker, key, cx),
        }
    }

    /// The vCard was read.
    pub(super) fn show_vcard(request: &Stanza, answer: Result<Option<Bytes>, Fault>, cx: &mut Cx<'_>) {
        match answer {
            Ok(Some(xml)) => {
                let mut answer = request.result_reply();
                answer.payload = Payload::from_raw(xml);
                reply(answer, cx);
            }
            Ok(None) => refuse(request, &StanzaError::new(Condition::ServiceUnavailable), cx),
            Err(_) => refuse(request, &store_unavailable(), cx),
        }
    }
}

/// What is to be kept of a vCard that somebody of this affiliation sets, and its photos.
fn new_vcard(
    affiliation: RoomAffiliation,
    vcard: &Element,
    key: &RoomKey,
    cx: &mut Cx<'_>,
) -> Result<(Bytes, Box<[PhotoHash]>), StanzaError> {
    if affiliation != RoomAffiliation::Owner {
        let text = "only owners set the vCard of a room";
        return Err(StanzaError::new(Condition::Forbidden).with_text(text));
    }
    if vcard.nodes().is_empty() {
        return Ok(Default::default());
    }
    let xml = Payload::from_element(vcard).bytes().clone();
    let max = cx.shard.settings.limits.vcard_bytes;
    if xml.len() > max {
        let text = format!("a vCard has at most {max} bytes");
        return Err(StanzaError::new(Condition::NotAcceptable).with_text(text));
    }
    let photos = avatar::photos(vcard)?;
    cx.check_room(key.domain)?;
    Ok((xml, photos))
}

impl RoomState {
    /// The room has another vCard: occupants are told which avatar it has, if that is another one, and that they can ask (XEP-0486 §3.2).
    pub(super) fn vcard_changed(&self, before: &RoomRecord, after: &RoomRecord, cx: &mut Cx<'_>) {
        let told = of_room(&self.address, &user::statuses(&[CONFIG_CHANGED]));
        let avatar = || avatar::presence(&self.address, &after.photos);
        let avatar = (before.photos != after.photos).then(avatar);
        let stanzas: Vec<RoomStanza> = avatar.into_iter().chain([told]).map(RoomStanza::for_all).collect();
        self.give_all(&stanzas, &[], cx);
    }
}
