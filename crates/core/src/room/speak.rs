//! What is said in a room, and between its occupants (XEP-0045 §7.4, §7.5, §7.8, §7.13, §8.1).

use super::asker::{Asker, refuse, reply};
use super::enter::LOST;
use super::facts;
use super::home::{Home, give, give_clients};
use super::occupants::Occupant;
use super::step::{Change, Step};
use super::xml::{form, request, user};
use crate::command::{RoomOutcome, RoomRefusal};
use crate::error::StanzaError;
use crate::message::{RoomAbout, RoomSeat, RoomStanza};
use crate::model::{
    AllowPm, ArchiveId, RoomAction, RoomAffiliation, RoomConfig, RoomEntry, RoomFact, RoomKey, RoomMember,
    RoomMessageFact, RoomRecord, RoomRole as Role, RoomSubject, Settlement, UnixMs,
};
use crate::ports::store::rooms::{KeepRoomMessage, RoomWake};
use crate::ports::{Fault, Missing};
use crate::session::hook::Stored;
use crate::session::{Cx, mam};
use carillon_wire::Framing;
use carillon_wire::jid::{BareJid, Jid};
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, IqType, Kind, MessageType, Payload, SharedStanza, Stanza};
use carillon_wire::xml::Element;
use std::sync::Arc;

/// Elements that only the room says.
const OF_THE_ROOM: &[(&str, &str)] =
    &[("stanza-id", ns::STANZA_ID), ("occupant-id", ns::OCCUPANT_ID), ("x", ns::MUC_USER)];

/// What a sender says to the server alone (XEP-0280 §8).
const FOR_THE_SERVER: (&str, &str) = ("private", ns::CARBONS);

impl Home {
    /// A client says something to the room, or to an occupant.
    pub(super) fn message(
        &mut self,
        record: &Arc<RoomRecord>,
        stanza: Box<Stanza>,
        settlement: Option<Settlement>,
        key: &RoomKey,
        cx: &mut Cx<'_>,
    ) {
        let is_to_room = stanza.to.as_ref().is_some_and(Jid::is_bare);
        let result = match stanza.kind {
            Kind::Message(MessageType::Error) => {
                // A client that cannot take what it is sent is not in the room any more.
                if let Some(client) = &stanza.from {
                    self.state.leave(record, client, None, &[LOST], cx);
                }
                Ok(())
            }
            Kind::Message(MessageType::Groupchat) if !is_to_room => {
                Err(StanzaError::new(Condition::BadRequest))
            }
            Kind::Message(MessageType::Groupchat) => {
                return match self.words(record, &stanza) {
                    Ok(words) => self.say(record, words, stanza, key, settlement, cx),
                    Err(error) => {
                        refuse(&stanza, &error, cx);
                        cx.settle(settlement);
                    }
                };
            }
            _ if is_to_room => self.mediated(record, &stanza, key, cx),
            _ => self.private(record, &stanza, cx),
        };
        if let Err(error) = result {
            refuse(&stanza, &error, cx);
        }
        cx.settle(settlement);
    }

    /// The occupant that sent a stanza.
    pub(super) fn sender(&self, stanza: &Stanza) -> Result<&Occupant, StanzaError> {
        let client = stanza.from.as_ref();
        let occupant = client.and_then(|client| self.state.occupants.of(client));
        // XEP-0045 §7.4, §7.5
        occupant.ok_or(StanzaError::new(Condition::NotAcceptable).with_text("you are not in the room"))
    }

    /// What is said by a message to all, if its sender may say it.
    fn words(&self, record: &RoomRecord, stanza: &Stanza) -> Result<Words, StanzaError> {
        let sender = self.sender(stanza)?;
        let account = sender.account_jid().ok_or(StanzaError::new(Condition::NotAcceptable))?;
        let is_subject = request::is_subject(&stanza.payload);
        let may_say = match is_subject && !record.config.change_subject {
            true => sender.role == Role::Moderator,
            false => sender.role >= Role::Participant,
        };
        match may_say {
            true => Ok(Words { said: spoken(stanza, sender), account, is_subject }),
            false if is_subject => Err(StanzaError::new(Condition::Forbidden)),
            false => Err(StanzaError::new(Condition::Forbidden).with_text("you have no voice in this room")),
        }
    }

    fn say(
        &mut self,
        record: &Arc<RoomRecord>,
        words: Words,
        stanza: Box<Stanza>,
        key: &RoomKey,
        settlement: Option<Settlement>,
        cx: &mut Cx<'_>,
    ) {
        let Words { said, account, is_subject } = words;
        let asker = Asker::Client { stanza, settlement };
        if is_subject {
            let subject = subject(&said, &account, cx);
            self.change(record, Change::Subject(subject, Box::new(said)), asker, key, cx);
        } else {
            self.utter(record, said, account, asker, key, cx);
        }
    }

    /// Keeps a message if it is to be kept, and then says it to all.
    pub(super) fn keep(
        &mut self,
        record: &RoomRecord,
        said: Stanza,
        sender: BareJid,
        asker: Asker,
        key: &RoomKey,
        cx: &mut Cx<'_>,
    ) {
        if !record.config.archive || !mam::is_kept(&said) {
            self.said(Arc::new(SharedStanza::new(said)), None, cx);
            return asker.done(RoomOutcome::Said(None), cx);
        }
        let mut bytes = Vec::new();
        said.write(&mut bytes, Framing::Tcp);
        self.wrote();
        let (wake, listeners) = self.wakes(record, &said, &sender, cx);
        let by = Some(&sender).filter(|sender| **sender != self.state.address);
        let action = || {
            let (from, stanza_id) = (said.from.clone(), said.id.clone());
            RoomAction::Message(RoomMessageFact { id: ArchiveId(0), from, stanza_id })
        };
        let fact = self.state.fact(record.domain, by, action, cx).map(Box::new);
        let told = fact.clone().filter(|_| !cx.pipeline.event.is_empty());
        let question = KeepRoomMessage {
            room: record.id,
            received: cx.now.unix,
            sender,
            stanza: bytes.into(),
            entry: if mam::has_contents(&said) { RoomEntry::Counted } else { RoomEntry::Other },
            displayed: mam::displayed(&said),
            wake,
            listeners,
            fact,
        };
        self.ask(key, question, Step::Keep { said: Box::new(said), asker, fact: told }, cx);
    }

    /// Whom a message wakes: those who are mentioned in it and are not there; and when those who want every message. Who of them hears the room is looked at
    /// before they are woken ([`Command::Hears`](crate::command::Command::Hears)): their homes know, and here it is not known of MUC Light.
    fn wakes(
        &self,
        record: &RoomRecord,
        said: &Stanza,
        sender: &BareJid,
        cx: &Cx<'_>,
    ) -> (Option<Box<RoomWake>>, Option<UnixMs>) {
        let Some(wakes) = cx.pipeline.wakes else { return (None, None) };
        // What says nothing wakes nobody.
        let Some(of_all) = wakes(Stored::InRoom(said), false, cx) else { return (None, None) };
        let mentioned = self.state.mentioned(record, said, sender);
        let wake = if mentioned.is_empty() { None } else { wakes(Stored::Mention(said), false, cx) };
        let wake = wake.map(|wake| Box::new(RoomWake { domain: record.domain, mentioned, wake }));
        (wake, Some(of_all.at))
    }

    /// A message was kept, or not.
    pub(super) fn kept(
        &mut self,
        mut said: Stanza,
        asker: Asker,
        fact: Option<Box<RoomFact>>,
        answer: Result<Result<ArchiveId, Missing>, Fault>,
        key: &RoomKey,
        cx: &mut Cx<'_>,
    ) {
        self.written(matches!(answer, Ok(Err(Missing))));
        match answer {
            Ok(Ok(id)) => {
                self.state.newest = self.state.newest.max(id);
                facts::stored(key.domain, cx, |_| fact.map(|fact| numbered(*fact, id)).into_iter().collect());
                said.payload.push_element(&user::stanza_id(&self.state.address, id));
                self.said(Arc::new(SharedStanza::new(said)), Some(id), cx);
                asker.done(RoomOutcome::Said(Some(id)), cx);
            }
            Ok(Err(Missing)) => {
                asker.refused(RoomRefusal::NotFound, cx);
                if self.is_absent() {
                    self.destroyed(None, None, None, cx);
                }
            }
            Err(fault) => asker.refused(fault.into(), cx),
        }
    }

    /// Something is said to all.
    pub(super) fn said(&mut self, message: Arc<SharedStanza>, id: Option<ArchiveId>, cx: &mut Cx<'_>) {
        cx.shard.counters.rooms.messages += 1;
        let is_entered = self.state.audience.is_empty();
        if is_entered && (message.stanza().payload.find("body", ns::CLIENT).is_some() || id.is_some()) {
            // While the record is being changed nothing is forgotten that may still be given.
            let max = self.record().map_or(RoomConfig::HISTORY_MAX, |record| record.config.history);
            let is_archived = self.record().is_none_or(|record| record.config.archive);
            self.state.history.push(message.clone(), cx.now.unix, id, max as usize, is_archived);
        }
        self.state.give_all(&[RoomStanza { stanza: message, full: None }], &[], cx);
    }

    /// A message to one occupant (XEP-0045 §7.5).
    fn private(&self, record: &RoomRecord, stanza: &Stanza, cx: &mut Cx<'_>) -> Result<(), StanzaError> {
        let sender = self.sender(stanza)?;
        let may_send = match record.config.allow_pm {
            AllowPm::Anyone => true,
            AllowPm::Participants => sender.role >= Role::Participant,
            AllowPm::Moderators => sender.role >= Role::Moderator,
            AllowPm::None => false,
        };
        if !may_send {
            return Err(StanzaError::new(Condition::Forbidden).with_text("no private messages in this room"));
        }
        let nick = stanza.to.as_ref().and_then(Jid::resource).unwrap_or_default();
        let target = self.state.occupants.named(nick);
        let target =
            target.ok_or(StanzaError::new(Condition::ItemNotFound).with_text("nobody has this nick"))?;
        let mut told = spoken(stanza, sender);
        told.payload.push_element(&Element::new("x", ns::MUC_USER));
        // To all of its clients at once: a module decides once for its account.
        for (place, clients) in target.clients_by_place() {
            give_clients(place, Arc::new(clients), &[RoomStanza::for_all(told.clone())], &[], cx);
        }
        Ok(())
    }

    /// An occupant's account does not take a private message: its sender is told, under the address that it was sent to.
    pub(super) fn refused(&self, mut error: Stanza, cx: &mut Cx<'_>) {
        let nick = error.to.take().and_then(|to| to.resource().map(Box::<str>::from));
        if let Some(sender) = nick.and_then(|nick| self.state.occupants.named(&nick)) {
            self.state.give_occupant(sender, &[RoomStanza::for_all(error)], &RoomAbout::Others, cx);
        }
    }

    /// A request or an answer to an occupant's client (XEP-0045 §17.4).
    pub(super) fn relay(&self, stanza: &Stanza, cx: &mut Cx<'_>) {
        let Kind::Iq(kind) = stanza.kind else { return };
        let result = self.sender(stanza).and_then(|sender| {
            let nick = stanza.to.as_ref().and_then(Jid::resource).unwrap_or_default();
            let target = self.state.occupants.named(nick);
            let target = target.ok_or(StanzaError::new(Condition::ItemNotFound))?;
            if kind == IqType::Get
                && target.address == sender.address
                && stanza.payload.find("ping", ns::PING).is_some()
            {
                // XEP-0410: it is in the room.
                reply(stanza.result_reply(), cx);
                return Ok(());
            }
            let mut told = stanza.clone();
            (told.from, told.to) = (Some(sender.address.clone()), None);
            if let Some(client) = target.clients.first() {
                let sees = target.is_moderator();
                give(client.seat, sees, vec![RoomStanza::for_all(told)], RoomAbout::Others, cx);
            }
            Ok(())
        });
        if let Err(error) = result {
            let is_disco =
                stanza.payload.children().any(|child| matches!(child.ns(), ns::DISCO_INFO | ns::DISCO_ITEMS));
            // XEP-0045 §6.6
            let error = if is_disco { StanzaError::new(Condition::BadRequest) } else { error };
            refuse(stanza, &error, cx);
        }
    }

    /// A message to the room itself: an invitation, the refusal of one, or about voice.
    fn mediated(
        &mut self,
        record: &Arc<RoomRecord>,
        stanza: &Stanza,
        key: &RoomKey,
        cx: &mut Cx<'_>,
    ) -> Result<(), StanzaError> {
        if let Some(x) = stanza.payload.find("x", ns::MUC_USER) {
            let x = x.element();
            if let Some(decline) = x.child("decline", ns::MUC_USER) {
                let to = address(decline)?;
                return self.pass_on("decline", stanza, &to, decline, record, cx);
            }
            let mut invited = Vec::new();
            for invite in x.children().filter(|child| child.is("invite", ns::MUC_USER)).take(INVITED_MAX) {
                let to = address(invite)?;
                self.invite(record, stanza, &to, invite, cx)?;
                invited.push(to.bare());
            }
            if invited.is_empty() {
                return Err(StanzaError::new(Condition::BadRequest));
            }
            self.make_members(record, &invited, stanza, key, cx);
            return Ok(());
        }
        match stanza.payload.find("x", ns::DATA_FORMS) {
            Some(x) => self.voice(record, &x.element(), stanza, cx),
            None => {
                Err(StanzaError::new(Condition::NotAcceptable)
                    .with_text("a message to a room is a groupchat"))
            }
        }
    }

    /// XEP-0045 §7.8.2
    fn invite(
        &self,
        record: &RoomRecord,
        stanza: &Stanza,
        to: &Jid,
        invite: &Element,
        cx: &mut Cx<'_>,
    ) -> Result<(), StanzaError> {
        let sender = self.sender(stanza)?;
        let is_admin = sender.affiliation >= RoomAffiliation::Admin;
        if !is_admin && (!record.config.allow_invites || record.config.members_only) {
            return Err(StanzaError::new(Condition::Forbidden).with_text("only admins invite to this room"));
        }
        self.pass_on("invite", stanza, to, invite, record, cx)
    }

    fn pass_on(
        &self,
        name: &'static str,
        stanza: &Stanza,
        to: &Jid,
        element: &Element,
        record: &RoomRecord,
        cx: &mut Cx<'_>,
    ) -> Result<(), StanzaError> {
        if cx.reachable(self.state.domain(), to).is_none() {
            return Err(
                StanzaError::new(Condition::ItemNotFound).with_text("the account is not of this domain")
            );
        }
        let is_invite = name == "invite";
        let from =
            stanza.from.as_ref().map_or("", |from| if is_invite { from.as_str() } else { from.bare_str() });
        let reason = element.child("reason", ns::MUC_USER).map(Element::text);
        let password = if is_invite { record.config.password.as_str() } else { "" };
        let mut told = Stanza::message(MessageType::Normal).with_from(self.state.address.clone());
        told.to = Some(to.clone());
        // §7.9: the room goes on with a conversation of two.
        let continued = element.child("continue", ns::MUC_USER).filter(|_| is_invite);
        let invitation = user::invitation(name, from, reason.as_deref(), continued, password);
        told.payload.push_element(&invitation);
        cx.route(told);
        Ok(())
    }

    /// Whom an admin invites to a members-only room becomes a member (XEP-0045 §9.3).
    fn make_members(
        &mut self,
        record: &Arc<RoomRecord>,
        invited: &[BareJid],
        stanza: &Stanza,
        key: &RoomKey,
        cx: &mut Cx<'_>,
    ) {
        let new = |jid: &&BareJid| record.affiliation(jid.as_str()) == RoomAffiliation::None;
        let members: Vec<RoomMember> = invited
            .iter()
            .filter(new)
            .map(|jid| {
                let nick = record.member(jid.as_str()).map(|member| member.nick.clone()).unwrap_or_default();
                RoomMember { nick, ..RoomMember::new(jid.clone(), RoomAffiliation::Member) }
            })
            .collect();
        if record.config.members_only && !members.is_empty() {
            self.change_members(record, members, None, Asker::client(Box::new(stanza.clone())), key, cx);
        }
    }

    /// A visitor asks for voice, or a moderator gives it (XEP-0045 §7.13, §8.6).
    fn voice(
        &mut self,
        record: &RoomRecord,
        x: &Element,
        stanza: &Stanza,
        cx: &mut Cx<'_>,
    ) -> Result<(), StanzaError> {
        let sender = self.sender(stanza)?;
        let wanted = form::voice(x)?;
        if sender.role < Role::Moderator {
            if sender.role == Role::Participant {
                return Ok(());
            }
            let mut request = Stanza::message(MessageType::Normal).with_from(self.state.address.clone());
            request.payload.push_element(&form::voice_request(sender));
            let stanzas = [RoomStanza::for_all(request)];
            let moderators = self.state.occupants.iter().filter(|occupant| occupant.is_moderator());
            moderators.for_each(|of| self.state.give_occupant(of, &stanzas, &RoomAbout::Others, cx));
            return Ok(());
        }
        let Some(nick) = wanted.nick.filter(|_| wanted.is_allowed) else { return Ok(()) };
        let occupant = self.state.occupants.named(&nick).ok_or(StanzaError::new(Condition::ItemNotFound))?;
        if occupant.role == Role::Visitor {
            let affiliation = occupant.affiliation;
            self.state.occupants.set(&nick, affiliation, Role::Participant);
            self.state.tell_changed(record, &nick, &user::Said::default(), cx);
        }
        Ok(())
    }
}

/// What is said to all, and by whom.
struct Words {
    said: Stanza,
    account: BareJid,
    is_subject: bool,
}

/// Invitations of one message.
const INVITED_MAX: usize = 20;

/// What an occupant says, as others are given it.
fn spoken(stanza: &Stanza, sender: &Occupant) -> Stanza {
    let mut said = stanza.clone();
    (said.from, said.to) = (Some(sender.address.clone()), None);
    clean(&mut said);
    said.payload.push_element(&user::occupant_id(sender.id));
    said
}

/// Removes from a message what only the room says, and what others are not given.
pub(super) fn clean(message: &mut Stanza) {
    for (name, ns) in OF_THE_ROOM.iter().chain([&FOR_THE_SERVER]) {
        message.payload.remove(name, ns);
    }
}

/// The subject that a message sets, as it is said by an occupant or by the room; none if it removes it.
pub(super) fn subject(said: &Stanza, by: &BareJid, cx: &Cx<'_>) -> Option<Box<RoomSubject>> {
    let text = said.payload.find("subject", ns::CLIENT)?.element().text();
    let nick = said.from.as_ref().and_then(Jid::resource).unwrap_or_default().into();
    let subject =
        RoomSubject { nick, by: by.clone(), set: cx.now.unix, stanza: said.payload.bytes().clone() };
    (!text.is_empty()).then(|| Box::new(subject))
}

/// Whom an invitation is for.
fn address(element: &Element) -> Result<Jid, StanzaError> {
    let to = element.attr("to").ok_or(StanzaError::new(Condition::BadRequest))?;
    Jid::new(to).map_err(|_| StanzaError::new(Condition::JidMalformed))
}

/// A message of the room itself to all.
pub(super) fn of_room(room: &BareJid, payload: &Element) -> Stanza {
    let mut message = Stanza::message(MessageType::Groupchat).with_from(room.clone());
    message.payload = Payload::from_element(payload);
    message
}

/// Gives a client stanzas.
pub(super) fn send(seat: RoomSeat, stanzas: Vec<Stanza>, cx: &mut Cx<'_>) {
    give(seat, false, stanzas.into_iter().map(RoomStanza::for_all).collect(), RoomAbout::Others, cx);
}

/// The fact that a message was kept, with the number that the store has given it.
fn numbered(mut fact: RoomFact, number: ArchiveId) -> RoomFact {
    if let RoomAction::Message(message) = &mut fact.action {
        message.id = number;
    }
    fact
}
