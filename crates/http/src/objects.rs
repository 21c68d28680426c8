//! A store of objects, such as S3, as the port that it is behind.

use std::fmt::Debug;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;

/// A store of objects, each under a name that is given to one object ever. Its calls wait for it: they are made on threads for that.
pub trait ObjectStore: Debug + Send + Sync {
    /// Puts an object of so many bytes, which have this SHA-256. When it returns, all of it is there for good; otherwise nothing is, or nothing that anybody reads.
    ///
    /// # Errors
    /// It is not known to be there.
    fn put(&self, name: &str, contents: &File, bytes: u64, sha256: &[u8; 32]) -> io::Result<()>;

    /// Reads a part of an object, which is not empty.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] where there is no such object; others where that is not known.
    fn get(&self, name: &str, part: Range<u64>) -> io::Result<Box<dyn Read + Send>>;

    /// Removes an object, if it is there.
    ///
    /// # Errors
    /// It may still be there.
    fn remove(&self, name: &str) -> io::Result<()>;
}
