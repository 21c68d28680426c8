//! Who is in a room: by nick, by client, and by shard.

use crate::message::{RoomRecipient, RoomSeat};
use crate::model::{Map, Place, RoomAffiliation, RoomRole as Role};
use carillon_wire::jid::{BareJid, Jid};
use carillon_wire::stanza::Stanza;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// Somebody in a room.
#[derive(Debug)]
pub(super) struct Occupant {
    /// Its address in the room.
    pub(super) address: Jid,
    /// Its account.
    pub(super) account: BareJid,
    /// The id of the account in this room, which says nothing elsewhere (XEP-0421).
    pub(super) id: Box<str>,
    pub(super) affiliation: RoomAffiliation,
    pub(super) role: Role,
    /// Its clients: those of one account may share a nick.
    pub(super) clients: SmallVec<[Client; 1]>,
}

/// A client of an occupant.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) jid: Jid,
    pub(super) seat: RoomSeat,
    /// The presence that it sent to the room.
    pub(super) presence: Arc<Stanza>,
}

impl Occupant {
    /// Its nick.
    pub(super) fn nick(&self) -> &str {
        self.address.resource().unwrap_or_default()
    }

    /// Where its clients are.
    pub(super) fn seats(&self) -> SmallVec<[RoomSeat; 1]> {
        self.clients.iter().map(|client| client.seat).collect()
    }

    /// Whether it moderates.
    pub(super) fn is_moderator(&self) -> bool {
        self.role == Role::Moderator
    }
}

/// The occupants of a room.
#[derive(Debug, Default)]
pub(super) struct Occupants {
    /// In the order of their nicks.
    by_nick: BTreeMap<Box<str>, Occupant>,
    /// The nicks of clients.
    nicks: Map<Jid, Box<str>>,
    /// The nicks of accounts: each of its clients may have another.
    accounts: Map<BareJid, SmallVec<[Box<str>; 1]>>,
    /// The clients of each shard, in one list that everything is sent with which is for all of them.
    lists: BTreeMap<Place, Arc<Vec<RoomRecipient>>>,
}

impl Occupants {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.by_nick.len()
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.by_nick.is_empty()
    }

    /// The occupant with this nick.
    pub(super) fn named(&self, nick: &str) -> Option<&Occupant> {
        self.by_nick.get(nick)
    }

    /// The occupant that this client is.
    pub(super) fn of(&self, client: &Jid) -> Option<&Occupant> {
        self.by_nick.get(self.nicks.get(client)?)
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Occupant> {
        self.by_nick.values()
    }

    /// Those whose nicks come after this one.
    pub(super) fn after(&self, nick: Option<&str>) -> impl Iterator<Item = &Occupant> {
        let start = nick.map_or(Bound::Unbounded, Bound::Excluded);
        self.by_nick.range::<str, _>((start, Bound::Unbounded)).map(|(_, occupant)| occupant)
    }

    /// The occupants that an account is.
    pub(super) fn of_account(&self, account: &BareJid) -> impl Iterator<Item = &Occupant> {
        let nicks = self.accounts.get(account).into_iter().flatten();
        nicks.filter_map(|nick| self.by_nick.get(nick))
    }

    /// The clients, by shard.
    pub(super) fn lists(&self) -> impl Iterator<Item = (Place, &Arc<Vec<RoomRecipient>>)> {
        self.lists.iter().map(|(place, list)| (*place, list))
    }

    /// An occupant enters.
    pub(super) fn add(&mut self, occupant: Occupant) {
        let nick: Box<str> = occupant.nick().into();
        for client in &occupant.clients {
            self.nicks.insert(client.jid.clone(), nick.clone());
            self.list(client.seat, occupant.is_moderator());
        }
        self.accounts.entry(occupant.account.clone()).or_default().push(nick.clone());
        self.by_nick.insert(nick, occupant);
    }

    /// A client of an account that is in the room already enters under the same nick.
    pub(super) fn add_client(&mut self, nick: &str, client: Client) {
        let Some(occupant) = self.by_nick.get_mut(nick) else { return };
        let (seat, is_moderator) = (client.seat, occupant.is_moderator());
        self.nicks.insert(client.jid.clone(), nick.into());
        occupant.clients.push(client);
        self.list(seat, is_moderator);
    }

    /// A client leaves. Gives it, and its occupant if it was the last of its clients.
    pub(super) fn remove_client(&mut self, client: &Jid) -> Option<(Client, Option<Occupant>)> {
        let nick = self.nicks.remove(client)?;
        let occupant = self.by_nick.get_mut(&nick)?;
        let at = occupant.clients.iter().position(|of| of.jid == *client)?;
        let client = occupant.clients.remove(at);
        self.unlist(client.seat);
        let occupant = self.by_nick.get(&nick).filter(|occupant| occupant.clients.is_empty());
        let occupant = occupant.is_some().then(|| self.take(&nick)).flatten();
        self.shrink();
        Some((client, occupant))
    }

    /// An occupant leaves with all its clients.
    pub(super) fn remove(&mut self, nick: &str) -> Option<Occupant> {
        let occupant = self.take(nick)?;
        for client in &occupant.clients {
            self.nicks.remove(&client.jid);
            self.unlist(client.seat);
        }
        self.shrink();
        Some(occupant)
    }

    /// An occupant takes another nick.
    pub(super) fn rename(&mut self, nick: &str, address: Jid) {
        if let Some(mut occupant) = self.take(nick) {
            occupant.address = address;
            let nick: Box<str> = occupant.nick().into();
            for client in &occupant.clients {
                self.nicks.insert(client.jid.clone(), nick.clone());
            }
            self.accounts.entry(occupant.account.clone()).or_default().push(nick.clone());
            self.by_nick.insert(nick, occupant);
        }
    }

    fn take(&mut self, nick: &str) -> Option<Occupant> {
        let occupant = self.by_nick.remove(nick)?;
        if let Some(nicks) = self.accounts.get_mut(&occupant.account) {
            nicks.retain(|of| **of != *nick);
            if nicks.is_empty() {
                self.accounts.remove(&occupant.account);
            }
        }
        Some(occupant)
    }

    /// Sets what an occupant may do.
    pub(super) fn set(&mut self, nick: &str, affiliation: RoomAffiliation, role: Role) {
        let Some(occupant) = self.by_nick.get_mut(nick) else { return };
        (occupant.affiliation, occupant.role) = (affiliation, role);
        let is_moderator = occupant.is_moderator();
        for seat in occupant.seats() {
            let list = Arc::make_mut(self.lists.entry(seat.place).or_default());
            for recipient in list.iter_mut().filter(|recipient| recipient.session == seat.session) {
                recipient.sees_addresses = is_moderator;
            }
        }
    }

    /// A client goes on as another session, or has sent another presence. Whether it is in the room.
    pub(super) fn move_client(&mut self, client: &Jid, seat: RoomSeat) -> bool {
        let Some(occupant) = self.nicks.get(client).and_then(|nick| self.by_nick.get_mut(nick)) else {
            return false;
        };
        let is_moderator = occupant.is_moderator();
        let Some(of) = occupant.clients.iter_mut().find(|of| of.jid == *client) else { return false };
        let before = std::mem::replace(&mut of.seat, seat);
        if !before.is_of(&seat) {
            self.unlist(before);
            self.list(seat, is_moderator);
        }
        true
    }

    /// A client sends another presence.
    pub(super) fn set_presence(&mut self, client: &Jid, presence: Arc<Stanza>) {
        let Some(occupant) = self.nicks.get(client).and_then(|nick| self.by_nick.get_mut(nick)) else {
            return;
        };
        if let Some(of) = occupant.clients.iter_mut().find(|of| of.jid == *client) {
            of.presence = presence;
        }
    }

    fn list(&mut self, seat: RoomSeat, sees_addresses: bool) {
        let list = Arc::make_mut(self.lists.entry(seat.place).or_default());
        list.push(RoomRecipient { session: seat.session, sees_addresses });
    }

    fn unlist(&mut self, seat: RoomSeat) {
        let Some(list) = self.lists.get_mut(&seat.place) else { return };
        let list_of = Arc::make_mut(list);
        if let Some(at) = list_of.iter().position(|recipient| recipient.session == seat.session) {
            list_of.swap_remove(at);
        }
        if list_of.is_empty() {
            self.lists.remove(&seat.place);
        }
    }

    fn shrink(&mut self) {
        if self.nicks.len() * 4 + 16 < self.nicks.capacity() {
            self.nicks.shrink_to(self.nicks.len() * 2);
            self.accounts.shrink_to(self.accounts.len() * 2);
        }
    }
}
