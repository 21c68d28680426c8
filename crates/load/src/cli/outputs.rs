//! Where a report is written, and the assertions on it.

use clap::Args;

use super::failure::Failure;
use super::print;
use crate::plan::Allow;
use crate::report::{Assertion, Comparison, Report};

/// Options for the report.
#[derive(Debug, Args)]
#[command(next_help_heading = "Report")]
pub(super) struct OutputArgs {
    /// Print the report as JSON instead of text
    #[arg(long)]
    json: bool,
    /// Write the report as JSON to this file
    #[arg(long, value_name = "FILE.json")]
    report: Option<String>,
    /// Write the report as a page with plots to this file
    #[arg(long, value_name = "FILE.html")]
    html: Option<String>,
    /// Add the differences from an earlier report to this one, and print them
    #[arg(long, value_name = "FILE.json")]
    compare: Option<String>,
    /// Require something of the report, such as 'RTT.percentile99<50' or 'rates.logins>=1000'; may be given more than
    /// once. Exit status 3 if it does not hold. An upper bound of faults, such as 'missing<=5', allows as many
    #[arg(long, value_name = "PATH<VALUE")]
    assert: Vec<Assertion>,
}

impl OutputArgs {
    /// Reads the earlier report, before the test runs.
    pub(super) fn earlier(&self) -> Result<Option<Report>, Failure> {
        self.compare.as_deref().map(read).transpose()
    }

    /// What the assertions allow: an upper bound of faults is what a test may have of them.
    pub(super) fn allow(&self, allow: &mut Allow) {
        for (kind, most) in self.assert.iter().filter_map(Assertion::allows) {
            allow.set(kind, most);
        }
    }

    /// Writes and prints a report, and checks the assertions.
    pub(super) fn emit(&self, mut report: Report, earlier: Option<Report>) -> Result<(), Failure> {
        report.check(&self.assert);
        report.comparison = earlier.map(|earlier| {
            Comparison::of(vec![("before".to_owned(), earlier), ("now".to_owned(), report.clone())])
        });
        if let Some(path) = &self.report {
            write(path, &(report.json() + "\n"))?;
        }
        if let Some(path) = &self.html {
            write(path, &report.html())?;
        }
        print(&if self.json { report.json() + "\n" } else { report.summary() })?;
        if let Some(comparison) = report.comparison.as_ref().filter(|_| !self.json) {
            print(&format!("\n{}", comparison.table()))?;
        }
        let broken: Vec<_> = report.broken_assertions().map(|checked| checked.problem.clone()).collect();
        match () {
            () if !broken.is_empty() => Err(Failure::Assertion(broken.join("\n"))),
            () if report.is_clean() => Ok(()),
            () if report.has_missed() => Err(Failure::Missed),
            () => Err(Failure::Test),
        }
    }
}

/// Reads a report.
pub(super) fn read(path: &str) -> Result<Report, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| Failure::file(path, &error))?;
    serde_json::from_str(&text).map_err(|error| Failure::Undone(format!("{path} is no report: {error}")))
}

/// Writes a file.
pub(super) fn write(path: &str, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|error| Failure::file(path, &error))
}
