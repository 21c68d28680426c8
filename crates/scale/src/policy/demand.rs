//! The default policy: what is asked for, and where that is going.
//!
//! The share above the target is there for what nobody foresees. What the slope of the demand promises until a change is in
//! force is foreseen: it may fill what is granted. So a trend costs nothing as long as the demand grows more slowly than that
//! share allows, and a steep one is met before it is there.

use std::time::Duration;

use super::{SIZED_BY, Want};
use crate::decision::Reason;
use crate::history::History;
use crate::settings::Settings;

/// What is needed by the demand of the last five intervals, and by its slope over the lead time.
pub(super) fn needed(settings: &Settings, history: &History, back: usize, lead: Duration) -> Option<Want> {
    let mut last = history.before(back).rev().take(SIZED_BY);
    let most = last.clone().map(|observation| observation.demand).reduce(f64::max)?;
    let by_target = Want { units: most / settings.target, reason: Reason::OverTarget { measured: most } };
    let newest = last.next()?;
    let Some(previous) = last.next() else { return Some(by_target) };
    // From middle to middle; what a gap hides is not taken for a slope that goes on.
    let apart = newest.until.saturating_sub(previous.until).max(settings.interval);
    let slope = (newest.demand - previous.demand).max(0.0) / apart.as_secs_f64();
    let expected = newest.demand + slope * lead.as_secs_f64();
    if expected <= by_target.units {
        return Some(by_target);
    }
    Some(Want { units: expected, reason: Reason::Trend { measured: newest.demand, expected } })
}
