//! The mechanism: numbers, texts, lists, what is shared, time, versions, and bytes that are no value.

mod messages;
mod model;
mod wire;

use super::testing::{AT_ONCE, NOW_MS, attempt, proves, reread, survives, together};
use super::*;
use bytes::Bytes;
use proptest::prelude::*;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;

/// The bytes of a value behind its head.
fn body<T: Form>(value: &T) -> Vec<u8> {
    encode(value, NOW_MS)[5..].to_vec()
}

#[test]
fn the_head_is_five_bytes() {
    assert_eq!(encode(&7u8, 0), [b'C', b'r', b'l', b'F', 5, 7]);
}

#[test]
fn numbers_are_short() {
    assert_eq!(body(&127u64), [127]);
    assert_eq!(body(&128u64), [0x80, 1]);
    assert_eq!(body(&u64::MAX), [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]);
    assert_eq!(body(&u128::MAX).len(), 19);
    assert_eq!((body(&-1i64), body(&1i64), body(&-64i64)), (vec![1], vec![2], vec![127]));
    assert_eq!(body(&i64::MIN), body(&u64::MAX));
    assert_eq!((body(&-1i8), body(&200u8)), (vec![0xff], vec![200]));
}

#[test]
fn what_the_standard_library_has() {
    proves("u8", &200u8);
    proves("i8", &-3i8);
    proves("u16", &u16::MAX);
    proves("u32", &300u32);
    proves("u64", &u64::MAX);
    proves("u128", &(u128::MAX - 1));
    proves("usize", &5usize);
    proves("i64", &i64::MIN);
    proves("bool", &true);
    proves("array", b"csi!");
    proves("String", &"ä€".to_owned());
    proves("Box<str>", &Box::<str>::from("x"));
    proves("Arc<str>", &Arc::<str>::from("shared"));
    proves("Bytes", &Bytes::from_static(b"\0\xff"));
    proves("IPv4", &IpAddr::from([192, 0, 2, 1]));
    proves("IPv6", &IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1]));
    proves("Option", &[Some(5u32), None].to_vec());
    proves("Box", &Box::new((1u8, false)));
    proves("Range", &(3usize..300));
    proves("triple", &(1u8, 2u16, Box::<str>::from("")));
    proves("Vec", &vec![1u32, 1 << 20]);
    proves("Vec<u8>", &vec![1u8, 2]);
    proves("Box<[T]>", &vec![7u16].into_boxed_slice());
    proves("SmallVec", &SmallVec::<[u32; 2]>::from_slice(&[1, 2, 3]));
    let mut deque = VecDeque::from([2u8, 3]);
    deque.push_front(1);
    proves("VecDeque", &deque);
}

proptest! {
    #[test]
    fn any_number_is_read_as_written(a: u16, b: u32, c: u64, d: u128, e: i64, f: i8) {
        let value = ((a, b, c), (d, e, f));
        prop_assert_eq!(decode::<((u16, u32, u64), (u128, i64, i8))>(&encode(&value, 0), Clock::default()), Ok(value));
    }

    #[test]
    fn any_list_is_read_as_written(value: Vec<(String, Option<Vec<u8>>)>) {
        prop_assert_eq!(decode(&encode(&value, 0), Clock::default()), Ok(value));
    }

    #[test]
    fn any_bytes_are_read_without_a_fault(bytes: Vec<u8>) {
        type All = (Vec<Option<Box<(u64, String)>>>, VecDeque<Arc<str>>, SmallVec<[(IpAddr, bool); 2]>);
        let bytes = [&encode(&1u8, 0)[..5], &bytes].concat();
        if let Ok(value) = attempt::<All>(&bytes) {
            survives(&value);
        }
    }
}

#[test]
fn numbers_that_are_too_large_or_too_long_are_refused() {
    let read = |body: &[u8]| decode::<u16>(&[&encode(&1u8, 0)[..5], body].concat(), AT_ONCE);
    let refused = |what| Err(Unreadable::Malformed(Malformed { at: 5, what }));
    assert_eq!(read(&[0xff, 0xff, 3]), Ok(u16::MAX));
    assert_eq!(read(&[0x80, 0x80, 4]), refused("a number is too large"));
    assert_eq!(read(&[0x80, 0]), refused("a number has a byte too many"));
    assert_eq!(read(&[[0x80; 19].as_slice(), &[1]].concat()), refused("a number is too large"));
    let end = Malformed { at: 6, what: "it ends too early" };
    assert_eq!(read(&[0x80]), Err(end.into()));
}

#[test]
fn a_length_is_compared_with_what_is_left_before_anything_is_allocated() {
    // A list, a text or bytes of 2^40 elements, of which three are there.
    let mut out = Writer::new(0);
    out.number(1 << 40);
    out.raw(&[0; 3]);
    let bytes = out.finish();
    let refused = Unreadable::Malformed(Malformed { at: 5, what: "it is longer than what is left" });
    assert_eq!(attempt::<Vec<u64>>(&bytes), Err(refused));
    assert_eq!(attempt::<String>(&bytes), Err(refused));
    assert_eq!(attempt::<SmallVec<[[u8; 4]; 2]>>(&bytes), Err(refused));
    // So many elements that each has a byte, but would take a thousand.
    let many = [&encode(&1u8, 0)[..5], &[0x80, 8], &[0xff; 1024]].concat();
    assert!(attempt::<Vec<Option<[u8; 1000]>>>(&many).is_err());
}

/// A type without an end, as the last item of a topic's event is an event again.
#[derive(Debug)]
struct Nested(Option<Box<Nested>>);
crate::form! { struct Nested(inner) }

#[test]
fn what_is_nested_too_deep_is_refused() {
    let nested = |depth: usize| [&encode(&1u8, 0)[..5], &vec![1; depth], &[0]].concat();
    assert!(attempt::<Nested>(&nested(32)).is_ok());
    let refused = attempt::<Nested>(&nested(1_000_000)).map(drop);
    assert_eq!(refused, Err(Malformed { at: 38, what: "it is nested too deep" }.into()));
}

#[test]
fn only_known_tags_are_read() {
    let read = |tag| decode::<bool>(&[&encode(&1u8, 0)[..5], &[tag]].concat(), AT_ONCE);
    assert_eq!((read(0), read(1)), (Ok(false), Ok(true)));
    assert_eq!(read(2), Err(Malformed { at: 5, what: "neither false nor true" }.into()));
}

#[test]
fn bytes_that_are_not_ours_or_newer_or_older_are_refused() {
    let bytes = encode(&1u8, 0);
    let read = |bytes: &[u8]| decode::<u8>(bytes, AT_ONCE);
    assert_eq!(read(&bytes), Ok(1));
    assert_eq!(read(b""), Err(Unreadable::NotOurs));
    assert_eq!(read(b"CrlE\x01\x01"), Err(Unreadable::NotOurs));
    assert_eq!(read(b"CrlF\x00\x01"), Err(Unreadable::Older(0)));
    assert_eq!(read(b"CrlF\x01\x01"), Ok(1), "the oldest");
    assert_eq!(read(b"CrlF\x06\x01"), Err(Unreadable::Newer(6)));
    assert_eq!(read(b"CrlF\xff\xff\xff\x7f\x01"), Err(Unreadable::Newer(u16::MAX)));
    assert_eq!(read(b"CrlF"), Err(Malformed { at: 4, what: "it ends too early" }.into()));
    assert_eq!(read(b"CrlF\x01\x01\x01"), Err(Malformed { at: 6, what: "bytes follow the value" }.into()));
}

#[derive(Debug, PartialEq)]
struct Before {
    name: String,
}
crate::form! { struct Before { name } }

#[derive(Debug, PartialEq)]
struct After {
    name: String,
    visits: u32,
    guests: Vec<String>,
}
crate::form! { struct After { name, visits: since(VERSION), guests: since(VERSION) } }

#[derive(Debug, PartialEq)]
enum Variant {
    After { name: String, visits: u32 },
}
crate::form! { enum Variant { 4 = After { name, visits: since(VERSION) } } }

#[test]
fn fields_that_came_later_are_the_default_in_older_versions() {
    let before = Before { name: "x".into() };
    let after = After { name: "x".into(), visits: 0, guests: Vec::new() };
    assert_eq!(reread::<_, After>(&before, VERSION - 1), after);
    let after = After { visits: 7, guests: vec!["y".into()], ..after };
    assert_eq!(reread::<_, After>(&after, VERSION), after);
    let variant = Variant::After { name: "x".into(), visits: 0 };
    assert_eq!(reread::<_, Variant>(&(4u8, before), VERSION - 1), variant);
    let variant = Variant::After { name: "x".into(), visits: 7 };
    assert_eq!(reread::<_, Variant>(&variant, VERSION), variant);
}

#[test]
fn time_goes_on() {
    let at = |at_ms: u64, clock: Clock| {
        let mut out = Writer::new(NOW_MS);
        out.instant(at_ms);
        let bytes = out.finish();
        Reader::new(&bytes, clock).unwrap().instant()
    };
    let later = Clock { now_ms: 5_000, elapsed_ms: 300 };
    assert_eq!(at(NOW_MS + 1_000, later), Ok(5_700), "a deadline is as much nearer as time has passed");
    assert_eq!(at(NOW_MS - 1_000, later), Ok(3_700));
    assert_eq!(at(NOW_MS + 100, later), Ok(4_800), "a deadline that has passed meanwhile is in the past");
    assert_eq!(at(0, later), Ok(0), "nothing is before the beginning of the clock");
    assert_eq!(at(u64::MAX, later), Ok(i64::MAX as u64 + 4_700), "never stays never");
}

#[test]
fn what_is_shared_is_written_once_and_shared_again() {
    let (text, bytes) = (Arc::<str>::from("a topic"), Bytes::from(vec![b'x'; 1000]));
    let value = Arc::new((text.clone(), bytes.clone()));
    let values = vec![value.clone(), value.clone(), Arc::new((text, bytes))];
    let (written, read) = together(&values);
    assert!(written.len() < 1040, "{}", written.len());
    assert_eq!(read, values);
    assert!(Arc::ptr_eq(&read[0], &read[1]));
    // The third is another, of the same parts.
    assert!(!Arc::ptr_eq(&read[0], &read[2]) && Arc::ptr_eq(&read[0].0, &read[2].0));
    assert_eq!(read[0].1.as_ptr(), read[2].1.as_ptr());
    survives(&values);
}

#[test]
fn what_is_gone_is_not_mistaken_for_what_has_its_address() {
    let mut out = Writer::new(NOW_MS);
    (0..100u64).for_each(|number| Arc::new(number).write(&mut out));
    let bytes = out.finish();
    let mut input = Reader::new(&bytes, AT_ONCE).unwrap();
    let read: Vec<u64> = (0..100).map(|_| *Arc::read(&mut input).unwrap()).collect();
    assert_eq!(read, Vec::from_iter(0..100));
}

#[test]
fn what_is_shared_is_of_one_type_and_was_there_before() {
    let text = Arc::<str>::from("x");
    let bytes = encode(&(text.clone(), text), 0);
    let refused = Malformed { at: 8, what: "what it shares was not read before" };
    assert_eq!(attempt::<(Arc<str>, Bytes)>(&bytes).unwrap_err(), refused.into());
    let mut later = bytes.clone();
    *later.last_mut().unwrap() = 2;
    assert_eq!(attempt::<(Arc<str>, Arc<str>)>(&later).unwrap_err(), refused.into());
}
