//! The store is told which accounts have acknowledged a broadcast, until it has done it, and how often it was given.

use crate::feature_state::notifications::InFlight;
use crate::model::AcknowledgedBy;
use crate::ports::store::broadcasts::{AccountEnd, EndBroadcasts};
use crate::session::{BoundSession, Cx};
use crate::shard::RefusedWrite;

/// The client acknowledged a broadcast.
pub(in crate::features::notifications) fn acknowledged(
    session: &BoundSession,
    entry: &InFlight,
    by: AcknowledgedBy,
    cx: &mut Cx<'_>,
) {
    let end = AccountEnd { id: entry.id, account: session.account, at: cx.now.unix, by };
    if cx.features.notifications.broadcasts.end(end) {
        cx.shard.counters.broadcasts_acknowledged += 1;
        // What is acknowledged in one turn is written together.
        cx.later(|_, cx| write(cx));
    }
}

fn write(cx: &mut Cx<'_>) {
    loop {
        let ends = cx.features.notifications.broadcasts.take_ends();
        if ends.is_empty() {
            return;
        }
        ask(ends, cx);
    }
}

fn ask(ends: Vec<AccountEnd>, cx: &mut Cx<'_>) {
    cx.ask(EndBroadcasts { ends: ends.clone(), given: Vec::new() }, move |said, _, cx| {
        if said.is_err() {
            return ends.into_iter().for_each(|end| cx.retry(RefusedWrite::EndBroadcast(end)));
        }
        cx.shard.retries.succeeded(cx.now.mono);
        for end in ends {
            cx.features.notifications.broadcasts.ended((end.id, end.account));
        }
    });
}

/// Has the store end what it refused to.
pub(in crate::features::notifications) fn retry(
    mut refused: Vec<RefusedWrite>,
    cx: &mut Cx<'_>,
) -> Vec<RefusedWrite> {
    let mut ends = Vec::new();
    for write in refused.extract_if(.., |write| matches!(write, RefusedWrite::EndBroadcast(_))) {
        if let RefusedWrite::EndBroadcast(end) = write {
            ends.push(end);
        }
    }
    ends.sort_by_key(|end| end.id);
    if !ends.is_empty() {
        ask(ends, cx);
    }
    refused
}

/// The store is not told any more: the broadcast may be given again.
pub(in crate::features::notifications) fn given_up(write: &RefusedWrite, cx: &mut Cx<'_>) {
    if let RefusedWrite::EndBroadcast(end) = write {
        cx.features.notifications.broadcasts.stop_end((end.id, end.account));
    }
}

/// Tells the store how often broadcasts were given.
pub(in crate::features::notifications) fn tick(cx: &mut Cx<'_>) {
    let broadcasts = &mut cx.features.notifications.broadcasts;
    if broadcasts.tell_at.is_none_or(|at| at > cx.now.mono) {
        return;
    }
    broadcasts.tell_at = None;
    let given = broadcasts.untold();
    if given.is_empty() {
        return;
    }
    cx.ask(EndBroadcasts { ends: Vec::new(), given: given.clone() }, move |said, _, cx| {
        let broadcasts = &mut cx.features.notifications.broadcasts;
        match said {
            Ok(()) => broadcasts.told(&given),
            Err(_) => broadcasts.tell_at = Some(cx.now.mono.plus(RETRY_MS)),
        }
    });
}

/// The store is told again after so long.
const RETRY_MS: u64 = 1000;
