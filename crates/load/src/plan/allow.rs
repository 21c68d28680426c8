//! What a test may miss and pass all the same.

use serde::{Deserialize, Serialize};

/// How many of each fault a test may have, over all phases, and still pass: none, unless the scenario says so. In TOML
/// `[allow]`, for one run `--set allow.missing=5` or `--assert 'missing<=5'`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Allow {
    /// Players that did not log in, or lost their session.
    pub failed: u64,
    /// Deliveries, presences, contacts and archived messages that never came.
    pub missing: u64,
    /// What arrived again.
    pub duplicates: u64,
    /// What arrived after a later one.
    pub out_of_order: u64,
    /// Requests that were refused or not answered, publications among them.
    pub errors: u64,
    /// Sessions lost without a cut of the scenario, whose players came back.
    pub lost: u64,
    /// Returns in a phase `resume` after which the stream was not resumed.
    pub not_resumed: u64,
    /// Notifications whose acknowledgement was not reported.
    pub missing_receipts: u64,
}

/// A kind of fault that can be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// See [`Allow::failed`].
    Failed,
    /// See [`Allow::missing`].
    Missing,
    /// See [`Allow::duplicates`].
    Duplicates,
    /// See [`Allow::out_of_order`].
    OutOfOrder,
    /// See [`Allow::errors`].
    Errors,
    /// See [`Allow::lost`].
    Lost,
    /// See [`Allow::not_resumed`].
    NotResumed,
    /// See [`Allow::missing_receipts`].
    MissingReceipts,
}

impl FaultKind {
    /// All kinds.
    pub const ALL: [Self; 8] = [
        Self::Failed,
        Self::Missing,
        Self::Duplicates,
        Self::OutOfOrder,
        Self::Errors,
        Self::Lost,
        Self::NotResumed,
        Self::MissingReceipts,
    ];

    /// The key in `[allow]`, which is also the name in the counts of a report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Missing => "missing",
            Self::Duplicates => "duplicates",
            Self::OutOfOrder => "out_of_order",
            Self::Errors => "errors",
            Self::Lost => "lost",
            Self::NotResumed => "not_resumed",
            Self::MissingReceipts => "missing_receipts",
        }
    }

    /// The kind of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl Allow {
    /// How many of a kind are allowed.
    pub fn of(&self, kind: FaultKind) -> u64 {
        match kind {
            FaultKind::Failed => self.failed,
            FaultKind::Missing => self.missing,
            FaultKind::Duplicates => self.duplicates,
            FaultKind::OutOfOrder => self.out_of_order,
            FaultKind::Errors => self.errors,
            FaultKind::Lost => self.lost,
            FaultKind::NotResumed => self.not_resumed,
            FaultKind::MissingReceipts => self.missing_receipts,
        }
    }

    /// Allows so many of a kind.
    pub fn set(&mut self, kind: FaultKind, count: u64) {
        *match kind {
            FaultKind::Failed => &mut self.failed,
            FaultKind::Missing => &mut self.missing,
            FaultKind::Duplicates => &mut self.duplicates,
            FaultKind::OutOfOrder => &mut self.out_of_order,
            FaultKind::Errors => &mut self.errors,
            FaultKind::Lost => &mut self.lost,
            FaultKind::NotResumed => &mut self.not_resumed,
            FaultKind::MissingReceipts => &mut self.missing_receipts,
        } = count;
    }
}
