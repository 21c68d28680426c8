//! Items that topics keep.

#![expect(missing_docs, reason = "the sentence of a question says what its fields are")]

use super::Missing;
use super::question::questions;
use crate::model::{Item, ItemsFrom, TopicId};
use std::sync::Arc;

questions! {
    Items,
    reads {
        Items => Option<Vec<Arc<Item>>>,
        ItemNames => Option<ItemNamesAnswer>,
    }
    writes {
        Purge => bool,
    }
    once {
        Publish => Option<Arc<Item>>,
        Retract => Result<(), Missing>,
    }
}

/// Kept items, newest first: those of `ids`, or if that is empty at most `max` from `from` on. None when the item that `from`
/// names does not exist. No further item is read once the payloads have more than `bytes_max`; one always is.
#[derive(Clone, Debug)]
pub struct Items {
    pub topic: TopicId,
    pub ids: Vec<Box<str>>,
    pub from: ItemsFrom,
    pub max: u32,
    pub bytes_max: usize,
}

impl Items {
    /// The newest items of a topic.
    pub fn newest(topic: TopicId, max: u32) -> Items {
        Items { topic, ids: Vec::new(), from: ItemsFrom::Newest, max, bytes_max: usize::MAX }
    }
}

/// The ids of kept items, chosen as by [`Items`] without `ids`; no payload is read.
#[derive(Clone, Debug)]
pub struct ItemNames {
    pub topic: TopicId,
    pub from: ItemsFrom,
    pub max: u32,
}

/// What [`ItemNames`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemNamesAnswer {
    /// The ids, newest first.
    pub ids: Vec<Box<str>>,
    /// How many items the topic has.
    pub count: u32,
}

/// Publishes an item and returns it with its revision, the topic's next; none if there is no such topic. Kept when `keep` is
/// not 0: then an item with the same id is replaced, and the oldest items over `keep`, or over `bytes_max` bytes of ids and payloads, are
/// removed; never this one. `revision` in `item` is ignored.
#[derive(Clone, Debug)]
pub struct Publish {
    pub item: Item,
    pub keep: u32,
    pub bytes_max: u64,
}

/// Removes an item.
#[derive(Clone, Debug)]
pub struct Retract {
    pub topic: TopicId,
    pub item: Box<str>,
}

/// Removes the oldest items of a topic, at most `items_max`; whether it has more.
#[derive(Clone, Debug)]
pub struct Purge {
    pub topic: TopicId,
    pub items_max: u32,
}

/// What [`Purge::items_max`] is, unless there is a reason: other writes wait for some milliseconds.
pub const PURGED_MAX: u32 = 1024;
