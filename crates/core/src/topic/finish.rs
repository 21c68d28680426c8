//! Ending an operation: from the store's answer to the outcome for the asker and the event for every shard.

use super::home::Home;
use super::step::{Draft, Step, done, found};
use super::{event_of, missed};
use crate::command::{Asker, Refusal, TopicOutcome};
use crate::event::{Entry, Kind};
use crate::message::ShardMessage;
use crate::model::{Change, OperationId, PubsubEvent, Retained, Revision, SendLast, TopicKey, TopicRecord};
use crate::ports::store::items::{ItemNames, Items, Publish};
use crate::ports::store::subscriptions::{
    IsSubscribed, Subscribe, SubscribeAnswer, Subscribers, Unsubscribe,
};
use crate::ports::store::topics::{CreateTopic, CreateTopicAnswer, DeleteTopic, TOPIC_PART_ROWS, Topic};
use crate::ports::{Answer, Fault, Missing, Question};
use crate::session::Cx;
use crate::shard::DomainQuota;
use carillon_wire::jid::BareJid;
use std::sync::Arc;

/// Ends an operation that only read; the topic may have been removed meanwhile. Gives back any other.
pub(super) fn read(step: Step, answer: Answer, name: &str, cx: &mut Cx<'_>) -> Option<(Step, Answer)> {
    let (asker, outcome) = match step {
        Step::Items(asker) => (asker, found(Items::answer(answer)).map(TopicOutcome::Items)),
        Step::ItemNames(asker) => {
            let names = found(ItemNames::answer(answer));
            (asker, names.map(|names| TopicOutcome::ItemNames { ids: names.ids, count: names.count }))
        }
        Step::Jids(asker) => {
            let jids = Subscribers::answer(answer).map_err(Refusal::Fault);
            (asker, jids.map(TopicOutcome::Jids))
        }
        step => return Some((step, answer)),
    };
    asker.answer(name, outcome, cx);
    None
}

impl Home {
    /// The store's answer to the question of a step.
    pub(super) fn answered(&mut self, step: Step, answer: Answer, key: &TopicKey, cx: &mut Cx<'_>) {
        match step {
            Step::Load => self.loaded(answer, key, cx),
            Step::LastItem(record) => self.tell_last(record, answer, cx),
            Step::Create { first, asker } => self.created(first, asker, answer, key, cx),
            Step::Standing { record, draft, asker } => {
                self.open(record.clone());
                match IsSubscribed::answer(answer) {
                    Ok(true) => self.publish(&record, draft, asker, key, cx),
                    Ok(false) => asker.answer(&key.name, Err(Refusal::Forbidden), cx),
                    Err(fault) => asker.answer(&key.name, Err(fault.into()), cx),
                }
            }
            Step::Look(editing) => self.looked(editing, answer, key, cx),
            Step::Edit(editing) => self.edited(editing, answer, key, cx),
            Step::Delete { record, asker } => self.deleted(record, asker, answer, key, cx),
            Step::Publish(operation, asker) => self.published(operation, asker, answer, key, cx),
            Step::Subscribe(account, asker) => self.subscribed(account, asker, answer, key, cx),
            Step::Unsubscribe(account, asker) => self.unsubscribed(account, asker, answer, key, cx),
            Step::Listen { record, asker } => self.listening(record, asker, answer, key, cx),
            Step::Items(_) | Step::ItemNames(_) | Step::Jids(_) => {}
        }
    }

    fn loaded(&mut self, answer: Answer, key: &TopicKey, cx: &mut Cx<'_>) {
        self.vanish();
        match Topic::answer(answer) {
            Ok(Some(record)) => {
                let record: Arc<TopicRecord> = Arc::from(record);
                self.open(record.clone());
                if record.config.persist_items && missed::is_after_loss(cx) {
                    self.hold();
                    self.ask(key, Items::newest(record.id, 1), Step::LastItem(record), cx);
                }
            }
            Ok(None) => {}
            Err(fault) => {
                for waiting in self.give_up(|_| false) {
                    waiting.asker.answer(&key.name, Err(fault.into()), cx);
                }
            }
        }
    }

    /// Records of a node were lost, or it died, a short time ago. What was published last may have been told to nobody, and the next item may take its
    /// place in the store before those who lack it have read it: so it is told again. Who has it is not given it.
    fn tell_last(&mut self, record: Arc<TopicRecord>, answer: Answer, cx: &mut Cx<'_>) {
        let last = Items::answer(answer).ok().flatten().and_then(|items| items.into_iter().next());
        if let Some(last) = last.filter(|last| missed::may_be_untold(last, cx)) {
            tell(event_of(&last, &record.config, &self.state.domain), cx);
        }
        self.open(record);
    }

    fn created(
        &mut self,
        first: Option<Draft>,
        asker: Asker,
        answer: Answer,
        key: &TopicKey,
        cx: &mut Cx<'_>,
    ) {
        self.vanish();
        let refusal = match CreateTopic::answer(answer) {
            Ok(CreateTopicAnswer::Created(record)) => {
                return self.begin(Arc::from(record), first, asker, key, cx);
            }
            Ok(CreateTopicAnswer::Exists) => {
                // Created elsewhere meanwhile.
                self.read_record(key, cx);
                Refusal::Exists
            }
            Ok(full @ (CreateTopicAnswer::Full | CreateTopicAnswer::DomainFull)) => {
                cx.shard.counters.domains.of(key.domain).refused.count(DomainQuota::Topics);
                let is_domain = matches!(full, CreateTopicAnswer::DomainFull);
                if is_domain { Refusal::DomainFull } else { Refusal::TooManyTopics }
            }
            Ok(CreateTopicAnswer::NoDomain) => Refusal::NotFound,
            Err(Fault::Unknown) => {
                self.read_record(key, cx);
                Fault::Unknown.into()
            }
            Err(fault) => fault.into(),
        };
        asker.answer(&key.name, Err(refusal), cx);
    }

    /// The topic was created.
    fn begin(
        &mut self,
        record: Arc<TopicRecord>,
        first: Option<Draft>,
        asker: Asker,
        key: &TopicKey,
        cx: &mut Cx<'_>,
    ) {
        self.open(record.clone());
        match first {
            Some(draft) => self.publish(&record, draft, asker, key, cx),
            None => asker.answer(&key.name, Ok(TopicOutcome::Record { record, created: true }), cx),
        }
    }

    fn published(
        &mut self,
        operation: Option<OperationId>,
        asker: Asker,
        answer: Answer,
        key: &TopicKey,
        cx: &mut Cx<'_>,
    ) {
        let record = self.known();
        let answer = found(Publish::answer(answer));
        self.written(matches!(answer, Err(Refusal::NotFound)));
        let (item, record) = match (answer, record) {
            (Ok(item), Some(record)) => (item, record),
            (answer, _) => {
                return asker.answer(&key.name, Err(answer.err().unwrap_or(Fault::Broken.into())), cx);
            }
        };
        if operation.is_some_and(|operation| !cx.shard.topics.told.note(operation)) {
            return asker.answer(&key.name, Ok(TopicOutcome::Published(item)), cx);
        }
        cx.shard.counters.published += 1;
        cx.shard.topics.figures.published(item.topic);
        cx.out.journal.note(cx.now.unix, Kind::Publish, || Entry::Publish {
            domain: &self.state.domain,
            topic: &item.name,
            item: &item.id,
        });
        let event = event_of(&item, &record.config, &self.state.domain);
        asker.answer(&key.name, Ok(TopicOutcome::Published(item)), cx);
        tell(event, cx);
    }

    fn subscribed(
        &mut self,
        account: BareJid,
        asker: Asker,
        answer: Answer,
        key: &TopicKey,
        cx: &mut Cx<'_>,
    ) {
        let record = self.known();
        self.written(false);
        let (new, last) = match Subscribe::answer(answer) {
            Ok(SubscribeAnswer::Subscribed { new, last }) => (new, last),
            Ok(SubscribeAnswer::Full) => {
                cx.shard.counters.domains.of(key.domain).refused.count(DomainQuota::Subscriptions);
                return asker.answer(&key.name, Err(Refusal::TooManySubscriptions), cx);
            }
            Ok(SubscribeAnswer::Missing) => return asker.answer(&key.name, Err(Refusal::NotFound), cx),
            Err(fault) => return asker.answer(&key.name, Err(fault.into()), cx),
        };
        let Some(record) = record else { return asker.answer(&key.name, Err(Fault::Broken.into()), cx) };
        let last = last.filter(|_| new && record.config.send_last_published_item != SendLast::Never);
        let at_login = record.config.is_given_at_login();
        let last = last.map(|item| {
            Arc::new(PubsubEvent::last_item(&item.shown(&record.config), &self.state.domain, at_login))
        });
        asker.answer(&key.name, Ok(TopicOutcome::Subscribed { new }), cx);
        // Of one that is not new the home was told, and with the last item.
        if new {
            let at = cx.shard.directory.account(account.as_str());
            cx.post(at, ShardMessage::Subscribed { account, topic: record.id, last });
        }
    }

    fn unsubscribed(
        &mut self,
        account: BareJid,
        asker: Option<Asker>,
        answer: Answer,
        key: &TopicKey,
        cx: &mut Cx<'_>,
    ) {
        let record = self.known();
        self.written(false);
        let result = match (Unsubscribe::answer(answer), record) {
            (Ok(Ok(())), Some(record)) => {
                let at = cx.shard.directory.account(account.as_str());
                cx.post(at, ShardMessage::Unsubscribed { account, topic: record.id });
                Ok(TopicOutcome::Done)
            }
            (Ok(Ok(())), None) => Err(Fault::Broken.into()),
            (Ok(Err(Missing)), _) => Err(Refusal::NotSubscribed),
            (Err(fault), _) => Err(fault.into()),
        };
        if let Some(asker) = asker {
            asker.answer(&key.name, result, cx);
        }
    }

    fn listening(
        &mut self,
        record: Arc<TopicRecord>,
        asker: Asker,
        answer: Answer,
        key: &TopicKey,
        cx: &mut Cx<'_>,
    ) {
        let (topic, config) = (record.id, record.config.clone());
        let at_login = config.is_given_at_login();
        self.open(record);
        let newest = match found(Items::answer(answer)) {
            Ok(newest) => newest,
            Err(refusal) => return asker.answer(&key.name, Err(refusal), cx),
        };
        let last = newest
            .first()
            .map(|item| Arc::new(PubsubEvent::last_item(&item.shown(&config), &self.state.domain, at_login)));
        asker.answer(&key.name, Ok(TopicOutcome::Listening { topic, last }), cx);
    }

    fn deleted(
        &mut self,
        record: Arc<TopicRecord>,
        asker: Asker,
        answer: Answer,
        key: &TopicKey,
        cx: &mut Cx<'_>,
    ) {
        let answer = DeleteTopic::answer(answer);
        if let Ok(Ok(true)) = answer {
            let next = DeleteTopic { topic: record.id, rows_max: TOPIC_PART_ROWS };
            return self.ask(key, next, Step::Delete { record, asker }, cx);
        }
        self.vanish();
        match done(answer.map(|removed| removed.map(drop))) {
            Ok(()) => {
                asker.answer(&key.name, Ok(TopicOutcome::Done), cx);
                self.tell_change(&record, Change::Deleted, Revision::default(), Retained::Nothing, cx);
            }
            Err(refusal) => {
                match refusal {
                    Refusal::Fault(Fault::Unknown) => self.read_record(key, cx),
                    Refusal::Fault(_) => self.open(record),
                    _ => {}
                }
                asker.answer(&key.name, Err(refusal), cx);
            }
        }
    }

    /// Sends every shard a change, unless it changes nothing for any.
    pub(super) fn tell_change(
        &self,
        record: &TopicRecord,
        event: Change<'_>,
        known: Revision,
        retained: Retained,
        cx: &mut Cx<'_>,
    ) {
        if matches!((event, &retained), (Change::Silent, Retained::Unchanged)) {
            return;
        }
        let id = cx.shard.random.token();
        tell(
            PubsubEvent::changed(record, &self.state.domain, event, known, retained, (&id, cx.now.unix)),
            cx,
        );
    }
}

/// Sends every shard an event, for its sessions that follow the topic.
fn tell(event: PubsubEvent, cx: &mut Cx<'_>) {
    let event = Arc::new(event);
    cx.post_all(|| ShardMessage::Publication(event.clone()));
}
