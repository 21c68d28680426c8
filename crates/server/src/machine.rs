//! The core as the event loop drives it. It is a trait so that the loop can be tested with a simple machine.

use carillon_core::form::Unreadable;
use carillon_core::machine::{
    Group, HandedGroup, HandedSession, HandedTrace, HeavyAccount, LogTurn, Restored, ShardMachine,
};
use carillon_core::model::{ConnId, Mono, Now};
use carillon_core::ports::modules::ActiveModule;
use carillon_core::settings::Settings;
use carillon_core::shard::Counters;
use carillon_core::tap::Order;
use carillon_core::{Effects, Input};
use carillon_wire::jid::BareJid;
use std::sync::Arc;

/// A machine that takes inputs and returns effects. The methods are those of [`ShardMachine`].
pub(crate) trait Machine: Send + 'static {
    /// Handles one input.
    fn handle(&mut self, now: Now, input: Input<'_>, effects: &mut Effects);
    /// Continues the fan-outs for one slice. Whether any is left.
    fn walk(&mut self, now: Now, effects: &mut Effects) -> bool;
    /// The largest WebSocket message a connection may send now, in bytes.
    fn message_bytes_max(&self, conn: ConnId) -> usize;
    /// When the next tick is due.
    fn next_wake(&self) -> Option<Mono>;
    /// Its counters.
    fn counters(&self) -> &Counters;
    /// Replaces its settings.
    fn reload(&mut self, settings: Arc<Settings>);
    /// Replaces its modules, between two turns.
    fn set_modules(&mut self, modules: Vec<ActiveModule>);
    /// Follows an account.
    fn tap(&mut self, order: Order);
    /// So many nanoseconds were spent on what came from a connection.
    fn spent(&mut self, conn: ConnId, cpu_ns: u64);
    /// The accounts that cost most. `queues` is what waits for connections, in bytes.
    fn top(&mut self, now: Mono, queues: &[(ConnId, u64)]) -> Vec<HeavyAccount>;
    /// Ends a tap.
    fn untap(&mut self, id: u64);
    /// How many answers of the store it waits for.
    fn awaited(&self) -> usize;
    /// Takes parked sessions out of the shard, as bytes.
    fn write_parked(&mut self, now: Now, bytes_max: usize, effects: &mut Effects) -> Option<Group>;
    /// Parks the sessions of a group again.
    fn restore(
        &mut self,
        now: Now,
        elapsed_ms: u64,
        bytes: &[u8],
        effects: &mut Effects,
    ) -> Result<Restored, Unreadable>;
    /// Whether sessions are written down.
    fn keep_log(&mut self, keeps: bool);
    /// What is to be written of them.
    fn log(&mut self, now: Now, sent_to: &[ConnId], turn: &mut LogTurn);
    /// How many connections have no session yet.
    fn unbound(&self) -> usize;
    /// Has the store keep what others wait for.
    fn prepare_hand_over(&mut self, now: Now, effects: &mut Effects);
    /// The accounts without a session that the node has claimed.
    fn held_accounts(&self) -> Vec<BareJid>;
    /// Goes on with such accounts of the process before.
    fn hold_accounts(&mut self, now: Now, accounts: &[BareJid], effects: &mut Effects);
    /// Takes sessions out of the shard, with their connections.
    fn hand_over(&mut self, now: Now, bytes_max: usize, effects: &mut Effects) -> Option<HandedGroup>;
    /// Takes in sessions that were handed over.
    fn take_over(
        &mut self,
        now: Now,
        is_same_node: bool,
        traces: Vec<HandedTrace>,
        sessions: Vec<(HandedSession, Option<ConnId>)>,
        effects: &mut Effects,
    ) -> Restored;
}

impl Machine for ShardMachine {
    fn handle(&mut self, now: Now, input: Input<'_>, effects: &mut Effects) {
        ShardMachine::handle(self, now, input, effects);
    }

    fn walk(&mut self, now: Now, effects: &mut Effects) -> bool {
        ShardMachine::walk(self, now, effects)
    }

    fn message_bytes_max(&self, conn: ConnId) -> usize {
        ShardMachine::message_bytes_max(self, conn)
    }

    fn next_wake(&self) -> Option<Mono> {
        ShardMachine::next_wake(self)
    }

    fn counters(&self) -> &Counters {
        ShardMachine::counters(self)
    }

    fn reload(&mut self, settings: Arc<Settings>) {
        ShardMachine::reload(self, settings);
    }

    fn set_modules(&mut self, modules: Vec<ActiveModule>) {
        ShardMachine::set_modules(self, modules);
    }

    fn tap(&mut self, order: Order) {
        ShardMachine::tap(self, order);
    }

    fn spent(&mut self, conn: ConnId, cpu_ns: u64) {
        ShardMachine::spent(self, conn, cpu_ns);
    }

    fn top(&mut self, now: Mono, queues: &[(ConnId, u64)]) -> Vec<HeavyAccount> {
        ShardMachine::top(self, now, queues)
    }

    fn untap(&mut self, id: u64) {
        ShardMachine::untap(self, id);
    }

    fn awaited(&self) -> usize {
        ShardMachine::awaited(self)
    }

    fn write_parked(&mut self, now: Now, bytes_max: usize, effects: &mut Effects) -> Option<Group> {
        ShardMachine::write_parked(self, now, bytes_max, effects)
    }

    fn restore(
        &mut self,
        now: Now,
        elapsed_ms: u64,
        bytes: &[u8],
        effects: &mut Effects,
    ) -> Result<Restored, Unreadable> {
        ShardMachine::restore(self, now, elapsed_ms, bytes, effects)
    }

    fn keep_log(&mut self, keeps: bool) {
        ShardMachine::keep_log(self, keeps);
    }

    fn log(&mut self, now: Now, sent_to: &[ConnId], turn: &mut LogTurn) {
        ShardMachine::log(self, now, sent_to, turn);
    }

    fn unbound(&self) -> usize {
        ShardMachine::unbound(self)
    }

    fn prepare_hand_over(&mut self, now: Now, effects: &mut Effects) {
        ShardMachine::prepare_hand_over(self, now, effects);
    }

    fn held_accounts(&self) -> Vec<BareJid> {
        ShardMachine::held_accounts(self)
    }

    fn hold_accounts(&mut self, now: Now, accounts: &[BareJid], effects: &mut Effects) {
        ShardMachine::hold_accounts(self, now, accounts, effects);
    }

    fn hand_over(&mut self, now: Now, bytes_max: usize, effects: &mut Effects) -> Option<HandedGroup> {
        ShardMachine::hand_over(self, now, bytes_max, effects)
    }

    fn take_over(
        &mut self,
        now: Now,
        is_same_node: bool,
        traces: Vec<HandedTrace>,
        sessions: Vec<(HandedSession, Option<ConnId>)>,
        effects: &mut Effects,
    ) -> Restored {
        ShardMachine::take_over(self, now, is_same_node, traces, sessions, effects)
    }
}
