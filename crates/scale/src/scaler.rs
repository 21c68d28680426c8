//! The order in which a decision is taken.

use std::time::Duration;

use super::decision::{Action, Decision, Floor, Reason};
use super::history::History;
use super::limits;
use super::observation::{Granted, Observation};
use super::policy::{self, Want};
use super::season::Season;
use super::settings::{Down, Settings, Wrong};

/// Decides how many units there are to be.
#[derive(Clone, Debug)]
pub struct Scaler {
    settings: Settings,
    history: History,
    season: Season,
    /// When more was decided on last.
    raised: Option<Duration>,
}

impl Scaler {
    /// A scaler that has seen nothing.
    ///
    /// # Errors
    /// A setting cannot be.
    pub fn new(settings: Settings) -> Result<Self, Wrong> {
        settings.check()?;
        Ok(Self { settings, history: History::default(), season: Season::default(), raised: None })
    }

    /// What it was told.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The fewest units that there may be now, and what asks for them.
    pub fn floor(&self, now: Duration) -> (u32, Floor) {
        limits::floor(&self.settings, &self.season, now)
    }

    /// Takes an observation without deciding, such as those that another scaler made before this one started.
    ///
    /// # Errors
    /// It cannot be used: why not.
    pub fn learn(&mut self, observation: Observation) -> Result<(), String> {
        let Observation { demand, consumed, .. } = observation;
        if !observation.is_sound() {
            return Err(format!("a demand of {demand} and {consumed} consumed cannot be"));
        }
        if !self.history.add(observation) {
            return Err("the source said nothing new".to_owned());
        }
        self.season.add(&observation, self.settings.season_days);
        Ok(())
    }

    /// Takes the newest observation, or why there is none, and decides.
    ///
    /// Without data nothing is taken away, and only a floor adds.
    pub fn observe(
        &mut self,
        now: Duration,
        demand: Result<Observation, String>,
        granted: Granted,
    ) -> Decision {
        let learned = demand.and_then(|observation| self.learn(observation));
        let decision = self.decide(now, learned, granted);
        if decision.action == Action::Up {
            self.raised = Some(now);
        }
        decision
    }

    fn decide(&self, now: Duration, learned: Result<(), String>, granted: Granted) -> Decision {
        let hold = |reason| Decision { action: Action::Hold, units: granted.units, wanted: None, reason };
        let freezes = || self.settings.freeze.iter().filter(|freeze| freeze.window.includes(now));
        if freezes().any(|freeze| !freeze.only_down) {
            return hold(Reason::Frozen);
        }
        if granted.is_changing {
            return hold(Reason::Changing);
        }
        let floor = self.floor(now);
        let want = match self.wanted(now, learned) {
            Ok(want) => want,
            Err(_) if floor.0 > granted.units => {
                return self.up(granted, floor.0, None, Reason::Floor(floor.1));
            }
            Err(why) => return hold(why),
        };
        let needed = limits::sized(&self.settings, want.units);
        let wanted =
            Some(limits::sized(&Settings { max: u32::MAX, step: 1, ..self.settings.clone() }, want.units));
        if needed > granted.units && policy::has_breached(&self.settings, &self.history, granted.units) {
            return self.up(granted, needed.max(floor.0), wanted, want.reason);
        }
        if floor.0 > granted.units {
            return self.up(granted, floor.0, wanted, Reason::Floor(floor.1));
        }
        if needed >= granted.units && granted.units <= self.settings.max {
            let is_short = wanted > Some(granted.units) && granted.units == self.settings.max;
            let reason = if is_short { Reason::AtMaximum } else { Reason::Enough };
            return Decision { wanted, ..hold(reason) };
        }
        let lower = match freezes().next() {
            Some(_) => Err(Reason::Frozen),
            None => self.lower(now, granted, floor),
        };
        match lower {
            Ok((units, reason)) => Decision { action: Action::Down, units, wanted, reason },
            Err(reason) => Decision { wanted, ..hold(reason) },
        }
    }

    /// What the policy wants now; why it cannot know.
    fn wanted(&self, now: Duration, learned: Result<(), String>) -> Result<Want, Reason> {
        let newest = self.history.newest();
        let age = |newest: &Observation| now.saturating_sub(newest.until);
        match newest {
            Some(newest) if age(newest) > self.settings.stale_after => {
                return Err(Reason::Stale { age: age(newest) });
            }
            Some(_) => learned.map_err(Reason::NoData)?,
            None => return Err(Reason::NoData(learned.err().unwrap_or_default())),
        }
        let since = newest.map_or(now, |newest| newest.from);
        let want = policy::needed(&self.settings, &self.history, 0, now.saturating_sub(since));
        want.ok_or_else(|| Reason::NoData("there are too few observations".to_owned()))
    }

    fn up(&self, granted: Granted, units: u32, wanted: Option<u32>, reason: Reason) -> Decision {
        let units = units.min(granted.units.saturating_add(self.settings.up_max)).min(self.settings.max);
        Decision { action: Action::Up, units, wanted, reason }
    }

    /// How many fewer units there may be; why none are taken away.
    fn lower(&self, now: Duration, granted: Granted, floor: (u32, Floor)) -> Result<(u32, Reason), Reason> {
        let down = self.settings.down.ok_or(Reason::NeverDown)?;
        let over_maximum = granted.units > self.settings.max;
        // What was asked for as a whole unit, for a small part of one, is not taken away at once.
        if self.raised.is_some_and(|raised| now.saturating_sub(raised) < down.after) {
            return Err(Reason::NotForLong);
        }
        let (units, reason) = match self.highest_needed(now, down)? {
            highest if highest < down.below * f64::from(granted.units) => {
                (limits::sized(&self.settings, highest), Reason::Below { highest, over: down.after })
            }
            _ if over_maximum => (self.settings.max, Reason::OverMaximum),
            _ => return Err(Reason::Enough),
        };
        let units = units.max(floor.0).max(granted.units.saturating_sub(self.settings.down_max));
        if units >= granted.units {
            return Err(if floor.0 >= granted.units { Reason::Kept(floor.1) } else { Reason::Enough });
        }
        if granted.in_force < granted.units {
            return Err(Reason::Starting);
        }
        if granted.decreases_left == Some(0) {
            return Err(Reason::DecreasesUsedUp);
        }
        Ok((units, reason))
    }

    /// The most that was needed at any time that has to be looked back on.
    fn highest_needed(&self, now: Duration, down: Down) -> Result<f64, Reason> {
        let newest = self.history.newest().ok_or(Reason::NotForLong)?;
        let oldest = self.history.before(0).next().map_or(newest.from, |oldest| oldest.from);
        if newest.until.saturating_sub(oldest) < down.after {
            return Err(Reason::NotForLong);
        }
        let from = newest.until.saturating_sub(down.after);
        let count = self.history.covering(from, self.settings.interval).ok_or(Reason::Gap)?;
        let age = now.saturating_sub(newest.from);
        let needed = (0..count).filter_map(|back| policy::needed(&self.settings, &self.history, back, age));
        needed.map(|want| want.units).reduce(f64::max).ok_or(Reason::Gap)
    }
}

#[cfg(test)]
#[path = "scaler_tests.rs"]
mod tests;
