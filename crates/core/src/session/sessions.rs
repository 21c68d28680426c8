//! A shard's connections and sessions: who is at a connection, the sessions by their own names, and an index by account.
//!
//! A connection has a state of its own until its session is bound. From then on it only names the session, which may outlive it.

use crate::light::Light;
use crate::model::{AccountId, ConnId, Listed, Map, SessionId};
use crate::session::{BoundSession, Session};
use carillon_wire::jid::BareJid;
use smallvec::SmallVec;

/// All connections and sessions of a shard, XMPP and light.
#[derive(Debug, Default)]
pub struct Sessions {
    connections: Vec<Connection>,
    slots: Vec<Slot>,
    /// Slots without a session. One that was taken by its name is still among them, with a generation.
    free: Vec<u32>,
    /// Sessions that there were.
    begun: u32,
    /// Bound sessions by account, in the order they were bound.
    accounts: Map<BareJid, SmallVec<[u32; 2]>>,
    /// The sessions that may have changed since they were asked for, where somebody asks for them.
    changed: Option<Vec<SessionId>>,
}

/// A connection, as the server numbers it.
#[derive(Debug)]
struct Connection {
    generation: u32,
    user: User,
}

/// Who is at a connection.
#[derive(Debug, Default)]
enum User {
    #[default]
    Nobody,
    /// A client whose session is not bound, or has ended.
    Unbound(Session),
    /// A session.
    Session(SessionId),
}

#[derive(Debug)]
struct Slot {
    generation: u32,
    occupant: Occupant,
}

/// What is in a slot. A bound session, like a light one, is one pointer.
#[derive(Debug, Default)]
enum Occupant {
    /// Nobody, or a session that is being dealt with.
    #[default]
    Nobody,
    Bound(Box<BoundSession>),
    Light(Box<Light>),
}

impl Sessions {
    /// A name for a new session, whose place is kept until it ends.
    pub fn begin(&mut self) -> SessionId {
        // 0 is that of a free slot.
        self.begun = self.begun.wrapping_add(1).max(1);
        let (generation, occupant) = (self.begun, Occupant::Nobody);
        let slots = &self.slots;
        let is_free = |slot: &u32| slots.get(*slot as usize).is_some_and(|slot| slot.generation == 0);
        let slot = std::iter::from_fn(|| self.free.pop()).find(is_free).unwrap_or(slots.len() as u32);
        match self.slots.get_mut(slot as usize) {
            Some(place) => *place = Slot { generation, occupant },
            None => self.slots.push(Slot { generation, occupant }),
        }
        SessionId { slot, generation }
    }

    /// The same for a session that had this name in the process before: it keeps it, as others know it by that, unless another has it here.
    pub fn begin_as(&mut self, id: SessionId) -> SessionId {
        let slot = id.slot as usize;
        let is_free = self.slots.get(slot).is_none_or(|slot| slot.generation == 0);
        if !is_free || id.generation == 0 || id.slot >= KEPT_SLOTS_MAX {
            return self.begin();
        }
        while self.slots.len() <= slot {
            if self.slots.len() < slot {
                self.free.push(self.slots.len() as u32);
            }
            self.slots.push(Slot { generation: 0, occupant: Occupant::Nobody });
        }
        if let Some(place) = self.slots.get_mut(slot) {
            *place = Slot { generation: id.generation, occupant: Occupant::Nobody };
        }
        self.begun = self.begun.max(id.generation);
        id
    }

    /// From now on it is noted which sessions may have changed, or not any more.
    pub fn note_changes(&mut self, notes: bool) {
        self.changed = notes.then(Vec::new);
    }

    /// The sessions that may have changed since this was asked last, or that have ended; each once.
    pub fn take_changed(&mut self) -> Vec<SessionId> {
        let mut changed = self.changed.as_mut().map(std::mem::take).unwrap_or_default();
        changed.sort_unstable_by_key(|id| (id.slot, id.generation));
        changed.dedup();
        changed
    }

    /// Gives the memory back that [`Sessions::take_changed`] took.
    pub fn reuse_changed(&mut self, mut memory: Vec<SessionId>) {
        memory.clear();
        memory.shrink_to(CHANGED_CAPACITY);
        if let Some(changed) = self.changed.as_mut().filter(|changed| changed.is_empty()) {
            *changed = memory;
        }
    }

    fn note(&mut self, id: SessionId) {
        if let Some(changed) = &mut self.changed
            && changed.last() != Some(&id)
        {
            changed.push(id);
        }
    }

    /// A session is over: its name is not valid any more.
    pub fn end(&mut self, id: SessionId) {
        self.note(id);
        if let Some(slot) = self.slot(id) {
            // No session has this generation.
            *slot = Slot { generation: 0, occupant: Occupant::Nobody };
            self.free.push(id.slot);
        }
    }

    /// Stores the state of a connection. A bound session is stored under its own name.
    pub fn put(&mut self, conn: ConnId, session: Session) {
        match session {
            Session::Bound(session) => {
                self.seat(conn, User::Session(session.id));
                self.put_bound(session);
            }
            session => self.seat(conn, User::Unbound(session)),
        }
    }

    /// Stores a bound session, whether it has a connection or not.
    pub fn put_bound(&mut self, session: Box<BoundSession>) {
        self.note(session.id);
        if let Some(slot) = self.slot(session.id) {
            slot.occupant = Occupant::Bound(session);
        }
    }

    /// Puts a session back that was looked at and is as it was.
    pub fn put_back(&mut self, session: Box<BoundSession>) {
        if let Some(slot) = self.slot(session.id) {
            slot.occupant = Occupant::Bound(session);
        }
    }

    /// A bound session, by shared reference.
    pub fn peek_session(&self, id: SessionId) -> Option<&BoundSession> {
        let slot = self.slots.get(id.slot as usize)?;
        if slot.generation != id.generation {
            return None;
        }
        self.peek_bound(id.slot)
    }

    /// Takes the state of a connection, or its session; none when the connection is gone, or speaks the light protocol.
    pub fn take(&mut self, conn: ConnId) -> Option<Session> {
        let user = self.user(conn)?;
        if let User::Session(id) = *user {
            return self.take_bound(id).map(Session::Bound);
        }
        match std::mem::take(user) {
            User::Unbound(session) => Some(session),
            User::Nobody | User::Session(_) => None,
        }
    }

    /// Takes a bound session.
    pub fn take_bound(&mut self, id: SessionId) -> Option<Box<BoundSession>> {
        self.note(id);
        self.take_to_look(id)
    }

    /// The same, to be put back as it is by [`Sessions::put_back`].
    pub fn take_to_look(&mut self, id: SessionId) -> Option<Box<BoundSession>> {
        let slot = self.slot(id)?;
        match std::mem::take(&mut slot.occupant) {
            Occupant::Bound(session) => Some(session),
            other => {
                slot.occupant = other;
                None
            }
        }
    }

    /// Whether the client of a connection is authenticated.
    pub fn is_trusted(&self, conn: ConnId) -> bool {
        match self.peek(conn) {
            Some(User::Unbound(session)) => session.is_trusted(),
            Some(User::Session(_)) => true,
            Some(User::Nobody) | None => false,
        }
    }

    /// Whether a connection is being closed.
    pub fn is_closing(&self, conn: ConnId) -> bool {
        match self.peek(conn) {
            Some(User::Unbound(session)) => matches!(session, Session::Closing(_)),
            Some(User::Session(id)) => self.slots.get(id.slot as usize).is_some_and(
                |slot| matches!(&slot.occupant, Occupant::Light(light) if matches!(**light, Light::Closing)),
            ),
            Some(User::Nobody) | None => false,
        }
    }

    /// Whether there is a client at a connection.
    pub fn has(&self, conn: ConnId) -> bool {
        !matches!(self.peek(conn), None | Some(User::Nobody))
    }

    /// The session of a connection.
    pub fn session_at(&self, conn: ConnId) -> Option<SessionId> {
        match self.peek(conn)? {
            User::Session(id) => Some(*id),
            User::Nobody | User::Unbound(_) => None,
        }
    }

    /// A connection is gone, or has no session any more.
    pub fn leave(&mut self, conn: ConnId) {
        if let Some(user) = self.user(conn) {
            *user = User::Nobody;
        }
    }

    /// The bound session of a connection.
    pub fn bound_at(&mut self, conn: ConnId) -> Option<&mut BoundSession> {
        let id = self.session_at(conn)?;
        self.bound(id)
    }

    /// A bound session.
    pub fn bound(&mut self, id: SessionId) -> Option<&mut BoundSession> {
        self.note(id);
        match &mut self.slot(id)?.occupant {
            Occupant::Bound(session) => Some(session),
            _ => None,
        }
    }

    /// The bound session that is in this slot now.
    pub fn bound_in(&mut self, slot: u32) -> Option<&mut BoundSession> {
        if self.changed.is_some() {
            let generation = self.slots.get(slot as usize)?.generation;
            self.note(SessionId { slot, generation });
        }
        match &mut self.slots.get_mut(slot as usize)?.occupant {
            Occupant::Bound(session) => Some(session),
            _ => None,
        }
    }

    /// The bound session that is in this slot now, by shared reference.
    pub fn peek_bound(&self, slot: u32) -> Option<&BoundSession> {
        match &self.slots.get(slot as usize)?.occupant {
            Occupant::Bound(session) => Some(session),
            _ => None,
        }
    }

    /// A light session begins at a connection. Its name, to store it by.
    pub fn begin_light(&mut self, conn: ConnId) -> SessionId {
        let id = self.begin();
        self.seat(conn, User::Session(id));
        id
    }

    /// Stores a light session.
    pub fn put_light(&mut self, id: SessionId, light: Box<Light>) {
        if let Some(slot) = self.slot(id) {
            slot.occupant = Occupant::Light(light);
        }
    }

    /// Takes the light session of a connection; none when the connection is gone or speaks XMPP.
    pub fn take_light_at(&mut self, conn: ConnId) -> Option<(SessionId, Box<Light>)> {
        let id = self.session_at(conn)?;
        self.take_light(id).map(|light| (id, light))
    }

    /// Takes a light session.
    pub fn take_light(&mut self, id: SessionId) -> Option<Box<Light>> {
        let slot = self.slot(id)?;
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
        let slot = self.session_at(conn).and_then(|id| self.slots.get(id.slot as usize));
        slot.is_some_and(|slot| matches!(slot.occupant, Occupant::Light(_)))
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
        self.conns().filter(|conn| self.is_light(*conn)).collect()
    }

    /// Tells the session in this slot that it took over another's position in a topic's list.
    pub fn moved(&mut self, slot: u32, followed: Listed) {
        match self.slots.get_mut(slot as usize).map(|slot| &mut slot.occupant) {
            Some(Occupant::Bound(session)) => session.moved(followed),
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

    /// Whether an account has a bound session.
    pub fn has_any(&self, account: &str) -> bool {
        self.accounts.contains_key(account)
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

    /// The number of slots: each session that there is now is in one below it.
    pub fn slots(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Every bound session.
    pub fn all_bound(&self) -> impl Iterator<Item = &BoundSession> {
        self.slots.iter().filter_map(|slot| match &slot.occupant {
            Occupant::Bound(session) => Some(&**session),
            _ => None,
        })
    }

    /// Every connection at which there is a client.
    pub fn conns(&self) -> impl Iterator<Item = ConnId> {
        let used = self.connections.iter().enumerate().filter(|(_, of)| !matches!(of.user, User::Nobody));
        used.map(|(i, of)| ConnId { slot: i as u32, generation: of.generation })
    }

    /// The number of the account with this name, if it has a bound session.
    pub fn account_id(&self, account: &str) -> Option<AccountId> {
        self.bound_of(account).first().map(|session| session.account)
    }

    /// Gives back the memory of what follows the last connection and the last session, where that is much.
    pub fn tidy(&mut self) {
        let used = self.connections.iter().rposition(|of| !matches!(of.user, User::Nobody));
        shrink(&mut self.connections, used);
        let used = self.slots.iter().rposition(|slot| slot.generation != 0);
        if shrink(&mut self.slots, used) {
            let left = self.slots.len() as u32;
            self.free.retain(|slot| *slot < left);
            self.free.shrink_to_fit();
        }
    }

    fn seat(&mut self, conn: ConnId, user: User) {
        let slot = conn.slot as usize;
        if self.connections.len() <= slot {
            self.connections.resize_with(slot + 1, || Connection { generation: 0, user: User::Nobody });
        }
        if let Some(place) = self.connections.get_mut(slot) {
            *place = Connection { generation: conn.generation, user };
        }
    }

    fn peek(&self, conn: ConnId) -> Option<&User> {
        let connection = self.connections.get(conn.slot as usize)?;
        (connection.generation == conn.generation).then_some(&connection.user)
    }

    fn user(&mut self, conn: ConnId) -> Option<&mut User> {
        let connection = self.connections.get_mut(conn.slot as usize)?;
        (connection.generation == conn.generation).then_some(&mut connection.user)
    }

    fn slot(&mut self, id: SessionId) -> Option<&mut Slot> {
        self.slots.get_mut(id.slot as usize).filter(|slot| slot.generation == id.generation)
    }
}

/// Drops what follows the last one in use, if that is most of it; whether it did.
fn shrink<T>(all: &mut Vec<T>, last: Option<usize>) -> bool {
    let used = last.map_or(0, |last| last + 1);
    let is_much = used * 4 + 64 < all.capacity();
    if is_much {
        all.truncate(used);
        all.shrink_to(used * 2);
    }
    is_much
}

/// Capacity that is kept for the names of sessions that changed.
const CHANGED_CAPACITY: usize = 4096;
/// A name with a higher slot is not kept, so that nothing that is read makes the table grow beyond that.
const KEPT_SLOTS_MAX: u32 = 1 << 24;

#[cfg(test)]
mod tests {
    use super::*;

    /// Two million of them are 96 MB: a light session must not make the slots of all others larger.
    #[test]
    fn slots_are_small() {
        assert_eq!((size_of::<Slot>(), size_of::<Connection>()), (24, 24));
    }

    #[test]
    fn a_name_is_not_used_twice() {
        let mut sessions = Sessions::default();
        let first = sessions.begin();
        sessions.end(first);
        sessions.end(first);
        let (second, third) = (sessions.begin(), sessions.begin());
        assert_eq!((second.slot, third.slot), (first.slot, first.slot + 1));
        assert_ne!(second, first);
        assert!(sessions.slot(first).is_none() && sessions.slot(second).is_some());
    }

    #[test]
    fn a_session_of_another_process_keeps_its_name_and_nobody_else_gets_it() {
        let (mut old, mut new) = (Sessions::default(), Sessions::default());
        let ids: Vec<_> = (0..9).map(|_| old.begin()).collect();
        let kept = [ids[7], ids[2], ids[3]];
        assert_eq!(kept.map(|id| new.begin_as(id)), kept);
        assert_ne!(new.begin_as(ids[2]), ids[2], "it is there already");
        let others: Vec<_> = (0..9).map(|_| new.begin()).collect();
        assert!(others.iter().all(|id| !ids.contains(id)));
        // One whose slot is among the free ones twice.
        kept.iter().chain(&others).for_each(|id| new.end(*id));
        let again: Vec<_> = (0..20).map(|_| new.begin()).collect();
        let slots: std::collections::BTreeSet<u32> = again.iter().map(|id| id.slot).collect();
        assert_eq!(slots.len(), again.len());
        let far = SessionId { slot: KEPT_SLOTS_MAX, generation: 1 };
        assert_ne!(new.begin_as(far), far, "nothing grows by what is read");
    }
}
