//! In Redis.

use crate::proxy::{Fault, Proxy, Upstream};
use crate::server::Redis;
use carillon_backend::conformance::claims::{self, CASES};
use carillon_backend::redis::{self, Options};
use carillon_core::model::Epoch;
use carillon_core::ports::Claims;
use carillon_core::ports::claims::Reaches;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// A server, and each node behind a proxy of its own.
struct Engine<'a> {
    server: RefCell<Redis>,
    proxies: RefCell<BTreeMap<Epoch, Proxy>>,
    runtime: &'a Runtime,
}

fn upstream(server: &Redis) -> Upstream {
    Upstream::Unix(server.socket.clone())
}

fn options(proxy: &Proxy) -> Options {
    let url = format!("redis://127.0.0.1:{}", proxy.port);
    Options { deadline: Duration::from_millis(500), ..Options::new(&url) }
}

impl claims::Engine for Engine<'_> {
    fn open(&self, own: Epoch, reaches: Reaches) -> Arc<dyn Claims> {
        let proxy = Proxy::new(upstream(&self.server.borrow()));
        let claims = redis::open(&options(&proxy), own, reaches, self.runtime.handle()).expect("it opens");
        self.proxies.borrow_mut().insert(own, proxy);
        claims
    }

    fn fault(&self, of: Epoch, fault: Fault) {
        self.proxies.borrow()[&of].fault(fault);
    }

    fn lose(&self) {
        *self.server.borrow_mut() = Redis::start(&[]);
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
            let engine = Engine { server: Redis::start(&[]).into(), proxies: RefCell::default(), runtime };
            (case.run)(&engine);
        };
        (case.name, Box::new(run) as Box<dyn FnOnce()>)
    }));
}
