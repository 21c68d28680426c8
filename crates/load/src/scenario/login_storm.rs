//! Everyone logs in, as fast as the ramp lets them; then they may stay a while and do nothing.

use std::time::Duration;

use super::RunError;
use super::crew::{Crew, LoginSummary};
use super::meter::Meter;
use super::player::Idle;
use super::population::Population;
use crate::measure::Processes;
use crate::report::Report;

/// A storm of logins.
#[derive(Debug)]
pub struct LoginStorm {
    /// Who logs in.
    pub population: Population,
    /// The server's processes, to measure what it spends.
    pub server: Processes,
    /// How long after the last login memory is measured.
    pub settle: Duration,
    /// How long everyone stays idle after that.
    pub hold: Option<Duration>,
}

impl LoginStorm {
    /// Runs it.
    pub fn run(self) -> Result<Report, RunError> {
        let meter = Meter::start(&self.server)?;
        let mut report = Report::new(if self.hold.is_some() { "idle" } else { "login-storm" });
        let before = meter.spent()?;
        let crew = Crew::start(self.population, 1, |_, _| Idle)?.wait_for_logins()?;
        let online = crew.board.online.value();
        if online > 0 {
            meter.spent()?.since(before).report_logins(online, &mut report);
            crew.pass(self.settle);
            if let Some(hold) = self.hold {
                let before = meter.spent()?;
                crew.pass(hold);
                meter.spent()?.since(before).report_idle(hold, &mut report);
            }
            meter.report_memory(online - crew.board.lost.value().min(online), &mut report)?;
        }
        let mut logins = crew.finish()?.logins;
        report_logins(&mut logins, online, &mut report);
        Ok(report)
    }
}

/// Adds how the logins went.
pub(super) fn report_logins(logins: &mut LoginSummary, online: usize, report: &mut Report) {
    let seconds = logins.duration.as_secs_f64();
    report.line("sessions", format_args!("{online} in {seconds:.2} s"));
    report.value("sessions", online);
    report.value("login_seconds", seconds);
    if seconds > 0.0 {
        report.figure("logins", "logins_per_s", online as f64 / seconds, "a second");
    }
    let percentiles = logins.latencies.percentiles();
    report.line("login latency", percentiles);
    report.value("login_latency", percentiles.json());
    report.problems("login failed", "login_failures", &logins.failures);
    report.problems("session lost", "losses", &logins.losses);
}
