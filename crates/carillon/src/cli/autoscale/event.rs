//! A line of the decision log: what was known, what was decided, and what came of it.

use carillon_core::model::UnixMs;
use carillon_scale::{Action, Decision, Granted, Observation, Settings};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// A decision with its inputs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Event {
    /// When it was decided.
    pub(super) at: String,
    pub(super) policy: String,
    /// In percent.
    pub(super) target: f64,
    /// When the interval of the observation began and ended; nothing without one.
    pub(super) from: Option<String>,
    pub(super) until: Option<String>,
    /// In units.
    pub(super) demand: Option<f64>,
    pub(super) consumed: Option<f64>,
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
            action: Action::Hold.name().to_owned(),
            ..Event::default()
        }
    }

    /// With what was measured.
    pub(super) fn observed(&mut self, observation: &Observation) {
        (self.from, self.until) = (Some(time(observation.from)), Some(time(observation.until)));
        (self.demand, self.consumed) = (Some(observation.demand), Some(observation.consumed));
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
        UnixMs::from_rfc3339(&self.at).map_or(Duration::ZERO, |at| Duration::from_millis(at.0))
    }

    /// The observation that it was decided by.
    pub(super) fn observation(&self) -> Option<Observation> {
        let moment = |text: &Option<String>| {
            UnixMs::from_rfc3339(text.as_deref()?).map(|at| Duration::from_millis(at.0))
        };
        let (from, until) = (moment(&self.from)?, moment(&self.until)?);
        Some(Observation { from, until, demand: self.demand?, consumed: self.consumed? })
    }

    /// What others read of it, in at most so many bytes: the newest decision without what a long line would have besides.
    pub(super) fn state(&self, bytes_max: usize) -> Value {
        let fits = |event: &Event| {
            let state = serde_json::to_value(event).unwrap_or_default();
            (state.to_string().len() <= bytes_max).then_some(state)
        };
        let short =
            || Event { measures: BTreeMap::new(), notes: Vec::new(), leaving: Vec::new(), ..self.clone() };
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

/// A moment as it stands in the log.
pub(super) fn time(since_epoch: Duration) -> String {
    UnixMs(u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)).to_xmpp()
}
