//! What a report must fulfil: `PATH OP VALUE`, such as `RTT.percentile99<50`.
//!
//! A path is that of the JSON report, its members by dots and those of lists by number or by `name`:
//! `metrics.RTT.percentile99`, `rates.logins`, `server.cpuSeconds`, `phases.login.server.cpuMsPerLogin`. A path may
//! begin with a metric's or a count's name, too. `errors` and other objects of counts stand for their sum.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

use super::model::Report;
use crate::plan::FaultKind;

/// An assertion on a report.
#[derive(Clone, Debug, PartialEq)]
pub struct Assertion {
    path: String,
    operator: Operator,
    value: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Less,
    NotMore,
    More,
    NotLess,
    Equal,
    Different,
}

/// A demand that makes no sense, or is not fulfilled.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AssertionError {
    /// The assertion is malformed.
    #[error("{0:?} is not an assertion; write PATH<VALUE, with one of < <= > >= == !=")]
    Form(String),
    /// The report has no such thing.
    #[error("{path}: the report has no {missing:?}; known here: {known}")]
    Unknown {
        /// The text as given.
        path: String,
        /// The member that is not there.
        missing: String,
        /// Its siblings, comma separated.
        known: String,
    },
    /// There is something, and it is not a number.
    #[error("{0} is not a number in the report")]
    NoNumber(String),
    /// It does not hold.
    #[error("expected {wanted}, got {actual}")]
    Broken {
        /// The assertion.
        wanted: String,
        /// The value in the report.
        actual: f64,
    },
}

const OPERATORS: [(&str, Operator); 7] = [
    ("<=", Operator::NotMore),
    (">=", Operator::NotLess),
    ("==", Operator::Equal),
    ("!=", Operator::Different),
    ("<", Operator::Less),
    (">", Operator::More),
    ("=", Operator::Equal),
];

impl FromStr for Assertion {
    type Err = AssertionError;

    fn from_str(text: &str) -> Result<Self, AssertionError> {
        let form = || AssertionError::Form(text.to_owned());
        let at = text.find(['<', '>', '=', '!']).ok_or_else(form)?;
        let (path, rest) = text.split_at(at);
        let (sign, operator) =
            OPERATORS.into_iter().find(|(sign, _)| rest.starts_with(sign)).ok_or_else(form)?;
        let value = rest[sign.len()..].trim().parse().map_err(|_| form())?;
        let path = path.trim().to_owned();
        if path.is_empty() {
            return Err(form());
        }
        Ok(Self { path, operator, value })
    }
}

impl Assertion {
    /// The faults that it allows, if it is an upper bound of theirs: `missing<=5` is both.
    pub fn allows(&self) -> Option<(FaultKind, u64)> {
        let kind = FaultKind::named(self.path.strip_prefix("counts.").unwrap_or(&self.path))?;
        let most = match self.operator {
            Operator::NotMore | Operator::Equal => self.value.floor(),
            Operator::Less => self.value.ceil() - 1.0,
            Operator::More | Operator::NotLess | Operator::Different => return None,
        };
        (most >= 0.0).then_some((kind, most as u64))
    }

    /// Whether a report fulfils it.
    pub fn check(&self, report: &Report) -> Result<(), AssertionError> {
        let report = serde_json::to_value(report).expect("a report is plain data");
        let actual = self.find(&report)?;
        let holds = match self.operator {
            Operator::Less => actual < self.value,
            Operator::NotMore => actual <= self.value,
            Operator::More => actual > self.value,
            Operator::NotLess => actual >= self.value,
            Operator::Equal => actual == self.value,
            Operator::Different => actual != self.value,
        };
        if holds { Ok(()) } else { Err(AssertionError::Broken { wanted: self.to_string(), actual }) }
    }

    fn find(&self, report: &Value) -> Result<f64, AssertionError> {
        let mut words = self.path.split('.').peekable();
        let mut here = report;
        // A metric, a count or a fault by its name alone.
        if let Some(first) = words.peek().filter(|first| report.get(first).is_none()) {
            let part = |name: &str| report.get(name).filter(|part| part.get(first).is_some());
            if part("metrics").is_none() && FaultKind::named(first).is_some() && part("counts").is_none() {
                return Ok(0.0);
            }
            here = part("metrics").or_else(|| part("counts")).or(report.get("metrics")).unwrap_or(here);
        }
        for word in words {
            let Some(next) = member(here, word) else {
                // Of events that never were there are none.
                if here.as_object().is_some_and(|object| object.values().all(Value::is_u64))
                    && ["errors", "counts"].iter().any(|list| self.path.contains(list))
                {
                    return Ok(0.0);
                }
                return Err(AssertionError::Unknown {
                    path: self.path.clone(),
                    missing: word.to_owned(),
                    known: members(here),
                });
            };
            here = next;
        }
        number(here).ok_or_else(|| AssertionError::NoNumber(self.path.clone()))
    }
}

impl fmt::Display for Assertion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The first sign that stands for it: `=` is written as `==`.
        let sign = OPERATORS.into_iter().find(|(_, operator)| *operator == self.operator);
        write!(f, "{} {} {}", self.path, sign.map_or("", |(sign, _)| sign), self.value)
    }
}

fn member<'a>(value: &'a Value, word: &str) -> Option<&'a Value> {
    match value {
        Value::Object(object) => object.get(word),
        Value::Array(list) => list
            .iter()
            .find(|item| item.get("name").and_then(Value::as_str) == Some(word))
            .or_else(|| list.get(word.parse::<usize>().ok()?)),
        _ => None,
    }
}

fn members(value: &Value) -> String {
    match value {
        Value::Object(object) if !object.is_empty() => {
            object.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
        }
        Value::Array(list) if !list.is_empty() => {
            let name = |(at, item): (usize, &Value)| {
                item.get("name").and_then(Value::as_str).map_or_else(|| at.to_string(), str::to_owned)
            };
            list.iter().enumerate().map(name).collect::<Vec<_>>().join(", ")
        }
        _ => "nothing".to_owned(),
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::Bool(is) => Some(f64::from(u8::from(*is))),
        Value::Object(object) => {
            object.values().map(Value::as_u64).sum::<Option<u64>>().map(|sum| sum as f64)
        }
        Value::Array(list) => Some(list.len() as f64),
        Value::Null | Value::String(_) => None,
    }
}
