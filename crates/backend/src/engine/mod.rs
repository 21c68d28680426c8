//! What a store with threads of its own is made of, whatever it keeps its data in.
//!
//! ```text
//!            ┌─ writes ─► Queue ─► Writer ──► a group a commit ───► answers after the commit
//! Store::ask ┤
//!            └─ reads ──► Queue ─► Readers ─► a batch a snapshot ─► answers
//! ```
//!
//! - [`asked`]: a question on its way, what it carries and whose it is; where its answer goes, once.
//! - [`queue`]: the questions that wait, bounded in number and bytes; accounts that ask much wait for themselves.
//! - [`writing`]: the thread that writes. Writes share commits; one that fails harms no other.
//! - [`reading`]: the threads that read. Questions that wait together are answered from one snapshot.
//! - [`load`]: when a thread gives back the memory that a storm needed.
//! - [`complaints`] and [`counters`]: what the log and the operator's figures say; [`push_hint`]: who is told of pushes.
//!
//! A store gives [`writing::Commits`] and [`reading::Snapshots`].

pub(crate) mod asked;
pub(crate) mod complaints;
pub(crate) mod counters;
mod load;
pub(crate) mod push_hint;
pub(crate) mod queue;
pub(crate) mod reading;
pub(crate) mod writing;
