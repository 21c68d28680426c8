//! The registered workers, and the orders that wait for them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::control::{NumberedOrder, Order, Registration};

/// The most workers at the same time.
const WORKERS_MAX: usize = 1000;
/// A worker that has not asked for orders for this long is removed.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// All registered workers.
#[derive(Debug, Default)]
pub(super) struct WorkerRegistry {
    workers: BTreeMap<u32, Worker>,
    last_id: u32,
}

/// A worker as the orchestrator knows it.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) registration: Registration,
    /// When its last request came.
    pub(super) heard: Instant,
    orders: VecDeque<NumberedOrder>,
    last_number: u64,
    /// Notified when there is a new order.
    new_orders: Arc<Notify>,
}

impl WorkerRegistry {
    /// Registers a worker and returns its id; `None` when there are too many.
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
            new_orders: Arc::default(),
        };
        self.workers.insert(self.last_id, worker);
        Some(self.last_id)
    }

    /// The orders after a number, which proves that those up to it have arrived; and what is notified when there are more.
    pub(super) fn orders(&mut self, id: u32, after: u64) -> Option<(Vec<NumberedOrder>, Arc<Notify>)> {
        let worker = self.workers.get_mut(&id)?;
        worker.heard = Instant::now();
        worker.orders.retain(|order| order.number > after);
        Some((worker.orders.iter().cloned().collect(), Arc::clone(&worker.new_orders)))
    }

    /// Adds an order for a worker.
    pub(super) fn order(&mut self, id: u32, order: Order) {
        let Some(worker) = self.workers.get_mut(&id) else { return };
        // A worker that does not fetch its orders is asked for a report only once.
        if order == Order::Report && worker.orders.iter().any(|waiting| waiting.order == Order::Report) {
            return;
        }
        worker.last_number += 1;
        worker.orders.push_back(NumberedOrder { number: worker.last_number, order });
        worker.new_orders.notify_waiters();
    }

    /// Notes a request of a worker; `false` if there is no such worker.
    pub(super) fn heard(&mut self, id: u32) -> bool {
        let worker = self.workers.get_mut(&id);
        worker.map(|worker| worker.heard = Instant::now()).is_some()
    }

    /// Removes a worker.
    pub(super) fn remove(&mut self, id: u32) {
        if let Some(worker) = self.workers.remove(&id) {
            worker.new_orders.notify_waiters();
        }
    }

    /// The workers that are not silent, by id.
    pub(super) fn present(&mut self) -> impl Iterator<Item = (u32, &Registration)> {
        self.forget_silent();
        self.workers.iter().map(|(id, worker)| (*id, &worker.registration))
    }

    /// Adds an order for every worker.
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
        let mut workers = WorkerRegistry::default();
        let registration = Registration { name: "w".into(), players_max: 10, boot_id: "b".into() };
        let id = workers.register(registration).expect("room");
        workers.order(id, Order::Report);
        workers.order(id, Order::Report);
        workers.order(id, Order::Leave);
        let numbers = |workers: &mut WorkerRegistry, after| {
            let (orders, _) = workers.orders(id, after).expect("it is there");
            orders.into_iter().map(|order| order.number).collect::<Vec<_>>()
        };
        assert_eq!(numbers(&mut workers, 0), [1, 2]);
        assert_eq!(numbers(&mut workers, 0), [1, 2]);
        assert_eq!(numbers(&mut workers, 1), [2]);
        workers.remove(id);
        assert!(workers.orders(id, 0).is_none());
    }
}
