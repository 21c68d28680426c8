//! What the settings cannot say: whether the ports are free, the data folder can be written, the certificate fits, and the
//! system allows as many descriptors as are wanted, and the server of the store is set as it has to be; and what they say that is seldom meant: ports without TLS that others reach. `carillon config check` prints the findings, `carillon serve` logs them.

mod certificate;
mod database;
pub mod descriptors;
mod engines;
mod exposure;
mod folder;
mod ports;
mod production;

use crate::assemble;
use crate::config::{Config, Settings};
use std::fmt;

pub use certificate::uncovered;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// A node cannot start, or clients cannot connect.
    Error,
    /// Something is not as good as it could be.
    Warning,
}

/// One thing that was found, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its severity.
    pub severity: Severity,
    /// The setting it is about; empty when it is about none.
    pub setting: &'static str,
    /// The problem.
    pub what: String,
    /// The remedy.
    pub remedy: String,
    /// Whether a node cannot start at all.
    pub stops: bool,
}

/// For whom the world is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A node is about to start: what another node has is not free.
    Start,
    /// A process is about to take over from the one that runs, in a live upgrade: as [`Purpose::Check`], but for what the other has found out.
    TakeOver,
    /// The settings of a node that may be running: what this very node has is no finding.
    Check,
    /// As [`Purpose::Check`], for a node that is to serve the public.
    Production,
}

/// Looks at everything.
pub fn inspect(config: &Config, purpose: Purpose) -> Vec<Finding> {
    let settings = &config.settings;
    let mut findings: Vec<Finding> =
        config.warnings.iter().map(|warning| Finding::warning("", warning.as_str(), "")).collect();
    findings.extend(folder::inspect(settings));
    findings.extend(ports::inspect(settings, purpose));
    findings.extend(exposure::inspect(settings));
    findings.extend(certificate::inspect(settings));
    findings.extend(descriptors::inspect(config));
    findings.extend(database::inspect(settings, purpose));
    findings.extend(engines::inspect(settings, purpose));
    findings.extend(push_apps(settings));
    if purpose == Purpose::Production {
        findings = findings.into_iter().map(production::sharpened).collect();
        findings.extend(production::inspect(settings));
    }
    findings
}

/// Apps that are to be woken, whose files do not hold what they should.
fn push_apps(settings: &Settings) -> Option<Finding> {
    let error = assemble::push_apps(settings).err()?;
    Some(Finding::error("push.apps", error, "put the file there that the push service gave to its developer"))
}

impl Finding {
    fn error(setting: &'static str, what: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding { severity: Severity::Error, setting, what: what.into(), remedy: remedy.into(), stops: true }
    }

    /// A node can start, and clients refuse it.
    fn refused(setting: &'static str, what: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding { stops: false, ..Finding::error(setting, what, remedy) }
    }

    fn warning(setting: &'static str, what: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding {
            severity: Severity::Warning,
            setting,
            what: what.into(),
            remedy: remedy.into(),
            stops: false,
        }
    }

    /// The finding as a sentence, without its severity.
    pub fn sentence(&self) -> String {
        let Finding { setting, what, remedy, .. } = self;
        let subject = if setting.is_empty() { String::new() } else { format!("{setting}: ") };
        let remedy = if remedy.is_empty() { String::new() } else { format!("; {remedy}") };
        format!("{subject}{what}{remedy}")
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(f, "{severity}: {}", self.sentence())
    }
}

#[cfg(test)]
mod tests;
