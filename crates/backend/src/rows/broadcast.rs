//! Broadcasts as they are kept: in the form of values that leave a process.

use carillon_core::form::{Clock, decode, encode};
use carillon_core::model::{Broadcast, BroadcastState};

/// What is kept of a broadcast.
pub(crate) fn form(broadcast: &Broadcast) -> Vec<u8> {
    encode(broadcast, 0)
}

/// The broadcast that was kept, if that is one.
pub(crate) fn read(form: &[u8]) -> Option<Broadcast> {
    decode(form, Clock::default()).ok()
}

/// A broadcast whose time is over, which began to be so at a revision.
pub(crate) fn finished(was: Broadcast, revision: u64) -> Broadcast {
    Broadcast { state: BroadcastState::Finished, ended: Some(was.expires), revision, ..was }
}

/// A number as it is kept where all 64 bits count.
pub(crate) fn counter(number: u64) -> i64 {
    number.cast_signed()
}

/// Bytes of a broadcast in the bounds of its domain, as a column.
pub(crate) fn bytes(broadcast: &Broadcast) -> i64 {
    i64::try_from(broadcast.bytes()).unwrap_or(i64::MAX)
}
