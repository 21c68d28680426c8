//! The memory of all queues of a shard's connections together. Each is bounded, but so many of them are not: when they take too
//! much, the clients for which most waits are told, and their streams closed. As these may not read that either, the memory is
//! taken back with their connections before the bound is passed.

use super::resources::{QueuedBytes, ShardIo};
use super::upcall::Upcall;
use crate::conn::{Conn, Stage};
use carillon_core::connection::QueueBound;
use carillon_core::model::ConnId;

impl ShardIo {
    /// Counts the queue of a connection anew, after something was added to it or left it. Nothing is done for a connection
    /// whose socket took everything.
    pub(crate) fn recount(&mut self, id: ConnId) {
        let Some(conn) = self.conns.get_mut(id) else { return };
        let before = conn.counted as usize;
        conn.counted = u32::try_from(conn.send_queue.memory_bytes()).unwrap_or(u32::MAX);
        let after = conn.counted as usize;
        if before != after {
            self.waiting_changed(id, before, after);
        }
    }

    /// What waits for connections, in bytes: of those for which anything does.
    pub(crate) fn queues(&mut self) -> Vec<(ConnId, u64)> {
        let ids = self.conns.ids().into_iter();
        let queue = |id: ConnId| Some((id, self.conns.get_mut(id)?.send_queue.queued() as u64));
        ids.filter_map(queue).filter(|(_, bytes)| *bytes > 0).collect()
    }

    /// Takes a connection out.
    pub(crate) fn remove(&mut self, id: ConnId) -> Option<Conn> {
        let mut conn = self.conns.remove(id)?;
        let before = std::mem::take(&mut conn.counted);
        if before > 0 {
            self.waiting_changed(id, before as usize, 0);
        }
        Some(conn)
    }

    fn waiting_changed(&mut self, id: ConnId, before: usize, after: usize) {
        let QueuedBytes { bytes, by_size } = &mut self.waiting;
        *bytes = *bytes - before + after;
        by_size.resize(id, before, after);
        self.counters.out_queue_bytes = *bytes as u64;
        if after > before {
            self.make_room();
        }
    }

    /// Ends connections while all queues together take too much.
    fn make_room(&mut self) {
        let bytes_max = self.out_queues.all_bytes;
        while let Some(id) = self.waiting.by_size.too_large(self.waiting.bytes, bytes_max / 4 * 3) {
            if self.conns.get_mut(id).is_some_and(|conn| conn.stage == Stage::Open) {
                self.counters.common_overflows += 1;
                self.upcalls.push(Upcall::Overflowed(id, QueueBound::Common));
            }
        }
        while self.waiting.bytes > bytes_max
            && let Some(id) = self.waiting.by_size.ending()
        {
            self.drop_conn(id);
        }
    }
}
