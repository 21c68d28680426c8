//! Whether a test passed, and why not.

use super::assertion::Assertion;
use super::model::{Checked, PhaseReport, PhaseState, Report, Status, WorkerState};
use super::upgrade::UpgradeReport;

impl Report {
    /// Checks assertions and adds the results to the report; none, if the test did not get as far as to measure anything.
    pub fn check(&mut self, assertions: &[Assertion]) {
        if self.reached().next().is_none() {
            return;
        }
        let checked: Vec<_> = assertions
            .iter()
            .map(|assertion| {
                let problem = assertion.check(self).err().map(|error| error.to_string()).unwrap_or_default();
                Checked { assertion: assertion.to_string(), holds: problem.is_empty(), problem }
            })
            .collect();
        self.assertions = checked;
    }

    /// Assertions that do not hold.
    pub fn broken_assertions(&self) -> impl Iterator<Item = &Checked> {
        self.assertions.iter().filter(|checked| !checked.holds)
    }

    /// Whether every phase was done in time, and nothing was missed. Assertions do not count.
    pub fn is_clean(&self) -> bool {
        self.status == Status::Completed
    }

    /// Whether the test ran, and what its scenario expects was missed.
    pub fn has_missed(&self) -> bool {
        self.status == Status::Failed && (self.failed > 0 || !self.misses().is_empty())
    }

    /// Finds what was missed: then a test that ran to its end has failed all the same.
    pub(super) fn judge(&mut self) {
        match self.status {
            Status::Completed => {
                self.shortfalls = self.misses();
                self.shortfalls.extend(self.incomplete());
                if !self.shortfalls.is_empty() {
                    (self.status, self.reason) = (Status::Failed, Some(self.shortfalls.join(" ")));
                }
            }
            // It could not go on; what was missed before may be why.
            Status::Failed => self.shortfalls = self.misses(),
            Status::Queued | Status::Running | Status::Unsupported | Status::Aborted => {}
        }
    }

    /// What was not done in a test that ran to its end, one sentence each.
    fn incomplete(&self) -> Vec<String> {
        let late = |phase: &&PhaseReport| !matches!(phase.state, PhaseState::Done | PhaseState::Skipped);
        let late = self.phases.iter().filter(late);
        let mut all: Vec<_> = late.map(|phase| format!("{}: {}.", phase.name, phase.state.words())).collect();
        all.extend(self.upgrade.as_ref().and_then(UpgradeReport::shortfall));
        let lost = self.workers.iter().filter(|worker| worker.state == WorkerState::Lost).count();
        if lost > 0 {
            all.push(format!("{lost} of {} workers were lost.", self.workers.len()));
        }
        all
    }

    /// The verdict in a word or two, its class on a page, and the reasons for it.
    pub(super) fn verdict(&self) -> (&'static str, &'static str, Vec<String>) {
        let broken = self.broken_assertions().map(|checked| checked.problem.clone());
        // The reason of a test that ran to its end is all of its shortfalls.
        let reason = self.reason.clone().filter(|reason| *reason != self.shortfalls.join(" "));
        let reasons: Vec<_> =
            reason.into_iter().chain(self.shortfalls.iter().cloned()).chain(broken).collect();
        let (words, class) = match self.status {
            Status::Queued => ("Queued", ""),
            Status::Running => ("Running", ""),
            Status::Completed if reasons.is_empty() => ("Passed", "good"),
            Status::Completed | Status::Failed => ("Failed", "bad"),
            Status::Unsupported => ("Unsupported", "bad"),
            Status::Aborted => ("Aborted", "warn"),
        };
        (words, class, reasons)
    }
}
