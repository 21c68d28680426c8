//! Rates of counters that only rise.

use std::time::Duration;

/// A counter as it was read last.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counter {
    last: Option<(Duration, f64)>,
}

/// Why there is no rate.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum NoRate {
    /// It was read for the first time.
    #[error("read for the first time: a rate needs two readings")]
    First,
    /// The counter is lower than it was: its process started anew, and what it counted before is lost.
    #[error("the counter went from {before} back to {now}: its process was started anew")]
    Reset {
        /// What it was.
        before: f64,
        /// What it is.
        now: f64,
    },
    /// No time passed, or the clock went back.
    #[error("no time passed between two readings")]
    NoTime,
    /// What was read is no count.
    #[error("{0} is no count")]
    NotACount(f64),
}

impl Counter {
    /// The rate per second since the last reading.
    ///
    /// # Errors
    /// There is none; the next reading starts from this one.
    pub fn read(&mut self, now: Duration, value: f64) -> Result<f64, NoRate> {
        if !value.is_finite() || value < 0.0 {
            self.last = None;
            return Err(NoRate::NotACount(value));
        }
        let (then, before) = self.last.replace((now, value)).ok_or(NoRate::First)?;
        let seconds = now.saturating_sub(then).as_secs_f64();
        if value < before {
            return Err(NoRate::Reset { before, now: value });
        }
        if seconds > 0.0 { Ok((value - before) / seconds) } else { Err(NoRate::NoTime) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_goes_back_has_no_rate_and_the_next_one_has() {
        let mut counter = Counter::default();
        let mut read = |seconds, value| counter.read(Duration::from_secs(seconds), value);
        assert_eq!(read(10, 100.0), Err(NoRate::First));
        assert_eq!(read(20, 150.0), Ok(5.0));
        assert_eq!(read(30, 20.0), Err(NoRate::Reset { before: 150.0, now: 20.0 }));
        assert_eq!(read(40, 40.0), Ok(2.0));
        assert_eq!(read(40, 50.0), Err(NoRate::NoTime));
        assert!(matches!(read(50, f64::NAN), Err(NoRate::NotACount(_))));
        assert_eq!(read(60, 50.0), Err(NoRate::First));
    }
}
