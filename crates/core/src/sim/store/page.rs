//! Pages of what waits for an account.

use crate::ports::{Page, Part};

/// The first page of `entries`, each with its size in bytes.
pub(super) fn first<T>(entries: impl Iterator<Item = (usize, T)>, page: Page) -> Part<T> {
    let (mut found, mut bytes_left) = (Vec::new(), page.bytes);
    for (bytes, entry) in entries {
        let fits = found.is_empty() || bytes <= bytes_left;
        if !fits || found.len() == usize::from(page.entries) {
            return Part { entries: found, more: true };
        }
        bytes_left = bytes_left.saturating_sub(bytes);
        found.push(entry);
    }
    Part { entries: found, more: false }
}
