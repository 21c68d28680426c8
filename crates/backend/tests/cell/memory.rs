//! Within one process.

use carillon_backend::BusOptions;
use carillon_backend::conformance::{bus, claims, members, session_log};
use carillon_backend::memory::{self, Homes, Hub, Logs, Registry};
use carillon_core::model::Epoch;
use carillon_core::ports::bus::Hears;
use carillon_core::ports::claims::Reaches;
use carillon_core::ports::{Bus, Claims, LogHears, SessionLog};
use std::cell::OnceCell;
use std::sync::Arc;

/// A hub that is made for the first node, by its options.
#[derive(Default)]
struct Buses(OnceCell<Hub>);

impl Buses {
    fn hub(&self) -> &Hub {
        self.0.get().expect("a node has joined")
    }
}

impl bus::Engine for Buses {
    fn join(&self, own: Epoch, options: BusOptions, hears: Hears) -> Arc<dyn Bus> {
        let left = options.left.clone();
        self.0.get_or_init(|| Hub::new(options).expect("a thread")).join_after(own, hears, left)
    }

    fn fault(&self, of: Epoch, fault: bus::Fault) {
        let fault = match fault {
            bus::Fault::None => memory::Fault::None,
            bus::Fault::Cut => memory::Fault::Away,
            bus::Fault::Stalled => memory::Fault::Lost,
        };
        self.hub().fault(of, fault);
    }

    fn restart(&self) {
        [memory::Fault::Lost, memory::Fault::None]
            .into_iter()
            .for_each(|fault| self.hub().fault(Epoch(2), fault));
    }
}

/// Claims that are asked by every node.
struct Directory(Homes);

impl claims::Engine for Directory {
    fn open(&self, own: Epoch, reaches: Reaches) -> Arc<dyn Claims> {
        self.0.open(own, reaches)
    }

    fn fault(&self, of: Epoch, fault: claims::Fault) {
        self.0.set_away(of, fault != claims::Fault::None);
    }

    fn lose(&self) {
        self.0.lose();
    }
}

#[test]
fn bus_conforms() {
    crate::each(bus::CASES.iter().map(|case| {
        let run = move || (case.run)(&Buses::default());
        (case.name, Box::new(run) as Box<dyn FnOnce()>)
    }));
}

#[test]
fn claims_conform() {
    crate::each(claims::CASES.iter().map(|case| {
        let run = move || (case.run)(&Directory(Homes::new()));
        (case.name, Box::new(run) as Box<dyn FnOnce()>)
    }));
}

/// The logs of all nodes.
struct Sessions(Logs);

impl session_log::Engine for Sessions {
    fn open(&self, own: Epoch, hears: LogHears) -> Arc<dyn SessionLog> {
        self.0.open(own, hears)
    }

    fn set_away(&self, of: Epoch, is_away: bool) {
        self.0.set_away(of, is_away);
    }
}

#[test]
fn session_log_conforms() {
    crate::each(session_log::CASES.iter().map(|case| {
        let run = move || (case.run)(&Sessions(Logs::default()));
        (case.name, Box::new(run) as Box<dyn FnOnce()>)
    }));
}

/// Nodes without a store.
struct Cell(Registry);

impl members::Cell for Cell {
    fn start(&self, name: &str, address: &str, roles: &str) -> members::Node {
        members::Node { members: self.0.start(name, address, roles), store: None }
    }
}

#[test]
fn members_conform() {
    crate::each(members::CASES.iter().map(|case| {
        let run = move || (case.run)(&Cell(Registry::new()));
        (case.name, Box::new(run) as Box<dyn FnOnce()>)
    }));
}
