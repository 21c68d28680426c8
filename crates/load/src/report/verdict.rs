//! Whether a test passed, and why not.

use super::assertion::Assertion;
use super::model::{Checked, PhaseReport, PhaseState, Report, Status, WorkerState};
use super::upgrade::UpgradeReport;

impl Report {
    /// Checks assertions and adds the results to the report.
    pub fn check(&mut self, assertions: &[Assertion]) {
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

    /// Whether every phase was done in time, no player failed and no worker was lost. Assertions do not count.
    pub fn is_clean(&self) -> bool {
        self.status == Status::Completed && self.shortfalls().is_empty()
    }

    /// What failed in a test that ran to its end, one sentence each.
    pub(super) fn shortfalls(&self) -> Vec<String> {
        let mut all = Vec::new();
        if self.failed > 0 {
            all.push(format!(
                "{} of {} players failed: they did not log in, or lost their session.",
                self.failed, self.players
            ));
        }
        let late = |phase: &&PhaseReport| !matches!(phase.state, PhaseState::Done | PhaseState::Skipped);
        all.extend(
            self.phases.iter().filter(late).map(|phase| format!("{}: {}.", phase.name, phase.state.words())),
        );
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
        let reasons: Vec<_> = self.reason.iter().cloned().chain(broken).collect();
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
