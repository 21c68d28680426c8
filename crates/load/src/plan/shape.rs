//! Traffic shapes: rates over time, for open-loop load.

use serde::de::value::MapAccessDeserializer;
use serde::{Deserialize, Serialize};

use super::span::Span;

/// A rate over time, in events per second. In TOML a number is a steady rate; anything else is a table:
/// `rate = { shape = "ramp", from = 10, to = 500, over = "1m" }`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Shape {
    /// A constant rate.
    Steady(f64),
    /// One of the named shapes.
    Named(NamedShape),
}

/// A rate given by name and parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "shape", rename_all = "kebab-case", deny_unknown_fields)]
pub enum NamedShape {
    /// A constant rate.
    Steady {
        /// Events per second.
        rate: f64,
    },
    /// A constant rate per player; the total rate is proportional to the number of players.
    PerPlayer {
        /// Events per second and player.
        rate: f64,
    },
    /// A linear ramp from one rate to another, then constant.
    Ramp {
        /// The rate at the start.
        from: f64,
        /// The rate at the end.
        to: f64,
        /// The duration of the ramp.
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
        /// The duration of the spike.
        lasts: Span,
    },
    /// A rise and a fall, each a half cosine, then nothing: by default 25 → 300 in 45 min → 25 in 15 min.
    Bell {
        /// The rate at the start and at the end.
        #[serde(default = "low")]
        base: f64,
        /// The highest rate.
        #[serde(default = "high")]
        peak: f64,
        /// The duration of the rise.
        #[serde(default = "bell_rise")]
        rise: Span,
        /// The duration of the fall.
        #[serde(default = "bell_fall")]
        fall: Span,
    },
    /// A fast linear rise, a slow linear fall to the base, then nothing: by default 25 → 300 in 5 min, then −3 per minute.
    TopHeavy {
        /// The rate at the start and at the end.
        #[serde(default = "low")]
        base: f64,
        /// The highest rate.
        #[serde(default = "high")]
        peak: f64,
        /// The duration of the rise.
        #[serde(default = "top_heavy_rise")]
        rise: Span,
        /// The decrease of the rate per minute after the peak.
        #[serde(default = "top_heavy_fall")]
        fall_per_minute: f64,
    },
}

impl Shape {
    /// Whether the rate is per player.
    pub fn is_per_player(&self) -> bool {
        matches!(self, Self::Named(NamedShape::PerPlayer { .. }))
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

impl<'de> Deserialize<'de> for Shape {
    // Hand-written: for an untagged enum serde reports only that no variant matched, not what is wrong.
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Shape;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a rate: events per second, or a table such as { shape = \"ramp\", … }")
            }
            fn visit_f64<E>(self, rate: f64) -> Result<Shape, E> {
                Ok(Shape::Steady(rate))
            }
            fn visit_i64<E>(self, rate: i64) -> Result<Shape, E> {
                Ok(Shape::Steady(rate as f64))
            }
            fn visit_u64<E>(self, rate: u64) -> Result<Shape, E> {
                Ok(Shape::Steady(rate as f64))
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Shape, A::Error> {
                NamedShape::deserialize(MapAccessDeserializer::new(map)).map(Shape::Named)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}
