//! The items of topics.

use super::{Committed, answers, tables};
use crate::model::{Item, ItemsFrom};
use crate::ports::Missing;
use crate::ports::store::items::{ItemNames, ItemNamesAnswer, Items, Publish, Purge, Retract};
use std::sync::Arc;

answers! {
    Items => read;
    ItemNames => names;
    Publish => publish;
    Retract => retract;
    Purge => purge;
}

fn publish(store: &mut Committed, asked: &Publish) -> Option<Arc<Item>> {
    let topic = store.topics.get_mut(&asked.item.topic)?;
    let revision = topic.advance();
    let item = Arc::new(Item { revision, ..asked.item.clone() });
    if asked.keep > 0 {
        topic.items.retain(|_, kept| kept.id != item.id);
        topic.items.insert(revision, item.clone());
        topic.trim(asked.keep);
        let bytes = |item: &Arc<Item>| (item.id.len() + item.payload.len()) as u64;
        while topic.items.len() > 1 && topic.items.values().map(bytes).sum::<u64>() > asked.bytes_max {
            topic.items.pop_first();
        }
    }
    Some(item)
}

fn retract(store: &mut Committed, asked: &Retract) -> Result<(), Missing> {
    let topic = store.topics.get_mut(&asked.topic).ok_or(Missing)?;
    let revision = topic.item(&asked.item).ok_or(Missing)?.revision;
    topic.items.remove(&revision);
    topic.advance();
    Ok(())
}

/// One item at a time, unless they are asked for as a whole, so that whoever asks is seen to go on.
fn purge(store: &mut Committed, asked: &Purge) -> bool {
    let Some(topic) = store.topics.get_mut(&asked.topic) else { return false };
    if !topic.items.is_empty() {
        match asked.items_max {
            u32::MAX => topic.items.clear(),
            _ => drop(topic.items.pop_first()),
        }
        topic.advance();
    }
    !topic.items.is_empty()
}

fn read(store: &Committed, asked: &Items) -> Option<Vec<Arc<Item>>> {
    let Some(topic) = store.topics.get(&asked.topic) else {
        return matches!(asked.from, ItemsFrom::Newest | ItemsFrom::Oldest).then(Vec::new);
    };
    let (mut bytes, mut count) = (0, 0);
    let mut fits = |item: &Arc<Item>| {
        (bytes, count) = (bytes + item.payload.len(), count + 1);
        count == 1 || bytes <= asked.bytes_max
    };
    if !asked.ids.is_empty() {
        let named = topic.items.values().rev().filter(|item| asked.ids.contains(&item.id));
        return Some(named.take_while(|item| fits(item)).cloned().collect());
    }
    let mut stretch = stretch(topic, &asked.from, asked.max)?;
    let kept = stretch.items.iter().take_while(|item| fits(item)).count();
    stretch.items.truncate(kept);
    Some(stretch.newest_first())
}

fn names(store: &Committed, asked: &ItemNames) -> Option<ItemNamesAnswer> {
    let Some(topic) = store.topics.get(&asked.topic) else {
        let has_none = matches!(asked.from, ItemsFrom::Newest | ItemsFrom::Oldest);
        return has_none.then(|| ItemNamesAnswer { ids: Vec::new(), count: 0 });
    };
    let items = stretch(topic, &asked.from, asked.max)?.newest_first();
    let ids = items.into_iter().map(|item| item.id.clone()).collect();
    Some(ItemNamesAnswer { ids, count: topic.items.len() as u32 })
}

/// Items of a topic, in the order in which they are read.
struct Stretch {
    items: Vec<Arc<Item>>,
    is_backward: bool,
}

/// At most `max` items; none when the item that `from` names is not there.
fn stretch(topic: &tables::Topic, from: &ItemsFrom, max: u32) -> Option<Stretch> {
    let max = max as usize;
    let backward = |items: Vec<Arc<Item>>| Stretch { items, is_backward: true };
    let forward = |items: Vec<Arc<Item>>| Stretch { items, is_backward: false };
    Some(match from {
        ItemsFrom::Newest => backward(topic.items.values().rev().take(max).cloned().collect()),
        ItemsFrom::Oldest => forward(topic.items.values().take(max).cloned().collect()),
        ItemsFrom::After(id) => {
            let bound = topic.item(id)?.revision;
            backward(topic.items.range(..bound).rev().take(max).map(|(_, item)| item.clone()).collect())
        }
        ItemsFrom::Before(id) => {
            let bound = topic.item(id)?.revision;
            let newer = topic.items.range(bound..).skip(1);
            forward(newer.take(max).map(|(_, item)| item.clone()).collect())
        }
    })
}

impl Stretch {
    fn newest_first(mut self) -> Vec<Arc<Item>> {
        if !self.is_backward {
            self.items.reverse();
        }
        self.items
    }
}
