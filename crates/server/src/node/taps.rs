//! Following an account, or notifications.

use super::Node;
use crate::channels::hops::HopSink;
use crate::channels::inbox::Control;
use crate::channels::taps::TapSink;
use carillon_core::tap::{Kinds, Order};
use carillon_wire::jid::BareJid;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// An account to follow, and how far.
#[derive(Clone, Debug)]
pub struct TapRequest {
    /// The account.
    pub account: BareJid,
    /// What is told of it.
    pub kinds: Kinds,
    /// When it ends, in milliseconds from now.
    pub for_ms: u64,
    /// Entries after which it ends.
    pub count: u32,
    /// Entries per second.
    pub rate: u32,
    /// Whether elements are told whole.
    pub payloads: bool,
}

impl Node {
    /// Follows an account on this node, until its time is up or [`Node::untap`]. `sink` takes what happens; it must not block, and returns
    /// false when it wants no more. The number of the tap.
    // Every shard has it, because the account's home may come to another one.
    pub fn tap(&self, request: TapRequest, sink: &TapSink) -> u64 {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let id = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        let TapRequest { account, kinds, for_ms, count, rate, payloads } = request;
        let until = self.mono().plus(for_ms);
        let order = Order { id, account, kinds, until, count, rate, payloads };
        self.control(|| Control::Tap(Box::new((order.clone(), Arc::clone(sink)))));
        id
    }

    /// Ends a tap.
    pub fn untap(&self, id: u64) {
        self.control(|| Control::Untap(id));
    }

    /// Tells `sink` of the steps of notifications that are followed ([`Command::NotifyFollowed`](carillon_core::command::Command::NotifyFollowed)),
    /// in place of whom it told before.
    pub fn follow_hops(&self, sink: &HopSink) {
        self.control(|| Control::FollowHops(Arc::clone(sink)));
    }
}
