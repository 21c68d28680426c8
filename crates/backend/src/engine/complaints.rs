//! What the threads of the store say of failures: of a disk that stays full not every write.

use super::counters::{Counters, Doing};
use std::cell::Cell;
use std::fmt::Display;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Between two lines about failures.
const EVERY: Duration = Duration::from_secs(10);

/// Why something failed, in the words of whatever keeps the data.
pub(crate) trait Failing: Display {
    /// Whether it can mean that data is damaged.
    fn may_be_damage(&self) -> bool;
}

/// Failures of one thread, one after the other.
#[derive(Debug)]
pub(crate) struct Complaints {
    doing: Doing,
    counters: Arc<Counters>,
    /// When a failure was said last.
    said: Cell<Option<Instant>>,
    /// Whether a failure was said, and not yet that it is over.
    is_open: Cell<bool>,
    /// Since the last success that was said.
    failures: Cell<u64>,
}

impl Complaints {
    /// Nothing has failed yet.
    pub(crate) fn new(doing: Doing, counters: Arc<Counters>) -> Complaints {
        let (said, is_open, failures) = Default::default();
        Complaints { doing, counters, said, is_open, failures }
    }

    /// Something failed, `what` being the sentence for it.
    pub(crate) fn failed(&self, what: &'static str, error: &dyn Failing) {
        let may_be_damaged = error.may_be_damage();
        self.counters.failed(self.doing, may_be_damaged);
        self.failures.set(self.failures.get() + 1);
        if self.said.get().is_none_or(|at| at.elapsed() >= EVERY) {
            self.said.set(Some(Instant::now()));
            self.is_open.set(true);
            let failures = self.failures.get();
            if may_be_damaged {
                tracing::error!(%error, failures, "the store may be damaged: `carillon backup` checks it");
            } else {
                tracing::error!(%error, failures, "{what}");
            }
        }
    }

    /// Something went well.
    pub(crate) fn succeeded(&self) {
        if self.failures.get() == 0 {
            return;
        }
        self.counters.succeeded(self.doing);
        if self.is_open.take() {
            let failures = self.failures.take();
            match self.doing {
                Doing::Reads => tracing::info!(failures, "the store is read again"),
                Doing::Writes => tracing::info!(failures, "the store is written again"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    /// A failure that is damage, or is not.
    #[derive(Debug, thiserror::Error)]
    #[error("it failed")]
    struct Failed {
        damage: bool,
    }

    impl Failing for Failed {
        fn may_be_damage(&self) -> bool {
            self.damage
        }
    }

    const FULL: Failed = Failed { damage: false };
    const CORRUPT: Failed = Failed { damage: true };

    #[test]
    fn the_figures_follow_every_failure_and_success_and_damage_stays() {
        let counters = Arc::<Counters>::default();
        let writes = Complaints::new(Doing::Writes, counters.clone());
        let reads = Complaints::new(Doing::Reads, counters.clone());
        for _ in 0..3 {
            writes.failed("it failed", &FULL);
            assert!(counters.health().fails);
            reads.succeeded();
            assert!(counters.health().fails, "a read says nothing of writes");
            writes.succeeded();
            assert!(!counters.health().fails, "also when no line was said");
        }
        assert!(!counters.health().may_be_damaged);
        reads.failed("it failed", &CORRUPT);
        reads.succeeded();
        assert!(!counters.health().fails && counters.health().may_be_damaged);
    }

    #[test]
    fn failures_and_successes_in_turn_are_said_once() {
        let complaints = Complaints::new(Doing::Writes, Arc::default());
        let mut lines = 0;
        for _ in 0..100 {
            complaints.failed("it failed", &FULL);
            lines += u32::from(complaints.is_open.get());
            complaints.succeeded();
            assert!(!complaints.is_open.get());
        }
        assert_eq!(
            (lines, complaints.failures.get()),
            (1, 99),
            "those that were not said are counted in the next line"
        );
    }
}
