use super::*;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[track_caller]
fn wrong(change: impl FnOnce(&mut Settings)) -> String {
    let mut settings = Settings::default();
    change(&mut settings);
    settings.check().expect_err("wrong").to_string()
}

#[test]
fn what_cannot_be_is_said_with_its_field() {
    assert_eq!(Settings::default().check(), Ok(()));
    assert_eq!(wrong(|s| s.target = 0.0), "target: expected more than 0 and at most 100 percent");
    assert_eq!(wrong(|s| s.target = f64::NAN), "target: expected more than 0 and at most 100 percent");
    assert_eq!(wrong(|s| s.min = 11), "min: 11 is more than max, 10");
    assert_eq!(wrong(|s| s.max = 0), "min: 1 is more than max, 0");
    assert_eq!(wrong(|s| s.step = 0), "step: expected at least 1 and at most max");
    assert_eq!(wrong(|s| s.step = 3), "max: is no multiple of step, 3");
    assert_eq!(wrong(|s| s.up_max = 0), "up_max: must not be less than step");
    assert_eq!(wrong(|s| s.interval = Duration::ZERO), "interval: must be more than 0");
    assert_eq!(wrong(|s| s.stale_after = seconds(1)), "stale_after: must not be shorter than interval");
    let down = |below, after| Some(Down { below, after });
    assert_eq!(
        wrong(|s| s.down = down(1.0, seconds(600))),
        "down.below: expected more than 0 and less than 100 percent"
    );
    assert_eq!(
        wrong(|s| s.down = down(0.8, seconds(60_060))),
        "down.after: 1001 intervals are too many; 1000 are the most"
    );
    assert_eq!(wrong(|s| s.season_days = 29), "season_days: 28 is the most");
    assert_eq!(wrong(|s| s.reserve_zones = 11), "reserve_zones: must not be more than max");
    let window = |from, until, every| Window { from: seconds(from), until: seconds(until), every };
    assert_eq!(
        wrong(|s| s.schedule.push(Scheduled { window: window(0, 1, None), units: 11 })),
        "schedule.units: 11 is more than max, 10"
    );
    assert_eq!(
        wrong(|s| s.freeze.push(Freeze { window: window(5, 5, None), only_down: true })),
        "freeze: ends before it begins"
    );
    assert_eq!(
        wrong(|s| s.freeze.push(Freeze { window: window(0, 9, Some(seconds(8))), only_down: true })),
        "freeze: begins again before it ends"
    );
}

#[test]
fn windows_come_again() {
    let window = Window { from: seconds(100), until: seconds(110), every: Some(seconds(50)) };
    let included = (0..220).filter(|second| window.includes(seconds(*second))).collect::<Vec<_>>();
    let expected: Vec<u64> = [100..110, 150..160, 200..210].into_iter().flatten().collect();
    assert_eq!(included, expected);
    assert!(!Window { every: None, ..window }.includes(seconds(155)));
}

#[test]
fn policies_have_names() {
    for policy in Policy::ALL {
        assert_eq!(policy.name().parse(), Ok(policy));
    }
    let unknown = "consumed".parse::<Policy>().expect_err("unknown");
    assert_eq!(
        unknown,
        "\"consumed\" is no policy; there are consumed-5, consumed-2, consumed-1, requests-1, demand"
    );
}
