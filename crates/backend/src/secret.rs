//! Where a password or a key is.

use std::env::{self, VarError};
use std::path::PathBuf;
use std::{fmt, fs, io};

/// A password or a key, or where it is to be found when an engine is opened.
#[derive(Clone, PartialEq, Eq)]
pub enum Secret {
    /// The secret itself.
    Given(Box<str>),
    /// A file that holds it. White space at its end does not count.
    File(PathBuf),
    /// The name of a variable of the environment that holds it.
    Environment(Box<str>),
}

/// A secret cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// The file cannot be read.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The variable is not set, or is no text.
    #[error("the environment variable {name}: {error}")]
    Environment {
        /// The variable.
        name: Box<str>,
        /// Why.
        error: VarError,
    },
}

impl Secret {
    /// The secret.
    ///
    /// # Errors
    /// If it is not there.
    pub fn read(&self) -> Result<String, SecretError> {
        match self {
            Secret::Given(secret) => Ok(secret.to_string()),
            Secret::File(path) => fs::read_to_string(path)
                .map(|text| text.trim_end().to_owned())
                .map_err(|error| SecretError::File { path: path.clone(), error }),
            Secret::Environment(name) => {
                env::var(&**name).map_err(|error| SecretError::Environment { name: name.clone(), error })
            }
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Secret::Given(_) => f.write_str("Given(…)"),
            Secret::File(path) => f.debug_tuple("File").field(path).finish(),
            Secret::Environment(name) => f.debug_tuple("Environment").field(name).finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_found_where_they_are_and_never_printed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("password");
        fs::write(&path, "s3cret word\n").expect("it is written");
        assert_eq!(Secret::File(path).read().expect("it is there"), "s3cret word");
        assert_eq!(Secret::Environment("PATH".into()).read().ok(), env::var("PATH").ok());
        assert!(Secret::Environment("NO_SUCH_VARIABLE".into()).read().is_err());
        assert!(Secret::File(folder.path().join("none")).read().is_err());
        let given = Secret::Given("s3cret".into());
        assert_eq!(
            (given.read().expect("it is given"), format!("{given:?}")),
            ("s3cret".into(), "Given(…)".into())
        );
    }
}
