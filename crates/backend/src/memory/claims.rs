//! Claims within one process.

use carillon_core::model::Epoch;
use carillon_core::ports::claims::{ACCOUNT_BYTES_MAX, Reached, Reaches};
use carillon_core::ports::{Claimed, Claims, Policy, Reply, Unavailable};
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The claims of nodes in one process. It can be told to be away, and to forget, as an engine of its own does.
#[derive(Clone, Default)]
pub struct Homes(Arc<Mutex<ClaimTable>>);

#[derive(Default)]
struct ClaimTable {
    homes: HashMap<Box<str>, Epoch>,
    nodes: Vec<(Epoch, Reaches)>,
    /// Nodes that it is away for.
    away: BTreeSet<Epoch>,
}

impl Homes {
    /// No claims.
    pub fn new() -> Homes {
        Homes::default()
    }

    /// The claims as a node makes them.
    pub fn open(&self, own: Epoch, reaches: Reaches) -> Arc<dyn Claims> {
        reaches(Reached::Back { lost: false });
        self.state().nodes.push((own, reaches));
        Arc::new(Node { homes: self.clone(), own, view: Mutex::default(), is_closed: Mutex::default() })
    }

    /// From now on it is away for this node, or it is not.
    pub fn set_away(&self, of: Epoch, is_away: bool) {
        let mut state = self.state();
        let is_changed = if is_away { state.away.insert(of) } else { state.away.remove(&of) };
        if is_changed {
            let reached = if is_away { Reached::Away } else { Reached::Back { lost: false } };
            tell(state, |epoch| epoch == of, reached);
        }
    }

    /// Forgets all claims, and tells that it did.
    pub fn lose(&self) {
        let mut state = self.state();
        state.homes.clear();
        tell(state, |_| true, Reached::Back { lost: true });
    }

    fn state(&self) -> MutexGuard<'_, ClaimTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells nodes, without the lock: they may ask at once.
fn tell(state: MutexGuard<'_, ClaimTable>, whom: impl Fn(Epoch) -> bool, reached: Reached) {
    let nodes = state.nodes.iter().filter(|(epoch, _)| whom(*epoch));
    let nodes: Vec<Reaches> = nodes.map(|(_, reaches)| reaches.clone()).collect();
    drop(state);
    nodes.iter().for_each(|reaches| reaches(reached));
}

/// The claims as one node makes them.
struct Node {
    homes: Homes,
    own: Epoch,
    view: Mutex<View>,
    is_closed: Mutex<bool>,
}

/// Who lives.
#[derive(Clone, Default)]
struct View {
    living: Arc<[Epoch]>,
    newest: Epoch,
}

impl View {
    fn lives(&self, epoch: Epoch) -> bool {
        epoch > self.newest || self.living.contains(&epoch)
    }
}

impl Node {
    /// What is known, unless the engine is away.
    fn reachable(&self, account: &str) -> Result<MutexGuard<'_, ClaimTable>, Unavailable> {
        let is_closed = *self.is_closed.lock().unwrap_or_else(PoisonError::into_inner);
        let state = self.homes.state();
        if is_closed || state.away.contains(&self.own) || account.len() > ACCOUNT_BYTES_MAX {
            Err(Unavailable)
        } else {
            Ok(state)
        }
    }

    fn view(&self) -> View {
        self.view.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn claimed(&self, account: Box<str>, policy: Policy) -> Result<Claimed, Unavailable> {
        let view = self.view();
        let mut state = self.reachable(&account)?;
        let old = state.homes.get(&account).copied();
        let claimed = match old {
            Some(old) if old == self.own => Claimed::Mine,
            Some(old) if view.lives(old) && policy == Policy::Multi => return Ok(Claimed::Seat(old)),
            Some(old) if view.lives(old) => Claimed::Replaced(old),
            _ => Claimed::Fresh,
        };
        state.homes.insert(account, self.own);
        Ok(claimed)
    }

    fn located(&self, account: &str) -> Result<Option<Epoch>, Unavailable> {
        let view = self.view();
        let state = self.reachable(account)?;
        Ok(state.homes.get(account).copied().filter(|epoch| *epoch == self.own || view.lives(*epoch)))
    }
}

impl Claims for Node {
    fn claim(&self, account: Box<str>, policy: Policy, reply: Reply<Result<Claimed, Unavailable>>) {
        reply(self.claimed(account, policy));
    }

    fn locate(&self, account: Box<str>, reply: Reply<Result<Option<Epoch>, Unavailable>>) {
        reply(self.located(&account));
    }

    fn forget(&self, account: Box<str>, of: Epoch) {
        if let Ok(mut state) = self.reachable(&account)
            && state.homes.get(&account) == Some(&of)
        {
            state.homes.remove(&account);
        }
    }

    fn view(&self, living: Arc<[Epoch]>, newest: Epoch) {
        *self.view.lock().unwrap_or_else(PoisonError::into_inner) = View { living, newest };
    }

    fn close(&self) {
        *self.is_closed.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.homes.state().nodes.retain(|(epoch, _)| *epoch != self.own);
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node").field("own", &self.own).finish_non_exhaustive()
    }
}

impl fmt::Debug for Homes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Homes").finish_non_exhaustive()
    }
}
