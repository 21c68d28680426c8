//! The text that Prometheus reads: families of samples, each with its help and its type (exposition format 0.0.4).

use carillon_core::model::Durations;
use carillon_core::shard::Latency;
use std::fmt::{Display, Write};

/// A page of metrics, as it grows.
#[derive(Default)]
pub(crate) struct Page(String);

/// A histogram as Prometheus has it: how many there were up to each bound, in seconds.
pub(crate) struct Histogram {
    cumulative: Vec<(f64, u64)>,
    sum: f64,
    count: u64,
}

/// The labels of a sample, such as `reason="conflict"`; empty for none.
pub(crate) type Labels = String;

impl Page {
    /// The text.
    pub(crate) fn into_text(self) -> String {
        self.0
    }

    /// A figure that rises and falls.
    pub(crate) fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, "gauge", help, [(Labels::new(), value)]);
    }

    /// A figure that only rises.
    pub(crate) fn counter(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, "counter", help, [(Labels::new(), value)]);
    }

    /// Figures that only rise, one for each value of a label.
    pub(crate) fn counters<'a>(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        counts: impl IntoIterator<Item = (&'a str, u64)>,
    ) {
        let samples = counts.into_iter().map(|(value, count)| (labels(&[(label, value)]), count));
        self.family(name, "counter", help, samples);
    }

    /// A family of samples of any type but a histogram.
    pub(crate) fn family<V: Display>(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels, V)>,
    ) {
        self.head(name, kind, help);
        for (labels, value) in samples {
            self.sample(name, &labels, value);
        }
    }

    /// A histogram, or one for each combination of labels.
    pub(crate) fn histograms(
        &mut self,
        name: &str,
        help: &str,
        histograms: impl IntoIterator<Item = (Labels, Histogram)>,
    ) {
        self.head(name, "histogram", help);
        let (bucket, sum, count) = (format!("{name}_bucket"), format!("{name}_sum"), format!("{name}_count"));
        for (labels, histogram) in histograms {
            let comma = if labels.is_empty() { "" } else { "," };
            for (bound, below) in histogram.cumulative {
                self.sample(&bucket, &format!("{labels}{comma}le=\"{bound}\""), below);
            }
            self.sample(&bucket, &format!("{labels}{comma}le=\"+Inf\""), histogram.count);
            self.sample(&sum, &labels, histogram.sum);
            self.sample(&count, &labels, histogram.count);
        }
    }

    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let written = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        written.expect("writing to a string does not fail");
    }

    fn sample(&mut self, name: &str, labels: &str, value: impl Display) {
        let written = if labels.is_empty() {
            writeln!(self.0, "{name} {value}")
        } else {
            writeln!(self.0, "{name}{{{labels}}} {value}")
        };
        written.expect("writing to a string does not fail");
    }
}

impl From<&Latency> for Histogram {
    fn from(latency: &Latency) -> Histogram {
        Histogram {
            cumulative: latency.cumulative().map(|(ms, below)| (ms as f64 / 1e3, below)).collect(),
            sum: latency.sum_ms() as f64 / 1e3,
            count: latency.count(),
        }
    }
}

impl From<&Durations> for Histogram {
    fn from(durations: &Durations) -> Histogram {
        Histogram {
            cumulative: durations.cumulative().map(|(us, below)| (us as f64 / 1e6, below)).collect(),
            sum: durations.sum_us() as f64 / 1e6,
            count: durations.count(),
        }
    }
}

/// Labels as they stand between the braces.
pub(crate) fn labels(pairs: &[(&str, &str)]) -> Labels {
    let pairs: Vec<_> = pairs.iter().map(|(name, value)| format!("{name}=\"{}\"", escape(value))).collect();
    pairs.join(",")
}

fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn values_of_labels_are_escaped() {
        assert_eq!(labels(&[("a", "x"), ("b", "\"\\\n")]), r#"a="x",b="\"\\\n""#);
    }

    #[test]
    fn a_histogram_has_buckets_a_sum_and_a_count() {
        let mut took = Durations::default();
        [80, 300, 40_000_000].into_iter().for_each(|us| took.record(Duration::from_micros(us)));
        let mut page = Page::default();
        page.histograms("x_seconds", "Time of x.", [(labels(&[("route", "/y")]), Histogram::from(&took))]);
        let text = page.into_text();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines[..5],
            [
                "# HELP x_seconds Time of x.",
                "# TYPE x_seconds histogram",
                r#"x_seconds_bucket{route="/y",le="0.0001"} 1"#,
                r#"x_seconds_bucket{route="/y",le="0.00025"} 1"#,
                r#"x_seconds_bucket{route="/y",le="0.0005"} 2"#,
            ]
        );
        assert_eq!(
            lines[lines.len() - 4..],
            [
                r#"x_seconds_bucket{route="/y",le="30"} 2"#,
                r#"x_seconds_bucket{route="/y",le="+Inf"} 3"#,
                r#"x_seconds_sum{route="/y"} 40.00038"#,
                r#"x_seconds_count{route="/y"} 3"#,
            ]
        );
    }
}
