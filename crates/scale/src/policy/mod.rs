//! What each policy wants.

mod breaches;
mod demand;

use std::time::Duration;

use super::decision::Reason;
use super::history::History;
use super::settings::{Policy, Settings};

/// Observations by which all policies size.
const SIZED_BY: usize = 5;

/// What a policy wants, in units, and why.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Want {
    /// How many units, not rounded.
    pub(crate) units: f64,
    /// Why more, if they are more than what is granted.
    pub(crate) reason: Reason,
}

/// What is needed by what was known `back` observations ago, whether or not more is granted.
pub(crate) fn needed(settings: &Settings, history: &History, back: usize, age: Duration) -> Option<Want> {
    match settings.policy {
        Policy::Consumed { .. } => breaches::by_consumed(settings, history, back),
        Policy::Requests => breaches::by_requests(settings, history, back),
        Policy::Demand => demand::needed(settings, history, back, settings.lead(age)),
    }
}

/// Whether the policy has seen enough to ask for more than is granted.
pub(crate) fn has_breached(settings: &Settings, history: &History, granted: u32) -> bool {
    let threshold = f64::from(granted) * settings.target;
    match settings.policy {
        Policy::Consumed { breaches } => {
            breaches::consecutive(history, settings.interval, breaches, threshold)
        }
        Policy::Requests => history.newest().is_some_and(|newest| newest.demand > threshold),
        // Its size alone says whether there is enough.
        Policy::Demand => true,
    }
}
