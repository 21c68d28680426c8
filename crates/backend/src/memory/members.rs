//! The nodes of a cell within one process.

use carillon_core::model::Epoch;
use carillon_core::ports::{Member, Members, Membership, Reply, Unavailable};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The nodes of a cell within one process. What a buried one writes is not its business: it is no store.
#[derive(Clone, Debug, Default)]
pub struct Registry(Arc<Mutex<Membership>>);

impl Registry {
    /// No nodes.
    pub fn new() -> Registry {
        Registry::default()
    }

    /// A process of this name starts.
    pub fn start(&self, name: &str, address: &str, roles: &str) -> Arc<dyn Members> {
        let mut found = self.membership();
        let epoch = Epoch(found.newest.0 + 1);
        found.newest = epoch;
        found.members.retain(|member| *member.name != *name);
        let (name, address, roles) = (name.into(), address.into(), roles.into());
        found.members.push(Member {
            epoch,
            name,
            address,
            roles,
            is_connected: true,
            form_newest: 0,
            is_dead: false,
        });
        Arc::new(Node { registry: self.clone(), epoch })
    }

    fn membership(&self) -> MutexGuard<'_, Membership> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One of them.
#[derive(Debug)]
struct Node {
    registry: Registry,
    epoch: Epoch,
}

impl Drop for Node {
    fn drop(&mut self) {
        let mut found = self.registry.membership();
        if let Some(member) = found.members.iter_mut().find(|member| member.epoch == self.epoch) {
            member.is_connected = false;
        }
    }
}

impl Members for Node {
    fn epoch(&self) -> Epoch {
        self.epoch
    }

    fn list(&self, reply: Reply<Result<Membership, Unavailable>>) {
        let found = self.registry.membership().clone();
        reply(Ok(found));
    }

    fn bury(&self, epoch: Epoch, reply: Reply<Result<bool, Unavailable>>) {
        let mut found = self.registry.membership();
        let lives = found.living().contains(&self.epoch);
        let other = found.members.iter_mut().find(|member| member.epoch == epoch && !member.is_dead);
        let other = other.filter(|_| lives);
        let is_done = other.map(|member| member.is_dead = true).is_some();
        drop(found);
        reply(Ok(is_done));
    }
}
