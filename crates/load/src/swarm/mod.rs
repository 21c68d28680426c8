//! Very many clients in one thread: [`Swarm`] connects them at the pace of a [`Ramp`], keeps them, and tells a
//! [`Scenario`] what happens to each. The scenario acts through [`Network`].

mod connection;
mod network;
mod ramp;
mod source;

use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::time::{Duration, Instant};

use mio::Events;

use crate::client::{Event, Options};
pub use network::{Network, Waker};
use ramp::Pacer;
pub use ramp::Ramp;

/// Readiness events taken from the kernel at once.
const READINESS_MAX: usize = 1024;
/// The longest time between two calls of [`Scenario::tick`].
const TICK: Duration = Duration::from_millis(50);

/// What the clients of a swarm do. Clients are told apart by their index.
pub trait Scenario {
    /// Says who the client is; it starts to connect now.
    fn start(&mut self, index: usize, now: Instant) -> Options;

    /// Learns of an event of a client. [`Event::Closed`] is each client's last.
    fn event(&mut self, index: usize, event: Event, now: Instant, network: &mut Network);

    /// Called after everything that happened at once, and at least every 50 ms.
    fn tick(&mut self, now: Instant, network: &mut Network) -> Flow;
}

/// Whether a swarm goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// It goes on.
    Continue,
    /// It ends; all connections are dropped.
    Stop,
}

/// Why a swarm ended other than by its scenario.
#[derive(Debug, thiserror::Error)]
pub enum SwarmError {
    /// The kernel does not let us wait for sockets.
    #[error("waiting for sockets: {0}")]
    Poll(#[from] io::Error),
    /// The scenario did not end in time.
    #[error("not done by the deadline")]
    Deadline,
}

/// Many clients and the thread that drives them.
#[derive(Debug)]
pub struct Swarm {
    network: Network,
    clients: Range<usize>,
    ramp: Ramp,
}

impl Swarm {
    /// Clients with these indices, of one target.
    pub fn new(target: SocketAddr, clients: Range<usize>, ramp: Ramp) -> io::Result<Self> {
        Ok(Self { network: Network::new(target, clients.clone())?, clients, ramp })
    }

    /// Wakes the swarm from another thread, so that its scenario's tick is called soon.
    pub fn waker(&self) -> Waker {
        self.network.waker()
    }

    /// Connects the clients and runs until the scenario stops or the time is over.
    pub fn run(mut self, scenario: &mut impl Scenario, deadline: Instant) -> Result<(), SwarmError> {
        let mut pacer = Pacer::new(self.ramp, self.clients.len(), Instant::now());
        let mut events = Events::with_capacity(READINESS_MAX);
        loop {
            let now = Instant::now();
            self.start_due(&mut pacer, scenario, now);
            self.deliver(scenario, now);
            if scenario.tick(now, &mut self.network) == Flow::Stop {
                return Ok(());
            }
            if now >= deadline {
                return Err(SwarmError::Deadline);
            }
            self.network.wait(&mut events, timeout(&pacer, deadline, now))?;
            for event in &events {
                self.network.ready(event);
                self.deliver(scenario, Instant::now());
            }
        }
    }

    fn start_due(&mut self, pacer: &mut Pacer, scenario: &mut impl Scenario, now: Instant) {
        loop {
            let first = self.clients.start + pacer.started();
            let count = pacer.take(self.network.logging_in(), now);
            if count == 0 {
                return;
            }
            for index in first..first + count {
                let options = scenario.start(index, now);
                self.network.connect(index, options);
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

fn timeout(pacer: &Pacer, deadline: Instant, now: Instant) -> Duration {
    let due = pacer.next_due().unwrap_or(deadline).min(deadline);
    // Waiting is by whole milliseconds: rounded up, so that the loop does not spin for the last fraction.
    due.saturating_duration_since(now).clamp(Duration::from_millis(1), TICK)
}
