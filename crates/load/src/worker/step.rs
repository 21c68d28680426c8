//! A step as the threads of a worker receive it, and what each of them works with.

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Instant;

use super::barrier::StepBarrier;
use super::recorder::Recorder;
use super::setup::Setup;
use crate::control::Position;
use crate::plan::Action;

/// The start of a step, sent to every thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct StepStart {
    /// The number by which a thread reports the step as done: see [`StepBarrier::done`].
    pub(super) serial: u64,
    /// The phase and the step within it.
    pub(super) position: Position,
    /// When it begins.
    pub(super) at: Instant,
}

/// What a thread works with.
#[derive(Debug)]
pub(super) struct ThreadContext {
    pub(super) setup: Arc<Setup>,
    pub(super) barrier: Arc<StepBarrier>,
    pub(super) recorder: Arc<Recorder>,
    /// Steps to do. The thread ends when the other side of the channel is gone.
    pub(super) steps: Receiver<StepStart>,
}

impl StepStart {
    /// The action of the step's phase.
    pub(super) fn action<'a>(&self, setup: &'a Setup) -> Option<&'a Action> {
        Some(&setup.job.scenario.phases.get(self.position.phase as usize)?.action)
    }
}
