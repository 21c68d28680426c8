//! How the event log is kept.

use super::line::Format;
use carillon_core::event::Kinds;
use std::io;
use std::path::PathBuf;

/// How the event log is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The folder of its files; made when it is missing.
    pub folder: PathBuf,
    /// How a line is printed.
    pub format: Format,
    /// What is kept.
    pub kinds: Kinds,
    /// A file of so many bytes is put away.
    pub rotate_bytes: u64,
    /// A file so old is put away, milliseconds; 0 for any age.
    pub rotate_ms: u64,
    /// Whether files are compressed when they are put away.
    pub compress: bool,
    /// How many are kept of those put away; 0 for all.
    pub keep_files: u32,
    /// How long they are kept, milliseconds; 0 for ever.
    pub keep_ms: u64,
    /// Bytes on their way in memory.
    pub memory_bytes: usize,
}

/// Why the event log cannot be kept.
#[derive(Debug, thiserror::Error)]
#[error("cannot keep the event log in {}: {source}; set `event_log.path` to a folder that can be written", folder.display())]
pub struct EventLogError {
    pub(super) folder: PathBuf,
    pub(super) source: io::Error,
}
