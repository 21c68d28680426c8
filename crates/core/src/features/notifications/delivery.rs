//! At the session: a notification is given to the connection, and acknowledged by the best means that the client supports.

use super::giving::{RECEIPT, give, has_too_many};
use super::{broadcast, ends, hops, report, xml};
use crate::command::Reach;
use crate::error::{StanzaError, StreamError};
use crate::event::{Entry, Kind, Leave};
use crate::feature_state::notifications::{InFlight, Recipient};
use crate::model::*;
use crate::ports::Page;
use crate::ports::store::notifications::{NotificationChange, Pending};
use crate::session::backlog::Paged;
use crate::session::hook::{Flow, Taken};
use crate::session::{BoundSession, Cx, Sessions, backlog};
use crate::shard::{End, Pager, Reads};
use carillon_wire::jid::BareJid;
use carillon_wire::stanza::{Condition, IqType, Kind as StanzaKind, Stanza};

/// Gives a notification to every session of its account that it is for. A session that is not given one that is kept asks the
/// store for it later.
pub(super) fn deliver(
    notification: &Notification,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) -> Result<(), DropReason> {
    let is_kept = notification.audience == Audience::Always;
    let mut result = Err(DropReason::NotConnected);
    for slot in sessions.of(notification.to.as_str()) {
        let Some(session) = sessions.bound_in(slot) else { continue };
        if !notification.payload.is_for(session.jid.resource()) {
            continue;
        }
        let reason = match is_for(notification.audience, session) {
            // It comes behind the older ones that are on their way, or when the client is back.
            Ok(()) if is_kept && (session.is_parked() || session.state.notifications.is_behind()) => {
                DropReason::NotActive
            }
            Ok(()) if has_too_many(session) => DropReason::QueueFull,
            Ok(()) => {
                send(session, notification, cx);
                let waited = cx.now.unix.0.saturating_sub(notification.accepted.0);
                cx.shard.counters.latency.record(waited);
                result = Ok(());
                continue;
            }
            Err(reason) => reason,
        };
        if is_kept {
            session.state.notifications.look_again();
        }
        result = result.or(Err(reason));
    }
    result
}

fn is_for(audience: Audience, session: &BoundSession) -> Result<(), DropReason> {
    match session.reach() {
        Reach::Unavailable => Err(DropReason::NotConnected),
        Reach::Asleep if audience == Audience::Active => Err(DropReason::NotActive),
        Reach::Asleep | Reach::Active => Ok(()),
    }
}

/// The store may hold a notification that some session of the account was not given.
pub(super) fn look_again(account: &BareJid, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    for slot in sessions.of(account.as_str()) {
        if let Some(session) = sessions.bound_in(slot) {
            session.state.notifications.look_again();
            backlog::go_on(session, cx);
        }
    }
}

/// The same for one notification that another session was given from there.
pub(super) fn look_for(id: NotificationId, account: &BareJid, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    for slot in sessions.of(account.as_str()) {
        let Some(session) = sessions.bound_in(slot) else { continue };
        if session.state.notifications.in_flight().all(|entry| entry.id != id) {
            session.state.notifications.look_again();
            backlog::go_on(session, cx);
        }
    }
}

/// What the store holds: notifications with the audience `always`. What a device cannot take yet stays there.
pub(super) struct Kept;

impl Paged for Kept {
    type Question = Pending;
    type Entry = Notification;
    type InFlight = InFlight;
    type Id = NotificationId;

    fn reads<'a>(cx: &'a mut Cx<'_>) -> &'a mut Reads<NotificationId> {
        cx.features.notifications.reads()
    }

    fn takes(session: &BoundSession) -> bool {
        session.presence.is_available()
    }

    fn pager(session: &mut BoundSession) -> Option<&mut Pager<InFlight>> {
        session.state.notifications.0.as_deref_mut()
    }

    fn question(session: &BoundSession, page: Page, cx: &Cx<'_>) -> Pending {
        let mut except: Vec<_> = session.state.notifications.in_flight().map(|entry| entry.id).collect();
        // Those that another session acknowledged just now, too.
        except.extend(cx.features.notifications.ending(bucket(session.bare.as_str())));
        let local = session.bare.local().into();
        let resource = session.jid.resource().map(Box::from);
        Pending { domain: session.domain, local, resource, except, page, now: cx.now.unix }
    }

    fn give(session: &mut BoundSession, notification: &Notification, cx: &mut Cx<'_>) {
        if is_fresh(notification, cx) {
            send(session, notification, cx);
        }
    }

    fn given(session: &mut BoundSession, notifications: &[Notification], cx: &mut Cx<'_>) {
        for notification in notifications {
            if !is_fresh(notification, cx) {
                continue;
            }
            let mut trace = Trace::of(notification);
            trace.state = NotificationState::Sent;
            trace.stored = Some(notification.accepted);
            trace.sent = Some(cx.now.unix);
            report::report(&trace, cx);
            cx.features.notifications.note_sent(trace.id, cx.now.unix, cx.now.mono);
            report::keep_trace(trace, cx);
        }
        session.state.notifications.tidy();
    }
}

/// Whether a notification is still to be given: it has not expired, and no session acknowledged it while the store was asked.
fn is_fresh(notification: &Notification, cx: &Cx<'_>) -> bool {
    let (id, to) = (notification.id, Recipient::Session);
    cx.features.notifications.may_be_given((id, notification.expires), to, cx.now.unix).is_ok()
}

/// Gives a notification to the connection.
fn send(session: &mut BoundSession, notification: &Notification, cx: &mut Cx<'_>) {
    let (id, managed) = (notification.id, session.unacknowledged.is_some());
    if session.state.notifications.in_flight().any(|entry| entry.id == id) {
        return;
    }
    let (audience, expires, is_kept) = (notification.audience, notification.expires, notification.is_kept());
    let (sent, at) = (cx.now.unix, cx.now.mono);
    let given = InFlight { id, audience, expires, is_kept, sent, at, managed };
    let stanza = match &notification.payload {
        Payload::Request(request) => xml::request(id, request, session),
        Payload::Json(_) | Payload::Xml(_) => {
            xml::message(id, xml::payload(&xml::Content::of(notification), !managed), session)
        }
    };
    give(session, &stanza, given, notification.accepted, cx);
}

/// The client acknowledged these.
pub(super) fn acknowledged_all(session: &mut BoundSession, ids: &[u128], cx: &mut Cx<'_>) {
    for id in ids {
        acknowledged(session, NotificationId(*id), AcknowledgedBy::StreamManagement, cx);
    }
}

/// Whether one that the client did not receive is not to be given from memory: because it has ended, or because the store has it, which knows
/// whether it has, and gives it again.
pub(super) fn is_over(session: &mut BoundSession, id: u128, cx: &mut Cx<'_>) -> bool {
    let id = NotificationId(id);
    let Some(pager) = &mut session.state.notifications.0 else { return true };
    let Some(entry) = pager.in_flight().find(|entry| entry.id == id).copied() else { return true };
    if entry.is_broadcast() {
        return broadcast::is_over(session, id, cx);
    }
    if entry.audience == Audience::Always {
        pager.acknowledged(|entry| entry.id == id);
        pager.look_again();
        return true;
    }
    let has_expired = entry.expires.is_some_and(|expires| expires <= cx.now.unix);
    let trace = cx.features.notifications.trace(id);
    let is_unknown = trace.is_none();
    // The trace of one that the store has is here until its end is committed, unless there were too many.
    let has_ended =
        trace.map_or(entry.is_kept, |trace| trace.state.is_end()) || cx.features.notifications.is_ending(id);
    if !has_expired && !has_ended {
        return false;
    }
    pager.acknowledged(|entry| entry.id == id);
    if is_unknown && entry.is_kept {
        drop_kept(session.domain, &entry, cx);
    } else if has_expired && !entry.is_kept {
        // The store finds out by itself when what it keeps expires.
        end_unkept(session, id, cx, |trace| trace.state = NotificationState::Expired);
    }
    session.state.notifications.tidy();
    true
}

/// Ends a stored notification as dropped: it was given to a connection that is lost, and must not be given again.
fn drop_kept(domain: DomainId, entry: &InFlight, cx: &mut Cx<'_>) {
    let change = NotificationChange {
        id: entry.id,
        state: NotificationState::Dropped,
        sent: Some(entry.sent),
        at: cx.now.unix,
        acknowledged_by: None,
        reason: Some(DropReason::ConnectionLost),
    };
    ends::end(End { domain, change }, cx);
}

/// The device has it.
fn acknowledged(session: &mut BoundSession, id: NotificationId, by: AcknowledgedBy, cx: &mut Cx<'_>) {
    let Some(pager) = &mut session.state.notifications.0 else { return };
    let Some(entry) = pager.acknowledged(|entry| entry.id == id) else { return };
    let after_ms = cx.now.unix.0.saturating_sub(entry.sent.0);
    if by != AcknowledgedBy::Socket {
        cx.shard.counters.acknowledgement.record(after_ms);
    }
    cx.out.journal.note(cx.now.unix, Kind::Acknowledge, || Entry::Acknowledge {
        id,
        to: session.jid.as_str(),
        by,
        after_ms,
    });
    hops::note(id, cx, || HopStep::Acknowledged { session: session.jid.clone(), by });
    if entry.is_broadcast() {
        broadcast::acknowledged(session, &entry, by, cx);
    } else if entry.is_kept {
        let change = NotificationChange {
            id,
            state: NotificationState::Acknowledged,
            sent: Some(entry.sent),
            at: cx.now.unix,
            acknowledged_by: Some(by),
            reason: None,
        };
        ends::end(End { domain: session.domain, change }, cx);
    } else {
        end_unkept(session, id, cx, |trace| {
            trace.state = NotificationState::Acknowledged;
            trace.acknowledged_by = Some(by);
        });
    }
    session.state.notifications.tidy();
    broadcast::made_room(session, cx);
}

/// Receipts did not come in time: what the peer's TCP has acknowledged decides.
pub(super) fn check_receipts(session: &mut BoundSession, cx: &mut Cx<'_>) -> Result<(), StreamError> {
    session.state.notifications.pager().timer_fired();
    if session.state.notifications.unmanaged().is_some_and(|first| first.at <= due(cx)) {
        // It goes on in `unacked`.
        session.count_unacked(cx);
    } else {
        wait_for_receipts(session, cx);
    }
    Ok(())
}

/// Sets the timer for the next receipt.
fn wait_for_receipts(session: &mut BoundSession, cx: &mut Cx<'_>) {
    if let Some(first) = session.state.notifications.unmanaged() {
        let at = first.at.plus(cx.shard.settings.receipt_wait_ms);
        if session.state.notifications.pager().begin_timer() {
            session.set_timer(at.since(cx.now.mono).max(LOOK_MS), RECEIPT, cx);
        }
    }
    session.state.notifications.tidy();
}

/// The time up to which notifications were given whose receipts are overdue.
fn due(cx: &Cx<'_>) -> Mono {
    Mono(cx.now.mono.0.saturating_sub(cx.shard.settings.receipt_wait_ms))
}

/// All but the last `bytes` of the `sent` that the session was sent have arrived at the peer's side. Of a client that uses neither
/// stream management nor receipts no more can be known; of one that closes its stream no receipt will come.
pub(super) fn unacked(session: &mut BoundSession, bytes: u64, sent: u32, cx: &mut Cx<'_>) {
    let Some(pager) = &session.state.notifications.0 else { return };
    let by = if session.is_leaving() { cx.now.mono } else { due(cx) };
    let arrived = pager.arrived(bytes, sent).filter(|entry| !entry.managed && entry.at <= by);
    for id in arrived.map(|entry| entry.id).collect::<Vec<_>>() {
        acknowledged(session, id, AcknowledgedBy::Socket, cx);
    }
    wait_for_receipts(session, cx);
}

/// Stanzas to the notification service: of messages only receipts are accepted, and a response acknowledges a notification that is a request.
pub(super) fn submit(
    session: &mut BoundSession,
    stanza: &mut Stanza,
    cx: &mut Cx<'_>,
) -> Result<Flow, StanzaError> {
    match stanza.kind {
        StanzaKind::Message(_) => {}
        StanzaKind::Iq(IqType::Result | IqType::Error) => {
            responded(session, stanza, cx);
            return Ok(Flow::Pass);
        }
        StanzaKind::Iq(_) | StanzaKind::Presence(_) => return Ok(Flow::Pass),
    }
    match xml::receipt(stanza) {
        Some(id) => {
            if let Ok(id) = id.parse() {
                received(session, id, cx);
            }
            Ok(Flow::Taken(Taken::Receipt))
        }
        None => Err(StanzaError::new(Condition::ServiceUnavailable)),
    }
}

/// The client responded to a request. An error that is not for good acknowledges nothing.
fn responded(session: &mut BoundSession, stanza: &Stanza, cx: &mut Cx<'_>) {
    let Some((id, _)) = stanza.id.as_deref().and_then(PushRequest::read_id) else { return };
    if stanza.kind == StanzaKind::Iq(IqType::Result) || PushRequest::is_refused_for_good(stanza) {
        received(session, id, cx);
    }
}

/// The client says that it has a notification.
fn received(session: &mut BoundSession, id: NotificationId, cx: &mut Cx<'_>) {
    acknowledged(session, id, AcknowledgedBy::Receipt, cx);
    if session.state.notifications.is_behind() {
        backlog::go_on(session, cx);
    }
}

/// The session ends: what it did not acknowledge waits in the store for the next session, or is dropped.
pub(super) fn close(session: &mut BoundSession, _leave: Leave, cx: &mut Cx<'_>) {
    if let Some(mut pager) = session.state.notifications.0.take() {
        let lost = pager.take_back(|_| true);
        give_up(session, &lost, cx);
    }
    cx.features.notifications.broadcasts.left(session.id);
}

/// The connection is gone: what stream management does not count is given up, as if the session had ended.
pub(super) fn parked(session: &mut BoundSession, _waiting: Option<&Stanza>, cx: &mut Cx<'_>) -> Option<u32> {
    cx.features.notifications.broadcasts.left(session.id);
    let pager = session.state.notifications.0.as_mut()?;
    let lost = pager.take_back(|entry| !entry.managed);
    give_up(session, &lost, cx);
    session.state.notifications.tidy();
    None
}

fn give_up(session: &BoundSession, lost: &[InFlight], cx: &mut Cx<'_>) {
    let mut waits = false;
    // A broadcast is given again to who comes and has not acknowledged it.
    for entry in lost.iter().filter(|entry| !entry.is_broadcast()) {
        if entry.audience == Audience::Always {
            // The store is told that it was sent before its trace is forgotten here.
            cx.features.notifications.note_sent(entry.id, entry.sent, cx.now.mono);
            waits = true;
        } else if entry.is_kept {
            drop_kept(session.domain, entry, cx);
        } else {
            end_unkept(session, entry.id, cx, |trace| {
                trace.state = NotificationState::Dropped;
                trace.reason = Some(DropReason::ConnectionLost);
            });
        }
    }
    if waits {
        cx.shard.accounts.changed(session.bare.as_str());
        let account = session.bare.to_bare();
        cx.later(move |sessions, cx| look_again(&account, sessions, cx));
    }
}

/// One that the store does not have ends, unless another session of the account was faster.
fn end_unkept(session: &BoundSession, id: NotificationId, cx: &mut Cx<'_>, end: impl FnOnce(&mut Trace)) {
    let now = cx.now.unix;
    let ended = cx.features.notifications.end_unkept(id, |trace| {
        end(trace);
        trace.ended = Some(now);
    });
    if let Some(trace) = ended {
        report::report_end(&trace, session.domain, cx);
    }
}

/// The least pause between two looks at what has arrived.
const LOOK_MS: u64 = 500;
