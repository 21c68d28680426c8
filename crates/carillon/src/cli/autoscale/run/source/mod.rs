//! What is asked for: where it is measured.

mod carillon;
#[cfg(feature = "aws")]
mod cloudwatch;
mod page;
mod prometheus;

use super::driver::Edge;
#[cfg(not(feature = "aws"))]
use super::unbuilt::Unbuilt;
use carillon_scale::Observation;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Something that says how much is asked for.
pub(super) trait Source {
    /// What was asked for since it was read last, or in the newest interval that is known.
    ///
    /// # Errors
    /// It cannot be known: why not. Nothing is ever guessed.
    fn read(&mut self, now: Duration, edges: &[Edge]) -> Result<Reading, String>;
}

/// What a source found.
#[derive(Debug)]
pub(super) struct Reading {
    /// The newest.
    pub(super) observation: Observation,
    /// Those before it that were not told yet, the oldest first.
    pub(super) earlier: Vec<Observation>,
    /// What the newest is made of, by name.
    pub(super) measures: BTreeMap<String, f64>,
}

/// `[source]`.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum SourceSettings {
    /// `/metrics` of nodes.
    Carillon {
        /// URLs of their HTTP APIs; without them those that the driver lists.
        nodes: Option<Vec<String>>,
        /// A file with an API key, if `/metrics` asks for one.
        key_file: Option<PathBuf>,
        /// What one unit carries.
        per_unit: carillon::PerUnit,
    },
    /// The HTTP API of Prometheus.
    Prometheus {
        url: String,
        /// What is asked for; several series are added up.
        demand: String,
        /// What is done; without it what is asked for.
        consumed: Option<String>,
        /// What one unit carries.
        #[serde(default = "one")]
        per_unit: f64,
        ca_file: Option<PathBuf>,
        key_file: Option<PathBuf>,
    },
    /// A JSON page.
    Http {
        url: String,
        /// Where in it (RFC 6901) stands what is asked for.
        demand: String,
        /// Where in it stands what is done.
        consumed: Option<String>,
        /// Where in it stands when it was measured, RFC 3339; without it that is now.
        at: Option<String>,
        #[serde(default = "one")]
        per_unit: f64,
        ca_file: Option<PathBuf>,
        key_file: Option<PathBuf>,
    },
    /// What a table of DynamoDB consumed, and what was refused.
    #[cfg(feature = "aws")]
    Cloudwatch(cloudwatch::CloudwatchSettings),
    #[cfg(not(feature = "aws"))]
    Cloudwatch(Unbuilt),
}

fn one() -> f64 {
    1.0
}

/// The source that the settings name.
///
/// # Errors
/// A setting cannot be.
pub(super) fn open(settings: SourceSettings) -> Result<Box<dyn Source>, String> {
    Ok(match settings {
        SourceSettings::Carillon { nodes, key_file, per_unit } => {
            Box::new(carillon::Nodes::new(nodes, key_file.as_deref(), per_unit)?)
        }
        SourceSettings::Prometheus { url, demand, consumed, per_unit, ca_file, key_file } => {
            let web = crate::web::Web::new(ca_file.as_deref())?;
            let key = key_file.as_deref().map(crate::web::secret).transpose()?;
            Box::new(prometheus::Prometheus::new(
                web,
                &url,
                key,
                [Some(demand), consumed],
                carries(per_unit)?,
            ))
        }
        SourceSettings::Http { url, demand, consumed, at, per_unit, ca_file, key_file } => {
            let web = crate::web::Web::new(ca_file.as_deref())?;
            let key = key_file.as_deref().map(crate::web::secret).transpose()?;
            let pointers = page::Pointers { demand, consumed, at };
            Box::new(page::Page::new(web, url, key, pointers, carries(per_unit)?)?)
        }
        #[cfg(feature = "aws")]
        SourceSettings::Cloudwatch(settings) => Box::new(cloudwatch::Cloudwatch::new(settings)?),
        #[cfg(not(feature = "aws"))]
        SourceSettings::Cloudwatch(unbuilt) => return Err(unbuilt.why("source.kind: cloudwatch", "aws")),
    })
}

/// What a unit carries, if it carries anything.
fn carries(per_unit: f64) -> Result<f64, String> {
    if per_unit.is_finite() && per_unit > 0.0 {
        return Ok(per_unit);
    }
    Err(format!("source.per_unit: {per_unit} is not more than 0"))
}

/// When the source was read before, and what that makes of two readings.
#[derive(Debug, Default)]
struct Since(Option<Duration>);

impl Since {
    /// When it was read last; now is remembered.
    fn read(&mut self, now: Duration) -> Result<Duration, String> {
        let last = self.0.replace(now).ok_or("it is read for the first time: a rate needs two readings")?;
        if now > last { Ok(last) } else { Err("the clock went back".to_owned()) }
    }
}
