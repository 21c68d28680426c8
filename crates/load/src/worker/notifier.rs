//! The worker's provider: notifications over HTTP to its own players, sent by a few threads so that the answer to one
//! batch does not hold up what is due meanwhile.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::json;

use super::api::{self, Api};
use super::hand::{Kit, Turn};
use super::mark::{self, JsonText, Mark, Marks};
use super::receipts::Receipts;
use super::schedule::Schedule;
use super::setting::Setting;
use super::tally::{Count, Ledger};
use crate::control::Fault;
use crate::plan::{Deed, Notify};

/// Requests under way at once.
const SENDERS: usize = 4;
/// How often it is looked whether all has arrived.
const GLANCE: Duration = Duration::from_millis(20);
/// What has not arrived when nothing has for so long is missing.
const PATIENCE: Duration = Duration::from_secs(10);

/// One phase's notifications.
struct Round<'a> {
    setting: &'a Setting,
    ledger: &'a Ledger,
    api: &'a Api,
    notify: &'a Notify,
    marks: Marks,
    phase: u32,
    until: Instant,
    schedule: Mutex<Numbered>,
    receipts: &'a Receipts,
    /// Notifications the server has taken.
    accepted: AtomicU64,
    senders: AtomicUsize,
    given_up: AtomicBool,
}

/// Notifications as they are due, counted.
struct Numbered {
    schedule: Schedule,
    taken: u32,
}

/// Whether a job has anything for a notifier to do.
pub(super) fn is_needed(setting: &Setting) -> bool {
    setting.job.scenario.phases.iter().any(|phase| matches!(phase.deed, Deed::Notify(_)))
}

/// Sends what turns ask for, until there are no more turns.
pub(super) fn work(kit: &Kit) -> Result<(), Fault> {
    let Some(api) = Api::of(&kit.setting.job.target).pop() else {
        return Err(super::setting::lacks("the HTTP API", "pass --http and --key"));
    };
    let mut next = None;
    while let Some(turn) = next.take().or_else(|| kit.turns.recv().ok()) {
        if let Some(Deed::Notify(notify)) = turn.deed(&kit.setting) {
            next = round(kit, &api, notify, &turn);
        }
        if next.is_none() {
            kit.steps.done(turn.serial);
        }
    }
    Ok(())
}

/// Does a turn; gives the next one if that began before this one was done.
fn round(kit: &Kit, api: &Api, notify: &Notify, turn: &Turn) -> Option<Turn> {
    let setting = &kit.setting;
    setting.notified.store(0, Ordering::Relaxed);
    let receipts = Receipts::follow(setting, &kit.ledger);
    let (first, count) = (setting.job.first as usize, setting.job.count as usize);
    let schedule = Schedule::new(&notify.rate, setting.share(&(first..first + count)), turn.at);
    let round = Round {
        setting,
        ledger: &kit.ledger,
        api,
        notify,
        marks: Marks::of(&setting.job.test),
        phase: turn.position.phase,
        until: turn.at + notify.span.0,
        schedule: Mutex::new(Numbered { schedule, taken: 0 }),
        receipts: &receipts,
        accepted: AtomicU64::new(0),
        senders: AtomicUsize::new(SENDERS),
        given_up: AtomicBool::new(false),
    };
    let next = std::thread::scope(|scope| {
        for _ in 0..SENDERS {
            scope.spawn(|| round.send_all());
        }
        let next = round.watch(&kit.turns);
        round.given_up.store(true, Ordering::Release);
        next
    });
    receipts.forget();
    next
}

impl Round<'_> {
    /// Waits until everything has arrived, or is missing, or another turn comes.
    fn watch(&self, turns: &Receiver<Turn>) -> Option<Turn> {
        let (mut seen, mut since) = ((0, 0), Instant::now());
        loop {
            match turns.recv_timeout(GLANCE) {
                Ok(turn) => return Some(turn),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {}
            }
            let sending = self.senders.load(Ordering::Acquire) > 0;
            let state = (self.missing(), self.receipts.missing());
            if sending || state != seen {
                (seen, since) = (state, Instant::now());
            }
            if !sending && (state == (0, 0) || since.elapsed() > PATIENCE) {
                self.ledger.add(Count::Missing, state.0);
                return None;
            }
        }
    }

    /// Notifications that were accepted and have not arrived.
    fn missing(&self) -> u64 {
        let arrived = self.setting.notified.load(Ordering::Relaxed);
        self.accepted.load(Ordering::Acquire).saturating_sub(arrived)
    }

    /// One sender: takes what is due, sends it, and looks again.
    fn send_all(&self) {
        while !self.given_up.load(Ordering::Acquire) {
            let (due, wait) = self.take_due();
            match (due.is_empty(), wait) {
                (false, _) => self.send(&due),
                (true, Some(at)) => {
                    std::thread::sleep(at.saturating_duration_since(Instant::now()).min(GLANCE));
                }
                (true, None) => break,
            }
        }
        self.senders.fetch_sub(1, Ordering::AcqRel);
    }

    /// What is due now, up to a batch, by number; or when the next is. Neither: there is none any more.
    fn take_due(&self) -> (Vec<(u32, Instant)>, Option<Instant>) {
        let mut numbered = self.schedule.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let mut due = Vec::new();
        while due.len() < self.notify.batch as usize {
            let Some(next) = numbered.schedule.next().filter(|next| *next < self.until) else {
                return (due, None);
            };
            let Some(at) = numbered.schedule.take(now) else { return (due, Some(next)) };
            due.push((numbered.taken, at));
            numbered.taken += 1;
        }
        (due, None)
    }

    fn send(&self, due: &[(u32, Instant)]) {
        let (setting, ledger, audience) = (self.setting, self.ledger, json!(self.notify.audience));
        let mut lines = String::with_capacity(due.len() * (self.notify.payload_bytes + 100));
        for (item, at) in due {
            let number = mark::number(self.phase, item % mark::ITEMS_A_PHASE);
            let mark = Mark { number, due_unix_ns: setting.clock.unix_ns(*at) };
            let to = json!(setting.localpart(setting.job.first + item % setting.job.count));
            let payload = JsonText { marks: &self.marks, mark, bytes: self.notify.payload_bytes };
            // Written out: at 20,000 lines a second a tree for each would cost more than the line. Writing to a string
            // does not fail.
            let _ = writeln!(lines, "{{\"to\":{to},\"audience\":{audience},\"payload\":{payload}}}");
        }
        due.iter().for_each(|(_, at)| ledger.sent(at.elapsed()));
        let results = match self.api.notify(&lines) {
            Ok(results) => results,
            Err(error) => return ledger.error(format!("notify: {}", api::kind(&error))),
        };
        for ((_, at), result) in due.iter().zip(results) {
            match result {
                Ok(id) => {
                    self.accepted.fetch_add(1, Ordering::AcqRel);
                    self.receipts.expect(id, *at);
                }
                Err(code) => ledger.error(format!("notify: {code}")),
            }
        }
    }
}
