//! Plots over time.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::svg::{Anchor, Svg, text_width};

/// What makes a plot a picture that stands alone, light and dark.
pub(super) const ALONE: &str = concat!(include_str!("plot.css"), include_str!("compare.css"));

/// The width of a plot where there is room: on a page of two columns a unit is about a pixel, so that text keeps its size.
pub const WIDE: f64 = 560.0;
/// The width of a plot on a phone, for the same reason.
pub const NARROW: f64 = 320.0;
const HEIGHT: f64 = 250.0;
const LEFT: f64 = 54.0;
const RIGHT: f64 = 14.0;
const BOTTOM: f64 = 34.0;
/// A line of text.
const ROW: f64 = 17.0;
/// More distant neighbours are not joined, in steps.
const GAP_STEPS: f64 = 3.5;
/// The least width of an area that shows its values.
const HOVER: f64 = 3.0;
/// The least distance of two ticks of the time.
const TICK: f64 = 62.0;
/// Colours there are.
const COLOURS: usize = 8;

/// A plot: lines over the seconds of a test.
#[derive(Debug, Default)]
pub struct Chart {
    /// What is plotted, such as `Latency`.
    pub title: String,
    /// The unit of its values.
    pub unit: String,
    /// Each power of ten as high as the others.
    pub logarithmic: bool,
    /// How long the test took, in seconds.
    pub seconds: f64,
    /// Seconds from one value to the next; less than a second counts as one.
    pub step: f64,
    /// The lines, eight at most.
    pub series: Vec<Series>,
    /// Phases: when each began and ended, and its name.
    pub phases: Vec<(f64, f64, String)>,
}

/// A line.
#[derive(Debug, Default)]
pub struct Series {
    /// What the legend says.
    pub name: String,
    /// Seconds and values.
    pub points: Vec<(f64, f64)>,
    /// What the others are compared with: dashed, and in the colour of the text.
    pub is_reference: bool,
}

impl Chart {
    /// Whether there is anything to plot.
    pub fn is_empty(&self) -> bool {
        self.series.iter().all(|series| series.points.is_empty())
    }

    /// The plot, so many units wide; a narrow one is for screens without a pointer, and shows no values under it.
    pub fn svg(&self, width: f64) -> String {
        self.picture(width, false).finish(None)
    }

    /// The plot as a file of its own.
    pub fn svg_alone(&self, width: f64) -> String {
        self.picture(width, true).finish(Some(ALONE))
    }

    fn picture(&self, width: f64, is_alone: bool) -> Svg {
        let legend = self.legend_rows(width);
        let top = 30.0 + ROW * legend.len() as f64;
        let mut svg = Svg::new(width, HEIGHT + top, &format!("{} in {}", self.title, self.unit));
        if is_alone {
            svg.rect("paper", (0.0, 0.0), width, HEIGHT + top, 0.0);
        }
        for (row, names) in legend.into_iter().enumerate() {
            for (x, at) in names {
                let y = 12.0 + ROW * row as f64;
                let class = self.colour(at);
                svg.rect(&format!("fill {class}"), (x, y - 8.0), 10.0, 10.0, 2.0);
                svg.text("label", (x + 15.0, y + 1.0), Anchor::Start, &self.series[at].name);
            }
        }
        let (bottom, right) = (HEIGHT + top - BOTTOM, width - RIGHT);
        let frame = Frame { top, bottom, right, x_max: self.seconds.max(1.0), axis: self.axis() };
        self.draw_phases(&mut svg, &frame);
        self.draw_axes(&mut svg, &frame);
        for (at, series) in self.series.iter().enumerate() {
            svg.polyline(self.colour(at), &frame.line(&series.points), frame.width(self.gap()).max(2.0));
        }
        if width > NARROW {
            self.draw_hovers(&mut svg, &frame);
        }
        svg
    }

    fn colour(&self, at: usize) -> &'static str {
        if self.series[at].is_reference { "reference" } else { colour(at) }
    }

    /// More distant neighbours are not joined, in seconds.
    fn gap(&self) -> f64 {
        GAP_STEPS * self.step.max(1.0)
    }

    fn axis(&self) -> Axis {
        let values = || self.series.iter().flat_map(|series| series.points.iter().map(|point| point.1));
        let max = values().fold(0.0, f64::max);
        if self.logarithmic {
            let min = values().filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
            Axis::logarithmic(min, max)
        } else {
            // What has no unit is counted: there is no half of it.
            Axis::linear(max, if self.unit.is_empty() { 1.0 } else { 0.0 })
        }
    }

    /// Where each name of the legend stands, row by row.
    fn legend_rows(&self, wide: f64) -> Vec<Vec<(f64, usize)>> {
        let mut rows: Vec<Vec<(f64, usize)>> = Vec::new();
        let mut x = wide;
        for (at, series) in self.series.iter().enumerate() {
            let width = 32.0 + text_width(&series.name);
            if x + width > wide - RIGHT || rows.is_empty() {
                rows.push(Vec::new());
                x = LEFT;
            }
            if let Some(row) = rows.last_mut() {
                row.push((x, at));
            }
            x += width;
        }
        rows
    }

    fn draw_phases(&self, svg: &mut Svg, frame: &Frame) {
        for (at, (start, end, name)) in self.phases.iter().enumerate() {
            let (left, right) = (frame.x(*start), frame.x(*end));
            if at % 2 == 0 {
                svg.rect("band", (left, frame.top), (right - left).max(0.5), frame.bottom - frame.top, 0.0);
            }
            // A name that does not fit is left out: the table of phases has them all.
            if text_width(name) + 8.0 <= right - left {
                svg.text("phase", (left + 4.0, frame.top + 12.0), Anchor::Start, name);
            }
        }
    }

    /// The values of each moment, shown while the pointer is over it.
    fn draw_hovers(&self, svg: &mut Svg, frame: &Frame) {
        let mut columns: BTreeMap<usize, Vec<(usize, f64, f64)>> = BTreeMap::new();
        for (at, series) in self.series.iter().enumerate() {
            for (seconds, value) in &series.points {
                let column = (frame.x(*seconds) / HOVER).round() as usize;
                let known = columns.entry(column).or_default();
                // Of several moments in one column the highest value, as in the line.
                match known.iter_mut().find(|(series, ..)| *series == at) {
                    Some((_, when, highest)) if *value > *highest => (*when, *highest) = (*seconds, *value),
                    Some(_) => {}
                    None => known.push((at, *seconds, *value)),
                }
            }
        }
        let middles: Vec<f64> = columns.keys().map(|column| *column as f64 * HOVER).collect();
        for (at, values) in columns.values().enumerate() {
            // Half way to the neighbours, and no further than a moment reaches.
            let reach = frame.width(self.gap()).max(HOVER) / 2.0;
            let (before, after) = (at.checked_sub(1).map(|at| middles[at]), middles.get(at + 1));
            let left = before.map_or(reach, |before| ((middles[at] - before) / 2.0).min(reach));
            let right = after.map_or(reach, |after| ((after - middles[at]) / 2.0).min(reach));
            let x = (middles[at] - left).max(LEFT);
            let mut words =
                values.first().map(|(_, when, _)| format!("{} s", compact(*when))).unwrap_or_default();
            for (series, _, value) in values {
                let _ = write!(words, "\n{}: {} {}", self.series[*series].name, compact(*value), self.unit);
            }
            svg.hover((x, frame.top), middles[at] + right - x, frame.bottom - frame.top, &words);
        }
    }

    fn draw_axes(&self, svg: &mut Svg, frame: &Frame) {
        svg.text("label", (LEFT - 6.0, frame.top - 12.0), Anchor::End, &self.unit);
        for tick in &frame.axis.ticks {
            let y = frame.y(*tick);
            svg.line("grid", (LEFT, y), (frame.right, y));
            svg.text("tick", (LEFT - 6.0, y + 3.5), Anchor::End, &compact(*tick));
        }
        let (ticks, scale, unit) = time_ticks(frame.x_max, (frame.right - LEFT) / TICK);
        svg.line("axis", (LEFT, frame.bottom), (frame.right, frame.bottom));
        for tick in ticks {
            let x = frame.x(tick);
            svg.line("axis", (x, frame.bottom), (x, frame.bottom + 4.0));
            svg.text("tick", (x, frame.bottom + 16.0), Anchor::Middle, &compact(tick / scale));
        }
        let middle = f64::midpoint(LEFT, frame.right);
        svg.text("label", (middle, frame.bottom + 30.0), Anchor::Middle, unit);
    }
}

/// The class of the n-th colour.
pub(super) fn colour(at: usize) -> &'static str {
    ["s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8"][at % COLOURS]
}

/// The area between the axes.
struct Frame {
    top: f64,
    bottom: f64,
    right: f64,
    x_max: f64,
    axis: Axis,
}

impl Frame {
    fn x(&self, seconds: f64) -> f64 {
        LEFT + self.width(seconds.clamp(0.0, self.x_max))
    }

    fn width(&self, seconds: f64) -> f64 {
        seconds / self.x_max * (self.right - LEFT)
    }

    fn y(&self, value: f64) -> f64 {
        self.bottom - self.axis.part(value) * (self.bottom - self.top)
    }

    /// Points as drawn: of those in one column of half a unit the highest.
    fn line(&self, points: &[(f64, f64)]) -> Vec<(f64, f64)> {
        let mut line: Vec<(f64, f64)> = Vec::new();
        for (seconds, value) in points {
            let (x, y) = (self.x(*seconds), self.y(*value));
            match line.last_mut() {
                Some(last) if x - last.0 < 0.5 => last.1 = last.1.min(y),
                _ => line.push((x, y)),
            }
        }
        line
    }
}

/// A scale for values.
#[derive(Debug, PartialEq)]
struct Axis {
    min: f64,
    max: f64,
    logarithmic: bool,
    ticks: Vec<f64>,
}

impl Axis {
    fn linear(max: f64, step_min: f64) -> Self {
        let max = if max > 0.0 { max } else { 1.0 };
        let step = nice_step(max / 5.0).max(step_min);
        let steps = (max / step).ceil().max(1.0);
        let ticks = (0..=steps as usize).map(|at| at as f64 * step).collect();
        Self { min: 0.0, max: steps * step, logarithmic: false, ticks }
    }

    fn logarithmic(min: f64, max: f64) -> Self {
        let (min, max) = if min.is_finite() && max > 0.0 { (min, max) } else { (1.0, 10.0) };
        let low = min.log10().floor() as i32;
        let high = (max.log10().ceil() as i32).max(low + 1);
        let between: &[f64] = if high - low <= 3 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let ticks = (low..high).flat_map(|decade| between.iter().map(move |by| by * 10_f64.powi(decade)));
        let ticks = ticks.chain([10_f64.powi(high)]).collect();
        Self { min: 10_f64.powi(low), max: 10_f64.powi(high), logarithmic: true, ticks }
    }

    /// Where a value is between the ends, from 0 to 1.
    fn part(&self, value: f64) -> f64 {
        let part = if self.logarithmic {
            (value.max(self.min) / self.min).ln() / (self.max / self.min).ln()
        } else {
            (value - self.min) / (self.max - self.min)
        };
        part.clamp(0.0, 1.0)
    }
}

/// The next of 1, 2, 5, 10, … that is not smaller.
fn nice_step(least: f64) -> f64 {
    let decade = 10_f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0]
        .into_iter()
        .map(|by| by * decade)
        .find(|step| *step >= least * 0.999)
        .unwrap_or(10.0 * decade)
}

/// At most so many ticks in seconds, what to divide them by, and the unit that makes.
fn time_ticks(seconds: f64, ticks: f64) -> (Vec<f64>, f64, &'static str) {
    let (scale, unit) = match seconds {
        s if s <= 300.0 => (1.0, "seconds"),
        s if s <= 3.0 * 3600.0 => (60.0, "minutes"),
        _ => (3600.0, "hours"),
    };
    let step = nice_step(seconds / scale / ticks) * scale;
    let count = (seconds / step).floor() as usize;
    ((0..=count).map(|at| at as f64 * step).collect(), scale, unit)
}

/// A number with three digits at most: `1.5k`, `20M`, `0.05`.
pub(super) fn compact(value: f64) -> String {
    let (value, unit) = match value.abs() {
        v if v >= 1e9 => (value / 1e9, "G"),
        v if v >= 1e6 => (value / 1e6, "M"),
        v if v >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let digits = match value.abs() {
        v if v >= 100.0 || v == 0.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 0.1 => 2,
        _ => 4,
    };
    let text = format!("{value:.digits$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_have_round_ends_that_hold_all_values() {
        assert_eq!(Axis::linear(87.0, 0.0).ticks, [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(Axis::linear(0.0, 0.0).max, 1.0);
        assert_eq!(Axis::linear(2.0, 1.0).ticks, [0.0, 1.0, 2.0]);
        let axis = Axis::logarithmic(0.3, 45.0);
        assert_eq!((axis.min, axis.max), (0.1, 100.0));
        assert_eq!(axis.part(0.1), 0.0);
        assert!((axis.part(10.0) - 2.0 / 3.0).abs() < 1e-9);
        assert_eq!(Axis::logarithmic(f64::INFINITY, 0.0).ticks.len(), 4);
        assert_eq!(time_ticks(20.0, 8.0).0, [0.0, 5.0, 10.0, 15.0, 20.0]);
        assert_eq!((time_ticks(3600.0, 8.0).0.len(), time_ticks(3600.0, 8.0).2), (7, "minutes"));
    }

    #[test]
    fn numbers_are_short() {
        let told = [0.0, 0.05, 1.5, 20.0, 1500.0, 15_000.0, 2_000_000.0].map(compact);
        assert_eq!(told, ["0", "0.05", "1.5", "20", "1500", "15k", "2M"]);
    }

    #[test]
    fn names_of_the_legend_never_overlap() {
        let name = |at: usize| Series {
            name: format!("a rather long name {at}"),
            points: vec![(0.0, 1.0)],
            ..Series::default()
        };
        let chart = Chart { series: (0..8).map(name).collect(), ..Chart::default() };
        for width in [WIDE, NARROW] {
            for row in chart.legend_rows(width) {
                let ends = row.iter().map(|(x, at)| x + 15.0 + text_width(&chart.series[*at].name));
                assert!(ends.clone().all(|end| end <= width), "{row:?}");
                assert!(row.iter().skip(1).zip(ends).all(|((next, _), end)| *next > end), "{row:?}");
            }
        }
    }
}
