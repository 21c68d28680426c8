use super::*;
use crate::model::UnixMs;

const ALICE: &str = "alice@localhost";

fn order(id: u64) -> Order {
    let account = ALICE.parse().expect("an address");
    Order { id, account, kinds: Kinds::ALL, until: Mono(60_000), count: 1000, rate: 100, payloads: false }
}

fn noted(taps: &mut Taps, at: u64, kind: Kind) -> (Vec<Entry>, Vec<(u64, u64)>) {
    let mut tape = Tape::default();
    let now = Now { mono: Mono(at), unix: UnixMs(at) };
    taps.note(now, (ALICE, None), kind, &mut tape, &|_| Happening::Store { what: "settled", count: 1 });
    tape.take()
}

#[test]
fn what_exceeds_the_rate_is_counted() {
    let mut taps = Taps::default();
    taps.add(Order { rate: 2, ..order(1) });
    let counts: Vec<_> = (0..3).map(|at| noted(&mut taps, at, Kind::Store)).collect();
    assert_eq!(counts.iter().map(|(entries, _)| entries.len()).collect::<Vec<_>>(), [1, 1, 0]);
    assert_eq!(counts[2].1, [(1, 1)]);
    assert_eq!(noted(&mut taps, 1000, Kind::Store).0.len(), 1, "another second");
}

#[test]
fn it_ends_after_its_count_and_its_time() {
    let mut taps = Taps::default();
    taps.add(Order { count: 1, ..order(1) });
    taps.add(Order { until: Mono(5), ..order(2) });
    let of = |(entries, missed): (Vec<Entry>, Vec<_>)| {
        assert!(missed.is_empty());
        entries.iter().map(|entry| entry.tap).collect::<Vec<_>>()
    };
    assert_eq!(of(noted(&mut taps, 0, Kind::In)), [1, 2]);
    assert_eq!(of(noted(&mut taps, 1, Kind::In)), [2]);
    assert!(of(noted(&mut taps, 5, Kind::In)).is_empty());
    assert_eq!(taps.expire(Mono(5)).len(), 1);
    assert!(taps.follow(ALICE));
    assert_eq!(taps.remove(1).as_ref().map(BareJid::as_str), Some(ALICE));
    assert!(!taps.follow(ALICE) && taps.is_empty());
}

#[test]
fn only_the_kinds_that_are_wanted_are_noted() {
    let mut taps = Taps::default();
    taps.add(Order { kinds: Kinds::default().with(Kind::In).with(Kind::Session), ..order(1) });
    let wanted = Kind::ALL.map(|kind| noted(&mut taps, 0, kind).0.len());
    assert_eq!(wanted, [1, 0, 0, 0, 1]);
}

#[test]
fn there_are_so_many_and_no_more() {
    let mut taps = Taps::default();
    (0..=TAPS_MAX as u64).for_each(|id| taps.add(order(id)));
    assert_eq!((taps.remove(0), taps.0.len()), (None, TAPS_MAX));
}

#[test]
fn a_turn_notes_so_many_bytes_and_counts_the_rest() {
    let mut taps = Taps::default();
    taps.add(Order { rate: u32::MAX, count: u32::MAX, ..order(7) });
    let mut tape = Tape::default();
    let now = Now { mono: Mono(0), unix: UnixMs(0) };
    let sketch = Sketch { xml: Some("x".repeat(300_000).into()), ..Sketch::default() };
    for _ in 0..10 {
        taps.note(now, (ALICE, None), Kind::In, &mut tape, &|_| Happening::In(sketch.clone()));
    }
    let (entries, missed) = tape.take();
    assert_eq!((entries.len(), missed), (3, vec![(7, 7)]));
    assert!(tape.is_empty());
}

#[test]
fn what_a_client_chooses_is_cut() {
    let id = "ä".repeat(400);
    let stanza = carillon_wire::stanza::Stanza::message(carillon_wire::stanza::MessageType::Chat).with_id(id);
    let sketch = Sketch::of(&stanza, None, false);
    assert_eq!(sketch.id.map(|id| id.len()), Some(128));
    assert_eq!(sketch.xml, None);
    assert!(sketch.bytes > 800, "its size is that of all of it");
}
