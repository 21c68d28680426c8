//! The options of the event log.

use super::line::Format;
use carillon_core::event::Kinds;
use std::io;
use std::path::PathBuf;

/// The options of the event log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The folder of its files, created if it is missing.
    pub folder: PathBuf,
    /// The format of the lines.
    pub format: Format,
    /// What is kept.
    pub kinds: Kinds,
    /// A file is rotated at this size in bytes.
    pub rotate_bytes: u64,
    /// A file is rotated at this age in milliseconds; 0 for never.
    pub rotate_ms: u64,
    /// Whether rotated files are compressed.
    pub compress: bool,
    /// How many rotated files are kept; 0 for all.
    pub keep_files: u32,
    /// How long rotated files are kept, in milliseconds; 0 for ever.
    pub keep_ms: u64,
    /// Bytes of memory for events that are not written yet.
    pub memory_bytes: usize,
}

/// Why the event log cannot be started.
#[derive(Debug, thiserror::Error)]
#[error("cannot keep the event log in {}: {source}; set `event_log.path` to a folder that can be written", folder.display())]
pub struct EventLogError {
    pub(super) folder: PathBuf,
    pub(super) source: io::Error,
}
