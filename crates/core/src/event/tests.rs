//! What is noted is what is read; what is not wanted is not made.

use super::*;
use crate::model::UnixMs;
use carillon_wire::Framing;
use carillon_wire::stream::Condition;
use proptest::prelude::*;
use std::net::{Ipv4Addr, Ipv6Addr};

const ID: NotificationId = NotificationId(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef);
const V4: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));

fn over(framing: Framing, tls: Option<bool>) -> Transport {
    Transport { framing, tls }
}

/// One of each kind, and what the log is to say of it.
fn each() -> Vec<(Entry<'static>, &'static str)> {
    let (to, after_ms) = ("a@b/c", 7);
    vec![
        (Entry::Start, ""),
        (Entry::Stop, ""),
        (
            Entry::Connect { address: V4, transport: over(Framing::Tcp, Some(false)) },
            "address=192.0.2.1 transport=tcp tls=Some(false)",
        ),
        (
            Entry::Login { jid: to, address: V6, transport: over(Framing::WebSocket, None) },
            "jid=a@b/c address=2001:db8::1 transport=websocket tls=None",
        ),
        (
            Entry::LoginFailure { account: Some("a@b"), address: V4, reason: "not-authorized" },
            "account=a@b address=192.0.2.1 reason=not-authorized",
        ),
        (
            Entry::Disconnect {
                jid: Some(to),
                address: V4,
                reason: Leave::Error(Condition::Conflict),
                after_ms,
            },
            "jid=a@b/c address=192.0.2.1 reason=conflict after_ms=7",
        ),
        (
            Entry::Accept { id: ID, to: "a@b", audience: Audience::Always, priority: Priority::High },
            "id=014D2PF2DBSQQG28T5CY4TQKFF to=a@b audience=always priority=high",
        ),
        (Entry::Deliver { id: ID, to, after_ms }, "id=014D2PF2DBSQQG28T5CY4TQKFF to=a@b/c after_ms=7"),
        (
            Entry::Acknowledge { id: ID, to, by: AcknowledgedBy::StreamManagement, after_ms },
            "id=014D2PF2DBSQQG28T5CY4TQKFF to=a@b/c by=stream-management after_ms=7",
        ),
        (
            Entry::Drop { id: ID, to: "a@b", state: NotificationState::Expired, reason: None },
            "id=014D2PF2DBSQQG28T5CY4TQKFF to=a@b reason=expired",
        ),
        (Entry::Publish { domain: "b", topic: "news", item: "1" }, "domain=b topic=news item=1"),
        (Entry::Item { topic: "news", item: "1", to, after_ms }, "topic=news item=1 to=a@b/c after_ms=7"),
        (
            Entry::Resume { jid: to, address: V4, transport: over(Framing::Tcp, Some(true)) },
            "jid=a@b/c address=192.0.2.1 transport=tcp tls=Some(true)",
        ),
        (
            Entry::MatchEnded { id: "1f", queue: "duel", reason: "finished", ticks: 9, outcome: "{}" },
            "match=1f queue=duel reason=finished ticks=9 outcome={}",
        ),
        (Entry::RoomCreated { room: "tea@rooms.b", by: Some("a@b") }, "room=tea@rooms.b by=a@b"),
        (
            Entry::RoomDestroyed { room: "tea@rooms.b", reason: "empty", by: None },
            "room=tea@rooms.b reason=empty by=",
        ),
        (
            Entry::RoomRemoved { room: "tea@rooms.b", account: "a@b", reason: "kicked", by: Some("Bob") },
            "room=tea@rooms.b account=a@b reason=kicked by=Bob",
        ),
    ]
}

fn show(record: &Record<'_>) -> String {
    let fields = record.fields().map(|(field, value)| match value {
        Value::Text(text) => format!("{}={text}", field.name),
        Value::Number(number) => format!("{}={number}", field.name),
        Value::Notification(id) => format!("{}={id}", field.name),
        Value::Address(address) => format!("{}={address}", field.name),
        Value::Flag(flag) => format!("{}={flag:?}", field.name),
    });
    fields.collect::<Vec<_>>().join(" ")
}

#[test]
fn each_kind_is_read_as_it_was_noted() {
    let mut journal = Journal::default();
    journal.keep(Kinds::all());
    let each = each();
    for (n, (entry, _)) in each.iter().enumerate() {
        journal.note(UnixMs(n as u64), entry.kind(), || *entry);
    }
    let mut records = records(journal.bytes());
    for (n, (entry, text)) in each.iter().enumerate() {
        let record = records.next().expect("as many as were noted");
        assert_eq!((record.kind, record.at, record.seq), (entry.kind(), UnixMs(n as u64), n as u64));
        assert_eq!(show(&record), *text);
    }
    assert!(records.next().is_none() && records.rest().is_empty());
    assert_eq!(each.iter().map(|(entry, _)| entry.kind()).collect::<Vec<_>>(), Kind::ALL);
}

#[test]
fn an_entry_of_a_release_without_the_flag_is_read() {
    let mut journal = Journal::default();
    journal.push(UnixMs(1), &Entry::Connect { address: V4, transport: over(Framing::Tcp, Some(true)) });
    let mut older = journal.bytes().to_vec();
    older.pop();
    let length = u32::try_from(older.len() - 4).unwrap();
    older[..4].copy_from_slice(&length.to_le_bytes());
    let record = records(&older).next().unwrap();
    assert_eq!(show(&record), "address=192.0.2.1 transport=tcp tls=None");
}

#[test]
fn what_is_not_wanted_is_not_made() {
    let mut journal = Journal::default();
    journal.note(UnixMs(1), Kind::Deliver, || unreachable!("nobody wants it"));
    journal.keep(Kinds::of([Kind::Login]));
    journal.note(UnixMs(1), Kind::Deliver, || unreachable!("nobody wants it"));
    assert_eq!((journal.bytes().len(), journal.take(Vec::new()).capacity()), (0, 0));
}

#[test]
fn numbers_go_on_when_entries_are_taken() {
    let mut journal = Journal::default();
    journal.push(UnixMs(1), &Entry::Start);
    let first = journal.take(Vec::new());
    journal.push(UnixMs(2), &Entry::Stop);
    assert_eq!(records(&first).next().map(|r| r.seq), Some(0));
    assert_eq!(records(journal.bytes()).next().map(|r| r.seq), Some(1));
}

#[test]
fn names_and_numbers_of_kinds() {
    for (n, kind) in Kind::ALL.into_iter().enumerate() {
        assert_eq!(
            (kind as usize, Kind::of(n as u8), Kind::named(kind.as_str())),
            (n, Some(kind), Some(kind))
        );
    }
    assert_eq!((Kind::of(Kind::ALL.len() as u8), Kind::named("")), (None, None));
}

proptest! {
    #[test]
    fn a_torn_end_is_left_and_nothing_before_it(cut in 0usize..600) {
        let mut journal = Journal::default();
        each().iter().for_each(|(entry, _)| journal.push(UnixMs(1), entry));
        let bytes = &journal.bytes()[..cut.min(journal.bytes().len())];
        let mut read = records(bytes);
        let size: usize = read.by_ref().map(|record| record.size).sum();
        prop_assert_eq!(size + read.rest().len(), bytes.len());
        let whole = records(journal.bytes()).scan(0, |sum, r| { *sum += r.size; Some(*sum) });
        prop_assert_eq!(whole.take_while(|end| *end <= bytes.len()).last().unwrap_or(0), size);
    }

    #[test]
    fn any_bytes_are_read_without_a_fault(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut read = records(&bytes);
        let size: usize = read.by_ref().map(|record| record.size).sum();
        prop_assert_eq!(size + read.rest().len(), bytes.len());
    }
}
