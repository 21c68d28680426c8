//! Comparison of several reports: changes are relative to the first.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::chart::{ALONE, colour, compact};
use super::figures::Cost;
use super::html::{Table, page};
use super::model::{Comparison, Figure, Report};
use super::svg::{Anchor, Svg, text_width};

const WIDTH: f64 = 720.0;
/// The left edge of the bars.
const BARS: f64 = 240.0;
const BAR: f64 = 15.0;
const KIB: f64 = 1024.0;

impl Comparison {
    /// Compares named reports.
    pub fn of(reports: Vec<(String, Report)>) -> Self {
        let (names, reports): (Vec<_>, Vec<_>) = reports.into_iter().unzip();
        Self { names, rows: figures(&reports) }
    }

    /// The comparison as text; the last column is the change from the first report to the last.
    pub fn table(&self) -> String {
        let width = self.names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(12);
        let mut out = format!("{:<44}", "");
        for name in &self.names {
            let _ = write!(out, " {name:>width$}");
        }
        out.push('\n');
        for row in &self.rows {
            let _ = write!(out, "{:<44}", format!("{}, {}", row.name, row.unit));
            for value in &row.values {
                let _ = write!(out, " {:>width$}", value.map(compact).unwrap_or_else(|| "–".to_owned()));
            }
            if let Some(change) = row.change_percent {
                let _ = write!(out, " {change:>+8.1} %");
            }
            out.push('\n');
        }
        out
    }

    /// The comparison as JSON.
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("a comparison is plain data")
    }

    /// Bar charts as a picture that stands alone.
    pub fn svg(&self) -> String {
        self.picture().finish(Some(ALONE))
    }

    /// Bar charts and a table as a page that stands alone.
    pub fn html(&self) -> String {
        let picture = self.picture().finish(None);
        let title = "Load tests compared";
        page(
            title,
            &format!("<h1>{title}</h1><figure class=scroll>{picture}</figure>{}", self.table_html("Figures")),
        )
    }

    /// A table with a heading, for a page.
    pub(super) fn table_html(&self, heading: &str) -> String {
        let mut head = vec!["figure", "unit"];
        head.extend(self.names.iter().map(String::as_str));
        head.push("change");
        let mut table = Table::new(&head);
        for row in &self.rows {
            let mut cells = vec![row.name.clone(), row.unit.clone()];
            cells.extend(row.values.iter().map(|value| value.map(compact).unwrap_or_default()));
            cells.push(row.change_percent.map(|change| format!("{change:+.1} %")).unwrap_or_default());
            table.row(&cells);
        }
        table.finish(heading)
    }

    fn picture(&self) -> Svg {
        let each = self.names.len() as f64 * BAR + 14.0;
        let (legend, legend_rows) = self.legend();
        let top = 14.0 + 18.0 * legend_rows;
        let mut svg = Svg::new(WIDTH, top + each * self.rows.len() as f64 + 6.0, "Load tests compared");
        svg.rect("paper", (0.0, 0.0), WIDTH, top + each * self.rows.len() as f64 + 6.0, 0.0);
        for (at, (x, y)) in legend.into_iter().enumerate() {
            svg.rect(&format!("fill {}", colour(at)), (x, y - 9.0), 10.0, 10.0, 2.0);
            svg.text("value", (x + 15.0, y), Anchor::Start, &self.names[at]);
        }
        for (at, row) in self.rows.iter().enumerate() {
            let y = top + each * at as f64;
            svg.text("strong", (BARS - 10.0, y + 12.0), Anchor::End, &row.name);
            svg.text("label", (BARS - 10.0, y + 26.0), Anchor::End, &row.unit);
            let max = row.values.iter().flatten().copied().fold(0.0, f64::max);
            for (of, value) in row.values.iter().enumerate() {
                let y = y + of as f64 * BAR;
                let Some(value) = value else {
                    svg.text("label", (BARS + 4.0, y + 11.0), Anchor::Start, "–");
                    continue;
                };
                // Room for the number behind the longest bar.
                let width = if max > 0.0 { (value / max).max(0.0) * (WIDTH - BARS - 70.0) } else { 0.0 };
                svg.rect(&format!("fill {}", colour(of)), (BARS, y + 2.0), width.max(1.0), BAR - 4.0, 2.0);
                svg.text("value", (BARS + width + 6.0, y + 11.5), Anchor::Start, &compact(*value));
            }
        }
        svg
    }

    /// Where each name stands, and how many rows that makes.
    fn legend(&self) -> (Vec<(f64, f64)>, f64) {
        let (mut x, mut row) = (14.0, 0.0);
        let mut places = Vec::new();
        for name in &self.names {
            let width = 34.0 + text_width(name);
            if x + width > WIDTH && x > 14.0 {
                (x, row) = (14.0, row + 1.0);
            }
            places.push((x, 18.0 + 18.0 * row));
            x += width;
        }
        (places, row + 1.0)
    }
}

impl Figure {
    fn of(name: String, unit: &str, values: Vec<Option<f64>>) -> Self {
        let ends = values.first().copied().flatten().zip(values.last().copied().flatten());
        let change_percent = ends
            .filter(|(first, _)| values.len() > 1 && *first != 0.0)
            .map(|(first, last)| (last / first - 1.0) * 100.0);
        Self { name, unit: unit.to_owned(), values, change_percent }
    }
}

fn figures(reports: &[Report]) -> Vec<Figure> {
    let mut all = Vec::new();
    let mut add = |name: String, unit: &str, find: &dyn Fn(&Report) -> Option<f64>| {
        let values: Vec<_> = reports.iter().map(find).collect();
        if values.iter().any(Option::is_some) {
            all.push(Figure::of(name, unit, values));
        }
    };
    let metrics: BTreeSet<&String> = reports.iter().flat_map(|report| report.metrics.keys()).collect();
    for metric in metrics {
        add(format!("{metric}, median"), "ms", &|report| Some(report.metrics.get(metric)?.percentile50));
        add(format!("{metric}, 99 %"), "ms", &|report| Some(report.metrics.get(metric)?.percentile99));
        add(format!("{metric}, longest"), "ms", &|report| Some(report.metrics.get(metric)?.max));
    }
    let rates: BTreeSet<&String> = reports.iter().flat_map(|report| report.rates.keys()).collect();
    for rate in rates {
        add(rate.clone(), "per second", &|report| report.rates.get(rate).copied());
    }
    add("server CPU".into(), "ms per login", &|report| latest(report, |cost| cost.cpu_ms_per_login));
    add("server CPU".into(), "ms per resumption", &|report| {
        latest(report, |cost| cost.cpu_ms_per_resumption)
    });
    add("server CPU".into(), "s per million deliveries", &|report| {
        latest(report, |cost| cost.cpu_seconds_per_million_deliveries)
    });
    add("server CPU".into(), "s per million sent", &|report| {
        latest(report, |cost| cost.cpu_seconds_per_million_sent)
    });
    add("server, idle".into(), "% of a core", &|report| latest(report, |cost| cost.idle_percent_of_core));
    add("server memory".into(), "KiB per connection", &|report| {
        let hold = report.phases.iter().rev().find(|phase| phase.action == "hold" && phase.online > 0)?;
        Some(hold.server.as_ref()?.memory_bytes_per_connection? / KIB)
    });
    add("failed".into(), "players", &|report| Some(report.failed as f64));
    all
}

/// Of the last phase that has it.
fn latest(report: &Report, find: impl Fn(&Cost) -> Option<f64>) -> Option<f64> {
    report.phases.iter().rev().find_map(|phase| phase.server.as_ref().and_then(&find))
}
