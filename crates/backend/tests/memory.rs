//! The store of the simulation against the suite that every store must pass: what passes with it passes with a database.

use carillon_backend::conformance::{CASES, LASTING};
use carillon_core::ports::{Answer, Ask, Fault, Reply, Store, StoreStats};
use carillon_core::sim::store::Committed;
use std::sync::{Arc, Mutex};

/// The simulation's disk as a store, which answers at once.
struct Memory {
    disk: Arc<Mutex<Committed>>,
    is_open: Mutex<bool>,
}

impl Memory {
    fn open(disk: &Arc<Mutex<Committed>>) -> Memory {
        Memory { disk: disk.clone(), is_open: Mutex::new(true) }
    }
}

impl Store for Memory {
    fn ask(&self, ask: Ask, reply: Reply<Answer>) {
        let answer = if *self.is_open.lock().expect("nobody panics with it") {
            self.disk.lock().expect("nobody panics with it").answer(&ask)
        } else {
            Answer::Failed(Fault::Closed)
        };
        reply(answer);
    }

    fn stats(&self) -> StoreStats {
        StoreStats::default()
    }

    fn close(&self) {
        *self.is_open.lock().expect("nobody panics with it") = false;
    }
}

#[test]
fn conforms() {
    for case in CASES {
        println!("{}", case.name);
        (case.run)(&Memory::open(&Arc::default()));
    }
}

#[test]
fn conforms_across_restarts() {
    for case in LASTING {
        println!("{}", case.name);
        let disk = Arc::default();
        (case.write)(&Memory::open(&disk));
        (case.check)(&Memory::open(&disk));
    }
}
