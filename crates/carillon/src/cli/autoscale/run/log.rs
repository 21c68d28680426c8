//! The decision log: a line of JSON per decision, held by one scaler at a time, and bounded in bytes.
//!
//! Half of the bound is the file's; when it is full, its decisions go to a second file, in the place of those that were there. The file itself stays, since the
//! lock is on it.

use super::super::event::{Event, Outcome, Recent};
use super::super::explain;
use carillon_scale::Scaler;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The decision log of this scaler.
pub(super) struct Log {
    file: File,
    path: PathBuf,
    bytes: u64,
    bytes_max: u64,
    last_units: Option<u32>,
    recent: Recent,
    left: (Vec<String>, Duration),
}

impl Log {
    /// Opens the log, or begins one; from what is there already the scaler learns what was measured.
    ///
    /// # Errors
    /// It cannot be written, another scaler holds it, or it is no decision log.
    pub(super) fn open(path: &Path, bytes_max: u64, scaler: &mut Scaler) -> Result<Log, String> {
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
        finish(&file, path).map_err(|error| wrong(error.to_string()))?;
        let (mut last_units, mut left) = (None, (Vec::new(), Duration::ZERO));
        let mut recent = Recent::default();
        explain::read(path, |mut event| {
            // What was only considered is not what there is; of what was never in force nothing is known, nor of what another scaler did meanwhile.
            last_units = match event.outcome {
                Outcome::Done => event.units,
                _ if event.granted.is_none() => last_units,
                _ => event.granted.filter(|_| event.in_force > Some(0)),
            };
            recent.add(&event);
            left = (std::mem::take(&mut event.leaving), event.moment());
            // Lines come in order; one that cannot be used is passed over, as it was when it was written.
            event.observations().into_iter().for_each(|observation| drop(scaler.learn(observation)));
        })?;
        let bytes = file.metadata().map_err(|error| wrong(error.to_string()))?.len();
        Ok(Log { file, path: path.to_owned(), bytes, bytes_max, last_units, recent, left })
    }

    /// The units that were put into force last, before this scaler started.
    pub(super) fn last_units(&self) -> Option<u32> {
        self.last_units
    }

    /// The edges that were being taken away when the scaler before this one ended, and when it decided last. Given once.
    pub(super) fn left(&mut self) -> (Vec<String>, Duration) {
        std::mem::take(&mut self.left)
    }

    /// The last decisions, those of the scaler before this one too.
    pub(super) fn recent(&self) -> &Recent {
        &self.recent
    }

    /// Notes a decision among the last ones.
    pub(super) fn note(&mut self, event: &Event) {
        self.recent.add(event);
    }

    /// Adds a decision.
    pub(super) fn write(&mut self, event: &Event) -> Result<(), String> {
        let mut line = serde_json::to_vec(event).expect("an event has no keys that are not text");
        line.push(b'\n');
        self.add(&line).map_err(|error| format!("{}: {error}", self.path.display()))
    }

    fn add(&mut self, line: &[u8]) -> std::io::Result<()> {
        if self.bytes > 0 && self.bytes + line.len() as u64 > self.bytes_max / 2 {
            self.set_aside()?;
        }
        // In one piece: a reader sees a whole line, or the beginning of the last one.
        self.file.write_all(line)?;
        self.bytes += line.len() as u64;
        Ok(())
    }

    /// Moves what is in the file to the one of earlier decisions. If the process ends in between, both have them, until the next start.
    fn set_aside(&mut self) -> std::io::Result<()> {
        let earlier = explain::earlier(&self.path);
        let mut copy = earlier.clone().into_os_string();
        copy.push(".new");
        std::fs::copy(&self.path, &copy)?;
        std::fs::rename(&copy, earlier)?;
        self.file.set_len(0)?;
        self.bytes = 0;
        Ok(())
    }
}

/// Ends a move that was under way when the scaler before ended.
fn finish(file: &File, path: &Path) -> std::io::Result<()> {
    let earlier = explain::earlier(path);
    let bytes = file.metadata()?.len();
    let is_as_long = bytes > 0 && std::fs::metadata(&earlier).is_ok_and(|earlier| earlier.len() == bytes);
    if is_as_long && std::fs::read(&earlier)? == std::fs::read(path)? {
        file.set_len(0)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use carillon_scale::Settings;

    fn event(number: u64) -> Event {
        let settings = Settings { target: 0.7, min: 1, max: 9, ..Settings::default() };
        Event::new(Duration::from_secs(60 * number), &settings)
    }

    #[test]
    fn it_is_bounded_in_bytes_and_its_newest_decisions_are_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("decisions.ndjson");
        let scaler = || {
            Scaler::new(Settings { target: 0.7, min: 1, max: 9, ..Settings::default() }).expect("it decides")
        };
        let size = || -> u64 {
            let files = std::fs::read_dir(folder.path()).expect("it is read").flatten();
            files.map(|file| file.metadata().expect("it is there").len()).sum()
        };
        let newest = |max: u64| {
            let mut found = Vec::new();
            explain::read(&path, |event| found.push(event.at)).expect("it is read");
            let count = max.min(found.len() as u64);
            let expected: Vec<String> = (max - count..max).map(|number| event(number).at).collect();
            assert_eq!(found, expected, "in order, without a gap");
            count
        };
        let mut log = Log::open(&path, 8192, &mut scaler()).expect("it is opened");
        for number in 0..100 {
            log.write(&event(number)).expect("it is written");
            assert!(size() <= 8192, "{} bytes after {number}", size());
        }
        assert!((10..90).contains(&newest(100)));
        // Another scaler goes on with it, and has no less room than this one.
        drop(log);
        let mut log = Log::open(&path, 8192, &mut scaler()).expect("it is opened");
        for number in 100..140 {
            log.write(&event(number)).expect("it is written");
            assert!(size() <= 8192);
        }
        assert!(newest(140) >= 10);
        drop(log);
        // A process that ended while it moved them.
        std::fs::copy(&path, explain::earlier(&path)).expect("it is copied");
        let mut log = Log::open(&path, 8192, &mut scaler()).expect("it is opened");
        log.write(&event(140)).expect("it is written");
        assert!(newest(141) >= 2);
        drop(log);
        // Less than there is: what is there goes with the next decision.
        let mut log = Log::open(&path, 1024, &mut scaler()).expect("it is opened");
        log.write(&event(141)).expect("it is written");
        log.write(&event(142)).expect("it is written");
        assert!(newest(143) >= 1);
    }
}
