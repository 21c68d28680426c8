//! A bus within one process.

use crate::bus::{self, Hearing, Options, Outbox, TICKS_PER_BEAT};
use carillon_core::model::Epoch;
use carillon_core::ports::bus::{BusFigures, Hears};
use carillon_core::ports::{Bus, Subject};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Instant;

/// How many bytes of one node are carried before it is another's turn.
const TURN_BYTES: usize = 1 << 20;

/// Carries between the nodes that have joined it, by a thread of its own, which ends with the last of them. It can be told to lose what it
/// carries, as a network does.
#[derive(Clone)]
pub struct Hub(Arc<Handle>);

/// What ends the thread when it is dropped.
struct Handle(Arc<Shared>);

struct Shared {
    options: Options,
    state: Mutex<HubState>,
    wakes: Condvar,
}

#[derive(Default)]
struct HubState {
    members: BTreeMap<Epoch, Arc<Member>>,
    has_work: bool,
    is_over: bool,
}

struct Member {
    outbox: Arc<Outbox>,
    hearing: Hearing,
    fault: Mutex<Fault>,
}

/// What a hub does to what a node sends and hears.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    #[default]
    None,
    /// What it sends waits, what others send is lost to it, and it is told so.
    Away,
    /// What it sends is lost, and so is what others send to it. Nobody is told.
    Lost,
}

impl Hub {
    /// A hub that no node has joined.
    ///
    /// # Errors
    /// If there is no thread for it.
    pub fn new(options: Options) -> std::io::Result<Hub> {
        let shared = Arc::new(Shared { options, state: Mutex::default(), wakes: Condvar::new() });
        let for_thread = Arc::downgrade(&shared);
        thread::Builder::new().name("bus".to_owned()).spawn(move || carry(&for_thread))?;
        Ok(Hub(Arc::new(Handle(shared))))
    }

    /// The bus of a node, which hears what follows.
    pub fn join(&self, own: Epoch, hears: Hears) -> Arc<dyn Bus> {
        self.join_after(own, hears, None)
    }

    /// The same for another process of the node, which goes on with what the one before left.
    pub fn join_after(&self, own: Epoch, hears: Hears, left: Option<Arc<[u8]>>) -> Arc<dyn Bus> {
        let shared = &self.0.0;
        let (outbox, hearing) = bus::begin(own, hears, &Options { left, ..shared.options.clone() });
        let member = Arc::new(Member { hearing, outbox, fault: Mutex::default() });
        member.follow_what_is_wanted();
        shared.state().members.insert(own, member.clone());
        shared.wake();
        Arc::new(Joined { hub: self.clone(), own, member })
    }

    /// From now on this happens to what a node sends and hears.
    pub fn fault(&self, of: Epoch, fault: Fault) {
        let member = self.0.0.state().members.get(&of).cloned();
        if let Some(member) = member {
            *member.fault.lock().unwrap_or_else(PoisonError::into_inner) = fault;
            self.0.0.wake();
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.state().is_over = true;
        self.0.wakes.notify_all();
    }
}

impl Shared {
    fn state(&self) -> std::sync::MutexGuard<'_, HubState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        self.state().has_work = true;
        self.wakes.notify_all();
    }
}

impl Member {
    fn fault(&self) -> Fault {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn follow_what_is_wanted(&self) {
        if let Some(follows) = self.outbox.changed_follows() {
            self.hearing.follow(follows);
        }
    }
}

/// Carries until the hub is dropped.
fn carry(hub: &Weak<Shared>) {
    let mut ticks = 0;
    let mut tick_at = Instant::now();
    while let Some(shared) = hub.upgrade() {
        let tick_every = shared.options.beat_every / TICKS_PER_BEAT;
        let mut state = shared.state();
        while !state.has_work && !state.is_over {
            let left = tick_at.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = shared.wakes.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        if state.is_over {
            return;
        }
        state.has_work = false;
        let members: Vec<Arc<Member>> = state.members.values().cloned().collect();
        drop(state);
        let mut beats = false;
        if tick_at <= Instant::now() {
            tick_at = Instant::now() + tick_every;
            beats = ticks % TICKS_PER_BEAT == 0;
            ticks += 1;
            for member in &members {
                member.hearing.tick(member.fault() != Fault::Away);
            }
        }
        if round(&members, beats) {
            shared.state().has_work = true;
        }
    }
}

/// Carries some of what waits. Whether there may be more.
fn round(members: &[Arc<Member>], beats: bool) -> bool {
    for member in members {
        member.hearing.reached(member.fault() != Fault::Away);
        member.follow_what_is_wanted();
    }
    let mut has_more = false;
    for sender in members.iter().filter(|member| member.fault() != Fault::Away) {
        let mut taken = sender.outbox.take(TURN_BYTES);
        has_more |= !taken.is_empty();
        if beats {
            taken.push((Subject::All, sender.outbox.beat().into()));
        }
        for (subject, envelope) in &taken {
            let hears = |member: &&Arc<Member>| Arc::ptr_eq(member, sender) || member.fault() == Fault::None;
            for member in members.iter().filter(hears) {
                if sender.fault() == Fault::None && member.outbox.is_for(*subject) {
                    has_more |= member.hearing.take(*subject, envelope);
                }
            }
        }
    }
    has_more
}

/// The bus of a node that has joined.
struct Joined {
    hub: Hub,
    own: Epoch,
    member: Arc<Member>,
}

impl Bus for Joined {
    fn post(&self, to: Subject, record: Vec<u8>) {
        self.member.outbox.post(to, &record);
        self.hub.0.0.wake();
    }

    fn follow(&self, subject: Subject) {
        self.member.outbox.follow(subject, true);
        self.hub.0.0.wake();
    }

    fn leave(&self, subject: Subject) {
        self.member.outbox.follow(subject, false);
        self.hub.0.0.wake();
    }

    fn tell_store(&self, works: bool) {
        self.member.outbox.tell_store(works);
    }

    fn figures(&self) -> BusFigures {
        bus::figures(&self.member.outbox, &self.member.hearing)
    }

    fn rest(&self, rests: bool) {
        self.member.hearing.rest(rests);
        self.hub.0.0.wake();
    }

    fn hand_over(&self) -> Vec<u8> {
        let left = bus::hand_over(&self.member.outbox, &self.member.hearing);
        self.close();
        left
    }

    fn close(&self) {
        self.member.outbox.close();
        self.member.hearing.close();
        let mut state = self.hub.0.0.state();
        // Another life of the bus may have joined in its place.
        if state.members.get(&self.own).is_some_and(|member| Arc::ptr_eq(member, &self.member)) {
            state.members.remove(&self.own);
        }
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for Joined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Joined").field("own", &self.own).finish_non_exhaustive()
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub").finish_non_exhaustive()
    }
}
