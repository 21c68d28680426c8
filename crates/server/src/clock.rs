//! The one clock of a node. Sessions carry deadlines from shard to shard, so all shards must read the same clock.

use carillon_core::model::{Mono, Now, UnixMs};
use std::time::{Instant, SystemTime};

/// Tells the time since the node was started, and the time of day.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Instant,
}

impl Clock {
    /// Starts the clock at zero.
    pub(crate) fn start() -> Clock {
        Clock { start: Instant::now() }
    }

    /// The present moment.
    pub(crate) fn now(self) -> Now {
        Now { mono: self.mono(), unix: unix() }
    }

    /// The time at which a moment is past.
    pub(crate) fn mono_at(self, at: Instant) -> Mono {
        Mono(at.saturating_duration_since(self.start).as_micros().div_ceil(1000) as u64)
    }

    /// Time since the start.
    pub(crate) fn mono(self) -> Mono {
        Mono(self.start.elapsed().as_millis() as u64)
    }
}

/// The time of day. A clock that is set before 1970 counts as 1970.
pub(crate) fn unix() -> UnixMs {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    UnixMs(since.as_millis() as u64)
}
