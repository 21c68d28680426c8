//! API keys as rows.

/// What a key has several of, such as the networks from which it may be used: a line each.
pub(crate) fn lines(text: &str) -> Box<[Box<str>]> {
    text.lines().map(Into::into).collect()
}
