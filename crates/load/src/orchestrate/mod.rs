//! The orchestrator: it accepts tests over HTTP, distributes their players over workers, takes all of them through the
//! phases and adds up their progress.
//!
//! ```text
//! POST /loadtests ─► request ─► state (queue) ─► runner (a thread) ──orders──► workers ─► GET  …/orders   (worker)
//! GET  /loadtests/ID ◄─ report ◄─ running_test ◄────────progress────────────────────────  POST …/progress (worker)
//! ```
//!
//! One test runs at a time and 16 may wait; further requests get 429. Workers push their progress. A silent worker is asked
//! for its progress, and counts as lost when it does not answer.

mod command;
mod id;
mod problem;
mod request;
mod routes;
mod runner;
mod running_test;
mod session_watch;
mod sessions;
mod shares;
mod state;
mod workers;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use crate::control::{Order, boot_id};
use crate::report::{Report, Snapshot, Status};
use id::new_id;
pub use request::{PlannedTest, Request, RequestError, ServerRequest, Upgrade};
pub use running_test::SilenceLimits;
pub use sessions::Sessions;
use state::SharedState;

/// The time limit for answers that are in progress at the end.
const CLOSE_WAIT: Duration = Duration::from_millis(500);

/// Options of an orchestrator.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The key that every request must carry, if there is one.
    pub key: Option<String>,
    /// How long workers may be silent.
    pub silence_limits: SilenceLimits,
    /// A command that prints the server's number of sessions.
    pub sessions_command: Option<String>,
    /// A command to be run during each test that is submitted by [`Orchestrator::submit`].
    pub upgrade: Option<Upgrade>,
}

/// A running orchestrator.
#[derive(Debug)]
pub struct Orchestrator {
    shared: Arc<SharedState>,
    address: SocketAddr,
    sessions_command: Option<String>,
    upgrade: Option<Upgrade>,
    runner: Option<JoinHandle<()>>,
    runtime: Option<Runtime>,
}

/// Why a test is refused.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    /// The request is invalid.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The queue is full, or no id can be generated.
    #[error("{0}")]
    Place(String),
}

impl Orchestrator {
    /// Starts one at an address; port 0 is a free port.
    pub fn start(listen: SocketAddr, options: Options) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("orchestrator")
            .enable_all()
            .build()?;
        let listener = runtime.block_on(TcpListener::bind(listen))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(SharedState::default());
        let app = routes::App {
            shared: Arc::clone(&shared),
            key: options.key.map(Into::into),
            sessions_command: options.sessions_command.as_deref().map(Into::into),
            boot_id: boot_id().into(),
        };
        // It ends with the runtime and cannot fail before.
        runtime.spawn(async move { axum::serve(listener, routes::routes(app)).await });
        let queue = Arc::clone(&shared);
        let runner = thread::Builder::new()
            .name("runner".to_owned())
            .spawn(move || runner::run_queue(&queue, options.silence_limits))?;
        Ok(Self {
            shared,
            address,
            sessions_command: options.sessions_command,
            upgrade: options.upgrade,
            runner: Some(runner),
            runtime: Some(runtime),
        })
    }

    /// The address on which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Adds a test to the queue and returns its id.
    pub fn submit(&self, request: Request) -> Result<String, SubmitError> {
        let planned = PlannedTest::new(request, self.sessions_command.as_deref(), self.upgrade.as_ref())?;
        let id = new_id().map_err(SubmitError::Place)?;
        if !self.shared.lock().submit(id.clone(), planned) {
            return Err(SubmitError::Place("the queue is full".to_owned()));
        }
        self.shared.notify();
        Ok(id)
    }

    /// Waits until a test is over or the timeout expires; returns whether it is over.
    pub fn wait(&self, id: &str, timeout: Duration) -> bool {
        let deadline = std::time::Instant::now() + timeout;
        let mut state = self.shared.lock();
        loop {
            let left = deadline.saturating_duration_since(std::time::Instant::now());
            if state.is_over(id) || left.is_zero() {
                return state.is_over(id);
            }
            state = self.shared.wait(state, left);
        }
    }

    /// A few figures of the running test.
    pub fn snapshot(&self) -> Option<Snapshot> {
        self.shared.lock().running.as_ref().map(|(_, current)| current.snapshot(Status::Running))
    }

    /// The report of a test so far.
    pub fn report(&self, id: &str) -> Option<Arc<Report>> {
        self.shared.lock().report(id)
    }

    /// Aborts a test.
    pub fn abort(&self, id: &str) {
        self.shared.lock().abort(id);
        self.shared.notify();
    }

    /// The number of registered workers.
    pub fn workers(&self) -> usize {
        self.shared.lock().workers.present().count()
    }
}

impl Drop for Orchestrator {
    fn drop(&mut self) {
        {
            let mut state = self.shared.lock();
            state.closing = true;
            state.workers.order_all(&Order::Leave);
        }
        self.shared.notify();
        if let Some(runner) = self.runner.take() {
            // It ended or panicked: there is nothing more to do in either case.
            let _ = runner.join();
        }
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(CLOSE_WAIT);
        }
    }
}

#[cfg(test)]
mod tests;
