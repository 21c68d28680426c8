//! A room: clients enter it, speak in it, and leave it. All are told one order, which is that of its archive.

use super::{DOMAIN, Program, holds};
use crate::model::{ArchiveId, Event, EventFilter, EventType, RoomAction, RoomConfig, RoomKind, States};
use crate::ports::store::notifications::Events;
use crate::ports::store::rooms::{CreateRoom, CreateRoomAnswer, KeepRoomMessage};
use crate::ports::{Answer, Ask, Question};
use crate::sim::client::value;
use std::collections::{BTreeMap, BTreeSet};

const ROOM: &str = "tea";

/// What is known of the room.
#[derive(Default)]
pub(super) struct Room {
    /// All that was said, by its number.
    said: Vec<Said>,
    /// What is in the archive: the number of what was said.
    archived: BTreeMap<ArchiveId, usize>,
    /// The last that each client was told, in the session that it has.
    told: BTreeMap<usize, ArchiveId>,
    /// What somebody was told.
    heard: BTreeSet<usize>,
}

/// Something that was said.
struct Said {
    /// The client that said it, and how many stanzas it had sent with this one.
    from: usize,
    stanzas: u32,
    /// The sender was told that it was not.
    is_refused: bool,
}

/// What happens.
impl Program {
    /// There is a room before anything happens, without an owner.
    pub(super) fn has_room(&mut self) {
        let (domain, now) = (self.world.domain_id(DOMAIN), self.world.now().unix);
        let config = RoomConfig { persistent: true, ..RoomConfig::default() };
        let (kind, name) = (RoomKind::Muc, ROOM.into());
        let (members, rooms_max) = (Vec::new(), u32::MAX);
        let facts = Vec::new();
        let create = CreateRoom { domain, kind, name, config, members, owned_max: 0, rooms_max, now, facts };
        let CreateRoomAnswer::Created(_) = self.world.ask(create) else { panic!("it is new") };
    }

    /// A client enters the room, or does once more.
    pub(super) fn enters(&mut self, whose: usize) {
        let presence = format!(
            "<presence to='{ROOM}@rooms.{DOMAIN}/n{whose}'><x xmlns='http://jabber.org/protocol/muc'>\
             <history maxstanzas='0'/></x></presence>"
        );
        self.says(whose, |client| client.stanza(&presence));
    }

    /// A client leaves the room.
    pub(super) fn leaves_room(&mut self, whose: usize) {
        let presence = format!("<presence to='{ROOM}@rooms.{DOMAIN}/n{whose}' type='unavailable'/>");
        self.says(whose, |client| client.stanza(&presence));
    }

    /// A client says something in the room, whether it is in it or not.
    pub(super) fn speaks(&mut self, whose: usize) {
        let (number, asks) = (self.room.said.len(), self.dice.once_in(2));
        let stanza = format!(
            "<message to='{ROOM}@rooms.{DOMAIN}' type='groupchat' id='g{number}'><body>{number}</body></message>"
        );
        let mut stanzas = None;
        self.says(whose, |client| {
            let stanza = client.stanza(&stanza);
            stanzas = Some(client.sent);
            stanza
        });
        let Some(stanzas) = stanzas else { return };
        self.room.said.push(Said { from: whose, stanzas, is_refused: false });
        if asks && self.clients[whose].xmpp().is_some_and(|client| client.kind.is_managed) {
            self.says(whose, |_| "<r xmlns='urn:xmpp:sm:3'/>".to_owned());
        }
    }
}

/// What must hold.
impl Program {
    /// Notes what a write did: something is in the archive.
    pub(super) fn note_room(&mut self, ask: &Ask, answer: &Answer) {
        let Some(asked) = KeepRoomMessage::of(ask) else { return };
        let number = number(&String::from_utf8_lossy(&asked.stanza));
        if let (Some(number), Ok(Ok(id))) = (number, KeepRoomMessage::answer(answer.clone())) {
            self.room.archived.insert(id, number);
        }
    }

    /// A client is told what was said: it is in the archive under this number, and behind what it was told before.
    pub(super) fn is_told_in_room(&mut self, whose: usize, text: &str) -> Result<(), String> {
        let Some(number) = number(text) else { return Ok(()) };
        if text.contains(" type='error'") {
            self.room.said[number].is_refused = true;
            return Ok(());
        }
        let id = value(text, "<stanza-id xmlns='urn:xmpp:sid:0' by='tea@rooms.d' id='");
        let id = ArchiveId(id.and_then(|id| id.parse().ok()).ok_or(format!("g{number} has no number"))?);
        let archived = self.room.archived.get(&id);
        holds(archived == Some(&number), || {
            format!("g{number} is told as {id}, under which the archive has {archived:?}")
        })?;
        self.room.heard.insert(number);
        let before = self.room.told.insert(whose, id).unwrap_or_default();
        holds(before < id, || format!("client {whose} is told {id} behind {before}"))
    }

    /// A client is sent again what it has not received.
    pub(super) fn takes_back_what_was_said(&mut self, whose: usize) {
        self.room.told.remove(&whose);
    }

    /// In the end: what its sender was told that it was dealt with is in the archive, or refused, where messages are durable; and of each message in the archive there is
    /// one event, in its order.
    pub(super) fn check_room(&mut self) -> Result<(), String> {
        for (number, said) in self.room.said.iter().enumerate() {
            let covered = self.clients[said.from].xmpp().map_or(0, |client| client.covered);
            let is_promised = self.messages_durable && covered >= said.stanzas && !said.is_refused;
            let is_kept = self.room.archived.values().any(|kept| *kept == number);
            holds(is_kept || !is_promised, || format!("g{number} is not in the archive"))?;
        }
        let told = self.told_of_room();
        let kept: Vec<ArchiveId> = self.room.archived.keys().copied().collect();
        holds(told == kept, || format!("there are events of {told:?}, and the archive has {kept:?}"))
    }

    /// The messages of which there are events.
    fn told_of_room(&mut self) -> Vec<ArchiveId> {
        let (mut told, mut after) = (Vec::new(), 0);
        loop {
            let wanted = EventFilter { types: EventType::RoomMessage.into(), states: States::NONE };
            let answer = self.world.ask(Events { after, domain: None, wanted, max: u16::MAX });
            told.extend(answer.events.iter().filter_map(|(_, event)| match event {
                Event::Room(fact, Some(kept)) => match &fact.action {
                    RoomAction::Message(message) if message.id == kept.id => Some(kept.id),
                    _ => None,
                },
                _ => None,
            }));
            if answer.examined == after {
                return told;
            }
            after = answer.examined;
        }
    }

    /// How much is in the archive, and how much of that somebody was told.
    pub(super) fn count_room(&self) -> (u64, u64) {
        (self.room.archived.len() as u64, self.room.heard.len() as u64)
    }
}

/// The number of what is said in a room.
fn number(text: &str) -> Option<usize> {
    value(text, " id='g").filter(|_| text.starts_with("<message")).and_then(|number| number.parse().ok())
}
