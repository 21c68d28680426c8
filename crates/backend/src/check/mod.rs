//! Looking for what is wrong with a store: damage, and rows that do not agree with each other.
//!
//! `rules` are questions that both stores are asked in the same SQL, from one snapshot. Nothing is changed, and a node may run meanwhile.

mod rules;

pub(crate) use rules::{On, RULES};

/// What was looked at, and found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// The version of the schema.
    pub schema_version: u32,
    /// The latest version that this program knows.
    pub schema_known: u32,
    /// How many rules were asked.
    pub rules: usize,
    /// What is wrong.
    pub findings: Vec<Finding>,
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// What.
    pub what: String,
    /// How many rows it is about; 0 where it is not about rows.
    pub rows: u64,
    /// What the first of them is about.
    pub example: String,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Something that was stored is lost or is not found, or a node cannot run on it.
    Error,
    /// A node runs on it.
    Warning,
}

impl Finding {
    pub(crate) fn error(what: impl Into<String>) -> Finding {
        Finding { severity: Severity::Error, what: what.into(), rows: 0, example: String::new() }
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn warning(what: impl Into<String>) -> Finding {
        Finding { severity: Severity::Warning, ..Finding::error(what) }
    }
}

impl Checked {
    /// Whether nothing is wrong that a node cannot live with.
    pub fn is_well(&self) -> bool {
        self.findings.iter().all(|finding| finding.severity != Severity::Error)
    }
}

impl rules::Rule {
    /// The question: how many rows break the rule, and what the first of them is about.
    pub(crate) fn question(&self) -> String {
        format!("SELECT count(*), coalesce(min(about), '') FROM ({}) AS found", self.broken)
    }

    /// The answer to it.
    pub(crate) fn finding(&self, rows: u64, example: String) -> Option<Finding> {
        let found = Finding { rows, example, ..Finding::error(self.what) };
        (rows > 0).then_some(found)
    }
}
