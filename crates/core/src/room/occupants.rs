//! Who is in a room: by nick, by client, and by shard; and who of them is shown to whom.

use crate::message::{RoomRecipient, RoomSeat, RoomStanza};
use crate::model::{Map, Place, PresenceBroadcast, RoomAffiliation, RoomRole as Role};
use carillon_wire::jid::{BareJid, Jid};
use carillon_wire::stanza::Stanza;
use smallvec::SmallVec;
use std::cell::OnceCell;
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
    /// Whom its presence is shown to.
    pub(super) shown: Shown,
    /// Its clients: those of one account may share a nick.
    pub(super) clients: SmallVec<[Client; 1]>,
    /// Its presence as it is shown to others, in a room of many.
    pub(super) snapshot: OnceCell<RoomStanza>,
}

/// Whom the presence of an occupant is shown to, besides its own clients. Only those who were shown that it is in the room are told when it
/// leaves. So while it is in the room this only grows; to hide it, those who saw it are told that it left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Shown {
    /// Nobody.
    Nobody,
    /// The clients that are shown everybody.
    Watchers,
    /// All clients.
    All,
}

/// A client of an occupant.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) jid: Jid,
    pub(super) seat: RoomSeat,
    /// The presence that it sent to the room.
    pub(super) presence: Arc<Stanza>,
    /// Whether it is shown all occupants, as everybody is in a room that is not large; else only those with [`Shown::All`].
    pub(super) watches: bool,
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
    /// The clients of each shard.
    lists: BTreeMap<Place, List>,
    /// The nicks of those who are shown to all.
    shown_to_all: Vec<Box<str>>,
}

/// The clients of a shard, as the lists to which everything is sent that all of them get.
#[derive(Debug, Default)]
struct List {
    all: Arc<Vec<RoomRecipient>>,
    /// Those that are shown everybody; none if all are.
    watchers: Option<Arc<Vec<RoomRecipient>>>,
}

impl List {
    fn of(&self, shown: Shown) -> Option<&Arc<Vec<RoomRecipient>>> {
        match shown {
            Shown::Nobody => None,
            Shown::Watchers => Some(self.watchers.as_ref().unwrap_or(&self.all)),
            Shown::All => Some(&self.all),
        }
    }
}

/// Occupants that are shown to all of a large room.
const SHOWN_TO_ALL_MAX: usize = 100;

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

    /// Those who are shown to all.
    pub(super) fn shown_to_all(&self) -> impl Iterator<Item = &Occupant> {
        self.shown_to_all.iter().filter_map(|nick| self.by_nick.get(nick))
    }

    /// The clients that are shown an occupant with this [`Shown`], by shard.
    pub(super) fn lists(&self, shown: Shown) -> impl Iterator<Item = (Place, &Arc<Vec<RoomRecipient>>)> {
        let lists = self.lists.iter().filter_map(move |(place, list)| Some((*place, list.of(shown)?)));
        lists.filter(|(_, list)| !list.is_empty())
    }

    /// All of them, as they leave.
    pub(super) fn into_all(self) -> impl Iterator<Item = Occupant> {
        self.by_nick.into_values()
    }

    /// An occupant is shown to these from now on, too; to all only as long as few are.
    pub(super) fn show(&mut self, nick: &str, to: Shown) {
        let is_full = self.shown_to_all.len() >= SHOWN_TO_ALL_MAX;
        let Some(occupant) = self.by_nick.get_mut(nick).filter(|of| of.shown < to) else { return };
        if to < Shown::All {
            occupant.shown = to;
        } else if !is_full {
            occupant.shown = to;
            self.shown_to_all.push(nick.into());
        }
    }

    /// An occupant is shown to nobody from now on.
    pub(super) fn hide(&mut self, nick: &str) {
        self.shown_to_all.retain(|of| **of != *nick);
        self.by_nick.get_mut(nick).into_iter().for_each(|occupant| occupant.shown = Shown::Nobody);
    }

    /// A client is shown everybody from now on.
    pub(super) fn watch(&mut self, client: &Jid) {
        let nick = self.nicks.get(client);
        let Some(occupant) = nick.and_then(|nick| self.by_nick.get_mut(nick)) else { return };
        let is_moderator = occupant.is_moderator();
        let of = occupant.clients.iter_mut().find(|of| of.jid == *client && !of.watches);
        if let Some(of) = of {
            of.watches = true;
            let seat = of.seat;
            self.unlist(seat);
            self.list(seat, is_moderator, true);
        }
    }

    /// From now on everybody is shown to everybody, as far as the room is configured to show them. Gives the nicks of those who were shown to nobody, and
    /// of those who were to watchers; and the clients that were no watchers.
    pub(super) fn show_everybody(&mut self, broadcast: PresenceBroadcast) -> Revealed {
        let mut revealed = Revealed::default();
        for (nick, occupant) in &mut self.by_nick {
            match occupant.shown {
                Shown::Nobody if broadcast.shows(occupant.role) => {
                    occupant.shown = Shown::Watchers;
                    revealed.unseen.push(nick.clone());
                }
                Shown::Watchers => revealed.seen.push(nick.clone()),
                Shown::Nobody | Shown::All => {}
            }
            let sees_addresses = occupant.is_moderator();
            for client in occupant.clients.iter_mut().filter(|client| !client.watches) {
                client.watches = true;
                let list = revealed.to.entry(client.seat.place).or_default();
                list.push(RoomRecipient { session: client.seat.session, sees_addresses });
            }
        }
        self.lists.values_mut().for_each(|list| list.watchers = None);
        revealed
    }

    /// Drops the presences that were made by the former configuration.
    pub(super) fn forget_snapshots(&mut self) {
        self.by_nick.values_mut().for_each(|occupant| drop(occupant.snapshot.take()));
    }

    /// An occupant enters, who is shown to nobody.
    pub(super) fn add(&mut self, occupant: Occupant) {
        let nick: Box<str> = occupant.nick().into();
        let is_moderator = occupant.is_moderator();
        for client in &occupant.clients {
            self.nicks.insert(client.jid.clone(), nick.clone());
            self.list(client.seat, is_moderator, client.watches);
        }
        self.accounts.entry(occupant.account.clone()).or_default().push(nick.clone());
        self.by_nick.insert(nick, occupant);
    }

    /// A client of an account that is in the room already enters under the same nick.
    pub(super) fn add_client(&mut self, nick: &str, client: Client) {
        let Some(occupant) = self.by_nick.get_mut(nick) else { return };
        let (seat, is_moderator, watches) = (client.seat, occupant.is_moderator(), client.watches);
        self.nicks.insert(client.jid.clone(), nick.into());
        occupant.clients.push(client);
        self.list(seat, is_moderator, watches);
    }

    /// A client leaves. Gives it, and its occupant if it was the last of its clients.
    pub(super) fn remove_client(&mut self, client: &Jid) -> Option<(Client, Option<Occupant>)> {
        let nick = self.nicks.remove(client)?;
        let occupant = self.by_nick.get_mut(&nick)?;
        let at = occupant.clients.iter().position(|of| of.jid == *client)?;
        let client = occupant.clients.remove(at);
        occupant.snapshot.take();
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
            occupant.snapshot.take();
            let nick: Box<str> = occupant.nick().into();
            for client in &occupant.clients {
                self.nicks.insert(client.jid.clone(), nick.clone());
            }
            self.accounts.entry(occupant.account.clone()).or_default().push(nick.clone());
            if occupant.shown == Shown::All {
                self.shown_to_all.push(nick.clone());
            }
            self.by_nick.insert(nick, occupant);
        }
    }

    fn take(&mut self, nick: &str) -> Option<Occupant> {
        let occupant = self.by_nick.remove(nick)?;
        if occupant.shown == Shown::All {
            self.shown_to_all.retain(|of| **of != *nick);
        }
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
        occupant.snapshot.take();
        let is_moderator = occupant.is_moderator();
        for seat in occupant.seats() {
            let Some(list) = self.lists.get_mut(&seat.place) else { continue };
            for list in [Some(&mut list.all), list.watchers.as_mut()].into_iter().flatten() {
                let of = list.iter().position(|recipient| recipient.session == seat.session);
                let of = of.and_then(|at| Arc::make_mut(list).get_mut(at));
                of.into_iter().for_each(|recipient| recipient.sees_addresses = is_moderator);
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
        let (before, watches) = (std::mem::replace(&mut of.seat, seat), of.watches);
        if !before.is_of(&seat) {
            self.unlist(before);
            self.list(seat, is_moderator, watches);
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
            occupant.snapshot.take();
        }
    }

    fn list(&mut self, seat: RoomSeat, sees_addresses: bool, watches: bool) {
        let list = self.lists.entry(seat.place).or_default();
        let recipient = RoomRecipient { session: seat.session, sees_addresses };
        if !watches && list.watchers.is_none() {
            list.watchers = Some(list.all.clone());
        }
        if let Some(watchers) = list.watchers.as_mut().filter(|_| watches) {
            Arc::make_mut(watchers).push(recipient);
        }
        Arc::make_mut(&mut list.all).push(recipient);
    }

    fn unlist(&mut self, seat: RoomSeat) {
        let Some(list) = self.lists.get_mut(&seat.place) else { return };
        for list in [Some(&mut list.all), list.watchers.as_mut()].into_iter().flatten() {
            if let Some(at) = list.iter().position(|recipient| recipient.session == seat.session) {
                Arc::make_mut(list).swap_remove(at);
            }
        }
        // Watchers are some of all.
        if list.watchers.as_ref().is_some_and(|watchers| watchers.len() == list.all.len()) {
            list.watchers = None;
        }
        if list.all.is_empty() {
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

/// The occupants that were hidden from some until now, and the clients that did not see them.
#[derive(Debug, Default)]
pub(super) struct Revealed {
    /// Those who were shown to nobody.
    pub(super) unseen: Vec<Box<str>>,
    /// Those who were shown to watchers.
    pub(super) seen: Vec<Box<str>>,
    /// The clients that were shown only those who are shown to all, by shard.
    pub(super) to: BTreeMap<Place, Vec<RoomRecipient>>,
}
