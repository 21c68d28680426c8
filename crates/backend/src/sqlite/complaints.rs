//! What the writer says of failures: of a disk that stays full not every write.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// Between two lines about writes that fail.
const EVERY: Duration = Duration::from_secs(10);

/// Failures of the writes, one after the other.
#[derive(Debug, Default)]
pub(super) struct Complaints {
    said: Cell<Option<Instant>>,
    /// Since the last success.
    failures: Cell<u64>,
}

impl Complaints {
    /// Something failed, `what` being the sentence for it.
    pub(super) fn failed(&self, what: &'static str, error: &rusqlite::Error) {
        self.failures.set(self.failures.get() + 1);
        if self.said.get().is_none_or(|at| at.elapsed() >= EVERY) {
            self.said.set(Some(Instant::now()));
            tracing::error!(%error, failures = self.failures.get(), "{what}");
        }
    }

    /// A commit went well.
    pub(super) fn succeeded(&self) {
        let failures = self.failures.take();
        if failures > 0 {
            self.said.set(None);
            tracing::info!(failures, "the store is written again");
        }
    }
}
