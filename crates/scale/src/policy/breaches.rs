//! The policies of the experiment: a threshold that is passed.

use std::time::Duration;

use super::{SIZED_BY, Want};
use crate::decision::Reason;
use crate::history::History;
use crate::settings::Settings;

/// The mean of what was done in the last five intervals. It cannot outgrow what was granted, so that a capacity that is far
/// too small is enlarged in small steps.
pub(super) fn by_consumed(settings: &Settings, history: &History, back: usize) -> Option<Want> {
    let last = history.before(back).rev().take(SIZED_BY).map(|observation| observation.consumed);
    let count = last.clone().count();
    if count == 0 {
        return None;
    }
    let mean = last.sum::<f64>() / count as f64;
    Some(Want { units: mean / settings.target, reason: Reason::OverTarget { measured: mean } })
}

/// The most that was asked for in the last five intervals.
pub(super) fn by_requests(settings: &Settings, history: &History, back: usize) -> Option<Want> {
    let last = history.before(back).rev().take(SIZED_BY).map(|observation| observation.demand);
    let most = last.reduce(f64::max)?;
    Some(Want { units: most / settings.target, reason: Reason::OverTarget { measured: most } })
}

/// Whether what was done was over the threshold in so many consecutive intervals until now.
pub(super) fn consecutive(history: &History, interval: Duration, breaches: u32, threshold: f64) -> bool {
    let mut next_from = None;
    let newest = history.before(0).rev().take(breaches as usize);
    let consecutive = newest.take_while(|observation| {
        let follows =
            next_from.is_none_or(|next: Duration| next.saturating_sub(observation.until) <= interval / 2);
        next_from = Some(observation.from);
        follows && observation.consumed > threshold
    });
    consecutive.count() == breaches as usize
}
