//! Values of settings: in general, and as the Rust types that hold them.

use crate::process::telemetry::{LogFormat, LogLevel};
use carillon_core::model::{AppService, PubsubCreate, PushShown, RoomEvents, RoomsCreate, SessionPolicy};
use carillon_core::sasl::Mechanism;
use carillon_http::ApnsPushType;
use carillon_server::ClientPort;
use carillon_server::events::{Format, Kind, Kinds};
use ipnet::IpNet;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

/// The value of any setting. Prints itself as TOML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// True or false.
    Switch(bool),
    /// A count, a time in milliseconds or a size in bytes.
    Number(u64),
    /// A text, a path or a word.
    Text(String),
    /// Several texts.
    List(Vec<String>),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted = |text: &String| toml::Value::String(text.clone()).to_string();
        match self {
            Value::Switch(on) => on.fmt(f),
            Value::Number(number) => number.fmt(f),
            Value::Text(text) => f.write_str(&quoted(text)),
            Value::List(texts) => write!(f, "[{}]", texts.iter().map(quoted).collect::<Vec<_>>().join(", ")),
        }
    }
}

impl From<Value> for serde_json::Value {
    fn from(value: Value) -> serde_json::Value {
        match value {
            Value::Switch(on) => on.into(),
            Value::Number(number) => number.into(),
            Value::Text(text) => text.into(),
            Value::List(texts) => texts.into(),
        }
    }
}

/// A type that holds the value of a setting.
pub(super) trait Field: Sized {
    /// From a value of the setting's kind; none when type and kind do not belong together.
    fn from_value(value: Value) -> Option<Self>;
    /// As a value.
    fn to_value(&self) -> Value;
}

impl Field for bool {
    fn from_value(value: Value) -> Option<bool> {
        if let Value::Switch(on) = value { Some(on) } else { None }
    }

    fn to_value(&self) -> Value {
        Value::Switch(*self)
    }
}

macro_rules! number_field {
    ($($type:ty),+) => {$(
        impl Field for $type {
            fn from_value(value: Value) -> Option<$type> {
                if let Value::Number(number) = value { <$type>::try_from(number).ok() } else { None }
            }

            fn to_value(&self) -> Value {
                // No setting's type is wider than 64 bits.
                Value::Number(*self as u64)
            }
        }
    )+};
}
number_field!(u8, u16, u32, u64, usize);

impl Field for String {
    fn from_value(value: Value) -> Option<String> {
        if let Value::Text(text) = value { Some(text) } else { None }
    }

    fn to_value(&self) -> Value {
        Value::Text(self.clone())
    }
}

impl Field for Box<str> {
    fn from_value(value: Value) -> Option<Box<str>> {
        String::from_value(value).map(String::into_boxed_str)
    }

    fn to_value(&self) -> Value {
        Value::Text(self.to_string())
    }
}

impl Field for PathBuf {
    fn from_value(value: Value) -> Option<PathBuf> {
        String::from_value(value).map(PathBuf::from)
    }

    fn to_value(&self) -> Value {
        Value::Text(self.display().to_string())
    }
}

/// An empty path is no path.
impl Field for Option<PathBuf> {
    fn from_value(value: Value) -> Option<Option<PathBuf>> {
        String::from_value(value).map(|text| (!text.is_empty()).then(|| PathBuf::from(text)))
    }

    fn to_value(&self) -> Value {
        self.clone().unwrap_or_default().to_value()
    }
}

/// A port, or none.
impl Field for Option<u16> {
    fn from_value(value: Value) -> Option<Option<u16>> {
        match value {
            Value::Text(text) => (text == OFF).then_some(None),
            number => u16::from_value(number).map(Some),
        }
    }

    fn to_value(&self) -> Value {
        self.map_or_else(|| Value::Text(OFF.to_owned()), |port| port.to_value())
    }
}

impl Field for Vec<String> {
    fn from_value(value: Value) -> Option<Vec<String>> {
        if let Value::List(texts) = value { Some(texts) } else { None }
    }

    fn to_value(&self) -> Value {
        Value::List(self.clone())
    }
}

impl Field for Vec<IpAddr> {
    fn from_value(value: Value) -> Option<Vec<IpAddr>> {
        Vec::<String>::from_value(value)?.iter().map(|text| text.parse().ok()).collect()
    }

    fn to_value(&self) -> Value {
        Value::List(self.iter().map(IpAddr::to_string).collect())
    }
}

impl Field for Vec<IpNet> {
    fn from_value(value: Value) -> Option<Vec<IpNet>> {
        Vec::<String>::from_value(value)?.iter().map(|text| network(text)).collect()
    }

    fn to_value(&self) -> Value {
        Value::List(self.iter().copied().map(shown).collect())
    }
}

/// Reads a network in CIDR notation, or an address alone.
pub(super) fn network(text: &str) -> Option<IpNet> {
    text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))
}

/// A network as operators write it.
pub(super) fn shown(network: IpNet) -> String {
    match network.prefix_len() == network.max_prefix_len() {
        true => network.addr().to_string(),
        false => network.to_string(),
    }
}

impl Field for Vec<Mechanism> {
    fn from_value(value: Value) -> Option<Vec<Mechanism>> {
        words(value)
    }

    fn to_value(&self) -> Value {
        Value::List(self.iter().map(|mechanism| mechanism.as_str().to_owned()).collect())
    }
}

impl Field for Vec<ClientPort> {
    fn from_value(value: Value) -> Option<Vec<ClientPort>> {
        words(value)
    }

    fn to_value(&self) -> Value {
        let word = |port: &ClientPort| match port.to_value() {
            Value::Text(word) => Some(word),
            _ => None,
        };
        Value::List(self.iter().filter_map(word).collect())
    }
}

/// The values of a list of words.
fn words<T: Field>(value: Value) -> Option<Vec<T>> {
    Vec::<String>::from_value(value)?.into_iter().map(|word| T::from_value(Value::Text(word))).collect()
}

/// Where a shard begins and ends is always told, so nobody writes it.
impl Field for Kinds {
    fn from_value(value: Value) -> Option<Kinds> {
        let wanted: Option<Vec<_>> =
            Vec::<String>::from_value(value)?.iter().map(|word| Kind::named(word)).collect();
        Some(Kinds::of(wanted?.into_iter().chain([Kind::Start, Kind::Stop])))
    }

    fn to_value(&self) -> Value {
        let wanted = |word: &&&str| Kind::named(word).is_some_and(|kind| self.contains(kind));
        Value::List(Kind::WORDS.iter().filter(wanted).map(|&word| word.to_owned()).collect())
    }
}

impl Words for Kind {
    const WORDS: &'static [&'static str] = &[
        "connect",
        "login",
        "login-failure",
        "disconnect",
        "accept",
        "deliver",
        "acknowledge",
        "drop",
        "publish",
        "item",
        "resume",
        "match-ended",
        "room-created",
        "room-destroyed",
        "room-removed",
    ];
}

/// A type whose values are words: its [`Field`] implementation and the list of the words.
macro_rules! word_field {
    ($type:ident { $($word:literal => $variant:ident),+ }) => {
        impl Words for $type {
            const WORDS: &'static [&'static str] = &[$($word),+];
        }

        impl Field for $type {
            fn from_value(value: Value) -> Option<$type> {
                match String::from_value(value)?.as_str() {
                    $($word => Some($type::$variant),)+
                    _ => None,
                }
            }

            fn to_value(&self) -> Value {
                Value::Text(match self { $($type::$variant => $word),+ }.to_owned())
            }
        }
    };
}

/// The words of a type whose values are words.
pub(super) trait Words {
    /// All of them.
    const WORDS: &'static [&'static str];
}

/// Which defaults the limits have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Those for service.
    #[default]
    Default,
    /// Rates and counts lifted, so that what is measured is the server and not its limits.
    Benchmark,
}

word_field!(SessionPolicy { "single" => Single, "multi" => Multi });
word_field!(ClientPort { "c2s" => C2s, "c2s_tls" => C2sTls, "websocket" => WebSocket, "light" => Light });
word_field!(PubsubCreate { "any" => Any, "admin" => Admin });
word_field!(RoomsCreate { "any" => Any, "admin" => Admin });
word_field!(RoomEvents { "off" => Off, "membership" => Membership, "all" => All });
word_field!(Mechanism {
    "SCRAM-SHA-256-PLUS" => ScramSha256Plus,
    "SCRAM-SHA-1-PLUS" => ScramSha1Plus,
    "SCRAM-SHA-256" => ScramSha256,
    "SCRAM-SHA-1" => ScramSha1,
    "PLAIN" => Plain
});
word_field!(PushShown { "nothing" => Nothing, "sender" => Sender, "whole" => Whole });
word_field!(AppService { "apns" => Apns, "fcm" => Fcm });
word_field!(ApnsPushType { "alert" => Alert, "background" => Background });
word_field!(Profile { "default" => Default, "benchmark" => Benchmark });
word_field!(Format { "json" => Json, "compact" => Compact });
word_field!(LogFormat { "text" => Text, "json" => Json });
word_field!(LogLevel {
    "error" => Error, "warn" => Warn, "info" => Info, "debug" => Debug, "trace" => Trace
});

/// What is written for a listener that is not wanted.
pub(super) const OFF: &str = "off";
