//! A line of the decision log: what was known, what was decided, and what came of it.

use carillon_core::model::UnixMs;
use carillon_scale::{Action, Decision, Granted, Observation, Settings};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// A decision with its inputs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Event {
    /// When it was decided.
    pub(super) at: String,
    pub(super) policy: String,
    /// In percent.
    pub(super) target: f64,
    /// The fewest and the most units.
    #[serde(default)]
    pub(super) min: u32,
    #[serde(default)]
    pub(super) max: u32,
    /// The fewest units of this moment, and what asks for them.
    #[serde(default)]
    pub(super) floor: Option<Floor>,
    /// How long it takes until a change is in force: so far ahead the policy looks.
    #[serde(default)]
    pub(super) effect_ms: u64,
    /// When the interval of the observation began and ended; nothing without one.
    pub(super) from: Option<String>,
    pub(super) until: Option<String>,
    /// In units.
    pub(super) demand: Option<f64>,
    pub(super) consumed: Option<f64>,
    /// Earlier intervals that the source told of at the same time, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) earlier: Vec<Measured>,
    /// What the source measured, by name, in its own units.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) measures: BTreeMap<String, f64>,
    /// What there is; nothing if the driver could not say.
    pub(super) granted: Option<u32>,
    pub(super) in_force: Option<u32>,
    pub(super) is_changing: bool,
    pub(super) decreases_left: Option<u32>,
    /// `up`, `down` or `hold`.
    pub(super) action: String,
    /// Units there are to be.
    pub(super) units: Option<u32>,
    /// Units that the policy finds right, before bounds.
    pub(super) wanted: Option<u32>,
    /// A word for programs.
    pub(super) reason: String,
    /// A sentence for people.
    pub(super) why: String,
    /// What came of it.
    pub(super) outcome: Outcome,
    /// Edges that are being taken away: a scaler that starts goes on with them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) leaving: Vec<String>,
    /// What the driver said meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) notes: Vec<String>,
}

/// The fewest units of a moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Floor {
    pub(super) units: u32,
    /// `minimum`, `schedule` or `season`.
    pub(super) by: String,
}

/// An interval that was measured and not told before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Measured {
    pub(super) from: String,
    pub(super) until: String,
    pub(super) demand: f64,
    pub(super) consumed: f64,
}

/// A decision in few bytes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Brief {
    at: String,
    action: String,
    granted: Option<u32>,
    units: Option<u32>,
    demand: Option<f64>,
    reason: String,
}

/// The last decisions that changed something, and the first of those that gave one reason.
#[derive(Debug, Default)]
pub(super) struct Recent(VecDeque<Brief>);

/// As many are shown.
const RECENT_MAX: usize = 16;

impl Recent {
    /// Adds one, if it says something new.
    pub(super) fn add(&mut self, event: &Event) {
        let is_same = |last: &Brief| event.action == "hold" && last.reason == event.reason;
        if self.0.back().is_some_and(is_same) {
            return;
        }
        if self.0.len() == RECENT_MAX {
            self.0.pop_front();
        }
        let Event { at, action, granted, units, demand, reason, .. } = event.clone();
        self.0.push_back(Brief { at, action, granted, units, demand, reason });
    }
}

/// What came of a decision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Outcome {
    /// There was nothing to do.
    #[default]
    Nothing,
    /// It would have been done: this is a dry run.
    DryRun,
    /// The driver was told.
    Done,
    /// The driver refused: why.
    Refused(String),
}

impl Event {
    /// An event of this moment without inputs.
    pub(super) fn new(now: Duration, settings: &Settings) -> Event {
        Event {
            at: time(now),
            policy: settings.policy.name().to_owned(),
            target: (settings.target * 1000.0).round() / 10.0,
            min: settings.min,
            max: settings.max,
            effect_ms: u64::try_from(settings.effect.as_millis()).unwrap_or(u64::MAX),
            action: Action::Hold.name().to_owned(),
            ..Event::default()
        }
    }

    /// With what was measured.
    pub(super) fn observed(&mut self, observation: &Observation) {
        (self.from, self.until) = (Some(time(observation.from)), Some(time(observation.until)));
        (self.demand, self.consumed) = (Some(observation.demand), Some(observation.consumed));
    }

    /// With intervals that were measured before that one, and are told only now.
    pub(super) fn told_late(&mut self, earlier: &[Observation]) {
        let measured = |one: &Observation| Measured {
            from: time(one.from),
            until: time(one.until),
            demand: one.demand,
            consumed: one.consumed,
        };
        self.earlier = earlier.iter().map(measured).collect();
    }

    /// With the fewest units of this moment.
    pub(super) fn floored(&mut self, (units, by): (u32, carillon_scale::Floor)) {
        self.floor = Some(Floor { units, by: by.name().to_owned() });
    }

    /// With what there is.
    pub(super) fn granted(&mut self, granted: Granted) {
        (self.granted, self.in_force) = (Some(granted.units), Some(granted.in_force));
        (self.is_changing, self.decreases_left) = (granted.is_changing, granted.decreases_left);
    }

    /// With what was decided.
    pub(super) fn decided(&mut self, decision: &Decision) {
        self.action = decision.action.name().to_owned();
        (self.units, self.wanted) = (Some(decision.units), decision.wanted);
        (self.reason, self.why) = (decision.reason.name().to_owned(), decision.reason.to_string());
    }

    /// When it was decided; zero if the log does not say.
    pub(super) fn moment(&self) -> Duration {
        moment(&self.at).unwrap_or_default()
    }

    /// The observations that it was decided by and that no event before it has, the oldest first.
    pub(super) fn observations(&self) -> Vec<Observation> {
        let earlier = self.earlier.iter().filter_map(|one| {
            Some(Observation {
                from: moment(&one.from)?,
                until: moment(&one.until)?,
                demand: one.demand,
                consumed: one.consumed,
            })
        });
        earlier.chain(self.observation()).collect()
    }

    fn observation(&self) -> Option<Observation> {
        let (from, until) = (moment(self.from.as_deref()?)?, moment(self.until.as_deref()?)?);
        Some(Observation { from, until, demand: self.demand?, consumed: self.consumed? })
    }

    /// What others read of it, in at most so many bytes: the newest decision without what a long line would have besides, and of the decisions before
    /// it as many as there is room for.
    pub(super) fn state(&self, recent: &Recent, bytes_max: usize) -> Value {
        let mut state = self.alone(bytes_max);
        for from in 0..recent.0.len() {
            let mut with = state.clone();
            with["recent"] = json!(recent.0.range(from..).collect::<Vec<_>>());
            if with.to_string().len() <= bytes_max {
                state = with;
                break;
            }
        }
        state
    }

    fn alone(&self, bytes_max: usize) -> Value {
        let fits = |event: &Event| {
            let state = serde_json::to_value(event).unwrap_or_default();
            (state.to_string().len() <= bytes_max).then_some(state)
        };
        let short = || Event {
            measures: BTreeMap::new(),
            earlier: Vec::new(),
            notes: Vec::new(),
            leaving: Vec::new(),
            ..self.clone()
        };
        fits(self)
            .or_else(|| fits(&short()))
            .unwrap_or_else(|| json!({"at": self.at, "action": self.action, "units": self.units}))
    }

    /// For people, a line.
    pub(super) fn sentence(&self) -> String {
        let Event { at, action, why, .. } = self;
        let number = |units: Option<u32>| units.map_or_else(|| "?".to_owned(), |units| units.to_string());
        let from = number(self.granted);
        let change = match self.units.filter(|units| Some(*units) != self.granted) {
            Some(units) => format!("{from} → {units}"),
            None => from,
        };
        let demand = self.demand.map_or_else(|| "-".to_owned(), |demand| format!("{demand:.2}"));
        let outcome = match &self.outcome {
            Outcome::Nothing => String::new(),
            Outcome::DryRun => " (dry run)".to_owned(),
            Outcome::Done => " (done)".to_owned(),
            Outcome::Refused(why) => format!(" (refused: {why})"),
        };
        let notes: String = self.notes.iter().map(|note| format!("; {note}")).collect();
        format!("{at}  {action:4}  {change} units, demand {demand}: {why}{outcome}{notes}")
    }
}

fn moment(text: &str) -> Option<Duration> {
    UnixMs::from_rfc3339(text).map(|at| Duration::from_millis(at.0))
}

/// A moment as it stands in the log.
pub(super) fn time(since_epoch: Duration) -> String {
    UnixMs(u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)).to_xmpp()
}
