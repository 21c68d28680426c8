//! Requests that may be sent again.

use super::tables::Reserved;
use super::{Committed, answers};
use crate::model::UnixMs;
use crate::ports::store::idempotency::{RESERVED_MS, Release, Remember, Reservation, Reserve};

/// How long a request may take before another with the same key may try: it must have died.
const IN_PROGRESS_MS: u64 = 60 * 1000;

answers! {
    Reserve => reserve;
    Remember => remember;
    Release => release;
}

fn reserve(store: &mut Committed, asked: &Reserve) -> Reservation {
    let Reserve { key, idempotency_key, body_hash, now } = asked;
    let name = (*key, idempotency_key.clone());
    let Some(earlier) =
        store.reserved.get_mut(&name).filter(|earlier| now.0.saturating_sub(earlier.since.0) < RESERVED_MS)
    else {
        let reserved = Reserved { body_hash: *body_hash, since: *now, at: *now, response: None };
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
