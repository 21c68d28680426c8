//! Small files that tell others about a running node: who listens where, and the key that opens it.

mod admin_key;
mod node;
mod ready;

pub use admin_key::{AdminKey, KeyError};
pub use node::NodeFile;
pub use ready::Ready;

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Writes a whole file or none: readers see what was there before or all of `contents`. Made with `mode`.
pub(crate) fn write_whole(path: &Path, contents: &[u8], mode: u32) -> io::Result<()> {
    let beside = beside(path);
    let write = || {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(&beside)?;
        file.write_all(contents)?;
        file.sync_all()?;
        fs::rename(&beside, path)
    };
    write().inspect_err(|_| {
        // The first error is the one to tell.
        let _ = fs::remove_file(&beside);
    })
}

/// The file that becomes `path` when it is complete. Named by the process, so that two do not write into one.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_leaves_nothing_beside() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.json");
        write_whole(&path, b"first, and longer", 0o644).expect("written");
        write_whole(&path, b"second", 0o644).expect("written");
        assert_eq!(fs::read(&path).expect("readable"), b"second");
        assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 1);
    }

    #[test]
    fn what_cannot_be_renamed_leaves_nothing_beside() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("taken");
        fs::create_dir(&path).expect("made");
        assert!(write_whole(&path, b"x", 0o644).is_err());
        assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 1);
    }
}
