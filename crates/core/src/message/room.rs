//! What a session and the home of a room tell each other.

use crate::command::{ReplyTo, RoomRequest};
use crate::model::{Place, RoomRole, SessionId, Settlement};
use carillon_wire::jid::{BareJid, Jid};
use carillon_wire::stanza::{SharedStanza, Stanza};
use std::sync::Arc;

/// Where a client of a room is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoomSeat {
    /// The shard of its session.
    pub place: Place,
    /// Its session.
    pub session: SessionId,
    /// Presences that the session had sent to the room before the one that this is about: what it is told about an earlier one is out
    /// of date.
    pub presences: u32,
}

crate::form! { struct RoomSeat { place, session, presences } }

impl RoomSeat {
    /// Whether both are of one session.
    pub fn is_of(&self, other: &RoomSeat) -> bool {
        (self.place, self.session) == (other.place, other.session)
    }
}

/// What the home of a room is told.
#[derive(Debug)]
pub enum RoomOp {
    /// A stanza of a client, for the room or for an occupant. Its `from` is the client.
    Stanza {
        /// The client.
        seat: RoomSeat,
        /// The stanza.
        stanza: Box<Stanza>,
        /// Who waits until it is settled.
        settlement: Option<Settlement>,
    },
    /// A client is gone, or not available any more.
    Gone {
        /// The client's address.
        client: Jid,
        /// The client: another session may have its address by now.
        seat: RoomSeat,
        /// Whether its connection was lost.
        is_lost: bool,
    },
    /// A session that came from another process is in the room: nobody is told.
    Back {
        /// The client.
        seat: RoomSeat,
        /// The presence that it sent to the room, under its nick.
        presence: Box<Stanza>,
        /// Its role.
        role: RoomRole,
    },
    /// Somebody outside asks for something.
    Command {
        /// What.
        request: Box<RoomRequest>,
        /// Whom the answer is for.
        reply: ReplyTo,
    },
    /// A private message is refused by a module, where the account of the occupant is at home: an error, of that occupant to the one that sent it.
    Refused {
        /// The error.
        error: Box<Stanza>,
    },
    /// A shard fell behind with giving what the room says, or caught up.
    Pace {
        /// Which shard it is.
        place: Place,
        /// Whether it is behind now.
        is_behind: bool,
    },
}

crate::form! {
    enum RoomOp {
        0 = Stanza { seat, stanza, settlement },
        1 = Gone { client, seat, is_lost },
        2 = Back { seat, presence, role },
        3 = Command { request, reply },
        4 = Pace { place, is_behind },
        5 = Refused { error },
    }
}

impl RoomOp {
    /// Bytes that it takes in memory, as far as somebody chose them.
    pub fn memory_bytes(&self) -> usize {
        match self {
            RoomOp::Stanza { stanza, .. } => stanza.memory_bytes(),
            RoomOp::Back { presence, .. } => presence.memory_bytes(),
            RoomOp::Gone { client, .. } => client.as_str().len(),
            RoomOp::Command { request, .. } => request.bytes(),
            RoomOp::Refused { error } => error.memory_bytes(),
            RoomOp::Pace { .. } => 0,
        }
    }
}

/// Whom a room gives something, all of them on one shard.
#[derive(Clone, Debug)]
pub enum RoomAudience {
    /// Clients that are in it.
    Clients(Arc<Vec<RoomRecipient>>),
    /// The sessions of accounts whose home the shard is.
    Accounts(Arc<Vec<BareJid>>),
}

crate::form! { enum RoomAudience { 0 = Clients(clients), 1 = Accounts(accounts) } }

impl RoomAudience {
    /// How many they are.
    pub fn len(&self) -> usize {
        match self {
            RoomAudience::Clients(clients) => clients.len(),
            RoomAudience::Accounts(accounts) => accounts.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn memory_bytes(&self) -> usize {
        match self {
            RoomAudience::Clients(clients) => clients.len() * size_of::<RoomRecipient>(),
            RoomAudience::Accounts(accounts) => {
                accounts.iter().map(|account| size_of::<BareJid>() + account.as_str().len()).sum()
            }
        }
    }
}

/// What those are given who hear a room, all of them on one shard: the same bytes but for the address that each has in `to`.
#[derive(Clone, Debug)]
pub struct RoomEvent {
    /// Who they are.
    pub to: RoomAudience,
    /// Those of them that are not given it.
    pub except: Vec<SessionId>,
    /// The stanzas, in their order.
    pub stanzas: Vec<RoomStanza>,
    /// What it is to the clients.
    pub about: RoomAbout,
}

crate::form! { struct RoomEvent { to, except, stanzas, about } }

impl RoomEvent {
    /// The address of the room.
    pub fn room(&self) -> Option<&Jid> {
        self.stanzas.first().and_then(|of| of.stanza.stanza().from.as_ref())
    }

    /// How many stanzas are given, to all its recipients together: each is given all of them, and then the next recipient is.
    pub fn deliveries(&self) -> usize {
        self.to.len() * self.stanzas.len()
    }

    /// Bytes that it takes in memory, as far as somebody chose them.
    pub fn memory_bytes(&self) -> usize {
        let stanzas = self.stanzas.iter().map(|stanza| {
            let full = stanza.full.as_ref().map_or(0, |stanza| stanza.memory_bytes());
            stanza.stanza.memory_bytes() + full
        });
        self.to.memory_bytes() + stanzas.sum::<usize>()
    }
}

/// A client that is given something by a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoomRecipient {
    /// Its session.
    pub session: SessionId,
    /// Whether it is shown the addresses of occupants.
    pub sees_addresses: bool,
}

crate::form! { struct RoomRecipient { session, sees_addresses } }

/// A stanza of a room.
#[derive(Clone, Debug)]
pub struct RoomStanza {
    /// For those who are not shown the addresses of occupants, or for all.
    pub stanza: Arc<SharedStanza>,
    /// For those who are, if that is another.
    pub full: Option<Arc<SharedStanza>>,
}

crate::form! { struct RoomStanza { stanza, full } }

impl RoomStanza {
    /// The same for all.
    pub fn for_all(stanza: Stanza) -> RoomStanza {
        RoomStanza { stanza: Arc::new(SharedStanza::new(stanza)), full: None }
    }
}

/// What is told to clients of a room is to them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoomAbout {
    /// Something that happened.
    Others,
    /// They are in the room, under this address, with this role.
    Entered(Jid, RoomRole),
    /// They are not in the room, or not any more, unless they have sent it another presence since.
    Left {
        /// Their address in the room.
        occupant: Jid,
        /// [`RoomSeat::presences`]
        presences: u32,
    },
}

crate::form! { enum RoomAbout { 0 = Others, 1 = Entered(occupant, role), 2 = Left { occupant, presences } } }
