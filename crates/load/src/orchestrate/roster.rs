//! Workers that offered themselves, and the orders that wait for them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::control::{Numbered, Order, Registration};

/// Workers at once.
const WORKERS_MAX: usize = 1000;
/// An idle worker asks for orders at least so often; after this long it is taken off the list.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// All workers there are.
#[derive(Debug, Default)]
pub(super) struct Roster {
    workers: BTreeMap<u32, Worker>,
    last_id: u32,
}

/// A worker as the orchestrator knows it.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) registration: Registration,
    /// When it last said anything.
    pub(super) heard: Instant,
    orders: VecDeque<Numbered>,
    last_number: u64,
    /// Rung when there is a new order.
    bell: Arc<Notify>,
}

impl Roster {
    /// Takes a worker in; `None` when there are too many.
    pub(super) fn register(&mut self, registration: Registration) -> Option<u32> {
        self.forget_silent();
        if self.workers.len() >= WORKERS_MAX {
            return None;
        }
        self.last_id += 1;
        let worker = Worker {
            registration,
            heard: Instant::now(),
            orders: VecDeque::new(),
            last_number: 0,
            bell: Arc::default(),
        };
        self.workers.insert(self.last_id, worker);
        Some(self.last_id)
    }

    /// Orders after a number, which is proof that those up to it arrived; and what rings when there are more.
    pub(super) fn orders(&mut self, id: u32, after: u64) -> Option<(Vec<Numbered>, Arc<Notify>)> {
        let worker = self.workers.get_mut(&id)?;
        worker.heard = Instant::now();
        worker.orders.retain(|order| order.number > after);
        Some((worker.orders.iter().cloned().collect(), Arc::clone(&worker.bell)))
    }

    /// Gives an order.
    pub(super) fn order(&mut self, id: u32, order: Order) {
        let Some(worker) = self.workers.get_mut(&id) else { return };
        // A worker that does not fetch its orders needs to be asked for a report but once.
        if order == Order::Report && worker.orders.iter().any(|waiting| waiting.order == Order::Report) {
            return;
        }
        worker.last_number += 1;
        worker.orders.push_back(Numbered { number: worker.last_number, order });
        worker.bell.notify_waiters();
    }

    /// Notes that a worker spoke; `false` if there is no such worker.
    pub(super) fn heard(&mut self, id: u32) -> bool {
        let worker = self.workers.get_mut(&id);
        worker.map(|worker| worker.heard = Instant::now()).is_some()
    }

    /// Takes a worker off the list.
    pub(super) fn remove(&mut self, id: u32) {
        if let Some(worker) = self.workers.remove(&id) {
            worker.bell.notify_waiters();
        }
    }

    /// All that are there now, by id.
    pub(super) fn present(&mut self) -> impl Iterator<Item = (u32, &Registration)> {
        self.forget_silent();
        self.workers.iter().map(|(id, worker)| (*id, &worker.registration))
    }

    /// Gives everyone an order.
    pub(super) fn order_all(&mut self, order: &Order) {
        for id in self.workers.keys().copied().collect::<Vec<_>>() {
            self.order(id, order.clone());
        }
    }

    fn forget_silent(&mut self) {
        self.workers.retain(|_, worker| worker.heard.elapsed() < IDLE_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_kept_until_they_are_known_to_have_arrived() {
        let mut roster = Roster::default();
        let registration = Registration { name: "w".into(), players_max: 10, boot_id: "b".into() };
        let id = roster.register(registration).expect("room");
        roster.order(id, Order::Report);
        roster.order(id, Order::Report);
        roster.order(id, Order::Leave);
        let numbers = |roster: &mut Roster, after| {
            let (orders, _) = roster.orders(id, after).expect("it is there");
            orders.into_iter().map(|order| order.number).collect::<Vec<_>>()
        };
        assert_eq!(numbers(&mut roster, 0), [1, 2]);
        assert_eq!(numbers(&mut roster, 0), [1, 2]);
        assert_eq!(numbers(&mut roster, 1), [2]);
        roster.remove(id);
        assert!(roster.orders(id, 0).is_none());
    }
}
