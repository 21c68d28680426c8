//! The HTTP side of a worker: it registers with an orchestrator, fetches orders, executes them with an [`Engine`], and
//! reports the progress.
//!
//! A separate thread fetches the orders, by requests that the orchestrator holds open. Progress is reported twice per
//! second, on request, and at once when a step is done. A report that could not be sent is sent again under the same
//! number, so that it counts once.

mod api;

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TryRecvError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::Engine;
use crate::control::{
    ClockReading, Fault, Job, NumberedOrder, Order, Position, Progress, Registration, RegistrationAccepted,
    boot_id,
};
use crate::measure::Usage;
use api::{Api, ApiError};

/// The longest time between two reports.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);
/// How long to wait for the current step before checking for orders.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// The delay between two attempts to reach an orchestrator that does not answer.
const RETRY_DELAY: Duration = Duration::from_millis(500);
/// The most orders that wait for the engine.
const ORDERS_MAX: usize = 16;
/// The number of round trips for comparing clocks; the fastest one counts.
const CLOCK_ROUND_TRIPS: usize = 16;

/// How a worker registers.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// The orchestrator's URL.
    pub orchestrator: String,
    /// The orchestrator's key, if it requires one.
    pub key: Option<String>,
    /// The most players that this process can run.
    pub players_max: u32,
}

/// The orchestrator refuses this worker.
#[derive(Debug, thiserror::Error)]
#[error("the orchestrator at {url} does not take this worker: {why}")]
pub struct LinkError {
    url: String,
    why: String,
}

/// A message from the thread that fetches orders.
enum Incoming {
    Order(Order),
    /// The orchestrator does not know this worker.
    Forgotten,
}

/// Why the worker stopped.
enum RunEnd {
    Leave,
    Forgotten,
}

/// Works for an orchestrator until that tells the worker to leave. If the orchestrator does not answer, the worker tries
/// again; `tell` receives a line when that begins.
pub fn work(options: &WorkerOptions, mut tell: impl FnMut(&str)) -> Result<(), LinkError> {
    let api = Api::new(&options.orchestrator, options.key.as_deref());
    let registration = Registration { name: name(), players_max: options.players_max, boot_id: boot_id() };
    let mut told = false;
    loop {
        match api.post::<RegistrationAccepted>("/v1/workers", &registration) {
            Ok(RegistrationAccepted { id }) => {
                told = false;
                if matches!(RegisteredWorker::new(&api, id).run(), RunEnd::Leave) {
                    return Ok(());
                }
            }
            Err(ApiError::Refused(why)) => return Err(LinkError { url: options.orchestrator.clone(), why }),
            Err(error @ (ApiError::Unreachable(_) | ApiError::Unknown)) => {
                if !std::mem::replace(&mut told, true) {
                    tell(&format!("no orchestrator answers at {}: {error}; trying on", options.orchestrator));
                }
                thread::sleep(RETRY_DELAY);
            }
        }
    }
}

/// Host name and process id.
fn name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{}/{}", host.trim(), std::process::id())
}

/// A registered worker, until it leaves or the orchestrator forgets it.
struct RegisteredWorker<'a> {
    api: &'a Api,
    id: u32,
    work: TestState,
    /// The number of the last report of the test.
    sequence: u64,
    clock_bound_ms: f64,
    unsent: Option<Progress>,
    last_push: Instant,
}

/// The state of the worker's test.
enum TestState {
    Nothing,
    /// The engine is being created, which takes time.
    Preparing {
        test: String,
        behind: Position,
        engine: Receiver<Result<Engine, Fault>>,
    },
    /// The engine could not be created, which was reported; the test will be finished.
    Refused {
        test: String,
        behind: Position,
    },
    /// A test is running.
    Running {
        test: String,
        behind: Position,
        engine: Box<Engine>,
        busy: bool,
    },
}

impl<'a> RegisteredWorker<'a> {
    fn new(api: &'a Api, id: u32) -> Self {
        Self {
            api,
            id,
            work: TestState::Nothing,
            sequence: 0,
            clock_bound_ms: 0.0,
            unsent: None,
            last_push: Instant::now(),
        }
    }

    fn run(mut self) -> RunEnd {
        let (sender, incoming) = mpsc::sync_channel(ORDERS_MAX);
        let (api, id) = (self.api.clone(), self.id);
        thread::spawn(move || fetch_orders(&api, id, &sender));
        loop {
            let Ok(next) = self.next(&incoming) else { return RunEnd::Forgotten };
            let ask = match next {
                Some(Incoming::Forgotten) => return RunEnd::Forgotten,
                Some(Incoming::Order(Order::Leave)) => return RunEnd::Leave,
                Some(Incoming::Order(order)) => self.execute(order),
                None => false,
            };
            let done = self.poll_done();
            if (ask || done || self.last_push.elapsed() >= PROGRESS_INTERVAL) && !self.push() {
                return RunEnd::Forgotten;
            }
        }
    }

    /// The next order, if one arrives before there is something else to do.
    fn next(&self, incoming: &Receiver<Incoming>) -> Result<Option<Incoming>, ()> {
        let until_push = PROGRESS_INTERVAL.saturating_sub(self.last_push.elapsed());
        let timeout = match &self.work {
            TestState::Running { engine, busy: true, .. } => {
                engine.wait(POLL_INTERVAL.min(until_push));
                return match incoming.try_recv() {
                    Ok(incoming) => Ok(Some(incoming)),
                    Err(TryRecvError::Empty) => Ok(None),
                    Err(TryRecvError::Disconnected) => Err(()),
                };
            }
            TestState::Preparing { .. } => POLL_INTERVAL.min(until_push),
            TestState::Running { .. } | TestState::Refused { .. } | TestState::Nothing => until_push,
        };
        match incoming.recv_timeout(timeout) {
            Ok(incoming) => Ok(Some(incoming)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(()),
        }
    }

    /// Executes an order; returns whether progress has to be reported now.
    fn execute(&mut self, order: Order) -> bool {
        match order {
            Order::Prepare(job) => self.prepare(*job),
            Order::Begin { test, position, at_unix_ns } => {
                if let TestState::Running { test: running, engine, busy, .. } = &mut self.work
                    && *running == test
                {
                    engine.begin(position, at_unix_ns);
                    *busy = true;
                }
            }
            Order::Report => return true,
            Order::Finish { test } => self.finish(&test),
            Order::Leave => {}
        }
        false
    }

    fn prepare(&mut self, mut job: Job) {
        (self.sequence, self.unsent) = (0, None);
        let (offset_ns, bound_ms) = compare_clocks(self.api);
        (job.clock_offset_ns, self.clock_bound_ms) = (offset_ns, bound_ms);
        let (test, behind) = (job.test.clone(), Position::behind(&job.scenario));
        let (sender, engine) = mpsc::sync_channel(1);
        thread::spawn(move || drop(sender.send(Engine::prepare(job))));
        self.work = TestState::Preparing { test, behind, engine };
    }

    fn finish(&mut self, test: &str) {
        let work = std::mem::replace(&mut self.work, TestState::Nothing);
        let (behind, last) = match work {
            TestState::Running { test: running, behind, engine, .. } if running == test => {
                (behind, engine.finish())
            }
            TestState::Preparing { test: other, behind, .. } | TestState::Refused { test: other, behind }
                if other == test =>
            {
                (behind, Progress::default())
            }
            other => {
                self.work = other;
                return;
            }
        };
        // The fault was reported before, or does not matter any more.
        let last = Progress { test: test.to_owned(), position: behind, done: true, fault: None, ..last };
        self.send(last);
    }

    /// Whether a step, or the preparation, has just been completed.
    fn poll_done(&mut self) -> bool {
        match &mut self.work {
            TestState::Running { engine, busy, .. } if *busy && engine.wait(Duration::ZERO) => {
                *busy = false;
                true
            }
            TestState::Preparing { engine, .. } => {
                let made = match engine.try_recv() {
                    Ok(made) => made,
                    Err(TryRecvError::Empty) => return false,
                    Err(TryRecvError::Disconnected) => {
                        Err(Fault::Worker { why: "the worker's engine could not be made".to_owned() })
                    }
                };
                self.made(made);
                true
            }
            _ => false,
        }
    }

    fn made(&mut self, made: Result<Engine, Fault>) {
        let TestState::Preparing { test, behind, .. } = std::mem::replace(&mut self.work, TestState::Nothing)
        else {
            return;
        };
        match made {
            Ok(engine) => {
                self.work = TestState::Running { test, behind, engine: Box::new(engine), busy: false };
            }
            Err(fault) => {
                self.work = TestState::Refused { test: test.clone(), behind };
                let refusal = Progress { test, done: true, fault: Some(fault), ..Progress::default() };
                self.send(refusal);
            }
        }
    }

    /// Reports progress; `false` if the orchestrator does not know this worker.
    fn push(&mut self) -> bool {
        self.last_push = Instant::now();
        // An unsent report goes first, so that nothing is lost and the order is kept.
        if let Some(unsent) = self.unsent.take()
            && !self.send_numbered(unsent)
        {
            return false;
        }
        if self.unsent.is_some() {
            return true;
        }
        match &mut self.work {
            TestState::Running { engine, .. } => {
                let progress = engine.progress();
                self.send(progress)
            }
            TestState::Preparing { test, .. } | TestState::Refused { test, .. } => {
                let sign_of_life = Progress { test: test.clone(), ..Progress::default() };
                self.send(sign_of_life)
            }
            TestState::Nothing => true,
        }
    }

    fn send(&mut self, mut progress: Progress) -> bool {
        self.sequence += 1;
        progress.sequence = self.sequence;
        progress.clock_bound_ms = self.clock_bound_ms;
        if let Ok(cpu) = Usage::cpu_of_self() {
            progress.cpu_s = cpu.as_secs_f64();
        }
        self.send_numbered(progress)
    }

    fn send_numbered(&mut self, progress: Progress) -> bool {
        let sent = self.api.post::<()>(&format!("/v1/workers/{}/progress", self.id), &progress);
        match sent {
            Ok(()) => true,
            Err(ApiError::Unreachable(_)) => {
                self.unsent = Some(progress);
                true
            }
            Err(ApiError::Unknown | ApiError::Refused(_)) => false,
        }
    }
}

/// Fetches orders until the orchestrator does not know this worker, or the receiver is gone.
fn fetch_orders(api: &Api, id: u32, sender: &SyncSender<Incoming>) {
    let mut after = 0;
    loop {
        match api.get::<Vec<NumberedOrder>>(&format!("/v1/workers/{id}/orders?after={after}")) {
            Ok(orders) => {
                for NumberedOrder { number, order } in orders {
                    after = number;
                    if sender.send(Incoming::Order(order)).is_err() {
                        return;
                    }
                }
            }
            Err(ApiError::Unreachable(_)) => thread::sleep(RETRY_DELAY),
            Err(ApiError::Unknown | ApiError::Refused(_)) => {
                // The receiver may be gone already, for the same reason.
                let _ = sender.send(Incoming::Forgotten);
                return;
            }
        }
    }
}

/// The orchestrator's Unix time minus this machine's in nanoseconds, and the largest error of that in
/// milliseconds: half of the quickest round trip.
fn compare_clocks(api: &Api) -> (i64, f64) {
    let mut best = (0, f64::INFINITY);
    let own = boot_id();
    for _ in 0..CLOCK_ROUND_TRIPS {
        let (sent, start) = (SystemTime::now(), Instant::now());
        let Ok(time) = api.get::<ClockReading>("/v1/clock") else { continue };
        if time.boot_id == own && !own.is_empty() {
            return (0, 0.0);
        }
        let half = start.elapsed() / 2;
        let bound_ms = half.as_secs_f64() * 1000.0;
        if bound_ms < best.1 {
            let middle = sent.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default() + half;
            let offset = i128::from(time.unix_ns) - middle.as_nanos().cast_signed();
            best = (i64::try_from(offset).unwrap_or_default(), bound_ms);
        }
    }
    if best.1.is_finite() { best } else { (0, 0.0) }
}
