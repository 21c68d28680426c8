//! At a shard with followers: items that did not come from their topic's home are read from the store, and told as if they had come.
//!
//! [`Subscribers`](crate::shard::Subscribers) says of which topics; this asks, for the newest item first, and for as many as are missing if that is not all.

use super::event_of;
use crate::model::{Item, TopicId, TopicRecord};
use crate::ports::Fault;
use crate::ports::store::items::Items;
use crate::ports::store::topics::Topic;
use crate::session::Cx;
use std::sync::Arc;

/// As many items of a topic are read, the newest, or those of so many bytes: who lacks more has a gap.
const ITEMS_MAX: u64 = 1000;
const BYTES_MAX: usize = 4 << 20;

/// What was lost is not older than this: a bus keeps less, and a node is buried sooner.
const LOST_MS: u64 = 60_000;

/// So often the topics that are followed here are read at most, however often something is lost.
const READ_EVERY_MS: u64 = 1000;

/// Records of another node were lost, or it died: what its topics had published may not have come here.
pub(crate) fn records_lost(cx: &mut Cx<'_>) {
    let now = cx.now.mono;
    let before = cx.shard.topics.records_lost.replace(now);
    match before.map(|at| at.plus(READ_EVERY_MS)).filter(|at| *at > now) {
        Some(at) => cx.shard.topics.subscribers.suspect_at(at),
        None => cx.shard.topics.subscribers.suspect(),
    }
    read_due(cx);
}

/// Whether that was a short time ago.
pub(super) fn is_after_loss(cx: &Cx<'_>) -> bool {
    cx.shard.topics.records_lost.is_some_and(|at| cx.now.mono.since(at) < LOST_MS)
}

/// Whether an item may be among what was lost.
pub(super) fn may_be_untold(item: &Item, cx: &Cx<'_>) -> bool {
    item.published.plus(2 * LOST_MS) > cx.now.unix
}

/// Reads the topics that are due, as many as may be read at a time.
pub(crate) fn read_due(cx: &mut Cx<'_>) {
    while let Some((topic, max)) = cx.shard.topics.subscribers.next_gap() {
        read(topic, max, cx);
    }
}

/// Topics may be due that the store could not read, or of which something was lost again.
pub(crate) fn tick(cx: &mut Cx<'_>) {
    if cx.shard.topics.subscribers.due().is_some_and(|at| at <= cx.now.mono) {
        cx.shard.topics.subscribers.tick(cx.now.mono);
        read_due(cx);
    }
}

fn read(topic: TopicId, max: u64, cx: &mut Cx<'_>) {
    let max = max.min(ITEMS_MAX);
    let question = Items { bytes_max: BYTES_MAX, ..Items::newest(topic, max as u32) };
    cx.ask(question, move |answer, _, cx| match answer.map(Option::unwrap_or_default) {
        Ok(items) => have(topic, max, items, cx),
        Err(_) => cannot(topic, cx),
    });
}

/// The store answered with a topic's newest items, at most `max`.
fn have(topic: TopicId, max: u64, mut items: Vec<Arc<Item>>, cx: &mut Cx<'_>) {
    let Some(heard) = cx.shard.topics.subscribers.heard(topic) else { return fill(topic, None, &[], cx) };
    if let (Some(newest), Some(oldest)) = (items.first(), items.last()) {
        let wanted = newest.revision.0.saturating_sub(heard.0).min(ITEMS_MAX);
        // A read that ends before what came here may have to reach further back.
        if oldest.revision.0 > heard.0 + 1 && items.len() as u64 == max && wanted > max {
            return read(topic, wanted, cx);
        }
    }
    items.retain(|item| item.revision > heard);
    let Some(newest) = items.first() else { return fill(topic, None, &[], cx) };
    // How they are shown is in the topic's record.
    let question = Topic { domain: newest.domain, name: (*newest.name).into() };
    cx.ask(question, move |answer: Result<Option<Box<TopicRecord>>, Fault>, _, cx| match answer {
        Ok(record) => fill(topic, record.filter(|record| record.id == topic).as_deref(), &items, cx),
        Err(_) => cannot(topic, cx),
    });
}

/// Tells followers of items, the newest of them first. Without a record the topic is gone.
fn fill(topic: TopicId, record: Option<&TopicRecord>, items: &[Arc<Item>], cx: &mut Cx<'_>) {
    let domain = record.and_then(|record| cx.shard.domains.numbered(record.domain)).cloned();
    let events = match (record, domain) {
        (Some(record), Some(domain)) => {
            items.iter().rev().map(|item| Arc::new(event_of(item, &record.config, &domain.name))).collect()
        }
        _ => Vec::new(),
    };
    cx.shard.counters.items_recovered += events.len() as u64;
    let settings = cx.shard.settings.clone();
    let pace = cx.shard.topics.subscribers.fill(topic, events, &settings.fanout);
    cx.count_backlog();
    if let Some(pace) = pace {
        cx.tell_pace(topic, pace);
    }
    read_due(cx);
}

fn cannot(topic: TopicId, cx: &mut Cx<'_>) {
    let now = cx.now.mono;
    cx.shard.topics.subscribers.cannot_fill(topic, now);
    read_due(cx);
}
