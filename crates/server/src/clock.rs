//! The one clock of a node: sessions carry their deadlines from shard to shard, so all shards must mean the same by them.

use carillon_core::model::{Mono, Now, UnixMs};
use std::time::{Instant, SystemTime};

/// Tells the time since the node was started, and the time of day.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Instant,
}

impl Clock {
    /// A clock that starts now.
    pub(crate) fn start() -> Clock {
        Clock { start: Instant::now() }
    }

    /// The present moment.
    pub(crate) fn now(self) -> Now {
        Now { mono: self.mono(), unix: unix() }
    }

    /// Time since the start.
    pub(crate) fn mono(self) -> Mono {
        Mono(self.start.elapsed().as_millis() as u64)
    }
}

/// The time of day; a clock set before 1970 is taken for 1970.
pub(crate) fn unix() -> UnixMs {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    UnixMs(since.as_millis() as u64)
}
