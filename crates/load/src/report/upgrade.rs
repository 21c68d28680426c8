//! What a command did to the players, in the phase in which it ran.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::percentiles::{Percentiles, thousandths};
use super::totals::Totals;
use crate::control::{SLICE, Slice};

/// The most lines of slices in a report; a worker keeps an hour before and after the command.
const SLICES_MAX: usize = 80_000;

/// What became of a command.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CommandRun {
    /// When it was started, if it was.
    pub started: Option<Instant>,
    /// How long it ran.
    pub took: Duration,
    /// Its exit code, if it has one.
    pub exit_code: Option<i32>,
    /// Why it has none.
    pub problem: Option<String>,
    /// The last lines of its output.
    pub output: Vec<String>,
}

/// A command that ran during a phase, and what the players noticed. Counts are those of the whole phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpgradeReport {
    /// The command.
    pub command: String,
    /// The name of the phase.
    pub phase: String,
    /// When it was due, in seconds since the start of the test.
    pub due_seconds: f64,
    /// When it was started, in the same seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_seconds: Option<f64>,
    /// How long it ran, in seconds.
    pub seconds: f64,
    /// Its exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Why it has none, or was not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The last lines of its output.
    pub output: Vec<String>,
    /// Sessions that ended without the player\'s doing.
    pub disconnects: u64,
    /// Messages, notifications or items that did not arrive.
    pub lost: u64,
    /// Those that arrived again.
    pub duplicates: u64,
    /// Those that arrived after a later one of the same sender.
    pub out_of_order: u64,
    /// The longest silence of each player before the command was due, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silence_before: Option<Percentiles>,
    /// The longest silence of each player from then on, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silence: Option<Percentiles>,
    /// Deliveries by slices of 100 ms.
    pub slices: Vec<SliceReport>,
}

/// A slice of the time around the command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SliceReport {
    /// Its beginning, in seconds since the command was due.
    pub at: f64,
    /// Deliveries per second.
    pub deliveries_per_second: f64,
    /// Sessions that were lost in it.
    pub disconnects: u64,
}

impl UpgradeReport {
    /// The report of a command that was due at a time of its phase.
    pub(super) fn new(
        command: String,
        phase: String,
        due_seconds: f64,
        run: &CommandRun,
        test_start: Instant,
        totals: &Totals,
        slices: &BTreeMap<i32, Slice>,
    ) -> Self {
        let count = |name: &str| totals.counts.get(name).copied().unwrap_or_default();
        let mut percentiles = totals.percentiles();
        let since_start = |at: Instant| thousandths(at.saturating_duration_since(test_start).as_secs_f64());
        Self {
            command,
            phase,
            due_seconds: thousandths(due_seconds),
            start_seconds: run.started.map(since_start),
            seconds: thousandths(run.took.as_secs_f64()),
            exit_code: run.exit_code,
            problem: run.problem.clone(),
            output: run.output.clone(),
            disconnects: count("lost"),
            lost: count("missing"),
            duplicates: count("duplicates"),
            out_of_order: count("out_of_order"),
            silence_before: percentiles.remove("silence_before"),
            silence: percentiles.remove("silence"),
            slices: whole(slices),
        }
    }

    /// The slices as comma-separated values (RFC 4180), with a head.
    pub fn csv(&self) -> String {
        let mut csv = "seconds,deliveries_per_second,disconnects\r\n".to_owned();
        for SliceReport { at, deliveries_per_second, disconnects } in &self.slices {
            // Writing to a string does not fail.
            let _ = write!(csv, "{at:.1},{deliveries_per_second},{disconnects}\r\n");
        }
        csv
    }

    /// Why the command failed, in a sentence, if it did.
    pub(super) fn shortfall(&self) -> Option<String> {
        let why = match (self.exit_code, &self.problem) {
            (Some(0), _) => return None,
            (Some(code), _) => format!("it ended with {code}"),
            (None, Some(problem)) => problem.clone(),
            (None, None) => "it has no exit code".to_owned(),
        };
        Some(format!("The command {:?} failed: {why}.", self.command))
    }

    /// Lines of a text report: name and words.
    pub(super) fn lines(&self) -> Vec<(&'static str, String)> {
        let ended = match (self.exit_code, &self.problem) {
            (Some(code), _) => format!("exit code {code} after {:.2} s", self.seconds),
            (None, problem) => problem.clone().unwrap_or_default(),
        };
        let when = self.start_seconds.map_or(String::new(), |at| format!(" at {at:.2} s"));
        let mut lines = vec![
            ("command", format!("{}: {ended}", self.command)),
            ("  in", format!("{}{when}", self.phase)),
            ("  disconnects", self.disconnects.to_string()),
            (
                "  lost",
                format!("{}, {} twice, {} out of order", self.lost, self.duplicates, self.out_of_order),
            ),
        ];
        for (name, silence) in [("  silence before", self.silence_before), ("  silence", self.silence)] {
            if let Some(Percentiles { percentile50, percentile99, max, count, .. }) = silence {
                let words = format!(
                    "p50 {percentile50:.2}, p99 {percentile99:.2}, max {max:.2} ms of {count} players' longest"
                );
                lines.push((name, words));
            }
        }
        lines.extend(self.output.iter().map(|line| ("  output", line.clone())));
        lines
    }

    /// Deliveries per second as points of a plot over the seconds of the test.
    pub(super) fn points(&self) -> Vec<(f64, f64)> {
        self.slices.iter().map(|slice| (self.due_seconds + slice.at, slice.deliveries_per_second)).collect()
    }
}

/// All slices from the first to the last: nothing happened in those that no worker told of.
fn whole(slices: &BTreeMap<i32, Slice>) -> Vec<SliceReport> {
    let (Some((first, _)), Some((last, _))) = (slices.first_key_value(), slices.last_key_value()) else {
        return Vec::new();
    };
    let seconds = SLICE.as_secs_f64();
    let slice = |number: i32| {
        let Slice { deliveries, disconnects } = slices.get(&number).copied().unwrap_or_default();
        SliceReport {
            at: thousandths(f64::from(number) * seconds),
            deliveries_per_second: thousandths(deliveries as f64 / seconds),
            disconnects,
        }
    };
    (*first..=*last).take(SLICES_MAX).map(slice).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_in_which_nothing_happened_are_told() {
        let slice = |deliveries, disconnects| Slice { deliveries, disconnects };
        let slices = BTreeMap::from([(-2, slice(5, 0)), (1, slice(0, 3))]);
        let run = CommandRun { exit_code: Some(0), ..CommandRun::default() };
        let now = Instant::now();
        let report = |run: &CommandRun| {
            UpgradeReport::new("true".into(), "talk".into(), 5.0, run, now, &Totals::default(), &slices)
        };
        let expected =
            "seconds,deliveries_per_second,disconnects\r\n-0.2,50,0\r\n-0.1,0,0\r\n0.0,0,0\r\n0.1,0,3\r\n";
        assert_eq!(report(&run).csv(), expected);
        assert_eq!(report(&run).shortfall(), None);
        let run = CommandRun { exit_code: Some(2), ..run };
        assert_eq!(
            report(&run).shortfall().as_deref(),
            Some("The command \"true\" failed: it ended with 2.")
        );
        let run =
            CommandRun { exit_code: None, problem: Some("the phase ended before its time".into()), ..run };
        assert!(report(&run).lines()[0].1.ends_with("before its time"));
    }
}
