//! From what is wanted to what may be: floors, reserve, bounds and steps.

use std::time::Duration;

use super::decision::Floor;
use super::season::Season;
use super::settings::Settings;

/// The highest floor of this moment. What is scheduled, or was needed on the last days, must be in force when its time comes, so it
/// is asked for as much earlier as a change takes.
pub(crate) fn floor(settings: &Settings, season: &Season, now: Duration) -> (u32, Floor) {
    let soon = now.saturating_add(settings.effect);
    let scheduled =
        settings.schedule.iter().filter(|floor| floor.window.includes(now) || floor.window.includes(soon));
    let scheduled = scheduled.map(|floor| floor.units).max().unwrap_or_default();
    let ahead = settings.lead(settings.interval);
    let past = season.highest(now, ahead, settings.season_days);
    let seasonal = past.map_or(0, |demand| sized(settings, demand / settings.target));
    let all = [(settings.min, Floor::Minimum), (scheduled, Floor::Schedule), (seasonal, Floor::Season)];
    let (units, floor) = all.into_iter().rev().max_by_key(|(units, _)| *units).unwrap_or((0, Floor::Minimum));
    (stepped(settings, units), floor)
}

/// So many units as are wanted and the reserve, in whole steps, at most the maximum.
pub(crate) fn sized(settings: &Settings, wanted: f64) -> u32 {
    // Saturates; a little less than a whole number is what arithmetic makes of one.
    let units = (wanted - 1e-9).ceil().max(0.0) as u32;
    stepped(settings, with_reserve(units, settings.reserve_zones))
}

fn stepped(settings: &Settings, units: u32) -> u32 {
    units.div_ceil(settings.step).saturating_mul(settings.step).min(settings.max)
}

/// The fewest units of which so many are left without those of the largest of the zones, over which they are spread evenly.
fn with_reserve(units: u32, zones: u32) -> u32 {
    if zones < 2 || units == 0 {
        return units;
    }
    // With `q` in each of the other zones, the largest has at most one more: `units` must fit into `zones - 1`.
    let others = zones - 1;
    let (each, rest) = (units / others, units % others);
    let largest = if rest > 0 { each + 1 } else { each };
    units.saturating_add(largest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_its_largest_zone_the_rest_is_enough_and_one_unit_less_would_not_be() {
        let left = |all: u32, zones: u32| all - all.div_ceil(zones);
        for zones in 2..7 {
            for units in 1..200 {
                let all = with_reserve(units, zones);
                assert!(left(all, zones) >= units, "{units} of {all} in {zones}");
                assert!(left(all - 1, zones) < units, "{units} of {all} in {zones}");
            }
        }
        assert_eq!(with_reserve(7, 0), 7);
        assert_eq!(with_reserve(7, 1), 7);
    }

    #[test]
    fn sizes_are_whole_steps_within_the_maximum() {
        let settings = Settings { step: 4, max: 40, ..Settings::default() };
        assert_eq!(sized(&settings, 0.0), 0);
        assert_eq!(sized(&settings, 4.000_000_000_1), 4);
        assert_eq!(sized(&settings, 4.1), 8);
        assert_eq!(sized(&settings, 1e30), 40);
    }
}
