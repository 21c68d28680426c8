//! Recovery: segments that a crash left, whose lines are not all in the log.

use super::file::{current, last_of_each_shard};
use super::line::Format;
use super::spill::{SealedSegment, segments};
use carillon_core::event::Record;
use carillon_core::model::UnixMs;
use std::io;
use std::path::Path;

/// Segments that a crash left, and which entries the log has already.
pub(super) struct Recovery {
    pub(super) segments: Vec<SealedSegment>,
    written: Vec<(u16, u64, UnixMs)>,
}

/// Finds what a crash left.
pub(super) fn find_left_segments(folder: &Path) -> io::Result<Recovery> {
    let segments = segments(folder)?;
    let mut written = Vec::new();
    if !segments.is_empty() {
        tracing::warn!(segments = segments.len(), "the event log goes on with what a crash left on disk");
        for format in [Format::Json, Format::Compact] {
            let path = current(folder, format);
            if path.metadata().is_ok_and(|metadata| metadata.is_file()) {
                written.extend(last_of_each_shard(&path)?);
            }
        }
    }
    Ok(Recovery { segments, written })
}

impl Recovery {
    /// Whether the log has this entry, as the crash came while the lines of its segment were written. An entry of a later
    /// run has a lower number and a later time.
    pub(super) fn has(&self, shard: u16, record: &Record<'_>) -> bool {
        self.written.iter().any(|(s, seq, at)| *s == shard && record.seq <= *seq && record.at <= *at)
    }
}
