//! Parts of what is too much for one answer.

/// The bounds of a page. It ends before the entry that would exceed `bytes`, but contains at least one entry of any size
/// unless `entries` is 0, so that reading page after page reaches the end.
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
    /// The entries, in order.
    pub entries: Vec<T>,
    /// Whether more follow.
    pub more: bool,
}

impl<T> Default for Part<T> {
    fn default() -> Part<T> {
        Part { entries: Vec::new(), more: false }
    }
}
