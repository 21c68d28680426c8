//! What a run found: lines for people, one JSON object for programs, and whether all went well.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value};

/// The outcome of a run.
#[derive(Debug, Default)]
pub struct Report {
    lines: String,
    json: Map<String, Value>,
    problems: usize,
}

impl Report {
    /// A report of the scenario with this name.
    pub fn new(scenario: &str) -> Self {
        let mut report = Self::default();
        report.json.insert("scenario".to_owned(), scenario.into());
        report
    }

    /// Adds a line for people.
    pub fn line(&mut self, name: &str, value: impl std::fmt::Display) {
        let _ = writeln!(self.lines, "{name:<22} {value}");
    }

    /// Adds a value for programs. Names end in their unit.
    pub fn value(&mut self, name: &str, value: impl Into<Value>) {
        self.json.insert(name.to_owned(), value.into());
    }

    /// Adds a number for programs, rounded to what is meant; and a line for people.
    pub fn figure(&mut self, name: &str, key: &str, value: f64, unit: &str) {
        self.line(name, format_args!("{value:.2} {unit}"));
        self.value(key, (value * 1000.0).round() / 1000.0);
    }

    /// Adds what went wrong, by reason and count. Any makes the run a failure.
    pub fn problems(&mut self, name: &str, key: &str, reasons: &BTreeMap<String, usize>) {
        for (reason, count) in reasons {
            self.line(name, format_args!("{count} × {reason}"));
            self.problems += count;
        }
        self.value(
            key,
            reasons.iter().map(|(reason, count)| (reason.clone(), (*count).into())).collect::<Map<_, _>>(),
        );
    }

    /// Whether nothing went wrong.
    pub fn is_clean(&self) -> bool {
        self.problems == 0
    }

    /// One JSON object on one line.
    pub fn json(&self) -> String {
        Value::Object(self.json.clone()).to_string()
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_and_programs_read_the_same() {
        let mut report = Report::new("idle");
        report.figure("logins", "logins_per_s", 12.34567, "a second");
        report.problems("failed", "failures", &BTreeMap::new());
        assert!(report.is_clean());
        report.problems("lost", "losses", &BTreeMap::from([("cut".to_owned(), 2)]));
        assert!(!report.is_clean());
        assert_eq!(
            report.to_string(),
            "logins                 12.35 a second\nlost                   2 × cut\n"
        );
        assert_eq!(
            report.json(),
            r#"{"failures":{},"logins_per_s":12.346,"losses":{"cut":2},"scenario":"idle"}"#
        );
    }
}
