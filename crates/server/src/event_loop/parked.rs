//! The parked sessions of the shard: written at its end, and restored before its first turn.

use super::EventLoop;
use crate::machine::Machine;
use crate::node::parked::GROUP_BYTES;
use carillon_core::machine::Restored;
use carillon_core::ports::store::parked::ParkedGroup;
use std::sync::mpsc::SyncSender;

impl<M: Machine> EventLoop<M> {
    /// Takes the parked sessions out of the core, group by group. While the store is behind, the shard waits for it: there is nothing
    /// left to do but to close connections.
    pub(super) fn write_parked(&mut self, sink: &SyncSender<ParkedGroup>) {
        while let Some(group) = self.machine.write_parked(self.now, GROUP_BYTES, &mut self.effects) {
            self.run_effects();
            let group = ParkedGroup {
                // It is numbered among those of the node when it is stored.
                number: 0,
                shard: self.io.place.shard.0,
                shards: self.shards(),
                sessions: group.sessions,
                written: self.now.unix,
                bytes: group.bytes.into(),
            };
            if sink.send(group).is_err() {
                tracing::error!("nobody stores parked sessions");
                return;
            }
        }
    }

    /// Parks the sessions of groups again. Those of other shards are left to these.
    pub(super) fn restore(&mut self, groups: &[ParkedGroup]) {
        let mut all = Restored::default();
        for group in groups {
            if group.shards == self.shards() && group.shard != self.io.place.shard.0 {
                continue;
            }
            let elapsed_ms = self.now.unix.0.saturating_sub(group.written.0);
            let Restored { restored, expired, refused, elsewhere } =
                match self.machine.restore(self.now, elapsed_ms, &group.bytes, &mut self.effects) {
                    Ok(restored) => restored,
                    Err(error) => {
                        tracing::error!(%error, sessions = group.sessions, "parked sessions cannot be read");
                        continue;
                    }
                };
            self.run_effects();
            all.restored += restored;
            all.expired += expired;
            all.refused += refused;
            all.elsewhere += elsewhere;
        }
        self.io.counters.sessions_restored += u64::from(all.restored);
        self.io.counters.sessions_expired += u64::from(all.expired);
        self.unpublished = true;
        if all != Restored::default() {
            let Restored { restored, expired, refused, .. } = all;
            let took_ms = self.clock.mono().since(self.now.mono);
            tracing::info!(
                shard = self.io.place.shard.0,
                restored,
                expired,
                refused,
                took_ms,
                "parked sessions restored"
            );
        }
        self.flush_deferred();
        self.update_clock();
    }

    fn shards(&self) -> u16 {
        self.io.outboxes.inboxes.len() as u16
    }
}
