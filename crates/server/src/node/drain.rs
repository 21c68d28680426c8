//! Draining the node in slices, over a time: the shards are told when a slice is due, and choose who it is.

use super::Node;
use crate::channels::inbox::Control;
use carillon_core::model::{DrainSlice, Farewell, OtherHost};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How far a drain has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrainProgress {
    /// Connections and parked sessions when it began.
    pub total: u64,
    /// How many of them are left.
    pub left: u64,
    /// When the last slice is due.
    pub ends_in: Duration,
    /// The slices so far.
    pub slices_done: u32,
    /// All slices.
    pub slices: u32,
    /// Where clients are sent.
    pub to: Option<OtherHost>,
}

impl DrainProgress {
    /// Whether nobody is left.
    pub fn is_done(&self) -> bool {
        self.left == 0
    }
}

/// The drain of a node, if one is under way. One at a time: the next replaces it.
#[derive(Debug, Default)]
pub(crate) struct Drain {
    state: Mutex<DrainState>,
    replaced: Condvar,
}

#[derive(Debug, Default)]
struct DrainState {
    /// How many there were.
    begun: u64,
    run: Option<Run>,
    /// The node ends: it cannot be cancelled.
    is_final: bool,
}

#[derive(Debug)]
struct Run {
    to: Option<OtherHost>,
    total: u64,
    began: Instant,
    over: Duration,
    done: u32,
    slices: u32,
    /// Slices behind these, for those who had something under way when it was their turn.
    late: u32,
}

impl Run {
    fn new(to: Option<OtherHost>, total: u64, over: Duration, slices: u32, late: u32) -> Run {
        Run { to, total, began: Instant::now(), over, done: 0, slices: slices.max(1), late }
    }

    /// When the next slice is due: the first at once, the others at even distances.
    fn next_due(&self) -> Instant {
        let late = self.done.saturating_sub(self.slices.saturating_sub(1));
        match late {
            0 => self.began + self.over * self.done / self.slices,
            late => self.began + self.over * (self.slices - 1) / self.slices + SLICE * late,
        }
    }

    fn ends_in(&self) -> Duration {
        let last = self.began + self.over * (self.slices - 1) / self.slices;
        last.saturating_duration_since(Instant::now())
    }
}

impl Node {
    /// Drains the node: it takes no new sessions and ends the present ones within `over`, those first that cost least. Clients are sent
    /// to another host where one is given. In a cell the other nodes take its homes at once. A drain under way is replaced; `None` if the node ends anyway.
    pub fn start_drain(&self, over: Duration, to: Option<OtherHost>) -> Option<DrainProgress> {
        let drain = self.drain_state();
        let mut state = drain.lock();
        if state.is_final {
            return None;
        }
        self.set_ready(false);
        // Those who are there are counted anew.
        self.control(|| Control::StopDraining);
        let farewell = Arc::new(to.clone().map_or(Farewell::Shutdown, Farewell::SeeOtherHost));
        let slices = slices(over, SLICE, u32::MAX);
        let number = state.begin(Run::new(to, self.present(), over, slices, self.late_slices()));
        drain.replaced.notify_all();
        drop(state);
        self.yield_homes(true);
        let node = self.clone();
        let pace = move || {
            // Sessions go to those who keep the names.
            node.await_heirs();
            if node.drain_state().pace(&node, number, |_| Arc::clone(&farewell)) {
                tracing::info!(
                    "every session was told to end; the node takes none until the drain is cancelled"
                );
            }
        };
        tracing::info!(over_ms = over.as_millis() as u64, "draining");
        if let Err(error) = std::thread::Builder::new().name("drain".to_owned()).spawn(pace) {
            tracing::error!(%error, "no thread for the drain");
            self.cancel_drain();
        }
        self.drain_progress()
    }

    /// How far the drain has come, if the node is drained.
    pub fn drain_progress(&self) -> Option<DrainProgress> {
        let state = self.drain_state().lock();
        let run = state.run.as_ref()?;
        Some(DrainProgress {
            total: run.total,
            left: self.present(),
            ends_in: run.ends_in(),
            slices_done: run.done.min(run.slices),
            slices: run.slices,
            to: run.to.clone(),
        })
    }

    /// Takes sessions again. Whether the node was drained, and does not end.
    pub fn cancel_drain(&self) -> bool {
        let drain = self.drain_state();
        let mut state = drain.lock();
        if state.is_final || state.run.take().is_none() {
            return false;
        }
        drain.replaced.notify_all();
        self.control(|| Control::StopDraining);
        self.set_ready(true);
        self.yield_homes(false);
        tracing::info!("the drain was cancelled");
        true
    }

    /// Drains the node before its process ends, on this thread: sessions that can be resumed are parked, and clients are told to come
    /// back within `spread`.
    pub(crate) fn park_in_slices(&self, spread: Duration) {
        self.end_in_slices(spread, |run| {
            let spread_s = if run.slices > 1 { seconds(spread) } else { 0 };
            Arc::new(Farewell::Restart { least_s: seconds(run.ends_in()) + RESTART_S, spread_s })
        });
    }

    /// Drains a node of a cell before its process ends, on this thread: sessions end, because their clients go on at other nodes, which nobody
    /// could give what waits in a parked session here.
    pub(crate) fn leave_in_slices(&self, spread: Duration) {
        self.end_in_slices(spread, |_| Arc::new(Farewell::Shutdown));
    }

    fn end_in_slices(&self, spread: Duration, farewell: impl Fn(&Run) -> Arc<Farewell>) {
        let total = self.present();
        let slices =
            slices(spread, FINAL_SLICE, u32::try_from(total / FINAL_SLICE_SESSIONS).unwrap_or(u32::MAX));
        let drain = self.drain_state();
        let mut state = drain.lock();
        state.is_final = true;
        let number = state.begin(Run::new(None, total, spread, slices, self.late_slices()));
        drain.replaced.notify_all();
        drop(state);
        self.control(|| Control::StopListening);
        drain.pace(self, number, farewell);
    }

    /// Connections and parked sessions.
    pub fn present(&self) -> u64 {
        self.connections() + self.parked()
    }

    /// In a cell sessions go on at other nodes, once nothing is under way for them.
    fn late_slices(&self) -> u32 {
        if self.is_in_cell() { LATE_SLICES } else { 0 }
    }
}

impl Drain {
    /// Has the slices of a run ended when they are due; false if the run was replaced.
    fn pace(&self, node: &Node, number: u64, farewell: impl Fn(&Run) -> Arc<Farewell>) -> bool {
        let mut state = self.lock();
        loop {
            let is_current = state.begun == number;
            let Some(run) = state.run.as_mut().filter(|_| is_current) else { return false };
            let is_late = run.done >= run.slices;
            if run.done == run.slices + run.late || is_late && node.present() == 0 {
                return true;
            }
            let wait = run.next_due().saturating_duration_since(Instant::now());
            if wait.is_zero() {
                run.done += 1;
                let (farewell, slices) = (farewell(run), run.slices);
                let slices_left = slices.saturating_sub(run.done);
                let is_last = run.done == slices + run.late;
                // Under the lock, so that no slice follows the end of its drain.
                node.control(|| {
                    Control::DrainSlice(DrainSlice {
                        farewell: Arc::clone(&farewell),
                        slices_left,
                        slices,
                        is_last,
                    })
                });
            } else {
                state = self.replaced.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, DrainState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DrainState {
    fn begin(&mut self, run: Run) -> u64 {
        self.begun += 1;
        self.run = Some(run);
        self.begun
    }
}

/// How many slices there are in a time: one per `slice`, and at most `max`.
fn slices(over: Duration, slice: Duration, max: u32) -> u32 {
    let count = over.as_millis() / slice.as_millis();
    u32::try_from(count).unwrap_or(u32::MAX).min(max).max(1)
}

/// In seconds, rounded up.
fn seconds(time: Duration) -> u32 {
    u32::try_from(time.as_millis().div_ceil(1000)).unwrap_or(u32::MAX)
}

/// The time between two slices of a drain.
const SLICE: Duration = Duration::from_millis(100);
/// How many slices follow those of a drain in a cell.
const LATE_SLICES: u32 = 10;
/// The time between two slices before the process ends, and how many sessions are enough for one.
const FINAL_SLICE: Duration = Duration::from_millis(50);
const FINAL_SLICE_SESSIONS: u64 = 100;
/// How long the start of the next process takes, in seconds: clients that know when to come back do not come sooner.
const RESTART_S: u32 = 1;
