//! How a type's form is proved, for the tests beside each type.

use super::{Clock, Form, Reader, Unreadable, VERSION, WRITTEN_OLDEST, Writer, decode, encode};
use std::fmt::Debug;

/// The present instant of writers in tests, far from the beginning of the clock.
pub(crate) const NOW_MS: u64 = 1_000_000;
/// A reader that reads at the instant at which the value was written.
pub(crate) const AT_ONCE: Clock = Clock { now_ms: NOW_MS, elapsed_ms: 0 };

/// What every release wrote as its version: lines `NAME HEX`. A line never changes, and none is taken out while its version is read.
const WRITTEN: &[(u16, &str)] = &[
    (1, include_str!("tests/version_1.txt")),
    (2, include_str!("tests/version_2.txt")),
    (3, include_str!("tests/version_3.txt")),
    (4, include_str!("tests/version_4.txt")),
    (5, include_str!("tests/version_5.txt")),
];

/// Proves the form of a type by one value of it. Every version of the form is read as this value, and what the present version is written
/// as does not change: `name` is that of its lines in the files of the versions. And as [`survives`].
pub(crate) fn proves<T: Form + Debug>(name: &str, value: &T) {
    let now = hex(&encode(value, NOW_MS));
    let of_name = |text: &'static str| {
        text.lines().filter_map(|line| line.rsplit_once(' ')).find(|(of, _)| *of == name).map(|(_, hex)| hex)
    };
    for (version, text) in WRITTEN {
        if let Some(line) = of_name(text) {
            let read: T = decode(&unhex(line), AT_ONCE).unwrap();
            assert_eq!(format!("{read:?}"), format!("{value:?}"), "{name} of version {version}");
            if *version >= WRITTEN_OLDEST {
                let mut out = Writer::of_version(NOW_MS, *version);
                value.write(&mut out);
                assert_eq!(hex(&out.finish()), line, "{name} as it is written in version {version}");
            }
        }
    }
    let (_, newest) = WRITTEN.last().unwrap();
    assert_eq!(
        of_name(newest),
        Some(&*now),
        "version {VERSION} is written otherwise; the line is:\n{name} {now}"
    );
    survives(value);
}

/// The value that the first version in which there is one was written as, for a type that is made at length only.
pub(crate) fn written<T: Form>(name: &str) -> T {
    decode(&first_bytes(name), AT_ONCE).unwrap()
}

/// What a value was written as by the first version in which there is one.
pub(crate) fn first_bytes(name: &str) -> Vec<u8> {
    let lines = WRITTEN.iter().flat_map(|(_, text)| text.lines()).filter_map(|line| line.rsplit_once(' '));
    let (_, hex) = lines.into_iter().find(|(of, _)| *of == name).unwrap();
    unhex(hex)
}

/// A value is read as it was written; and whatever becomes of its bytes, reading them neither panics nor takes much more memory than
/// they are long.
pub(crate) fn survives<T: Form + Debug>(value: &T) {
    let bytes = encode(value, NOW_MS);
    let read: T = decode(&bytes, AT_ONCE).unwrap();
    assert_eq!(format!("{read:?}"), format!("{value:?}"));
    assert_eq!(encode(&read, NOW_MS), bytes);
    for length in 0..bytes.len() {
        let cut = attempt::<T>(&bytes[..length]);
        assert!(cut.is_err(), "{length} of {} bytes are read as {:?}", bytes.len(), cut.unwrap());
    }
    assert!(attempt::<T>(&[&bytes[..], &[0]].concat()).is_err(), "a byte more is read");
    let mut changed = bytes.clone();
    for at in 0..bytes.len() {
        // Every bit, and what a length or a tag may become.
        for other in (0..8).map(|bit| bytes[at] ^ 1 << bit).chain([0, 1, 2, 0x7f, 0x80, 0xff]) {
            changed[at] = other;
            // What is read after all is a value like any other.
            if let Ok(read) = attempt::<T>(&changed) {
                let again: T = decode(&encode(&read, NOW_MS), AT_ONCE).unwrap();
                assert_eq!(format!("{again:?}"), format!("{read:?}"));
            }
        }
        changed[at] = bytes[at];
    }
}

/// Reads bytes that may be wrong, and counts what that allocates.
pub(crate) fn attempt<T: Form>(bytes: &[u8]) -> Result<T, Unreadable> {
    let mut read = None;
    let allocated = allocation_counter::measure(|| read = Some(decode(bytes, AT_ONCE)));
    let bound = 64 * bytes.len() as u64 + 1024;
    assert!(allocated.bytes_max <= bound, "{} bytes from {}", allocated.bytes_max, bytes.len());
    read.unwrap()
}

/// A value, written by one version of its type and read by another, that the head calls this version.
pub(crate) fn reread<T: Form, U: Form>(value: &T, version: u16) -> U {
    let bytes = encode(value, NOW_MS);
    let mut input = Reader::new(&bytes, AT_ONCE).unwrap().of_version(version);
    let read = U::read(&mut input).unwrap();
    input.finish().unwrap();
    read
}

/// Values that share something, written by one writer and read by one reader.
pub(crate) fn together<T: Form>(values: &[T]) -> (Vec<u8>, Vec<T>) {
    let mut out = Writer::new(NOW_MS);
    values.iter().for_each(|value| value.write(&mut out));
    let bytes = out.finish();
    let mut input = Reader::new(&bytes, AT_ONCE).unwrap();
    let read = values.iter().map(|_| T::read(&mut input).unwrap()).collect();
    input.finish().unwrap();
    (bytes, read)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    text.as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}
