//! Last activity (XEP-0012): when an account was available for the last time, and since when the server runs.
//!
//! A session that ends writes nothing. The home notes in memory when an account's sessions became unavailable (`shared`), and has the store
//! keep all of that once a minute, in one write. Of an account whose record is empty nobody may ask, and nothing is noted: that is every
//! device which is only sent notifications.

use crate::command::PendingIq;
use crate::error::{StanzaError, store_unavailable};
use crate::message::{Announcement, Requester};
use crate::model::UnixMs;
use crate::ports::store::activity::{LastAvailable, NoteAvailable};
use crate::session::homes::AtHome;
use crate::session::hook::{
    AnswerOther, AskedHandler, At, Feature, HomeHandler, Hooks, IqAnswer, IqHandler, Request, Spec,
};
use crate::session::{BoundSession, Cx, Sessions};
use carillon_wire::stanza::{Condition, IqType, Payload, Stanza};
use carillon_wire::xml::Element;

/// Its namespace.
const NS: &str = "jabber:iq:last";

/// The feature.
pub const FEATURE: Feature = Feature {
    name: "last_activity",
    about: "Tells those who see an account's presence when it was last available.",
    specs: &[Spec {
        id: "XEP-0012",
        title: "Last Activity",
        version: "2.0",
        coverage: "Of an account (0 while it is available), for those who are given its presence; of the server, its uptime. The time is kept \
                   within a minute, for accounts with contacts or other contents; after a crash it may be the one before. The text of the \
                   last presence is not told. What is sent to a session is for its client to answer.",
    }],
    server_features: &[NS],
    hooks: Hooks {
        announced: Some(|session, _, step, cx| {
            if step == Announcement::Gone {
                note(session, cx);
            }
        }),
        tick: Some(keep),
        iq: &[IqHandler { kind: IqType::Get, name: "query", ns: NS, at: At::Server, handle: uptime }],
        at_home: &[HomeHandler { kind: IqType::Get, name: "query", ns: NS, answer: own }],
        asked: &[AskedHandler {
            kind: IqType::Get,
            name: "query",
            ns: NS,
            answer: AnswerOther::AtHome(other),
            is_same_for_all: false,
        }],
        ..Hooks::NONE
    },
    ..Feature::NONE
};

/// A session is not available any more.
fn note(session: &BoundSession, cx: &mut Cx<'_>) {
    if !cx.homes.is_empty(session.bare.as_str()) {
        // Nobody knows how much longer a node that drains is there.
        let is_urgent = cx.shard.is_draining();
        cx.features.last_activity.note(&session.bare, session.domain, cx.now, is_urgent);
    }
}

/// Has the store keep what was noted. What it does not take is given to it again.
fn keep(cx: &mut Cx<'_>) {
    let of = cx.features.last_activity.take_due(cx.now.mono);
    if of.is_empty() {
        return;
    }
    cx.ask(NoteAvailable { of }, |answer, _, cx| {
        cx.features.last_activity.kept(answer.is_ok(), cx.now.mono);
    });
}

/// Since when the server runs (§5).
fn uptime(_: &mut BoundSession, _: &Request<'_>, cx: &mut Cx<'_>) -> Result<IqAnswer, StanzaError> {
    Ok(IqAnswer::Payload(query(cx.now.mono.0)))
}

/// A session asks for its own account.
fn own(_: Requester, request: &Stanza, home: &AtHome<'_>, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    tell(request, home, sessions, cx);
}

/// Another account asks (§4): who is not given this one's presence learns nothing, not even whether it is there.
fn other(request: &Stanza, home: &AtHome<'_>, sessions: &mut Sessions, cx: &mut Cx<'_>) -> bool {
    let is_seen = request.from.as_ref().is_some_and(|from| home.standing_of(from, cx).from);
    if is_seen {
        tell(request, home, sessions, cx);
    } else if let Some(refusal) = request.error_reply(&StanzaError::new(Condition::Forbidden)) {
        cx.reply(refusal);
    }
    true
}

fn tell(request: &Stanza, home: &AtHome<'_>, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    let Some(from) = &request.from else { return };
    let pending = PendingIq::new(request, from);
    let now = cx.now.unix;
    let since = move |at: UnixMs| Ok(Payload::from_element(&query(now.0.saturating_sub(at.0))));
    if sessions.bound_of(home.account.as_str()).iter().any(|session| session.presence.is_available()) {
        return cx.reply(pending.reply(since(now)));
    }
    if let Some(at) = cx.features.last_activity.find(home.account.as_str()) {
        return cx.reply(pending.reply(since(at)));
    }
    let local = home.local.into();
    cx.ask(LastAvailable { domain: home.domain, local }, move |answer, _, cx| {
        let answer = match answer {
            Ok(Some(at)) => since(at),
            Ok(None) => Err(StanzaError::new(Condition::ItemNotFound)),
            Err(_) => Err(store_unavailable()),
        };
        cx.reply(pending.reply(answer));
    });
}

fn query(ms: u64) -> Element {
    Element::new("query", NS).with_attr("seconds", (ms / 1000).to_string())
}
