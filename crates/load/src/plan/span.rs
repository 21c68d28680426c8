//! Durations as people write them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A duration. In TOML and JSON: a number of seconds, or text such as `"500ms"`, `"10s"`, `"1.5m"`, `"2h"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

impl Span {
    /// A duration of whole seconds.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

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

impl Serialize for Span {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0.as_secs_f64())
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Seconds(f64),
            Text(String),
            Other(serde::de::IgnoredAny),
        }
        match Written::deserialize(deserializer)? {
            Written::Seconds(seconds) => Duration::try_from_secs_f64(seconds).map(Self).ok(),
            Written::Text(text) => Self::parse(&text),
            Written::Other(_) => None,
        }
        .ok_or_else(|| {
            serde::de::Error::custom("expected a duration such as 10, \"500ms\", \"10s\", \"2m\" or \"1h\"")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_as_people_write_them() {
        let seconds = |text: &str| Span::parse(text).map(|span| span.0.as_secs_f64());
        assert_eq!(seconds("500ms"), Some(0.5));
        assert_eq!(seconds("10"), Some(10.0));
        assert_eq!(seconds("1.5m"), Some(90.0));
        assert_eq!(seconds("2 h"), Some(7200.0));
        for nonsense in ["", "s", "-1s", "10d", "1e400s"] {
            assert_eq!(seconds(nonsense), None, "{nonsense}");
        }
    }
}
