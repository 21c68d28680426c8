//! What is measured.

use std::time::Duration;

/// What was asked for and done in one interval, both in units as a mean over it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// When the interval began, since the Unix epoch.
    pub from: Duration,
    /// When it ended.
    pub until: Duration,
    /// What was asked for: what was done and what was refused.
    pub demand: f64,
    /// What was done. It cannot outgrow what is granted, which is why it says little about the demand.
    pub consumed: f64,
}

/// What there is of capacity now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granted {
    /// Units that were asked of the driver last.
    pub units: u32,
    /// Units in force: fewer than `units` while some start, more while some are drained.
    pub in_force: u32,
    /// A change is under way, and the driver takes no other one before its end.
    pub is_changing: bool,
    /// How many times the driver takes units away for now; `None`: as often as asked.
    pub decreases_left: Option<u32>,
}

impl Granted {
    /// So many units, all in force, of a driver without limits.
    pub fn steady(units: u32) -> Self {
        Self { units, in_force: units, is_changing: false, decreases_left: None }
    }
}

impl Observation {
    /// Whether its numbers can be used.
    pub(crate) fn is_sound(&self) -> bool {
        let is_amount = |value: f64| value.is_finite() && value >= 0.0;
        is_amount(self.demand) && is_amount(self.consumed) && self.until > self.from
    }
}
