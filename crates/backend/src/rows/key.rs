//! API keys as rows.

/// The networks from which a key may be used, a line each.
pub(crate) fn networks(text: &str) -> Box<[Box<str>]> {
    text.lines().map(Into::into).collect()
}
