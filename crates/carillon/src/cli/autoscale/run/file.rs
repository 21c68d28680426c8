//! The settings file of the autoscaler.

use super::driver::DriverSettings;
use super::lease::LeaseSettings;
use super::policy::PolicySettings;
use super::source::SourceSettings;
use crate::config;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use std::path::{Path, PathBuf};

/// What the file holds.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileSettings {
    /// How is decided.
    pub(super) policy: PolicySettings,
    /// What is measured.
    pub(super) source: SourceSettings,
    /// What is commanded.
    pub(super) driver: DriverSettings,
    /// The right to act, kept by a node; without it the decision log is what one scaler at a time holds.
    pub(super) lease: Option<LeaseSettings>,
    /// The decision log.
    #[serde(default = "log")]
    pub(super) log: PathBuf,
    /// Bytes of the decision log, with the file of earlier decisions beside it.
    #[serde(default = "log_bytes_max", deserialize_with = "bytes")]
    pub(super) log_bytes_max: u64,
}

fn log() -> PathBuf {
    PathBuf::from("autoscale.ndjson")
}

/// A hundred thousand decisions, or about two months of one per minute.
fn log_bytes_max() -> u64 {
    64 << 20
}

/// The fewest: some decisions have room in it.
const LOG_BYTES_MIN: u64 = 64 << 10;

fn bytes<'de, D: Deserializer<'de>>(input: D) -> Result<u64, D::Error> {
    let text = String::deserialize(input)?;
    let bytes = config::bytes(&text).filter(|bytes| *bytes >= LOG_BYTES_MIN);
    bytes.ok_or_else(|| D::Error::custom(format!("`{text}` is no size of at least 64KiB, such as \"64MiB\"")))
}

/// Reads the file.
///
/// # Errors
/// It cannot be read, or says something that is no setting.
pub(super) fn read(path: &Path) -> Result<FileSettings, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    parse(&text).map_err(|why| format!("{}: {why}", path.display()))
}

/// Reads how is decided, and nothing else.
///
/// # Errors
/// As of `read`.
pub(super) fn policy(path: &Path) -> Result<carillon_scale::Settings, String> {
    #[derive(Deserialize)]
    struct Part {
        policy: PolicySettings,
    }
    let wrong = |why: String| format!("{}: {why}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let Part { policy } = parse(&text).map_err(wrong)?;
    policy.settings().map_err(wrong)
}

fn parse<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
    toml::from_str(text).map_err(|error| {
        let line =
            error.span().map(|span| text.get(..span.start).unwrap_or_default().matches('\n').count() + 1);
        line.map_or_else(|| error.message().to_owned(), |line| format!("line {line}: {}", error.message()))
    })
}
