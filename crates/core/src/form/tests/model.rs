//! The nouns that sessions hold.

use super::*;
use crate::model::{
    AccountId, AcknowledgedBy, Audience, DomainId, DropReason, Followed, Generation, Item, KeyId, Mono,
    NodeId, NotificationId, NotificationState, Place, Priority, PubsubEvent, Retained, Revision, SessionId,
    Settlement, ShardId, TopicId, Trace, UnixMs,
};
use carillon_wire::jid::BareJid;

#[test]
fn ids_and_instants() {
    let session = SessionId { slot: 300, generation: 2 };
    proves("ids", &((DomainId(1), AccountId(1 << 40), TopicId(9)), (Revision(5), Generation(6), ShardId(3))));
    proves("SessionId", &session);
    proves("NotificationId", &NotificationId::new(UnixMs(1_795_167_000_125), 0xbeef, 42));
    proves("UnixMs", &UnixMs(1_795_167_000_125));
    proves("Mono", &vec![Mono(NOW_MS + 60_000), Mono(NOW_MS - 1)]);
    // Of earlier releases, it is a shard of the only node.
    let [here, there] = [0, 300].map(|node| Place { node: NodeId(node), shard: ShardId(1) });
    proves("Settlement", &Settlement { place: here, session, number: 77 });
    proves("Place", &there);
    proves("Audience", &vec![Audience::Active, Audience::Connected, Audience::Always]);
}

#[test]
fn a_deadline_goes_on_running() {
    let bytes = encode(&Mono(NOW_MS + 60_000), NOW_MS);
    let clock = Clock { now_ms: 10, elapsed_ms: 20_000 };
    assert_eq!(decode(&bytes, clock), Ok(Mono(40_010)));
}

#[test]
fn the_position_in_a_list_is_left_behind() {
    let followed = |position| Followed::new(TopicId(7), position, Revision(9));
    assert_eq!(decode(&encode(&followed(3), NOW_MS), AT_ONCE), Ok(followed(u32::MAX)));
    // What it was given is not known of older forms.
    proves("Followed", &Followed::new(TopicId(7), u32::MAX, Revision(0)));
}

fn item(payload: &'static str) -> Item {
    Item {
        topic: TopicId(4),
        domain: DomainId(1),
        name: "news & more".into(),
        id: "i1".into(),
        publisher: None,
        published: UnixMs(1_795_167_000_125),
        payload: Bytes::from_static(payload.as_bytes()),
        revision: Revision(8),
    }
}

#[test]
fn events_of_topics() {
    let last = Arc::new(PubsubEvent::last_item(&item("<a xmlns='urn:x'>1</a>"), "example.org", true));
    proves(
        "PubsubEvent",
        &PubsubEvent::published(&item("<b xmlns='urn:x'/>"), "example.org", Retained::Last(last)),
    );
    survives(&PubsubEvent::published(&item(""), "example.org", Retained::Nothing));
    let event = PubsubEvent::published(&item("<b xmlns='urn:x'/>"), "example.org", Retained::Unchanged);
    let read: PubsubEvent = decode(&encode(&event, NOW_MS), AT_ONCE).unwrap();
    assert_eq!(read.news(), event.news());
    assert_eq!((read.names(), read.topic(), read.bytes()), (event.names(), event.topic(), event.bytes()));
}

#[test]
fn every_change_of_a_topic() {
    use crate::model::{Change, TopicConfig, TopicRecord};
    let record = TopicRecord {
        id: TopicId(4),
        domain: DomainId(1),
        name: "news".into(),
        config: TopicConfig::default(),
        affiliations: Vec::new(),
        created: UnixMs(0),
    };
    let all = [
        Change::Retracted { item: "i1", told: true },
        Change::Retracted { item: "i1", told: false },
        Change::Purged,
        Change::Deleted,
        Change::Silent,
    ];
    let event = |change| {
        let told = ("m1", UnixMs(9));
        PubsubEvent::changed(&record, "example.org", change, Revision(3), Retained::Nothing, told)
    };
    proves("changes", &all.map(event).into_iter().collect::<Vec<_>>());
}

#[test]
fn an_event_that_is_no_message_is_refused() {
    // The last byte of the payload's range, and a tag in the message.
    let event = PubsubEvent::published(&item("<b xmlns='urn:x'/>"), "example.org", Retained::Unchanged);
    let bytes = encode(&event, NOW_MS);
    let at = bytes.windows(7).position(|part| part == b"</item>").unwrap();
    let mut changed = bytes.clone();
    changed[at + 1] = b'<';
    let refused = Malformed { at: bytes.len(), what: "the event of a topic is no message" };
    assert_eq!(attempt::<PubsubEvent>(&changed).unwrap_err(), refused.into());
}

#[test]
fn an_event_in_many_queues_is_written_once() {
    let event =
        Arc::new(PubsubEvent::published(&item("<b xmlns='urn:x'/>"), "example.org", Retained::Unchanged));
    let queues = vec![vec![event; 3]; 100];
    let (bytes, read) = together(&queues);
    let once = encode(&queues[0], NOW_MS).len();
    assert!(bytes.len() < once + 100 * 4, "{} and {once}", bytes.len());
    assert!(Arc::ptr_eq(&read[0][0], &read[99][2]));
}

#[test]
fn what_is_known_of_a_notification() {
    // What leaves its process has not ended, so nobody has followed its link: no version has these.
    let mut states: Vec<NotificationState> = NotificationState::ALL.into();
    survives(&states.pop());
    survives(&AcknowledgedBy::Link);
    proves("NotificationState", &states);
    let by = [AcknowledgedBy::StreamManagement, AcknowledgedBy::Receipt, AcknowledgedBy::Socket];
    proves("AcknowledgedBy", &by.to_vec());
    let reasons = [
        DropReason::UnknownDevice,
        DropReason::NotConnected,
        DropReason::NotActive,
        DropReason::ConnectionLost,
        DropReason::QueueFull,
        DropReason::DeviceDeleted,
    ];
    proves("DropReason", &reasons.to_vec());
    proves("DropReason, module", &vec![DropReason::Module]);
    proves("Priority", &vec![Priority::Low, Priority::Normal, Priority::High]);
    let trace = Trace {
        id: NotificationId::new(UnixMs(1_795_167_000_125), 0xbeef, 42),
        to: BareJid::new("ann@example.org").unwrap(),
        audience: Audience::Connected,
        priority: Priority::High,
        state: NotificationState::Sent,
        accepted: UnixMs(1_795_167_000_125),
        expires: Some(UnixMs(1_795_167_060_125)),
        collapse_key: Some("score".into()),
        key: Some(KeyId(3)),
        send_at: None,
        stored: None,
        sent: Some(UnixMs(1_795_167_000_126)),
        ended: None,
        acknowledged_by: None,
        reason: None,
        opened: None,
    };
    proves("Trace", &trace);
    survives(&Trace { acknowledged_by: Some(AcknowledgedBy::Receipt), ended: Some(UnixMs(1)), ..trace });
}
