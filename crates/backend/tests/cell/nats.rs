//! Over NATS.

use crate::proxy::{Fault, Proxy, Upstream};
use crate::server::Nats;
use carillon_backend::BusOptions;
use carillon_backend::conformance::bus::{self, CASES};
use carillon_backend::nats::{self, Options};
use carillon_core::model::Epoch;
use carillon_core::ports::Bus;
use carillon_core::ports::bus::Hears;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::runtime::Runtime;

/// A server, and each node behind a proxy of its own.
struct Engine<'a> {
    server: RefCell<Nats>,
    proxies: RefCell<BTreeMap<Epoch, Proxy>>,
    runtime: &'a Runtime,
}

fn upstream(server: &Nats) -> Upstream {
    Upstream::Tcp(server.address)
}

impl bus::Engine for Engine<'_> {
    fn join(&self, own: Epoch, options: BusOptions, hears: Hears) -> Arc<dyn Bus> {
        let proxy = Proxy::new(upstream(&self.server.borrow()));
        let options = Options { bus: options, ..Options::new(&format!("nats://127.0.0.1:{}", proxy.port)) };
        self.proxies.borrow_mut().insert(own, proxy);
        nats::open(&options, own, hears, self.runtime.handle()).expect("it opens")
    }

    fn fault(&self, of: Epoch, fault: Fault) {
        self.proxies.borrow()[&of].fault(fault);
    }

    fn restart(&self) {
        *self.server.borrow_mut() = Nats::start("");
        self.proxies.borrow().values().for_each(|proxy| proxy.moves(upstream(&self.server.borrow())));
    }
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}

#[test]
fn conforms() {
    let runtime = runtime();
    crate::each(CASES.iter().map(|case| {
        let runtime = &runtime;
        let run = move || {
            let engine = Engine { server: Nats::start("").into(), proxies: RefCell::default(), runtime };
            (case.run)(&engine);
        };
        (case.name, Box::new(run) as Box<dyn FnOnce()>)
    }));
}
