//! Offline messages (XEP-0160): chat messages for an absent account are kept, and given to the next session that becomes
//! available, in their order and with the time they came (XEP-0203).

mod arrival;
mod expired;
mod keep;
mod xml;

use crate::error::StanzaError;
use crate::event::Leave;
use crate::feature_state::offline::GivenMessage;
use crate::model::{OfflineMessage, SessionId, Settlement};
use crate::ports::store::offline::{DeleteOffline, Offline, StoreOffline, StoreOfflineAnswer};
use crate::ports::{Fault, Page};
use crate::session::backlog::Paged;
use crate::session::hook::{
    CatchUp, Feature, Handling, Held, Hooks, LoginPart, Spec, Stored, Taken, TimerHandler, TrackedHandler,
};
use crate::session::{BoundSession, Cx, Sessions, backlog};
use crate::shard::{Fate, Forget, Pager, Reads, RefusedWrite, Track, Tracked};
use carillon_wire::jid::BareJid;
use carillon_wire::stanza::{Condition, Stanza};

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
        must_wait: Some(must_wait),
        absent: Some(absent),
        keep: Some(&keep::HANDLER),
        message: Some(expired::message),
        login: &[LoginPart::Messages(|session, wait| session.state.offline.take_login(wait))],
        available: Some(|session, _, _, _| match session.state.offline.is_behind() {
            true => CatchUp::Waits,
            false => CatchUp::Done,
        }),
        catch_up: Some(catch_up),
        close: Some(close),
        awaits_arrival: Some(|session| session.state.offline.has_unmanaged()),
        given: Some(arrival::given),
        receive: Some(arrival::received),
        unacked: Some(arrival::unacked),
        leaves: Some(arrival::leaves),
        parked: Some(parked),
        taken: Some(|session, cx| {
            if let Some(progress) = &session.state.offline.0 {
                arrival::resized(session.id, progress.live.bytes(), 0, cx);
            }
        }),
        // Something may have been stored while it was in no process.
        restored: Some(|session, _, _| {
            // While it has its connection the store gets nothing for it.
            if session.is_parked() {
                session.state.offline.look_again();
            }
        }),
        retry: Some(retry),
        given_up: Some(given_up),
        tracked: &[TrackedHandler { kind: TRACKED, acknowledged, is_over }],
        timers: &[
            TimerHandler { timer: arrival::ARRIVAL, handle: arrival::check },
            TimerHandler { timer: arrival::AWAITED, handle: arrival::check_soon },
        ],
        ..Hooks::NONE
    },
    ..Feature::NONE
};

/// Messages that were given, by their numbers.
const TRACKED: Tracked = Tracked(*b"offl");

/// What the store holds: messages of the session's account.
struct OfflineMessages;

impl Paged for OfflineMessages {
    type Question = Offline;
    type Entry = OfflineMessage;
    type InFlight = GivenMessage;
    type Id = u64;

    fn reads<'a>(cx: &'a mut Cx<'_>) -> &'a mut Reads<u64> {
        &mut cx.features.offline.reads
    }

    fn takes(session: &BoundSession) -> bool {
        session.presence.takes_messages()
    }

    /// The store may have a message that the session was given otherwise, and it is not known here under which number.
    fn is_in_doubt(session: &BoundSession, cx: &Cx<'_>) -> bool {
        cx.features.offline.is_keeping(session.bare.as_str())
    }

    fn pager(session: &mut BoundSession) -> Option<&mut Pager<GivenMessage>> {
        session.state.offline.0.as_mut().map(|progress| &mut progress.pager)
    }

    fn question(session: &BoundSession, page: Page, _cx: &Cx<'_>) -> Offline {
        let after = session.state.offline.0.as_ref().map_or(0, |progress| progress.last);
        Offline { domain: session.domain, local: local(session), after, page }
    }

    fn give(session: &mut BoundSession, message: &OfflineMessage, cx: &mut Cx<'_>) {
        let seq = message.seq;
        session.state.offline.progress().last = seq;
        let pager = &session.state.offline.progress().pager;
        // It was given before those that are given again now.
        if pager.in_flight().any(|given| given.seq == seq) {
            return;
        }
        // Another session has it.
        if cx.features.offline.is_gone(seq) {
            return;
        }
        // The store ends it.
        if message.expires.is_some_and(|at| at <= cx.now.unix) {
            return;
        }
        let Some(stanza) = xml::read(message, session.bare.domain()) else {
            // It was well-formed when it was stored; should it not be now, it must not come back for ever.
            return delete(session, vec![seq], cx);
        };
        became(&stanza, Handling::Kept(cx.now.unix), cx);
        session.deliver(stanza, Track::Of(TRACKED, u128::from(seq)), cx);
        let given = GivenMessage { seq, managed: session.is_managed() };
        let sent = session.sent();
        session.state.offline.progress().pager.gave(given, sent);
    }

    fn given(session: &mut BoundSession, _messages: &[OfflineMessage], cx: &mut Cx<'_>) {
        arrival::look_later(session, cx);
    }
}

/// No page is asked for that would be in doubt.
fn catch_up(session: &mut BoundSession, cx: &mut Cx<'_>) -> CatchUp {
    if session.state.offline.is_behind() && OfflineMessages::is_in_doubt(session, cx) {
        return CatchUp::Waits;
    }
    backlog::catch_up::<OfflineMessages>(session, cx)
}

fn local(session: &BoundSession) -> Box<str> {
    session.bare.local().into()
}

/// The client acknowledged these.
fn acknowledged(session: &mut BoundSession, ids: &[u128], cx: &mut Cx<'_>) {
    let seqs = ids.iter().filter_map(|id| u64::try_from(*id).ok()).collect();
    delete(session, seqs, cx);
}

/// Whether another session of the account has one that the client did not receive.
fn is_over(session: &mut BoundSession, id: u128, cx: &mut Cx<'_>) -> bool {
    let is_it = |given: &GivenMessage| u128::from(given.seq) == id;
    let Some(progress) = &mut session.state.offline.0 else { return true };
    if !progress.pager.in_flight().any(is_it) {
        return true;
    }
    let is_going = u64::try_from(id).is_ok_and(|seq| cx.features.offline.is_deleting(seq));
    if is_going {
        progress.pager.acknowledged(is_it);
        session.state.offline.tidy();
    }
    is_going
}

/// The client has these messages, or can never be given them: the store deletes them.
fn delete(session: &mut BoundSession, seqs: Vec<u64>, cx: &mut Cx<'_>) {
    if seqs.is_empty() {
        return;
    }
    let progress = session.state.offline.progress();
    for seq in &seqs {
        progress.pager.acknowledged(|given| given.seq == *seq);
    }
    progress.deletions += 1;
    forget(Forget { domain: session.domain, local: local(session), seqs }, Some(session.id), cx);
}

/// Has the store delete messages. `counts`: the session that counts the deletion, if one does.
fn forget(forget: Forget, counts: Option<SessionId>, cx: &mut Cx<'_>) {
    cx.features.offline.begin_deleting(&forget.seqs);
    let Forget { domain, local, seqs } = forget.clone();
    cx.ask(DeleteOffline { domain, local, seqs }, move |answer, sessions, cx| {
        match answer {
            Ok(()) => {
                take_back(&forget, sessions, cx);
                cx.features.offline.deleted(&forget.seqs);
                cx.shard.retries.succeeded(cx.now.mono);
            }
            // From now on the retries know that these messages are not to be given again.
            Err(_) => cx.retry(RefusedWrite::Forget(forget)),
        }
        if let Some(session) = counts.and_then(|id| sessions.bound(id)) {
            session.state.offline.progress().deletions -= 1;
            session.state.offline.tidy();
        }
    });
}

/// Messages are deleted: other sessions that were given them, too, and are parked, are not given them again.
fn take_back(forget: &Forget, sessions: &mut Sessions, cx: &Cx<'_>) {
    let Some(domain) = cx.shard.domains.numbered(forget.domain) else { return };
    for slot in sessions.of(&format!("{}@{}", forget.local, domain.name)) {
        let Some(session) = sessions.bound_in(slot) else { continue };
        if let Some(progress) = &mut session.state.offline.0 {
            progress.pager.take_back(|given| forget.seqs.contains(&given.seq));
        }
        session.state.offline.tidy();
    }
}

/// Repeats deletions that the store refused.
fn retry(refused: Vec<RefusedWrite>, cx: &mut Cx<'_>) -> Vec<RefusedWrite> {
    let mut others = Vec::new();
    for write in refused {
        match write {
            RefusedWrite::Forget(messages) => forget(messages, None, cx),
            RefusedWrite::Keep(keep) => keep::again(keep, cx),
            other => others.push(other),
        }
    }
    others
}

/// A write is not repeated any more: what it is about may be given again.
fn given_up(write: &RefusedWrite, cx: &mut Cx<'_>) {
    match write {
        RefusedWrite::Forget(forget) => cx.features.offline.stop_deleting(&forget.seqs),
        RefusedWrite::Keep(keep) => {
            // Its sender waits for one of the sessions.
            if keep.recipients.fate() == Fate::Asked {
                keep.recipients.decide(Fate::Theirs);
            }
            cx.features.offline.stop_keeping(keep.account.as_str());
        }
        RefusedWrite::End(_) | RefusedWrite::EndBroadcast(_) | RefusedWrite::Store(_) => {}
    }
}

/// The store's answer to keeping a message.
fn stored(
    stanza: &Stanza,
    answer: Result<StoreOfflineAnswer, Fault>,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) {
    let condition = match answer {
        Ok(StoreOfflineAnswer::Stored(_)) => {
            kept(stanza, sessions, cx);
            return became(stanza, Handling::Stored, cx);
        }
        Ok(StoreOfflineAnswer::NoAccount | StoreOfflineAnswer::Full) => {
            let rules = cx.pipeline.rules_of(stanza);
            if rules.is_some_and(|rules| (rules.ends)(stanza, Handling::Nowhere, cx)) {
                return;
            }
            became(stanza, Handling::Nowhere, cx);
            Condition::ServiceUnavailable
        }
        Err(fault) => {
            // It may be stored: newer ones must not overtake it.
            if fault == Fault::Unknown {
                kept(stanza, sessions, cx);
            }
            Condition::InternalServerError
        }
    };
    if let Some(reply) = stanza.error_reply(&StanzaError::new(condition)) {
        cx.reply(reply);
    }
}

/// Its sender is told what became of a message, if a rule says so.
fn became(stanza: &Stanza, handling: Handling<'_>, cx: &mut Cx<'_>) {
    if let Some(rules) = cx.pipeline.rules_of(stanza) {
        (rules.became)(stanza, handling, cx);
    }
}

/// A message was stored: sessions that became available meanwhile are given it now, others when they become available.
fn kept(stanza: &Stanza, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    let Some(to) = &stanza.to else { return };
    cx.shard.accounts.changed(to.bare_str());
    look_again(&to.bare(), true, sessions, cx);
}

/// The sessions of an account go on with what waits for them. `is_new`: the store may hold something that they were not given.
fn look_again(account: &BareJid, is_new: bool, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    for slot in sessions.of(account.as_str()) {
        let Some(session) = sessions.bound_in(slot) else { continue };
        if is_new {
            session.state.offline.look_again();
        }
        backlog::go_on(session, cx);
    }
}

/// The session ends: what it was given and did not acknowledge is for the others of its account.
fn close(session: &mut BoundSession, _leave: Leave, cx: &mut Cx<'_>) {
    let Some(mut progress) = session.state.offline.0.take() else { return };
    if progress.pager.in_flight().len() > 0 {
        let account = session.bare.to_bare();
        cx.later(move |sessions, cx| look_again(&account, true, sessions, cx));
    }
    arrival::resized(session.id, progress.live.bytes(), 0, cx);
    arrival::lost(session, progress.live.take(), cx);
}

/// The connection is gone: what only the peer's TCP could have acknowledged is given again.
fn parked(session: &mut BoundSession, _waiting: Option<&Stanza>, cx: &mut Cx<'_>) -> Option<u32> {
    if session.state.offline.has_unmanaged() {
        let progress = session.state.offline.progress();
        progress.pager.take_back(|given| !given.managed);
        progress.pager.look_again();
        progress.last = 0;
        let bytes = progress.live.bytes();
        let live = progress.live.take();
        arrival::resized(session.id, bytes, 0, cx);
        arrival::lost(session, live, cx);
    }
    None
}

/// Older messages are on their way to the session, or to the store; or more have not arrived than one that reads leaves; or its client is away, and a crash must not lose what it is given
/// when it returns.
fn must_wait(session: &BoundSession, stanza: &Stanza, cx: &Cx<'_>) -> Option<Held> {
    let account = session.bare.as_str();
    let reason = if session.is_parked() {
        Held::Parked
    } else if session.state.offline.is_behind() {
        Held::Backlog
    } else if session.state.offline.is_full(cx.shard.settings.limits.unacknowledged_bytes) {
        Held::Unread
    } else if cx.features.offline.storing.is_under_way(account) || cx.features.offline.is_keeping(account) {
        Held::Storing
    } else {
        return None;
    };
    xml::is_worth_keeping(stanza).then_some(reason)
}

fn absent(
    stanza: &Stanza,
    sessions: &[&BoundSession],
    settlement: &mut Option<Settlement>,
    cx: &mut Cx<'_>,
) -> Result<Option<Taken>, StanzaError> {
    let Some(to) = stanza.to.as_ref().map(carillon_wire::jid::Jid::bare) else { return Ok(None) };
    if !xml::is_worth_keeping(stanza) {
        return Ok(None);
    }
    let is_attended = sessions.iter().any(|session| !session.is_parked());
    let Some(ask) = question(stanza, &to, is_attended, cx) else { return Ok(None) };
    let (stanza, settlement) = (stanza.clone(), settlement.take());
    cx.features.offline.storing.begin(to.as_str());
    cx.ask(ask, move |answer, sessions, cx| {
        cx.features.offline.storing.end(to.as_str());
        stored(&stanza, answer, sessions, cx);
        cx.settle(settlement);
    });
    Ok(Some(Taken::Stored))
}

fn question(stanza: &Stanza, to: &BareJid, is_attended: bool, cx: &Cx<'_>) -> Option<StoreOffline> {
    let (domain, is_full) =
        cx.shard.domains.named(to.domain()).map(|domain| (domain.id, domain.is_full()))?;
    let local = to.local()?.into();
    let (queue_max, bytes_max) =
        (cx.shard.settings.limits.offline_messages, cx.shard.settings.limits.offline_bytes);
    let bytes_max = if is_full { 0 } else { bytes_max };
    Some(StoreOffline {
        domain,
        local,
        received: cx.now.unix,
        stanza: xml::write(stanza),
        expires: cx.pipeline.rules_of(stanza).and_then(|rules| (rules.expires)(stanza)),
        queue_max,
        bytes_max,
        wake: cx.pipeline.wakes.and_then(|wakes| wakes(Stored::Message(stanza), is_attended, cx)),
    })
}
