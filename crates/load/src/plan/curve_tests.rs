//! Known values, and properties that hold for any shape.

use std::time::Duration;

use proptest::prelude::*;

use super::super::Span;
use super::*;

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

fn span(length: f64) -> Span {
    Span(seconds(length))
}

#[test]
fn a_steady_rate_is_due_at_even_times() {
    let shape = Shape::Steady(4.0);
    assert_eq!(shape.due(0.0), Some(Duration::ZERO));
    assert_eq!(shape.due(6.0), Some(Duration::from_millis(1500)));
    assert!((shape.arrivals(seconds(2.5)) - 10.0).abs() < 1e-9);
    assert_eq!(shape.span(), None);
    assert_eq!(Shape::Steady(0.0).due(1.0), None);
}

#[test]
fn a_bell_rises_and_falls_as_the_mission_says() {
    let bell: Shape = toml::from_str::<std::collections::BTreeMap<String, Shape>>("s = { shape = 'bell' }")
        .expect("defaults")
        .remove("s")
        .expect("given");
    assert!((bell.rate_at(Duration::ZERO) - 25.0).abs() < 1e-9);
    assert!((bell.rate_at(seconds(45.0 * 60.0)) - 300.0).abs() < 1e-9);
    assert!((bell.rate_at(seconds(22.5 * 60.0)) - 162.5).abs() < 1e-9);
    assert_eq!(bell.span(), Some(seconds(3600.0)));
    assert!(bell.rate_at(seconds(3601.0)).abs() < 1e-9);
    // The mean of a half cosine is the mean of its ends.
    assert!((bell.arrivals(seconds(3600.0)) - 162.5 * 3600.0).abs() < 1e-3);
    assert_eq!(bell.due(162.5 * 3600.0 + 1.0), None);
}

#[test]
fn a_top_heavy_shape_falls_three_a_minute() {
    let rise = span(300.0);
    let shape = Shape::Named(NamedShape::TopHeavy { base: 25.0, peak: 300.0, rise, fall_per_minute: 3.0 });
    assert!((shape.rate_at(seconds(300.0)) - 300.0).abs() < 1e-9);
    assert!((shape.rate_at(seconds(360.0)) - 297.0).abs() < 1e-9);
    assert_eq!(shape.span(), Some(seconds(300.0 + 275.0 / 3.0 * 60.0)));
}

#[test]
fn a_spike_is_sudden() {
    let shape = Shape::Named(NamedShape::Spike { base: 10.0, peak: 100.0, at: span(5.0), lasts: span(2.0) });
    let rates = [4.9, 5.0, 6.9, 7.0].map(|time| shape.rate_at(seconds(time)));
    assert_eq!(rates.map(|rate| rate.round() as u32), [10, 100, 100, 10]);
    assert_eq!(shape.due(50.0), Some(seconds(5.0)));
    assert_eq!(shape.due(250.0), Some(seconds(7.0)));
}

fn shapes() -> impl Strategy<Value = Shape> {
    let rate = 0.5..500.0;
    let time = 0.1..300.0;
    prop_oneof![
        rate.clone().prop_map(Shape::Steady),
        (rate.clone(), rate.clone(), time.clone())
            .prop_map(|(from, to, over)| NamedShape::Ramp { from, to, over: span(over) })
            .prop_map(Shape::Named),
        (rate.clone(), rate.clone(), time.clone(), time.clone())
            .prop_map(|(base, peak, at, lasts)| NamedShape::Spike {
                base,
                peak,
                at: span(at),
                lasts: span(lasts)
            })
            .prop_map(Shape::Named),
        (rate.clone(), rate.clone(), time.clone(), time.clone())
            .prop_map(|(base, peak, rise, fall)| NamedShape::Bell {
                base,
                peak,
                rise: span(rise),
                fall: span(fall)
            })
            .prop_map(Shape::Named),
        (rate.clone(), rate, time, 1.0..50.0)
            .prop_map(|(base, more, rise, fall_per_minute)| NamedShape::TopHeavy {
                base,
                peak: base + more,
                rise: span(rise),
                fall_per_minute
            })
            .prop_map(Shape::Named),
    ]
}

proptest! {
    #[test]
    fn the_integral_is_that_of_the_rate(shape in shapes(), end in 1.0..400.0_f64) {
        const STEPS: u32 = 20_000;
        let step = end / f64::from(STEPS);
        let sum: f64 = (0..STEPS).map(|i| shape.rate_at(seconds((f64::from(i) + 0.5) * step)) * step).sum();
        let exact = shape.arrivals(seconds(end));
        // A jump of the rate is off by at most one step of the highest rate, at each of three jumps.
        prop_assert!((sum - exact).abs() <= 3.0 * 1000.0 * step + 1e-6 * exact, "{sum} {exact}");
    }

    #[test]
    fn the_inverse_undoes_the_integral(shape in shapes(), end in 0.0..400.0_f64) {
        let events = shape.arrivals(seconds(end));
        if let Some(due) = shape.due(events) {
            prop_assert!((shape.arrivals(due) - events).abs() < 1e-3, "{events} due {due:?}");
        }
    }

    #[test]
    fn later_events_are_due_later(shape in shapes(), first in 0.0..5000.0_f64, more in 0.001..100.0_f64) {
        if let (Some(one), Some(other)) = (shape.due(first), shape.due(first + more)) {
            prop_assert!(one <= other);
        }
    }
}
