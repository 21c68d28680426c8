//! Requests that may be sent again.

use super::tables::Reserved;
use super::{Committed, answers};
use crate::model::{KeyId, UnixMs};
use crate::ports::store::idempotency::{
    ENTRY_BYTES, LINES_MAX, NoteLines, RESERVED_MS, Release, Remember, Reservation, Reserve,
};
use std::collections::BTreeMap;

/// How long a request may take before another with the same key may try: it must have died.
const IN_PROGRESS_MS: u64 = 60 * 1000;

answers! {
    Reserve => reserve;
    Remember => remember;
    Release => release;
    NoteLines => note_lines;
}

fn reserve(store: &mut Committed, asked: &Reserve) -> Reservation {
    let Reserve { key, idempotency_key, body_hash, now, .. } = asked;
    let name = (*key, idempotency_key.clone());
    let Some(earlier) =
        store.reserved.get_mut(&name).filter(|earlier| now.0.saturating_sub(earlier.since.0) < RESERVED_MS)
    else {
        store.reserved.remove(&name);
        let of_domain = || Ok::<u64, std::convert::Infallible>(kept_bytes_of_domain(store, *key));
        if asked.is_full(kept_bytes(store, *key), of_domain) == Ok(true) {
            return Reservation::Full;
        }
        let reserved =
            Reserved { body_hash: *body_hash, since: *now, at: *now, response: None, lines: BTreeMap::new() };
        store.reserved.insert(name, reserved);
        return Reservation::Go { since: *now };
    };
    if earlier.body_hash != *body_hash {
        return Reservation::Mismatch;
    }
    if let Some(response) = &earlier.response {
        return Reservation::Replay { response: response.clone() };
    }
    if now.0.saturating_sub(earlier.at.0) < IN_PROGRESS_MS {
        return Reservation::InProgress;
    }
    earlier.at = *now;
    Reservation::Go { since: earlier.since }
}

/// For all API keys of the key's domain; 0 for those of the node.
fn kept_bytes_of_domain(store: &Committed, key: KeyId) -> u64 {
    let Some(domain) = store.keys.get(&key).and_then(|known| known.key.domain) else { return 0 };
    let of_domain = store.keys.values().filter(|known| known.key.domain == Some(domain));
    of_domain.map(|known| kept_bytes(store, known.key.id)).sum()
}

fn kept_bytes(store: &Committed, key: KeyId) -> u64 {
    let of_key = store.reserved.iter().filter(|((of, _), _)| *of == key);
    let bytes = of_key.map(|((_, name), kept)| {
        // As they are noted: up to the highest number of each block.
        let mut blocks = BTreeMap::new();
        for number in kept.lines.keys() {
            blocks.insert((number - 1) / 256, ((number - 1) % 256 + 1) * 8);
        }
        let response = kept.response.as_ref().map_or(0, bytes::Bytes::len);
        ENTRY_BYTES + (name.len() + response) as u64 + blocks.values().sum::<u64>()
    });
    bytes.sum()
}

fn remember(store: &mut Committed, asked: &Remember) {
    if let Some(reserved) = store.reserved.get_mut(&(asked.key, asked.idempotency_key.clone())) {
        reserved.response = Some(asked.response.clone());
    }
}

fn release(store: &mut Committed, asked: &Release) {
    if let Some(reserved) = store.reserved.get_mut(&(asked.key, asked.idempotency_key.clone())) {
        // As if it had been reserved long ago.
        reserved.at = UnixMs(0);
    }
}

fn note_lines(store: &mut Committed, asked: &NoteLines) -> Vec<u64> {
    let Some(reserved) = store.reserved.get_mut(&(asked.key, asked.idempotency_key.clone())) else {
        return Vec::new();
    };
    if reserved.at == UnixMs(0) {
        // It is released.
        return Vec::new();
    }
    reserved.at = asked.now;
    let noted = asked.lines.iter().filter(|line| (1..=LINES_MAX).contains(&line.number));
    let altered =
        noted.filter(|line| *reserved.lines.entry(line.number).or_insert(line.digest) != line.digest);
    altered.map(|line| line.number).collect()
}
