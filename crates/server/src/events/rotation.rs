//! The rotation: compresses rotated files, removes old ones, and lists them for readers. Its thread has the lowest
//! priority.

use super::figures::{LogFigures, add};
use super::file::{PUT_AWAY, private, sync_folder};
use super::line::Format;
use super::options::Options;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, SystemTime};

/// Compresses and removes rotated files.
pub(super) struct Rotation {
    folder: PathBuf,
    compress: bool,
    keep_files: u32,
    keep_ms: u64,
    figures: Arc<LogFigures>,
}

impl Rotation {
    pub(super) fn new(options: &Options, figures: Arc<LogFigures>) -> Rotation {
        let Options { compress, keep_files, keep_ms, .. } = *options;
        Rotation { folder: options.folder.clone(), compress, keep_files, keep_ms, figures }
    }

    /// Runs until the writer is gone.
    pub(super) fn run(self, rotated: &Receiver<()>) {
        // On Linux this affects the thread alone. If it is not allowed, the priority stays.
        let _ = rustix::process::setpriority_process(None, LOWEST_PRIORITY);
        loop {
            if let Err(error) = self.tidy() {
                add(&self.figures.failures, 1);
                tracing::error!(%error, folder = %self.folder.display(), "the event log's files cannot be tidied");
            }
            // Files also become too old when no new one comes.
            if let Err(std::sync::mpsc::RecvTimeoutError::Disconnected) = rotated.recv_timeout(HOUR) {
                return;
            }
        }
    }

    /// Compresses files that are not, and removes those that are too old or too many.
    pub(super) fn tidy(&self) -> io::Result<()> {
        for path in listed(&self.folder, |name| name.starts_with(PUT_AWAY) && name.ends_with(".part"))? {
            // Left by a crash; its source is still there.
            std::fs::remove_file(path)?;
        }
        if self.compress {
            for path in put_away(&self.folder)?.iter().filter(|path| !is_compressed(path)) {
                self.compress(path)?;
            }
        }
        let files = put_away(&self.folder)?;
        let over = match self.keep_files {
            0 => 0,
            keep => files.len().saturating_sub(keep as usize),
        };
        for (n, path) in files.iter().enumerate() {
            if n < over || self.is_old(path)? {
                std::fs::remove_file(path)?;
            }
        }
        Ok(())
    }

    fn is_old(&self, path: &Path) -> io::Result<bool> {
        let age = SystemTime::now().duration_since(path.metadata()?.modified()?).unwrap_or_default();
        Ok(self.keep_ms > 0 && age > Duration::from_millis(self.keep_ms))
    }

    /// Replaces a file by its compressed form. The original is removed when the other is durable.
    fn compress(&self, plain: &Path) -> io::Result<()> {
        let modified = plain.metadata()?.modified()?;
        let part = with_suffix(plain, ".zst.part");
        let mut from = File::open(plain)?;
        let mut encoder = zstd::Encoder::new(
            private().write(true).create(true).truncate(true).open(&part)?,
            zstd::DEFAULT_COMPRESSION_LEVEL,
        )?;
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            if self.figures.is_closing() {
                // The next start compresses it.
                drop(encoder);
                return std::fs::remove_file(&part);
            }
            match from.read(&mut chunk)? {
                0 => break,
                n => encoder.write_all(&chunk[..n])?,
            }
        }
        let file = encoder.finish()?;
        // Its age is that of its content.
        file.set_modified(modified)?;
        file.sync_all()?;
        std::fs::rename(&part, with_suffix(plain, ".zst"))?;
        sync_folder(&self.folder)?;
        std::fs::remove_file(plain)
    }
}

/// The files of a folder in the order in which they were written; the current one comes last.
pub fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = put_away(folder)?;
    files.extend(current(folder));
    Ok(files)
}

/// The file of a folder that is currently written.
pub fn current(folder: &Path) -> Option<PathBuf> {
    let files = [Format::Json, Format::Compact].map(|format| super::file::current(folder, format));
    files.into_iter().find(|path| path.exists())
}

/// Opens a file of an event log, compressed or not, for reading line by line.
pub fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    let file = File::open(path)?;
    Ok(match is_compressed(path) {
        true => Box::new(BufReader::new(zstd::Decoder::new(file)?)),
        false => Box::new(BufReader::with_capacity(CHUNK_BYTES, file)),
    })
}

/// Rotated files, the oldest first.
fn put_away(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let endings = [".jsonl", ".tsv", ".jsonl.zst", ".tsv.zst"];
    let mut files =
        listed(folder, |name| name.starts_with(PUT_AWAY) && endings.iter().any(|end| name.ends_with(end)))?;
    // While a file is being replaced by its compressed form, or after a crash, both exist.
    files.retain(|path| is_compressed(path) || !with_suffix(path, ".zst").exists());
    Ok(files)
}

fn listed(folder: &Path, wanted: impl Fn(&str) -> bool) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(&wanted) {
            paths.push(entry.path());
        }
    }
    paths.sort();
    Ok(paths)
}

fn is_compressed(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "zst")
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

const CHUNK_BYTES: usize = 1 << 20;
const HOUR: Duration = Duration::from_secs(3600);
/// The lowest priority as a `nice` value.
const LOWEST_PRIORITY: i32 = 19;
