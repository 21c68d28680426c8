//! The home of rooms (XEP-0045): who is in a room, what is said in it, and in which order, is decided by the one shard that is its home.
//!
//! What comes from clients is dealt with in the order in which it comes. A message is kept in the archive first; from the answer, all
//! are given it (`speak`), by one message to each shard that has clients of the room. Whoever enters is given who is there, what was said
//! lately and the subject (`enter`). A change of the room itself has it for itself until the store has it (`admin`, `owner`).

mod admin;
mod asker;
mod enter;
mod facts;
mod history;
mod home;
mod light;
mod listing;
mod mam;
mod mention;
mod occupants;
mod owner;
mod provider;
mod retract;
mod shown;
mod speak;
mod step;
mod told;
mod vcard;
pub(crate) mod xml;

use crate::command::{RoomRefusal, RoomRequest};
use crate::error::StanzaError;
use crate::home::{Places, Pushed};
use crate::message::{RoomOp, RoomSeat};
use crate::model::{
    ArchiveFilter, ArchiveId, ArchiveStart, RoomAction, RoomAffiliation, RoomKey, RoomKind, RoomMember,
    RoomRecord, Settlement, Ticket,
};
use crate::ports::store::archive::ArchivePageAnswer;
use crate::ports::store::rooms::{
    self, CreateRoom, DestroyRoom, KeepRoomMessage, ReadRoomArchiveEnds, ReadRoomVcard, ReplaceRoomMessage,
    RoomArchivePage, RoomArchivedMessages,
};
use crate::ports::store::vcard::ReadVcard;
use crate::ports::{Answer, Fault, Page, Question};
use crate::session::Cx;
use crate::shard::RoomFigures;
use asker::{Asker, refuse, reply};
use carillon_wire::jid::{BareJid, Jid};
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, IqType, Kind, MessageType, PresenceType, SharedStanza, Stanza};
use home::{Home, Room, RoomState, turn_away};
use occupants::{Occupant, Occupants};
use std::sync::Arc;
use step::Step;

/// Rooms without occupants that a shard keeps in memory at most.
const ROOMS_MAX: usize = 100_000;
/// Bytes of records that a shard keeps in memory: beyond that it forgets those of rooms without occupants.
const RECORDS_BYTES_MAX: usize = 64 << 20;
/// How often the shard tidies before it forgets a room without occupants.
const IDLE_TURNS: u8 = 6;

/// The rooms at home on a shard.
#[derive(Debug, Default)]
pub struct Rooms {
    homes: Places<Room>,
    /// At how many rooms in memory those without occupants are forgotten again, if that is more than [`ROOMS_MAX`].
    full: usize,
}

impl Rooms {
    /// Deals with what a room is told, after what it was told before.
    pub fn operate(&mut self, key: &RoomKey, op: RoomOp, cx: &mut Cx<'_>) {
        if let RoomOp::Pace { place, is_behind } = op {
            // Nobody hears a room that is not in memory.
            let home = self.homes.get_mut(key);
            return home.into_iter().for_each(|home| home.state.note_pace(place, is_behind));
        }
        let is_crowded = match self.homes.get(key) {
            Some(home) => {
                home.load() >= cx.shard.settings.limits.room_queue
                    || (is_told_to_all(&op) && home.state.is_behind(cx))
            }
            None => match self.make(key, cx) {
                Ok(()) => false,
                Err(refusal) => return give_up(None, op, refusal, cx),
            },
        };
        let pushed = match op {
            // Who is in the room must not be lost; there are at most as many of these as sessions.
            RoomOp::Gone { .. } | RoomOp::Back { .. } => match self.homes.push(key, op) {
                Pushed::Refused(op) => self.homes.push_anyway(key, op),
                pushed => pushed,
            },
            RoomOp::Stanza { .. } | RoomOp::Command { .. } if is_crowded => Pushed::Refused(op),
            RoomOp::Stanza { .. } | RoomOp::Command { .. } | RoomOp::Refused { .. } | RoomOp::Pace { .. } => {
                self.homes.push(key, op)
            }
        };
        match pushed {
            Pushed::Now(op) => {
                if let Some(home) = self.homes.get_mut(key) {
                    home.start(op, key, cx);
                }
            }
            Pushed::Load => {
                if let Some(home) = self.homes.get_mut(key) {
                    home.read_record(key, cx);
                }
            }
            Pushed::Waits => {}
            Pushed::Refused(op) => {
                let occupants = self.homes.get_mut(key).map(|home| &mut home.state.occupants);
                give_up(occupants, op, RoomRefusal::Crowded, cx);
            }
        }
        self.advance(key, cx);
    }

    /// Makes a place for a room that has none in memory.
    fn make(&mut self, key: &RoomKey, cx: &Cx<'_>) -> Result<(), RoomRefusal> {
        let domain = cx.shard.domains.numbered(key.domain).ok_or(RoomRefusal::NotFound)?;
        let address = BareJid::new(&key.kind.address(&key.name, &domain.name));
        let address = address.map_err(|_| RoomRefusal::NotFound)?;
        if self.homes.len() >= self.full.max(ROOMS_MAX) {
            self.homes.forget_idle(1);
            // All of them are looked at, so not for each that comes.
            self.full = self.homes.len() + ROOMS_MAX / 8;
        }
        if self.homes.len() >= 2 * ROOMS_MAX {
            return Err(RoomRefusal::Crowded);
        }
        self.homes.make(key, || Home::unknown(Box::new(RoomState::new(address))));
        Ok(())
    }

    /// The store answered.
    pub(crate) fn answered(&mut self, key: &RoomKey, ticket: Ticket, answer: Answer, cx: &mut Cx<'_>) {
        let Some(home) = self.homes.get_mut(key) else { return };
        let Some(step) = home.take_step(ticket) else { return };
        home.answered(step, answer, key, cx);
        self.advance(key, cx);
    }

    /// Forgets the rooms whose home is elsewhere from now on. Their occupants tell the new home that they are in them.
    pub fn keep_homes(&mut self, is_here: impl Fn(&RoomKey) -> bool, cx: &mut Cx<'_>) {
        let left = self.homes.keep(is_here);
        let entering = left.steps.into_iter().filter_map(|(_, step)| match step {
            Step::History { entering, .. } => Some(*entering),
            _ => None,
        });
        for op in entering.chain(left.tasks.into_iter().map(|(_, op)| op)) {
            give_up(None, op, RoomRefusal::Crowded, cx);
        }
        let mut occupants = 0;
        // Those of their accounts have moved, too.
        self.homes.each(|home| {
            if let Some(record) = home.known() {
                home.state.note_members(&record, cx);
            }
            occupants += home.state.counted as u64;
        });
        cx.shard.counters.rooms.occupants = occupants;
        cx.shard.counters.rooms.rooms = self.homes.len() as u64;
    }

    /// Forgets rooms that were not used lately.
    pub fn tidy(&mut self, figures: &mut RoomFigures) {
        self.homes.forget_idle(IDLE_TURNS);
        self.homes.shrink(RECORDS_BYTES_MAX, |home| !home.is_quiet());
        self.homes.each(|home| {
            if home.record().is_some_and(|record| record.config.archive) {
                home.state.history.tidy();
            }
        });
        figures.rooms = self.homes.len() as u64;
    }

    fn advance(&mut self, key: &RoomKey, cx: &mut Cx<'_>) {
        let Some(home) = self.homes.get_mut(key) else { return };
        while let Some(next) = home.next() {
            home.start(next, key, cx);
        }
        home.desert(key, cx);
        let state = &mut home.state;
        let before = std::mem::replace(&mut state.counted, state.occupants.len());
        let figures = &mut cx.shard.counters.rooms;
        figures.occupants = figures.occupants + state.counted as u64 - before as u64;
        self.homes.settle(key, |home| !home.is_nothing());
        figures.rooms = self.homes.len() as u64;
    }
}

/// Refuses what a room with these occupants is told.
fn give_up(occupants: Option<&mut Occupants>, op: RoomOp, refusal: RoomRefusal, cx: &mut Cx<'_>) {
    match op {
        RoomOp::Stanza { seat, stanza, settlement } => {
            turn_away(occupants, seat, &stanza, &refusal.into(), cx);
            cx.settle(settlement);
        }
        RoomOp::Back { seat, presence, .. } => left_behind(seat, &presence, cx),
        RoomOp::Command { reply, .. } => Asker::Command(reply).refused(refusal, cx),
        RoomOp::Gone { .. } | RoomOp::Refused { .. } | RoomOp::Pace { .. } => {}
    }
}

/// Whether all in the room may be told of it: while a shard is behind with giving what the room says, it is refused. That clients leave is not.
fn is_told_to_all(op: &RoomOp) -> bool {
    match op {
        RoomOp::Stanza { stanza, .. } => match stanza.kind {
            Kind::Message(_) | Kind::Presence(PresenceType::Available) => true,
            Kind::Iq(IqType::Set) => stanza.payload.find("query", ns::MAM).is_none(),
            Kind::Iq(_) | Kind::Presence(_) => false,
        },
        RoomOp::Command { request, .. } => !matches!(
            **request,
            RoomRequest::Describe | RoomRequest::Occupants { .. } | RoomRequest::Destroy { .. }
        ),
        RoomOp::Gone { .. } | RoomOp::Back { .. } | RoomOp::Refused { .. } | RoomOp::Pace { .. } => false,
    }
}

/// The room of a session that came from another process is not there.
fn left_behind(seat: RoomSeat, presence: &Stanza, cx: &mut Cx<'_>) {
    if let Some(address) = &presence.to {
        enter::lost(seat, address.clone(), cx);
    }
}

impl Home {
    /// Processes an operation whose turn it is.
    fn start(&mut self, op: RoomOp, key: &RoomKey, cx: &mut Cx<'_>) {
        let (record, is_light) = (self.known(), key.kind == RoomKind::MucLight);
        match (op, record) {
            (RoomOp::Gone { client, seat, is_lost }, Some(record)) => {
                self.state.gone(&record, &client, seat, is_lost, cx);
            }
            (RoomOp::Back { seat, presence, role }, Some(record)) => {
                self.state.back(&record, seat, &presence, role, cx);
            }
            (RoomOp::Stanza { seat, stanza, settlement }, Some(record)) if is_light => {
                self.light(&record, seat, stanza, settlement, key, cx);
            }
            (RoomOp::Stanza { stanza, settlement, .. }, None) if is_light => {
                self.light_absent(&stanza, key, cx);
                cx.settle(settlement);
            }
            (op @ RoomOp::Stanza { .. }, Some(record)) if self.needs_history(&op, &record) => {
                self.read_history(record, Box::new(op), key, cx);
            }
            (RoomOp::Stanza { seat, stanza, settlement }, Some(record)) => {
                self.stanza(&record, seat, stanza, settlement, key, cx);
            }
            (RoomOp::Stanza { seat, stanza, settlement }, None) => {
                self.absent(seat, stanza, key, cx);
                cx.settle(settlement);
            }
            (RoomOp::Command { request, reply }, Some(record)) => {
                self.command(&record, *request, reply, key, cx);
            }
            (RoomOp::Command { request, reply }, None) => self.command_to_nothing(*request, reply, key, cx),
            (RoomOp::Back { seat, presence, .. }, None) => left_behind(seat, &presence, cx),
            (RoomOp::Refused { error }, Some(_)) => self.refused(*error, cx),
            (RoomOp::Gone { .. } | RoomOp::Refused { .. }, None) | (RoomOp::Pace { .. }, _) => {}
        }
    }

    /// Whether what was said lately is to be read before it is the turn of this.
    fn needs_history(&self, op: &RoomOp, record: &RoomRecord) -> bool {
        matches!(op, RoomOp::Stanza { stanza, .. } if self.state.needs_history(record, stanza))
    }

    fn stanza(
        &mut self,
        record: &Arc<RoomRecord>,
        seat: RoomSeat,
        stanza: Box<Stanza>,
        settlement: Option<Settlement>,
        key: &RoomKey,
        cx: &mut Cx<'_>,
    ) {
        if self.is_concealed_from(record, &stanza) {
            self.absent(seat, stanza, key, cx);
            return cx.settle(settlement);
        }
        match stanza.kind {
            Kind::Message(_) => return self.message(record, stanza, settlement, key, cx),
            Kind::Presence(_) => self.presence(record, seat, &stanza, cx),
            Kind::Iq(_) if stanza.to.as_ref().is_some_and(|to| !to.is_bare()) => {
                match Home::is_for_vcard(&stanza) {
                    true => {
                        let read = self.read_vcard(&stanza, key, cx);
                        read.unwrap_or_else(|error| refuse(&stanza, &error, cx));
                    }
                    false => self.relay(&stanza, cx),
                }
            }
            Kind::Iq(IqType::Result | IqType::Error) => {}
            Kind::Iq(_) => self.request(record, seat, stanza, key, cx),
        }
        cx.settle(settlement);
    }

    /// Whether a request or a message is answered as if the room were not there: its sender may not find it, and is neither in it nor a member. Whoever knows
    /// the address may enter.
    fn is_concealed_from(&self, record: &RoomRecord, stanza: &Stanza) -> bool {
        let asks = match stanza.kind {
            Kind::Message(kind) => kind != MessageType::Error,
            Kind::Iq(kind) => matches!(kind, IqType::Get | IqType::Set),
            Kind::Presence(_) => false,
        };
        let Some(client) = stanza.from.as_ref().filter(|_| asks) else { return false };
        let affiliation = record.affiliation(client.bare_str());
        let is_hidden = !record.config.public && affiliation < RoomAffiliation::Member;
        let is_locked = record.config.locked && affiliation < RoomAffiliation::Owner;
        if !(is_hidden || is_locked) || self.state.occupants.of_account(client.bare_str()).next().is_some() {
            return false;
        }
        // Whoever was invited by somebody of the room tells them that it does not come.
        let inviter = xml::request::declined(stanza).and_then(|to| Jid::new(&to).ok());
        !inviter.is_some_and(|inviter| {
            record.affiliation(inviter.bare_str()) >= RoomAffiliation::Member
                || self.state.occupants.of_account(inviter.bare_str()).next().is_some()
        })
    }

    /// There is no such room.
    fn absent(&mut self, seat: RoomSeat, stanza: Box<Stanza>, key: &RoomKey, cx: &mut Cx<'_>) {
        let refused = match stanza.kind {
            Kind::Presence(PresenceType::Available) if xml::request::entry(&stanza).is_some() => {
                match self.create(seat, stanza, key, cx) {
                    Ok(()) => return,
                    Err(refused) => refused,
                }
            }
            Kind::Presence(PresenceType::Available) => (stanza, StanzaError::new(Condition::NotAcceptable)),
            Kind::Presence(_) => return,
            // An answer would tell rooms that are hidden from those that are not there: there, it is not known who invited.
            Kind::Message(_) if xml::request::declined(&stanza).is_some() => return,
            // XEP-0410 §3.1: who asks is in no such room.
            Kind::Iq(_) if stanza.payload.find("ping", ns::PING).is_some() => {
                (stanza, StanzaError::new(Condition::NotAcceptable))
            }
            Kind::Message(_) | Kind::Iq(_) => (stanza, StanzaError::new(Condition::ItemNotFound)),
        };
        let (stanza, error) = refused;
        turn_away(None, seat, &stanza, &error, cx);
    }

    /// A request to the room.
    fn request(
        &mut self,
        record: &Arc<RoomRecord>,
        seat: RoomSeat,
        stanza: Box<Stanza>,
        key: &RoomKey,
        cx: &mut Cx<'_>,
    ) {
        let Some(payload) = stanza.payload.children().next().map(|child| child.element()) else {
            return refuse(&stanza, &StanzaError::new(Condition::BadRequest), cx);
        };
        let is_get = stanza.kind == Kind::Iq(IqType::Get);
        let result = match (payload.ns(), payload.name()) {
            (ns::MUC_ADMIN, "query") => return self.admin(record, &payload, &stanza, key, cx),
            (ns::MUC_OWNER, "query") => return self.owner(record, &payload, stanza, key, cx),
            (ns::REGISTER, "query") => return self.register(record, &payload, stanza, key, cx),
            (ns::MODERATE, "moderate") if !is_get => self.moderate(record, &payload, stanza.clone(), key, cx),
            (ns::VCARD, "vCard") if is_get => {
                let question = ReadRoomVcard { room: record.id };
                self.ask(key, question, Step::OwnVcard(stanza), cx);
                return;
            }
            (ns::VCARD, "vCard") => return self.set_vcard(record, &payload, stanza, key, cx),
            (ns::MAM, _) => self.read_archive(record, seat, &payload, &stanza, key, cx),
            (ns::DISCO_INFO | ns::DISCO_ITEMS, "query") if is_get => {
                self.describe(record, &payload, &stanza, cx)
            }
            (ns::PING, "ping") if is_get => {
                reply(stanza.result_reply(), cx);
                Ok(())
            }
            _ => Err(StanzaError::new(Condition::ServiceUnavailable)),
        };
        if let Err(error) = result {
            refuse(&stanza, &error, cx);
        }
    }

    /// Service discovery.
    fn describe(
        &self,
        record: &RoomRecord,
        query: &carillon_wire::xml::Element,
        stanza: &Stanza,
        cx: &mut Cx<'_>,
    ) -> Result<(), StanzaError> {
        let Some(client) = &stanza.from else { return Ok(()) };
        let member = record.member(client.bare_str());
        let payload = match (query.ns(), query.attr("node")) {
            (ns::DISCO_INFO, None) => xml::disco::info(record, self.state.occupants.len()),
            (ns::DISCO_INFO, Some(xml::disco::NICK_NODE)) => {
                xml::disco::own_nick(member.map(|member| &*member.nick))
            }
            (ns::DISCO_ITEMS, None) => self.list_occupants(query, stanza)?,
            _ => return Err(StanzaError::new(Condition::ItemNotFound)),
        };
        reply(stanza.result_reply().with_payload(payload), cx);
        Ok(())
    }

    /// The store's answer to the question of a step.
    fn answered(&mut self, step: Step, answer: Answer, key: &RoomKey, cx: &mut Cx<'_>) {
        match step {
            Step::Load => self.loaded(rooms::Room::answer(answer), cx),
            Step::History { record, entering } => {
                self.remembered(record, *entering, RoomArchivePage::answer(answer));
            }
            Step::Create(creator) => self.created(creator, CreateRoom::answer(answer), key, cx),
            Step::Keep { said, asker, fact } => {
                self.kept(*said, asker, fact, KeepRoomMessage::answer(answer), key, cx);
            }
            Step::Change { record, change, asker } => {
                self.changed(record, change, asker, answer, key, cx);
            }
            Step::Desert(record) => match DestroyRoom::answer(answer) {
                Ok(Ok(true)) => self.remove_deserted(record, key, cx),
                Ok(done) => {
                    if done.is_ok() {
                        told::destroyed(&self.state.address, told::Destroyed::Empty, None, cx);
                        facts::stored(key.domain, cx, |cx| {
                            let destroyed =
                                self.state.fact(key.domain, None, || RoomAction::Destroyed(None), cx);
                            destroyed.into_iter().collect()
                        });
                    }
                    self.destroyed(None, None, None, cx);
                }
                Err(Fault::Unknown) => self.read_record(key, cx),
                Err(_) => self.open(record),
            },
            Step::Page(reading) => {
                let answer = match reading.is_by_ids() {
                    true => RoomArchivedMessages::answer(answer),
                    false => RoomArchivePage::answer(answer),
                };
                self.page(&reading, answer, cx);
            }
            Step::Vcard(request) => Home::show_vcard(&request, ReadVcard::answer(answer), cx),
            Step::OwnVcard(request) => Home::show_vcard(&request, ReadRoomVcard::answer(answer), cx),
            Step::Avatar { record, photo, asker } => {
                let answer = ReadRoomVcard::answer(answer);
                self.replace_avatar(&record, photo.as_deref(), asker, answer, key, cx);
            }
            Step::Ends(request) => self.ends(&request, ReadRoomArchiveEnds::answer(answer), cx),
            Step::Adding(adding) => self.asked_whom(*adding, Home::refusers(answer), key, cx),
            Step::Noted => {
                let answer = KeepRoomMessage::answer(answer);
                self.written(matches!(answer, Ok(Err(_))));
                if let Ok(Ok(id)) = answer {
                    self.state.newest = self.state.newest.max(id);
                }
            }
            Step::Moderating(of) => self.found(*of, RoomArchivedMessages::answer(answer), key, cx),
            Step::Retracting(of) => self.found_own(*of, RoomArchivedMessages::answer(answer), key, cx),
            Step::Retracted(of) => self.retracted(*of, ReplaceRoomMessage::answer(answer), key, cx),
        }
    }

    fn loaded(&mut self, answer: Result<Option<Box<RoomRecord>>, Fault>, cx: &mut Cx<'_>) {
        match answer {
            Ok(Some(record)) => {
                let record: Arc<RoomRecord> = Arc::from(record);
                if record.config.archive {
                    // It may have been changed, too.
                    self.state.history.clear();
                }
                self.read_again(&record, cx);
            }
            Ok(None) => self.destroyed(None, None, None, cx),
            Err(_) => {
                let is_kept = |op: &RoomOp| matches!(op, RoomOp::Gone { .. } | RoomOp::Back { .. });
                for op in self.give_up(is_kept) {
                    // Nothing was done, whatever is unknown of the record.
                    give_up(Some(&mut self.state.occupants), op, RoomRefusal::Fault(Fault::Busy), cx);
                }
                // With what comes next it is read again, and who is in it, or is to be, stays.
                match self.state.occupants.is_empty() && self.waiting().len() == 0 {
                    true => self.vanish(),
                    false => drop(self.drop_record()),
                }
            }
        }
    }

    /// Reads what was said last, for somebody who enters; who speaks waits meanwhile.
    fn read_history(
        &mut self,
        record: Arc<RoomRecord>,
        entering: Box<RoomOp>,
        key: &RoomKey,
        cx: &mut Cx<'_>,
    ) {
        let entries = u16::try_from(record.config.history).unwrap_or(u16::MAX);
        let page = Page { entries, bytes: history::HISTORY_BYTES_MAX };
        let (filter, start) = (ArchiveFilter::default(), ArchiveStart::Last);
        let question = RoomArchivePage { room: record.id, since: ArchiveId(0), filter, start, page };
        self.hold();
        self.ask(key, question, Step::History { record, entering }, cx);
    }

    /// What was said last was read: it is the turn of who enters.
    fn remembered(
        &mut self,
        record: Arc<RoomRecord>,
        entering: RoomOp,
        answer: Result<ArchivePageAnswer, Fault>,
    ) {
        self.state.history.begin();
        if let Ok(ArchivePageAnswer::Page { messages, .. }) = answer {
            for message in messages {
                let Some(mut said) = message.read() else { continue };
                said.payload.push_element(&xml::user::stanza_id(&self.state.address, message.id));
                self.state.history.push(
                    Arc::new(SharedStanza::new(said)),
                    message.received,
                    Some(message.id),
                    record.config.history as usize,
                    true,
                );
            }
        }
        self.open(record);
        self.push_front(entering);
    }

    /// The record was read. Occupants are there if that was after a change of which the store did not say whether it was made.
    fn read_again(&mut self, record: &Arc<RoomRecord>, cx: &mut Cx<'_>) {
        let is_other = |of: &&Occupant| of.affiliation != record.affiliation(of.account());
        let others = self.state.occupants.iter().filter(is_other).filter_map(Occupant::account_jid);
        let member = |account: BareJid| {
            let affiliation = record.affiliation(account.as_str());
            RoomMember::new(account, affiliation)
        };
        let changes: Vec<RoomMember> = others.map(member).collect();
        self.state.newest = self.state.newest.max(record.newest);
        self.state.note_members(record, cx);
        self.open(record.clone());
        self.state.members_changed(record, &changes, None, cx);
    }
}
