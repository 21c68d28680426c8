//! The worker's provider: it sends notifications over HTTP to the worker's own players, by a few threads so that waiting for
//! the answer to one batch does not delay the next.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::json;

use super::api::Api;
use super::mark::{self, JsonText, Mark, Marks};
use super::receipts::Receipts;
use super::recorder::{Count, Recorder};
use super::schedule::{Due, Schedule};
use super::setup::Setup;
use super::step::{StepStart, ThreadContext};
use crate::control::Fault;
use crate::plan::{Action, Notify};

/// Threads that send, hence requests in flight at the same time.
const SENDERS: usize = 4;
/// How often the notifier checks whether all notifications have arrived.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// When nothing has arrived for this long, the rest is missing.
const ARRIVAL_TIMEOUT: Duration = Duration::from_secs(10);

/// The notifications of one phase.
struct Sending<'a> {
    setup: &'a Setup,
    recorder: &'a Recorder,
    api: &'a Api,
    notify: &'a Notify,
    marks: Marks,
    phase: u32,
    until: Instant,
    schedule: Mutex<NumberedSchedule>,
    receipts: &'a Receipts,
    /// Notifications that the server has accepted.
    accepted: AtomicU64,
    senders: AtomicUsize,
    given_up: AtomicBool,
}

/// A schedule that numbers the notifications.
struct NumberedSchedule {
    schedule: Schedule,
    taken: u32,
}

/// Whether a job has anything for a notifier to do.
pub(super) fn is_needed(setup: &Setup) -> bool {
    setup.job.scenario.phases.iter().any(|phase| matches!(phase.action, Action::Notify(_)))
}

/// Does the notifier's part of each step, until the worker stops the thread.
pub(super) fn work(thread: &ThreadContext) -> Result<(), Fault> {
    let Some(api) = Api::of(&thread.setup.job.target).pop() else {
        return Err(super::setup::lacks("the HTTP API", "pass --http and --key"));
    };
    let mut next = None;
    while let Some(step) = next.take().or_else(|| thread.steps.recv().ok()) {
        if let Some(Action::Notify(notify)) = step.action(&thread.setup) {
            next = send_phase(thread, &api, notify, &step);
        }
        if next.is_none() {
            thread.barrier.done(step.serial);
        }
    }
    Ok(())
}

/// Sends the notifications of a phase; returns the next step if that began before this one was done.
fn send_phase(thread: &ThreadContext, api: &Api, notify: &Notify, step: &StepStart) -> Option<StepStart> {
    let setup = &thread.setup;
    setup.notified.store(0, Ordering::Relaxed);
    let receipts = Receipts::follow(setup, &thread.recorder);
    let (first, count) = (setup.job.first as usize, setup.job.count as usize);
    let schedule = Schedule::new(&notify.rate, setup.share(&(first..first + count)), step.at);
    let sending = Sending {
        setup,
        recorder: &thread.recorder,
        api,
        notify,
        marks: Marks::of(&setup.job.test),
        phase: step.position.phase,
        until: step.at + notify.span.0,
        schedule: Mutex::new(NumberedSchedule { schedule, taken: 0 }),
        receipts: &receipts,
        accepted: AtomicU64::new(0),
        senders: AtomicUsize::new(SENDERS),
        given_up: AtomicBool::new(false),
    };
    let next = std::thread::scope(|scope| {
        for _ in 0..SENDERS {
            scope.spawn(|| sending.send_all());
        }
        let next = sending.watch(&thread.steps);
        sending.given_up.store(true, Ordering::Release);
        next
    });
    receipts.forget();
    next
}

impl Sending<'_> {
    /// Waits until everything has arrived or is missing; returns the next step if that begins earlier.
    fn watch(&self, steps: &Receiver<StepStart>) -> Option<StepStart> {
        let (mut seen, mut since) = ((0, 0), Instant::now());
        loop {
            match steps.recv_timeout(POLL_INTERVAL) {
                Ok(step) => return Some(step),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {}
            }
            let sending = self.senders.load(Ordering::Acquire) > 0;
            let state = (self.missing(), self.receipts.missing());
            if sending || state != seen {
                (seen, since) = (state, Instant::now());
            }
            if !sending && (state == (0, 0) || since.elapsed() > ARRIVAL_TIMEOUT) {
                self.recorder.add(Count::Missing, state.0);
                // Only what is kept is told to have been acknowledged, whenever that is.
                if self.notify.audience == "always" {
                    self.recorder.add(Count::MissingReceipts, state.1 as u64);
                }
                return None;
            }
        }
    }

    /// Notifications that were accepted and have not arrived.
    fn missing(&self) -> u64 {
        let arrived = self.setup.notified.load(Ordering::Relaxed);
        self.accepted.load(Ordering::Acquire).saturating_sub(arrived)
    }

    /// The loop of one sending thread.
    fn send_all(&self) {
        while !self.given_up.load(Ordering::Acquire) {
            let (due, wait) = self.take_due();
            match (due.is_empty(), wait) {
                (false, _) => self.send(&due),
                (true, Some(at)) => {
                    std::thread::sleep(at.saturating_duration_since(Instant::now()).min(POLL_INTERVAL));
                }
                (true, None) => break,
            }
        }
        self.senders.fetch_sub(1, Ordering::AcqRel);
    }

    /// The numbers and due times of what is due now, up to a batch; or when the next is due; neither when there are no more.
    fn take_due(&self) -> (Vec<(u32, Instant)>, Option<Instant>) {
        let mut numbered = self.schedule.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let mut due = Vec::new();
        while due.len() < self.notify.batch as usize {
            match numbered.schedule.take_before(self.until, now) {
                Due::Now(at) => due.push((numbered.taken, at)),
                Due::At(next) => return (due, Some(next)),
                Due::Never => return (due, None),
            }
            numbered.taken += 1;
        }
        (due, None)
    }

    fn send(&self, due: &[(u32, Instant)]) {
        let (setup, recorder, audience) = (self.setup, self.recorder, json!(self.notify.audience));
        let mut lines = String::with_capacity(due.len() * (self.notify.payload_bytes + 100));
        for (item, at) in due {
            let number = mark::number(self.phase, (*item).min(mark::UNTRACKED));
            let mark = Mark { number, due_unix_ns: setup.clock.unix_ns(*at) };
            let to = json!(setup.localpart(setup.job.first + item % setup.job.count));
            let payload = JsonText { marks: &self.marks, mark, bytes: self.notify.payload_bytes };
            // Formatted by hand: at 20,000 lines per second a `Value` for each would cost more than the line itself.
            // Writing to a string does not fail.
            let _ = writeln!(lines, "{{\"to\":{to},\"audience\":{audience},\"payload\":{payload}}}");
        }
        due.iter().for_each(|(_, at)| recorder.sent(at.elapsed()));
        let results = match self.api.notify(&lines) {
            Ok(results) => results,
            Err(error) => return recorder.error_with(format!("notify: {}", error.kind()), error.words()),
        };
        for ((_, at), result) in due.iter().zip(results) {
            match result {
                Ok(id) => {
                    self.accepted.fetch_add(1, Ordering::AcqRel);
                    self.receipts.expect(id, *at);
                }
                Err(code) => recorder.error(format!("notify: {code}")),
            }
        }
    }
}
