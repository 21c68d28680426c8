//! What the sessions of a shard share, and the context in which everything runs.

use super::{
    Altered, Behind, CountedTopics, Counters, Known, Memory, Owed, Pace, Recent, Sessions, Subscribers, Then,
    Throttle, Traces, Wake, Wheel, home,
};
use crate::error::StreamError;
use crate::hook::Timer;
use crate::light;
use crate::message::ShardMessage;
use crate::model::{
    AccountId, ConnId, Domain, DomainId, Domains, Map, Mono, Now, Set, ShardId, Ticket, TopicId,
};
use crate::pipeline::Pipeline;
use crate::ports::{Ask, Derivation};
use crate::random::Random;
use crate::sasl::fast::{Replays, Stamp};
use crate::session::Followed;
use crate::session::auth::offer::Offers;
use crate::settings::Settings;
use crate::{Effect, Effects};
use carillon_wire::jid::{BareJid, Jid};
use carillon_wire::stanza::Stanza;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;

/// What the sessions of a shard share.
pub struct Hub {
    /// Which shard this is.
    pub id: ShardId,
    /// How many there are.
    pub shards: u16,
    /// What the operator decided.
    pub settings: Arc<Settings>,
    /// The node's domains.
    pub domains: Arc<Domains>,
    /// Randomness.
    pub random: Random,
    /// What is counted.
    pub counters: Counters,
    /// Who follows what.
    pub subscribers: Subscribers,
    /// Topics with which a shard is behind.
    pub behind: Behind,
    /// What is counted of each topic.
    pub topic_figures: CountedTopics,
    /// What the light sessions share.
    pub light: light::Shared,
    /// Accounts with more than one session: what concerns an account's other sessions is no work for most.
    pub in_company: Set<AccountId>,
    /// The sessions' timers.
    pub timers: Wheel,
    /// Failed logins.
    pub throttle: Throttle,
    /// Accounts whose right to log in was altered lately.
    pub altered: Altered,
    /// Accounts for which something was stored lately.
    pub recent: Recent,
    /// Accounts whose next login needs no store.
    pub memory: Memory,
    /// Uses of tokens.
    pub replays: Replays,
    /// Stream features that were sent before.
    pub offers: Offers,
    /// Notifications of the recent past that are not in the store.
    pub traces: Traces,
    /// What the store is yet to be told.
    pub owed: Owed,
    /// Work for this shard, done before the input's handling ends.
    pub(crate) queue: VecDeque<Work>,
    asks: Map<Ticket, Then>,
    next_ticket: u64,
    draining: bool,
}

/// Work a shard gives itself.
#[derive(Debug)]
pub(crate) enum Work {
    /// A letter that needs no post.
    ShardMessage(ShardMessage),
    /// End a session with a stream error.
    End(ConnId, StreamError),
    /// Go on with what a session read before it waited.
    Read(ConnId),
    /// What somebody left to be done.
    Later(Deferred),
}

/// Something to be done with the sessions, after what is being done now.
pub struct Deferred(Box<dyn FnOnce(&mut Sessions, &mut Cx<'_>) + Send>);

impl Deferred {
    /// Does it.
    pub(crate) fn go(self, sessions: &mut Sessions, cx: &mut Cx<'_>) {
        (self.0)(sessions, cx);
    }
}

impl std::fmt::Debug for Deferred {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Deferred")
    }
}

impl Hub {
    pub(crate) fn new(
        id: ShardId,
        shards: u16,
        settings: Arc<Settings>,
        domains: Arc<Domains>,
        seed: [u8; 32],
        now: Mono,
    ) -> Hub {
        let mut counters = Counters::default();
        counters.domains.keep(&domains, settings.limits.domains_counted);
        Hub {
            id,
            shards,
            random: Random::new(seed),
            counters,
            subscribers: Subscribers::default(),
            behind: Behind::default(),
            topic_figures: CountedTopics::default(),
            light: light::Shared::default(),
            in_company: Set::default(),
            timers: Wheel::new(now),
            throttle: Throttle::default(),
            altered: Altered::default(),
            recent: Recent::default(),
            memory: Memory::default(),
            replays: Replays::default(),
            offers: Offers::default(),
            traces: Traces::default(),
            owed: Owed::default(),
            queue: VecDeque::new(),
            asks: Map::default(),
            next_ticket: 0,
            draining: false,
            settings,
            domains,
        }
    }

    /// This shard's part of the accounts to remember: they are spread evenly.
    pub fn remembered_max(&self) -> usize {
        self.settings.fast.remembered_accounts.div_ceil(usize::from(self.shards.max(1)))
    }

    /// Something of an account changed in the store: what was read of it before is not the truth any more.
    pub fn changed(&mut self, account: &str) {
        self.recent.mark(account);
        self.memory.forget(account);
    }

    /// An account got another password or state, or was removed: logins that are under way with what was read before end.
    pub fn altered(&mut self, account: &str) {
        self.altered.note(account);
        self.changed(account);
    }

    /// Takes the continuation of an answered question.
    pub(crate) fn answered(&mut self, ticket: Ticket) -> Option<Then> {
        self.asks.remove(&ticket)
    }

    /// Whether the node drains: no new sessions.
    pub fn is_draining(&self) -> bool {
        self.draining
    }

    pub(crate) fn drain(&mut self) {
        self.draining = true;
    }
}

/// The context in which everything runs: the time, the shard's shared parts, and where effects go.
pub struct Cx<'a> {
    /// The time.
    pub now: Now,
    /// The shard's shared parts.
    pub hub: &'a mut Hub,
    /// What is to be done outside.
    pub out: &'a mut Effects,
    /// The hooks of the enabled features.
    pub pipeline: &'a Pipeline,
}

impl Cx<'_> {
    /// Sends a stanza to the home of its `to`, which must be an account of this node.
    pub fn route(&mut self, stanza: Stanza) {
        let Some(to) = &stanza.to else { return };
        let at = home(to.bare_str(), self.hub.shards);
        self.post(at, ShardMessage::Stanza(stanza));
    }

    /// Sends a stanza to whoever has this address: to the home of a local account, otherwise answered with an error.
    pub fn reply(&mut self, stanza: Stanza) {
        if stanza.to.as_ref().is_some_and(|to| self.domain_of(to).is_some()) {
            self.route(stanza);
        }
    }

    /// Gives a letter to a shard, which may be this one.
    pub fn post(&mut self, to: ShardId, letter: ShardMessage) {
        if to == self.hub.id {
            self.hub.queue.push_back(Work::ShardMessage(letter));
        } else {
            self.out.push(Effect::Post { to, letter });
        }
    }

    /// Gives a letter to every shard, this one included.
    pub fn post_all(&mut self, letter: impl Fn() -> ShardMessage) {
        for shard in 0..self.hub.shards {
            self.post(ShardId(shard), letter());
        }
    }

    /// Tells every shard how this one keeps up with a topic.
    pub(crate) fn tell_pace(&mut self, topic: TopicId, pace: Pace) {
        let shard = self.hub.id;
        self.post_all(|| ShardMessage::Pace { topic, shard, pace });
    }

    /// Asks the store; `then` says who goes on with the answer.
    pub fn ask(&mut self, ask: Ask, then: Then) {
        let ticket = self.ticket(then);
        self.out.push(Effect::Ask { ticket, ask });
    }

    /// Has keys derived; `then` says who goes on with them.
    pub fn derive(&mut self, derivation: Derivation, then: Then) {
        let ticket = self.ticket(then);
        self.out.push(Effect::Derive { ticket, derivation });
    }

    fn ticket(&mut self, then: Then) -> Ticket {
        self.hub.next_ticket += 1;
        let ticket = Ticket(self.hub.next_ticket);
        self.hub.asks.insert(ticket, then);
        ticket
    }

    /// Counts a failed login of an address: here at once, and in the other shards.
    pub fn login_failed(&mut self, address: IpAddr) {
        self.hub.throttle.failed_from(address, self.now.mono, &self.hub.settings.limits);
        self.post_others(|| ShardMessage::LoginFailed { address });
    }

    /// Counts a registration from an address: here at once, and in the other shards.
    pub fn registered(&mut self, address: IpAddr) {
        self.hub.throttle.registered_from(address, self.now.mono, &self.hub.settings.limits);
        self.post_others(|| ShardMessage::Registered { address });
    }

    fn post_others(&mut self, letter: impl Fn() -> ShardMessage) {
        let here = self.hub.id;
        let others = (0..self.hub.shards).map(ShardId).filter(|shard| *shard != here);
        others.for_each(|to| self.out.push(Effect::Post { to, letter: letter() }));
    }

    /// Remembers an account for its next login, unless it changed since it was read.
    pub fn remember(&mut self, account: &BareJid, domain: DomainId, known: Known<'_>, stamp: Stamp) {
        let hub = &mut *self.hub;
        if !hub.recent.is_marked(account.as_str()) && !hub.subscribers.is_marked(account) {
            hub.memory.remember(account, domain, known, stamp, hub.remembered_max());
        }
    }

    /// Sets a timer of a session, `ms` from now.
    pub fn wake_in(&mut self, conn: ConnId, ms: u64, wake: Wake) {
        self.hub.timers.set(self.now.mono.plus(ms), conn, wake);
    }

    /// Sets a timer of a feature for a session, `ms` from now.
    pub fn set_timer(&mut self, conn: ConnId, ms: u64, timer: Timer) {
        self.wake_in(conn, ms, Wake::Feature(timer));
    }

    /// Has something done with the sessions, after what is being done now.
    pub fn later(&mut self, work: impl FnOnce(&mut Sessions, &mut Cx<'_>) + Send + 'static) {
        self.hub.queue.push_back(Work::Later(Deferred(Box::new(work))));
    }

    /// Takes a session out of a topic's list, and tells the one that takes its place.
    pub fn unfollow(&mut self, followed: Followed, sessions: &mut Sessions) {
        let moved = self.hub.subscribers.remove(followed.topic, followed.position);
        if let Some(other) = moved {
            sessions.moved(other, followed);
        }
    }

    /// Ends a session with a stream error, after what is being done now.
    pub fn end(&mut self, conn: ConnId, error: StreamError) {
        self.hub.queue.push_back(Work::End(conn, error));
    }

    /// Lets a session that waited go on with what it read before.
    pub fn resume(&mut self, conn: ConnId) {
        self.out.push(Effect::Resume { conn });
        self.hub.queue.push_back(Work::Read(conn));
    }

    /// The domain of an account's address, if it is one of this node.
    pub fn domain_of(&self, jid: &Jid) -> Option<Arc<Domain>> {
        jid.local()?;
        self.hub.domains.named(jid.domain()).cloned()
    }
}
