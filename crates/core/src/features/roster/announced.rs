//! The presence of contacts (RFC 6121 §4).

use crate::message::{AccountMessage, Announcement};
use crate::model::{StanzaKind, is_covered_by};
use crate::session::homes::AtHome;
use crate::session::hook::{Direction, Seen};
use crate::session::{BoundSession, Cx, Sessions};
use crate::shard::Track;
use carillon_wire::jid::{BareJid, Jid};
use carillon_wire::stanza::{Kind, Payload, PresenceType, Stanza};
use std::sync::Arc;

/// A session says how available it is: at its account's home it is known who may see that. Where nobody may, nobody need look.
pub(super) fn announced(session: &mut BoundSession, presence: &Stanza, step: Announcement, cx: &mut Cx<'_>) {
    if !cx.homes.is_empty(session.bare.as_str()) {
        let mut presence = presence.clone();
        presence.to = None;
        let list = cx.pipeline.list_of(session).map(Box::from);
        let message = AccountMessage::Announced { presence: Arc::new(presence), step, list };
        cx.tell_account(session.bare.to_bare(), message);
    }
}

/// Tells those who may see the account's presence; a session that has become available learns that of its contacts, and who asks for
/// its own.
pub(super) fn tell(
    presence: &Arc<Stanza>,
    step: Announcement,
    list: Option<&str>,
    home: &AtHome<'_>,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) {
    let roster = &home.record.roster;
    let subscribed = roster.iter().filter(|e| e.standing.from).map(|e| e.jid);
    let mut seen_by = match presence.kind {
        // Also to whoever saw it before the policy of a domain changed.
        Kind::Presence(PresenceType::Unavailable) => here(subscribed, cx),
        _ => reachable(home.account, subscribed, cx),
    };
    let passes = |kind, jid: &BareJid| {
        cx.pipeline.denies(home.record, (Direction::Out, kind), &jid.to_jid(), list).is_none()
    };
    seen_by.retain(|jid| passes(StanzaKind::PresenceOut, jid));
    cx.tell_accounts(seen_by.into_iter(), &AccountMessage::Presence(presence.clone()));
    let (Announcement::Initial, Some(from)) = (step, &presence.from) else { return };
    let mut seen = reachable(home.account, roster.iter().filter(|e| e.standing.to).map(|e| e.jid), cx);
    seen.retain(|jid| passes(StanzaKind::Other, jid));
    cx.tell_accounts(seen.into_iter(), &AccountMessage::Probe(from.clone()));
    let slot = sessions.bound_of(home.account.as_str()).iter().find(|s| s.jid == *from).map(|s| s.id.slot);
    let Some(session) = slot.and_then(|slot| sessions.bound_in(slot)) else { return };
    let asking = roster.iter().filter(|entry| entry.standing.pending_in).filter_map(|entry| entry.contact());
    for contact in asking {
        let mut request = Stanza::presence(PresenceType::Subscribe)
            .with_from(contact.jid.to_jid())
            .with_to(home.account.clone());
        request.payload = contact.request.map_or_else(Payload::empty, Payload::from_raw);
        session.deliver(request, Track::Nothing, cx);
    }
}

/// Some may see the account from now on, or may not any more.
pub(super) fn seen(home: &AtHome<'_>, seen: &Seen<'_>, sessions: &Sessions, cx: &mut Cx<'_>) {
    let Seen { entries, is_seen, session: of } = *seen;
    let subscribed = home.record.roster.iter().filter(|entry| entry.standing.from).map(|entry| entry.jid);
    let mut contacts = if is_seen { reachable(home.account, subscribed, cx) } else { here(subscribed, cx) };
    contacts.retain(|jid| is_covered_by(&jid.to_jid(), entries));
    for session in sessions.bound_of(home.account.as_str()) {
        let list = cx.pipeline.list_of(session);
        if of.map_or(list.is_some(), |of| of != session.id) {
            continue;
        }
        let Some(presence) = session.presence.stanza(session) else { continue };
        let presence = Arc::new(if is_seen { presence } else { withdrawn(presence) });
        let told = contacts.iter().filter(|jid| !is_seen || shows(home, list, &jid.to_jid(), cx)).cloned();
        let told: Vec<BareJid> = told.collect();
        cx.tell_accounts(told.into_iter(), &AccountMessage::Presence(presence));
    }
}

/// Whether the account's presence, of a session that has chosen this list, is shown to another.
fn shows(home: &AtHome<'_>, list: Option<&str>, to: &Jid, cx: &Cx<'_>) -> bool {
    cx.pipeline.denies(home.record, (Direction::Out, StanzaKind::PresenceOut), to, list).is_none()
}

/// That the session of this presence is not available any more.
pub(super) fn withdrawn(presence: Stanza) -> Stanza {
    Stanza { from: presence.from, ..Stanza::presence(PresenceType::Unavailable) }
}

/// Those that are accounts of this node.
fn here<'a>(names: impl Iterator<Item = &'a str>, cx: &Cx<'_>) -> Vec<BareJid> {
    let accounts = names.filter_map(|name| BareJid::new(name).ok());
    accounts.filter(|jid| jid.local().is_some() && cx.shard.domains.named(jid.domain()).is_some()).collect()
}

/// Those of them with whom this account may exchange stanzas.
fn reachable<'a>(account: &BareJid, names: impl Iterator<Item = &'a str>, cx: &Cx<'_>) -> Vec<BareJid> {
    let mut accounts = here(names, cx);
    accounts.retain(|jid| cx.shard.domains.reachable(account.domain(), jid.domain()).is_some());
    accounts
}

/// The presence of somebody else, for the account's available sessions.
pub(super) fn deliver(presence: &Arc<Stanza>, home: &AtHome<'_>, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    for slot in sessions.of(home.account.as_str()) {
        let from = presence.from.as_ref();
        let hears = |session: &BoundSession| {
            !from
                .is_some_and(|from| cx.pipeline.withholds(home.record, session, StanzaKind::PresenceIn, from))
        };
        if let Some(session) = sessions.bound_in(slot).filter(|session| session.presence.is_available())
            && hears(session)
        {
            session.deliver(Stanza::clone(presence).with_to(home.account.clone()), Track::Nothing, cx);
        }
    }
}

/// Somebody wants to know the account's presence (RFC 6121 §4.3.2).
pub(super) fn probed(from: &Jid, home: &AtHome<'_>, sessions: &Sessions, cx: &mut Cx<'_>) {
    let asker = home.record.roster.get(from.bare_str());
    if asker.is_some_and(|entry| entry.standing.from) {
        for presence in shown_to(from, home, sessions, cx) {
            cx.route(presence.with_to(from.clone()));
        }
    }
}

/// A client asks for the presence of a contact.
pub(super) fn ask(session: &BoundSession, of: &Jid, cx: &mut Cx<'_>) {
    if cx.reachable(session.bare.domain(), of).is_some() {
        cx.tell_account(of.bare(), AccountMessage::Asks { from: session.jid.clone(), of: of.clone() });
    }
}

/// Tells a client that asks for the account's presence (RFC 6121 §4.3.2): that of the sessions that are available, or that none is. One
/// that may not see it is told so, and no more than where there is no such account.
pub(super) fn asked(from: &Jid, of: &Jid, home: &AtHome<'_>, sessions: &Sessions, cx: &mut Cx<'_>) {
    let may_see = home.record.roster.get(from.bare_str()).is_some_and(|entry| entry.standing.from);
    let answer = |kind| Stanza::presence(kind).with_from(of.bare()).with_to(from.clone());
    if !may_see {
        return cx.route(answer(PresenceType::Unsubscribed));
    }
    let mut present = shown_to(from, home, sessions, cx);
    present.retain(|presence| of.is_bare() || presence.from.as_ref() == Some(of));
    if present.is_empty() {
        cx.route(answer(PresenceType::Unavailable));
    }
    for presence in present {
        cx.route(presence.with_to(from.clone()));
    }
}

/// The presences of the available sessions that are shown to this address.
pub(super) fn shown_to(to: &Jid, home: &AtHome<'_>, sessions: &Sessions, cx: &Cx<'_>) -> Vec<Stanza> {
    let sessions = sessions.bound_of(home.account.as_str());
    let shown = sessions.iter().filter(|session| shows(home, cx.pipeline.list_of(session), to, cx));
    shown.filter_map(|session| session.presence.stanza(session)).collect()
}

/// The presences of an account's available sessions.
pub(super) fn present(account: &BareJid, sessions: &Sessions) -> Vec<Stanza> {
    let sessions = sessions.bound_of(account.as_str());
    sessions.iter().filter_map(|session| session.presence.stanza(session)).collect()
}
