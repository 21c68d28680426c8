//! The newest messages of all archives, in memory: what a transaction adds to, and what readers find beside the tables (`archive`).

mod entry;
mod fold;
mod list;
mod newest;
mod tail;

pub(super) use entry::TailEntry;
pub(super) use fold::Fold;
pub(super) use list::{LIST, encode};
pub(super) use newest::Newest;
pub(super) use tail::Tail;
