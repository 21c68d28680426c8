//! Values that leave a process: whatever bytes are read as values, these are written as bytes that are read as the same values.
#![no_main]

use carillon_core::connection::{Allowance, PausedInput, Reader, SendQueue};
use carillon_core::form::{Clock, Writer, decode, encode};
use carillon_core::model::{Followed, Mono, PubsubEvent};
use carillon_core::shard::Track;
use carillon_wire::stanza::Stanza;
use libfuzzer_sys::fuzz_target;
use std::sync::Arc;

type Connection = (Reader, (Allowance, PausedInput), SendQueue);
type Queue = Vec<(Option<Stanza>, Track, Option<Arc<PubsubEvent>>)>;
type All = (Connection, (Mono, Vec<Followed>), Queue);

fuzz_target!(|bytes: &[u8]| {
    let clock = Clock { now_ms: 1_000_000, elapsed_ms: 0 };
    let mut input = Writer::new(clock.now_ms);
    input.raw(bytes);
    if let Ok(value) = decode::<All>(&input.finish(), clock) {
        let written = encode(&value, clock.now_ms);
        let again = decode::<All>(&written, clock).expect("what was written is read");
        assert_eq!(format!("{again:?}"), format!("{value:?}"));
        assert_eq!(encode(&again, clock.now_ms), written);
    }
});
