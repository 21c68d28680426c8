//! The claims of a cell in Redis, or Valkey: one key per account, `PREFIX:a:{ACCOUNT}`, whose value is the epoch of its home.
//!
//! [`open_log`] opens the log of a node's sessions, which is beside them.
//!
//! What nodes ask is gathered: one pipeline is under way, and what is asked meanwhile makes the next one. A claim is a script of one key, so it is
//! decided at once. A claim whose answer was lost is asked again on the next connection.

mod log;
mod options;
mod queue;
mod server;

pub use log::open_log;
pub use options::{OpenError, Options};

use crate::answering::Answering;
use ::redis::RedisError;
use carillon_core::model::Epoch;
use carillon_core::ports::claims::{ACCOUNT_BYTES_MAX, Reached, Reaches};
use carillon_core::ports::{Claimed, Claims, Policy, Reply, Unavailable};
use queue::{Asked, Queue, What};
use server::Server;
use std::fmt::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::{self, Handle};
use tokio::time;

/// Questions in one round trip.
const PIPELINE: usize = 1000;
/// A server that is asked nothing for so long is asked whether it is there.
const PING_EVERY: Duration = Duration::from_secs(1);
/// How often it is looked for questions that have waited for too long.
const EXPIRE_EVERY: Duration = Duration::from_millis(50);
/// The pause between two attempts to connect, at first and at most.
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// Opens the claims of a node. Its work is done on this runtime. A server that cannot be reached is tried again and again.
///
/// # Errors
/// When the options are wrong.
pub fn open(
    options: &Options,
    own: Epoch,
    reaches: Reaches,
    runtime: &Handle,
) -> Result<Arc<dyn Claims>, OpenError> {
    // What is wrong with the options is found out now.
    options.client()?;
    let shared = Arc::new(Shared {
        own,
        options: options.clone(),
        queue: Queue::new(options.queue_bytes_max),
        view: Mutex::default(),
        reaches,
    });
    runtime.spawn(run(shared.clone()));
    Ok(Arc::new(RedisClaims(shared)))
}

/// Connects once, to see whether the server lets the node in.
///
/// # Errors
/// Why it does not.
pub fn inspect(options: &Options) -> Result<(), String> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
    let connected = runtime.block_on(Server::connect(options));
    connected.map(drop).map_err(|e| options.explained(&e))
}

/// The claims of a node.
struct RedisClaims(Arc<Shared>);

struct Shared {
    own: Epoch,
    options: Options,
    queue: Queue,
    view: Mutex<Arc<View>>,
    reaches: Reaches,
}

/// Who lives.
#[derive(Default)]
struct View {
    living: Arc<[Epoch]>,
    newest: Epoch,
    /// The living, each between commas.
    packed: String,
}

impl View {
    fn lives(&self, epoch: Epoch) -> bool {
        epoch > self.newest || self.living.contains(&epoch)
    }
}

impl Shared {
    fn ask(&self, account: Box<str>, what: What) {
        // What is dropped is answered.
        if account.len() <= ACCOUNT_BYTES_MAX {
            self.queue.push(Asked::new(account, what));
        }
    }

    fn view(&self) -> Arc<View> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Claims for RedisClaims {
    fn claim(&self, account: Box<str>, policy: Policy, reply: Reply<Result<Claimed, Unavailable>>) {
        self.0.ask(account, What::Claim(policy, Answering::new(reply)));
    }

    fn locate(&self, account: Box<str>, reply: Reply<Result<Option<Epoch>, Unavailable>>) {
        self.0.ask(account, What::Locate(Answering::new(reply)));
    }

    fn forget(&self, account: Box<str>, of: Epoch) {
        self.0.ask(account, What::Forget(of));
    }

    fn view(&self, living: Arc<[Epoch]>, newest: Epoch) {
        let mut packed = String::from(",");
        for epoch in living.iter() {
            write!(packed, "{epoch},").expect("a string takes all");
        }
        *self.0.view.lock().unwrap_or_else(PoisonError::into_inner) =
            Arc::new(View { living, newest, packed });
    }

    fn close(&self) {
        self.0.queue.close();
    }
}

impl Drop for RedisClaims {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for RedisClaims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisClaims").field("own", &self.0.own).finish_non_exhaustive()
    }
}

/// Answers what is left when the runtime ends before the claims are closed.
struct Ending(Arc<Shared>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.queue.close();
    }
}

/// Connects and asks until the claims are closed.
async fn run(shared: Arc<Shared>) {
    let _ending = Ending(shared.clone());
    let mut known: Option<String> = None;
    let mut away = Instant::now();
    while !shared.queue.is_closed() {
        let Some(mut server) = connect(&shared, away).await else { return };
        let lost = known.as_ref().is_some_and(|known| *known != server.run);
        tracing::info!(lost, "the directory is connected to Redis");
        (shared.reaches)(Reached::Back { lost });
        known = Some(server.run.clone());
        let e = serve(&shared, &mut server).await;
        away = Instant::now();
        if let Err(e) = e {
            tracing::warn!(error = %e, "the connection to Redis is lost");
            (shared.reaches)(Reached::Away);
        }
    }
}

/// Connects, trying again and again, while what waits for too long is answered. Nothing once the claims are closed.
async fn connect(shared: &Shared, away: Instant) -> Option<Server> {
    let connecting = async {
        let (mut pause, mut failures) = (PAUSE_MIN, 0u64);
        loop {
            match Server::connect(&shared.options).await {
                Ok(server) => return server,
                Err(e) => {
                    failures += 1;
                    if failures.is_power_of_two() {
                        let error = shared.options.explained(&e);
                        tracing::warn!(error, failures, "Redis cannot be reached");
                    }
                }
            }
            time::sleep(pause).await;
            pause = (2 * pause).min(PAUSE_MAX);
        }
    };
    let expiring = async {
        while !shared.queue.is_closed() {
            // Whoever asks while it is away for long does not wait.
            let deadline = shared.options.deadline;
            let is_long = away.elapsed() >= deadline;
            shared.queue.expire(if is_long { Duration::ZERO } else { deadline });
            drop(time::timeout(EXPIRE_EVERY, shared.queue.wakes.notified()).await);
        }
    };
    tokio::select! {
        server = connecting => Some(server),
        () = expiring => None,
    }
}

/// Asks what waits, until the connection is lost or the claims are closed.
async fn serve(shared: &Shared, server: &mut Server) -> Result<(), RedisError> {
    while !shared.queue.is_closed() {
        let asked = shared.queue.take(PIPELINE);
        if asked.is_empty() {
            if time::timeout(PING_EVERY, shared.queue.wakes.notified()).await.is_err() {
                server.ping().await?;
            }
            continue;
        }
        if let Err((left, e)) = server.ask(asked, &shared.options.prefix, shared.own, &shared.view()).await {
            shared.queue.put_back(left);
            return Err(e);
        }
    }
    Ok(())
}
