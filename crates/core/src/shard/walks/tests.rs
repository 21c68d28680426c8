//! Whose turn it is, and when a line is too long.

use super::*;
use crate::model::{DomainId, Item, Retained, Revision, UnixMs};

const BOUNDS: Fanout = Fanout { slice: 2, waiting_deliveries: 6, waiting_bytes: 1 << 20 };

fn event(topic: u32, id: &str) -> Arc<PubsubEvent> {
    let item = Item {
        topic: TopicId(topic),
        domain: DomainId(1),
        name: "t".into(),
        id: id.into(),
        publisher: None,
        published: UnixMs(1),
        payload: Default::default(),
        revision: Revision(1),
    };
    Arc::new(PubsubEvent::published(&item, "d", Retained::Unchanged))
}

fn walk(topic: u32, id: &str, followers: u32) -> Publication {
    Publication::new(event(topic, id), Arc::new((0..followers).collect()), 0)
}

/// The next slices: topic, item, and how many are given it.
fn given(walks: &mut Walks<Publication>, times: usize) -> Vec<(u32, String, usize)> {
    let next = |_| {
        let slice = Slice::from(walks.next(BOUNDS.slice, &BOUNDS)?);
        let (_, item) = slice.event.names().expect("an item");
        Some((slice.event.topic().0, item.to_owned(), slice.slots().len()))
    };
    (0..times).map_while(next).collect()
}

#[test]
fn topics_take_turns_and_each_keeps_its_order() {
    let mut walks = Walks::default();
    for id in ["a", "b"] {
        walks.push(walk(1, id, 3), &BOUNDS);
    }
    walks.push(walk(2, "c", 1), &BOUNDS);
    let turns = [(1, "a", 2), (2, "c", 1), (1, "a", 1), (1, "b", 2), (1, "b", 1)];
    let turns = turns.map(|(topic, item, n)| (topic, item.to_owned(), n));
    assert_eq!(given(&mut walks, 9), turns);
    assert!(walks.is_empty() && walks.lines.is_empty());
    assert_eq!(walks.backlog(), PendingFanout::default());
}

#[test]
fn a_line_that_is_too_long_is_told_once_and_its_end_once() {
    let mut walks = Walks::default();
    let pushed = ["a", "b", "c", "d"].map(|id| walks.push(walk(1, id, 3), &BOUNDS));
    assert_eq!(pushed, [false, false, true, false]);
    assert!(!walks.push(walk(2, "x", 3), &BOUNDS), "another topic's line is its own");
    let caught_up = |walks: &mut Walks<Publication>| walks.next(3, &BOUNDS).expect("some are left").caught_up;
    // 12 wait, and 3 of the other topic: at half the bound the line is short enough.
    let told: Vec<_> = (0..5).map(|_| caught_up(&mut walks)).collect();
    assert_eq!(told, [None, None, None, Some(TopicId(1)), None]);
    assert!(walks.is_empty());
}

#[test]
fn one_item_is_never_too_much() {
    let mut walks = Walks::default();
    assert!(!walks.push(walk(1, "a", 100), &BOUNDS));
    assert!(walks.push(walk(1, "b", 100), &BOUNDS), "a second one is");
}

#[test]
fn memory_is_bounded_over_all_topics() {
    let bounds = Fanout { waiting_bytes: 4 * bytes_of(&walk(1, "a", 1)), ..BOUNDS };
    let mut walks = Walks::default();
    let pushed = ["a", "b", "c", "d", "e"].map(|id| walks.push(walk(1, id, 1), &bounds));
    assert_eq!(pushed, [false, false, false, false, true]);
    // A topic that has nothing else waiting is not made to wait for another's line.
    assert!(!walks.push(walk(2, "x", 1), &bounds));
    assert!(walks.push(walk(2, "y", 1), &bounds));
    let told: Vec<_> =
        std::iter::from_fn(|| walks.next(1, &bounds)).filter_map(|slice| slice.caught_up).collect();
    assert_eq!(told.iter().filter(|topic| **topic == TopicId(2)).count(), 1);
    assert_eq!(told.len(), 2, "both catch up: {told:?}");
}

#[test]
fn who_is_passed_over_is_counted_all_the_same() {
    let mut walks = Walks::default();
    walks.push(walk(1, "a", 2), &BOUNDS);
    walks.pass_over(TopicId(1), 0, |_| true);
    assert_eq!(Slice::from(walks.next(2, &BOUNDS).expect("both")).slots(), [u32::MAX, 1]);
    assert_eq!(walks.backlog(), PendingFanout::default());
}
