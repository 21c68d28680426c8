//! The shard's sessions: a slab by connection, and an index by account.

use crate::model::{AccountId, ConnId, Map};
use crate::session::{Live, Session};
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
    session: Option<Session>,
}

impl Sessions {
    /// Puts a session into its slot, new or back.
    pub fn put(&mut self, conn: ConnId, session: Session) {
        let slot = conn.slot as usize;
        if self.slots.len() <= slot {
            self.slots.resize_with(slot + 1, || Slot { generation: 0, session: None });
        }
        self.slots[slot] = Slot { generation: conn.generation, session: Some(session) };
    }

    /// Takes a session out of its slot; none when it is gone.
    pub fn take(&mut self, conn: ConnId) -> Option<Session> {
        let slot = self.slots.get_mut(conn.slot as usize)?;
        if slot.generation != conn.generation {
            return None;
        }
        slot.session.take()
    }

    /// The session in its slot.
    pub fn peek(&self, conn: ConnId) -> Option<&Session> {
        let slot = self.slots.get(conn.slot as usize)?;
        slot.session.as_ref().filter(|_| slot.generation == conn.generation)
    }

    /// A bound session.
    pub fn live(&mut self, conn: ConnId) -> Option<&mut Live> {
        let slot = self.slots.get_mut(conn.slot as usize)?;
        match &mut slot.session {
            Some(Session::Live(live)) if slot.generation == conn.generation => Some(live),
            _ => None,
        }
    }

    /// The bound session that is in this slot now.
    pub fn live_in(&mut self, slot: u32) -> Option<&mut Live> {
        match &mut self.slots.get_mut(slot as usize)?.session {
            Some(Session::Live(live)) => Some(live),
            _ => None,
        }
    }

    /// The same, to look at.
    pub fn peek_live(&self, slot: u32) -> Option<&Live> {
        match &self.slots.get(slot as usize)?.session {
            Some(Session::Live(live)) => Some(live),
            _ => None,
        }
    }

    /// The slots of an account's bound sessions, in the order they were bound.
    pub fn of(&self, account: &str) -> SmallVec<[u32; 2]> {
        self.accounts.get(account).cloned().unwrap_or_default()
    }

    /// An account's bound sessions, to look at.
    pub fn lives_of(&self, account: &str) -> SmallVec<[&Live; 4]> {
        let slots = self.accounts.get(account);
        slots.into_iter().flatten().filter_map(|&slot| self.peek_live(slot)).collect()
    }

    /// Notes that the session in `slot` is bound to `account`.
    pub fn bind(&mut self, account: &BareJid, slot: u32) {
        self.accounts.entry(account.clone()).or_default().push(slot);
    }

    /// Notes that it no longer is.
    pub fn unbind(&mut self, account: &BareJid, slot: u32) {
        if let Some(slots) = self.accounts.get_mut(account.as_str()) {
            slots.retain(|s| *s != slot);
            if slots.is_empty() {
                self.accounts.remove(account.as_str());
            }
        }
        if self.accounts.len() * 4 + 64 < self.accounts.capacity() {
            self.accounts.shrink_to(self.accounts.len() * 2);
        }
    }

    /// Every bound session, to look at.
    pub fn lives(&self) -> impl Iterator<Item = &Live> {
        self.slots.iter().filter_map(|slot| match &slot.session {
            Some(Session::Live(live)) => Some(&**live),
            _ => None,
        })
    }

    /// Every connection with a session.
    pub fn conns(&self) -> Vec<ConnId> {
        let occupied = self.slots.iter().enumerate().filter(|(_, slot)| slot.session.is_some());
        occupied.map(|(i, slot)| ConnId { slot: i as u32, generation: slot.generation }).collect()
    }

    /// The number of the account of a bound session of this name.
    pub fn account_id(&self, account: &str) -> Option<AccountId> {
        self.lives_of(account).first().map(|live| live.account)
    }
}
