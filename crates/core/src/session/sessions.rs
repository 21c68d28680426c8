//! The shard's sessions, XMPP and light: a slab by connection, and an index by account.

use crate::light::Light;
use crate::model::{AccountId, ConnId, Followed, Map};
use crate::session::{BoundSession, Session};
use carillon_wire::jid::BareJid;
use smallvec::SmallVec;

/// All sessions of a shard, bound or not.
#[derive(Debug, Default)]
pub struct Sessions {
    slots: Vec<Slot>,
    /// Bound sessions by account, in the order they were bound.
    accounts: Map<BareJid, SmallVec<[u32; 2]>>,
}

#[derive(Debug)]
struct Slot {
    generation: u32,
    occupant: Occupant,
}

/// What is in a slot. As small as a [`Session`]: a light session is one pointer.
#[derive(Debug, Default)]
enum Occupant {
    #[default]
    Nobody,
    Xmpp(Session),
    Light(Box<Light>),
}

impl Sessions {
    /// Stores a session in its slot.
    pub fn put(&mut self, conn: ConnId, session: Session) {
        self.seat(conn, Occupant::Xmpp(session));
    }

    /// Takes a session out of its slot; none when the connection is gone.
    pub fn take(&mut self, conn: ConnId) -> Option<Session> {
        let slot = self.slot(conn)?;
        match std::mem::take(&mut slot.occupant) {
            Occupant::Xmpp(session) => Some(session),
            other => {
                slot.occupant = other;
                None
            }
        }
    }

    /// The session in its slot.
    pub fn peek(&self, conn: ConnId) -> Option<&Session> {
        let slot = self.slots.get(conn.slot as usize)?;
        match &slot.occupant {
            Occupant::Xmpp(session) if slot.generation == conn.generation => Some(session),
            _ => None,
        }
    }

    /// A bound session.
    pub fn bound(&mut self, conn: ConnId) -> Option<&mut BoundSession> {
        match &mut self.slot(conn)?.occupant {
            Occupant::Xmpp(Session::Bound(session)) => Some(session),
            _ => None,
        }
    }

    /// The bound session that is in this slot now.
    pub fn bound_in(&mut self, slot: u32) -> Option<&mut BoundSession> {
        match &mut self.slots.get_mut(slot as usize)?.occupant {
            Occupant::Xmpp(Session::Bound(session)) => Some(session),
            _ => None,
        }
    }

    /// The bound session that is in this slot now, by shared reference.
    pub fn peek_bound(&self, slot: u32) -> Option<&BoundSession> {
        match &self.slots.get(slot as usize)?.occupant {
            Occupant::Xmpp(Session::Bound(session)) => Some(session),
            _ => None,
        }
    }

    /// Stores a light session in its slot.
    pub fn put_light(&mut self, conn: ConnId, light: Box<Light>) {
        self.seat(conn, Occupant::Light(light));
    }

    /// Takes a light session out of its slot; none when the connection is gone or speaks XMPP.
    pub fn take_light(&mut self, conn: ConnId) -> Option<Box<Light>> {
        let slot = self.slot(conn)?;
        match std::mem::take(&mut slot.occupant) {
            Occupant::Light(light) => Some(light),
            other => {
                slot.occupant = other;
                None
            }
        }
    }

    /// Whether a connection speaks the light protocol.
    pub fn is_light(&self, conn: ConnId) -> bool {
        let slot = self.slots.get(conn.slot as usize);
        slot.is_some_and(|s| s.generation == conn.generation && matches!(s.occupant, Occupant::Light(_)))
    }

    /// The light session that is in this slot now.
    pub fn light_in(&mut self, slot: u32) -> Option<&mut Light> {
        match &mut self.slots.get_mut(slot as usize)?.occupant {
            Occupant::Light(light) => Some(light),
            _ => None,
        }
    }

    /// Every connection that speaks the light protocol.
    pub fn lights(&self) -> Vec<ConnId> {
        self.conns_where(|occupant| matches!(occupant, Occupant::Light(_)))
    }

    /// Tells the session in this slot that it took over another's position in a topic's list.
    pub fn moved(&mut self, slot: u32, followed: Followed) {
        match self.slots.get_mut(slot as usize).map(|slot| &mut slot.occupant) {
            Some(Occupant::Xmpp(Session::Bound(session))) => session.moved(followed),
            Some(Occupant::Light(light)) => light.moved(followed),
            _ => {}
        }
    }

    /// The slots of an account's bound sessions, in the order they were bound.
    pub fn of(&self, account: &str) -> SmallVec<[u32; 2]> {
        self.accounts.get(account).cloned().unwrap_or_default()
    }

    /// An account's bound sessions.
    pub fn bound_of(&self, account: &str) -> SmallVec<[&BoundSession; 4]> {
        let slots = self.accounts.get(account);
        slots.into_iter().flatten().filter_map(|&slot| self.peek_bound(slot)).collect()
    }

    /// Adds the session in `slot` to `account`. Returns how many sessions the account has now.
    pub fn bind(&mut self, account: &BareJid, slot: u32) -> usize {
        let slots = self.accounts.entry(account.clone()).or_default();
        slots.push(slot);
        slots.len()
    }

    /// Removes the session in `slot` from `account`. Returns how many sessions the account has left.
    pub fn unbind(&mut self, account: &BareJid, slot: u32) -> usize {
        let mut left = 0;
        if let Some(slots) = self.accounts.get_mut(account.as_str()) {
            slots.retain(|s| *s != slot);
            left = slots.len();
            if left == 0 {
                self.accounts.remove(account.as_str());
            }
        }
        if self.accounts.len() * 4 + 64 < self.accounts.capacity() {
            self.accounts.shrink_to(self.accounts.len() * 2);
        }
        left
    }

    /// Every bound session.
    pub fn all_bound(&self) -> impl Iterator<Item = &BoundSession> {
        self.slots.iter().filter_map(|slot| match &slot.occupant {
            Occupant::Xmpp(Session::Bound(session)) => Some(&**session),
            _ => None,
        })
    }

    /// Every connection with an XMPP session.
    pub fn conns(&self) -> Vec<ConnId> {
        self.conns_where(|occupant| matches!(occupant, Occupant::Xmpp(_)))
    }

    /// The number of the account with this name, if it has a bound session.
    pub fn account_id(&self, account: &str) -> Option<AccountId> {
        self.bound_of(account).first().map(|session| session.account)
    }

    /// Frees the slots after the last occupied one, when they are many.
    pub fn tidy(&mut self) {
        let used = self.slots.iter().rposition(|slot| !matches!(slot.occupant, Occupant::Nobody));
        let used = used.map_or(0, |last| last + 1);
        if used * 4 + 64 < self.slots.capacity() {
            self.slots.truncate(used);
            self.slots.shrink_to(used * 2);
        }
    }

    fn seat(&mut self, conn: ConnId, occupant: Occupant) {
        let slot = conn.slot as usize;
        if self.slots.len() <= slot {
            self.slots.resize_with(slot + 1, || Slot { generation: 0, occupant: Occupant::Nobody });
        }
        if let Some(place) = self.slots.get_mut(slot) {
            *place = Slot { generation: conn.generation, occupant };
        }
    }

    fn slot(&mut self, conn: ConnId) -> Option<&mut Slot> {
        self.slots.get_mut(conn.slot as usize).filter(|slot| slot.generation == conn.generation)
    }

    fn conns_where(&self, wanted: impl Fn(&Occupant) -> bool) -> Vec<ConnId> {
        let occupied = self.slots.iter().enumerate().filter(|(_, slot)| wanted(&slot.occupant));
        occupied.map(|(i, slot)| ConnId { slot: i as u32, generation: slot.generation }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two million of them are 48 MB: a light session must not make the slots of all others larger.
    #[test]
    fn a_slot_is_small() {
        assert_eq!(size_of::<Slot>(), 24);
    }
}
