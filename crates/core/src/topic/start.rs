//! Beginning an operation: from the operation to the question to the store.

use super::home::{Home, QueuedOp};
use super::rights::{self, Grant};
use super::step::{Draft, Edit, Step};
use crate::command::{Actor, Asker, NoRoom, Refusal, TopicOp, TopicOutcome, check_topic_config};
use crate::model::{
    Affiliation, Item, OperationId, Payload, Policy, PubsubCreate, Revision, SendLast, TopicConfig, TopicKey,
    TopicRecord,
};
use crate::ports::Ask;
use crate::ports::store::items::{ItemNames, Items, Publish};
use crate::ports::store::subscriptions::{IsSubscribed, Subscribe, Subscribers, Unsubscribe};
use crate::ports::store::topics::{CreateTopic, DeleteTopic, TOPIC_PART_ROWS};
use crate::session::Cx;
use crate::shard::DomainQuota;
use bytes::Bytes;
use carillon_wire::jid::BareJid;
use std::sync::Arc;

impl Home {
    /// Begins an operation that is its turn.
    pub(super) fn start(&mut self, waiting: QueuedOp, key: &TopicKey, cx: &mut Cx<'_>) {
        let QueuedOp { actor, op, asker } = waiting;
        let Some(record) = self.known() else { return self.start_absent(&actor, op, asker, key, cx) };
        let grant = rights::check(&actor, &op, &record, &cx.shard.settings.limits);
        if grant.is_ok() && op.is_told() && cx.shard.topics.behind.is_behind(record.id) {
            cx.shard.counters.too_fast += 1;
            return asker.answer(&key.name, Err(Refusal::TooFast), cx);
        }
        if grant.is_ok()
            && op.is_published()
            && record.config.persist_items
            && cx.check_room(key.domain).is_err()
        {
            return asker.answer(&key.name, Err(Refusal::NoRoom(NoRoom::DomainBytes)), cx);
        }
        if grant.is_ok() && op.is_told() && cx.shard.quotas.is_given_all(key.domain, cx.now.mono) {
            cx.shard.counters.domains.of(key.domain).refused.count(DomainQuota::BytesOut);
            return asker.answer(&key.name, Err(Refusal::GivenAll), cx);
        }
        match grant {
            Ok(Grant::Given) => self.start_open(&record, &actor, op, asker, key, cx),
            Ok(Grant::IfFollowing) => self.look_up_standing(record, &actor, op, asker, key, cx),
            Err(refusal) => asker.answer(&key.name, Err(refusal), cx),
        }
    }

    /// There is no such topic: the operation creates it, or is refused.
    fn start_absent(&mut self, actor: &Actor, op: TopicOp, asker: Asker, key: &TopicKey, cx: &mut Cx<'_>) {
        match self.creation(actor, op, cx) {
            Ok((config, first)) => {
                let owner = match actor {
                    Actor::Provider | Actor::Anyone => None,
                    Actor::Account(jid) => Some((jid.bare(), Affiliation::Owner)),
                };
                let question = CreateTopic {
                    domain: key.domain,
                    name: (*key.name).into(),
                    config,
                    affiliations: owner.into_iter().collect(),
                    owned_max: self.policy(cx).topics_owned().min(cx.shard.settings.limits.topics_owned),
                    now: cx.now.unix,
                };
                self.hold();
                self.ask(key, question, Step::Create { first, asker }, cx);
            }
            Err(refusal) => asker.answer(&key.name, Err(refusal), cx),
        }
    }

    /// The configuration with which an operation creates a topic, and its first item.
    fn creation(
        &self,
        actor: &Actor,
        op: TopicOp,
        cx: &mut Cx<'_>,
    ) -> Result<(TopicConfig, Option<Draft>), Refusal> {
        let wants = op.clone();
        let (config, item) = match op {
            _ if *actor == Actor::Anyone => return Err(Refusal::NotFound),
            TopicOp::Create { config } | TopicOp::Put { config } => (config, None),
            // XEP-0060 §7.1.4: for clients a publication creates what is not there.
            TopicOp::Publish { id, payload, operation } if *actor != Actor::Provider => {
                (TopicConfig::default(), Some((id, payload, operation)))
            }
            TopicOp::PublishIf { id, payload, options } if *actor != Actor::Provider => {
                (options.apply(&TopicConfig::default()), Some((id, payload, None)))
            }
            TopicOp::PublishNothing { options } if *actor != Actor::Provider => {
                (options.apply(&TopicConfig::default()), Some((None, NOTHING, None)))
            }
            _ => return Err(Refusal::NotFound),
        };
        let domain = cx.shard.domains.named(&self.state.domain).ok_or(Refusal::NotFound)?;
        if *actor != Actor::Provider && domain.policy.pubsub_create == PubsubCreate::Admin {
            return Err(if item.is_some() { Refusal::NotFound } else { Refusal::Forbidden });
        }
        check_topic_config(&config, &cx.shard.settings.limits)?;
        if *actor != Actor::Provider {
            rights::check_item(&wants, &config)?;
        }
        Ok((config, item.map(|(id, payload, operation)| draft(actor, id, &payload, operation, cx))))
    }

    fn start_open(
        &mut self,
        record: &Arc<TopicRecord>,
        actor: &Actor,
        op: TopicOp,
        asker: Asker,
        key: &TopicKey,
        cx: &mut Cx<'_>,
    ) {
        let topic = record.id;
        let config = rights::config_after(&op, &record.config);
        match op {
            TopicOp::Create { .. } | TopicOp::Describe | TopicOp::Manage => {
                let outcome = TopicOutcome::Record { record: record.clone(), created: false };
                asker.answer(&key.name, Ok(outcome), cx);
            }
            TopicOp::Put { .. } | TopicOp::Configure { .. } | TopicOp::Amend { .. } => {
                let config = config.expect("these operations give one");
                self.edit(record, Edit::Configure(config), asker, key, cx);
            }
            TopicOp::Delete => {
                self.hold();
                let step = Step::Delete { record: record.clone(), asker };
                self.ask(key, DeleteTopic { topic, rows_max: TOPIC_PART_ROWS }, step, cx);
            }
            TopicOp::Publish { id, payload, operation } => {
                let draft = draft(actor, id, &payload, operation, cx);
                self.publish(record, draft, asker, key, cx);
            }
            TopicOp::PublishIf { id, payload, .. } => {
                let draft = draft(actor, id, &payload, None, cx);
                self.publish(record, draft, asker, key, cx);
            }
            TopicOp::PublishNothing { .. } => {
                let draft = draft(actor, None, &NOTHING, None, cx);
                self.publish(record, draft, asker, key, cx);
            }
            TopicOp::Retract { id, notify } => {
                self.edit(record, Edit::Retract { item: id, notify }, asker, key, cx);
            }
            TopicOp::Purge => self.edit(record, Edit::Purge, asker, key, cx),
            TopicOp::Items { ids, from, max, bytes_max } => {
                let max = max.unwrap_or(record.config.max_items).min(record.config.max_items);
                self.ask(key, Items { topic, ids, from, max, bytes_max }, Step::Items(asker), cx);
            }
            TopicOp::ItemNames { from, max } => {
                self.ask(key, ItemNames { topic, from, max }, Step::ItemNames(asker), cx);
            }
            TopicOp::Subscribe { account } => self.subscribe(record, account, actor, asker, key, cx),
            TopicOp::Unsubscribe { account } => self.unsubscribe(record, account, Some(asker), key, cx),
            TopicOp::Listen => self.listen(record, asker, key, cx),
            TopicOp::Subscribers { after, max } => {
                self.ask(key, Subscribers { topic, after, limit: max }, Step::Jids(asker), cx);
            }
            TopicOp::SetAffiliations { changes } => {
                self.edit(record, Edit::Affiliate(changes), asker, key, cx);
            }
        }
    }

    /// Reads the last item, where new followers are given it.
    fn listen(&mut self, record: &Arc<TopicRecord>, asker: Asker, key: &TopicKey, cx: &mut Cx<'_>) {
        if !record.config.persist_items || record.config.send_last_published_item == SendLast::Never {
            let outcome = TopicOutcome::Listening { topic: record.id, last: None };
            return asker.answer(&key.name, Ok(outcome), cx);
        }
        self.hold();
        let step = Step::Listen { record: record.clone(), asker };
        self.ask(key, Items::newest(record.id, 1), step, cx);
    }

    /// A publication that only followers may make: the store is asked first whether the actor is one.
    fn look_up_standing(
        &mut self,
        record: Arc<TopicRecord>,
        actor: &Actor,
        op: TopicOp,
        asker: Asker,
        key: &TopicKey,
        cx: &mut Cx<'_>,
    ) {
        let (id, payload, operation) = match op {
            TopicOp::Publish { id, payload, operation } => (id, payload, operation),
            TopicOp::PublishIf { id, payload, .. } => (id, payload, None),
            TopicOp::PublishNothing { .. } => (None, NOTHING, None),
            _ => return asker.answer(&key.name, Err(Refusal::Forbidden), cx),
        };
        let Actor::Account(jid) = actor else {
            return asker.answer(&key.name, Err(Refusal::Forbidden), cx);
        };
        let draft = draft(actor, id, &payload, operation, cx);
        let local = jid.local().unwrap_or_default().into();
        self.hold();
        let question = IsSubscribed { topic: record.id, domain: key.domain, local };
        self.ask(key, question, Step::Standing { record, draft, asker }, cx);
    }

    /// Publishes an item.
    pub(super) fn publish(
        &mut self,
        record: &TopicRecord,
        draft: Draft,
        asker: Asker,
        key: &TopicKey,
        cx: &mut Cx<'_>,
    ) {
        let item = Item {
            topic: record.id,
            domain: key.domain,
            name: key.name.clone(),
            id: draft.id,
            publisher: draft.publisher,
            published: cx.now.unix,
            payload: draft.payload,
            revision: Revision::default(),
        };
        let keep = if record.config.persist_items { record.config.max_items } else { 0 };
        self.wrote();
        let bytes_max = cx.shard.settings.limits.topic_bytes;
        let question = Ask::from(Publish { item, keep, bytes_max });
        let question = match draft.operation {
            Some(operation) => question.once(operation),
            None => question,
        };
        self.ask(key, question, Step::Publish(draft.operation, asker), cx);
    }

    fn subscribe(
        &mut self,
        record: &TopicRecord,
        account: BareJid,
        actor: &Actor,
        asker: Asker,
        key: &TopicKey,
        cx: &mut Cx<'_>,
    ) {
        let Some(local) = self.local(&account) else {
            return asker.answer(&key.name, Err(Refusal::NotFound), cx);
        };
        self.wrote();
        let of_domain = self.policy(cx).subscriptions();
        let max = match actor {
            Actor::Provider => of_domain,
            Actor::Account(_) | Actor::Anyone => of_domain.min(cx.shard.settings.limits.topics_followed),
        };
        let question = Subscribe { topic: record.id, domain: key.domain, local, max, now: cx.now.unix };
        self.ask(key, question, Step::Subscribe(account, asker), cx);
    }

    pub(super) fn unsubscribe(
        &mut self,
        record: &TopicRecord,
        account: BareJid,
        asker: Option<Asker>,
        key: &TopicKey,
        cx: &mut Cx<'_>,
    ) {
        let Some(local) = self.local(&account) else {
            if let Some(asker) = asker {
                asker.answer(&key.name, Err(Refusal::NotSubscribed), cx);
            }
            return;
        };
        self.wrote();
        let question = Unsubscribe { topic: record.id, domain: key.domain, local };
        self.ask(key, question, Step::Unsubscribe(account, asker), cx);
    }

    /// The policy of the topic's domain.
    fn policy(&self, cx: &Cx<'_>) -> Policy {
        cx.shard.domains.named(&self.state.domain).map_or_else(Policy::default, |domain| domain.policy)
    }

    /// The local part of an account of the topic's domain.
    fn local(&self, account: &BareJid) -> Option<Box<str>> {
        account.local().filter(|_| account.domain() == &*self.state.domain).map(Into::into)
    }
}

/// What is published without an item.
const NOTHING: Payload = Payload::Xml(Bytes::new());

fn draft(
    actor: &Actor,
    id: Option<Box<str>>,
    payload: &Payload,
    operation: Option<OperationId>,
    cx: &mut Cx<'_>,
) -> Draft {
    let mut bytes = Vec::with_capacity(128);
    payload.write(&mut bytes);
    let publisher = match actor {
        Actor::Provider | Actor::Anyone => None,
        Actor::Account(jid) => Some(jid.bare()),
    };
    let id = id.unwrap_or_else(|| cx.shard.random.token().into());
    Draft { id, publisher, payload: bytes.into(), operation }
}
