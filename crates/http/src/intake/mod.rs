//! Intake from durable queues: messages that are notifications and items, done as the routes of the provider do them.
//!
//! ```text
//!  queue ──Pulled──► message (JSON, CloudEvents) ──► perform ──► notifications::send_as, items::publish_as
//!    ▲                                                  │  (what a request over HTTP goes through)
//!    └──── Verdict: Done · Later(after) · Dead(reason) ◄┘  after the commit
//! ```
//!
//! `puller` has a task per queue: it pulls while there is room, extends what takes long, and stops pulling while the store is behind.

mod cloudevents;
mod figures;
mod message;
mod perform;
mod puller;
mod sender;

pub(crate) mod api;
pub(crate) use figures::{Figures, QueueState};

use crate::app::App;
use crate::options::{IntakeQueue, Options};
use futures_util::future::join_all;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A queue whose messages are taken in, and what was counted of it.
pub(crate) struct Intake {
    /// The queue.
    pub(crate) options: IntakeQueue,
    figures: Mutex<Figures>,
    sender: sender::Sender,
}

impl App {
    /// Queues whose messages are taken in.
    pub(crate) fn intakes(&self) -> &[Intake] {
        self.part::<Vec<Intake>>()
    }
}

/// The queues of a node with these options.
pub(crate) fn of(options: &Options) -> Vec<Intake> {
    options.queues.iter().cloned().map(Intake::new).collect()
}

impl Intake {
    /// One that has not begun yet.
    fn new(options: IntakeQueue) -> Intake {
        Intake { options, figures: Mutex::default(), sender: sender::Sender::default() }
    }

    /// What was counted.
    pub(crate) fn figures(&self) -> Figures {
        self.count().clone()
    }

    fn count(&self) -> MutexGuard<'_, Figures> {
        // Figures are whole after any panic.
        self.figures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes in the messages of all queues until the app closes; then what is under way is done.
pub(crate) async fn run(app: App) {
    join_all((0..app.intakes().len()).map(|n| puller::run(app.clone(), n))).await;
}
