//! At the session: a notification is given to the connection, and acknowledged by whatever the client can do.

use super::{InFlight, PAGE, Then, home, xml};
use crate::Effect;
use crate::command::Reach;
use crate::error::{StanzaError, StreamError};
use crate::event::{Entry, Kind};
use crate::hook::{Ending, Flow, Track};
use crate::model::*;
use crate::node::{self, Cx, Sessions, Wake};
use crate::ports::{Answer, Ask, NotificationChange};
use crate::session::Live;
use carillon_wire::stanza::{Condition, Stanza};

/// Gives a notification to every session of its account that it is for.
pub fn deliver(
    notification: &Notification,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) -> Result<(), DropReason> {
    let mut result = Err(DropReason::NotConnected);
    for slot in sessions.of(notification.to.as_str()) {
        let Some(live) = sessions.live_in(slot) else { continue };
        match is_for(notification.audience, live) {
            Ok(()) if live.state.notifications.progress().asking => {
                // Older ones are on their way; this one follows with them, if it is kept.
                live.state.notifications.progress().more = true;
                result = result.or(if notification.audience == Audience::Always {
                    Err(DropReason::NotActive)
                } else {
                    give(live, notification, cx);
                    Ok(())
                });
            }
            Ok(()) => {
                give(live, notification, cx);
                let waited = cx.now.unix.0.saturating_sub(notification.accepted.0);
                cx.hub.counters.latency.record(waited);
                result = Ok(());
            }
            Err(reason) => result = result.or(Err(reason)),
        }
    }
    result
}

fn is_for(audience: Audience, live: &Live) -> Result<(), DropReason> {
    match reach(live) {
        Reach::Unavailable => Err(DropReason::NotConnected),
        Reach::Asleep if audience == Audience::Active => Err(DropReason::NotActive),
        Reach::Asleep | Reach::Active => Ok(()),
    }
}

/// Which notifications reach a session.
pub fn reach(live: &Live) -> Reach {
    if !live.state.presence.is_available() {
        return Reach::Unavailable;
    }
    let awake = live.state.presence.is_awake() && !live.state.csi.is_inactive();
    if awake { Reach::Active } else { Reach::Asleep }
}

/// After initial presence: gives what waited.
pub fn initial(live: &mut Live, cx: &mut Cx<'_>) {
    if cx.hub.recent.is_marked(live.bare.as_str()) {
        // Something was kept since the login was read.
        live.state.notifications.progress().waiting = Vec::new();
        return ask(live, cx);
    }
    if let Some(progress) = &mut live.state.notifications.0 {
        let waiting = std::mem::take(&mut progress.waiting);
        give_page(live, waiting, cx);
    }
}

/// A page of what waits came from the store.
pub fn page(conn: ConnId, answer: Answer, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    let Some(live) = sessions.live(conn) else { return };
    let progress = live.state.notifications.progress();
    progress.asking = false;
    if let Answer::Pending { notifications, more } = answer {
        progress.more |= more;
        give_page(live, notifications, cx);
    }
    live.state.notifications.tidy();
}

fn give_page(live: &mut Live, notifications: Vec<Pending>, cx: &mut Cx<'_>) {
    for notification in notifications {
        let fresh = notification.expires.is_none_or(|expires| expires > cx.now.unix);
        if fresh && live.state.presence.is_available() {
            give(live, &notification, cx);
            let mut trace = Trace::of(&notification);
            trace.state = NotificationState::Sent;
            trace.stored = Some(notification.accepted);
            trace.sent = Some(cx.now.unix);
            home::tell(&trace, cx);
            home::keep(trace, cx);
        }
    }
    next_page(live, cx);
}

/// Asks for the next page once the client has the last: what a device cannot take yet stays in the store.
fn next_page(live: &mut Live, cx: &mut Cx<'_>) {
    let progress = live.state.notifications.progress();
    if progress.more && progress.in_flight.is_empty() && progress.ending == 0 && !progress.asking {
        ask(live, cx);
    }
    live.state.notifications.tidy();
}

fn ask(live: &mut Live, cx: &mut Cx<'_>) {
    let progress = live.state.notifications.progress();
    (progress.more, progress.asking) = (false, true);
    let ask = Ask::Pending {
        domain: live.domain,
        local: live.bare.local().unwrap_or_default().into(),
        except: progress.in_flight.iter().map(|entry| entry.id).collect(),
        max: PAGE,
        now: cx.now.unix,
    };
    cx.ask(ask, node::Then::Notification(Then::Page(live.io.conn)));
}

/// Gives a notification to the connection.
fn give(live: &mut Live, notification: &Notification, cx: &mut Cx<'_>) {
    let (id, managed) = (notification.id, live.state.stream_management.is_some());
    let progress = live.state.notifications.progress();
    if progress.in_flight.iter().any(|entry| entry.id == id) {
        return;
    }
    let audience = notification.audience;
    progress.in_flight.push(InFlight { id, audience, sent: cx.now.unix, taken: None });
    let stanza = xml::message(notification, live, !managed);
    live.send(&stanza, Track::Notification(id), cx);
    cx.hub.counters.delivered(live.domain);
    cx.out.journal.note(cx.now.unix, Kind::Deliver, || Entry::Deliver {
        id,
        to: live.jid.as_str(),
        after_ms: cx.now.unix.0.saturating_sub(notification.accepted.0),
    });
    if !managed {
        cx.out.push(Effect::WatchFlush { conn: live.io.conn });
    }
}

/// The device has it.
pub fn acknowledged(live: &mut Live, id: NotificationId, by: AcknowledgedBy, cx: &mut Cx<'_>) {
    let Some(progress) = &mut live.state.notifications.0 else { return };
    let Some(at) = progress.in_flight.iter().position(|entry| entry.id == id) else { return };
    let entry = progress.in_flight.remove(at);
    let after_ms = cx.now.unix.0.saturating_sub(entry.sent.0);
    if by != AcknowledgedBy::Socket {
        cx.hub.counters.acknowledgement.record(after_ms);
    }
    cx.out.journal.note(cx.now.unix, Kind::Acknowledge, || Entry::Acknowledge {
        id,
        to: live.jid.as_str(),
        by,
        after_ms,
    });
    if entry.audience == Audience::Always {
        let change = NotificationChange {
            id,
            state: NotificationState::Acknowledged,
            sent: Some(entry.sent),
            at: cx.now.unix,
            acknowledged_by: Some(by),
            reason: None,
        };
        progress.ending += 1;
        let ask = Ask::EndNotifications { changes: vec![change] };
        cx.ask(ask, node::Then::Notification(Then::Ended(id, live.io.conn)));
    }
    let now = cx.now.unix;
    // Another session of the account may have been faster.
    if let Some(trace) = cx.hub.traces.find_mut(id).filter(|trace| trace.ended.is_none()) {
        trace.state = NotificationState::Acknowledged;
        trace.acknowledged_by = Some(by);
        trace.ended = Some(now);
        let trace = trace.clone();
        home::tell_end(&trace, live.domain, cx);
    }
    next_page(live, cx);
}

/// An acknowledgement is in the store.
pub(super) fn ended(live: &mut Live, cx: &mut Cx<'_>) {
    if let Some(progress) = &mut live.state.notifications.0 {
        progress.ending = progress.ending.saturating_sub(1);
        next_page(live, cx);
    }
}

/// The socket took what was sent: a client that does receipts has a while to say so, any other has it now, as far as can be
/// known.
pub(super) fn flushed(live: &mut Live, cx: &mut Cx<'_>) {
    let Some(progress) = &mut live.state.notifications.0 else { return };
    let now = cx.now.mono;
    let mut any = false;
    for entry in progress.in_flight.iter_mut().filter(|entry| entry.taken.is_none()) {
        entry.taken = Some(now);
        any = true;
    }
    if any && live.state.stream_management.is_none() {
        cx.wake_in(live.io.conn, cx.hub.settings.receipt_wait_ms, Wake::Receipt);
    }
}

/// No receipt came in time: the socket's word counts.
pub(super) fn wake(live: &mut Live, wake: Wake, cx: &mut Cx<'_>) -> Result<(), StreamError> {
    if wake == Wake::Receipt && live.state.stream_management.is_none() {
        let before = Mono(cx.now.mono.0.saturating_sub(cx.hub.settings.receipt_wait_ms));
        take_sockets_word(live, before, cx);
    }
    Ok(())
}

fn take_sockets_word(live: &mut Live, before: Mono, cx: &mut Cx<'_>) {
    let Some(progress) = &live.state.notifications.0 else { return };
    let taken = progress.in_flight.iter().filter(|entry| entry.taken.is_some_and(|at| at <= before));
    for id in taken.map(|entry| entry.id).collect::<Vec<_>>() {
        acknowledged(live, id, AcknowledgedBy::Socket, cx);
    }
}

/// Messages to the notification service: receipts, and nothing else.
pub(super) fn submit(live: &mut Live, stanza: &mut Stanza, cx: &mut Cx<'_>) -> Result<Flow, StanzaError> {
    let Some(to) = &stanza.to else { return Ok(Flow::Pass) };
    if to.local().is_some() || to.domain().strip_prefix("push.") != Some(live.bare.domain()) {
        return Ok(Flow::Pass);
    }
    match xml::receipt(stanza) {
        Some(id) => {
            if let Ok(id) = id.parse() {
                acknowledged(live, id, AcknowledgedBy::Receipt, cx);
            }
            Ok(Flow::Taken)
        }
        None => Err(StanzaError::new(Condition::ServiceUnavailable)),
    }
}

/// The session ends: what it did not acknowledge waits in the store for the next, or is lost.
pub(super) fn close(live: &mut Live, ending: Ending, cx: &mut Cx<'_>) {
    if ending == Ending::Closed && live.state.stream_management.is_none() {
        take_sockets_word(live, cx.now.mono, cx);
    }
    let Some(progress) = live.state.notifications.0.take() else { return };
    for entry in progress.in_flight {
        if entry.audience == Audience::Always {
            cx.hub.traces.remove(entry.id);
            cx.hub.changed(live.bare.as_str());
            continue;
        }
        let now = cx.now.unix;
        if let Some(trace) = cx.hub.traces.find_mut(entry.id).filter(|trace| trace.ended.is_none()) {
            trace.state = NotificationState::Dropped;
            trace.reason = Some(DropReason::ConnectionLost);
            trace.ended = Some(now);
            let trace = trace.clone();
            home::tell_end(&trace, live.domain, cx);
        }
    }
}
