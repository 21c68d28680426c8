use super::*;
use crate::settings::{Freeze, Policy, Scheduled, Window};
use proptest::prelude::*;

const MINUTE: u64 = 60;
const DAY: u64 = 86_400;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// An observation of the minute that ended then.
fn minute(until: u64, demand: f64) -> Observation {
    Observation { from: seconds(until - MINUTE), until: seconds(until), demand, consumed: demand }
}

fn scaler(change: impl FnOnce(&mut Settings)) -> Scaler {
    let mut settings = Settings { max: 100, ..Settings::default() };
    change(&mut settings);
    Scaler::new(settings).expect("valid")
}

/// Tells of so many minutes of a steady demand, from the first on; the last decision.
fn steady(scaler: &mut Scaler, minutes: u64, demand: f64, granted: Granted) -> Decision {
    let mut last = None;
    for number in 1..=minutes {
        let now = number * MINUTE;
        last = Some(scaler.observe(seconds(now), Ok(minute(now, demand)), granted));
    }
    last.expect("at least one")
}

fn nothing() -> Result<Observation, String> {
    Err("the source is away".to_owned())
}

#[test]
fn more_is_asked_for_at_once_and_less_after_a_while() {
    let mut scaler = scaler(|_| {});
    let up = steady(&mut scaler, 1, 14.0, Granted::steady(10));
    assert_eq!((up.action, up.units), (Action::Up, 20));
    assert_eq!(up.reason.to_string(), "14.00 units are over the target");
    let mut scaler = self::scaler(|_| {});
    let early = steady(&mut scaler, 9, 7.0, Granted::steady(20));
    assert_eq!((early.action, early.reason), (Action::Hold, Reason::NotForLong));
    let now = 10 * MINUTE;
    let down = scaler.observe(seconds(now), Ok(minute(now, 7.0)), Granted::steady(20));
    assert_eq!((down.action, down.units, down.reason.name()), (Action::Down, 10, "below"));
}

#[test]
fn a_slope_that_will_not_fit_is_met_before_it_is_there() {
    let mut scaler = scaler(|_| {});
    let _ = scaler.observe(seconds(60), Ok(minute(60, 5.0)), Granted::steady(10));
    // 1 more per minute fits below the target's reserve; 3 more per minute does not: in five minutes it is 23.
    let gentle = scaler.clone().observe(seconds(120), Ok(minute(120, 6.0)), Granted::steady(20));
    assert_eq!(gentle.action, Action::Hold);
    let steep = scaler.observe(seconds(120), Ok(minute(120, 8.0)), Granted::steady(20));
    assert_eq!((steep.action, steep.units, steep.reason.name()), (Action::Up, 23, "trend"));
}

#[test]
fn what_was_just_added_is_not_taken_away() {
    let mut scaler = scaler(|s| s.down = Some(Down { after: seconds(600), below: 0.8 }));
    steady(&mut scaler, 20, 1.0, Granted::steady(2));
    // Two seconds late, the trend comes to a little more than two units, so there are three; in time it comes to a little less.
    let up = scaler.observe(seconds(21 * MINUTE + 2), Ok(minute(21 * MINUTE, 1.1665)), Granted::steady(2));
    assert_eq!((up.action, up.units, up.reason.name()), (Action::Up, 3, "trend"));
    for number in 22..31 {
        let now = number * MINUTE;
        let held = scaler.observe(seconds(now), Ok(minute(now, 1.0)), Granted::steady(3));
        assert_eq!(held.action, Action::Hold, "minute {number}: {}", held.reason);
    }
    let late = (31..41).map(|number| {
        let now = number * MINUTE;
        scaler.observe(seconds(now), Ok(minute(now, 1.0)), Granted::steady(3)).action
    });
    assert!(late.collect::<Vec<_>>().contains(&Action::Down));
}

#[test]
fn without_data_nothing_is_taken_away() {
    let mut scaler = scaler(|_| {});
    let none = scaler.observe(seconds(60), nothing(), Granted::steady(20));
    assert_eq!((none.action, none.reason), (Action::Hold, Reason::NoData("the source is away".into())));
    // Enough minutes for less, but the newest is missing, then too old.
    steady(&mut scaler, 10, 1.0, Granted::steady(20));
    let missing = scaler.observe(seconds(11 * MINUTE), nothing(), Granted::steady(20));
    assert_eq!((missing.action, missing.reason.name()), (Action::Hold, "no-data"));
    let stale = scaler.observe(seconds(16 * MINUTE), nothing(), Granted::steady(20));
    assert_eq!((stale.action, stale.reason.name()), (Action::Hold, "stale"));
    // A gap in the time looked back on: what happened in it is not known.
    let back = scaler.observe(seconds(17 * MINUTE), Ok(minute(17 * MINUTE, 1.0)), Granted::steady(20));
    assert_eq!((back.action, back.reason.name()), (Action::Hold, "gap"));
}

#[test]
fn a_source_that_repeats_itself_or_speaks_nonsense_is_not_heard() {
    let mut scaler = scaler(|_| {});
    steady(&mut scaler, 10, 1.0, Granted::steady(20));
    for observation in [
        minute(10 * MINUTE, 0.0),
        minute(5 * MINUTE, 0.0),
        minute(11 * MINUTE, f64::NAN),
        minute(11 * MINUTE, -1.0),
        minute(11 * MINUTE, f64::INFINITY),
    ] {
        let held = scaler.observe(seconds(11 * MINUTE), Ok(observation), Granted::steady(20));
        assert_eq!((held.action, held.reason.name()), (Action::Hold, "no-data"), "{observation:?}");
    }
}

#[test]
fn a_driver_that_is_busy_or_has_no_decrease_left_is_left_alone() {
    let busy = Granted { is_changing: true, ..Granted::steady(1) };
    assert_eq!(steady(&mut scaler(|_| {}), 1, 50.0, busy).reason, Reason::Changing);
    let used_up = Granted { decreases_left: Some(0), ..Granted::steady(20) };
    let held = steady(&mut scaler(|_| {}), 20, 1.0, used_up);
    assert_eq!((held.action, held.reason), (Action::Hold, Reason::DecreasesUsedUp));
    let starting = Granted { in_force: 10, ..Granted::steady(20) };
    assert_eq!(steady(&mut scaler(|_| {}), 20, 1.0, starting).reason, Reason::Starting);
    let more = steady(&mut scaler(|_| {}), 1, 21.0, starting);
    assert_eq!((more.action, more.units), (Action::Up, 30), "more may be asked for while some start");
}

#[test]
fn bounds_and_steps_are_kept() {
    let bounded = steady(&mut scaler(|s| s.max = 16), 1, 50.0, Granted::steady(10));
    assert_eq!((bounded.units, bounded.wanted), (16, Some(72)));
    let full = steady(&mut scaler(|s| s.max = 16), 1, 50.0, Granted::steady(16));
    assert_eq!((full.action, full.reason), (Action::Hold, Reason::AtMaximum));
    let stepped = steady(&mut scaler(|s| s.step = 5), 1, 8.0, Granted::steady(10));
    assert_eq!(stepped.units, 15);
    let slow = steady(&mut scaler(|s| s.up_max = 2), 1, 50.0, Granted::steady(10));
    assert_eq!(slow.units, 12);
    let gentle = steady(&mut scaler(|s| s.down_max = 3), 20, 1.0, Granted::steady(20));
    assert_eq!(gentle.units, 17);
    let low = steady(&mut scaler(|s| s.min = 20), 20, 1.0, Granted::steady(20));
    assert_eq!((low.action, low.reason), (Action::Hold, Reason::Kept(Floor::Minimum)));
    let over = steady(&mut scaler(|s| s.max = 16), 20, 11.0, Granted::steady(18));
    assert_eq!((over.action, over.units, over.reason), (Action::Down, 16, Reason::OverMaximum));
    assert_eq!(
        steady(&mut scaler(|s| s.down = None), 20, 1.0, Granted::steady(20)).reason,
        Reason::NeverDown
    );
}

#[test]
fn what_is_scheduled_is_in_force_when_it_begins() {
    let window = Window { from: seconds(DAY), until: seconds(DAY + 3600), every: Some(seconds(DAY)) };
    let mut scaler = scaler(|s| s.schedule.push(Scheduled { window, units: 40 }));
    let mut at = |now: u64, granted| scaler.observe(seconds(now), nothing(), Granted::steady(granted));
    assert_eq!(at(DAY - 181, 5).action, Action::Hold);
    // A change takes three minutes; a floor needs no data.
    let up = at(DAY - 180, 5);
    assert_eq!((up.action, up.units, up.reason), (Action::Up, 40, Reason::Floor(Floor::Schedule)));
    let mut kept = self::scaler(|s| s.schedule.push(Scheduled { window, units: 40 }));
    for minutes in 0..20 {
        let now = 2 * DAY + minutes * MINUTE;
        let held = kept.observe(seconds(now), Ok(minute(now, 1.0)), Granted::steady(40));
        assert_eq!(held.action, Action::Hold, "{}", held.reason);
    }
}

#[test]
fn the_same_time_of_the_last_days_is_a_floor() {
    let mut scaler = scaler(|s| s.season_days = 2);
    for day in 0..2 {
        for minutes in 0..24 * 60 {
            let now = day * DAY + (minutes + 1) * MINUTE;
            let demand = if minutes == 20 * 60 { 35.0 } else { 1.0 };
            scaler.learn(minute(now, demand)).expect("in order");
        }
    }
    let mut at = |time: u64| {
        let now = 2 * DAY + time;
        scaler.observe(seconds(now), Ok(minute(now, 1.0)), Granted::steady(2))
    };
    assert_eq!(at(19 * 3600).action, Action::Hold);
    let before = at(20 * 3600 - 2 * MINUTE);
    assert_eq!((before.action, before.units, before.reason), (Action::Up, 50, Reason::Floor(Floor::Season)));
    assert_eq!(at(21 * 3600).action, Action::Hold);
}

#[test]
fn a_reserve_is_added_and_never_taken_away() {
    let spare = steady(&mut scaler(|s| s.reserve_zones = 3), 1, 14.0, Granted::steady(10));
    assert_eq!(spare.units, 30, "20 carry it, and 10 are in the largest of three zones");
    let down = steady(&mut scaler(|s| s.reserve_zones = 3), 20, 7.0, Granted::steady(30));
    assert_eq!(down.units, 15);
}

#[test]
fn nothing_changes_in_a_freeze() {
    let window = Window { from: seconds(0), until: seconds(DAY), every: None };
    let frozen = |only_down| move |s: &mut Settings| s.freeze.push(Freeze { window, only_down });
    let all = steady(&mut scaler(frozen(false)), 1, 50.0, Granted::steady(10));
    assert_eq!((all.action, all.reason), (Action::Hold, Reason::Frozen));
    assert_eq!(steady(&mut scaler(frozen(true)), 1, 50.0, Granted::steady(10)).action, Action::Up);
    let kept = steady(&mut scaler(frozen(true)), 20, 1.0, Granted::steady(10));
    assert_eq!((kept.action, kept.reason), (Action::Hold, Reason::Frozen));
}

#[test]
fn breaches_are_consecutive() {
    let consumed = |breaches| move |s: &mut Settings| s.policy = Policy::Consumed { breaches };
    assert_eq!(steady(&mut scaler(consumed(5)), 4, 9.0, Granted::steady(10)).action, Action::Hold);
    assert_eq!(steady(&mut scaler(consumed(5)), 5, 9.0, Granted::steady(10)).action, Action::Up);
    let mut gap = scaler(consumed(5));
    steady(&mut gap, 4, 9.0, Granted::steady(10));
    let now = 7 * MINUTE;
    let after = gap.observe(seconds(now), Ok(minute(now, 9.0)), Granted::steady(10));
    assert_eq!(after.action, Action::Hold, "two minutes are missing");
}

proptest! {
    /// Whatever is measured, the units stay within bounds, and a decision says what it does.
    #[test]
    fn decisions_are_within_bounds(
        demands in prop::collection::vec(prop_oneof![0.0..200.0_f64, Just(f64::NAN)], 1..60),
        policy in 0..5_usize, min in 0..10_u32, above in 0..50_u32, zones in 0..4_u32, start in 0..80_u32,
    ) {
        let max = min + above + 4;
        let mut scaler = scaler(|s| {
            (s.policy, s.min, s.max, s.reserve_zones) = (Policy::ALL[policy], min, max, zones);
        });
        let mut units = start;
        for (number, demand) in demands.into_iter().enumerate() {
            let now = (number as u64 + 1) * MINUTE;
            let decision = scaler.observe(seconds(now), Ok(minute(now, demand)), Granted::steady(units));
            match decision.action {
                Action::Up => prop_assert!(decision.units > units && decision.units <= max),
                Action::Down => prop_assert!(decision.units < units && decision.units >= min && !demand.is_nan()),
                Action::Hold => prop_assert_eq!(decision.units, units),
            }
            units = decision.units;
        }
    }

    /// A steady demand with noise changes nothing after the first changes.
    #[test]
    fn noise_makes_no_changes(noise in prop::collection::vec(-0.05..0.05_f64, 120)) {
        let mut scaler = scaler(|_| {});
        let mut units = 45;
        let mut changes = 0;
        for (number, noise) in noise.into_iter().enumerate() {
            let now = (number as u64 + 1) * MINUTE;
            let decision =
                scaler.observe(seconds(now), Ok(minute(now, 30.0 * (1.0 + noise))), Granted::steady(units));
            changes += u32::from(decision.units != units);
            units = decision.units;
        }
        prop_assert!(changes <= 6, "{} changes", changes);
    }
}
