//! What a scaler decides, and why.

use std::fmt;
use std::time::Duration;

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// More units.
    Up,
    /// Fewer units.
    Down,
    /// As many units as there are.
    Hold,
}

/// How many units there are to be, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// What is to be done.
    pub action: Action,
    /// The units there are to be; those that there are if nothing is to be done.
    pub units: u32,
    /// The units that the policy finds right for the demand, before bounds; `None` without data.
    pub wanted: Option<u32>,
    /// Why.
    pub reason: Reason,
}

/// Why a decision is as it is.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// What was measured is over the target.
    OverTarget {
        /// What the policy measures, in units.
        measured: f64,
    },
    /// What is asked for grows: before a change could be in force it would be more than what is granted carries.
    Trend {
        /// What is asked for now, in units.
        measured: f64,
        /// What will be.
        expected: f64,
    },
    /// A floor is higher than what is granted.
    Floor(Floor),
    /// Less was needed for long enough.
    Below {
        /// The most that was needed, in units.
        highest: f64,
        /// For how long.
        over: Duration,
    },
    /// More is granted than the maximum.
    OverMaximum,
    /// What is granted is what is needed, or close to it.
    Enough,
    /// Less is needed, and has not been for long enough.
    NotForLong,
    /// Less is needed, and there are observations missing from the time that has to be looked back on.
    Gap,
    /// Less is needed, and the settings never take units away.
    NeverDown,
    /// More is needed than the maximum.
    AtMaximum,
    /// Less is needed, and a floor keeps what there is.
    Kept(Floor),
    /// A change is under way.
    Changing,
    /// Units that were asked for are not in force yet, so none are taken away.
    Starting,
    /// Less is needed, and the driver takes no more units away for now.
    DecreasesUsedUp,
    /// Nothing is to be changed at this time.
    Frozen,
    /// The source has not said anything yet, or nothing that can be used.
    NoData(String),
    /// The source has not said anything for too long.
    Stale {
        /// How old the newest observation is.
        age: Duration,
    },
}

/// What keeps a number of units up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Floor {
    /// The minimum.
    Minimum,
    /// The schedule.
    Schedule,
    /// The demand at the same time on the last days.
    Season,
}

impl Floor {
    /// A name for programs.
    pub fn name(self) -> &'static str {
        match self {
            Floor::Minimum => "minimum",
            Floor::Schedule => "schedule",
            Floor::Season => "season",
        }
    }
}

impl Action {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Action::Up => "up",
            Action::Down => "down",
            Action::Hold => "hold",
        }
    }
}

impl Reason {
    /// A name for programs.
    pub fn name(&self) -> &'static str {
        match self {
            Reason::OverTarget { .. } => "over-target",
            Reason::Trend { .. } => "trend",
            Reason::Floor(floor) => floor.name(),
            Reason::Below { .. } => "below",
            Reason::OverMaximum => "over-maximum",
            Reason::Enough => "enough",
            Reason::NotForLong => "not-for-long",
            Reason::Gap => "gap",
            Reason::NeverDown => "never-down",
            Reason::AtMaximum => "at-maximum",
            Reason::Kept(Floor::Minimum) => "kept-minimum",
            Reason::Kept(Floor::Schedule) => "kept-schedule",
            Reason::Kept(Floor::Season) => "kept-season",
            Reason::Changing => "changing",
            Reason::Starting => "starting",
            Reason::DecreasesUsedUp => "decreases-used-up",
            Reason::Frozen => "frozen",
            Reason::NoData(_) => "no-data",
            Reason::Stale { .. } => "stale",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::OverTarget { measured } => write!(f, "{measured:.2} units are over the target"),
            Reason::Trend { measured, expected } => {
                write!(f, "{measured:.2} units grow to {expected:.2} before a change could be in force")
            }
            Reason::Floor(floor) => write!(f, "{floor} asks for more"),
            Reason::Below { highest, over } => {
                write!(f, "at most {highest:.2} units were needed for {} s", over.as_secs())
            }
            Reason::OverMaximum => f.write_str("more is granted than the maximum"),
            Reason::Enough => f.write_str("what is granted is what is needed"),
            Reason::NotForLong => f.write_str("less is needed, but not for long enough"),
            Reason::Gap => {
                f.write_str("less is needed, but observations are missing from the time looked back on")
            }
            Reason::NeverDown => f.write_str("less is needed, but the settings never take units away"),
            Reason::AtMaximum => f.write_str("more is needed than the maximum allows"),
            Reason::Kept(floor) => write!(f, "less is needed, but {floor} keeps what there is"),
            Reason::Changing => f.write_str("a change is under way"),
            Reason::Starting => {
                f.write_str("less is needed, but units that were asked for are not in force yet")
            }
            Reason::DecreasesUsedUp => {
                f.write_str("less is needed, but the driver takes no more units away for now")
            }
            Reason::Frozen => f.write_str("nothing is to be changed at this time"),
            Reason::NoData(why) => write!(f, "no data: {why}"),
            Reason::Stale { age } => write!(f, "the newest data is {} s old", age.as_secs()),
        }
    }
}

impl fmt::Display for Floor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Floor::Minimum => "the minimum",
            Floor::Schedule => "the schedule",
            Floor::Season => "the same time of the last days",
        })
    }
}
