//! Notices as bytes.

use crate::model::*;
use crate::model::{Change, PubsubEvent, Retained};
use crate::settings::Fanout;
use crate::shard::{IDLE_BYTES_MAX, Subscribers};
use carillon_wire::Framing;
use carillon_wire::jid::BareJid;
use std::sync::Arc;

fn item() -> Item {
    Item {
        topic: TopicId(7),
        domain: DomainId(1),
        name: "a<'&\">".into(),
        id: "<id>'".into(),
        publisher: Some(BareJid::new("p@d").unwrap()),
        published: UnixMs(1_795_167_000_125),
        payload: "<x xmlns='urn:x'/>".into(),
        revision: Revision(9),
    }
}

fn record() -> TopicRecord {
    TopicRecord {
        id: TopicId(7),
        domain: DomainId(1),
        name: "a&b".into(),
        config: TopicConfig::default(),
        affiliations: Vec::new(),
        created: UnixMs(0),
    }
}

fn written(event: &PubsubEvent, framing: Framing) -> String {
    let mut out = Vec::new();
    event.write(&mut out, "u@d/r'1", framing);
    String::from_utf8(out).unwrap()
}

fn changed(event: Change<'_>) -> PubsubEvent {
    PubsubEvent::changed(&record(), "d", event, Revision(9), Retained::Nothing, ("m", UnixMs(1)))
}

#[test]
fn an_item() {
    let event = PubsubEvent::published(&item(), "d", Retained::Unchanged);
    assert_eq!(
        written(&event, Framing::Tcp),
        "<message from='pubsub.d' type='headline' id='7-9' to='u@d/r&apos;1'>\
         <event xmlns='http://jabber.org/protocol/pubsub#event'><items node='a&lt;&apos;&amp;&quot;&gt;'>\
         <item id='&lt;id&gt;&apos;' publisher='p@d'><x xmlns='urn:x'/></item></items></event></message>"
    );
    assert!(event.is_told() && event.is_item() && !event.is_end() && !event.is_for_logins());
    assert_eq!(event.names(), Some(("a<'&\">", "<id>'")));
    let bare = Item { publisher: None, payload: "".into(), id: "1".into(), name: "n".into(), ..item() };
    assert_eq!(
        written(&PubsubEvent::published(&bare, "d", Retained::Unchanged), Framing::WebSocket),
        "<message xmlns='jabber:client' from='pubsub.d' type='headline' id='7-9' to='u@d/r&apos;1'>\
         <event xmlns='http://jabber.org/protocol/pubsub#event'><items node='n'><item id='1'/></items></event></message>"
    );
}

#[test]
fn a_last_item() {
    let domain = Domain::new(DomainId(1), "d", Policy::default());
    let item = Arc::new(Item { id: "1".into(), name: "n".into(), publisher: None, ..item() });
    let last = PubsubEvent::last(&item, &Domains::new([domain])).unwrap();
    assert_eq!(
        written(&last, Framing::Tcp),
        "<message from='pubsub.d' type='headline' id='7-9' to='u@d/r&apos;1'>\
         <event xmlns='http://jabber.org/protocol/pubsub#event'><items node='n'><item id='1'><x xmlns='urn:x'/></item>\
         </items></event><delay xmlns='urn:xmpp:delay' from='pubsub.d' stamp='2026-11-20T09:30:00.125Z'/></message>"
    );
    assert!(last.is_for_logins());
    assert!(PubsubEvent::last(&item, &Domains::default()).is_none());
}

#[test]
fn changes() {
    let told = changed(Change::Retracted { item: "i'1", told: true });
    assert_eq!(
        written(&told, Framing::Tcp),
        "<message from='pubsub.d' type='headline' id='m' to='u@d/r&apos;1'>\
         <event xmlns='http://jabber.org/protocol/pubsub#event'><items node='a&amp;b'><retract id='i&apos;1'/></items>\
         </event></message>"
    );
    assert!(told.is_told() && !told.is_item());
    assert!(!changed(Change::Retracted { item: "1", told: false }).is_told());
    assert_eq!(
        written(&changed(Change::Purged), Framing::Tcp),
        "<message from='pubsub.d' type='headline' id='m' to='u@d/r&apos;1'>\
         <event xmlns='http://jabber.org/protocol/pubsub#event'><purge node='a&amp;b'/></event></message>"
    );
    let deleted = changed(Change::Deleted);
    assert_eq!(
        written(&deleted, Framing::Tcp),
        "<message from='pubsub.d' type='headline' id='m' to='u@d/r&apos;1'>\
         <event xmlns='http://jabber.org/protocol/pubsub#event'><delete node='a&amp;b'/></event></message>"
    );
    assert!(deleted.is_end() && deleted.is_told());
    assert!(!changed(Change::Silent).is_told());
}

#[test]
fn a_topic_that_ended_takes_no_followers() {
    let mut subscribers = Subscribers::default();
    assert_eq!([subscribers.add(TopicId(7), 1, None), subscribers.add(TopicId(7), 2, None)], [0, 1]);
    subscribers.publish(&Arc::new(changed(Change::Deleted)), &Fanout::default());
    // A login that read of it before comes late, and sessions of before leave.
    let last = Arc::new(PubsubEvent::last_item(&item(), "d", true));
    let late = subscribers.add(TopicId(7), 3, Some(last));
    assert!(subscribers.last(TopicId(7)).is_none());
    assert_eq!(subscribers.remove(TopicId(7), 0), None);
    assert_eq!(subscribers.remove(TopicId(7), late), None);
    let slice = subscribers.slice(10, &Fanout::default()).expect("its followers are told");
    assert!(slice.event.is_end() && !subscribers.is_walking());
    assert_eq!(slice.slots(), [1, 2]);
}

/// An item that is told only when its publication is asked for again comes behind newer ones.
#[test]
fn an_item_that_is_told_late_is_told_and_is_not_the_last_one() {
    let mut subscribers = Subscribers::default();
    subscribers.add(TopicId(7), 1, None);
    let told = |revision: u64| {
        let item = Item { revision: Revision(revision), ..item() };
        let last = Arc::new(PubsubEvent::last_item(&item, "d", true));
        Arc::new(PubsubEvent::published(&item, "d", Retained::Last(last)))
    };
    for revision in [10, 9] {
        subscribers.publish(&told(revision), &Fanout::default());
        assert_eq!(subscribers.last(TopicId(7)).map(|last| last.revision()), Some(Revision(10)));
        let slice = subscribers.slice(9, &Fanout::default()).expect("its followers are told");
        assert_eq!(slice.event.revision(), Revision(revision));
    }
    // One that came here before is nobody's.
    subscribers.publish(&told(10), &Fanout::default());
    assert!(subscribers.slice(9, &Fanout::default()).is_none());
}

/// What a follower was given by another way is not given it again when its event comes, and everything else is.
#[test]
fn a_follower_is_not_given_what_it_has_by_another_way() {
    let mut subscribers = Subscribers::default();
    for slot in [1, 2] {
        subscribers.add(TopicId(7), slot, None);
    }
    subscribers.note_given(TopicId(7), 1, Revision(3));
    // A change that concerns no later item tells nothing of those on their way.
    let record = record();
    let purged =
        PubsubEvent::changed(&record, "d", Change::Purged, Revision(1), Retained::Nothing, ("p", UnixMs(1)));
    let mut given = Vec::new();
    for event in [told(7, 2, 1), Arc::new(purged), told(7, 3, 1), told(7, 4, 1)] {
        subscribers.publish(&event, &Fanout::default());
        let slice = subscribers.slice(9, &Fanout::default()).expect("its followers are told");
        given.push(slice.slots().iter().filter(|slot| **slot != u32::MAX).copied().collect::<Vec<_>>());
    }
    assert_eq!(given, [vec![2], vec![1, 2], vec![2], vec![1, 2]]);
}

/// Of two revisions the later one is known by their lower halves, also where these begin anew.
#[test]
fn a_follower_lacks_what_is_newer_than_what_it_has() {
    let of =
        |revision, published| Item { revision: Revision(revision), published: UnixMs(published), ..item() };
    let began = UnixMs(100);
    for last in [5, u64::from(u32::MAX) - 1, (3 << 32) + 5] {
        let mut followed = Followed::new(TopicId(7), 0, Revision(last));
        let lacks =
            [last - 1, last, last + 1, last + 3].map(|revision| followed.lacks(&of(revision, 1), began));
        assert_eq!(lacks, [false, false, true, true]);
        followed.note_given(Revision(last + 3));
        followed.note_given(Revision(last));
        assert!(!followed.lacks(&of(last + 3, 1), began) && followed.lacks(&of(last + 4, 1), began));
    }
    // Nothing was known of the topic: what came since the session began came for it.
    let followed = Followed::new(TopicId(7), 0, Revision(0));
    assert_eq!([99, 100].map(|published| followed.lacks(&of(9, published), began)), [false, true]);
}

/// What a topic's last item is told with, of about so many bytes.
fn told(topic: u32, revision: u64, bytes: usize) -> Arc<PubsubEvent> {
    let payload = format!("<p xmlns='urn:p'>{}</p>", "x".repeat(bytes)).into();
    let item = Item { topic: TopicId(topic), revision: Revision(revision), payload, ..item() };
    let last = Arc::new(PubsubEvent::last_item(&item, "d", true));
    Arc::new(PubsubEvent::published(&item, "d", Retained::Last(last)))
}

fn last_of(event: &PubsubEvent) -> Arc<PubsubEvent> {
    match event.retained() {
        Retained::Last(last) => last.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn last_items_of_topics_that_nobody_follows_are_bounded_in_bytes() {
    const TOPICS: u32 = 500;
    let mut subscribers = Subscribers::default();
    let followed = told(TOPICS, 1, 100_000);
    subscribers.add(TopicId(TOPICS), 1, Some(last_of(&followed)));
    for revision in 1..4 {
        for topic in 0..TOPICS {
            subscribers.publish(&told(topic, revision, 100_000), &Fanout::default());
            let last = subscribers.last(TopicId(topic)).map(|last| last.revision());
            assert_eq!(last, Some(Revision(revision)), "the newest is there");
            let bytes =
                (0..TOPICS).filter_map(|topic| subscribers.last(TopicId(topic))).map(|last| last.bytes());
            assert!(bytes.sum::<usize>() <= IDLE_BYTES_MAX + 200_000);
        }
    }
    assert!(subscribers.last(TopicId(TOPICS)).is_some(), "what is followed is kept");
    // Sessions that leave make topics that nobody follows.
    for topic in 0..TOPICS {
        subscribers.add(TopicId(1000 + topic), 1, Some(last_of(&told(1000 + topic, 1, 100_000))));
    }
    (0..TOPICS).for_each(|topic| assert_eq!(subscribers.remove(TopicId(1000 + topic), 0), None));
    let bytes = (0..2000).filter_map(|topic| subscribers.last(TopicId(topic))).map(|last| last.bytes());
    assert!(bytes.sum::<usize>() <= IDLE_BYTES_MAX + 300_000);
}

#[test]
fn a_last_item_that_was_given_up_is_read_again() {
    let mut subscribers = Subscribers::default();
    let topic = TopicId(7);
    subscribers.publish(&told(7, 5, 100), &Fanout::default());
    assert!(subscribers.knows_last(topic) && !subscribers.lacks(topic, Some(Revision(4))));
    let mut other = 1000;
    while subscribers.last(topic).is_some() {
        other += 1;
        subscribers.publish(&told(other, 1, 200_000), &Fanout::default());
    }
    assert!(subscribers.knows(topic) && !subscribers.knows_last(topic));
    let lacks =
        |subscribers: &Subscribers, revision: Option<u64>| subscribers.lacks(topic, revision.map(Revision));
    assert_eq!(
        [None, Some(4), Some(5), Some(6)].map(|read| lacks(&subscribers, read)),
        [true, true, false, false]
    );
    assert!(!subscribers.is_news(topic, Revision(4)) && subscribers.is_news(topic, Revision(5)));
    // A login that read it brings it back, and it is no news to those that have it.
    assert!(!subscribers.learn(last_of(&told(7, 5, 100))));
    assert_eq!(subscribers.last(topic).map(|last| last.revision()), Some(Revision(5)));
    assert!(subscribers.knows_last(topic) && !lacks(&subscribers, Some(4)));
    // Its successor takes its place as ever.
    subscribers.publish(&told(7, 6, 100), &Fanout::default());
    assert_eq!(subscribers.last(topic).map(|last| last.revision()), Some(Revision(6)));
}
