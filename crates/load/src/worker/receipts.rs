//! Receipts of notifications: the stream that tells them, and the notifications that wait for theirs.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::api::{Api, CallError};
use super::recorder::{Count, Metric, Recorder};
use super::setup::Setup;

/// How long the stream may take to begin.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a stream that ended is tried again.
const RETRY_TIMEOUT: Duration = Duration::from_secs(10);
/// The delay between two attempts.
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// Receipts of one phase.
#[derive(Debug)]
pub(super) struct Receipts {
    waiting: Mutex<PendingReceipts>,
    recorder: Arc<Recorder>,
    /// Nobody wants to know any more.
    over: AtomicBool,
    /// Whether there is a stream that tells them, or will be again.
    told: AtomicBool,
}

#[derive(Debug, Default)]
struct PendingReceipts {
    /// When each notification was due, by id.
    due: HashMap<String, Instant>,
    /// Receipts that came before the answer that names the notification.
    early: HashMap<String, Instant>,
}

impl Receipts {
    /// Follows the receipts of this worker's players from now on; they are counted by `recorder`.
    pub(super) fn follow(setup: &Arc<Setup>, recorder: &Arc<Recorder>) -> Arc<Self> {
        let receipts = Arc::new(Self {
            waiting: Mutex::default(),
            recorder: Arc::clone(recorder),
            over: AtomicBool::new(false),
            told: AtomicBool::new(false),
        });
        let Some(api) = Api::of(&setup.job.target).pop() else { return receipts };
        let (begun, has_begun) = mpsc::sync_channel(1);
        let (setup, shared) = (Arc::clone(setup), Arc::clone(&receipts));
        // Nobody waits for the end of this thread: it learns that it is over by the next line, and the server sends
        // one every few seconds.
        std::thread::spawn(move || shared.read(&api, &setup, begun));
        let begun = has_begun.recv_timeout(BEGIN_TIMEOUT);
        if begun == Err(RecvTimeoutError::Timeout) {
            recorder.error("receipts: the stream of events did not begin");
        }
        receipts.told.store(begun.is_ok(), Ordering::Release);
        receipts
    }

    /// Reads the stream until nobody wants to know any more. One that ends, because the server is upgraded for example, goes
    /// on behind the last event that was seen.
    fn read(&self, api: &Api, setup: &Setup, begun: SyncSender<()>) {
        let mut begun = Some(begun);
        let (mut last, mut failing) = (None, None);
        loop {
            let ended = api.receipts(&mut last, |event| {
                match event {
                    None => {
                        failing = None;
                        let _ = begun.take().map(|begun| begun.send(()));
                    }
                    Some((id, to)) if setup.number(to).is_some() => self.arrived(id),
                    Some(_) => {}
                }
                !self.over.load(Ordering::Acquire)
            });
            if self.over.load(Ordering::Acquire) {
                return;
            }
            let since = *failing.get_or_insert_with(Instant::now);
            match ended {
                Err(error) if is_final(&error) || since.elapsed() > RETRY_TIMEOUT => {
                    self.recorder.error_with(format!("receipts: {}", error.kind()), error.words());
                    return self.told.store(false, Ordering::Release);
                }
                _ => std::thread::sleep(RETRY_DELAY),
            }
        }
    }

    /// A notification that was due then is on its way.
    pub(super) fn expect(&self, id: String, due: Instant) {
        let mut waiting = self.lock();
        match waiting.early.remove(&id) {
            Some(arrived) => self.count(arrived, due),
            None => drop(waiting.due.insert(id, due)),
        }
    }

    /// Notifications whose receipts are to come.
    pub(super) fn missing(&self) -> usize {
        if self.told.load(Ordering::Acquire) { self.lock().due.len() } else { 0 }
    }

    /// Nobody wants to know any more.
    pub(super) fn forget(&self) {
        self.over.store(true, Ordering::Release);
    }

    fn arrived(&self, id: &str) {
        let now = Instant::now();
        let mut waiting = self.lock();
        match waiting.due.remove(id) {
            Some(due) => self.count(now, due),
            None => drop(waiting.early.insert(id.to_owned(), now)),
        }
    }

    fn count(&self, arrived: Instant, due: Instant) {
        self.recorder.count(Count::Receipts);
        self.recorder.time(Metric::Receipt, arrived.saturating_duration_since(due));
    }

    fn lock(&self) -> MutexGuard<'_, PendingReceipts> {
        // The maps are whole between calls whatever panicked elsewhere.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the same request would be refused again.
fn is_final(error: &CallError) -> bool {
    matches!(error, CallError::Refused { status: 400..=499, .. })
}
