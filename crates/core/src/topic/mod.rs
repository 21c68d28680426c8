//! The home of topics: everything about a topic is decided by the one shard that is its home.
//!
//! Operations on a topic are checked and begun in the order in which they come (`home.rs`). Most become one question to the
//! store (`start.rs`); from its answer the asker gets an outcome, and every shard an event (`finish.rs`). Publications do not
//! wait for each other's answers, so that they share commits; an operation that changes the topic itself is done alone
//! (`edit.rs`). What of it does not come to a shard that has followers is read there (`missed.rs`).

mod asker;
mod edit;
mod finish;
mod home;
pub(crate) mod missed;
mod rights;
mod start;
mod step;
#[cfg(test)]
mod tests;
pub(crate) mod xml;

pub(crate) use rights::check_item;

use crate::command::{Actor, Asker, Refusal, TopicOp, Unacceptable};
use crate::home::{Places, Pushed};
use crate::model::{
    DomainId, Item, PubsubEvent, Retained, Shown, TOPIC_HOST, Ticket, TopicConfig, TopicKey, TopicRecord,
};
use crate::ports::{Answer, Fault};
use crate::session::Cx;
use carillon_wire::jid::BareJid;
use home::{Home, QueuedOp, Topic, TopicState};
use std::sync::Arc;

/// Topics kept in memory by a shard at most.
const TOPICS_MAX: usize = 10_000;
/// Bytes of records that a shard keeps in memory: beyond that it forgets those that are not in use, the ones that were read first before
/// others.
const RECORDS_BYTES_MAX: usize = 64 << 20;
/// How often the shard tidies before it forgets an unused topic.
const IDLE_TURNS: u8 = 6;

/// Whether an account may follow a topic and read its items.
pub fn is_readable(account: &BareJid, record: &TopicRecord) -> bool {
    rights::readable(account, record).is_ok()
}

/// What followers of a topic of this configuration are told of an item that was published, and what logins are given from then on.
fn event_of(item: &Arc<Item>, config: &TopicConfig, domain: &str) -> PubsubEvent {
    let shown = item.shown(config);
    let retained = match config.is_given_at_login() {
        true => Retained::Last(Arc::new(PubsubEvent::last_item(&shown, domain, true))),
        false => Retained::Unchanged,
    };
    match config.shows() {
        Shown::Nothing => PubsubEvent::notified(&shown, domain),
        Shown::Payload | Shown::Id => PubsubEvent::published(&shown, domain, retained),
    }
}

/// The topics at home on a shard.
#[derive(Debug, Default)]
pub struct Topics {
    homes: Places<Topic>,
}

/// A [`TopicKey`], borrowed.
#[derive(Hash)]
struct KeyRef<'a> {
    domain: DomainId,
    name: &'a str,
}

impl hashbrown::Equivalent<TopicKey> for KeyRef<'_> {
    fn equivalent(&self, key: &TopicKey) -> bool {
        self.domain == key.domain && *self.name == *key.name
    }
}

impl Topics {
    /// Carries out an operation, after earlier ones on the same topic.
    pub fn operate(
        &mut self,
        domain: DomainId,
        name: &str,
        actor: Actor,
        op: TopicOp,
        asker: Asker,
        cx: &mut Cx<'_>,
    ) {
        let key = match self.find(domain, name, cx) {
            Ok(key) => key,
            Err(refusal) => return asker.answer(name, Err(refusal), cx),
        };
        let load = self.homes.get(&key).map_or(0, Home::load);
        if load >= cx.shard.settings.limits.topic_queue {
            return asker.answer(name, Err(Refusal::Crowded), cx);
        }
        match self.homes.push(&key, QueuedOp { actor, op, asker }) {
            Pushed::Now(op) => {
                if let Some(home) = self.homes.get_mut(&key) {
                    home.start(op, &key, cx);
                }
            }
            Pushed::Load => {
                if let Some(home) = self.homes.get_mut(&key) {
                    home.read_record(&key, cx);
                }
            }
            Pushed::Waits => {}
            Pushed::Refused(queued) => queued.asker.answer(name, Err(Refusal::Crowded), cx),
        }
        self.advance(&key, cx);
    }

    /// The store answered.
    pub fn answered(&mut self, key: &TopicKey, ticket: Ticket, answer: Answer, cx: &mut Cx<'_>) {
        let Some(home) = self.homes.get_mut(key) else { return };
        let Some(step) = home.take_step(ticket) else { return };
        if let Some((step, answer)) = finish::read(step, answer, &key.name, cx) {
            home.answered(step, answer, key, cx);
        }
        self.advance(key, cx);
    }

    /// Forgets the topics whose home is elsewhere from now on. Who waits is to try again, there.
    pub fn keep_homes(&mut self, is_here: impl Fn(&TopicKey) -> bool, cx: &mut Cx<'_>) {
        let left = self.homes.keep(is_here);
        let waited = left.tasks.into_iter().map(|(key, queued)| (key, queued.asker));
        let begun = left.steps.into_iter().filter_map(|(key, step)| step.asker().map(|asker| (key, asker)));
        for (key, asker) in begun.chain(waited) {
            asker.answer(&key.name, Err(Refusal::Crowded), cx);
        }
    }

    /// Forgets topics that were not used lately.
    pub fn tidy(&mut self) {
        self.homes.forget_idle(IDLE_TURNS);
        self.homes.shrink(RECORDS_BYTES_MAX, |home| !home.is_quiet());
    }

    /// The topic with this name; its record is read if it is not here.
    fn find(&mut self, domain: DomainId, name: &str, cx: &mut Cx<'_>) -> Result<TopicKey, Refusal> {
        // Without the service topics are off, also for those who come by other ways.
        if cx.pipeline.service(TOPIC_HOST).is_none() {
            return Err(Refusal::Fault(Fault::Closed));
        }
        if let Some(key) = self.homes.key(&KeyRef { domain, name }) {
            return Ok(key.clone());
        }
        if name.is_empty() || name.len() > 1023 {
            return Err(Refusal::Unacceptable(Unacceptable::Name));
        }
        let domain = cx.shard.domains.numbered(domain).cloned().ok_or(Refusal::NotFound)?;
        if self.homes.len() >= TOPICS_MAX {
            self.homes.forget_idle(1);
        }
        if self.homes.len() >= TOPICS_MAX {
            return Err(Refusal::Crowded);
        }
        let key = TopicKey { domain: domain.id, name: name.into() };
        let domain = domain.name.clone();
        self.homes.make(&key, || Home::unknown(TopicState { domain }));
        Ok(key)
    }

    /// Begins the operations that may begin, in order, and forgets a topic that does not exist.
    fn advance(&mut self, key: &TopicKey, cx: &mut Cx<'_>) {
        let Some(home) = self.homes.get_mut(key) else { return };
        while let Some(next) = home.next() {
            home.start(next, key, cx);
        }
        self.homes.settle(key, |home| !home.is_nothing());
    }
}
