//! The accounts that cost most, and what the flight recorders have.

use super::{Node, lock};
use crate::channels::inbox::Control;
use crate::channels::join::AllDone;
use crate::metrics::flight::FlightEntry;
use carillon_core::machine::HeavyAccount;
use carillon_core::model::ShardId;
use carillon_core::ports::Reply;
use std::sync::{Arc, Mutex};

impl Node {
    /// Calls `reply` with the accounts of this node that cost most, in no order. It must not block.
    pub fn top(&self, reply: Reply<Vec<HeavyAccount>>) {
        let all: Arc<Mutex<Vec<HeavyAccount>>> = Arc::default();
        let joined = Arc::clone(&all);
        let done = AllDone::new(Box::new(move |()| reply(std::mem::take(&mut *lock(&joined)))));
        let take = Arc::new(move |accounts: Vec<HeavyAccount>| lock(&all).extend(accounts));
        self.control(|| Control::Top(take.clone(), Arc::clone(&done)));
    }

    /// The last things that each shard was given, at most `max`, oldest first. No shard is asked, so that one that hangs does not matter.
    pub fn flights(&self, max: usize) -> Vec<(ShardId, Vec<FlightEntry>)> {
        let of = |(shard, figures): (ShardId, &Arc<crate::metrics::ShardFigures>)| {
            (shard, figures.flight.last(max))
        };
        self.shard_ids().zip(&self.inner.figures).map(of).collect()
    }
}
