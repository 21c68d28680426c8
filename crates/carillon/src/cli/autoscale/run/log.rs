//! The decision log: a line of JSON per decision, held by one scaler at a time.

use super::super::event::{Event, Outcome};
use super::super::explain;
use carillon_scale::Scaler;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::Path;

/// The decision log of this scaler.
pub(super) struct Log {
    file: File,
    name: String,
    last_units: Option<u32>,
}

impl Log {
    /// Opens the log, or begins one; from what is there already the scaler learns what was measured.
    ///
    /// # Errors
    /// It cannot be written, another scaler holds it, or it is no decision log.
    pub(super) fn open(path: &Path, scaler: &mut Scaler) -> Result<Log, String> {
        let wrong = |why: String| format!("{}: {why}", path.display());
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .map_err(|error| wrong(error.to_string()))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(wrong(
                    "another scaler holds this decision log; one is active at a time".to_owned(),
                ));
            }
            Err(TryLockError::Error(error)) => return Err(wrong(error.to_string())),
        }
        let mut last_units = None;
        explain::read(path, |event| {
            // What was refused, or only considered, is not what there is.
            let units = if event.outcome == Outcome::Done { event.units } else { event.granted };
            last_units = units.or(last_units);
            // Lines come in order; one that cannot be used is passed over, as it was when it was written.
            let _ = event.observation().map(|observation| scaler.learn(observation));
        })?;
        Ok(Log { file, name: path.display().to_string(), last_units })
    }

    /// The units that were put into force last, before this scaler started.
    pub(super) fn last_units(&self) -> Option<u32> {
        self.last_units
    }

    /// Adds a decision.
    pub(super) fn write(&mut self, event: &Event) -> Result<(), String> {
        let mut line = serde_json::to_vec(event).expect("an event has no keys that are not text");
        line.push(b'\n');
        // In one piece: a reader sees a whole line, or the beginning of the last one.
        self.file.write_all(&line).map_err(|error| format!("{}: {error}", self.name))
    }
}
