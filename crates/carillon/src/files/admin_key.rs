//! `admin.key` in the data folder: the key with which the commands of the same machine speak to the node.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

const PREFIX: &str = "crl_";

/// An API key in the clear: `crl_` and 32 random bytes in base64url.
#[derive(Clone, PartialEq, Eq)]
pub struct AdminKey(String);

/// Why there is no admin key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The file holds something else.
    #[error("{}: not a key: {PREFIX} and 43 letters, digits, - or _", path.display())]
    NotAKey {
        /// The file.
        path: PathBuf,
    },
    /// The system has no randomness to make a key of.
    #[error("no randomness to make a key of: {0}")]
    Random(getrandom::Error),
}

impl AdminKey {
    /// Puts another key in the place of that of this data folder.
    pub fn replace(data_dir: &Path) -> Result<AdminKey, KeyError> {
        let key = AdminKey::random().map_err(KeyError::Random)?;
        let path = AdminKey::path(data_dir);
        super::write_whole(&path, format!("{}\n", key.0).as_bytes(), 0o600)
            .map_err(|error| KeyError::File { path, error })?;
        Ok(key)
    }

    /// The key of this data folder, made when there is none. Only its owner can read the file.
    pub fn read_or_create(data_dir: &Path) -> Result<AdminKey, KeyError> {
        match AdminKey::read(data_dir) {
            Err(KeyError::File { error, .. }) if error.kind() == io::ErrorKind::NotFound => {
                AdminKey::replace(data_dir)
            }
            read => read,
        }
    }

    /// The key of this data folder.
    pub fn read(data_dir: &Path) -> Result<AdminKey, KeyError> {
        let path = AdminKey::path(data_dir);
        match std::fs::read_to_string(&path) {
            Ok(text) => AdminKey::parse(text.trim_end()).ok_or(KeyError::NotAKey { path }),
            Err(error) => Err(KeyError::File { path, error }),
        }
    }

    /// Notes that the node's store knows a key by this hash: should the store not know it at a later start, then it was
    /// removed, and is not to come back.
    pub fn note_known(data_dir: &Path, hash: &[u8; 32]) -> Result<(), KeyError> {
        let path = known_path(data_dir);
        super::write_whole(&path, hash, 0o600).map_err(|error| KeyError::File { path, error })
    }

    /// Whether the store knew a key by this hash, as [`AdminKey::note_known`] noted last.
    pub fn was_known(data_dir: &Path, hash: &[u8; 32]) -> Result<bool, KeyError> {
        let path = known_path(data_dir);
        match std::fs::read(&path) {
            Ok(known) => Ok(known == hash),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(KeyError::File { path, error }),
        }
    }

    /// The key as it goes over the wire.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Where the key of a data folder is.
    pub fn path(data_dir: &Path) -> PathBuf {
        data_dir.join("admin.key")
    }

    fn parse(text: &str) -> Option<AdminKey> {
        let bytes = URL_SAFE_NO_PAD.decode(text.strip_prefix(PREFIX)?).ok()?;
        (bytes.len() == 32).then(|| AdminKey(text.to_owned()))
    }

    fn random() -> Result<AdminKey, getrandom::Error> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)?;
        Ok(AdminKey(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes))))
    }
}

/// The hash of the key that the store knew last.
fn known_path(data_dir: &Path) -> PathBuf {
    data_dir.join("admin.key.known")
}

// Keys never reach a log.
impl fmt::Debug for AdminKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AdminKey")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn is_made_once_and_only_its_owner_reads_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let key = AdminKey::read_or_create(folder.path()).expect("made");
        assert_eq!((key.as_str().len(), &key.as_str()[..4]), (47, "crl_"));
        let mode =
            std::fs::metadata(AdminKey::path(folder.path())).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(AdminKey::read_or_create(folder.path()).expect("read"), key);
        assert_eq!(AdminKey::read(folder.path()).expect("read"), key);
        assert_eq!(format!("{key:?}"), "AdminKey");
    }

    #[test]
    fn what_is_not_a_key_is_refused_and_not_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = AdminKey::path(folder.path());
        let missing = AdminKey::read(folder.path()).expect_err("not there").to_string();
        assert_eq!(missing, format!("{}: No such file or directory (os error 2)", path.display()));
        for text in ["", "crl_short", "key_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"] {
            std::fs::write(&path, text).expect("written");
            let error = AdminKey::read_or_create(folder.path()).expect_err("not a key").to_string();
            assert_eq!(error, format!("{}: not a key: crl_ and 43 letters, digits, - or _", path.display()));
            assert_eq!(std::fs::read_to_string(&path).expect("readable"), text);
        }
    }
}
