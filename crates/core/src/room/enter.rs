//! Entering a room, being in it, and leaving it (XEP-0045 §7.2, §7.6, §7.7, §7.14).

use super::asker::refuse;
use super::history::delay;
use super::home::{Home, RoomState, audience, give, turn_away};
use super::occupants::{Client, Occupant, OccupantId, Shown};
use super::told;
use super::xml::avatar;
use super::xml::request::{self, EnterRequest};
use super::xml::user::{self, SELF, Said};
use crate::error::StanzaError;
use crate::message::{RoomAbout, RoomSeat, RoomStanza};
use crate::model::{
    ArchiveId, Policy, RoomAffiliation, RoomKind, RoomPresence, RoomRecord, RoomRole as Role, UnixMs,
};
use crate::session::Cx;
use carillon_wire::jid::Jid;
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, Kind, MessageType, Payload, PresenceType, SharedStanza, Stanza};
use carillon_wire::xml::Element;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use smallvec::smallvec;
use std::cell::OnceCell;
use std::sync::Arc;

/// Everybody sees everybody's address.
const NON_ANONYMOUS: u16 = 100;
/// What is said is kept.
pub(super) const LOGGED: u16 = 170;
/// The room was created.
pub(super) const CREATED: u16 = 201;
const NEW_NICK: u16 = 303;
/// The connection was lost.
pub(super) const LOST: u16 = 333;

impl Home {
    /// A client says how it is present in the room.
    pub(super) fn presence(&mut self, record: &RoomRecord, seat: RoomSeat, stanza: &Stanza, cx: &mut Cx<'_>) {
        let (Some(client), Kind::Presence(kind)) = (stanza.from.clone(), stanza.kind) else { return };
        match kind {
            PresenceType::Available => match self.available(record, seat, &client, stanza, cx) {
                Ok(()) => {}
                Err(error) => turn_away(Some(&mut self.state.occupants), seat, stanza, &error, cx),
            },
            PresenceType::Unavailable => self.state.leave(record, &client, Some(stanza), &[], cx),
            // Its client could not take what the room sent: it is treated as gone.
            PresenceType::Error => self.state.leave(record, &client, None, &[LOST], cx),
            _ => refuse(stanza, &StanzaError::new(Condition::BadRequest), cx),
        }
    }

    fn available(
        &mut self,
        record: &RoomRecord,
        seat: RoomSeat,
        client: &Jid,
        stanza: &Stanza,
        cx: &mut Cx<'_>,
    ) -> Result<(), StanzaError> {
        let address = stanza.to.clone().filter(|to| !to.is_bare());
        let address =
            address.ok_or(StanzaError::new(Condition::JidMalformed).with_text("a nick is needed"))?;
        let entry = request::entry(stanza);
        // Its session may be another one than before.
        self.state.occupants.move_client(client, seat);
        match (self.state.occupants.of(client), entry) {
            (None, Some(entry)) => {
                self.may_enter(record, record.affiliation(client.bare_str()), &entry, cx)?;
                self.may_have(record, &address, client)?;
                self.state.seat(record, seat, client, address, stanza, cx);
                cx.shard.counters.rooms.entered += 1;
                self.state.tell_others(record, client, &Said::default(), cx);
                self.state.welcome(record, client, &entry, &[], cx);
            }
            (None, None) => {
                let text = "who is not in the room enters it first";
                return Err(StanzaError::new(Condition::NotAcceptable).with_text(text));
            }
            (Some(occupant), entry) if occupant.address == address => {
                self.state.occupants.set_presence(client, RoomPresence::of(stanza));
                match entry {
                    // Its client does not know any more that it is in the room.
                    Some(entry) => self.state.welcome(record, client, &entry, &[], cx),
                    None => self.state.tell_presence(record, client, &Said::default(), cx),
                }
            }
            (Some(_), _) => {
                self.may_have(record, &address, client)?;
                if self.state.occupants.named(address.resource().unwrap_or_default()).is_some() {
                    let text = "another client of yours has this nick";
                    return Err(StanzaError::new(Condition::Conflict).with_text(text));
                }
                self.state.rename(record, client, address, stanza, cx);
            }
        }
        Ok(())
    }

    /// XEP-0045 §7.2.5 to §7.2.11.
    fn may_enter(
        &self,
        record: &RoomRecord,
        affiliation: RoomAffiliation,
        entry: &EnterRequest,
        cx: &Cx<'_>,
    ) -> Result<(), StanzaError> {
        let (config, limits) = (&record.config, &cx.shard.settings.limits);
        let condition = if affiliation == RoomAffiliation::Outcast {
            Condition::Forbidden
        } else if config.locked && affiliation != RoomAffiliation::Owner {
            Condition::ItemNotFound
        } else if config.members_only && affiliation < RoomAffiliation::Member {
            Condition::RegistrationRequired
        } else if !config.password.is_empty() && config.password != entry.password {
            Condition::NotAuthorized
        } else {
            let max = match config.max_users {
                0 => limits.room_occupants,
                max => max.min(limits.room_occupants),
            };
            let is_full = self.state.occupants.len() >= max as usize;
            if is_full && affiliation < RoomAffiliation::Admin {
                Condition::ServiceUnavailable
            } else {
                return Ok(());
            }
        };
        Err(StanzaError::new(condition))
    }

    /// Whether a client may have this address in the room (XEP-0045 §7.2.8).
    fn may_have(&self, record: &RoomRecord, address: &Jid, client: &Jid) -> Result<(), StanzaError> {
        let nick = address.resource().unwrap_or_default();
        match self.state.is_free(record, nick, client.bare_str()) {
            true => Ok(()),
            false => Err(StanzaError::new(Condition::Conflict).with_text("somebody else has this nick")),
        }
    }
}

/// The time of the oldest message that the room keeps: what is older is not given, though its archive is swept only later.
fn kept_since(record: &RoomRecord, cx: &Cx<'_>) -> UnixMs {
    let domain = cx.shard.domains.numbered(record.domain);
    let policy = domain.map_or_else(Policy::default, |domain| domain.policy);
    policy.room_archive_bounds(record.config.archive_days).cutoff(cx.now.unix)
}

/// The role that an affiliation gives on entry (XEP-0045 §5.1.2).
pub(super) fn role_of(record: &RoomRecord, affiliation: RoomAffiliation) -> Role {
    match affiliation {
        RoomAffiliation::Outcast => Role::None,
        RoomAffiliation::None if record.config.moderated => Role::Visitor,
        RoomAffiliation::None | RoomAffiliation::Member => Role::Participant,
        RoomAffiliation::Admin | RoomAffiliation::Owner => Role::Moderator,
    }
}

/// A stanza with the address of an occupant or without, for those who are shown it and for the others.
pub(super) fn variants(record: &RoomRecord, with: impl Fn(bool) -> Stanza) -> RoomStanza {
    match record.config.non_anonymous {
        true => RoomStanza::for_all(with(true)),
        false => RoomStanza {
            full: Some(Arc::new(SharedStanza::new(with(true)))),
            ..RoomStanza::for_all(with(false))
        },
    }
}

impl RoomState {
    /// Notes which nicks are reserved, and who hears a room of MUC Light.
    pub(super) fn note_members(&mut self, record: &RoomRecord, cx: &Cx<'_>) {
        if record.kind == RoomKind::MucLight {
            self.audience = audience(record.members.iter().map(|member| &member.jid), cx).into();
            return;
        }
        let nick = |at: u32| record.members.get(at as usize).map_or("", |member| &*member.nick);
        self.reserved =
            (0u32..).zip(&record.members).filter(|(_, of)| !of.nick.is_empty()).map(|(at, _)| at).collect();
        self.reserved.sort_by_key(|at| nick(*at));
    }

    /// Whether an account may have a nick: nobody else has it, and it is not reserved for anybody else.
    pub(super) fn is_free(&self, record: &RoomRecord, nick: &str, account: &str) -> bool {
        let member = |at: &u32| record.members.get(*at as usize);
        let first = self.reserved.partition_point(|at| member(at).is_some_and(|of| *of.nick < *nick));
        let same = self.reserved.iter().skip(first).map_while(member).take_while(|of| *of.nick == *nick);
        let mut owners = same.map(|of| of.jid.as_str());
        owners.all(|owner| owner == account)
            && self.occupants.named(nick).is_none_or(|of| of.account() == account)
    }

    /// Whether somebody enters by this stanza who is to be given what was said lately, and that is to be read first.
    pub(super) fn needs_history(&self, record: &RoomRecord, stanza: &Stanza) -> bool {
        stanza.kind == Kind::Presence(PresenceType::Available)
            && record.kind == RoomKind::Muc
            && record.config.archive
            && record.config.history > 0
            && self.newest > ArchiveId(0)
            && !self.history.is_known()
            && request::entry(stanza).is_some_and(|entry| entry.history.stanzas != Some(0))
    }

    /// A client is in the room from now on.
    pub(super) fn seat(
        &mut self,
        record: &RoomRecord,
        seat: RoomSeat,
        client: &Jid,
        address: Jid,
        stanza: &Stanza,
        cx: &mut Cx<'_>,
    ) {
        let nick = address.resource().unwrap_or_default().to_owned();
        let is_large = self.note_entry(&nick, cx);
        let of = Client { jid: client.clone(), seat, presence: RoomPresence::of(stanza), watches: !is_large };
        if self.occupants.named(&nick).is_some() {
            return self.occupants.add_client(&nick, of);
        }
        let affiliation = record.affiliation(client.bare_str());
        self.occupants.add(Occupant {
            id: self.occupant_id(client.bare_str(), cx),
            address,
            affiliation,
            role: role_of(record, affiliation),
            shown: Shown::Nobody,
            clients: smallvec![of],
            snapshot: OnceCell::new(),
        });
        self.note_role(record, &nick, cx);
    }

    /// A client of another process is in the room.
    pub(super) fn back(
        &mut self,
        record: &RoomRecord,
        seat: RoomSeat,
        presence: &Stanza,
        role: Role,
        cx: &mut Cx<'_>,
    ) {
        let (Some(client), Some(address)) = (&presence.from, presence.to.clone()) else { return };
        // It may have come back to where it was, because it could not go on elsewhere.
        if self.occupants.move_client(client, seat) {
            return;
        }
        let nick = address.resource().unwrap_or_default().to_owned();
        if !self.is_free(record, &nick, client.bare_str()) {
            // Somebody else took it before.
            return lost(seat, address, cx);
        }
        self.seat(record, seat, client, address, presence, cx);
        self.occupants.set(&nick, record.affiliation(client.bare_str()), role);
        // The other process may have shown it anybody, and it to anybody.
        self.occupants.watch(client);
        if record.config.presence_broadcast.shows(role) {
            self.occupants.show(&nick, Shown::Watchers);
        }
        self.note_role(record, &nick, cx);
    }

    /// The id of an account in this room (XEP-0421): the same each time, and another in another room.
    pub(super) fn occupant_id(&self, account: &str, cx: &Cx<'_>) -> OccupantId {
        let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(&cx.shard.settings.secret)
            .expect("a key may have any length");
        for part in ["occupant-id", self.address.as_str(), account] {
            mac.update(part.as_bytes());
            mac.update(&[0]);
        }
        let mac: [u8; 32] = mac.finalize().into_bytes().into();
        OccupantId(*mac.first_chunk().expect("a SHA-256 is longer"))
    }

    /// Tells all, its own clients too, of a client's presence.
    pub(super) fn tell_presence(&self, record: &RoomRecord, client: &Jid, said: &Said<'_>, cx: &mut Cx<'_>) {
        self.tell_others(record, client, said, cx);
        let Some(occupant) = self.occupants.of(client) else { return };
        let Some(of) = occupant.clients.iter().find(|of| of.jid == *client) else { return };
        let codes: Vec<u16> = said.codes.iter().copied().chain([SELF]).collect();
        let said = Said { codes: &codes, ..*said };
        let own = variants(record, |shows| user::presence(occupant, of, shows, &said));
        self.give_occupant(
            occupant,
            &[own],
            &RoomAbout::Entered(occupant.address.clone(), occupant.role),
            cx,
        );
    }

    /// Gives a client what one is given who enters: who is there, its own presence, what was said, and the subject (XEP-0045 §7.2.2).
    pub(super) fn welcome(
        &self,
        record: &RoomRecord,
        client: &Jid,
        entry: &EnterRequest,
        codes: &[u16],
        cx: &mut Cx<'_>,
    ) {
        let Some(occupant) = self.occupants.of(client) else { return };
        let Some(of) = occupant.clients.iter().find(|of| of.jid == *client) else { return };
        let mut stanzas = Vec::new();
        if !record.photos.is_empty() {
            stanzas.push(RoomStanza::for_all(avatar::presence(&self.address, &record.photos)));
        }
        self.push_shown(record, occupant, of.watches, &mut stanzas);
        let mut own = vec![SELF];
        own.extend(record.config.non_anonymous.then_some(NON_ANONYMOUS));
        own.extend(record.config.archive.then_some(LOGGED));
        own.extend(codes);
        let said = Said { codes: &own, ..Said::default() };
        stanzas.push(variants(record, |shows| user::presence(occupant, of, shows, &said)));
        let (max, behind) = (record.config.history as usize, record.heard_since(client.bare_str()));
        let since = entry.history.since(cx.now.unix).max(kept_since(record, cx));
        stanzas.extend(self.history.given(&entry.history, max, since, &self.address, behind));
        stanzas.push(RoomStanza::for_all(self.subject(record)));
        let about = RoomAbout::Entered(occupant.address.clone(), occupant.role);
        give(of.seat, occupant.is_moderator(), stanzas, about, cx);
    }

    /// The subject, for one who enters (XEP-0045 §7.2.15).
    fn subject(&self, record: &RoomRecord) -> Stanza {
        let mut message = Stanza::message(MessageType::Groupchat);
        match &record.subject {
            Some(subject) => {
                let from = self.address.with_resource(&subject.nick);
                // The room itself has no nick.
                message.from = Some(from.unwrap_or_else(|_| self.address.to_jid()));
                message.payload = Payload::from_raw(subject.stanza.clone());
                message.payload.push_element(&delay(&self.address, subject.set));
            }
            None => {
                message.from = Some(self.address.to_jid());
                message.payload = Payload::from_element(&Element::new("subject", ns::CLIENT));
            }
        }
        message
    }

    /// An occupant takes another nick (XEP-0045 §7.6).
    fn rename(&mut self, record: &RoomRecord, client: &Jid, address: Jid, stanza: &Stanza, cx: &mut Cx<'_>) {
        let Some(occupant) = self.occupants.of(client) else { return };
        let (before, nick) = (occupant.nick().to_owned(), address.resource().unwrap_or_default().to_owned());
        if let Some(of) = occupant.clients.first() {
            let codes = [NEW_NICK];
            let said = Said { codes: &codes, nick: Some(&nick), ..Said::default() };
            let gone = variants(record, |shows| user::unavailable(occupant, of, shows, &said));
            self.give_to(occupant.shown, &[gone], &occupant.seats(), cx);
            let own = Said { codes: &[NEW_NICK, SELF], ..said };
            let own = variants(record, |shows| user::unavailable(occupant, of, shows, &own));
            self.give_occupant(occupant, &[own], &RoomAbout::Others, cx);
        }
        self.occupants.rename(&before, address);
        self.occupants.set_presence(client, RoomPresence::of(stanza));
        self.tell_presence(record, client, &Said::default(), cx);
    }

    /// A client leaves.
    pub(super) fn leave(
        &mut self,
        record: &RoomRecord,
        client: &Jid,
        presence: Option<&Stanza>,
        codes: &[u16],
        cx: &mut Cx<'_>,
    ) {
        let nick = self.occupants.of(client).map(|occupant| occupant.nick().to_owned());
        let Some((of, gone)) = self.occupants.remove_client(client) else { return };
        let last = presence.map(|presence| RoomPresence::of(presence).stanza().payload);
        let own: Vec<u16> = codes.iter().copied().chain([SELF]).collect();
        let said = Said { codes: &own, last: last.as_ref(), ..Said::default() };
        if let Some(mut occupant) = gone {
            let sees = occupant.is_moderator();
            occupant.role = Role::None;
            if occupant.shown > Shown::Nobody {
                let said = Said { codes, ..said };
                let shown = variants(record, |shows| user::unavailable(&occupant, &of, shows, &said));
                self.give_to(occupant.shown, &[shown], &[], cx);
            }
            let shown = variants(record, |shows| user::unavailable(&occupant, &of, shows, &said));
            give(of.seat, sees, vec![shown], left(&of, &occupant), cx);
            self.note_leave(record, cx);
        } else if let Some(occupant) = nick.and_then(|nick| self.occupants.named(&nick)) {
            // Others of its account stay under that nick.
            let shown = variants(record, |shows| user::unavailable(occupant, &of, shows, &said));
            give(of.seat, false, vec![shown], left(&of, occupant), cx);
        }
    }

    /// An occupant leaves with all its clients, because somebody has it leave.
    pub(super) fn expel(&mut self, record: &RoomRecord, nick: &str, said: &Said<'_>, cx: &mut Cx<'_>) {
        let Some(mut occupant) = self.occupants.remove(nick) else { return };
        told::removed(&self.address, &occupant, said, cx);
        occupant.affiliation = record.affiliation(occupant.account());
        let sees = occupant.is_moderator();
        occupant.role = Role::None;
        if let Some(of) = occupant.clients.first().filter(|_| occupant.shown > Shown::Nobody) {
            let shown = variants(record, |shows| user::unavailable(&occupant, of, shows, said));
            self.give_to(occupant.shown, &[shown], &[], cx);
        }
        let codes: Vec<u16> = said.codes.iter().copied().chain([SELF]).collect();
        let said = Said { codes: &codes, ..*said };
        for of in &occupant.clients {
            let own = variants(record, |shows| user::unavailable(&occupant, of, shows, &said));
            give(of.seat, sees, vec![own], left(of, &occupant), cx);
        }
        self.note_leave(record, cx);
    }

    /// A session is gone.
    pub(super) fn gone(
        &mut self,
        record: &RoomRecord,
        client: &Jid,
        seat: RoomSeat,
        is_lost: bool,
        cx: &mut Cx<'_>,
    ) {
        let occupant = self.occupants.of(client);
        if occupant.is_some_and(|of| of.clients.iter().any(|of| of.jid == *client && of.seat.is_of(&seat))) {
            self.leave(record, client, None, if is_lost { &[LOST] } else { &[] }, cx);
        }
    }
}

/// A client is not in the room any more.
pub(super) fn left(client: &Client, occupant: &Occupant) -> RoomAbout {
    RoomAbout::Left { occupant: occupant.address.clone(), presences: client.seat.presences }
}

/// Tells a client that it is not in the room any more.
pub(super) fn lost(seat: RoomSeat, address: Jid, cx: &mut Cx<'_>) {
    let mut told = Stanza::presence(PresenceType::Unavailable).with_from(address.clone());
    told.payload.push_element(&user::nothing(&[SELF, LOST]));
    let about = RoomAbout::Left { occupant: address, presences: seat.presences };
    give(seat, false, vec![RoomStanza::for_all(told)], about, cx);
}
