//! Traffic shapes: rates over time, to be driven open-loop.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A rate, in events a second, as it changes over time. In TOML a number is a steady rate; anything else is a table:
/// `rate = { shape = "ramp", from = 10, to = 500, over = "1m" }`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Shape {
    /// Always the same.
    Steady(f64),
    /// One of the named shapes.
    Named(Named),
}

/// A rate that changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "shape", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Named {
    /// Always the same.
    Steady {
        /// Events a second.
        rate: f64,
    },
    /// From one rate to another in a straight line, then steady.
    Ramp {
        /// The rate at the start.
        from: f64,
        /// The rate at the end.
        to: f64,
        /// How long the change takes.
        over: Span,
    },
    /// A base rate with a sudden peak.
    Spike {
        /// The rate before and after.
        base: f64,
        /// The rate during the spike.
        peak: f64,
        /// When the spike begins.
        at: Span,
        /// How long it lasts.
        lasts: Span,
    },
    /// Up along a half cosine, and down again: by default 25 → 300 in 45 min → 25 in 15 min.
    Bell {
        /// The rate at the start and at the end.
        #[serde(default = "low")]
        base: f64,
        /// The rate at the top.
        #[serde(default = "high")]
        peak: f64,
        /// From the base to the peak.
        #[serde(default = "bell_rise")]
        rise: Span,
        /// From the peak to the base.
        #[serde(default = "bell_fall")]
        fall: Span,
    },
    /// A fast rise, then a slow, straight fall to the base: by default 25 → 300 in 5 min, then −3 a minute.
    TopHeavy {
        /// The rate at the start, and the lowest it falls to.
        #[serde(default = "low")]
        base: f64,
        /// The rate at the top.
        #[serde(default = "high")]
        peak: f64,
        /// From the base to the peak, in a straight line.
        #[serde(default = "top_heavy_rise")]
        rise: Span,
        /// How much the rate falls in each minute after the peak.
        #[serde(default = "top_heavy_fall")]
        fall_per_minute: f64,
    },
}

/// A length of time. In TOML and JSON: a number of seconds, or text such as `"500ms"`, `"10s"`, `"1.5m"`, `"2h"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

impl Span {
    /// So many seconds.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }
}

fn low() -> f64 {
    25.0
}

fn high() -> f64 {
    300.0
}

fn bell_rise() -> Span {
    Span::from_secs(45 * 60)
}

fn bell_fall() -> Span {
    Span::from_secs(15 * 60)
}

fn top_heavy_rise() -> Span {
    Span::from_secs(5 * 60)
}

fn top_heavy_fall() -> f64 {
    3.0
}

impl Serialize for Span {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0.as_secs_f64())
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Given {
            Seconds(f64),
            Text(String),
        }
        match Given::deserialize(deserializer)? {
            Given::Seconds(seconds) => Duration::try_from_secs_f64(seconds).map(Self).ok(),
            Given::Text(text) => Self::parse(&text),
        }
        .ok_or_else(|| {
            serde::de::Error::custom(
                "expected a length of time such as 10, \"500ms\", \"10s\", \"2m\" or \"1h\"",
            )
        })
    }
}

impl Span {
    /// Reads `500ms`, `10s`, `1.5m`, `2h`; a number alone is seconds.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let scale = match &text[digits.len()..] {
            "ms" => 0.001,
            "" | "s" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        let number: f64 = digits.trim().parse().ok()?;
        Duration::try_from_secs_f64(number * scale).ok().map(Self)
    }
}
