//! Pages of what waits for an account, bounded in entries and in bytes.

use carillon_core::ports::Page;

/// What is left of a page's bounds.
pub(crate) struct Room {
    left: Page,
    is_empty: bool,
}

impl Room {
    /// A page without entries.
    pub(crate) fn new(page: Page) -> Room {
        Room { left: page, is_empty: true }
    }

    /// Whether there is room for an entry of so many bytes, which it takes then. The first needs none.
    pub(crate) fn takes(&mut self, bytes: usize) -> bool {
        let fits = self.left.entries > 0 && (self.is_empty || bytes <= self.left.bytes);
        if fits {
            self.left.entries -= 1;
            self.left.bytes = self.left.bytes.saturating_sub(bytes);
            self.is_empty = false;
        }
        fits
    }
}
