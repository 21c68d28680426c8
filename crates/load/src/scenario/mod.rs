//! What can be measured: each scenario drives a [`Population`] and gives a [`Report`](crate::report::Report).
//!
//! A scenario has a conductor, the calling thread, and a crew of threads with a swarm each (`crew`). All clients log
//! in and are counted in the same way (`player`); what they do then is the scenario's own behaviour. The threads meet
//! at a board of counters (`board`).

mod board;
mod crew;
pub mod fanout;
pub mod login_storm;
mod meter;
pub mod one_to_one;
mod player;
mod population;
mod publisher;
mod ramp;

pub use population::{Population, resolve};
pub use publisher::{PublishError, Publisher};
pub use ramp::Ramp;

use std::io;

use carillon_wire::jid::JidError;

use crate::blocking::ConnectError;
use crate::client::tls::TlsSetupError;
use crate::measure::ProcessError;
use crate::swarm::SwarmError;

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The target cannot be resolved.
    #[error("target {target:?} has no address{}", error.as_ref().map(|error| format!(": {error}")).unwrap_or_default())]
    Target {
        /// As given.
        target: String,
        /// What the resolver said.
        error: Option<io::Error>,
    },
    /// Prefix and domain do not make accounts.
    #[error("accounts: {0}")]
    Account(#[source] JidError),
    /// An address given is none.
    #[error("{jid:?} is no JID: {error}")]
    Jid {
        /// As given.
        jid: String,
        /// What is wrong with it.
        error: JidError,
    },
    /// The system does not let a process open so many sockets.
    #[error(
        "{needed} descriptors are needed, the limit is {limit}: raise it (ulimit -n) or use fewer players a process"
    )]
    Descriptors {
        /// How many the run needs.
        needed: u64,
        /// How many there are.
        limit: u64,
    },
    /// A file of certificates or keys cannot be read or written.
    #[error("{path}: {error}")]
    File {
        /// As given.
        path: String,
        /// What the system said.
        error: io::Error,
    },
    /// TLS cannot be set up.
    #[error(transparent)]
    Tls(#[from] TlsSetupError),
    /// The server's process cannot be looked at.
    #[error("server process: {0}")]
    Process(#[from] ProcessError),
    /// A swarm ended before its time.
    #[error(transparent)]
    Swarm(#[from] SwarmError),
    /// The publisher cannot log in.
    #[error("publisher: {0}")]
    Publisher(#[from] ConnectError),
    /// An item could not be published.
    #[error("publishing: {0}")]
    Publish(#[from] PublishError),
    /// The run's deadline passed.
    #[error(
        "not done by the deadline: of {population} clients {online} logged in, {failed} failed, {lost} were lost"
    )]
    Deadline {
        /// How many clients there are.
        population: usize,
        /// How many logged in.
        online: usize,
        /// How many failed to.
        failed: usize,
        /// How many sessions ended unasked.
        lost: usize,
    },
    /// One of our own threads panicked.
    #[error("a thread of the load tester panicked")]
    Panicked,
}
