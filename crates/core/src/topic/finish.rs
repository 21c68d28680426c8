//! Ending an operation: from the store's answer to what the asker is told, and what every shard is.

use super::Key;
use super::home::{Draft, Home, Stage, Step, ask};
use crate::command::TopicOutcome;
use crate::command::{Asker, Refusal};
use crate::event::{Entry, Kind};
use crate::message::ShardMessage;
use crate::model::{Change, PubsubEvent, Retained};
use crate::model::{Revision, SendLast, TopicRecord};
use crate::node::home;
use crate::ports::{Answer, Ask};
use crate::session::Cx;
use carillon_wire::jid::BareJid;
use std::sync::Arc;

/// Ends an operation that only read, for which the topic need not be there any more. Gives back any other.
pub(super) fn read(step: Step, answer: &Answer, name: &str, cx: &mut Cx<'_>) -> Option<Step> {
    let (asker, outcome) = match (step, answer) {
        (Step::Items(asker), Answer::Items(items)) => (asker, Ok(TopicOutcome::Items(items.clone()))),
        (Step::Items(asker), Answer::ItemNames { ids, count }) => {
            (asker, Ok(TopicOutcome::ItemNames { ids: ids.clone(), count: *count }))
        }
        (Step::Jids(asker), Answer::Jids(jids)) => (asker, Ok(TopicOutcome::Jids(jids.clone()))),
        (Step::Items(asker) | Step::Jids(asker), other) => (asker, Err(Refusal::of(other))),
        (step, _) => return Some(step),
    };
    asker.answer(name, outcome, cx);
    None
}

impl Home {
    /// The store answered what was asked for in this step.
    pub(super) fn answered(&mut self, step: Step, answer: Answer, key: &Key, cx: &mut Cx<'_>) {
        match step {
            Step::Load => self.loaded(answer, key, cx),
            Step::Create { first, asker } => self.created(first, asker, answer, key, cx),
            Step::Standing { record, draft, asker } => {
                self.open(record.clone());
                match answer {
                    Answer::Done => self.publish(&record, draft, asker, key, cx),
                    Answer::Missing => asker.answer(&key.name, Err(Refusal::Forbidden), cx),
                    other => asker.answer(&key.name, Err(Refusal::of(&other)), cx),
                }
            }
            Step::Look(editing) => self.looked(editing, answer, key, cx),
            Step::Edit(editing) => self.edited(editing, &answer, key, cx),
            Step::Delete { record, asker } => self.deleted(record, asker, answer, key, cx),
            Step::Publish(asker) => self.published(asker, answer, key, cx),
            Step::Subscribe(account, asker) => self.subscribed(account, asker, answer, key, cx),
            Step::Unsubscribe(account, asker) => self.unsubscribed(account, asker, &answer, key, cx),
            Step::Listen { record, asker } => self.listening(record, asker, &answer, key, cx),
            Step::Items(_) | Step::Jids(_) => {}
        }
    }

    fn loaded(&mut self, answer: Answer, key: &Key, cx: &mut Cx<'_>) {
        self.stage = Stage::Absent;
        match answer {
            Answer::Topic(record) => self.open(Arc::from(record)),
            Answer::Missing => {}
            other => {
                for waiting in self.drain() {
                    waiting.asker.answer(&key.name, Err(Refusal::of(&other)), cx);
                }
            }
        }
    }

    fn created(&mut self, first: Option<Draft>, asker: Asker, answer: Answer, key: &Key, cx: &mut Cx<'_>) {
        let record: Arc<TopicRecord> = match answer {
            Answer::Topic(record) => Arc::from(record),
            Answer::Full => {
                self.stage = Stage::Absent;
                return asker.answer(&key.name, Err(Refusal::TooManyTopics), cx);
            }
            other => {
                self.stage = Stage::Absent;
                if let Answer::Exists = other {
                    // Created elsewhere meanwhile.
                    self.stage = Stage::Loading;
                    ask(key, Ask::Topic { domain: key.domain, name: (*key.name).into() }, Step::Load, cx);
                }
                return asker.answer(&key.name, Err(Refusal::of(&other)), cx);
            }
        };
        self.open(record.clone());
        match first {
            Some(draft) => self.publish(&record, draft, asker, key, cx),
            None => asker.answer(&key.name, Ok(TopicOutcome::Record { record, created: true }), cx),
        }
    }

    fn published(&mut self, asker: Asker, answer: Answer, key: &Key, cx: &mut Cx<'_>) {
        let record = self.record();
        self.written(matches!(answer, Answer::Missing));
        let (item, record) = match (answer, record) {
            (Answer::Published(item), Some(record)) => (item, record),
            (other, _) => return asker.answer(&key.name, Err(Refusal::of(&other)), cx),
        };
        cx.hub.counters.published += 1;
        cx.hub.topic_figures.published(item.topic);
        cx.out.journal.note(cx.now.unix, Kind::Publish, || Entry::Publish {
            domain: &self.domain,
            topic: &item.name,
            item: &item.id,
        });
        let retained = match record.config.is_given_at_login() {
            true => Retained::Last(Arc::new(PubsubEvent::last_item(&item, &self.domain, true))),
            false => Retained::Unchanged,
        };
        let notice = PubsubEvent::published(&item, &self.domain, retained);
        asker.answer(&key.name, Ok(TopicOutcome::Published(item)), cx);
        tell(notice, cx);
    }

    fn subscribed(&mut self, account: BareJid, asker: Asker, answer: Answer, key: &Key, cx: &mut Cx<'_>) {
        let record = self.record();
        self.written(false);
        let (new, last, record) = match (answer, record) {
            (Answer::Subscribed { new, last }, Some(record)) => (new, last, record),
            (Answer::Full, _) => return asker.answer(&key.name, Err(Refusal::TooManySubscriptions), cx),
            (other, _) => return asker.answer(&key.name, Err(Refusal::of(&other)), cx),
        };
        let last = last.filter(|_| new && record.config.send_last_published_item != SendLast::Never);
        let at_login = record.config.is_given_at_login();
        let last = last.map(|item| Arc::new(PubsubEvent::last_item(&item, &self.domain, at_login)));
        asker.answer(&key.name, Ok(TopicOutcome::Subscribed { new }), cx);
        // Of one that is not new the home was told, and with the last item.
        if new {
            let at = home(account.as_str(), cx.hub.shards);
            cx.post(at, ShardMessage::Subscribed { account, topic: record.id, last });
        }
    }

    fn unsubscribed(
        &mut self,
        account: BareJid,
        asker: Option<Asker>,
        answer: &Answer,
        key: &Key,
        cx: &mut Cx<'_>,
    ) {
        let record = self.record();
        self.written(false);
        let result = match (answer, record) {
            (Answer::Done, Some(record)) => {
                let at = home(account.as_str(), cx.hub.shards);
                cx.post(at, ShardMessage::Unsubscribed { account, topic: record.id });
                Ok(TopicOutcome::Done)
            }
            (Answer::Missing, _) => Err(Refusal::NotSubscribed),
            (other, _) => Err(Refusal::of(other)),
        };
        if let Some(asker) = asker {
            asker.answer(&key.name, result, cx);
        }
    }

    fn listening(
        &mut self,
        record: Arc<TopicRecord>,
        asker: Asker,
        answer: &Answer,
        key: &Key,
        cx: &mut Cx<'_>,
    ) {
        let (topic, at_login) = (record.id, record.config.is_given_at_login());
        self.open(record);
        let Answer::Items(newest) = answer else {
            return asker.answer(&key.name, Err(Refusal::of(answer)), cx);
        };
        let last = newest.first().map(|item| Arc::new(PubsubEvent::last_item(item, &self.domain, at_login)));
        asker.answer(&key.name, Ok(TopicOutcome::Listening { topic, last }), cx);
    }

    fn deleted(
        &mut self,
        record: Arc<TopicRecord>,
        asker: Asker,
        answer: Answer,
        key: &Key,
        cx: &mut Cx<'_>,
    ) {
        match answer {
            Answer::Done => {
                self.stage = Stage::Absent;
                asker.answer(&key.name, Ok(TopicOutcome::Done), cx);
                self.tell_change(&record, Change::Deleted, Revision::default(), Retained::Nothing, cx);
            }
            other => {
                match other {
                    Answer::Missing => self.stage = Stage::Absent,
                    _ => self.open(record),
                }
                asker.answer(&key.name, Err(Refusal::of(&other)), cx);
            }
        }
    }

    /// Tells every shard of a change, unless it means nothing to any.
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
        let id = cx.hub.random.token();
        tell(PubsubEvent::changed(record, &self.domain, event, known, retained, (&id, cx.now.unix)), cx);
    }

    fn record(&self) -> Option<Arc<TopicRecord>> {
        match &self.stage {
            Stage::Open { record, .. } => Some(record.clone()),
            Stage::Loading | Stage::Held | Stage::Absent => None,
        }
    }
}

/// Tells every shard, which tells those of its sessions that follow the topic.
fn tell(notice: PubsubEvent, cx: &mut Cx<'_>) {
    let notice = Arc::new(notice);
    cx.post_all(|| ShardMessage::Publication(notice.clone()));
}
