//! The file that lines are written to, and its rotation.

use super::line::{Format, head};
use carillon_core::model::UnixMs;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The file that lines are written to.
pub(super) struct LogFile {
    folder: PathBuf,
    format: Format,
    file: File,
    /// Its length in bytes; 0 for a pipe.
    len: u64,
    /// When the file was created.
    since: SystemTime,
}

impl LogFile {
    /// Opens the file, or creates it. An incomplete line at its end, which a crash leaves, is cut off; a file of the
    /// other format is rotated.
    pub(super) fn open(folder: &Path, format: Format) -> io::Result<LogFile> {
        let other = current(folder, format.other());
        if other.try_exists()? {
            put_away(folder, &other, format.other())?;
        }
        let path = current(folder, format);
        if path.metadata().is_ok_and(|metadata| metadata.is_file()) {
            cut_half_line(&path)?;
        }
        let file = private().append(true).create(true).open(&path)?;
        let metadata = file.metadata()?;
        let len = if metadata.is_file() { metadata.len() } else { 0 };
        let since = if len == 0 { SystemTime::now() } else { metadata.created().or(metadata.modified())? };
        Ok(LogFile { folder: folder.to_owned(), format, file, len, since })
    }

    /// Writes the first bytes of `bytes`; how many.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.file.write(bytes)?;
        self.len += n as u64;
        Ok(n)
    }

    /// Its length in bytes.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// When the file was created.
    pub(super) fn since(&self) -> SystemTime {
        self.since
    }

    /// Makes what was written durable. A pipe has nothing to keep.
    pub(super) fn sync(&self) -> io::Result<()> {
        if self.file.metadata()?.is_file() { self.file.sync_data() } else { Ok(()) }
    }

    /// Rotates the file: renames it and begins a new one. Whether it was a file at all.
    pub(super) fn rotate(&mut self) -> io::Result<bool> {
        if !self.file.metadata()?.is_file() {
            self.len = 0;
            self.since = SystemTime::now();
            return Ok(false);
        }
        self.file.sync_data()?;
        put_away(&self.folder, &current(&self.folder, self.format), self.format)?;
        *self = LogFile::open(&self.folder, self.format)?;
        Ok(true)
    }
}

/// Options to create files of the log: only their owner may read them, as they tell who talks to whom.
pub(super) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

/// The path of the file that is being written.
pub(super) fn current(folder: &Path, format: Format) -> PathBuf {
    folder.join(format!("events.{}", format.extension()))
}

/// Renames a file to the time of its end, or to a millisecond after the newest rotated file: names must sort in the
/// order in which files were written, also when the clock is set back and when a file takes less than a millisecond.
fn put_away(folder: &Path, path: &Path, format: Format) -> io::Result<()> {
    let newest = newest(folder)?;
    let now = crate::clock::unix();
    let at = newest.map_or(now, |newest| now.max(newest.plus(1)));
    std::fs::rename(path, folder.join(format!("{PUT_AWAY}{}.{}", stamp(at), format.extension())))?;
    sync_folder(folder)
}

/// The time in the name of the newest rotated file. The newest is never removed for the number of files, so no name is
/// used again.
fn newest(folder: &Path) -> io::Result<Option<UnixMs>> {
    let mut newest = None;
    for entry in std::fs::read_dir(folder)? {
        newest = newest.max(entry?.file_name().to_str().and_then(stamped));
    }
    Ok(newest)
}

/// A time for a file name: it sorts by time and has no colon.
fn stamp(at: UnixMs) -> String {
    at.to_xmpp().replace([':', '-'], "")
}

/// The time in the name of a rotated file, compressed or not.
fn stamped(name: &str) -> Option<UnixMs> {
    let (stamp, _) = name.strip_prefix(PUT_AWAY)?.split_once('Z')?;
    let (date, time) = (stamp.get(..8)?, stamp.get(9..)?);
    let (year, month, day) = (date.get(..4)?, date.get(4..6)?, date.get(6..)?);
    let (hour, minute, second) = (time.get(..2)?, time.get(2..4)?, time.get(4..)?);
    UnixMs::from_rfc3339(&format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z"))
}

/// Cuts off what follows the last newline.
fn cut_half_line(path: &Path) -> io::Result<()> {
    let mut file = OpenOptions::new().read(true).write(true).open(path)?;
    let len = file.metadata()?.len();
    let mut end = len;
    let mut chunk = Vec::new();
    let whole = loop {
        if end == 0 {
            break 0;
        }
        let start = end.saturating_sub(CHUNK_BYTES);
        file.seek(SeekFrom::Start(start))?;
        chunk.clear();
        (&mut file).take(end - start).read_to_end(&mut chunk)?;
        if let Some(at) = chunk.iter().rposition(|&c| c == b'\n') {
            break start + at as u64 + 1;
        }
        end = start;
    };
    if whole < len {
        tracing::warn!(path = %path.display(), bytes = len - whole, "half a line, left by a crash, was cut off");
        file.set_len(whole)?;
    }
    Ok(())
}

/// Makes a folder durable, after a rename in it.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// The last number and time of each shard in a file, in any order.
pub(super) fn last_of_each_shard(path: &Path) -> io::Result<Vec<(u16, u64, UnixMs)>> {
    use std::io::BufRead;
    let mut last: Vec<(u16, u64, UnixMs)> = Vec::new();
    for line in io::BufReader::with_capacity(CHUNK_BYTES as usize, File::open(path)?).split(b'\n') {
        let Some(head) = head(&line?) else { continue };
        match last.iter_mut().find(|(shard, ..)| *shard == head.shard) {
            Some(known) => *known = (head.shard, head.seq, head.at),
            None => last.push((head.shard, head.seq, head.at)),
        }
    }
    Ok(last)
}

/// How the names of rotated files begin.
pub(super) const PUT_AWAY: &str = "events-";
const CHUNK_BYTES: u64 = 64 * 1024;
