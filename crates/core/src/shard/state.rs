//! What the sessions of a shard share, and the context in which everything runs.

use super::{
    Accounts, Adoption, Claims, Counters, Heavy, Logins, Queued, Quotas, Retries, RoomWalks, SendAs, Timers,
    Topics,
};
use crate::light;
use crate::model::{Domains, Farewell, Mono, NodeId, Place, ShardId};
use crate::ports::{Computed, Directory};
use crate::random::Random;
use crate::settings::Settings;
use crate::tap::Taps;
use std::sync::Arc;

/// What the sessions of a shard share.
pub struct ShardState {
    /// Where this shard is.
    pub(crate) place: Place,
    /// Where homes are.
    pub(crate) directory: Arc<dyn Directory>,
    /// Which of the accounts whose names lead here are at home on this node.
    pub(crate) claims: Claims,
    /// The number of shards of the node.
    pub(crate) shard_count: u16,
    /// What the operator decided.
    pub(crate) settings: Arc<Settings>,
    /// The node's domains.
    pub(crate) domains: Arc<Domains>,
    /// Randomness.
    pub(crate) random: Random,
    /// The counters.
    pub(crate) counters: Counters,
    /// What rooms give to those here.
    pub(crate) room_walks: RoomWalks,
    /// What it has of topics.
    pub(crate) topics: Topics,
    /// What the light sessions share.
    pub(crate) light: light::Shared,
    /// What is remembered of accounts.
    pub(crate) accounts: Accounts,
    /// What the clients of domains may send together.
    pub(crate) quotas: Quotas,
    /// The timers of sessions and connections.
    pub(crate) timers: Timers,
    /// What logins have in common.
    pub(crate) logins: Logins,
    /// Stanzas that accounts send by somebody outside.
    pub(crate) send_as: SendAs,
    /// What clients have not acknowledged.
    pub(crate) queued: Queued,
    /// Accounts that are followed.
    pub(crate) taps: Taps,
    /// Accounts that cost much.
    pub(crate) heavy: Heavy,
    /// Writes that the store has not done yet.
    pub(crate) retries: Retries,
    /// Sessions of nodes that are dead, which may come here.
    pub(crate) adoption: Adoption,
    drain: Option<Drain>,
}

/// Which shard of which node, and whom it asks where homes are.
#[derive(Clone, Debug)]
pub struct Member {
    /// Where the shard is.
    pub place: Place,
    /// How many shards its node has.
    pub shards: u16,
    /// Where homes are.
    pub directory: Arc<dyn Directory>,
}

impl Member {
    /// A shard of a node that runs alone.
    pub fn of_one_node(shard: ShardId, shards: u16) -> Member {
        let place = Place { node: NodeId::default(), shard };
        Member { place, shards, directory: Arc::new(Computed::alone(shards)) }
    }
}

impl ShardState {
    pub(crate) fn new(
        member: Member,
        settings: Arc<Settings>,
        domains: Arc<Domains>,
        seed: [u8; 32],
        now: Mono,
    ) -> ShardState {
        let Member { place, shards, directory } = member;
        let mut counters = Counters::default();
        let mut random = Random::new(seed);
        let send_as = SendAs::new(random.number() as u32);
        counters.domains.keep(&domains, settings.limits.domains_counted);
        let mut quotas = Quotas::default();
        quotas.set(&domains, shards, now);
        let mut claims = Claims::default();
        claims.retry_at = (!directory.other_nodes().is_empty()).then_some(now);
        ShardState {
            place,
            directory,
            claims,
            shard_count: shards,
            random,
            counters,
            room_walks: RoomWalks::default(),
            topics: Topics::default(),
            light: light::Shared::default(),
            accounts: Accounts::default(),
            quotas,
            timers: Timers::new(now),
            logins: Logins::default(),
            send_as,
            queued: Queued::default(),
            taps: Taps::default(),
            heavy: Heavy::default(),
            retries: Retries::default(),
            adoption: Adoption::default(),
            drain: None,
            settings,
            domains,
        }
    }

    /// How many accounts this shard may remember: an even part of the node's bound.
    pub fn cached_logins_max(&self) -> usize {
        self.settings.fast.remembered_accounts.div_ceil(usize::from(self.shard_count.max(1)))
    }

    /// Whether the node drains and takes no new sessions.
    pub fn is_draining(&self) -> bool {
        self.drain.is_some()
    }

    /// What is told to those who end, and to those who come, if the node drains.
    pub fn draining(&self) -> Option<&Farewell> {
        self.drain.as_ref().map(|drain| &*drain.farewell)
    }

    /// Whether sessions whose connections are lost end, because nobody can come back to them.
    pub fn ends_sessions(&self) -> bool {
        self.draining().is_some_and(|farewell| !matches!(farewell, Farewell::Restart { .. }))
    }

    /// The node drains; `present` is who is there. How many there were when it began.
    pub(crate) fn drain(&mut self, farewell: Arc<Farewell>, present: usize) -> usize {
        let of = self.drain.as_ref().map_or(present, |drain| drain.of);
        self.drain = Some(Drain { farewell, of });
        of
    }

    pub(crate) fn stop_draining(&mut self) {
        self.drain = None;
    }
}

/// A drain under way.
struct Drain {
    farewell: Arc<Farewell>,
    /// How many were there when it began.
    of: usize,
}
