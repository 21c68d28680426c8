//! The timers of a shard.

use super::{Deadline, Wake, Wheel};
use crate::model::{ConnId, Mono, SessionId};

/// The timers of a shard.
pub(crate) struct Timers {
    /// Those of its sessions.
    pub(crate) sessions: Wheel<(SessionId, Wake)>,
    /// Those of connections whose session is not bound, or is a light one.
    pub(crate) connections: Wheel<(ConnId, Deadline)>,
}

impl Timers {
    pub(super) fn new(now: Mono) -> Timers {
        Timers { sessions: Wheel::new(now), connections: Wheel::new(now) }
    }
}
