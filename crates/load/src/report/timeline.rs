//! The timeline of a test, by seconds.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::percentiles::{Percentiles, thousandths};
use super::totals::Totals;
use crate::measure::Reading;

/// The most rows. When there are more, every other row is removed: two hours by seconds, four hours by two seconds.
const ROWS_MAX: usize = 7200;
/// A shorter remainder at the end has no row.
const ROW_MIN_S: f64 = 0.9;

/// One second of a test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// The end of the second, in seconds since the start of the test.
    pub at: f64,
    /// Players in session.
    pub online: u32,
    /// Events per second, by name.
    pub rates: BTreeMap<String, f64>,
    /// Latencies of this second, by metric.
    pub metrics: BTreeMap<String, Brief>,
    /// Cores the server kept busy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_cores: Option<f64>,
    /// The server's memory, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_bytes: Option<u64>,
    /// Cores the workers kept busy, together.
    pub tester_cores: f64,
}

/// A few percentiles, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Brief {
    /// The median.
    pub percentile50: f64,
    /// The 99th percentile.
    pub percentile99: f64,
    /// The largest.
    pub max: f64,
}

/// The rows so far.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    rows: Vec<Row>,
    /// The number of rows skipped for each row kept.
    skipped: usize,
    seen: usize,
    last_at: f64,
    last_server: Option<Reading>,
    last_tester_cpu: f64,
}

impl Timeline {
    /// Ends a row: what happened in it, and how things are.
    pub(super) fn close(
        &mut self,
        at: f64,
        totals: &Totals,
        online: u32,
        server: Option<Reading>,
        tester_cpu: f64,
    ) {
        let seconds = (at - self.last_at).max(0.001);
        // Workers report twice per second: over less than that, what arrived says nothing of a rate.
        if seconds < ROW_MIN_S && !self.rows.is_empty() {
            return;
        }
        let cpu = server.zip(self.last_server).map(|(now, before)| now.cpu_s - before.cpu_s);
        let row = Row {
            at: thousandths(at),
            online,
            rates: totals.rates(seconds),
            metrics: totals.percentiles().iter().map(|(name, all)| (name.clone(), all.into())).collect(),
            server_cores: cpu.map(|cpu| thousandths(cpu.max(0.0) / seconds)),
            server_bytes: server.map(|server| server.memory_bytes),
            tester_cores: thousandths((tester_cpu - self.last_tester_cpu).max(0.0) / seconds),
        };
        (self.last_at, self.last_server, self.last_tester_cpu) = (at, server, tester_cpu);
        self.keep(row);
    }

    /// The rows so far.
    pub(super) fn rows(&self) -> &[Row] {
        &self.rows
    }

    fn keep(&mut self, row: Row) {
        self.seen += 1;
        if !self.seen.is_multiple_of(self.skipped + 1) {
            return;
        }
        self.rows.push(row);
        if self.rows.len() > ROWS_MAX {
            let mut odd = false;
            self.rows.retain(|_| {
                odd = !odd;
                !odd
            });
            self.skipped = self.skipped * 2 + 1;
        }
    }
}

impl From<&Percentiles> for Brief {
    fn from(all: &Percentiles) -> Self {
        Self { percentile50: all.percentile50, percentile99: all.percentile99, max: all.max }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_rest_at_the_end_makes_no_row() {
        let mut timeline = Timeline::default();
        let totals = Totals { counts: BTreeMap::from([("sent".to_owned(), 100)]), ..Totals::default() };
        timeline.close(1.0, &totals, 1, None, 0.0);
        timeline.close(1.2, &totals, 1, None, 0.0);
        assert_eq!(timeline.rows().len(), 1, "500 per second never were");
    }

    #[test]
    fn a_long_test_keeps_every_other_row() {
        let mut timeline = Timeline::default();
        for at in 1..=3 * ROWS_MAX {
            timeline.close(at as f64, &Totals::default(), 1, None, 0.0);
        }
        let rows = timeline.rows();
        assert!((ROWS_MAX / 2..=ROWS_MAX).contains(&rows.len()), "{}", rows.len());
        assert!(rows.windows(2).all(|pair| pair[1].at > pair[0].at));
        assert!(rows.last().is_some_and(|row| row.at > 2.9 * ROWS_MAX as f64));
    }
}
