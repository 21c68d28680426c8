//! Replays a demand against a policy, second by second.
//!
//! The capacity is that of a table with a burst allowance: what a unit does not use is saved, up to a number of seconds of what
//! is granted, and spent when more is asked for. A policy sees an interval some time after it began, and what it decides is
//! in force some time later. These delays, and what a policy measures, are what the outcomes differ by.

mod experiment;

pub use experiment::Experiment;

use std::time::Duration;

use super::decision::{Action, Reason};
use super::observation::{Granted, Observation};
use super::scaler::Scaler;
use super::settings::{Policy, Settings, Wrong};

/// The longest demand that is replayed: 31 days.
pub const SECONDS_MAX: usize = 31 * 86_400;

/// What the policy is simulated against.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// Units at the start.
    pub start: u32,
    /// So many seconds of what is granted can be saved, and are saved at the start.
    pub burst: Duration,
    /// How long after it began an interval of what was consumed is known.
    pub seen_consumed: Duration,
    /// How long after it began an interval of what was asked for is known.
    pub seen_demand: Duration,
    /// How often a client repeats what was refused; each attempt counts as one event.
    pub retries: u32,
    /// How often units may be taken away; as many times at once as [`Decreases::at_once`] says, then one per pause.
    pub decreases: Option<Decreases>,
}

/// A limit on how often units are taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decreases {
    /// So many times in a day, whenever.
    pub at_once: u32,
    /// Then once when for so long there was none.
    pub pause: Duration,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Of all that was asked for, what was done.
    pub success_percent: f64,
    /// What was not done.
    pub lost: f64,
    /// How often something was refused, repetitions included.
    pub throttle_events: f64,
    /// What was paid for: units times hours.
    pub unit_hours: f64,
    /// How often the number of units changed.
    pub changes: u32,
    /// Each interval.
    pub intervals: Vec<Interval>,
}

/// An interval of the simulation; all are means over it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// When it began.
    pub from: Duration,
    /// What was asked for.
    pub demand: f64,
    /// What was done.
    pub done: f64,
    /// Units in force.
    pub granted: u32,
}

impl Default for Target {
    /// What the experiment measured: what was consumed is seen after three minutes, what was asked for after two.
    fn default() -> Self {
        Self {
            start: 50,
            burst: Duration::from_secs(300),
            seen_consumed: Duration::from_secs(180),
            seen_demand: Duration::from_secs(120),
            retries: 1,
            decreases: Some(Decreases { at_once: 4, pause: Duration::from_secs(3600) }),
        }
    }
}

/// Replays a demand, given in units for each second.
///
/// # Errors
/// A setting cannot be.
pub fn run(settings: &Settings, target: &Target, demand: &[f64]) -> Result<Outcome, Wrong> {
    check(settings, target, demand)?;
    let mut run = Run {
        scaler: Scaler::new(settings.clone())?,
        seen: match settings.policy {
            Policy::Consumed { .. } => target.seen_consumed,
            Policy::Requests | Policy::Demand => target.seen_demand,
        },
        target,
        units: target.start,
        saved: f64::from(target.start) * target.burst.as_secs_f64(),
        pending: None,
        decreases: Vec::new(),
        shown: 0,
        outcome: Outcome {
            success_percent: 100.0,
            lost: 0.0,
            throttle_events: 0.0,
            unit_hours: 0.0,
            changes: 0,
            intervals: Vec::new(),
        },
    };
    let seconds = settings.interval.as_secs() as usize;
    for (number, interval) in demand.chunks(seconds).enumerate() {
        let now = settings.interval * number as u32;
        run.decide(now);
        run.serve(now, interval);
    }
    let asked: f64 = demand.iter().sum();
    let mut outcome = run.outcome;
    outcome.throttle_events = outcome.lost * f64::from(1 + target.retries);
    if asked > 0.0 {
        outcome.success_percent = 100.0 * (1.0 - outcome.lost / asked);
    }
    Ok(outcome)
}

fn check(settings: &Settings, target: &Target, demand: &[f64]) -> Result<(), Wrong> {
    let wrong = |field, why: &str| Err(Wrong { field, why: why.to_owned() });
    let interval = settings.interval;
    if interval.subsec_nanos() != 0 || interval.is_zero() {
        return wrong("interval", "a simulation has intervals of whole seconds");
    }
    if demand.len() > SECONDS_MAX {
        return wrong("demand", "longer than 31 days");
    }
    if demand.iter().any(|rate| !rate.is_finite() || *rate < 0.0) {
        return wrong("demand", "a rate is negative, or no number");
    }
    if target.seen_consumed < interval || target.seen_demand < interval {
        return wrong("seen", "an interval is not known before it ended: must not be shorter than interval");
    }
    if settings.effect.is_zero() {
        return wrong("effect", "must be more than 0");
    }
    if target.start > settings.max || target.start < settings.min {
        return wrong("start", "must be between min and max");
    }
    Ok(())
}

/// A simulation as it goes.
struct Run<'a> {
    scaler: Scaler,
    target: &'a Target,
    /// How long after it began an interval is known.
    seen: Duration,
    units: u32,
    /// What was saved for a burst.
    saved: f64,
    /// A change that is not in force yet, and when it will be.
    pending: Option<(Duration, u32)>,
    /// When units were taken away, today.
    decreases: Vec<Duration>,
    /// How many intervals the scaler has seen.
    shown: usize,
    outcome: Outcome,
}

impl Run<'_> {
    /// What happens at the beginning of an interval.
    fn decide(&mut self, now: Duration) {
        if let Some((_, units)) = self.pending.take_if(|(at, _)| *at <= now) {
            self.units = units;
            self.saved = self.saved.min(f64::from(units) * self.target.burst.as_secs_f64());
        }
        let seen = self.seen;
        let known = self.outcome.intervals.iter().take_while(|interval| interval.from + seen <= now).count();
        let length = self.scaler.settings().interval;
        let fresh = self.outcome.intervals.get(self.shown..known).unwrap_or_default();
        let mut observations: Vec<Observation> =
            fresh.iter().map(|interval| interval.observation(length)).collect();
        self.shown = known;
        let newest = observations.pop().ok_or_else(|| "nothing is known yet".to_owned());
        for observation in observations {
            // Intervals come in order, and what they hold was checked.
            let _ = self.scaler.learn(observation);
        }
        let granted = Granted {
            units: self.units,
            in_force: self.units,
            is_changing: self.pending.is_some(),
            decreases_left: self.target.decreases.map(|limit| self.decreases_left(now, limit)),
        };
        let decision = self.scaler.observe(now, newest, granted);
        debug_assert!(!matches!(decision.reason, Reason::Stale { .. }) || self.seen > length);
        if decision.action == Action::Hold {
            return;
        }
        if decision.action == Action::Down {
            self.decreases.push(now);
        }
        self.outcome.changes += 1;
        self.pending = Some((now + self.scaler.settings().effect, decision.units));
    }

    fn decreases_left(&mut self, now: Duration, limit: Decreases) -> u32 {
        let day = |time: Duration| time.as_secs() / 86_400;
        self.decreases.retain(|at| day(*at) == day(now));
        let used = self.decreases.len() as u32;
        let paused = self.decreases.last().is_none_or(|last| now - *last >= limit.pause);
        limit.at_once.saturating_sub(used).max(u32::from(paused))
    }

    /// What is done in an interval.
    fn serve(&mut self, from: Duration, demand: &[f64]) {
        let units = f64::from(self.units);
        let (mut asked, mut done) = (0.0, 0.0);
        for rate in demand {
            let served = rate.min(units + self.saved);
            self.saved = (self.saved + units - served).clamp(0.0, units * self.target.burst.as_secs_f64());
            asked += rate;
            done += served;
        }
        let seconds = demand.len() as f64;
        self.outcome.lost += asked - done;
        self.outcome.unit_hours += units * seconds / 3600.0;
        let interval = Interval { from, demand: asked / seconds, done: done / seconds, granted: self.units };
        self.outcome.intervals.push(interval);
    }
}

impl Interval {
    fn observation(self, length: Duration) -> Observation {
        Observation { from: self.from, until: self.from + length, demand: self.demand, consumed: self.done }
    }
}

#[cfg(test)]
#[path = "experiment_tests.rs"]
mod tests;
