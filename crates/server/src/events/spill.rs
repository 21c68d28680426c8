//! Segments: entries of one shard that were spilled to disk because the writer was behind.
//!
//! A segment is a file with a header (a magic number and the shard) and the entries as the journal encoded them. The
//! intake writes it; the writer reads it, and removes it when its lines are written. Segments that a crash leaves are
//! read at the next start, up to an incomplete entry.

use super::file::private;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// A segment that is being written.
pub(super) struct Segment {
    path: PathBuf,
    file: File,
    len: u64,
}

/// A complete segment.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SealedSegment {
    pub(super) path: PathBuf,
}

/// A segment that is being read.
pub(super) struct SegmentReader {
    pub(super) shard: u16,
    file: File,
    buffer: Vec<u8>,
}

impl Segment {
    /// Creates a segment of a shard. Segments are read in the order of `run` (when the node was started) and `number`.
    pub(super) fn create(folder: &Path, shard: u16, run: u64, number: u64) -> io::Result<Segment> {
        let path = folder.join(format!("{PREFIX}{run:015}-{number:09}"));
        let mut file = private().write(true).create_new(true).open(&path)?;
        let [a, b] = shard.to_le_bytes();
        if let Err(error) = file.write_all(&[MAGIC[0], MAGIC[1], MAGIC[2], MAGIC[3], a, b]) {
            // An empty one would look like one that a crash cut off.
            let _ = std::fs::remove_file(&path);
            return Err(error);
        }
        Ok(Segment { path, file, len: HEAD_BYTES })
    }

    /// Appends all entries or none: what a failed call wrote is overwritten by the next.
    pub(super) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Err(error) = self.file.write_all_at(bytes, self.len) {
            // If even this fails, the next call overwrites these bytes with the same entries.
            let _ = self.file.set_len(self.len);
            return Err(error);
        }
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// Its length in bytes.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Completes it.
    pub(super) fn seal(self) -> SealedSegment {
        SealedSegment { path: self.path }
    }
}

impl SealedSegment {
    /// Opens it for reading. None if its header is not that of a segment.
    pub(super) fn open(&self) -> io::Result<Option<SegmentReader>> {
        let mut file = File::open(&self.path)?;
        let mut head = [0; HEAD_BYTES as usize];
        match file.read_exact(&mut head) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            other => other?,
        }
        let [m0, m1, m2, m3, a, b] = head;
        let shard = u16::from_le_bytes([a, b]);
        Ok((*MAGIC == [m0, m1, m2, m3]).then(|| SegmentReader { shard, file, buffer: Vec::new() }))
    }

    /// Removes it, when its lines are written.
    pub(super) fn remove(self) -> io::Result<()> {
        std::fs::remove_file(&self.path)
    }
}

impl SegmentReader {
    /// Reads the next entries: some whole ones, and perhaps the beginning of one, which [`SegmentReader::keep`] keeps.
    /// Whether anything was read.
    pub(super) fn fill(&mut self) -> io::Result<bool> {
        let before = self.buffer.len();
        let mut chunk = (&mut self.file).take(CHUNK_BYTES);
        chunk.read_to_end(&mut self.buffer)?;
        Ok(self.buffer.len() > before)
    }

    /// The bytes that were read.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer
    }

    /// Drops all but the last `rest` bytes.
    pub(super) fn keep(&mut self, rest: usize) {
        self.buffer.drain(..self.buffer.len() - rest);
    }
}

/// The segments in a folder, in the order in which they were written.
pub(super) fn segments(folder: &Path) -> io::Result<Vec<SealedSegment>> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(PREFIX) {
            paths.push(entry.path());
        }
    }
    paths.sort();
    Ok(paths.into_iter().map(|path| SealedSegment { path }).collect())
}

const PREFIX: &str = "spill-";
const MAGIC: &[u8; 4] = b"CES1";
const HEAD_BYTES: u64 = 6;
const CHUNK_BYTES: u64 = 256 * 1024;
