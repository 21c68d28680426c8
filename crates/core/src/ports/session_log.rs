//! What the sessions of a node are like, kept by an engine outside of it, so that another node goes on with them if this one dies (ADR 54).

use super::{Reply, Unavailable};
use crate::model::{Epoch, SessionId, ShardId, UnixMs};
use std::fmt::Debug;
use std::sync::Arc;

/// A session as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// The session.
    pub session: SessionId,
    /// Its bytes: a [`LogHead`] and the session's form. None if there is no such session any more, or none that can be resumed.
    pub bytes: Option<Vec<u8>>,
}

/// What stands in front of a session's form in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogHead {
    /// When it was written, on the clock of the node that wrote it: instants in the form are those of this clock.
    pub mono_ms: u64,
    /// When that was, by the clock on the wall.
    pub unix: UnixMs,
}

impl LogHead {
    /// Bytes that it takes.
    pub const BYTES: usize = 16;

    /// Appends it.
    pub fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.mono_ms.to_le_bytes());
        out.extend_from_slice(&self.unix.0.to_le_bytes());
    }

    /// The head of an entry, and the form behind it.
    pub fn split(bytes: &[u8]) -> Option<(LogHead, &[u8])> {
        let (mono_ms, rest) = bytes.split_first_chunk::<8>()?;
        let (unix, form) = rest.split_first_chunk::<8>()?;
        let (mono_ms, unix) = (u64::from_le_bytes(*mono_ms), UnixMs(u64::from_le_bytes(*unix)));
        Some((LogHead { mono_ms, unix }, form))
    }
}

/// A session of a node that is dead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// The shard that it was on.
    pub shard: ShardId,
    /// Its name there.
    pub session: SessionId,
    /// As in [`LogEntry::bytes`].
    pub bytes: Vec<u8>,
}

/// What a log tells its node. It must not block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogHeard {
    /// All that this shard wrote up to this number is in the log.
    Written(ShardId, u64),
    /// The engine cannot be reached: what is written is lost.
    Away,
    /// It can be reached, the first time or again, and has nothing of this node.
    Back,
}

/// Who hears it.
pub type LogHears = Arc<dyn Fn(LogHeard) + Send + Sync>;

/// Keeps, for each node, its sessions as they were written last.
///
/// Guarantees, for every implementation, each with the case of the conformance suite (`carillon_backend::conformance::session_log`) that fails without
/// it:
/// - **The last one counts.** Of a session there is what was written last, and nothing once it was said that it is gone
///   (`session_log::has_what_was_written_last`).
/// - **Written is written.** What was written before [`LogHeard::Written`] was told is given to who takes the log
///   (`session_log::what_is_said_to_be_written_is_there`).
/// - **Taken once.** What was taken is gone: of any number of nodes that take a log at once, one gets it, and the others nothing
///   (`session_log::is_taken_once`).
/// - **Begins empty.** After [`LogHeard::Back`] there is nothing of the node but what is written from then on (`session_log::begins_empty`).
/// - **Left is kept.** After [`SessionLog::leave`] there is what was written before (`session_log::what_is_left_is_there`).
///
/// It **may forget**: all of it, at any time. Where that is noticed it is told.
pub trait SessionLog: Debug + Send + Sync {
    /// Writes sessions of a shard. Numbers of a shard go up by one. `anew`: these are all that the shard has; after [`LogHeard::Back`] nothing else
    /// of it is taken before that.
    fn write(&self, shard: ShardId, number: u64, anew: bool, entries: Vec<LogEntry>);

    /// Takes what another node left. It may be asked again where the engine did not answer.
    fn take(&self, epoch: Epoch, reply: Reply<Result<Vec<Left>, Unavailable>>);

    /// Stops, and what this node has written stays: its sessions go on in another process, which writes them anew.
    fn leave(&self);

    /// Stops, and forgets what this node has written: its sessions have ended.
    fn close(&self);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_as_it_was_written() {
        let (head, mut bytes) = (LogHead { mono_ms: 7, unix: UnixMs(1 << 40) }, Vec::new());
        head.write(&mut bytes);
        assert_eq!(bytes.len(), LogHead::BYTES);
        bytes.push(9);
        assert_eq!(LogHead::split(&bytes), Some((head, &[9][..])));
        assert_eq!(LogHead::split(&bytes[..15]), None);
    }
}
