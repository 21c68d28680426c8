//! What owners do: configuring a room, and destroying it (XEP-0045 §10); and registering with a room (§7.10).

use super::asker::{Asker, refuse, reply};
use super::enter::{CREATED, left};
use super::facts;
use super::home::{Home, give, turn_away};
use super::step::{Change, Creator, Step};
use super::told::{self, Destroyed};
use super::xml::user::{SELF, Said};
use super::xml::{form, user};
use crate::command::{RoomOutcome, RoomRefusal};
use crate::error::StanzaError;
use crate::message::{RoomSeat, RoomStanza};
use crate::model::{
    Policy, RoomAction, RoomAffiliation, RoomFact, RoomKey, RoomKind, RoomMember, RoomRecord, RoomsCreate,
};
use crate::ports::store::rooms::{
    ConfigureRoom, CreateRoom, CreateRoomAnswer, DestroyRoom, EraseRoomArchive, ROOM_PART_ROWS,
    ReplaceRoomMessage, SetRoomMembers, SetRoomSubject, SetRoomVcard,
};
use crate::ports::{Answer, Ask, Fault, Missing, Question};
use crate::session::Cx;
use crate::shard::DomainQuota;
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, IqType, Kind, SharedStanza, Stanza};
use carillon_wire::xml::Element;
use std::sync::Arc;

impl Home {
    /// A request of muc#owner.
    pub(super) fn owner(
        &mut self,
        record: &Arc<RoomRecord>,
        query: &Element,
        stanza: Box<Stanza>,
        key: &RoomKey,
        cx: &mut Cx<'_>,
    ) {
        let affiliation =
            stanza.from.as_ref().map_or(RoomAffiliation::None, |from| record.affiliation(from.bare_str()));
        if affiliation != RoomAffiliation::Owner {
            return refuse(&stanza, &StanzaError::new(Condition::Forbidden), cx);
        }
        if stanza.kind == Kind::Iq(IqType::Get) {
            let form = form::config(&record.config, &cx.shard.settings.limits);
            let query = Element::new("query", ns::MUC_OWNER).with_child(form);
            return reply(stanza.result_reply().with_payload(query), cx);
        }
        let text = |element: &Element, name: &str| element.child(name, ns::MUC_OWNER).map(Element::text);
        if let Some(destroy) = query.child("destroy", ns::MUC_OWNER) {
            let change = Change::Destroy {
                reason: text(destroy, "reason"),
                venue: destroy.attr("jid").map(str::to_owned),
                password: text(destroy, "password"),
            };
            return self.change(record, change, Asker::client(stanza), key, cx);
        }
        let Some(x) = query.child("x", ns::DATA_FORMS) else {
            return refuse(&stanza, &StanzaError::new(Condition::BadRequest), cx);
        };
        if x.attr("type") == Some("cancel") {
            return match record.config.locked {
                // §10.1.3: the room was never there.
                true => {
                    let change = Change::Destroy { reason: None, venue: None, password: None };
                    self.change(record, change, Asker::client(stanza), key, cx);
                }
                false => reply(stanza.result_reply(), cx),
            };
        }
        match form::parse_config(x, &record.config, &cx.shard.settings.limits) {
            Ok(config) => {
                self.change(record, Change::Configure(Box::new(config)), Asker::client(stanza), key, cx);
            }
            Err(error) => refuse(&stanza, &error, cx),
        }
    }

    /// A request of jabber:iq:register.
    pub(super) fn register(
        &mut self,
        record: &Arc<RoomRecord>,
        query: &Element,
        stanza: Box<Stanza>,
        key: &RoomKey,
        cx: &mut Cx<'_>,
    ) {
        let Some(account) = stanza.from.as_ref().map(carillon_wire::jid::Jid::bare) else { return };
        let member = record.member(account.as_str());
        let affiliation = member.map_or(RoomAffiliation::None, |member| member.affiliation);
        if affiliation == RoomAffiliation::Outcast {
            return refuse(&stanza, &StanzaError::new(Condition::Forbidden), cx);
        }
        // §7.10: whether somebody becomes a member of such a room its admins decide.
        if record.config.members_only && affiliation < RoomAffiliation::Member {
            return refuse(&stanza, &StanzaError::new(Condition::NotAllowed), cx);
        }
        if stanza.kind == Kind::Iq(IqType::Get) {
            let answer = stanza.result_reply().with_payload(form::register(member.map(|of| &*of.nick)));
            return reply(answer, cx);
        }
        let change = if query.child("remove", ns::REGISTER).is_some() {
            let is_member = affiliation == RoomAffiliation::Member;
            let left = if is_member { RoomAffiliation::None } else { affiliation };
            Ok(RoomMember::new(account.clone(), left))
        } else {
            self.nick_of(record, query, account.as_str()).map(|nick| {
                let member = RoomMember::new(account.clone(), affiliation.max(RoomAffiliation::Member));
                RoomMember { nick, ..member }
            })
        };
        match change {
            Ok(change) => {
                self.change_members(record, vec![change], None, Asker::client(stanza), key, cx);
            }
            Err(error) => refuse(&stanza, &error, cx),
        }
    }

    /// The nick that somebody wants to be reserved.
    fn nick_of(&self, record: &RoomRecord, query: &Element, account: &str) -> Result<Box<str>, StanzaError> {
        let x = query.child("x", ns::DATA_FORMS).ok_or(StanzaError::new(Condition::BadRequest))?;
        let nick = form::value(x, "muc#register_roomnick").unwrap_or_default();
        let address = self.state.address.with_resource(&nick);
        let address =
            address.map_err(|_| StanzaError::new(Condition::NotAcceptable).with_text("a nick is needed"))?;
        let nick = address.resource().unwrap_or_default();
        match self.state.is_free(record, nick, account) {
            true => Ok(nick.into()),
            false => Err(StanzaError::new(Condition::Conflict)),
        }
    }

    /// The room does not exist: whoever enters creates it.
    pub(super) fn create(
        &mut self,
        seat: RoomSeat,
        stanza: Box<Stanza>,
        key: &RoomKey,
        cx: &mut Cx<'_>,
    ) -> Result<(), (Box<Stanza>, StanzaError)> {
        let Some(from) = stanza.from.clone() else { return Ok(()) };
        if stanza.to.as_ref().is_none_or(carillon_wire::jid::Jid::is_bare) {
            return Err((stanza, StanzaError::new(Condition::JidMalformed).with_text("a nick is needed")));
        }
        let policy = match may_create(key, cx) {
            Ok(policy) => policy,
            Err(refusal) => return Err((stanza, refusal.into())),
        };
        if cx.domain_of(&from).is_none_or(|domain| domain.id != key.domain) {
            let text = "accounts of other domains do not create rooms";
            return Err((stanza, StanzaError::new(Condition::NotAllowed).with_text(text)));
        }
        let members = vec![RoomMember::new(from.bare(), RoomAffiliation::Owner)];
        let question = CreateRoom {
            domain: key.domain,
            kind: key.kind,
            name: (*key.name).into(),
            config: crate::model::RoomConfig { locked: true, ..Default::default() },
            owned_max: cx.shard.settings.limits.rooms_owned.min(policy.rooms_owned()),
            rooms_max: policy.rooms(),
            now: cx.now.unix,
            facts: self.state.facts_of_creation(key.domain, Some(&from.bare()), &members, cx),
            members,
        };
        self.hold();
        self.ask(key, question, Step::Create(Creator::Client { seat, presence: stanza }), cx);
        Ok(())
    }

    /// The room was created, or not.
    pub(super) fn created(
        &mut self,
        creator: Creator,
        answer: Result<CreateRoomAnswer, Fault>,
        key: &RoomKey,
        cx: &mut Cx<'_>,
    ) {
        self.vanish();
        let refusal = match answer {
            Ok(CreateRoomAnswer::Created(record)) => {
                let record: Arc<RoomRecord> = Arc::from(record);
                self.state.note_members(&record, cx);
                told::created(&self.state.address, creator.account().as_ref(), cx);
                facts::stored(key.domain, cx, |cx| {
                    let by = creator.account();
                    self.state.facts_of_creation(key.domain, by.as_ref(), &record.members, cx)
                });
                self.open(record.clone());
                return match creator {
                    Creator::Client { seat, presence } => self.first(&record, seat, &presence, cx),
                    Creator::Command(to) => Asker::Command(to).done(self.outcome(record), cx),
                    Creator::Light(new) => self.light_created(&record, &new, key, cx),
                };
            }
            Ok(CreateRoomAnswer::Exists) => {
                self.read_record(key, cx);
                RoomRefusal::Exists
            }
            Err(Fault::Unknown) => {
                self.read_record(key, cx);
                RoomRefusal::Fault(Fault::Unknown)
            }
            Ok(CreateRoomAnswer::Full) => RoomRefusal::TooManyRooms,
            Ok(CreateRoomAnswer::DomainFull) => RoomRefusal::DomainFull,
            Ok(CreateRoomAnswer::NoDomain) => RoomRefusal::NotFound,
            Err(fault) => RoomRefusal::Fault(fault),
        };
        if matches!(refusal, RoomRefusal::TooManyRooms | RoomRefusal::DomainFull) {
            cx.shard.counters.domains.of(key.domain).refused.count(DomainQuota::Rooms);
        }
        match creator {
            Creator::Client { seat, presence } => {
                let error = match refusal {
                    // Another client may have created it: this one may enter when it asks again.
                    RoomRefusal::Exists | RoomRefusal::Fault(Fault::Unknown) => {
                        StanzaError::new(Condition::ResourceConstraint)
                    }
                    refusal => refusal.into(),
                };
                turn_away(None, seat, &presence, &error, cx);
            }
            Creator::Command(to) => Asker::Command(to).refused(refusal, cx),
            Creator::Light(new) => Asker::client(new.stanza).refused(refusal, cx),
        }
    }

    /// Whoever created the room is the first in it.
    fn first(&mut self, record: &RoomRecord, seat: RoomSeat, presence: &Stanza, cx: &mut Cx<'_>) {
        let entry = super::xml::request::entry(presence).unwrap_or_default();
        if let (Some(client), Some(address)) = (&presence.from, presence.to.clone()) {
            self.state.seat(record, seat, client, address, presence, cx);
            cx.shard.counters.rooms.entered += 1;
            self.state.welcome(record, client, &entry, &[CREATED], cx);
        }
    }

    /// The store answered to a change.
    pub(super) fn changed(
        &mut self,
        record: Arc<RoomRecord>,
        change: Change,
        asker: Asker,
        answer: Answer,
        key: &RoomKey,
        cx: &mut Cx<'_>,
    ) {
        match change.is_done(answer) {
            Ok(Ok(false)) => self.change(&record, change, asker, key, cx),
            Ok(Ok(true)) => {
                facts::stored(key.domain, cx, |cx| {
                    self.state.facts_of(&change, &record, asker.account().as_ref(), cx)
                });
                if matches!(change, Change::Destroy { .. }) {
                    let by = asker.account();
                    told::destroyed(&self.state.address, Destroyed::Wanted, by.as_ref(), cx);
                }
                let left = match record.kind {
                    RoomKind::Muc => Some((change, asker)),
                    RoomKind::MucLight => self.carry_light(&record, change, asker, key, cx),
                };
                if let Some((change, asker)) = left {
                    self.carry_through(&record, change, asker, cx);
                }
            }
            Ok(Err(Missing)) => {
                let refusal = match change {
                    Change::Moderate { .. } => {
                        self.open(record);
                        RoomRefusal::NoMessage
                    }
                    _ => {
                        self.destroyed(None, None, None, cx);
                        RoomRefusal::NotFound
                    }
                };
                asker.refused(refusal, cx);
            }
            Err(fault) => {
                match fault {
                    Fault::Unknown => self.read_record(key, cx),
                    _ => self.open(record),
                }
                asker.refused(fault.into(), cx);
            }
        }
    }

    /// A change is stored: it is answered, and those whom it concerns are told.
    fn carry_through(&mut self, record: &Arc<RoomRecord>, change: Change, asker: Asker, cx: &mut Cx<'_>) {
        let outcome = match &change {
            Change::Configure(config) => {
                let record = RoomRecord { config: (**config).clone(), ..(**record).clone() };
                self.outcome(Arc::new(record))
            }
            Change::Vcard { photos, .. } => {
                self.outcome(Arc::new(RoomRecord { photos: photos.clone(), ..(**record).clone() }))
            }
            Change::Subject(..) => RoomOutcome::Said(None),
            Change::Members { .. }
            | Change::Destroy { .. }
            | Change::Moderate { .. }
            | Change::EraseArchive => RoomOutcome::Done,
        };
        let account = asker.account();
        // XEP-0045 §10.9: an owner is removed before the request is answered; clients do not listen to the room after that.
        let answered_last = match &change {
            Change::Destroy { .. } => Some((asker, outcome)),
            _ => {
                asker.done(outcome, cx);
                None
            }
        };
        match change {
            Change::Subject(subject, said) => {
                self.open(Arc::new(RoomRecord { subject, ..(**record).clone() }));
                self.state.give_all(&[RoomStanza::for_all(*said)], &[], cx);
            }
            Change::Configure(config) => {
                let after = Arc::new(RoomRecord { config: *config, ..(**record).clone() });
                self.open(after.clone());
                self.state.configured(record, &after, cx);
            }
            Change::Vcard { photos, .. } => {
                let after = Arc::new(RoomRecord { photos, ..(**record).clone() });
                self.open(after.clone());
                self.state.vcard_changed(record, &after, cx);
            }
            Change::Members { changes, by } => {
                let members = record.members_after(&changes);
                let after = Arc::new(RoomRecord { members, ..(**record).clone() });
                self.state.note_members(&after, cx);
                self.open(after.clone());
                self.state.tell_absent(record, &after, &changes, account.as_ref(), cx);
                self.state.members_changed(&after, &changes, by.as_deref(), cx);
            }
            Change::Destroy { reason, venue, password } => {
                self.destroyed(reason.as_deref(), venue.as_deref(), password.as_deref(), cx);
            }
            Change::Moderate { id, mut left, told } => {
                self.open(record.clone());
                left.payload.push_element(&user::stanza_id(&self.state.address, id));
                self.state.history.replace(id, Arc::new(SharedStanza::new(*left)));
                self.state.give_all(&[RoomStanza::for_all(*told)], &[], cx);
            }
            Change::EraseArchive => {
                self.open(record.clone());
                self.state.history.clear();
            }
        }
        if let Some((asker, outcome)) = answered_last {
            asker.done(outcome, cx);
        }
    }

    /// The room is gone (XEP-0045 §10.9).
    pub(super) fn destroyed(
        &mut self,
        reason: Option<&str>,
        venue: Option<&str>,
        password: Option<&str>,
        cx: &mut Cx<'_>,
    ) {
        let mut destroy = Element::new("destroy", ns::MUC_USER);
        if let Some(venue) = venue {
            destroy.set_attr("jid", venue);
        }
        for (name, text) in [("reason", reason), ("password", password)] {
            if let Some(text) = text.filter(|text| !text.is_empty()) {
                destroy.push(Element::new(name, ns::MUC_USER).with_text(text));
            }
        }
        for mut occupant in std::mem::take(&mut self.state.occupants).into_all() {
            (occupant.affiliation, occupant.role) = (RoomAffiliation::None, crate::model::RoomRole::None);
            let said = Said { codes: &[SELF], destroy: Some(&destroy), ..Said::default() };
            for of in &occupant.clients {
                let shown = RoomStanza::for_all(user::unavailable(&occupant, of, false, &said));
                give(of.seat, false, vec![shown], left(of, &occupant), cx);
            }
        }
        self.state.is_large = false;
        self.state.history.clear();
        self.state.reserved = Box::default();
        self.state.audience = Box::default();
        self.vanish();
    }

    /// Nobody is in a room that is not to stay: it goes, once nothing is under way.
    pub(super) fn desert(&mut self, key: &RoomKey, cx: &mut Cx<'_>) {
        let Some(record) = self.known() else { return };
        if record.config.persistent || !self.state.occupants.is_empty() || !self.is_at_rest() {
            return;
        }
        self.remove_deserted(record, key, cx);
    }

    /// Removes the room, in which nobody is any more.
    pub(super) fn remove_deserted(&mut self, record: Arc<RoomRecord>, key: &RoomKey, cx: &mut Cx<'_>) {
        let facts = self.state.fact(key.domain, None, || RoomAction::Destroyed(None), cx);
        self.hold();
        let facts = facts.into_iter().collect();
        let question = DestroyRoom { room: record.id, facts, rows_max: ROOM_PART_ROWS };
        self.ask(key, question, Step::Desert(record), cx);
    }
}

/// The policy of the room's domain, if its accounts may create rooms.
pub(super) fn may_create(key: &RoomKey, cx: &Cx<'_>) -> Result<Policy, RoomRefusal> {
    let domain = cx.shard.domains.numbered(key.domain).ok_or(RoomRefusal::NotFound)?;
    match domain.policy.rooms_create {
        RoomsCreate::Any => Ok(domain.policy),
        RoomsCreate::Admin => Err(RoomRefusal::MayNotCreate),
    }
}

impl Change {
    /// The question to the store.
    pub(super) fn question(&self, record: &RoomRecord, facts: Vec<RoomFact>) -> Ask {
        let room = record.id;
        let version = record.version + u32::from(record.kind == RoomKind::MucLight);
        match self {
            Change::Subject(subject, _) => SetRoomSubject { room, subject: subject.clone(), facts }.into(),
            Change::Configure(config) => {
                ConfigureRoom { room, config: (**config).clone(), version, facts }.into()
            }
            Change::Members { changes, .. } => {
                SetRoomMembers { room, changes: changes.clone(), version, facts }.into()
            }
            Change::Vcard { xml, photos } => {
                SetRoomVcard { room, xml: xml.clone(), photos: photos.clone() }.into()
            }
            Change::Destroy { .. } => DestroyRoom { room, facts, rows_max: ROOM_PART_ROWS }.into(),
            Change::EraseArchive => EraseRoomArchive { room }.into(),
            Change::Moderate { id, left, .. } => {
                let mut stanza = Vec::new();
                left.write(&mut stanza, carillon_wire::Framing::Tcp);
                ReplaceRoomMessage { room, id: *id, stanza: stanza.into(), facts }.into()
            }
        }
    }

    /// Whether it is done, or a part of it is.
    fn is_done(&self, answer: Answer) -> Result<Result<bool, Missing>, Fault> {
        let done = match self {
            Change::Subject(..) => SetRoomSubject::answer(answer),
            Change::Configure(_) => ConfigureRoom::answer(answer),
            Change::Vcard { .. } => SetRoomVcard::answer(answer),
            Change::Members { .. } => SetRoomMembers::answer(answer),
            Change::Destroy { .. } => return Ok(DestroyRoom::answer(answer)?.map(|more| !more)),
            Change::EraseArchive => EraseRoomArchive::answer(answer),
            Change::Moderate { .. } => ReplaceRoomMessage::answer(answer),
        };
        Ok(done?.map(|()| true))
    }
}
