//! What follows from a change of a roster, at its account's home.

use super::announced::{present, shown_to, withdrawn};
use super::xml;
use crate::message::{AccountMessage, RosterCause};
use crate::model::{Contact, RosterChange, Standing};
use crate::session::homes::AtHome;
use crate::session::{BoundSession, Cx, Sessions};
use crate::shard::Track;
use carillon_wire::stanza::{IqType, Payload, PresenceType, Stanza};
use std::sync::Arc;

/// The roster says something else of a contact.
pub(super) fn changed(
    change: &RosterChange,
    cause: RosterCause,
    home: &mut AtHome<'_>,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) {
    // A record that was read later has it already.
    if home.generation < change.after {
        home.record.roster.put(&change.contact, change.is.as_ref(), change.after);
    }
    let is_own = cause == RosterCause::Own;
    say(change, is_own, sessions, cx);
    if listed(change.was.as_ref()) != listed(change.is.as_ref()) || is_own {
        push(change, sessions, cx);
    }
    show(change, home, sessions, cx);
    if cause == RosterCause::Removal && standing(change.was.as_ref()).to {
        // Whoever knows which of its sessions were seen may be gone already: none of them is available any more.
        let is_available = |session: &BoundSession| session.presence.is_available();
        give(change, PresenceType::Unavailable, Payload::empty(), is_available, sessions, cx);
    }
}

fn listed(contact: Option<&Contact>) -> Option<(&str, &[Box<str>], Standing)> {
    let contact = contact.filter(|contact| contact.is_listed)?;
    // That the contact has asked is not shown.
    let standing = Standing { pending_in: false, ..contact.standing };
    Some((&contact.name, &contact.groups, standing))
}

fn standing(contact: Option<&Contact>) -> Standing {
    contact.map_or(Standing::default(), |contact| contact.standing)
}

/// Tells the account's sessions what the contact said.
fn say(change: &RosterChange, is_own: bool, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    let (was, is) = (standing(change.was.as_ref()), standing(change.is.as_ref()));
    if is.pending_in && !was.pending_in {
        let request = change.is.as_ref().and_then(|contact| contact.request.clone());
        let payload = request.map_or_else(Payload::empty, Payload::from_raw);
        give(
            change,
            PresenceType::Subscribe,
            payload,
            |session| session.presence.is_available(),
            sessions,
            cx,
        );
    }
    let is_interested = |session: &BoundSession| session.state.roster.is_interested;
    let said = [
        // Nobody else can grant it.
        (is.to && !was.to, PresenceType::Subscribed),
        (!is_own && (was.to || was.pending_out) && !(is.to || is.pending_out), PresenceType::Unsubscribed),
        (!is_own && (was.from || was.pending_in) && !(is.from || is.pending_in), PresenceType::Unsubscribe),
    ];
    for (_, kind) in said.into_iter().filter(|(is_said, _)| *is_said) {
        give(change, kind, Payload::empty(), is_interested, sessions, cx);
    }
}

/// Gives the account's sessions a presence of the contact.
fn give(
    change: &RosterChange,
    kind: PresenceType,
    payload: Payload,
    takes: impl Fn(&BoundSession) -> bool,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) {
    let mut said = Stanza::presence(kind).with_from(change.contact.to_jid()).with_to(change.account.clone());
    said.payload = payload;
    for slot in sessions.of(change.account.as_str()) {
        if let Some(session) = sessions.bound_in(slot).filter(|session| takes(session)) {
            session.deliver(said.clone(), Track::Nothing, cx);
        }
    }
}

/// Shows the change to the sessions that have asked for the roster (RFC 6121 §2.1.6).
fn push(change: &RosterChange, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    let is = change.is.as_ref().filter(|contact| contact.is_listed);
    let query = xml::push(&change.contact, is, change.after);
    for slot in sessions.of(change.account.as_str()) {
        let is_told = |session: &&mut BoundSession| {
            session.state.roster.is_interested
                && !cx.homes.was_shown(&change.account, session.id, change.after)
        };
        let Some(session) = sessions.bound_in(slot).filter(is_told) else {
            continue;
        };
        let push = Stanza::iq(IqType::Set)
            .with_id(cx.shard.random.token())
            .with_to(session.jid.clone())
            .with_payload(query.clone());
        session.send(&push, &Track::Nothing, cx);
    }
}

/// Shows the account's presence to a contact that may see it from now on, and takes it back from one that may not any more (RFC 6121
/// §3.1.5, §3.2.2, §3.3.3).
fn show(change: &RosterChange, home: &AtHome<'_>, sessions: &Sessions, cx: &mut Cx<'_>) {
    let (was, is) = (standing(change.was.as_ref()), standing(change.is.as_ref()));
    let contact = change.contact.to_jid();
    let domain =
        if is.from { cx.reachable(change.account.domain(), &contact) } else { cx.domain_of(&contact) };
    if was.from == is.from || domain.is_none() {
        return;
    }
    let shown =
        if is.from { shown_to(&contact, home, sessions, cx) } else { present(&change.account, sessions) };
    for presence in shown {
        let presence = if is.from { presence } else { withdrawn(presence) };
        cx.tell_account(change.contact.clone(), AccountMessage::Presence(Arc::new(presence)));
    }
}
