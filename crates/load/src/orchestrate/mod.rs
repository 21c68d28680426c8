//! The orchestrator: it accepts tests over HTTP, distributes their players over workers, takes all of them through the
//! phases and adds up their progress.
//!
//! ```text
//! POST /loadtests ─► request ─► state (queue) ─► runner (a thread) ──orders──► workers ─► GET  …/orders   (worker)
//! GET  /loadtests/ID ◄─ report ◄─ running_test ◄────────progress─────────────────────────  POST …/progress (worker)
//! ```
//!
//! One test runs at a time and 16 may wait; further requests get 429. Workers push their progress. A silent worker is asked
//! for its progress, and counts as lost when it does not answer.

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

use crate::control::Order;
use crate::report::{Report, Snapshot, Status};
pub use request::{PlannedTest, Request, RequestError, ServerRequest};
pub use running_test::SilenceLimits;
pub use sessions::Sessions;
use state::SharedState;

/// How long answers that are under way may take at the end.
const CLOSE_WAIT: Duration = Duration::from_millis(500);

/// How an orchestrator is set up.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Asked for in every request, if there is one.
    pub key: Option<String>,
    /// How long workers may be silent.
    pub silence_limits: SilenceLimits,
    /// A command that prints how many sessions the server has.
    pub sessions_command: Option<String>,
}

/// An orchestrator that runs.
#[derive(Debug)]
pub struct Orchestrator {
    shared: Arc<SharedState>,
    address: SocketAddr,
    sessions_command: Option<String>,
    runner: Option<JoinHandle<()>>,
    runtime: Option<Runtime>,
}

/// A test cannot be taken.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    /// It makes no sense.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// It has no place, or no name can be made for it.
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
        // It ends with the runtime; until then it fails only by a bug of its own.
        runtime.spawn(async move { axum::serve(listener, routes::routes(app)).await });
        let queue = Arc::clone(&shared);
        let runner = thread::Builder::new()
            .name("runner".to_owned())
            .spawn(move || runner::run_queue(&queue, options.silence_limits))?;
        Ok(Self {
            shared,
            address,
            sessions_command: options.sessions_command,
            runner: Some(runner),
            runtime: Some(runtime),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Puts a test into the queue; gives its id.
    pub fn submit(&self, request: Request) -> Result<String, SubmitError> {
        let planned = PlannedTest::new(request, self.sessions_command.as_deref())?;
        let id = new_id().map_err(SubmitError::Place)?;
        if !self.shared.lock().submit(id.clone(), planned) {
            return Err(SubmitError::Place("the queue is full".to_owned()));
        }
        self.shared.notify();
        Ok(id)
    }

    /// Waits until a test is over, at most so long; whether it is.
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

    /// A few figures of the test under way.
    pub fn snapshot(&self) -> Option<Snapshot> {
        self.shared.lock().running.as_ref().map(|(_, current)| current.snapshot(Status::Running))
    }

    /// The report of a test, as far as it is.
    pub fn report(&self, id: &str) -> Option<Arc<Report>> {
        self.shared.lock().report(id)
    }

    /// Ends a test before its time.
    pub fn abort(&self, id: &str) {
        self.shared.lock().abort(id);
        self.shared.notify();
    }

    /// How many workers are there.
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
            // It panicked, or it ended: there is nothing more to do either way.
            let _ = runner.join();
        }
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(CLOSE_WAIT);
        }
    }
}

/// A name for a test that no other has.
fn new_id() -> Result<String, String> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| format!("the system gives no random numbers: {error}"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The kernel's boot id: who has the same shares this machine's clock.
pub(crate) fn boot_id() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

#[cfg(test)]
mod tests;
