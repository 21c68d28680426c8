//! Very many clients in one thread: a [`Swarm`] keeps them and tells a [`Scenario`] what happens to each. The scenario
//! acts through [`Network`].

mod alarm;
mod connection;
mod network;
mod source;
mod speaker;

use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::time::{Duration, Instant};

use mio::Events;

pub use network::{Network, Waker};
pub use speaker::{Event, Start};

/// Readiness events taken from the kernel at once.
const READINESS_MAX: usize = 1024;
/// The longest time between two calls of [`Scenario::tick`].
const TICK: Duration = Duration::from_millis(50);

/// What the clients of a swarm do. Clients are told apart by their index.
pub trait Scenario {
    /// Learns of an event of a client. That it is closed is each client's last.
    fn event(&mut self, index: usize, event: Event, now: Instant, network: &mut Network);

    /// Called after everything that happened at once, at the time it asked for, and at least every 50 ms.
    fn tick(&mut self, now: Instant, network: &mut Network) -> Flow;
}

/// Whether a swarm goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// It goes on; the scenario has something to do at this time, if it says one.
    Continue(Option<Instant>),
    /// It ends; all connections are dropped.
    Stop,
}

/// Why a swarm ended other than by its scenario.
#[derive(Debug, thiserror::Error)]
pub enum SwarmError {
    /// The kernel does not let us wait for sockets.
    #[error("waiting for sockets: {0}")]
    Poll(#[from] io::Error),
}

/// Many clients and the thread that drives them.
#[derive(Debug)]
pub struct Swarm {
    network: Network,
}

impl Swarm {
    /// Clients with these indices, dealt out among the targets.
    pub fn new(targets: Vec<SocketAddr>, clients: Range<usize>) -> io::Result<Self> {
        Ok(Self { network: Network::new(targets, clients)? })
    }

    /// Wakes the swarm from another thread, so that its scenario's tick is called soon.
    pub fn waker(&self) -> Waker {
        self.network.waker()
    }

    /// Runs until the scenario stops.
    pub fn run(mut self, scenario: &mut impl Scenario) -> Result<(), SwarmError> {
        let mut events = Events::with_capacity(READINESS_MAX);
        loop {
            let now = Instant::now();
            self.deliver(scenario, now);
            let Flow::Continue(wish) = scenario.tick(now, &mut self.network) else { return Ok(()) };
            self.network.wait(&mut events, wish, TICK)?;
            for event in &events {
                self.network.ready(event);
                self.deliver(scenario, Instant::now());
            }
        }
    }

    /// Tells the scenario everything that happened, what its own actions cause included.
    fn deliver(&mut self, scenario: &mut impl Scenario, now: Instant) {
        while let Some((index, event)) = self.network.next_news() {
            scenario.event(index, event, now, &mut self.network);
        }
    }
}
