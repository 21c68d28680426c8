//! Sessions that a dead node left are given what was published while they were nowhere: the items that the store has beyond the last one that
//! each was given. A topic is read once for all sessions of a shard; what is published meanwhile is held back, so that it comes behind.

use super::follow::{ask, give_last};
use crate::feature_state::pubsub::{Following, Read, Reading, Stage};
use crate::model::{Item, PubsubEvent, TopicId, TopicRecord};
use crate::ports::Fault;
use crate::ports::store::items::Items;
use crate::ports::store::topics::Topic;
use crate::session::{BoundSession, Cx, Sessions};
use crate::shard::Names;
use std::sync::Arc;

/// As many items of a topic are read, the newest, or those of so many bytes: who lacks more has a gap.
const ITEMS_MAX: u32 = 1000;
const BYTES_MAX: usize = 1 << 20;

/// A topic that the store could not read is asked for again after this time.
const AGAIN_MS: u64 = 1000;

/// A session came from another process: it follows its topics here, too. One that a dead node left was among no followers meanwhile.
pub(super) fn restored(session: &mut BoundSession, _names: &mut Names, cx: &mut Cx<'_>) {
    for followed in &mut session.topics {
        followed.position = cx.shard.topics.subscribers.add(followed.topic, session.id.slot, None);
    }
    let is_adopted = session.resumption.as_ref().is_some_and(|resumption| resumption.is_adopted);
    if is_adopted || session.state.pubsub.following == Following::Behind {
        begin(session, cx);
    } else if session.state.pubsub.following != Following::Known {
        ask(session, cx);
    }
}

/// A session is behind from now on. It is among the followers of its topics already.
fn begin(session: &mut BoundSession, cx: &mut Cx<'_>) {
    session.state.pubsub.following = Following::Behind;
    let topics: Vec<TopicId> = session.topics.iter().map(|followed| followed.topic).collect();
    for topic in &topics {
        let reading = cx.features.pubsub.topics.entry(*topic).or_default();
        reading.sessions += 1;
        if matches!(reading.stage, Stage::Due) {
            read(*topic, cx);
        }
    }
    let missed = &mut cx.features.pubsub;
    missed.sessions.push_back((session.id, topics));
    missed.has_news = true;
}

fn read(topic: TopicId, cx: &mut Cx<'_>) {
    let Some(reading) = cx.features.pubsub.topics.get_mut(&topic) else { return };
    reading.stage = Stage::Asked;
    let items = Items { bytes_max: BYTES_MAX, ..Items::newest(topic, ITEMS_MAX) };
    cx.ask(items, move |answer, _, cx| match answer.map(Option::unwrap_or_default) {
        Ok(items) => have_items(topic, items, cx),
        Err(_) => cannot(topic, cx),
    });
}

/// The store answered with a topic's items. How they are shown is in the topic's record.
fn have_items(topic: TopicId, items: Vec<Arc<Item>>, cx: &mut Cx<'_>) {
    let Some(newest) = items.first() else { return have(topic, Read::default(), cx) };
    let ask = Topic { domain: newest.domain, name: (*newest.name).into() };
    cx.ask(ask, move |answer: Result<Option<Box<TopicRecord>>, Fault>, _, cx| match answer {
        Ok(record) => {
            let record = record.filter(|record| record.id == topic);
            let read = record.map(|record| shown(&record, &items, cx)).unwrap_or_default();
            have(topic, read, cx);
        }
        Err(_) => cannot(topic, cx),
    });
}

/// Items, the newest of them first, as followers are shown them.
fn shown(record: &TopicRecord, items: &[Arc<Item>], cx: &mut Cx<'_>) -> Read {
    let Some(domain) = cx.shard.domains.numbered(record.domain).map(|domain| domain.name.clone()) else {
        return Read::default();
    };
    let event = |item: &Arc<Item>, at_login| {
        Arc::new(PubsubEvent::last_item(&item.shown(&record.config), &domain, at_login))
    };
    let Some(newest) = items.first() else { return Read::default() };
    if record.config.is_given_at_login() {
        // For sessions that are not available yet.
        cx.shard.topics.subscribers.learn(event(newest, true));
    }
    let shown = items.iter().rev().map(|item| (item.clone(), event(item, false)));
    Read { items: shown.collect(), newest: newest.revision }
}

fn have(topic: TopicId, read: Read, cx: &mut Cx<'_>) {
    let missed = &mut cx.features.pubsub;
    let Some(reading) = missed.topics.get_mut(&topic) else { return };
    if matches!(reading.stage, Stage::Outdated) {
        return self::read(topic, cx);
    }
    reading.stage = Stage::Read(read);
    missed.has_news = true;
}

/// The store cannot answer: it is asked again, and what is published is held back.
fn cannot(topic: TopicId, cx: &mut Cx<'_>) {
    let missed = &mut cx.features.pubsub;
    if let Some(reading) = missed.topics.get_mut(&topic) {
        reading.stage = Stage::Due;
        missed.again = Some(cx.now.mono.plus(AGAIN_MS));
    }
}

/// Asks for the topics that are due.
pub(super) fn tick(cx: &mut Cx<'_>) {
    if cx.features.pubsub.again.is_none_or(|at| at > cx.now.mono) {
        return;
    }
    let missed = &mut cx.features.pubsub;
    missed.again = None;
    let due = missed.topics.iter().filter(|(_, reading)| matches!(reading.stage, Stage::Due));
    let due: Vec<TopicId> = due.map(|(topic, _)| *topic).collect();
    for topic in due {
        read(topic, cx);
    }
}

/// Gives the sessions whose topics have been read what they lack, about `max` items.
pub(super) fn walk(max: usize, sessions: &mut Sessions, cx: &mut Cx<'_>) -> bool {
    let mut left = max;
    let mut unread = cx.features.pubsub.sessions.len();
    while cx.features.pubsub.has_news && unread > 0 && left > 0 {
        let Some((id, topics)) = cx.features.pubsub.sessions.pop_front() else { break };
        unread -= 1;
        if let Some(session) = sessions.bound(id) {
            if !cx.features.pubsub.has_read(&topics) {
                cx.features.pubsub.sessions.push_back((id, topics));
                continue;
            }
            left = left.saturating_sub(1 + give(session, &topics, cx));
        }
        cx.features.pubsub.release(&topics);
    }
    let missed = &mut cx.features.pubsub;
    missed.has_news &= unread > 0;
    missed.has_news
}

/// Gives a session what it lacks of these topics. How many items that were.
fn give(session: &mut BoundSession, topics: &[TopicId], cx: &mut Cx<'_>) -> usize {
    let mut given = 0;
    for topic in topics {
        let Some(Reading { stage: Stage::Read(read), held, .. }) = cx.features.pubsub.topics.get(topic)
        else {
            continue;
        };
        let Ok(at) = session.topics.binary_search_by_key(topic, |followed| followed.topic) else { continue };
        let Some(followed) = session.topics.get(at) else { continue };
        let lacks = read.items.iter().filter(|(item, _)| followed.lacks(item, session.since));
        let is_due = |event: &&Arc<PubsubEvent>| {
            !event.is_item() || (event.revision() > read.newest && followed.is_newer(event.revision()))
        };
        let held = held.iter().filter(is_due);
        let (newest, due): (_, Vec<_>) =
            (read.newest, lacks.map(|(_, event)| event).chain(held).cloned().collect());
        cx.shard.topics.subscribers.note_given(*topic, session.id.slot, newest);
        let is_available = session.presence.is_available();
        for event in due.iter().filter(|event| is_available && event.is_told()) {
            if event.is_item() {
                give_last(session, event, cx);
            } else {
                session.notify(event, cx);
            }
        }
        given += due.len();
        if let Some(followed) = session.topics.get_mut(at) {
            due.iter()
                .filter(|event| event.is_item())
                .for_each(|event| followed.note_given(event.revision()));
            followed.note_given(newest);
        }
    }
    // The account may have begun or ended to follow others meanwhile.
    ask(session, cx);
    given
}
