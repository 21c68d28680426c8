//! Where the contents of files are: in a folder, a file per attempt. Nothing here says which of them count.

use bytes::Bytes;
use carillon_core::model::{UploadAttempt, UploadId};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A folder of contents, with a folder in it for each first byte of an id.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    root: Arc<Path>,
}

/// The contents of an attempt that is under way. Dropped before it is kept, they are removed.
pub(super) struct Writing {
    path: PathBuf,
    file: Option<File>,
    is_kept: bool,
}

/// The contents of a file, to be read.
#[derive(Clone)]
pub(super) struct Reading(Arc<File>);

impl Folder {
    /// It is made when the first file comes.
    pub(super) fn new(root: PathBuf) -> Folder {
        Folder { root: root.into() }
    }

    fn path(&self, id: UploadId, attempt: UploadAttempt) -> PathBuf {
        let name = format!("{id}-{:016x}", attempt.0);
        self.root.join(&name[..2]).join(name)
    }

    /// Begins to write the contents of an attempt.
    pub(super) async fn create(&self, id: UploadId, attempt: UploadAttempt) -> io::Result<Writing> {
        let (root, path) = (self.root.clone(), self.path(id, attempt));
        blocking(move || {
            let folder = path.parent().expect("it is in a folder");
            if !folder.is_dir() {
                DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
                sync_folder(&root)?;
                root.parent().filter(|above| above.is_dir()).map_or(Ok(()), sync_folder)?;
            }
            let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
            Ok(Writing { path, file: Some(file), is_kept: false })
        })
        .await
    }

    /// Opens the contents of an attempt.
    pub(super) async fn open(&self, id: UploadId, attempt: UploadAttempt) -> io::Result<Reading> {
        let path = self.path(id, attempt);
        blocking(move || Ok(Reading(Arc::new(File::open(path)?)))).await
    }

    /// Removes the contents of an attempt, if they are there.
    pub(super) async fn remove(&self, id: UploadId, attempt: UploadAttempt) -> io::Result<()> {
        let path = self.path(id, attempt);
        blocking(move || match std::fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        })
        .await
    }
}

impl Writing {
    /// Writes more at the end.
    pub(super) async fn write(&mut self, bytes: Bytes) -> io::Result<()> {
        let mut file = self.file.take().ok_or_else(failed_before)?;
        let file = blocking(move || {
            file.write_all(&bytes)?;
            Ok(file)
        });
        self.file = Some(file.await?);
        Ok(())
    }

    /// Has all of it, and its name, on the disk: from now on it stays when this is dropped.
    pub(super) async fn keep(mut self) -> io::Result<()> {
        let file = self.file.take().ok_or_else(failed_before)?;
        let folder = self.path.parent().expect("it is in a folder").to_owned();
        blocking(move || {
            file.sync_all()?;
            sync_folder(&folder)
        })
        .await?;
        self.is_kept = true;
        Ok(())
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        if !self.is_kept {
            // What cannot be removed now is removed when its time has come.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Reading {
    /// Up to so many bytes from there on; none at the end.
    pub(super) async fn read(&self, at: u64, len: usize) -> io::Result<Bytes> {
        let file = self.0.clone();
        blocking(move || {
            let mut bytes = vec![0; len];
            let read = file.read_at(&mut bytes, at)?;
            bytes.truncate(read);
            Ok(bytes.into())
        })
        .await
    }
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

fn failed_before() -> io::Error {
    io::Error::other("an earlier part could not be written")
}

/// Does what waits for the disk on a thread for that.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: UploadId = UploadId(0xab << 120 | 5);

    fn names(folder: &Path) -> Vec<PathBuf> {
        let found = std::fs::read_dir(folder.join("ab")).expect("a folder");
        found.map(|entry| entry.expect("an entry").path()).collect()
    }

    #[tokio::test]
    async fn what_is_kept_can_be_read_until_it_is_removed() {
        let temporary = tempfile::tempdir().expect("a folder");
        let folder = Folder::new(temporary.path().join("uploads"));
        let attempt = UploadAttempt(7);
        let mut writing = folder.create(ID, attempt).await.expect("created");
        assert!(folder.create(ID, attempt).await.is_err(), "an attempt is made once");
        writing.write("hello ".into()).await.expect("written");
        writing.write("world".into()).await.expect("written");
        writing.keep().await.expect("kept");
        let reading = folder.open(ID, attempt).await.expect("it is there");
        assert_eq!(reading.read(6, 100).await.expect("read"), "world");
        assert_eq!(reading.read(11, 100).await.expect("read"), "");
        for _ in 0..2 {
            folder.remove(ID, attempt).await.expect("removed");
        }
        assert!(folder.open(ID, attempt).await.is_err());
    }

    #[tokio::test]
    async fn of_what_is_given_up_nothing_is_left() {
        let temporary = tempfile::tempdir().expect("a folder");
        let folder = Folder::new(temporary.path().to_owned());
        let mut writing = folder.create(ID, UploadAttempt(1)).await.expect("created");
        writing.write("hello".into()).await.expect("written");
        assert_eq!(names(temporary.path()).len(), 1);
        drop(writing);
        assert!(names(temporary.path()).is_empty());
    }
}
