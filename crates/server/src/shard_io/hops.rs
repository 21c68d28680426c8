//! Steps of followed notifications, as they happen, and what becomes of their bytes on the way to the peer.

use super::ShardIo;
use crate::channels::hops::{HopSeen, HopSink};
use crate::conn::Stage;
use carillon_core::model::{ConnId, Hop, HopStep, Mono, Place};
use std::time::SystemTime;

/// What a shard knows of followed notifications: who is told, and whose bytes are on their way.
#[derive(Default)]
pub(crate) struct Hops {
    sink: Option<HopSink>,
    watched: Vec<Watched>,
}

/// The bytes of a followed notification on a connection.
struct Watched {
    /// The step that is told next: `Written`, then `Arrived`.
    hop: Hop,
    conn: ConnId,
    since: Mono,
    /// When it is looked at again.
    due: Mono,
}

/// Connections that are looked at in this way at once; of more, it is not told what becomes of the bytes.
const WATCHED_MAX: usize = 64;
/// How long a connection is looked at.
const WATCHED_MS: u64 = 60_000;

impl Hops {
    /// Tells this one of every step from now on.
    pub(crate) fn set(&mut self, sink: HopSink) {
        self.sink = Some(sink);
    }

    /// When connections are to be looked at.
    pub(crate) fn due(&self) -> Option<Mono> {
        self.watched.iter().map(|watched| watched.due).min()
    }

    fn tell(&self, hop: Hop, place: Place) {
        if let Some(sink) = &self.sink {
            sink(HopSeen { hop, at: SystemTime::now(), place });
        }
    }
}

impl ShardIo {
    /// A followed notification reached a step.
    pub(crate) fn hop(&mut self, hop: Hop) {
        let HopStep::Written { session, conn } = &hop.step else { return self.hops.tell(hop, self.place) };
        let conn = *conn;
        if let Some(edge) = self.cell.carried.edge_of(conn) {
            let step = HopStep::Carried { session: session.clone(), node: edge.place.node };
            return self.hops.tell(Hop { step, ..hop }, self.place);
        }
        if self.hops.watched.len() < WATCHED_MAX {
            let mut watched = Watched { hop, conn, since: self.mono, due: self.mono };
            if self.look_at_hop(&mut watched) {
                self.hops.watched.push(watched);
            }
        }
    }

    /// Looks what has become of the bytes of followed notifications: once in each turn.
    pub(crate) fn look_at_hops(&mut self) {
        if self.hops.watched.is_empty() {
            return;
        }
        let mut watched = std::mem::take(&mut self.hops.watched);
        watched.retain_mut(|watched| self.look_at_hop(watched));
        self.hops.watched = watched;
    }

    /// Looks at one connection. Whether there is more to see.
    fn look_at_hop(&mut self, watched: &mut Watched) -> bool {
        let age = self.mono.since(watched.since);
        let Some(conn) = self.conns.get_mut(watched.conn).filter(|conn| conn.stage == Stage::Open) else {
            return false;
        };
        let unacked = conn.unacked();
        if let HopStep::Written { session, .. } = &watched.hop.step
            && conn.send_queue.is_idle()
        {
            let arrived = HopStep::Arrived { session: session.clone() };
            self.hops.tell(watched.hop.clone(), self.place);
            watched.hop.step = arrived;
        }
        // What is sent behind it counts, too: a connection that is never idle is not said to have it.
        if unacked == 0 && matches!(watched.hop.step, HopStep::Arrived { .. }) {
            self.hops.tell(watched.hop.clone(), self.place);
            return false;
        }
        // An answer that takes long is looked for less often: to a sixteenth of its time.
        watched.due = self.mono.plus((age / 16).max(1));
        age < WATCHED_MS
    }
}
