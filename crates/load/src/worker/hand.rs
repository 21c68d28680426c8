//! The threads of a worker: each is told the turns, and ends when it is dismissed.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;
use std::time::Instant;

use super::players::Players;
use super::setting::{self, Setting};
use super::steps::Steps;
use super::tally::Ledger;
use super::{notifier, publisher};
use crate::control::{Fault, Position};
use crate::plan::Deed;
use crate::swarm::{Swarm, Waker};

/// A step to be done, as a thread is told it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    /// What to be done with it is said by.
    pub(super) serial: u64,
    /// Which it is.
    pub(super) position: Position,
    /// When it begins.
    pub(super) at: Instant,
}

/// What a thread works with.
#[derive(Debug)]
pub(super) struct Kit {
    pub(super) setting: Arc<Setting>,
    pub(super) steps: Arc<Steps>,
    pub(super) ledger: Arc<Ledger>,
    /// Turns, until there is nobody any more who tells them.
    pub(super) turns: Receiver<Turn>,
}

/// A thread at work.
#[derive(Debug)]
pub(super) struct Hand {
    pub(super) ledger: Arc<Ledger>,
    turns: Sender<Turn>,
    waker: Option<Waker>,
    thread: JoinHandle<()>,
}

impl Turn {
    /// What is to be done.
    pub(super) fn deed<'a>(&self, setting: &'a Setting) -> Option<&'a Deed> {
        Some(&setting.job.scenario.phases.get(self.position.phase as usize)?.deed)
    }
}

impl Hand {
    /// Starts a thread. `waker` makes it look for turns, if it waits for something else.
    pub(super) fn start(
        setting: &Arc<Setting>,
        steps: &Arc<Steps>,
        waker: Option<Waker>,
        work: impl FnOnce(Kit) -> Result<(), Fault> + Send + 'static,
    ) -> Self {
        let (turns, receiver) = mpsc::channel();
        let ledger = Arc::new(Ledger::default());
        let kit = Kit {
            setting: Arc::clone(setting),
            steps: Arc::clone(steps),
            ledger: Arc::clone(&ledger),
            turns: receiver,
        };
        let steps = Arc::clone(steps);
        let thread = std::thread::spawn(move || {
            if let Err(fault) = work(kit) {
                steps.fault(fault);
            }
        });
        Self { ledger, turns, waker, thread }
    }

    /// Tells it a turn.
    pub(super) fn tell(&self, turn: Turn) {
        // A thread that is gone has left a fault, or a panic that `dismiss` finds.
        let _ = self.turns.send(turn);
        self.wake();
    }

    /// Ends it.
    pub(super) fn dismiss(self) {
        let Self { ledger, turns, waker, thread } = self;
        drop(turns);
        if let Some(waker) = waker {
            waker.wake();
        }
        if thread.join().is_err() {
            ledger.error("worker: a thread panicked");
        }
    }

    fn wake(&self) {
        if let Some(waker) = &self.waker {
            waker.wake();
        }
    }
}

/// Starts all threads a job needs.
pub(super) fn hire(setting: &Arc<Setting>, steps: &Arc<Steps>) -> Result<Vec<Hand>, Fault> {
    let mut hands = Vec::new();
    for numbers in setting.shares() {
        let swarm = Swarm::new(setting.addresses.clone(), numbers.clone())
            .map_err(|error| setting::worker(format!("waiting for sockets: {error}")))?;
        let waker = Some(swarm.waker());
        hands.push(Hand::start(setting, steps, waker, move |kit| {
            let ended = swarm.run(&mut Players::new(kit, numbers));
            ended.map_err(|error| setting::worker(error.to_string()))
        }));
    }
    if publisher::is_needed(setting) {
        hands.push(Hand::start(setting, steps, None, publisher::work));
    }
    if notifier::is_needed(setting) {
        hands.push(Hand::start(setting, steps, None, |kit| notifier::work(&kit)));
    }
    Ok(hands)
}
