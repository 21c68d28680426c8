//! Limits and errors of blocking sockets.

use std::io;
use std::time::Duration;

/// The time limit of a write: a server that does not read causes an error, not a hang.
pub(super) const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// The size of the read buffer.
pub(super) const READ_BYTES: usize = 16 * 1024;

pub(super) fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

pub(super) fn is_broken(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}
