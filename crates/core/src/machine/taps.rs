//! Accounts that an operator follows: their sessions note what happens to them.

use super::{ShardMachine, Turn};
use crate::session::Sessions;
use crate::tap::{Order, Taps};
use carillon_wire::jid::BareJid;

impl ShardMachine {
    /// Follows an account, from the next input on. How many sessions it has here.
    pub fn tap(&mut self, order: Order) -> usize {
        let account = order.account.clone();
        self.shard.taps.add(order);
        mark(&account, &self.shard.taps, &mut self.sessions)
    }

    /// Ends a tap, if it has not ended.
    pub fn untap(&mut self, id: u64) {
        if let Some(account) = self.shard.taps.remove(id) {
            mark(&account, &self.shard.taps, &mut self.sessions);
        }
    }
}

impl Turn<'_> {
    /// Ends the taps whose time is up.
    pub(super) fn expire_taps(&mut self) {
        for account in self.cx.shard.taps.expire(self.cx.now.mono) {
            mark(&account, &self.cx.shard.taps, self.sessions);
        }
    }
}

/// Tells the sessions of an account whether they are followed. How many there are.
fn mark(account: &BareJid, taps: &Taps, sessions: &mut Sessions) -> usize {
    let is_tapped = taps.follow(account.as_str());
    let slots = sessions.of(account.as_str());
    for slot in &slots {
        if let Some(session) = sessions.bound_in(*slot) {
            session.is_tapped = is_tapped;
        }
    }
    slots.len()
}
