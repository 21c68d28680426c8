//! What can be wrong with a configuration, said so that it can be put right.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

/// Where a setting was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In this file, on this line, counted from 1.
    File(PathBuf, usize),
    /// In this variable of the environment.
    Environment(String),
    /// On the command line, by `--set`.
    CommandLine,
    /// On the command line, by an option of its own.
    Option(&'static str),
}

impl Place {
    /// The place of the byte at `offset` of the file's text.
    pub(super) fn in_file(file: &Path, text: &str, offset: usize) -> Place {
        let before = &text.as_bytes()[..offset.min(text.len())];
        Place::File(file.to_owned(), 1 + before.iter().filter(|&&b| b == b'\n').count())
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File(file, line) => write!(f, "{}:{line}", file.display()),
            Place::Environment(name) => f.write_str(name),
            Place::CommandLine => f.write_str("--set"),
            Place::Option(name) => f.write_str(name),
        }
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The file cannot be read.
    #[error("{}: {reason}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The system's error.
        reason: String,
    },
    /// The file is not TOML.
    #[error("{place}: not TOML: {reason}")]
    Syntax {
        /// Where the text is.
        place: Place,
        /// The parser's error.
        reason: String,
    },
    /// A `--set` without `=`.
    #[error("--set {text}: write KEY=VALUE")]
    NotAnAssignment {
        /// The text as it was written.
        text: String,
    },
    /// There is no such setting.
    #[error("{place}: there is no setting {key}{}", did_you_mean(*.nearest))]
    Unknown {
        /// Where the key was written.
        place: Place,
        /// The key as it was written.
        key: String,
        /// A setting that may have been meant.
        nearest: Option<&'static str>,
    },
    /// The value is of another type.
    #[error("{place}: {key} = {written} has the wrong type: it takes {takes}")]
    Type {
        /// Where the value was written.
        place: Place,
        /// The setting.
        key: Cow<'static, str>,
        /// The value as it was written.
        written: String,
        /// The values that the setting accepts.
        takes: String,
    },
    /// The value is outside the setting's bounds.
    #[error("{place}: {key} = {written} is out of bounds: it takes {takes}")]
    Bound {
        /// Where the value was written.
        place: Place,
        /// The setting.
        key: Cow<'static, str>,
        /// The value as it was written.
        written: String,
        /// The values that the setting accepts.
        takes: String,
    },
    /// Values that are right by themselves do not go together.
    #[error("{place}: {key}: {rule}")]
    Rule {
        /// Where one of the settings that break it was set.
        place: Place,
        /// The setting to change.
        key: Cow<'static, str>,
        /// The rule that is broken.
        rule: String,
    },
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map(|key| format!("; did you mean {key}?")).unwrap_or_default()
}

/// All that is wrong with a configuration, at least one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.0.iter().map(Problem::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for Problems {}
