//! What senders say of a push in its headers (RFC 8030 §5).

use crate::problem::{Code, Problem};
use axum::http::HeaderMap;
use carillon_core::model::Priority;

/// What a push is to be.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    /// Seconds that it may wait for the client.
    pub(super) ttl: u64,
    pub(super) priority: Priority,
    pub(super) topic: Option<String>,
}

/// Reads `TTL`, `Urgency` and `Topic`.
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
    Ok(Wanted { ttl: ttl.parse().unwrap_or(u64::MAX), priority, topic: topic.map(str::to_owned) })
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
        let normal = Wanted { ttl: 60, priority: Priority::Normal, topic: None };
        assert_eq!(of(&[("TTL", "60")]), Ok(normal));
        let all = [("ttl", "0"), ("urgency", "Very-Low"), ("topic", "upd_-8")];
        assert_eq!(of(&all), Ok(Wanted { ttl: 0, priority: Priority::Low, topic: Some("upd_-8".into()) }));
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
}
