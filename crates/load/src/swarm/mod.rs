//! Very many clients in one thread: a [`Swarm`] keeps them and tells a [`Handler`] what happens to each. The handler
//! acts through [`Network`].

mod any_client;
mod connection;
mod network;
mod source;
mod timer;

use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::time::{Duration, Instant};

use mio::Events;

pub use any_client::{Start, SwarmEvent};
pub use network::{Network, Waker};

/// Readiness events taken from the kernel at once.
const READINESS_MAX: usize = 1024;
/// The longest time between two calls of [`Handler::tick`].
const TICK: Duration = Duration::from_millis(50);

/// What the clients of a swarm do. Each client has an index.
pub trait Handler {
    /// Handles an event of a client. `Closed` is the last event of each client.
    fn event(&mut self, index: usize, event: SwarmEvent, now: Instant, network: &mut Network);

    /// Called after each batch of events, at the time that it asked for, and at least every 50 ms.
    fn tick(&mut self, now: Instant, network: &mut Network) -> Flow;
}

/// Whether a swarm continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// It continues; with a time, the next tick is due then.
    Continue(Option<Instant>),
    /// It ends; all connections are dropped.
    Stop,
}

/// Why a swarm ended before its handler stopped it.
#[derive(Debug, thiserror::Error)]
pub enum SwarmError {
    /// Polling the sockets failed.
    #[error("waiting for sockets: {0}")]
    Poll(#[from] io::Error),
}

/// Many clients and the thread that drives them.
#[derive(Debug)]
pub struct Swarm {
    network: Network,
}

impl Swarm {
    /// Clients with these indices, distributed over the targets in turn.
    pub fn new(targets: Vec<SocketAddr>, clients: Range<usize>) -> io::Result<Self> {
        Ok(Self { network: Network::new(targets, clients)? })
    }

    /// Wakes the swarm from another thread, so that its handler's tick is called soon.
    pub fn waker(&self) -> Waker {
        self.network.waker()
    }

    /// Runs until the handler stops.
    pub fn run(mut self, handler: &mut impl Handler) -> Result<(), SwarmError> {
        let mut events = Events::with_capacity(READINESS_MAX);
        loop {
            let now = Instant::now();
            self.deliver(handler, now);
            let Flow::Continue(wish) = handler.tick(now, &mut self.network) else { return Ok(()) };
            self.network.wait(&mut events, wish, TICK)?;
            for event in &events {
                self.network.ready(event);
                self.deliver(handler, Instant::now());
            }
        }
    }

    /// Hands all events to the handler, including those that its own actions cause.
    fn deliver(&mut self, handler: &mut impl Handler, now: Instant) {
        while let Some((index, event)) = self.network.next_event() {
            handler.event(index, event, now, &mut self.network);
        }
    }
}
