//! The context in which everything runs, and the work that a shard gives itself.

use super::account_reads::AccountReads;
use super::homes::Homes;
use super::pipeline::Pipeline;
use super::{BoundSession, Sessions};
use crate::command::DOMAIN_IS_FULL;
use crate::error::StreamError;
use crate::feature_state::PerShard;
use crate::home::HomeKey;
use crate::message::{AdoptionMessage, Pace, ShardMessage};
use crate::model::{
    ConnId, Domain, DomainId, Listed, Map, NodeId, Now, Partitions, Place, SessionId, Settlement, ShardId,
    Ticket, TopicId, Wants,
};
use crate::ports::{Answer, Ask, Derivation, Derived, Fault, Question};
use crate::sasl::Stamp;
use crate::shard::{
    Barriers, Deadline, DomainQuota, LoginFound, RefusedWrite, SessionQueue, ShardState, Timer, Wake,
};
use crate::{Effect, Effects};
use carillon_wire::jid::{BareJid, Jid};
use carillon_wire::stanza::{Condition, Stanza, StanzaError};
use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;

/// What goes on with an answer of the store.
pub(crate) enum Continuation {
    /// The state of a connection whose session is not bound.
    Unbound(ConnId),
    /// The home of an account, a topic, ….
    Home(HomeKey),
    /// A closure.
    Call(Box<Continue<Answer>>),
}

/// What goes on with keys that were derived.
pub(crate) enum KeyContinuation {
    /// The state of a connection whose session is not bound.
    Unbound(ConnId),
    /// A closure.
    Call(Box<Continue<Derived>>),
}

/// Goes on with an answer.
type Continue<T> = dyn FnOnce(T, &mut Sessions, &mut Cx<'_>) + Send;

impl std::fmt::Debug for Continuation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Continuation::Unbound(conn) => write!(f, "Unbound({conn:?})"),
            Continuation::Home(key) => write!(f, "Home({key:?})"),
            Continuation::Call(_) => f.write_str("Call"),
        }
    }
}

impl std::fmt::Debug for KeyContinuation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            KeyContinuation::Unbound(conn) => write!(f, "Unbound({conn:?})"),
            KeyContinuation::Call(_) => f.write_str("Call"),
        }
    }
}

/// The work that a shard has still to do, and the continuations of what it asked for.
#[derive(Debug, Default)]
pub struct Agenda {
    queue: VecDeque<Work>,
    asks: Map<Ticket, Continuation>,
    /// What waits until the store has answered all it was asked before.
    barriers: Barriers<AfterBarrier>,
    derivations: Map<Ticket, KeyContinuation>,
    last_ticket: u64,
    /// Reads that clients caused.
    pub(crate) reads: AccountReads,
    /// The number of the stanza that goes on after it waited, if it was counted then ([`ParkedHook`](super::hook::ParkedHook)).
    pub(super) counted: Option<u32>,
}

/// What is done once the store has answered all it was asked before.
#[derive(Clone, Debug)]
pub(crate) enum AfterBarrier {
    /// An account leaves for another node, after so many further rounds: what answers it may have asked again.
    Leave { account: BareJid, rounds: u8 },
    /// A node has become the keeper of partitions, and is told what this shard has of them.
    Report { to: NodeId, partitions: Partitions, rounds: u8 },
}

/// Work a shard gives itself.
#[derive(Debug)]
pub(crate) enum Work {
    /// Handle a message from this shard to itself.
    ShardMessage(ShardMessage),
    /// End a session with a stream error.
    End(SessionId, StreamError),
    /// End what is at a connection with a stream error.
    EndConnection(ConnId, StreamError),
    /// Route a stanza that passes.
    Route {
        /// The stanza.
        stanza: Box<Stanza>,
        /// Who waits until it is settled.
        settlement: Option<Settlement>,
    },
    /// Go on with what a session read before it waited.
    Read(ConnId),
    /// Something deferred by [`Cx::later`].
    Later(LaterWork),
}

/// Something to be done with the sessions, after what is being done now.
pub struct LaterWork(Box<Do>);

type Do = dyn FnOnce(&mut Sessions, &mut Cx<'_>) + Send;

impl LaterWork {
    /// Runs the deferred work.
    pub(crate) fn go(self, sessions: &mut Sessions, cx: &mut Cx<'_>) {
        (self.0)(sessions, cx);
    }
}

impl std::fmt::Debug for LaterWork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LaterWork")
    }
}

impl Agenda {
    /// The next work to do before the handling of the input ends.
    pub(crate) fn next(&mut self) -> Option<Work> {
        self.queue.pop_front()
    }

    /// Adds work to be done.
    pub(super) fn push(&mut self, work: Work) {
        self.queue.push_back(work);
    }

    /// How many questions await their answer.
    pub(crate) fn awaited(&self) -> usize {
        self.asks.len()
    }

    /// Takes the continuation of an answered question.
    pub(crate) fn answered(&mut self, ticket: Ticket) -> Option<Continuation> {
        if !self.barriers.is_empty() {
            self.barriers.answered(ticket);
        }
        self.asks.remove(&ticket)
    }

    /// `then` waits until all questions that are open now are answered.
    pub(crate) fn await_answers(&mut self, then: AfterBarrier) {
        self.barriers.add(Ticket(self.last_ticket), self.asks.len(), then);
    }

    /// What need not wait any longer for answers.
    pub(crate) fn next_after_answers(&mut self) -> Option<Vec<AfterBarrier>> {
        if self.barriers.is_empty() { None } else { self.barriers.next() }
    }

    /// Takes the continuation of a derivation that is done.
    pub(crate) fn derived(&mut self, ticket: Ticket) -> Option<KeyContinuation> {
        self.derivations.remove(&ticket)
    }
}

/// The context in which everything runs: the time, the shard's shared parts, and where effects go.
pub struct Cx<'a> {
    /// The time.
    pub now: Now,
    /// The shard's shared parts.
    pub shard: &'a mut ShardState,
    /// What the features know on this shard: each opens its own.
    pub features: &'a mut PerShard,
    /// The accounts of which the shard is the home.
    pub homes: &'a mut Homes,
    /// What is to be done outside.
    pub out: &'a mut Effects,
    /// The hooks of the enabled features.
    pub pipeline: &'a Pipeline,
    /// The work that the shard has still to do.
    pub agenda: &'a mut Agenda,
}

impl Cx<'_> {
    /// Sends a stanza to the home of its `to`, which must be an account of this node.
    pub fn route(&mut self, stanza: Stanza) {
        let Some(to) = &stanza.to else { return };
        let at = self.shard.directory.account(to.bare_str());
        self.post(at, ShardMessage::Stanza { stanza, settlement: None });
    }

    /// The same for a stanza from a client, whose session may wait until it is settled.
    pub(super) fn route_from(&mut self, session: &mut BoundSession, stanza: Stanza) {
        let Some(to) = &stanza.to else { return };
        let at = self.shard.directory.account(to.bare_str());
        if session.is_tapped {
            session.tap_route(&stanza, "posted", &format!("node {} shard {}", at.node.0, at.shard.0), self);
        }
        let settlement = self.settlement_of(session, &stanza);
        self.post(at, ShardMessage::Stanza { stanza, settlement });
    }

    /// How to settle a stanza from a client, if its session waits for that.
    pub fn settlement_of(&mut self, session: &mut BoundSession, stanza: &Stanza) -> Option<Settlement> {
        let counted = self.agenda.counted;
        let number = self.pipeline.unsettled.iter().find_map(|hook| hook(session, stanza, counted, self))?;
        // It is told of when it is settled, which is not now.
        self.agenda.counted = None;
        let settlement = Settlement { place: self.shard.place, session: session.id, number };
        if self.shard.adoption.is_on {
            self.tell_of_repeat(session, stanza, settlement);
        }
        Some(settlement)
    }

    /// A client whose node died repeats a stanza that may have reached its recipient: the recipient's home is told how it knows that.
    fn tell_of_repeat(&mut self, session: &BoundSession, stanza: &Stanza, new: Settlement) {
        let origin = self.pipeline.resumption.and_then(|handler| (handler.origin)(session, new.number));
        if let (Some(old), Some(to)) = (origin, stanza.to.as_ref().filter(|to| to.local().is_some())) {
            let (at, account) = (self.shard.directory.account(to.bare_str()), to.bare());
            let message = AdoptionMessage::Repeats { account, new, old };
            self.post(at, ShardMessage::Adoption(Box::new(message)));
        }
    }

    /// A message is settled: the session that waits for it is told, after what it was sent before.
    pub fn settle(&mut self, settlement: Option<Settlement>) {
        if let Some(settled) = settlement {
            if self.shard.adoption.is_on && settled.place.node != self.shard.place.node {
                self.shard.adoption.settled(settled, self.now.mono);
            }
            self.post(settled.place, ShardMessage::Settled(settled));
        }
    }

    /// Sends what this server answers to the home of its `to`, if that is an account of this node.
    pub fn reply(&mut self, stanza: Stanza) {
        let Some(to) = stanza.to.as_ref().filter(|to| self.domain_of(to).is_some()) else { return };
        let at = self.shard.directory.account(to.bare_str());
        self.post(at, ShardMessage::Reply { stanza });
    }

    /// The same for a stanza that somebody waits for: it goes the way of what is said when it is settled, and comes before that.
    pub fn reply_to(&mut self, settlement: Option<Settlement>, stanza: Stanza) {
        match settlement {
            Some(settlement) => self.post(settlement.place, ShardMessage::Reply { stanza }),
            None => self.reply(stanza),
        }
    }

    /// Gives a message to a shard, which may be this one.
    pub fn post(&mut self, to: Place, message: ShardMessage) {
        if to == self.shard.place {
            self.agenda.queue.push_back(Work::ShardMessage(message));
        } else {
            self.out.push(Effect::Post { to, message });
        }
    }

    /// Gives a message to every shard, this one included: one copy of it for each shard of this node, and one for each other node.
    pub fn post_all(&mut self, message: impl Fn() -> ShardMessage) {
        for place in self.own_node() {
            self.post(place, message());
        }
        self.post_other_nodes(message);
    }

    fn post_other_nodes(&mut self, message: impl Fn() -> ShardMessage) {
        for to in self.shard.directory.other_nodes() {
            self.out.push(Effect::PostAll { to: *to, message: message() });
        }
    }

    /// The shards of this node.
    fn own_node(&self) -> impl Iterator<Item = Place> + use<> {
        let node = self.shard.place.node;
        (0..self.shard.shard_count).map(move |shard| Place { node, shard: ShardId(shard) })
    }

    /// Notes how much waits for followers of topics and for occupants of rooms.
    pub(crate) fn count_backlog(&mut self) {
        let mut backlog = self.shard.topics.subscribers.backlog();
        backlog += self.shard.room_walks.backlog();
        self.shard.counters.backlog = backlog;
    }

    /// Tells every shard whether this one keeps up with a topic.
    pub(crate) fn tell_pace(&mut self, topic: TopicId, pace: Pace) {
        let place = self.shard.place;
        self.post_all(|| ShardMessage::Pace { topic, place, pace });
    }

    /// Asks the store; `then` goes on with the answer.
    pub fn ask<Q: Question>(
        &mut self,
        question: Q,
        then: impl FnOnce(Result<Q::Answer, Fault>, &mut Sessions, &mut Cx<'_>) + Send + 'static,
    ) {
        let then = Continuation::Call(Box::new(move |answer, sessions, cx| {
            then(Q::answer(answer), sessions, cx);
        }));
        self.begin(question, then);
    }

    /// Asks the store for a connection whose session is not bound; its state goes on with the answer.
    pub(super) fn ask_unbound(&mut self, conn: ConnId, question: impl Into<Ask>) {
        self.begin(question, Continuation::Unbound(conn));
    }

    /// Asks the store for a home, which goes on with the answer by the number of the question.
    pub(crate) fn ask_for_home(&mut self, key: HomeKey, question: impl Into<Ask>) -> Ticket {
        self.begin(question, Continuation::Home(key))
    }

    fn begin(&mut self, question: impl Into<Ask>, then: Continuation) -> Ticket {
        let ticket = Ticket(self.number());
        self.agenda.asks.insert(ticket, then);
        self.out.push(Effect::Ask { ticket, ask: question.into() });
        ticket
    }

    /// Has keys derived; `then` goes on with them.
    pub fn derive(
        &mut self,
        derivation: Derivation,
        then: impl FnOnce(Derived, &mut Sessions, &mut Cx<'_>) + Send + 'static,
    ) {
        self.begin_derivation(derivation, KeyContinuation::Call(Box::new(then)));
    }

    /// Has keys derived for a connection whose session is not bound; its state goes on with them.
    pub(super) fn derive_unbound(&mut self, conn: ConnId, derivation: Derivation) {
        self.begin_derivation(derivation, KeyContinuation::Unbound(conn));
    }

    fn begin_derivation(&mut self, derivation: Derivation, then: KeyContinuation) {
        let ticket = Ticket(self.number());
        self.agenda.derivations.insert(ticket, then);
        self.out.push(Effect::Derive { ticket, derivation });
    }

    /// The store refused a write, which is repeated until it does it. Features hear of those that are given up for it.
    pub fn retry(&mut self, write: RefusedWrite) {
        for given_up in self.shard.retries.add(write, self.now.mono) {
            for hook in &self.pipeline.given_up {
                hook(&given_up, self);
            }
        }
    }

    /// The nodes of which the client of a session wants the events, if that is known.
    pub fn wants(&self, session: SessionId) -> Option<&Wants> {
        self.pipeline.wants.and_then(|hook| hook(session, self))
    }

    /// A number that this shard uses once.
    pub(crate) fn number(&mut self) -> u64 {
        self.agenda.last_ticket += 1;
        self.agenda.last_ticket
    }

    /// Refuses what would be stored where as much is stored of the domain as its policy allows.
    pub fn check_room(&mut self, domain: DomainId) -> Result<(), StanzaError> {
        if !self.shard.domains.numbered(domain).is_some_and(|domain| domain.is_full()) {
            return Ok(());
        }
        self.shard.counters.domains.of(domain).refused.count(DomainQuota::StoredBytes);
        Err(StanzaError::new(Condition::ResourceConstraint).with_text(DOMAIN_IS_FULL))
    }

    /// Counts a failed login from an address, here and in the other shards.
    pub fn login_failed(&mut self, address: IpAddr) {
        self.shard.logins.throttle.failed_from(address, self.now.mono, &self.shard.settings.limits);
        self.post_others(|| ShardMessage::LoginFailed { address });
    }

    /// Counts a registration from an address, here and in the other shards.
    pub fn registered(&mut self, address: IpAddr) {
        self.shard.logins.throttle.registered_from(address, self.now.mono, &self.shard.settings.limits);
        self.post_others(|| ShardMessage::Registered { address });
    }

    /// Another shard gave sessions of a domain more than they may.
    pub(crate) fn given_elsewhere(&mut self, domain: DomainId, wait_ms: u64) {
        self.shard.quotas.given_elsewhere(domain, self.now.mono, wait_ms);
    }

    /// Sessions of a domain were given more than they may: topics of the domain may be at home elsewhere.
    pub(crate) fn given_all(&mut self, domain: DomainId, wait_ms: u64) {
        self.post_others(|| ShardMessage::GivenAll { domain, wait_ms });
    }

    fn post_others(&mut self, message: impl Fn() -> ShardMessage) {
        let here = self.shard.place;
        let others = self.own_node().filter(|place| *place != here);
        others.for_each(|to| self.out.push(Effect::Post { to, message: message() }));
        self.post_other_nodes(message);
    }

    /// Remembers an account for its next login, unless it changed since it was read.
    pub fn remember(&mut self, account: &BareJid, domain: DomainId, known: LoginFound<'_>, stamp: Stamp) {
        let shard = &mut *self.shard;
        if !shard.accounts.stored_for.is_marked(account.as_str())
            && !shard.topics.subscribers.is_marked(account)
        {
            shard.accounts.login_cache.remember(account, domain, known, stamp, shard.cached_logins_max());
        }
    }

    /// Sets a timer of a connection, `ms` from now.
    pub fn set_deadline(&mut self, conn: ConnId, ms: u64, deadline: Deadline) {
        self.shard.timers.connections.set(self.now.mono.plus(ms), (conn, deadline));
    }

    /// Sets a timer of a session, `ms` from now.
    pub fn wake_in(&mut self, session: SessionId, ms: u64, wake: Wake) {
        self.shard.timers.sessions.set(self.now.mono.plus(ms), (session, wake));
    }

    /// Sets a timer of a feature for a session, `ms` from now.
    pub fn set_timer(&mut self, session: SessionId, ms: u64, timer: Timer) {
        self.wake_in(session, ms, Wake::Feature(timer));
    }

    /// Has something done with the sessions, after what is being done now.
    pub fn later(&mut self, work: impl FnOnce(&mut Sessions, &mut Cx<'_>) + Send + 'static) {
        self.agenda.queue.push_back(Work::Later(LaterWork(Box::new(work))));
    }

    /// Takes a session out of a topic's list, and tells the session that takes over its position.
    pub fn unfollow(&mut self, followed: Listed, sessions: &mut Sessions) {
        let moved = self.shard.topics.subscribers.remove(followed.topic, followed.position);
        if let Some(other) = moved {
            sessions.moved(other, followed);
        }
    }

    /// Goes on with what a session read before it waited, after what is being done now.
    pub(crate) fn read_on(&mut self, conn: ConnId) {
        self.agenda.queue.push_back(Work::Read(conn));
    }

    /// Ends a session with a stream error, after what is being done now.
    pub fn end(&mut self, session: SessionId, error: StreamError) {
        self.agenda.queue.push_back(Work::End(session, error));
    }

    /// What is kept for a session until its client has it went from one size to another, in bytes. When all such queues of the shard have more bytes than they
    /// may, the sessions with the largest end: each client is told, and may resume nothing; a session that is parked just ends.
    pub(crate) fn queue_resized(&mut self, queue: SessionQueue, before: usize, after: usize) {
        self.shard.queued.resize(queue, before, after);
        if after <= before {
            return;
        }
        // An even part of the node's bound.
        let shards = usize::from(self.shard.shard_count.max(1));
        let bytes_max = self.shard.settings.limits.all_unacknowledged_bytes / shards;
        while let Some(session) = self.shard.queued.too_large(bytes_max) {
            let text = "all clients together leave too much unacknowledged, and you are among those that leave the most";
            let condition = carillon_wire::stream::Condition::ResourceConstraint;
            self.end(session, StreamError::new(condition, text));
        }
    }

    /// Ends what is at a connection with a stream error, after what is being done now.
    pub(crate) fn end_connection(&mut self, conn: ConnId, error: StreamError) {
        self.agenda.queue.push_back(Work::EndConnection(conn, error));
    }

    /// Lets a session that waited go on with what it read before.
    pub fn resume(&mut self, conn: ConnId) {
        self.out.push(Effect::Resume { conn });
        self.agenda.queue.push_back(Work::Read(conn));
    }

    /// The domain of an account's address, if it is one of this node.
    pub fn domain_of(&self, jid: &Jid) -> Option<Arc<Domain>> {
        jid.local()?;
        self.shard.domains.named(jid.domain()).cloned()
    }

    /// The same, if accounts of the domain named `from` may exchange stanzas with those of that domain.
    pub fn reachable(&self, from: &str, jid: &Jid) -> Option<Arc<Domain>> {
        jid.local()?;
        self.shard.domains.reachable(from, jid.domain()).cloned()
    }
}
