//! Parts of what is too much for one answer.

/// The bounds of a page. It ends before the entry that would take it over `bytes`, but the first entry is in it whatever its
/// size, unless `entries` is 0: whoever reads page after page comes to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Entries at most.
    pub entries: u16,
    /// Bytes at most of what the entries carry: payloads of notifications, whole stanzas of messages.
    pub bytes: usize,
}

/// A part of what was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part<T> {
    /// In their order.
    pub entries: Vec<T>,
    /// Whether there are more behind them.
    pub more: bool,
}

impl<T> Default for Part<T> {
    fn default() -> Part<T> {
        Part { entries: Vec::new(), more: false }
    }
}
