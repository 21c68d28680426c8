//! Which part of a file is wanted (RFC 9110 §13, §14).

use axum::http::{HeaderMap, header};

/// What of a file is given.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Range {
    /// All of it.
    All,
    /// These bytes, at least one.
    Part(std::ops::Range<u64>),
    /// Nothing: there is nothing at the place that is wanted.
    None,
}

/// Whether the client has this version.
pub(super) fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    let seen = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let mut tags = seen.flat_map(|value| value.split(',')).map(str::trim);
    tags.any(|seen| seen == "*" || seen.strip_prefix("W/").unwrap_or(seen) == tag)
}

/// What is wanted of a file of so many bytes. More than one range, or what is no range, is all of it: nobody needs to be given ranges.
pub(super) fn wanted(headers: &HeaderMap, tag: &str, bytes: u64) -> Range {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let is_other = headers.contains_key(header::IF_RANGE) && text(header::IF_RANGE) != Some(tag);
    let range = text(header::RANGE).and_then(|value| value.strip_prefix("bytes="));
    let Some((first, last)) = range.filter(|_| !is_other).and_then(|range| range.split_once('-')) else {
        return Range::All;
    };
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let part = match (first.trim().is_empty(), last.trim().is_empty()) {
        // The last so many bytes.
        (true, _) => match number(last) {
            Some(count) => bytes.saturating_sub(count)..bytes,
            None => return Range::All,
        },
        (false, true) => match number(first) {
            Some(first) => first..bytes,
            None => return Range::All,
        },
        (false, false) => match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => first..bytes.min(last.saturating_add(1)),
            _ => return Range::All,
        },
    };
    if part.is_empty() { Range::None } else { Range::Part(part) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    const TAG: &str = "\"t\"";

    fn headers(of: &[(header::HeaderName, &'static str)]) -> HeaderMap {
        of.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn ranges_are_those_of_the_file() {
        let of = |text| wanted(&headers(&[(header::RANGE, text)]), TAG, 10);
        for (text, part) in [
            ("bytes=0-0", 0..1),
            ("bytes=3-", 3..10),
            ("bytes=-4", 6..10),
            ("bytes=-40", 0..10),
            ("bytes=8-99", 8..10),
        ] {
            assert_eq!(of(text), Range::Part(part), "{text}");
        }
        for text in ["bytes=10-", "bytes=10-20", "bytes=-0"] {
            assert_eq!(of(text), Range::None, "{text}");
        }
        for text in ["lines=1-2", "bytes=5-4", "bytes=a-b", "bytes=1-2,4-5", "bytes=-", "bytes=", "bytes=-x"]
        {
            assert_eq!(of(text), Range::All, "{text}");
        }
        assert_eq!(wanted(&HeaderMap::new(), TAG, 10), Range::All);
    }

    #[test]
    fn parts_are_of_the_version_that_is_known() {
        let of = |tag| wanted(&headers(&[(header::RANGE, "bytes=1-2"), (header::IF_RANGE, tag)]), TAG, 10);
        assert_eq!((of("\"t\""), of("\"u\""), of("W/\"t\"")), (Range::Part(1..3), Range::All, Range::All));
        let known = |tags| is_known(&headers(&[(header::IF_NONE_MATCH, tags)]), TAG);
        assert_eq!(["\"t\"", "\"a\", W/\"t\"", "*"].map(known), [true; 3]);
        assert!(!known("\"a\"") && !is_known(&HeaderMap::new(), TAG));
    }
}
