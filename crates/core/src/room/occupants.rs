//! Who is in a room: by nick, by client, and by shard; and who of them is shown to whom.

use crate::message::{RoomRecipient, RoomSeat, RoomStanza};
use crate::model::{Map, Place, PresenceBroadcast, RoomAffiliation, RoomPresence, RoomRole as Role};
use carillon_wire::jid::{BareJid, Jid};
use smallvec::SmallVec;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Somebody in a room.
#[derive(Debug)]
pub(super) struct Occupant {
    /// Its address in the room.
    pub(super) address: Jid,
    /// The id of its account in this room, which says nothing elsewhere (XEP-0421).
    pub(super) id: OccupantId,
    pub(super) affiliation: RoomAffiliation,
    pub(super) role: Role,
    /// Whom its presence is shown to.
    pub(super) shown: Shown,
    /// Its clients, at least one: those of one account may share a nick.
    pub(super) clients: SmallVec<[Client; 1]>,
    /// Its presence as it is shown to others, in a room of many.
    pub(super) snapshot: OnceCell<Box<RoomStanza>>,
}

/// The id of an account in a room, of which clients are told the hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OccupantId(pub(super) [u8; 20]);

impl OccupantId {
    /// As clients are told it.
    pub(super) fn digits(self) -> String {
        let digit = |value: u8| char::from(if value < 10 { b'0' + value } else { b'a' + value - 10 });
        self.0.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
    }
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
    pub(super) presence: RoomPresence,
    /// Whether it is shown all occupants, as everybody is in a room that is not large; else only those with [`Shown::All`].
    pub(super) watches: bool,
}

impl Occupant {
    /// Its nick.
    pub(super) fn nick(&self) -> &str {
        self.address.resource().unwrap_or_default()
    }

    /// Its account, as text.
    pub(super) fn account(&self) -> &str {
        self.clients.first().map_or("", |client| client.jid.bare_str())
    }

    /// Its account. It has one as long as it has a client.
    pub(super) fn account_jid(&self) -> Option<BareJid> {
        self.clients.first().map(|client| client.jid.bare())
    }

    /// Where its clients are.
    pub(super) fn seats(&self) -> SmallVec<[RoomSeat; 1]> {
        self.clients.iter().map(|client| client.seat).collect()
    }

    /// Its clients, as those of each shard are given something.
    pub(super) fn clients_by_place(&self) -> BTreeMap<Place, Vec<RoomRecipient>> {
        let mut by_place = BTreeMap::<_, Vec<_>>::new();
        for client in &self.clients {
            let recipient =
                RoomRecipient { session: client.seat.session, sees_addresses: self.is_moderator() };
            by_place.entry(client.seat.place).or_default().push(recipient);
        }
        by_place
    }

    /// Whether it moderates.
    pub(super) fn is_moderator(&self) -> bool {
        self.role == Role::Moderator
    }
}

/// The occupants of a room. Nearly all rooms have few, who are looked through; those of a large one have an index.
#[derive(Debug, Default)]
pub(super) struct Occupants {
    /// In the order of their nicks.
    #[expect(
        clippy::vec_box,
        reason = "where there are many, 8 bytes of each are moved when one enters instead of all"
    )]
    all: Vec<Box<Occupant>>,
    index: Option<Box<Index>>,
    /// The clients of each shard, by its place.
    lists: Vec<(Place, List)>,
}

/// Where those of many occupants are found that are not asked for by nick.
#[derive(Debug, Default)]
struct Index {
    /// The nicks of clients.
    nicks: Map<Jid, Box<str>>,
    /// The nicks of accounts: each of its clients may have another.
    accounts: Map<Box<str>, SmallVec<[Box<str>; 1]>>,
    /// The nicks of those who are shown to all.
    shown_to_all: Vec<Box<str>>,
}

/// Occupants with more than which a room has an index, and with fewer than which it has none any more.
const INDEXED_OVER: usize = 16;
const INDEXED_FROM: usize = 8;

impl Index {
    fn of(occupants: &[Box<Occupant>]) -> Index {
        let mut index = Index::default();
        occupants.iter().for_each(|occupant| index.add(occupant));
        index
    }

    fn add(&mut self, occupant: &Occupant) {
        let nick = Box::<str>::from(occupant.nick());
        for client in &occupant.clients {
            self.nicks.insert(client.jid.clone(), nick.clone());
        }
        if occupant.shown == Shown::All {
            self.shown_to_all.push(nick.clone());
        }
        self.accounts.entry(occupant.account().into()).or_default().push(nick);
    }

    fn remove(&mut self, occupant: &Occupant) {
        let nick = occupant.nick();
        for client in &occupant.clients {
            self.nicks.remove(&client.jid);
        }
        if occupant.shown == Shown::All {
            self.shown_to_all.retain(|of| **of != *nick);
        }
        if let Some(nicks) = self.accounts.get_mut(occupant.account()) {
            nicks.retain(|of| **of != *nick);
            if nicks.is_empty() {
                self.accounts.remove(occupant.account());
            }
        }
        if self.nicks.len() * 4 + 16 < self.nicks.capacity() {
            self.nicks.shrink_to(self.nicks.len() * 2);
            self.accounts.shrink_to(self.accounts.len() * 2);
        }
    }
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
        self.all.len()
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The occupant with this nick.
    pub(super) fn named(&self, nick: &str) -> Option<&Occupant> {
        self.all.get(self.place(nick).ok()?).map(|occupant| &**occupant)
    }

    /// The occupant that this client is.
    pub(super) fn of(&self, client: &Jid) -> Option<&Occupant> {
        self.all.get(self.place_of(client)?).map(|occupant| &**occupant)
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Occupant> {
        self.all.iter().map(|occupant| &**occupant)
    }

    /// Those whose nicks come after this one.
    pub(super) fn after(&self, nick: Option<&str>) -> impl Iterator<Item = &Occupant> {
        let first = nick.map_or(0, |nick| self.all.partition_point(|of| of.nick() <= nick));
        self.iter().skip(first)
    }

    /// The occupants that an account is.
    pub(super) fn of_account<'a>(&'a self, account: &'a str) -> impl Iterator<Item = &'a Occupant> {
        let indexed = self.index.iter().flat_map(move |index| index.accounts.get(account)).flatten();
        let few = if self.index.is_none() { &*self.all } else { &[] };
        let few = few.iter().map(|occupant| &**occupant).filter(move |of| of.account() == account);
        few.chain(indexed.filter_map(|nick| self.named(nick)))
    }

    /// Those who are shown to all.
    pub(super) fn shown_to_all(&self) -> impl Iterator<Item = &Occupant> {
        let indexed = self.index.iter().flat_map(|index| &index.shown_to_all);
        let few = if self.index.is_none() { &*self.all } else { &[] };
        let few = few.iter().map(|occupant| &**occupant).filter(|of| of.shown == Shown::All);
        few.chain(indexed.filter_map(|nick| self.named(nick)))
    }

    /// The clients that are shown an occupant with this [`Shown`], by shard.
    pub(super) fn lists(&self, shown: Shown) -> impl Iterator<Item = (Place, &Arc<Vec<RoomRecipient>>)> {
        let lists = self.lists.iter().filter_map(move |(place, list)| Some((*place, list.of(shown)?)));
        lists.filter(|(_, list)| !list.is_empty())
    }

    /// All of them, as they leave.
    pub(super) fn into_all(self) -> impl Iterator<Item = Occupant> {
        self.all.into_iter().map(|occupant| *occupant)
    }

    /// An occupant is shown to these from now on, too; to all only as long as few are.
    pub(super) fn show(&mut self, nick: &str, to: Shown) {
        if to == Shown::All && self.shown_to_all().count() >= SHOWN_TO_ALL_MAX {
            return;
        }
        let Some(occupant) = self.named_mut(nick).filter(|of| of.shown < to) else { return };
        occupant.shown = to;
        if let Some(index) = self.index.as_mut().filter(|_| to == Shown::All) {
            index.shown_to_all.push(nick.into());
        }
    }

    /// An occupant is shown to nobody from now on.
    pub(super) fn hide(&mut self, nick: &str) {
        if let Some(index) = &mut self.index {
            index.shown_to_all.retain(|of| **of != *nick);
        }
        self.named_mut(nick).into_iter().for_each(|occupant| occupant.shown = Shown::Nobody);
    }

    /// A client is shown everybody from now on.
    pub(super) fn watch(&mut self, client: &Jid) {
        let Some(occupant) = self.of_mut(client) else { return };
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
        for occupant in &mut self.all {
            match occupant.shown {
                Shown::Nobody if broadcast.shows(occupant.role) => {
                    occupant.shown = Shown::Watchers;
                    revealed.unseen.push(occupant.nick().into());
                }
                Shown::Watchers => revealed.seen.push(occupant.nick().into()),
                Shown::Nobody | Shown::All => {}
            }
            let sees_addresses = occupant.is_moderator();
            for client in occupant.clients.iter_mut().filter(|client| !client.watches) {
                client.watches = true;
                let list = revealed.to.entry(client.seat.place).or_default();
                list.push(RoomRecipient { session: client.seat.session, sees_addresses });
            }
        }
        self.lists.iter_mut().for_each(|(_, list)| list.watchers = None);
        revealed
    }

    /// Drops the presences that were made by the former configuration.
    pub(super) fn forget_snapshots(&mut self) {
        self.all.iter_mut().for_each(|occupant| drop(occupant.snapshot.take()));
    }

    /// An occupant enters, who is shown to nobody.
    pub(super) fn add(&mut self, occupant: Occupant) {
        let is_moderator = occupant.is_moderator();
        for client in &occupant.clients {
            self.list(client.seat, is_moderator, client.watches);
        }
        self.insert(Box::new(occupant));
    }

    /// A client of an account that is in the room already enters under the same nick.
    pub(super) fn add_client(&mut self, nick: &str, client: Client) {
        let Some(occupant) = self.named_mut(nick) else { return };
        let (seat, is_moderator, watches) = (client.seat, occupant.is_moderator(), client.watches);
        let jid = client.jid.clone();
        occupant.clients.push(client);
        if let Some(index) = &mut self.index {
            index.nicks.insert(jid, nick.into());
        }
        self.list(seat, is_moderator, watches);
    }

    /// A client leaves. Gives it, and its occupant if it was the last of its clients.
    pub(super) fn remove_client(&mut self, client: &Jid) -> Option<(Client, Option<Occupant>)> {
        let place = self.place_of(client)?;
        let occupant = self.all.get_mut(place)?;
        occupant.snapshot.take();
        let at = occupant.clients.iter().position(|of| of.jid == *client)?;
        let is_last = occupant.clients.len() == 1;
        // With its last client it is taken out while it still has that: by it its account is known.
        let mut gone = is_last.then(|| self.take(place));
        let occupant = if let Some(gone) = &mut gone { gone } else { self.all.get_mut(place)? };
        let client = occupant.clients.remove(at);
        if let Some(index) = self.index.as_mut().filter(|_| !is_last) {
            index.nicks.remove(&client.jid);
        }
        self.unlist(client.seat);
        Some((client, gone.map(|gone| *gone)))
    }

    /// An occupant leaves with all its clients.
    pub(super) fn remove(&mut self, nick: &str) -> Option<Occupant> {
        let occupant = self.take(self.place(nick).ok()?);
        for client in &occupant.clients {
            self.unlist(client.seat);
        }
        Some(*occupant)
    }

    /// An occupant takes another nick.
    pub(super) fn rename(&mut self, nick: &str, address: Jid) {
        if let Ok(place) = self.place(nick) {
            let mut occupant = self.take(place);
            occupant.address = address;
            occupant.snapshot.take();
            self.insert(occupant);
        }
    }

    /// Sets what an occupant may do.
    pub(super) fn set(&mut self, nick: &str, affiliation: RoomAffiliation, role: Role) {
        let Some(occupant) = self.named_mut(nick) else { return };
        (occupant.affiliation, occupant.role) = (affiliation, role);
        occupant.snapshot.take();
        let is_moderator = occupant.is_moderator();
        for seat in occupant.seats() {
            let Some(list) = self.list_at(seat.place) else { continue };
            for list in [Some(&mut list.all), list.watchers.as_mut()].into_iter().flatten() {
                let of = list.iter().position(|recipient| recipient.session == seat.session);
                let of = of.and_then(|at| Arc::make_mut(list).get_mut(at));
                of.into_iter().for_each(|recipient| recipient.sees_addresses = is_moderator);
            }
        }
    }

    /// A client goes on as another session, or has sent another presence. Whether it is in the room.
    pub(super) fn move_client(&mut self, client: &Jid, seat: RoomSeat) -> bool {
        let Some(occupant) = self.of_mut(client) else { return false };
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
    pub(super) fn set_presence(&mut self, client: &Jid, presence: RoomPresence) {
        let Some(occupant) = self.of_mut(client) else { return };
        if let Some(of) = occupant.clients.iter_mut().find(|of| of.jid == *client) {
            of.presence = presence;
            occupant.snapshot.take();
        }
    }

    /// Where the occupant with this nick is, or would be.
    fn place(&self, nick: &str) -> Result<usize, usize> {
        self.all.binary_search_by(|of| of.nick().cmp(nick))
    }

    fn place_of(&self, client: &Jid) -> Option<usize> {
        match &self.index {
            Some(index) => self.place(index.nicks.get(client)?).ok(),
            None => self.all.iter().position(|of| of.clients.iter().any(|of| of.jid == *client)),
        }
    }

    fn named_mut(&mut self, nick: &str) -> Option<&mut Occupant> {
        let place = self.place(nick).ok()?;
        self.all.get_mut(place).map(|occupant| &mut **occupant)
    }

    fn of_mut(&mut self, client: &Jid) -> Option<&mut Occupant> {
        let place = self.place_of(client)?;
        self.all.get_mut(place).map(|occupant| &mut **occupant)
    }

    fn insert(&mut self, occupant: Box<Occupant>) {
        let (Ok(place) | Err(place)) = self.place(occupant.nick());
        if let Some(index) = &mut self.index {
            index.add(&occupant);
        } else if self.all.len() < INDEXED_OVER {
            self.all.reserve_exact(1);
        }
        self.all.insert(place, occupant);
        if self.index.is_none() && self.all.len() > INDEXED_OVER {
            self.index = Some(Box::new(Index::of(&self.all)));
        }
    }

    fn take(&mut self, place: usize) -> Box<Occupant> {
        let occupant = self.all.remove(place);
        if let Some(index) = &mut self.index {
            index.remove(&occupant);
        }
        if self.all.len() < INDEXED_FROM {
            self.index = None;
        }
        if self.all.len() * 4 + INDEXED_OVER < self.all.capacity() {
            self.all.shrink_to(self.all.len() * 2);
        }
        occupant
    }

    fn list_at(&mut self, place: Place) -> Option<&mut List> {
        let at = self.lists.binary_search_by_key(&place, |(place, _)| *place).ok()?;
        self.lists.get_mut(at).map(|(_, list)| list)
    }

    fn list(&mut self, seat: RoomSeat, sees_addresses: bool, watches: bool) {
        if let Err(at) = self.lists.binary_search_by_key(&seat.place, |(place, _)| *place) {
            self.lists.reserve_exact(1);
            self.lists.insert(at, (seat.place, List::default()));
        }
        let Some(list) = self.list_at(seat.place) else { return };
        let recipient = RoomRecipient { session: seat.session, sees_addresses };
        if !watches && list.watchers.is_none() {
            list.watchers = Some(list.all.clone());
        }
        if let Some(watchers) = list.watchers.as_mut().filter(|_| watches) {
            push(watchers, recipient);
        }
        push(&mut list.all, recipient);
    }

    fn unlist(&mut self, seat: RoomSeat) {
        let Ok(at) = self.lists.binary_search_by_key(&seat.place, |(place, _)| *place) else { return };
        let Some((_, list)) = self.lists.get_mut(at) else { return };
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
            self.lists.remove(at);
        }
    }
}

/// Adds to a list, without memory for more where there are few.
fn push(list: &mut Arc<Vec<RoomRecipient>>, recipient: RoomRecipient) {
    let list = Arc::make_mut(list);
    if list.len() < INDEXED_OVER {
        list.reserve_exact(1);
    }
    list.push(recipient);
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
