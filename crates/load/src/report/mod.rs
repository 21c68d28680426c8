//! What a load test found: one [`Report`], which is JSON for programs, [text](Report::summary) for terminals and
//! [a page](Report::html) for people.
//!
//! - `model`: the report as data. [`record`](Record): adds up the progress of all workers while a test runs.
//! - `figures`: CPU time and memory of the server, the kernel and the workers, and what they were spent on.
//! - `expectations`: what each action expects, and what of it was missed; `remedy`: what to do about an error.
//! - `verdict`: whether the test passed. [`Assertion`]: a requirement on a report.
//! - `text`, `html`, `svg`, `chart`, `histogram`: presentation.
//! - `words`: what the terms of a report mean.
//! - `compare`: several reports side by side.

mod assertion;
mod chart;
mod compare;
mod expectations;
mod figures;
mod histogram;
mod html;
mod model;
mod percentiles;
mod record;
mod remedy;
mod svg;
mod text;
mod timeline;
mod totals;
mod upgrade;
mod verdict;
mod words;

pub use assertion::{Assertion, AssertionError};
pub use chart::{Chart, NARROW, Series, WIDE};
pub use figures::{Cost, ResourceSample};
pub use histogram::Bucket;
pub use html::{Table, figure, page};
pub use model::{
    Checked, Comparison, PhaseReport, PhaseState, Report, Status, TargetReport, WorkerReport, WorkerState,
};
pub use percentiles::Percentiles;
pub use record::{Record, Snapshot};
pub use remedy::{MORE_REGISTRATIONS, remedy};
pub use timeline::Row;
pub use upgrade::{CommandRun, SliceReport, UpgradeReport};

#[cfg(test)]
pub(crate) mod samples;
#[cfg(test)]
mod tests;
