//! The orchestrator: it takes tests over HTTP, shares their players out to workers, leads everyone through the phases
//! and adds up what they say.
//!
//! ```text
//! POST /loadtests ─► request ─► bench (queue) ─► conduct (a thread) ──orders──► roster ─► GET  …/orders   (worker)
//! GET  /loadtests/ID ◄─ report ◄─ trial ◄──────────────progress──────────────────────────  POST …/progress (worker)
//! ```
//!
//! One test runs at a time; sixteen more may wait, then 429 is answered. Workers push their progress; who is silent is
//! asked for it, and given up when that does not help.

mod bench;
mod conduct;
mod gone;
mod problem;
mod request;
mod roster;
mod routes;
mod sessions;
mod shares;
mod trial;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use crate::control::Order;
use crate::report::{Glance, Report, Status};
use bench::Bench;
pub use request::{Planned, Request, RequestError, ServerRequest};
pub use sessions::Sessions;
pub use trial::Patience;

/// How long answers that are under way may take at the end.
const CLOSE_WAIT: Duration = Duration::from_millis(500);

/// How an orchestrator is set up.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Asked for in every request, if there is one.
    pub key: Option<String>,
    /// How long workers may be silent.
    pub patience: Patience,
    /// A command that prints how many sessions the server has.
    pub sessions_command: Option<String>,
}

/// An orchestrator that runs.
#[derive(Debug)]
pub struct Orchestrator {
    bench: Arc<Bench>,
    address: SocketAddr,
    sessions_command: Option<String>,
    conductor: Option<JoinHandle<()>>,
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
        let bench = Arc::new(Bench::default());
        let app = routes::App {
            bench: Arc::clone(&bench),
            key: options.key.map(Into::into),
            sessions_command: options.sessions_command.as_deref().map(Into::into),
            boot_id: boot_id().into(),
        };
        // It ends with the runtime; until then it fails only by a bug of its own.
        runtime.spawn(async move { axum::serve(listener, routes::routes(app)).await });
        let conducted = Arc::clone(&bench);
        let conductor = thread::Builder::new()
            .name("conductor".to_owned())
            .spawn(move || conduct::conduct_all(&conducted, options.patience))?;
        Ok(Self {
            bench,
            address,
            sessions_command: options.sessions_command,
            conductor: Some(conductor),
            runtime: Some(runtime),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Puts a test into the queue; gives its id.
    pub fn submit(&self, request: Request) -> Result<String, SubmitError> {
        let planned = Planned::new(request, self.sessions_command.as_deref())?;
        let id = new_id().map_err(SubmitError::Place)?;
        if !self.bench.lock().submit(id.clone(), planned) {
            return Err(SubmitError::Place("the queue is full".to_owned()));
        }
        self.bench.ring();
        Ok(id)
    }

    /// Waits until a test is over, at most so long; whether it is.
    pub fn wait(&self, id: &str, timeout: Duration) -> bool {
        let deadline = std::time::Instant::now() + timeout;
        let mut state = self.bench.lock();
        loop {
            let left = deadline.saturating_duration_since(std::time::Instant::now());
            if state.is_over(id) || left.is_zero() {
                return state.is_over(id);
            }
            state = self.bench.wait(state, left);
        }
    }

    /// A few figures of the test under way.
    pub fn glance(&self) -> Option<Glance> {
        self.bench.lock().running.as_ref().map(|(_, trial)| trial.glance(Status::Running))
    }

    /// The report of a test, as far as it is.
    pub fn report(&self, id: &str) -> Option<Arc<Report>> {
        self.bench.lock().report(id)
    }

    /// Ends a test before its time.
    pub fn abort(&self, id: &str) {
        self.bench.lock().abort(id);
        self.bench.ring();
    }

    /// How many workers are there.
    pub fn workers(&self) -> usize {
        self.bench.lock().roster.present().count()
    }
}

impl Drop for Orchestrator {
    fn drop(&mut self) {
        {
            let mut state = self.bench.lock();
            state.closing = true;
            state.roster.order_all(&Order::Leave);
        }
        self.bench.ring();
        if let Some(conductor) = self.conductor.take() {
            // It panicked, or it ended: there is nothing more to do either way.
            let _ = conductor.join();
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
