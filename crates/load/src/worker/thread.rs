//! A thread of a worker: it receives steps, and ends when it is stopped.

use std::sync::Arc;
use std::sync::mpsc::{self, SyncSender};
use std::thread::JoinHandle;

use super::barrier::StepBarrier;
use super::recorder::Recorder;
use super::setup::Setup;
use super::step::{StepStart, ThreadContext};
use crate::control::Fault;
use crate::swarm::Waker;

/// A running thread.
#[derive(Debug)]
pub(super) struct WorkerThread {
    pub(super) recorder: Arc<Recorder>,
    steps: SyncSender<StepStart>,
    waker: Option<Waker>,
    thread: JoinHandle<()>,
}

impl WorkerThread {
    /// Starts a thread. `waker` wakes it for a step while it waits for something else.
    pub(super) fn start(
        setup: &Arc<Setup>,
        barrier: &Arc<StepBarrier>,
        waker: Option<Waker>,
        work: impl FnOnce(ThreadContext) -> Result<(), Fault> + Send + 'static,
    ) -> Self {
        let (steps, receiver) = mpsc::sync_channel(STEPS_MAX);
        let recorder = Arc::new(Recorder::default());
        let context = ThreadContext {
            setup: Arc::clone(setup),
            barrier: Arc::clone(barrier),
            recorder: Arc::clone(&recorder),
            steps: receiver,
        };
        let barrier = Arc::clone(barrier);
        let thread = std::thread::spawn(move || {
            if let Err(fault) = work(context) {
                barrier.fault(fault);
            }
        });
        Self { recorder, steps, waker, thread }
    }

    /// Sends it a step.
    pub(super) fn begin(&self, step: StepStart) {
        // A thread that has ended left a fault, or a panic that `stop` finds.
        let _ = self.steps.send(step);
        self.wake();
    }

    /// Ends it and waits until it has ended.
    pub(super) fn stop(self) {
        let Self { recorder, steps, waker, thread } = self;
        drop(steps);
        if let Some(waker) = waker {
            waker.wake();
        }
        if thread.join().is_err() {
            recorder.error("worker: a thread panicked");
        }
    }

    fn wake(&self) {
        if let Some(waker) = &self.waker {
            waker.wake();
        }
    }
}

/// Steps that wait for a thread. A test has a handful.
const STEPS_MAX: usize = 64;
