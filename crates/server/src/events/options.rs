//! The options of the event log.

use super::line::Format;
use carillon_core::event::Kinds;
use std::io;
use std::path::PathBuf;

/// The options of the event log. Types and defaults are declared here and nowhere else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Whether there is an event log.
    pub enabled: bool,
    /// The folder of its files, created if it is missing.
    pub folder: PathBuf,
    /// The format of the lines.
    pub format: Format,
    /// The kinds of events that are kept.
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

impl Default for Options {
    fn default() -> Options {
        Options {
            enabled: false,
            folder: PathBuf::new(),
            format: Format::Json,
            kinds: Kinds::all(),
            rotate_bytes: 256 << 20,
            rotate_ms: 86_400_000,
            compress: true,
            keep_files: 100,
            keep_ms: 30 * 86_400_000,
            memory_bytes: 32 << 20,
        }
    }
}

/// Why the event log cannot be started.
#[derive(Debug, thiserror::Error)]
#[error("cannot keep the event log in {}: {source}; set `event_log.path` to a folder that can be written", folder.display())]
pub struct EventLogError {
    pub(super) folder: PathBuf,
    pub(super) source: io::Error,
}
