//! What values a setting takes, and reading one of them from what somebody wrote.

use super::unit;
use super::value::{OFF, Value, network, shown};
use std::fmt;
use std::net::IpAddr;

/// The values that a setting accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// True or false.
    Switch,
    /// A number of things.
    Count {
        /// What is counted, in plural; empty for a bare number.
        unit: &'static str,
        /// The least.
        min: u64,
        /// The most.
        max: u64,
    },
    /// A port, 0 for any free one, or `off`.
    PortOrOff,
    /// A time, as milliseconds or like `"30s"`.
    Milliseconds {
        /// The shortest.
        min: u64,
        /// The longest.
        max: u64,
    },
    /// A size, as bytes or like `"64KiB"`.
    Bytes {
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
    },
    /// Any text of so many bytes.
    Text {
        /// The fewest bytes.
        min: usize,
        /// The most bytes.
        max: usize,
    },
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Any of these words, in the order they are preferred.
    Choices(&'static [&'static str]),
    /// Any names.
    Names,
    /// Any texts.
    Texts,
    /// IPv4 and IPv6 addresses.
    Addresses,
    /// Addresses, and networks in CIDR notation.
    Networks,
}

/// What somebody wrote for a setting.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Written {
    /// Its text, for messages.
    pub(super) text: String,
    /// What kind of thing it is.
    pub(super) shape: Shape,
}

/// The kinds of thing that can be written.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape {
    Bool(bool),
    Integer(i128),
    Text(String),
    List(Vec<Shape>),
    /// Typed after `--set key=`: what it is depends on the setting.
    Typed,
    /// Something no setting takes: a float, a date.
    Other,
}

/// Why something written is not a value of a [`Kind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Misfit {
    /// It is another kind of thing.
    Type,
    /// It is the right kind, outside the bounds.
    Bound,
}

impl Kind {
    /// The value that was written.
    pub(super) fn read(&self, written: &Written) -> Result<Value, Misfit> {
        match self {
            Kind::Switch => read_switch(written),
            Kind::Count { min, max, .. } => read_number(written, *min, *max, |t| t.parse().ok()),
            Kind::PortOrOff => match (&written.shape, written.text.trim_matches('"')) {
                (Shape::Text(_) | Shape::Typed, OFF) => Ok(Value::Text(OFF.to_owned())),
                _ => read_number(written, 0, u16::MAX.into(), |t| t.parse().ok()),
            },
            Kind::Milliseconds { min, max } => read_number(written, *min, *max, unit::milliseconds),
            Kind::Bytes { min, max } => read_number(written, *min, *max, unit::bytes),
            Kind::Text { min, max } => read_text(written).and_then(|text| {
                if (*min..=*max).contains(&text.len()) { Ok(Value::Text(text)) } else { Err(Misfit::Bound) }
            }),
            Kind::Choice(words) => read_text(written).and_then(|text| one_of(words, &text)).map(Value::Text),
            Kind::Choices(words) => read_list(written, |text| one_of(words, &text)),
            Kind::Names | Kind::Texts => read_list(written, Ok),
            Kind::Addresses => read_list(written, |text| {
                text.parse::<IpAddr>().map(|a| a.to_string()).map_err(|_| Misfit::Bound)
            }),
            Kind::Networks => read_list(written, |text| network(&text).map(shown).ok_or(Misfit::Bound)),
        }
    }

    /// The bounds alone, for a table: `0 to 65535`, `1s to 1h`.
    pub fn bounds(&self) -> String {
        match self {
            Kind::Switch => "true, false".to_owned(),
            Kind::Count { unit: "", min, max } => format!("{min} to {max}"),
            Kind::Count { unit, min, max } => format!("{min} to {max} {unit}"),
            Kind::PortOrOff => format!("0 to {}, {OFF}", u16::MAX),
            Kind::Milliseconds { min, max } => format!("{} to {}", unit::show_ms(*min), unit::show_ms(*max)),
            Kind::Bytes { min, max } => format!("{} to {}", unit::show_bytes(*min), unit::show_bytes(*max)),
            Kind::Text { min: 0, max } => format!("up to {max} bytes"),
            Kind::Text { min, max } => format!("{min} to {max} bytes"),
            Kind::Choice(words) | Kind::Choices(words) => words.join(", "),
            Kind::Names => "names".to_owned(),
            Kind::Texts => "texts".to_owned(),
            Kind::Addresses => "IPv4 or IPv6".to_owned(),
            Kind::Networks => "IPv4 or IPv6, or networks".to_owned(),
        }
    }
}

/// What the kind takes, to end a sentence that begins with "it takes".
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Switch => write!(f, "true or false"),
            Kind::Count { unit: "", min, max } => write!(f, "a whole number from {min} to {max}"),
            Kind::Count { unit, min, max } => write!(f, "{min} to {max} {unit}"),
            Kind::PortOrOff => write!(f, "a whole number from 0 to {}, or \"{OFF}\"", u16::MAX),
            Kind::Milliseconds { min, max } => write!(
                f,
                "{min} to {max} milliseconds ({}), as a number or as text such as \"30s\"",
                self.bounds()
            ),
            Kind::Bytes { min, max } => {
                write!(
                    f,
                    "{min} to {max} bytes ({}), as a number or as text such as \"64KiB\"",
                    self.bounds()
                )
            }
            Kind::Text { .. } => write!(f, "a text of {}", self.bounds()),
            Kind::Choice(words) => write!(f, "one of {}", quoted(words)),
            Kind::Choices(words) => write!(f, "a list of {}", quoted(words)),
            Kind::Names => write!(f, "a list of names"),
            Kind::Texts => write!(f, "a list of texts"),
            Kind::Addresses => write!(f, "a list of IP addresses"),
            Kind::Networks => write!(f, "a list of IP addresses and networks, such as \"10.0.0.0/8\""),
        }
    }
}

impl Written {
    /// The text after `--set key=`.
    pub(super) fn typed(text: &str) -> Written {
        Written { text: text.to_owned(), shape: Shape::Typed }
    }
}

fn read_switch(written: &Written) -> Result<Value, Misfit> {
    match (&written.shape, written.text.as_str()) {
        (Shape::Bool(on), _) => Ok(Value::Switch(*on)),
        (Shape::Typed, "true") => Ok(Value::Switch(true)),
        (Shape::Typed, "false") => Ok(Value::Switch(false)),
        _ => Err(Misfit::Type),
    }
}

/// A number, or text that `in_units` understands.
fn read_number(
    written: &Written,
    min: u64,
    max: u64,
    in_units: fn(&str) -> Option<u64>,
) -> Result<Value, Misfit> {
    let number = match &written.shape {
        Shape::Integer(number) => u64::try_from(*number).map_err(|_| Misfit::Bound)?,
        // A bare number in quotes is a mistake more often than a wish.
        Shape::Text(text) if text.parse::<i128>().is_ok() => return Err(Misfit::Type),
        Shape::Text(text) => in_units(text).ok_or(Misfit::Type)?,
        Shape::Typed => match written.text.replace('_', "").parse::<i128>() {
            Ok(number) => u64::try_from(number).map_err(|_| Misfit::Bound)?,
            Err(_) => in_units(&written.text).ok_or(Misfit::Type)?,
        },
        _ => return Err(Misfit::Type),
    };
    if (min..=max).contains(&number) { Ok(Value::Number(number)) } else { Err(Misfit::Bound) }
}

fn read_text(written: &Written) -> Result<String, Misfit> {
    match &written.shape {
        Shape::Text(text) => Ok(text.clone()),
        // Quotes that the shell let through are those of TOML.
        Shape::Typed => Ok(written
            .text
            .strip_prefix('"')
            .and_then(|t| t.strip_suffix('"'))
            .unwrap_or(&written.text)
            .to_owned()),
        _ => Err(Misfit::Type),
    }
}

/// A list; a single text counts as a list of one, and `--set` takes `a,b` as well as `["a","b"]`.
fn read_list(written: &Written, each: impl Fn(String) -> Result<String, Misfit>) -> Result<Value, Misfit> {
    let texts: Vec<String> = match &written.shape {
        Shape::Text(text) => vec![text.clone()],
        Shape::List(items) => items
            .iter()
            .map(|item| match item {
                Shape::Text(text) => Ok(text.clone()),
                _ => Err(Misfit::Type),
            })
            .collect::<Result<_, _>>()?,
        Shape::Typed => {
            let inner = written.text.trim_start_matches('[').trim_end_matches(']');
            let items = inner.split(',').map(|item| item.trim().trim_matches('"').to_owned());
            items.filter(|item| !item.is_empty()).collect()
        }
        _ => return Err(Misfit::Type),
    };
    texts.into_iter().map(each).collect::<Result<_, _>>().map(Value::List)
}

fn one_of(words: &[&str], text: &str) -> Result<String, Misfit> {
    if words.contains(&text) { Ok(text.to_owned()) } else { Err(Misfit::Bound) }
}

fn quoted(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|w| format!("\"{w}\"")).collect();
    words.join(", ")
}

/// A [`Kind::Count`] of things called `unit`.
pub(super) const fn count(min: u64, max: u64, unit: &'static str) -> Kind {
    Kind::Count { unit, min, max }
}

/// A port, 0 for any free one.
pub(super) const fn port() -> Kind {
    count(0, u16::MAX as u64, "")
}

/// A [`Kind::Milliseconds`].
pub(super) const fn ms(min: u64, max: u64) -> Kind {
    Kind::Milliseconds { min, max }
}

/// A [`Kind::Bytes`].
pub(super) const fn bytes(min: u64, max: u64) -> Kind {
    Kind::Bytes { min, max }
}

/// A [`Kind::Text`].
pub(super) const fn text(min: usize, max: usize) -> Kind {
    Kind::Text { min, max }
}

/// A file or folder, perhaps none.
pub(super) const fn path(min: usize) -> Kind {
    text(min, 4096)
}
