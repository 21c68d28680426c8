//! Rooms as a kind of home.

use super::asker::{Asker, refuse};
use super::history::History;
use super::occupants::{Occupant, Occupants, Shown};
use super::step::Step;
use super::told::count_refusal;
use super::xml::request::{self, Weight};
use crate::home::{Concurrency, HomeKey, HomeKind, Place, Stage};
use crate::message::{
    RoomAbout, RoomAudience, RoomEvent, RoomOp, RoomRecipient, RoomSeat, RoomStanza, ShardMessage,
};
use crate::model::{ArchiveId, Place as ShardPlace, RoomKey, RoomRecord};
use crate::ports::Ask;
use crate::ports::store::rooms;
use crate::session::Cx;
use carillon_wire::jid::BareJid;
use carillon_wire::stanza::{self, PresenceType, Stanza, StanzaError};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The kind of home that rooms have.
#[derive(Debug)]
pub(super) struct Room;

/// A room at its home.
pub(super) type Home = Place<Room>;

/// What is known of a room beside its record. It is small: a node has many rooms, most of them with few occupants.
#[derive(Debug)]
pub(super) struct RoomState {
    /// Its address.
    pub(super) address: BareJid,
    pub(super) occupants: Occupants,
    pub(super) history: History,
    /// The newest message of its archive.
    pub(super) newest: ArchiveId,
    /// The accounts that hear a room of MUC Light, by the shards that are their homes.
    pub(super) audience: Box<[(ShardPlace, Arc<Vec<BareJid>>)]>,
    /// The members with reserved nicks, by these: where they are in the record's list.
    pub(super) reserved: Box<[u32]>,
    /// How many occupants the figures of the shard have of it.
    pub(super) counted: usize,
    /// Shards that are behind with giving what it says.
    pub(super) behind: Box<[ShardPlace]>,
    /// Whether it is large: not everybody is shown to everybody.
    pub(super) is_large: bool,
}

impl HomeKind for Room {
    type Key = RoomKey;
    type Record = Arc<RoomRecord>;
    type State = Box<RoomState>;
    type Task = RoomOp;
    type Step = Step;

    const WAITING_BYTES_MAX: usize = 4 << 20;
    const ALL_WAITING_BYTES_MAX: usize = 64 << 20;

    fn task_bytes(op: &RoomOp) -> usize {
        op.memory_bytes()
    }

    fn record_bytes(record: &Arc<RoomRecord>) -> usize {
        record.bytes()
    }

    /// A room with occupants stays.
    fn may_drop(state: &Self::State) -> bool {
        state.occupants.is_empty()
    }

    /// RFC 6120 §10.1: what a client says to all and what it then does reach each occupant in that order, and the first may still be on its way into the archive.
    fn follows(op: &RoomOp, step: &Step) -> bool {
        let Step::Keep { asker: Asker::Client { stanza: said, .. }, .. } = step else { return false };
        let client = match op {
            RoomOp::Stanza { stanza, .. } => stanza.from.as_ref(),
            RoomOp::Gone { client, .. } => Some(client),
            RoomOp::Back { .. } | RoomOp::Command { .. } | RoomOp::Refused { .. } | RoomOp::Pace { .. } => {
                None
            }
        };
        client.is_some() && client == said.from.as_ref()
    }

    fn concurrency(op: &RoomOp, record: &Arc<RoomRecord>, state: &Self::State) -> Concurrency {
        if let RoomOp::Stanza { stanza, .. } = op
            && state.needs_history(record, stanza)
        {
            // What is said meanwhile would be given twice or not at all.
            return Concurrency::Alone;
        }
        let weight = match op {
            RoomOp::Gone { .. } | RoomOp::Back { .. } | RoomOp::Refused { .. } | RoomOp::Pace { .. } => {
                Weight::Nothing
            }
            RoomOp::Command { request, .. } => request::weight_of(request),
            RoomOp::Stanza { stanza, .. } => request::weight(stanza),
        };
        match weight {
            Weight::Nothing => Concurrency::Silent,
            Weight::Message if record.config.archive => Concurrency::Write,
            Weight::Message => Concurrency::Silent,
            Weight::Read => Concurrency::Read,
            Weight::Change => Concurrency::Alone,
        }
    }
}

impl Home {
    /// Asks the store for the room's record.
    pub(super) fn read_record(&mut self, key: &RoomKey, cx: &mut Cx<'_>) {
        self.begin_load();
        let question = rooms::Room { domain: key.domain, kind: key.kind, name: (*key.name).into() };
        self.ask(key, question, Step::Load, cx);
    }

    /// Asks the store.
    pub(super) fn ask(&mut self, key: &RoomKey, question: impl Into<Ask>, step: Step, cx: &mut Cx<'_>) {
        let ticket = cx.ask_for_home(HomeKey::Room(key.clone()), question);
        self.asked(ticket, step);
    }

    /// The room, if it is known to exist.
    pub(super) fn known(&self) -> Option<Arc<RoomRecord>> {
        match self.stage() {
            Stage::Open { record, .. } => Some(record.clone()),
            _ => None,
        }
    }
}

impl RoomState {
    /// A room of which nothing is known but its address.
    pub(super) fn new(address: BareJid) -> RoomState {
        RoomState {
            address,
            occupants: Occupants::default(),
            history: History::default(),
            newest: ArchiveId(0),
            audience: Box::default(),
            reserved: Box::default(),
            counted: 0,
            behind: Box::default(),
            is_large: false,
        }
    }

    /// The name of its domain.
    pub(super) fn domain(&self) -> &str {
        self.address.domain().split_once('.').map_or("", |(_, domain)| domain)
    }

    /// A shard said how it keeps up.
    pub(super) fn note_pace(&mut self, place: ShardPlace, is_behind: bool) {
        let others = self.behind.iter().copied().filter(|other| *other != place);
        self.behind = others.chain(is_behind.then_some(place)).collect();
    }

    /// Whether a shard is behind, of a node that lives.
    pub(super) fn is_behind(&self, cx: &Cx<'_>) -> bool {
        self.behind.iter().any(|place| {
            place.node == cx.shard.place.node || cx.shard.directory.other_nodes().contains(&place.node)
        })
    }

    /// Gives all who hear the room something.
    pub(super) fn give_all(&self, stanzas: &[RoomStanza], except: &[RoomSeat], cx: &mut Cx<'_>) {
        for (place, accounts) in &self.audience {
            give_accounts(*place, accounts.clone(), stanzas.to_vec(), cx);
        }
        self.give_to(Shown::All, stanzas, except, cx);
    }

    /// Gives the clients something to which an occupant is shown who is shown to these.
    pub(super) fn give_to(&self, shown: Shown, stanzas: &[RoomStanza], except: &[RoomSeat], cx: &mut Cx<'_>) {
        for (place, list) in self.occupants.lists(shown) {
            give_clients(place, list.clone(), stanzas, except, cx);
        }
    }

    /// Gives the clients of an occupant something.
    pub(super) fn give_occupant(
        &self,
        occupant: &Occupant,
        stanzas: &[RoomStanza],
        about: &RoomAbout,
        cx: &mut Cx<'_>,
    ) {
        for client in &occupant.clients {
            give(client.seat, occupant.is_moderator(), stanzas.to_vec(), about.clone(), cx);
        }
    }
}

/// Gives the clients of a list something, all of them on one shard.
pub(super) fn give_clients(
    place: ShardPlace,
    list: Arc<Vec<RoomRecipient>>,
    stanzas: &[RoomStanza],
    except: &[RoomSeat],
    cx: &mut Cx<'_>,
) {
    // A session has its name on its shard alone.
    let except = except.iter().filter(|seat| seat.place == place).map(|seat| seat.session).collect();
    let (to, stanzas) = (RoomAudience::Clients(list), stanzas.to_vec());
    let event = RoomEvent { to, except, stanzas, about: RoomAbout::Others };
    cx.post(place, ShardMessage::RoomEvent(Box::new(event)));
}

/// Gives a client something.
pub(super) fn give(
    seat: RoomSeat,
    sees_addresses: bool,
    stanzas: Vec<RoomStanza>,
    about: RoomAbout,
    cx: &mut Cx<'_>,
) {
    let to = RoomAudience::Clients(Arc::new(vec![RoomRecipient { session: seat.session, sees_addresses }]));
    let event = RoomEvent { to, except: Vec::new(), stanzas, about };
    cx.post(seat.place, ShardMessage::RoomEvent(Box::new(event)));
}

/// Refuses a stanza of a client. If it was to enter the room by it, its session is told that it has not.
pub(super) fn turn_away(
    occupants: Option<&mut Occupants>,
    seat: RoomSeat,
    stanza: &Stanza,
    error: &StanzaError,
    cx: &mut Cx<'_>,
) {
    let occupant = stanza.to.as_ref().filter(|to| {
        stanza.kind == stanza::Kind::Presence(PresenceType::Available) && to.resource().is_some()
    });
    let (Some(occupant), Some(client)) = (occupant, &stanza.from) else { return refuse(stanza, error, cx) };
    if occupants.is_some_and(|occupants| occupants.move_client(client, seat)) {
        return refuse(stanza, error, cx);
    }
    if let Some(reply) = stanza.error_reply(error) {
        count_refusal(error, cx);
        let about = RoomAbout::Left { occupant: occupant.clone(), presences: seat.presences };
        give(seat, false, vec![RoomStanza::for_all(reply)], about, cx);
    }
}

/// Accounts by the shards that know where their homes are.
pub(super) fn audience<'a>(
    accounts: impl Iterator<Item = &'a BareJid>,
    cx: &Cx<'_>,
) -> Vec<(ShardPlace, Arc<Vec<BareJid>>)> {
    let mut places: BTreeMap<ShardPlace, BTreeSet<&BareJid>> = BTreeMap::new();
    for account in accounts {
        places.entry(cx.shard.directory.account(account.as_str())).or_default().insert(account);
    }
    let listed = |accounts: BTreeSet<&BareJid>| Arc::new(accounts.into_iter().cloned().collect());
    places.into_iter().map(|(place, accounts)| (place, listed(accounts))).collect()
}

/// Gives the sessions of accounts of one shard something.
pub(super) fn give_accounts(
    place: ShardPlace,
    accounts: Arc<Vec<BareJid>>,
    stanzas: Vec<RoomStanza>,
    cx: &mut Cx<'_>,
) {
    let to = RoomAudience::Accounts(accounts);
    let event = RoomEvent { to, except: Vec::new(), stanzas, about: RoomAbout::Others };
    cx.post(place, ShardMessage::RoomEvent(Box::new(event)));
}
