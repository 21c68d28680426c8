//! Options for a command that is run during a test.

use std::time::Duration;

use clap::Args;

use super::failure::Failure;
use super::orchestrate::time;
use super::outputs::write;
use crate::orchestrate::Upgrade;
use crate::report::Report;

/// Options for a command that is run during a test.
#[derive(Debug, Args)]
#[command(next_help_heading = "Upgrade")]
pub(super) struct UpgradeArgs {
    /// Run this command of the shell during the test, for example to upgrade the server, and report what the players notice
    #[arg(long, value_name = "COMMAND")]
    upgrade_cmd: Option<String>,
    /// When to run it: this long after its phase has begun
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time, requires = "upgrade_cmd")]
    upgrade_at: Duration,
    /// Its phase; the first in which players receive something if it is not given
    #[arg(long, value_name = "PHASE", requires = "upgrade_cmd")]
    upgrade_phase: Option<String>,
    /// Write the deliveries per second around it to this file, by 100 ms
    #[arg(long, value_name = "FILE.csv", requires = "upgrade_cmd")]
    upgrade_csv: Option<String>,
}

impl UpgradeArgs {
    /// The command, if there is one.
    pub(super) fn upgrade(&self) -> Option<Upgrade> {
        let command = self.upgrade_cmd.clone()?;
        Some(Upgrade { command, phase: self.upgrade_phase.clone(), at: self.upgrade_at })
    }

    /// Writes the deliveries around it, if that is wanted.
    pub(super) fn write_csv(&self, report: &Report) -> Result<(), Failure> {
        match (&self.upgrade_csv, &report.upgrade) {
            (Some(path), Some(upgrade)) => write(path, &upgrade.csv()),
            _ => Ok(()),
        }
    }
}
