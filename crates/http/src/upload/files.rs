//! Where the contents of files are: in a folder, a file per attempt, or in a store of objects, an object per attempt. Nothing here says which of them count.
//!
//! What goes to a store of objects is in the folder until it is whole: a store is told its size and its hash first, and is asked again when it fails.

use crate::objects::ObjectStore;
use bytes::Bytes;
use carillon_core::model::{UploadAttempt, UploadId};
use sha2::{Digest, Sha256};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Contents in a folder, with a folder in it for each first byte of an id; where there is a store of objects, those that are whole are there instead.
#[derive(Clone, Debug)]
pub(super) struct Contents {
    root: Arc<Path>,
    objects: Option<Arc<dyn ObjectStore>>,
}

/// The contents of an attempt that is under way. Dropped before it is kept, they are removed.
pub(super) struct Writing {
    path: PathBuf,
    name: String,
    file: Option<File>,
    /// The store that they are for, what was written, and its hash so far.
    object: Option<(Arc<dyn ObjectStore>, u64, Sha256)>,
    is_kept: bool,
}

/// A part of the contents of a file, to be read from its beginning.
pub(super) struct Reading(Box<dyn Read + Send>);

impl Contents {
    /// The folder is made when the first file comes.
    pub(super) fn new(root: PathBuf, objects: Option<Arc<dyn ObjectStore>>) -> Contents {
        Contents { root: root.into(), objects }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join(&name[..2]).join(name)
    }

    /// Begins to write the contents of an attempt.
    pub(super) async fn create(&self, id: UploadId, attempt: UploadAttempt) -> io::Result<Writing> {
        let name = name(id, attempt);
        let (root, path) = (self.root.clone(), self.path(&name));
        let object = self.objects.clone().map(|objects| (objects, 0, Sha256::new()));
        blocking(move || {
            let folder = path.parent().expect("it is in a folder");
            if !folder.is_dir() {
                DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
                sync_folder(&root)?;
                root.parent().filter(|above| above.is_dir()).map_or(Ok(()), sync_folder)?;
            }
            let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
            Ok(Writing { path, name, file: Some(file), object, is_kept: false })
        })
        .await
    }

    /// Opens a part of the contents of an attempt.
    pub(super) async fn open(
        &self,
        id: UploadId,
        attempt: UploadAttempt,
        part: Range<u64>,
    ) -> io::Result<Reading> {
        if part.is_empty() {
            return Ok(Reading(Box::new(io::empty())));
        }
        let (name, objects) = (name(id, attempt), self.objects.clone());
        let path = self.path(&name);
        blocking(move || {
            if let Some(objects) = objects {
                match objects.get(&name, part.clone()) {
                    // What came before there was a store of objects is where it was.
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    found => return Ok(Reading(found?)),
                }
            }
            let mut file = File::open(path)?;
            file.seek(SeekFrom::Start(part.start))?;
            Ok(Reading(Box::new(file.take(part.end - part.start))))
        })
        .await
    }

    /// Removes the contents of an attempt, if they are there.
    pub(super) async fn remove(&self, id: UploadId, attempt: UploadAttempt) -> io::Result<()> {
        let (name, objects) = (name(id, attempt), self.objects.clone());
        let path = self.path(&name);
        blocking(move || {
            if let Some(objects) = objects {
                objects.remove(&name)?;
            }
            match std::fs::remove_file(path) {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            }
        })
        .await
    }
}

impl Writing {
    /// Writes more at the end.
    pub(super) async fn write(&mut self, bytes: Bytes) -> io::Result<()> {
        let mut file = self.file.take().ok_or_else(failed_before)?;
        let mut object = self.object.take();
        let done = blocking(move || {
            file.write_all(&bytes)?;
            if let Some((_, written, hash)) = &mut object {
                *written += bytes.len() as u64;
                hash.update(&bytes);
            }
            Ok((file, object))
        });
        let (file, object) = done.await?;
        (self.file, self.object) = (Some(file), object);
        Ok(())
    }

    /// Has all of it, and its name, on the disk, or in the store of objects: from now on it stays when this is dropped.
    pub(super) async fn keep(mut self) -> io::Result<()> {
        let mut file = self.file.take().ok_or_else(failed_before)?;
        if let Some((objects, bytes, hash)) = self.object.take() {
            let name = std::mem::take(&mut self.name);
            // What was in the folder meanwhile is removed with this.
            return blocking(move || {
                file.seek(SeekFrom::Start(0))?;
                objects.put(&name, &file, bytes, &hash.finalize().into())
            })
            .await;
        }
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
    /// Up to so many bytes, and what is behind them; none at the end.
    pub(super) async fn read(self, len: usize) -> io::Result<(Reading, Bytes)> {
        let Reading(mut source) = self;
        blocking(move || {
            let mut bytes = Vec::with_capacity(len);
            source.by_ref().take(len as u64).read_to_end(&mut bytes)?;
            Ok((Reading(source), bytes.into()))
        })
        .await
    }
}

fn name(id: UploadId, attempt: UploadAttempt) -> String {
    format!("{id}-{:016x}", attempt.0)
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
    use std::collections::BTreeMap;
    use std::sync::Mutex;

    const ID: UploadId = UploadId(0xab << 120 | 5);

    fn names(folder: &Path) -> Vec<PathBuf> {
        let found = std::fs::read_dir(folder.join("ab")).expect("a folder");
        found.map(|entry| entry.expect("an entry").path()).collect()
    }

    /// Objects in memory; each is put once.
    #[derive(Debug, Default)]
    struct Objects(Mutex<BTreeMap<String, Vec<u8>>>);

    impl ObjectStore for Objects {
        fn put(&self, name: &str, mut contents: &File, bytes: u64, sha256: &[u8; 32]) -> io::Result<()> {
            let mut object = Vec::new();
            contents.read_to_end(&mut object)?;
            assert_eq!((object.len() as u64, &Sha256::digest(&object)[..]), (bytes, &sha256[..]));
            self.0.lock().expect("nobody panicked").insert(name.to_owned(), object);
            Ok(())
        }

        fn get(&self, name: &str, part: Range<u64>) -> io::Result<Box<dyn Read + Send>> {
            let objects = self.0.lock().expect("nobody panicked");
            let object = objects.get(name).ok_or(ErrorKind::NotFound)?;
            Ok(Box::new(io::Cursor::new(object[part.start as usize..part.end as usize].to_vec())))
        }

        fn remove(&self, name: &str) -> io::Result<()> {
            self.0.lock().expect("nobody panicked").remove(name);
            Ok(())
        }
    }

    async fn all(contents: &Contents, attempt: UploadAttempt, part: Range<u64>) -> io::Result<Bytes> {
        let (rest, read) = contents.open(ID, attempt, part).await?.read(100).await?;
        assert_eq!(rest.read(100).await?.1, "");
        Ok(read)
    }

    async fn written(contents: &Contents, attempt: UploadAttempt) {
        let mut writing = contents.create(ID, attempt).await.expect("created");
        assert!(contents.create(ID, attempt).await.is_err(), "an attempt is made once");
        writing.write("hello ".into()).await.expect("written");
        writing.write("world".into()).await.expect("written");
        writing.keep().await.expect("kept");
    }

    #[tokio::test]
    async fn what_is_kept_can_be_read_until_it_is_removed() {
        let temporary = tempfile::tempdir().expect("a folder");
        let objects: Arc<Objects> = Arc::default();
        let folder = |objects| Contents::new(temporary.path().join("uploads"), objects);
        for (n, contents) in [(7, folder(None)), (8, folder(Some(objects.clone())))] {
            let attempt = UploadAttempt(n);
            written(&contents, attempt).await;
            assert_eq!(all(&contents, attempt, 6..11).await.expect("read"), "world");
            assert_eq!(all(&contents, attempt, 0..11).await.expect("read"), "hello world");
            for _ in 0..2 {
                contents.remove(ID, attempt).await.expect("removed");
            }
            let gone = all(&contents, attempt, 0..11).await.expect_err("it is gone");
            assert_eq!(gone.kind(), ErrorKind::NotFound);
        }
        assert!(objects.0.lock().expect("nobody panicked").is_empty());
    }

    #[tokio::test]
    async fn what_is_in_a_store_of_objects_is_not_in_the_folder() {
        let temporary = tempfile::tempdir().expect("a folder");
        let objects: Arc<Objects> = Arc::default();
        let before = Contents::new(temporary.path().to_owned(), None);
        written(&before, UploadAttempt(1)).await;
        let contents = Contents::new(temporary.path().to_owned(), Some(objects.clone()));
        written(&contents, UploadAttempt(2)).await;
        assert_eq!(objects.0.lock().expect("nobody panicked").len(), 1);
        assert_eq!(names(temporary.path()).len(), 1, "that from before");
        // It is found, and goes, all the same.
        assert_eq!(all(&contents, UploadAttempt(1), 0..5).await.expect("read"), "hello");
        contents.remove(ID, UploadAttempt(1)).await.expect("removed");
        assert!(names(temporary.path()).is_empty());
    }

    #[tokio::test]
    async fn of_what_is_given_up_nothing_is_left() {
        let temporary = tempfile::tempdir().expect("a folder");
        let objects: Arc<Objects> = Arc::default();
        let contents = Contents::new(temporary.path().to_owned(), Some(objects.clone()));
        let mut writing = contents.create(ID, UploadAttempt(1)).await.expect("created");
        writing.write("hello".into()).await.expect("written");
        assert_eq!(names(temporary.path()).len(), 1);
        drop(writing);
        assert!(names(temporary.path()).is_empty() && objects.0.lock().expect("nobody panicked").is_empty());
    }
}
