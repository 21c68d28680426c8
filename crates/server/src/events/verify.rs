//! Checks whether a log is complete: each shard numbers its lines without gaps.

use super::line::{Head, head};
use carillon_core::event::Kind;
use std::fmt;

/// A defect of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// A line that is not of an event log.
    NotALine,
    /// Lines are missing before this one.
    Gap {
        /// The line after the gap.
        head: Head,
        /// Number of missing lines.
        missing: u64,
    },
    /// A line that was there already: what a crash left was written twice.
    Duplicate {
        /// The line.
        head: Head,
    },
    /// A shard started again without a stop: the node crashed, and what was in memory is lost.
    NoStop {
        /// The line with which it started again.
        head: Head,
    },
}

/// Checks the lines of a log in their order.
#[derive(Clone, Debug, Default)]
pub struct Verifier {
    lines: u64,
    shards: Vec<Head>,
}

impl Verifier {
    /// Checks the next line, without its newline. The first line of a shard may have any number, as older files may be
    /// gone.
    pub fn line(&mut self, line: &[u8]) -> Option<Finding> {
        self.lines += 1;
        let Some(head) = head(line) else { return Some(Finding::NotALine) };
        let Some(last) = self.shards.iter_mut().find(|last| last.shard == head.shard) else {
            self.shards.push(head);
            return None;
        };
        let before = std::mem::replace(last, head);
        match (head.kind, head.seq) {
            (Kind::Start, 0) if before.kind == Kind::Stop => None,
            (Kind::Start, 0) => Some(Finding::NoStop { head }),
            (_, seq) if seq == before.seq + 1 => None,
            (_, seq) if seq > before.seq => Some(Finding::Gap { head, missing: seq - before.seq - 1 }),
            _ => {
                *last = before;
                Some(Finding::Duplicate { head })
            }
        }
    }

    /// Lines seen.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Shards seen.
    pub fn shards(&self) -> usize {
        self.shards.len()
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, head) = match self {
            Finding::NotALine => return f.write_str("not a line of an event log"),
            Finding::Gap { head, missing } => (format!("{missing} missing before"), head),
            Finding::Duplicate { head } => ("a second".to_owned(), head),
            Finding::NoStop { head } => ("no stop, so a crash, before".to_owned(), head),
        };
        write!(
            f,
            "{what} line {} of shard {} ({}, {})",
            head.seq,
            head.shard,
            head.kind.as_str(),
            head.at.to_xmpp()
        )
    }
}
