//! What senders say of a push in its headers (RFC 8030 §5).

use crate::problem::{Code, Problem};
use axum::http::HeaderMap;
use carillon_core::model::Priority;
use std::time::Duration;

/// What a push is to be.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    /// Seconds that it may wait for the client.
    pub(super) ttl: u64,
    pub(super) priority: Priority,
    pub(super) topic: Option<String>,
    /// Whether the sender wants a receipt (RFC 8030 §5.1).
    pub(super) wants_receipt: bool,
}

/// Reads `TTL`, `Urgency`, `Topic` and `Prefer`.
pub(super) fn read(headers: &HeaderMap) -> Result<Wanted, Problem> {
    let ttl = text(headers, "ttl")?
        .ok_or_else(|| invalid("`TTL` is missing: for how many seconds the push may wait"))?;
    let is_number = !ttl.is_empty() && ttl.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number {
        return Err(invalid("`TTL` is a number of seconds"));
    }
    let priority = match text(headers, "urgency")?.map(str::to_ascii_lowercase).as_deref() {
        None | Some("normal") => Priority::Normal,
        Some("very-low" | "low") => Priority::Low,
        Some("high") => Priority::High,
        Some(_) => return Err(invalid("`Urgency` is `very-low`, `low`, `normal` or `high`")),
    };
    let topic = text(headers, "topic")?;
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    if topic.is_some_and(|topic| !(1..=TOPIC_BYTES_MAX).contains(&topic.len()) || !topic.bytes().all(is_word))
    {
        return Err(invalid("`Topic` has 1 to 32 characters of base64url"));
    }
    // What is too large to be a number is longer than anything is kept.
    let topic = topic.map(str::to_owned);
    let wants_receipt = preferences(headers).any(|(name, _)| name.eq_ignore_ascii_case("respond-async"));
    Ok(Wanted { ttl: ttl.parse().unwrap_or(u64::MAX), priority, topic, wants_receipt })
}

/// How long a request may wait for its answer (`Prefer: wait=…`, RFC 7240 §4.3), if it says.
pub(super) fn wait(headers: &HeaderMap) -> Result<Option<Duration>, Problem> {
    let Some((_, seconds)) = preferences(headers).find(|(name, _)| name.eq_ignore_ascii_case("wait")) else {
        return Ok(None);
    };
    let is_number = !seconds.is_empty() && seconds.bytes().all(|byte| byte.is_ascii_digit());
    let seconds = is_number.then(|| seconds.parse().unwrap_or(u64::MAX));
    seconds
        .map(|seconds| Some(Duration::from_secs(seconds)))
        .ok_or_else(|| invalid("`wait` of `Prefer` is a number of seconds"))
}

/// What a request would like, and the values (RFC 7240 §2). What is not ASCII is not known.
fn preferences(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    let values = headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(|preference| {
        // Parameters follow a semicolon.
        let preference = preference.split(';').next().unwrap_or_default();
        let (name, value) = preference.split_once('=').unwrap_or((preference, ""));
        (name.trim(), value.trim().trim_matches('"'))
    })
}

/// A header that is there once at most.
fn text<'a>(headers: &'a HeaderMap, name: &'static str) -> Result<Option<&'a str>, Problem> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => {
            value.to_str().map(|text| Some(text.trim())).map_err(|_| invalid("a header is not ASCII"))
        }
        (Some(_), Some(_)) => Err(Problem::new(Code::InvalidHeader, format!("`{name}` is there twice"))),
    }
}

fn invalid(detail: &'static str) -> Problem {
    Problem::new(Code::InvalidHeader, detail)
}

/// The longest topic (RFC 8030 §5.4).
const TOPIC_BYTES_MAX: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderName, HeaderValue};

    fn of(headers: &[(&str, &str)]) -> Result<Wanted, Code> {
        let headers = headers.iter().map(|(name, value)| {
            (name.parse::<HeaderName>().expect("a name"), HeaderValue::from_str(value).expect("a value"))
        });
        read(&headers.collect()).map_err(|problem| problem.code())
    }

    #[test]
    fn what_is_said_is_read() {
        let normal = || Wanted { ttl: 60, priority: Priority::Normal, topic: None, wants_receipt: false };
        assert_eq!(of(&[("TTL", "60")]), Ok(normal()));
        for prefer in ["respond-async", "wait=3, Respond-Async; a=b"] {
            let wanted = of(&[("TTL", "60"), ("prefer", prefer)]);
            assert_eq!(wanted, Ok(Wanted { wants_receipt: true, ..normal() }), "{prefer}");
        }
        assert_eq!(of(&[("TTL", "60"), ("prefer", "return=minimal")]), Ok(normal()));
        let all = [("ttl", "0"), ("urgency", "Very-Low"), ("topic", "upd_-8")];
        assert_eq!(
            of(&all),
            Ok(Wanted {
                ttl: 0,
                priority: Priority::Low,
                topic: Some("upd_-8".into()),
                wants_receipt: false
            })
        );
        let long = of(&[("ttl", "99999999999999999999999"), ("urgency", "high")]).expect("a number");
        assert_eq!((long.ttl, long.priority), (u64::MAX, Priority::High));
    }

    #[test]
    fn what_is_missing_or_wrong_is_refused() {
        let topic = "a".repeat(33);
        for headers in [
            &[][..],
            &[("ttl", "")],
            &[("ttl", "-1")],
            &[("ttl", "1.5")],
            &[("ttl", "+1")],
            &[("ttl", "60"), ("urgency", "urgent")],
            &[("ttl", "60"), ("topic", "")],
            &[("ttl", "60"), ("topic", "a b")],
            &[("ttl", "60"), ("topic", "a=")],
            &[("ttl", "60"), ("topic", &topic)],
        ] {
            assert_eq!(of(headers), Err(Code::InvalidHeader), "{headers:?}");
        }
        let mut twice = HeaderMap::new();
        twice.append("ttl", HeaderValue::from_static("1"));
        twice.append("ttl", HeaderValue::from_static("2"));
        assert!(read(&twice).is_err());
    }

    #[test]
    fn how_long_to_wait_is_a_number_of_seconds() {
        let of = |value: &str| {
            let headers =
                [(HeaderName::from_static("prefer"), HeaderValue::from_str(value).expect("a value"))];
            wait(&headers.into_iter().collect()).map_err(|problem| problem.code())
        };
        assert_eq!(wait(&HeaderMap::new()).map_err(|problem| problem.code()), Ok(None));
        assert_eq!(of("respond-async"), Ok(None));
        assert_eq!(of("respond-async, wait=10"), Ok(Some(Duration::from_secs(10))));
        assert_eq!(of("WAIT = \"0\"; x"), Ok(Some(Duration::ZERO)));
        assert_eq!(of("wait=99999999999999999999"), Ok(Some(Duration::from_secs(u64::MAX))));
        for wrong in ["wait", "wait=", "wait=-1", "wait=1.5", "wait=soon"] {
            assert_eq!(of(wrong), Err(Code::InvalidHeader), "{wrong}");
        }
    }
}
