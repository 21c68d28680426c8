//! The fixed seeds: what they once showed, they would show again.

use carillon_core::sim::program::Mix;

/// A program by all that makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fixed {
    pub(super) seed: u64,
    pub(super) steps: u64,
    pub(super) mix: Mix,
}

/// Each with what it showed.
pub(super) const FIXED: &[Fixed] = &[];
