//! Items.

use super::ground::*;
use carillon_core::model::*;
use carillon_core::ports::Store;
use std::sync::Arc;

fn items(store: &dyn Store, topic: TopicId, ids: &[&str], max: u32) -> Vec<Arc<Item>> {
    let ids = ids.iter().map(|id| Box::from(*id)).collect();
    let question = Items { topic, ids, from: ItemsFrom::Newest, max, bytes_max: usize::MAX };
    answer!(ask(store, question), Some(items) => items)
}

pub(super) fn are_kept_newest_first(store: &dyn Store) {
    let domain = domain(store);
    let news = topic(store, domain, "news");
    assert!(item_ids(store, news).is_empty());
    let mut sent = Item { publisher: Some(jid("alice@example.org")), ..item(news, domain, "news", "1") };
    sent.payload = bytes::Bytes::from_static(b"\x00<any/>\xff");
    let first = answer!(ask(store, Publish { item: sent.clone(), keep: 10, bytes_max: u64::MAX }), Some(item) => item);
    assert_eq!(*first, Item { revision: first.revision, ..sent });
    let second = publish(store, news, domain, "2", 10);
    assert_eq!(items(store, news, &[], 10), [second.clone(), first.clone()]);
    assert_eq!(items(store, news, &[], 1), [second]);
    assert!(items(store, news, &[], 0).is_empty());
}

pub(super) fn replace_those_of_their_id(store: &dyn Store) {
    let domain = domain(store);
    let news = topic(store, domain, "news");
    publish(store, news, domain, "1", 10);
    publish(store, news, domain, "2", 10);
    let again = publish(store, news, domain, "1", 10);
    assert_eq!(item_ids(store, news), ["1", "2"].map(Box::from), "what is published again is the newest");
    assert_eq!(items(store, news, &["1"], 0), [again]);
}

pub(super) fn are_bounded(store: &dyn Store) {
    let domain = domain(store);
    let news = topic(store, domain, "news");
    for n in 0..6 {
        publish(store, news, domain, &n.to_string(), 3);
    }
    assert_eq!(item_ids(store, news), ["5", "4", "3"].map(Box::from));
    publish(store, news, domain, "4", 3);
    assert_eq!(item_ids(store, news), ["4", "5", "3"].map(Box::from), "replacing one pushes none out");
    publish(store, news, domain, "6", 1);
    assert_eq!(item_ids(store, news), ["6"].map(Box::from));
}

pub(super) fn not_kept_are_only_numbered(store: &dyn Store) {
    let domain = domain(store);
    let news = topic(store, domain, "news");
    let kept = publish(store, news, domain, "1", 1);
    let passing = publish(store, news, domain, "2", 0);
    assert!(passing.revision >= kept.revision);
    assert_eq!(item_ids(store, news), ["1"].map(Box::from));
}

pub(super) fn are_found_by_id(store: &dyn Store) {
    let domain = domain(store);
    let news = topic(store, domain, "news");
    for id in ["a", "b", "c"] {
        publish(store, news, domain, id, 10);
    }
    let ids = |ids: &[&str]| items(store, news, ids, 0).iter().map(|i| i.id.to_string()).collect::<Vec<_>>();
    assert_eq!(ids(&["a", "c", "x"]), ["c", "a"], "newest first, and no word of those that are not there");
    assert_eq!(ids(&["b", "b"]), ["b"]);
    assert!(ids(&["A"]).is_empty());
}

/// Ids are as long as a stanza lets them be, and of letters that nothing compresses.
pub(super) fn have_ids_of_any_length(store: &dyn Store) {
    let domain = domain(store);
    let news = topic(store, domain, "news");
    let long = |seed: u32| -> String {
        let next = |n: &u32| Some(n.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
        std::iter::successors(Some(seed), next)
            .take(9000)
            .map(|n| char::from(b'0' + (n >> 25) as u8 % 75))
            .collect()
    };
    let (one, other) = (long(1), long(2));
    publish(store, news, domain, &one, 10);
    publish(store, news, domain, &other, 10);
    let again = publish(store, news, domain, &one, 10);
    assert_eq!(item_ids(store, news), [&*one, &*other].map(Box::from), "what is published again is replaced");
    assert_eq!(items(store, news, &[&one], 0), [again]);
    let from = ItemsFrom::After((&*one).into());
    let question = Items { topic: news, ids: Vec::new(), from, max: 10, bytes_max: usize::MAX };
    let behind = answer!(ask(store, question), Some(items) => items);
    assert_eq!(behind.iter().map(|item| &*item.id).collect::<Vec<_>>(), [&*other]);
    done(store, Retract { topic: news, item: (&*one).into() });
    assert_eq!(item_ids(store, news), [&*other].map(Box::from));
}

pub(super) fn come_page_by_page(store: &dyn Store) {
    let domain = domain(store);
    let news = topic(store, domain, "news");
    for n in 0..6 {
        publish(store, news, domain, &n.to_string(), 10);
    }
    let (after, before) = (|id: &str| ItemsFrom::After(id.into()), |id: &str| ItemsFrom::Before(id.into()));
    for (from, max, expected) in [
        (ItemsFrom::Newest, 2, vec!["5", "4"]),
        (after("4"), 2, vec!["3", "2"]),
        (after("0"), 2, vec![]),
        (before("2"), 2, vec!["4", "3"]),
        (before("5"), 2, vec![]),
        (ItemsFrom::Oldest, 2, vec!["1", "0"]),
        (ItemsFrom::Newest, 0, vec![]),
    ] {
        let page = Items { topic: news, ids: Vec::new(), from: from.clone(), max, bytes_max: usize::MAX };
        let items = answer!(ask(store, page), Some(items) => items);
        assert_eq!(items.iter().map(|item| &*item.id).collect::<Vec<_>>(), expected, "{from:?}");
        let (ids, count) = answer!(
            ask(store, ItemNames { topic: news, from: from.clone(), max }),
            Some(ItemNamesAnswer { ids, count }) => (ids, count)
        );
        assert_eq!((ids.iter().map(|id| &**id).collect::<Vec<_>>(), count), (expected, 6), "{from:?}");
    }
    for from in [after("x"), before("x")] {
        let page = Items { topic: news, ids: Vec::new(), from: from.clone(), max: 2, bytes_max: usize::MAX };
        missing(store, page);
        missing(store, ItemNames { topic: news, from, max: 2 });
    }
}

pub(super) fn are_bounded_by_bytes(store: &dyn Store) {
    let domain = domain(store);
    let news = topic(store, domain, "news");
    for n in 0..5 {
        let payload = vec![b'x'; 1000].into();
        let item = Item { payload, ..item(news, domain, "news", &n.to_string()) };
        answer!(ask(store, Publish { item, keep: 10, bytes_max: u64::MAX }), Some(_) => ());
    }
    let all: Vec<Box<str>> = (0..5).map(|n| n.to_string().into()).collect();
    for ids in [Vec::new(), all] {
        for (bytes_max, count) in [(0, 1), (999, 1), (1000, 1), (2999, 2), (3000, 3), (9000, 5)] {
            let question =
                Items { topic: news, ids: ids.clone(), from: ItemsFrom::Newest, max: 10, bytes_max };
            let items = answer!(ask(store, question), Some(items) => items);
            let expected: Vec<String> = (5 - count..5).rev().map(|n: usize| n.to_string()).collect();
            assert_eq!(items.iter().map(|item| item.id.to_string()).collect::<Vec<_>>(), expected);
        }
    }
}

pub(super) fn are_retracted(store: &dyn Store) {
    let domain = domain(store);
    let news = topic(store, domain, "news");
    let retract = |id: &str| Retract { topic: news, item: id.into() };
    missing(store, retract("1"));
    publish(store, news, domain, "1", 10);
    publish(store, news, domain, "2", 10);
    done(store, retract("1"));
    missing(store, retract("1"));
    assert_eq!(item_ids(store, news), ["2"].map(Box::from));
    missing(store, Retract { topic: TopicId(999), item: "2".into() });
    for n in 3..6 {
        publish(store, news, domain, &n.to_string(), 3);
    }
    assert_eq!(item_ids(store, news), ["5", "4", "3"].map(Box::from), "the bound counts what is there");
}

pub(super) fn are_purged(store: &dyn Store) {
    let domain = domain(store);
    let (news, other) = (topic(store, domain, "news"), topic(store, domain, "other"));
    for topic in [news, other] {
        publish(store, topic, domain, "1", 10);
    }
    assert!(!ask(store, Purge { topic: news, items_max: u32::MAX }));
    assert!(!ask(store, Purge { topic: news, items_max: u32::MAX }));
    assert!(item_ids(store, news).is_empty());
    assert_eq!(item_ids(store, other).len(), 1);
    publish(store, news, domain, "2", 1);
    assert_eq!(item_ids(store, news), ["2"].map(Box::from));
}

pub(super) fn are_purged_in_parts(store: &dyn Store) {
    let domain = domain(store);
    let news = topic(store, domain, "news");
    for id in ["1", "2", "3", "4", "5"] {
        publish(store, news, domain, id, 10);
    }
    let part = || ask(store, Purge { topic: news, items_max: 2 });
    assert!(part());
    let left = item_ids(store, news);
    assert_eq!(left[..3], ["5", "4", "3"].map(Box::from), "the oldest go first");
    while part() {}
    assert!(item_ids(store, news).is_empty());
}

/// The oldest go, whatever took their room: a new item, one in the place of another, and what was removed makes room again.
pub(super) fn are_bounded_in_bytes(store: &dyn Store) {
    let domain = domain(store);
    let news = topic(store, domain, "news");
    let publish = |id: &str, len: usize| {
        let item = Item { payload: vec![b'x'; len].into(), ..item(news, domain, "news", id) };
        answer!(ask(store, Publish { item, keep: 10, bytes_max: 1000 }), Some(_) => ());
    };
    for (id, len) in [("1", 299), ("2", 299), ("3", 299)] {
        publish(id, len);
    }
    assert_eq!(item_ids(store, news), ["3", "2", "1"].map(Box::from));
    publish("4", 399);
    assert_eq!(item_ids(store, news), ["4", "3", "2"].map(Box::from), "1,000 bytes");
    publish("3", 300);
    assert_eq!(item_ids(store, news), ["3", "4"].map(Box::from), "one byte too many");
    done(store, Retract { topic: news, item: "4".into() });
    publish("5", 698);
    assert_eq!(item_ids(store, news), ["5", "3"].map(Box::from));
    publish("6", 5000);
    assert_eq!(item_ids(store, news), ["6"].map(Box::from), "the last one stays");
    assert!(!ask(store, Purge { topic: news, items_max: u32::MAX }));
    publish("7", 500);
    publish("8", 498);
    assert_eq!(item_ids(store, news), ["8", "7"].map(Box::from));
}

pub(super) fn have_ever_higher_revisions(store: &dyn Store) {
    let domain = domain(store);
    let (news, other) = (topic(store, domain, "news"), topic(store, domain, "other"));
    // Asked together, so that they may well share a commit.
    let waiting: Vec<_> = (0..100)
        .map(|n| {
            let topic = if n % 2 == 0 { news } else { other };
            let item = item(topic, domain, "news", &n.to_string());
            asked(store, Publish { item, keep: n % 3 * 5, bytes_max: u64::MAX })
        })
        .collect();
    let revisions: Vec<Revision> =
        waiting.iter().map(|receiver| answer!(waited(receiver), Some(item) => item.revision)).collect();
    for first in [0, 1] {
        let of_one: Vec<_> = revisions.iter().skip(first).step_by(2).collect();
        assert!(of_one.is_sorted_by(|a, b| a < b), "{of_one:?}");
    }
}

/// A revision that a change of the topic has made is given to no item.
pub(super) fn show_every_change_by_the_revision(store: &dyn Store) {
    let domain = domain(store);
    let (news, other) = (topic(store, domain, "news"), topic(store, domain, "other"));
    let mut last = publish(store, news, domain, "0", 10).revision;
    let mut next = |id: &str| {
        let revision = publish(store, news, domain, id, 10).revision;
        let between = revision.0 - last.0 - 1;
        last = revision;
        between
    };
    assert_eq!(next("1"), 0, "one after the other");
    publish(store, other, domain, "1", 10);
    assert_eq!(next("2"), 0, "another topic is not counted");
    publish(store, news, domain, "passing", 0);
    assert_eq!(next("3"), 1, "an item that is not kept");
    done(store, Retract { topic: news, item: "1".into() });
    assert_eq!(next("4"), 1, "an item that is retracted");
    missing(store, Retract { topic: news, item: "1".into() });
    assert_eq!(next("5"), 0, "nothing");
    assert!(!ask(store, Purge { topic: news, items_max: u32::MAX }));
    assert_eq!(next("6"), 1, "all items");
    done(
        store,
        ConfigureTopic {
            topic: news,
            config: TopicConfig { max_items: 5, ..TopicConfig::default() },
            items_max: u32::MAX,
        },
    );
    assert_eq!(next("7"), 1, "another configuration");
    let changes = vec![(jid("alice@example.org"), Affiliation::Owner)];
    done(store, SetAffiliations { topic: news, changes });
    assert_eq!(next("8"), 1, "an affiliation");
}

/// Whoever has read a topic up to a revision has missed nothing below it, however many publish at once: what commits later has
/// a higher one.
pub(super) fn are_seen_in_the_order_of_their_revisions(store: &dyn Store) {
    const WRITERS: usize = 4;
    const EACH: usize = 60;
    let domain = domain(store);
    let news = topic(store, domain, "news");
    let (mut cursor, mut seen) = (Revision(0), Vec::new());
    let mut read_on = || {
        let found = items(store, news, &[], 1000);
        seen.extend(found.iter().rev().filter(|item| item.revision > cursor).map(|item| item.id.clone()));
        cursor = found.first().map_or(cursor, |newest| newest.revision);
    };
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                scope.spawn(move || {
                    (0..EACH)
                        .for_each(|n| drop(publish(store, news, domain, &format!("{writer}-{n}"), 1000)));
                })
            })
            .collect();
        while writers.iter().any(|writer| !writer.is_finished()) {
            read_on();
        }
    });
    read_on();
    seen.sort_unstable();
    let mut all: Vec<Box<str>> =
        (0..WRITERS).flat_map(|writer| (0..EACH).map(move |n| format!("{writer}-{n}").into())).collect();
    all.sort_unstable();
    assert_eq!(seen, all);
}

pub(super) fn of_no_topic(store: &dyn Store) {
    let domain = domain(store);
    for keep in [0, 1] {
        missing(store, Publish { item: item(TopicId(9), domain, "news", "1"), keep, bytes_max: u64::MAX });
    }
    assert!(item_ids(store, TopicId(9)).is_empty());
}
