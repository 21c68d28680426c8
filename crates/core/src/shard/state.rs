//! What the sessions of a shard share, and the context in which everything runs.

use super::{
    Acting, Allowances, Altered, Archiving, Behind, Capabilities, CountedTopics, Counters, Deadline,
    LastItems, LoginCache, Offers, Paces, Queued, Reads, Recent, Retries, Sent, Storing, Subscribers,
    Throttle, Told, Traces, Wake, Wheel,
};
use crate::light;
use crate::model::{AccountId, ConnId, Domains, Farewell, Mono, NodeId, Place, SessionId, Set, ShardId};
use crate::ports::{Computed, Directory};
use crate::random::Random;
use crate::sasl::fast::Replays;
use crate::settings::Settings;
use std::sync::Arc;

/// What the sessions of a shard share.
pub struct ShardState {
    /// Where this shard is.
    pub place: Place,
    /// Where homes are.
    pub directory: Arc<dyn Directory>,
    /// The number of shards of the node.
    pub shard_count: u16,
    /// What the operator decided.
    pub settings: Arc<Settings>,
    /// The node's domains.
    pub domains: Arc<Domains>,
    /// Randomness.
    pub random: Random,
    /// The counters.
    pub counters: Counters,
    /// Which sessions follow which topics.
    pub subscribers: Subscribers,
    /// Topics with which a shard is behind.
    pub behind: Behind,
    /// Publications that are done once.
    pub told: Told,
    /// The counters per topic.
    pub topic_figures: CountedTopics,
    /// What the light sessions share.
    pub light: light::Shared,
    /// Accounts with more than one session: for all others, what concerns an account's other sessions is skipped.
    pub in_company: Set<AccountId>,
    /// The sessions' timers.
    pub timers: Wheel<(SessionId, Wake)>,
    /// Those of connections whose session is not bound, or is a light one.
    pub deadlines: Wheel<(ConnId, Deadline)>,
    /// How much accounts may send.
    pub allowances: Allowances,
    /// Failed logins.
    pub throttle: Throttle,
    /// Accounts whose right to log in was altered lately.
    pub altered: Altered,
    /// Accounts for which something was stored lately.
    pub recent: Recent,
    /// Accounts whose records changed lately.
    pub changed_records: Recent,
    /// How often subscriptions change.
    pub paces: Paces,
    /// Accounts whose next login needs no store.
    pub login_cache: LoginCache,
    /// How often tokens were used.
    pub replays: Replays,
    /// What clients can do.
    pub capabilities: Capabilities,
    /// Sessions that are being given the last items of nodes.
    pub last_items: LastItems,
    /// Stream features that were sent before.
    pub offers: Offers,
    /// Notifications of the recent past that are not in the store.
    pub traces: Traces,
    /// Accounts for which messages are being stored.
    pub storing: Storing,
    /// Stanzas that accounts send by somebody outside.
    pub acting: Acting,
    /// Messages that are being kept in archives, and what waits behind them.
    pub archiving: Archiving,
    /// What clients have not acknowledged.
    pub queued: Queued,
    /// Questions whose answers may hold what ended meanwhile.
    pub reads: Reads,
    /// Kept notifications that were given lately.
    pub sent: Sent,
    /// Writes that the store has not done yet.
    pub retries: Retries,
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
        let acting = Acting::new(random.number() as u32);
        counters.domains.keep(&domains, settings.limits.domains_counted);
        ShardState {
            place,
            directory,
            shard_count: shards,
            random,
            counters,
            subscribers: Subscribers::default(),
            behind: Behind::default(),
            told: Told::default(),
            topic_figures: CountedTopics::default(),
            light: light::Shared::default(),
            in_company: Set::default(),
            timers: Wheel::new(now),
            deadlines: Wheel::new(now),
            allowances: Allowances::default(),
            throttle: Throttle::default(),
            altered: Altered::default(),
            recent: Recent::default(),
            changed_records: Recent::default(),
            paces: Paces::default(),
            login_cache: LoginCache::default(),
            replays: Replays::default(),
            capabilities: Capabilities::default(),
            last_items: LastItems::default(),
            offers: Offers::default(),
            traces: Traces::default(),
            queued: Queued::default(),
            reads: Reads::default(),
            sent: Sent::default(),
            storing: Storing::default(),
            acting,
            archiving: Archiving::default(),
            retries: Retries::default(),
            drain: None,
            settings,
            domains,
        }
    }

    /// How many accounts this shard may remember: an even part of the node's bound.
    pub fn cached_logins_max(&self) -> usize {
        self.settings.fast.remembered_accounts.div_ceil(usize::from(self.shard_count.max(1)))
    }

    /// Bytes that the queues of this shard may have: an even part of the node's bound.
    pub fn queued_bytes_max(&self) -> usize {
        self.settings.limits.all_unacknowledged_bytes / usize::from(self.shard_count.max(1))
    }

    /// Something of an account changed in the store: what was read of it before is out of date.
    pub fn changed(&mut self, account: &str) {
        self.recent.mark(account);
        self.login_cache.forget(account);
    }

    /// An account got another password or state, or was removed: logins under way that read it before fail.
    pub fn altered(&mut self, account: &str) {
        self.altered.note(account);
        self.changed(account);
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
