//! Entity capabilities (XEP-0115, XEP-0390): what the client of a session can do, as far as that says what it is to be given.
//!
//! A client names a hash in its presence. The first client of a domain with a hash is asked what it stands for; what that answers is kept for the
//! others when nothing else has that hash, and these are not asked. Otherwise it counts for the client that said it: what one client says
//! decides nothing for another.

mod xml;

use crate::feature_state::caps::HashState;
use crate::message::Announcement;
use crate::session::hook::{Feature, Hooks, Spec};
use crate::session::{BoundSession, Cx};
use crate::shard::Track;
use carillon_wire::ns;
use carillon_wire::stanza::{IqType, Kind, Payload, Stanza};

/// The feature.
pub const FEATURE: Feature = Feature {
    name: "caps",
    about: "Knows what clients want to be told, by the hashes in their presence.",
    specs: &[
        Spec {
            id: "XEP-0115",
            title: "Entity Capabilities",
            version: "1.6.0",
            coverage: "Of clients: a hash that is not known is asked for and verified (SHA-1, SHA-256; §5.4). It is kept for all clients of the \
                       domain that have it, within `limits.capabilities_bytes`, if it is of identities and features alone, none of which could be \
                       the other. One with data forms, whose hash other features have, too, or one that cannot be verified, counts for its own \
                       client. The server does not announce its own.",
        },
        Spec {
            id: "XEP-0390",
            title: "Entity Capabilities 2.0",
            version: "0.3.2",
            coverage: "The same, of clients that do not announce the hash of XEP-0115 (SHA-256).",
        },
    ],
    hooks: Hooks {
        announced: Some(announced),
        discover: Some(discover),
        wants: Some(|session, cx| cx.features.caps.wanted(session)),
        // In another process it is known of nobody.
        resumed: Some(discover),
        response: Some(response),
        close: Some(|session, _, cx| cx.features.caps.forget(session.id)),
        ..Hooks::NONE
    },
    ..Feature::NONE
};

fn announced(session: &mut BoundSession, _presence: &Stanza, step: Announcement, cx: &mut Cx<'_>) {
    match step {
        Announcement::Initial | Announcement::Update => discover(session, cx),
        Announcement::Gone => cx.features.caps.forget(session.id),
    }
}

/// Finds out what the client wants, by its presence, where a feature asks for that.
fn discover(session: &mut BoundSession, cx: &mut Cx<'_>) {
    if cx.pipeline.capable.is_empty() {
        return;
    }
    let Some(hash) = session.presence.payload().and_then(xml::Hash::of) else {
        return cx.features.caps.forget(session.id);
    };
    match announce(session, &hash, cx) {
        HashState::Same | HashState::Asked => {}
        HashState::Known => capable(session, cx),
        HashState::Unknown => {
            let id = cx.shard.random.token();
            cx.features.caps.ask(session.id, &id, cx.now.mono);
            let server = session.bare.domain();
            let mut request = Stanza::iq(IqType::Get).with_id(id).with_to(session.jid.clone());
            request.from = carillon_wire::jid::Jid::new(server).ok();
            request.payload = Payload::from_element(&xml::request(&hash.node()));
            session.send(&request, &Track::Nothing, cx);
        }
    }
}

fn announce(session: &BoundSession, hash: &xml::Hash, cx: &mut Cx<'_>) -> HashState {
    let name = (&*hash.algorithm(), &*hash.value);
    cx.features.caps.announce(session.id, session.domain, name, cx.now.mono)
}

/// The client answers.
fn response(session: &mut BoundSession, stanza: &Stanza, cx: &mut Cx<'_>) {
    let query = stanza.payload.find("query", ns::DISCO_INFO);
    let query = query.filter(|_| stanza.kind == Kind::Iq(IqType::Result)).map(|query| query.element());
    let hash = session.presence.payload().and_then(xml::Hash::of);
    let (Some(id), Some(hash)) = (&stanza.id, hash) else { return };
    if !cx.features.caps.answers(session.id, id) {
        // The process that this one took the place of may have asked: then the node says what this is about.
        if query.as_ref().and_then(|query| query.attr("node")) != Some(&hash.node()) {
            return;
        }
        match announce(session, &hash, cx) {
            HashState::Same | HashState::Asked => return,
            HashState::Known => return capable(session, cx),
            HashState::Unknown => {}
        }
    }
    let is_proved = query.as_ref().is_some_and(|query| hash.is_only_of(query));
    // A client that refuses to say wants nothing.
    let wants = query.map(|query| xml::wants(&query)).unwrap_or_default();
    let limits = &cx.shard.settings.limits;
    let bytes_max = limits.capabilities_bytes / usize::from(cx.shard.shard_count.max(1));
    cx.features.caps.learn(session.id, wants.into(), is_proved, bytes_max);
    capable(session, cx);
}

/// It is known now what the client wants.
fn capable(session: &mut BoundSession, cx: &mut Cx<'_>) {
    if cx.features.caps.wanted(session.id).is_some_and(|wants| !wants.is_empty()) {
        for hook in &cx.pipeline.capable {
            hook(session, cx);
        }
    }
}
