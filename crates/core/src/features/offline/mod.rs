//! Offline messages (XEP-0160): chat messages for an absent account are kept, and given to the next session that becomes
//! available, in their order and with the time they came (XEP-0203).

mod state;
mod xml;

pub use state::State;

use crate::Effect;
use crate::error::{StanzaError, StreamError};
use crate::model::{ConnId, OfflineMessage};
use crate::ports::Fault;
use crate::ports::store::Part;
use crate::ports::store::offline::{DeleteOffline, Offline, StoreOffline, StoreOfflineAnswer};
use crate::session::hook::{Feature, Hooks, LoginPart, Spec, Step, TimerHandler, TrackedHandler};
use crate::session::{self, BoundSession, Cx, Sessions, backlog};
use crate::shard::{Forget, RefusedWrite, Timer, Track, Tracked};
use carillon_wire::jid::BareJid;
use carillon_wire::stanza::{Condition, Stanza};
use state::Given;

/// The feature.
pub const FEATURE: Feature = Feature {
    name: "offline",
    about: "Keeps chat messages for accounts that are away.",
    specs: &[
        Spec {
            id: "XEP-0160",
            title: "Best Practices for Handling Offline Messages",
            version: "1.0.1",
            coverage: "Chat and normal messages with a body or a store hint; forgotten once the client has them.",
        },
        Spec { id: "XEP-0203", title: "Delayed Delivery", version: "2.0", coverage: "Stamps what was kept." },
        Spec {
            id: "XEP-0334",
            title: "Message Processing Hints",
            version: "1.0.0",
            coverage: "no-store, no-permanent-store and store; no-copy by carbons.",
        },
    ],
    server_features: &["msgoffline"],
    hooks: Hooks {
        must_wait: Some(|session, stanza| session.state.offline.is_behind() && xml::is_worth_keeping(stanza)),
        absent: Some(absent),
        login: &[LoginPart::Messages(|session, wait| session.state.offline.take_login(wait))],
        available: Some(|session, _, _, _| match session.state.offline.is_behind() {
            true => Step::Waits,
            false => Step::Done,
        }),
        catch_up: Some(ask),
        awaits_arrival: Some(owes_word),
        unacked: Some(unacked),
        retry: Some(retry),
        tracked: &[TrackedHandler { kind: TRACKED, acknowledged: acknowledged_all }],
        timers: &[TimerHandler { timer: ARRIVAL, handle: check_receipts }],
        ..Hooks::NONE
    },
    ..Feature::NONE
};

/// Messages that were given must have arrived.
const ARRIVAL: Timer = Timer(*b"offl");

/// Messages that were given, by their numbers.
const TRACKED: Tracked = Tracked(*b"offl");

/// Asks for the next page of what waits, if anything does and the session takes messages.
fn ask(session: &mut BoundSession, cx: &mut Cx<'_>) -> Step {
    let (takes, page) = (session.presence.takes_messages(), backlog::page(session, cx));
    let Some(progress) = &mut session.state.offline.0 else { return Step::Done };
    if progress.reading.asking {
        return Step::Waits;
    }
    if !takes || !progress.reading.more {
        return Step::Done;
    }
    (progress.reading.more, progress.reading.asking) = (false, true);
    let (domain, local) = (session.domain, session.bare.local().unwrap_or_default().into());
    let (conn, ask) = (session.io.conn, Offline { domain, local, after: progress.last, page });
    cx.ask(ask, move |answer, sessions, cx| take_page(conn, answer, sessions, cx));
    Step::Waits
}

/// The client acknowledged these.
fn acknowledged_all(session: &mut BoundSession, ids: &[u128], cx: &mut Cx<'_>) {
    let seqs = ids.iter().filter_map(|id| u64::try_from(*id).ok()).collect();
    acknowledged(session, seqs, cx);
}

/// The client has these.
fn acknowledged(session: &BoundSession, seqs: Vec<u64>, cx: &mut Cx<'_>) {
    if !seqs.is_empty() {
        let local = session.bare.local().unwrap_or_default().into();
        forget(Forget { domain: session.domain, local, seqs }, cx);
    }
}

/// Has the store forget messages.
fn forget(forget: Forget, cx: &mut Cx<'_>) {
    cx.shard.retries.begin_forgetting(&forget.seqs);
    let Forget { domain, local, seqs } = forget.clone();
    cx.ask(DeleteOffline { domain, local, seqs }, move |answer, _, cx| match answer {
        Ok(()) => {
            cx.shard.retries.forgotten(&forget.seqs);
            cx.shard.retries.succeeded(cx.now.mono);
        }
        Err(_) => cx.shard.retries.add(RefusedWrite::Forget(forget), cx.now.mono),
    });
}

/// Has the store forget what it refused to.
fn retry(refused: Vec<RefusedWrite>, cx: &mut Cx<'_>) -> Vec<RefusedWrite> {
    let mut others = Vec::new();
    for write in refused {
        match write {
            RefusedWrite::Forget(messages) => forget(messages, cx),
            other => others.push(other),
        }
    }
    others
}

/// The store keeps a message, or not.
fn stored(
    stanza: &Stanza,
    answer: Result<StoreOfflineAnswer, Fault>,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) {
    let condition = match answer {
        Ok(StoreOfflineAnswer::Stored) => return kept(stanza, sessions, cx),
        Ok(StoreOfflineAnswer::NoAccount | StoreOfflineAnswer::Full) => Condition::ServiceUnavailable,
        Err(_) => Condition::InternalServerError,
    };
    if let Some(reply) = stanza.error_reply(&StanzaError::new(condition)) {
        cx.reply(reply);
    }
}

/// A message was kept: sessions that became available meanwhile get it now, the others when they do.
fn kept(stanza: &Stanza, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    let Some(to) = &stanza.to else { return };
    cx.shard.changed(to.bare_str());
    for slot in sessions.of(to.bare_str()) {
        let Some(session) = sessions.bound_in(slot) else { continue };
        session.state.offline.progress().reading.more = true;
        backlog::go_on(session, cx);
    }
}

/// A page of what waits came from the store.
fn take_page(
    conn: ConnId,
    answer: Result<Part<OfflineMessage>, Fault>,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) {
    let Some(session) = sessions.bound(conn) else { return };
    let takes = session.presence.takes_messages();
    let reading = &mut session.state.offline.progress().reading;
    let Ok(page) = answer else {
        return backlog::failed(reading.failed(), conn, cx);
    };
    // What came at the wrong moment is asked for again.
    reading.came(page.more || !takes);
    if takes {
        give(session, page.entries, cx);
        backlog::await_flush(session, cx);
    } else {
        backlog::go_on(session, cx);
    }
}

/// Gives a page, or as much of it as is written at once.
fn give(session: &mut BoundSession, page: Vec<OfflineMessage>, cx: &mut Cx<'_>) {
    let managed = session.unacknowledged.is_some();
    let (began, mut unreadable) = (cx.out.bytes.len(), Vec::new());
    for message in page {
        if cx.out.bytes.len() - began >= backlog::WRITTEN_BYTES_MAX {
            session.state.offline.progress().reading.more = true;
            break;
        }
        let seq = message.seq;
        session.state.offline.progress().last = seq;
        // Another session has it.
        if cx.shard.retries.is_forgetting(seq) {
            continue;
        }
        let Some(stanza) = xml::read(&message, session.bare.domain()) else {
            // It was well-formed when it was kept; should it not be now, it must not come back for ever.
            unreadable.push(seq);
            continue;
        };
        let before = cx.out.bytes.len();
        session.deliver(stanza, &Track::Of(TRACKED, u128::from(seq)), cx);
        let progress = session.state.offline.progress();
        progress.given += (cx.out.bytes.len() - before) as u64;
        if !managed {
            progress.unacked.push(Given { seq, end: progress.given });
        }
    }
    acknowledged(session, unreadable, cx);
    look_later(session, cx);
}

/// Looks after a while how much has arrived.
fn look_later(session: &mut BoundSession, cx: &mut Cx<'_>) {
    if let Some(progress) = &mut session.state.offline.0
        && !progress.unacked.is_empty()
        && !std::mem::replace(&mut progress.timed, true)
    {
        cx.set_timer(session.io.conn, LOOK_MS, ARRIVAL);
    }
}

fn check_receipts(session: &mut BoundSession, cx: &mut Cx<'_>) -> Result<(), StreamError> {
    if let Some(progress) = &mut session.state.offline.0
        && !progress.unacked.is_empty()
    {
        progress.timed = false;
        cx.out.push(Effect::CountUnacked { conn: session.io.conn });
    }
    Ok(())
}

/// Whether the session was given messages of which only the peer's TCP can say that they arrived.
fn owes_word(session: &BoundSession) -> bool {
    session.state.offline.0.as_ref().is_some_and(|progress| !progress.unacked.is_empty())
}

/// Without stream management, what has arrived at the peer's side is forgotten.
fn unacked(session: &mut BoundSession, bytes: u64, cx: &mut Cx<'_>) {
    let Some(progress) = &mut session.state.offline.0 else { return };
    let given = progress.given;
    let has_arrived = |message: &&Given| session::has_arrived(given - message.end, bytes);
    let arrived = progress.unacked.iter().take_while(has_arrived).count();
    let seqs = progress.unacked.drain(..arrived).map(|message| message.seq).collect();
    acknowledged(session, seqs, cx);
    look_later(session, cx);
}

fn absent(stanza: &Stanza, _: &[&BoundSession], cx: &mut Cx<'_>) -> Result<bool, StanzaError> {
    let Some(to) = stanza.to.as_ref().map(carillon_wire::jid::Jid::bare) else { return Ok(false) };
    if !xml::is_worth_keeping(stanza) {
        return Ok(false);
    }
    let Some(ask) = keep(stanza, &to, cx) else { return Ok(false) };
    let stanza = stanza.clone();
    cx.ask(ask, move |answer, sessions, cx| stored(&stanza, answer, sessions, cx));
    Ok(true)
}

fn keep(stanza: &Stanza, to: &BareJid, cx: &Cx<'_>) -> Option<StoreOffline> {
    let domain = cx.shard.domains.named(to.domain())?.id;
    let local = to.local()?.into();
    let queue_max = cx.shard.settings.limits.offline_messages;
    Some(StoreOffline { domain, local, received: cx.now.unix, stanza: xml::write(stanza), queue_max })
}

/// How long after a message was given it is looked whether it has arrived, and how often from then on.
const LOOK_MS: u64 = 1000;
