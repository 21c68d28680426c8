//! The policies, and what they are given.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// How a scaler is to decide.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// By what it decides.
    pub policy: Policy,
    /// How full a unit is to be, as a share of what it carries: more than 0, at most 1.
    pub target: f64,
    /// The fewest units.
    pub min: u32,
    /// The most units.
    pub max: u32,
    /// Units come and go in multiples of this.
    pub step: u32,
    /// The most units that are added at once.
    pub up_max: u32,
    /// The most units that are taken away at once.
    pub down_max: u32,
    /// How long an interval of measurement is.
    pub interval: Duration,
    /// How long it takes until a change is in force.
    pub effect: Duration,
    /// When units are taken away; `None`: never.
    pub down: Option<Down>,
    /// The newest observation says nothing any more when it is older than this.
    pub stale_after: Duration,
    /// Floors for times at which much is expected.
    pub schedule: Vec<Scheduled>,
    /// Days on which the same time is looked up: the highest demand of them is a floor. 0: none.
    pub season_days: u32,
    /// Zones over which units are spread evenly; with more than one there are always so many units that those which are left without
    /// the largest zone carry the demand at the target. 0 or 1: nothing is kept in reserve.
    pub reserve_zones: u32,
    /// Times at which nothing is changed, or nothing is taken away.
    pub freeze: Vec<Freeze>,
}

/// When units are taken away.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Down {
    /// For how long less must have been needed.
    pub after: Duration,
    /// Below which share of what is granted.
    pub below: f64,
}

/// A time, once or again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// When it begins, since the Unix epoch.
    pub from: Duration,
    /// When it ends.
    pub until: Duration,
    /// After how long it begins again.
    pub every: Option<Duration>,
}

/// At least so many units in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheduled {
    /// When.
    pub window: Window,
    /// How many.
    pub units: u32,
}

/// No change in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freeze {
    /// When.
    pub window: Window,
    /// Units may still be added.
    pub only_down: bool,
}

/// By what a scaler decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// What was done was over the target in so many consecutive intervals; sized by the mean of the last five.
    Consumed {
        /// Consecutive intervals, at least 1.
        breaches: u32,
    },
    /// What was asked for was over the target in one interval; sized by the most of the last five.
    Requests,
    /// What was asked for, or what its slope promises until a change is in force, is more than what is granted carries.
    Demand,
}

/// A setting that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {why}")]
pub struct Wrong {
    /// The setting, as the configuration names it.
    pub field: &'static str,
    /// What is wrong with it.
    pub why: String,
}

/// The most days of a season.
pub const SEASON_DAYS_MAX: u32 = 28;
/// The most units.
pub const UNITS_MAX: u32 = 1_000_000;
/// The most windows of a kind.
pub const WINDOWS_MAX: usize = 1000;
/// The most intervals that scaling down may look back.
pub const LOOK_BACK_MAX: u128 = 1000;

impl Policy {
    /// All of them: first those of the experiment.
    pub const ALL: [Policy; 5] = [
        Policy::Consumed { breaches: 5 },
        Policy::Consumed { breaches: 2 },
        Policy::Consumed { breaches: 1 },
        Policy::Requests,
        Policy::Demand,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Policy::Consumed { breaches: 5 } => "consumed-5",
            Policy::Consumed { breaches: 2 } => "consumed-2",
            Policy::Consumed { .. } => "consumed-1",
            Policy::Requests => "requests-1",
            Policy::Demand => "demand",
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Policy {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Policy::ALL.into_iter().find(|policy| policy.name() == name).ok_or_else(|| {
            let names = Policy::ALL.map(Policy::name).join(", ");
            format!("{name:?} is no policy; there are {names}")
        })
    }
}

impl Default for Settings {
    fn default() -> Self {
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        Self {
            policy: Policy::Demand,
            target: 0.7,
            min: 1,
            max: 10,
            step: 1,
            up_max: UNITS_MAX,
            down_max: UNITS_MAX,
            interval: minutes(1),
            effect: minutes(3),
            down: Some(Down::default()),
            stale_after: minutes(5),
            schedule: Vec::new(),
            season_days: 0,
            reserve_zones: 0,
            freeze: Vec::new(),
        }
    }
}

impl Default for Down {
    fn default() -> Self {
        Self { after: Duration::from_secs(600), below: 0.8 }
    }
}

impl Settings {
    /// How long a decision has to look ahead from the beginning of the newest interval: until the change that is decided on
    /// next is in force.
    pub(crate) fn lead(&self, age: Duration) -> Duration {
        age.saturating_add(self.effect).saturating_add(self.interval)
    }

    /// Checks that the settings can be, each and together.
    ///
    /// # Errors
    /// The first one that cannot.
    pub fn check(&self) -> Result<(), Wrong> {
        demand(
            self.target > 0.0 && self.target <= 1.0,
            "target",
            "expected more than 0 and at most 100 percent",
        )?;
        demand(self.min <= self.max, "min", format!("{} is more than max, {}", self.min, self.max))?;
        demand((1..=UNITS_MAX).contains(&self.max), "max", format!("expected 1 to {UNITS_MAX}"))?;
        demand(self.step > 0 && self.step <= self.max, "step", "expected at least 1 and at most max")?;
        // Otherwise `max` would be out of reach, or `min` could not be kept.
        demand(self.max.is_multiple_of(self.step), "max", format!("is no multiple of step, {}", self.step))?;
        demand(self.up_max >= self.step, "up_max", "must not be less than step")?;
        demand(self.down_max >= self.step, "down_max", "must not be less than step")?;
        demand(!self.interval.is_zero(), "interval", "must be more than 0")?;
        demand(self.stale_after >= self.interval, "stale_after", "must not be shorter than interval")?;
        if let Some(down) = self.down {
            demand(
                down.below > 0.0 && down.below < 1.0,
                "down.below",
                "expected more than 0 and less than 100 percent",
            )?;
            demand(down.after >= self.interval, "down.after", "must not be shorter than interval")?;
            let intervals = down.after.as_nanos() / self.interval.as_nanos();
            let why = format!("{intervals} intervals are too many; {LOOK_BACK_MAX} are the most");
            demand(intervals <= LOOK_BACK_MAX, "down.after", why)?;
        }
        demand(self.season_days <= SEASON_DAYS_MAX, "season_days", format!("{SEASON_DAYS_MAX} is the most"))?;
        demand(self.reserve_zones <= self.max, "reserve_zones", "must not be more than max")?;
        demand(
            self.schedule.len() <= WINDOWS_MAX,
            "schedule",
            format!("{WINDOWS_MAX} entries are the most"),
        )?;
        demand(self.freeze.len() <= WINDOWS_MAX, "freeze", format!("{WINDOWS_MAX} entries are the most"))?;
        for floor in &self.schedule {
            demand(
                floor.units <= self.max,
                "schedule.units",
                format!("{} is more than max, {}", floor.units, self.max),
            )?;
        }
        let windows = self.schedule.iter().map(|floor| (floor.window, "schedule"));
        let mut windows = windows.chain(self.freeze.iter().map(|freeze| (freeze.window, "freeze")));
        windows.try_for_each(|(window, field)| window.check(field))
    }
}

impl Window {
    /// Whether it includes this moment.
    pub fn includes(&self, now: Duration) -> bool {
        let Some(since) = now.checked_sub(self.from) else { return false };
        let since = self
            .every
            .map_or(since, |every| Duration::from_nanos_u128(since.as_nanos() % every.as_nanos().max(1)));
        since < self.until.saturating_sub(self.from)
    }

    fn check(&self, field: &'static str) -> Result<(), Wrong> {
        demand(self.until > self.from, field, "ends before it begins")?;
        let length = self.until.saturating_sub(self.from);
        demand(self.every.is_none_or(|every| every >= length), field, "begins again before it ends")
    }
}

fn demand(is_fine: bool, field: &'static str, why: impl Into<String>) -> Result<(), Wrong> {
    if is_fine { Ok(()) } else { Err(Wrong { field, why: why.into() }) }
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
