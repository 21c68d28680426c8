//! What a simulation found, as a page with plots: no network, no script.

use super::Row;
use carillon_load::report::{Chart, Series, Table, WIDE, figure, page};
use carillon_scale::simulate::Interval;

/// The page.
pub(super) fn html(rows: &[Row], per_unit: f64) -> String {
    let mut body = "<h1>Autoscaler: simulated demands</h1><p class=sub>How full a unit is to be, by what is decided, and what came of \
                    it. A throttle event is a refused attempt, repetitions included.</p>"
        .to_owned();
    body += &table(rows, per_unit);
    let figures = cells(rows).flat_map(|cell| charts(cell, per_unit));
    let figures: String = figures.map(|chart| figure(&chart.title, |width| chart.svg(width))).collect();
    body += &format!("<h2>Over time</h2><div class=plots>{figures}</div>");
    page("Autoscaler: simulated demands", &body)
}

/// Each plot as a picture of its own, with its file's name.
pub(super) fn pictures(rows: &[Row], per_unit: f64) -> Vec<(String, String)> {
    let named = |cell: &[Row]| {
        let name =
            cell.first().map(|row| format!("{}-{}", plain(&row.shape), row.target)).unwrap_or_default();
        charts(cell, per_unit).map(|chart| {
            let what = if chart.unit == "units" { "granted" } else { "refused" };
            (format!("{name}-{what}.svg"), chart.svg_alone(WIDE))
        })
    };
    cells(rows).flat_map(named).collect()
}

/// The rows of one demand at one target.
fn cells(rows: &[Row]) -> impl Iterator<Item = &[Row]> {
    rows.chunk_by(|a, b| a.shape == b.shape && a.target == b.target)
}

/// A name that is a file's on every system.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect()
}

/// What was granted, and what was refused.
fn charts(cell: &[Row], per_unit: f64) -> [Chart; 2] {
    let Some(first) = cell.first() else { return Default::default() };
    let named = format!("{} at {} %", first.shape, first.target);
    let lines = |value: fn(&Interval) -> f64| {
        cell.iter().map(move |row| Series {
            name: row.policy.name().to_owned(),
            points: points(row, value),
            ..Series::default()
        })
    };
    // Last, so that each policy has the same colour in both plots.
    let asked = Series {
        name: "asked for".to_owned(),
        points: points(first, |interval| interval.demand),
        is_reference: true,
    };
    let granted = lines(|interval| f64::from(interval.granted)).chain([asked]);
    let mut refused: Vec<Series> = lines(|interval| interval.demand - interval.done).collect();
    refused.iter_mut().flat_map(|series| &mut series.points).for_each(|(_, value)| *value *= per_unit);
    let chart = |title: String, unit: &str, series| Chart {
        title,
        unit: unit.to_owned(),
        seconds: seconds(first),
        step: step(first),
        series,
        ..Chart::default()
    };
    [
        chart(format!("{named}: what was asked for and granted"), "units", granted.collect()),
        chart(format!("{named}: refused"), "/s", refused),
    ]
}

fn points(row: &Row, value: impl Fn(&Interval) -> f64) -> Vec<(f64, f64)> {
    row.outcome.intervals.iter().map(|interval| (interval.from.as_secs_f64(), value(interval))).collect()
}

fn step(row: &Row) -> f64 {
    match row.outcome.intervals.as_slice() {
        [first, second, ..] => (second.from - first.from).as_secs_f64(),
        _ => 1.0,
    }
}

fn seconds(row: &Row) -> f64 {
    row.outcome.intervals.last().map_or(0.0, |last| last.from.as_secs_f64() + step(row))
}

fn table(rows: &[Row], per_unit: f64) -> String {
    let mut table = Table::new(&[
        "demand",
        "target",
        "policy",
        "success",
        "lost",
        "throttle events",
        "unit-hours",
        "changes",
    ]);
    for row in rows {
        let outcome = &row.outcome;
        table.row(&[
            row.shape.clone(),
            format!("{} %", row.target),
            row.policy.name().to_owned(),
            format!("{:.2} %", outcome.success_percent),
            format!("{:.0}", outcome.lost * per_unit),
            format!("{:.0}", outcome.throttle_events * per_unit),
            format!("{:.1}", outcome.unit_hours),
            outcome.changes.to_string(),
        ]);
    }
    table.finish("Outcomes")
}
