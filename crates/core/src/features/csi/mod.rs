//! Client state indication (XEP-0352): while a client is inactive, the newest presence of each sender is held back. It is
//! sent before the next stanza that is not presence, or when the client becomes active.

use crate::session::hook::{Emit, Feature, Held, Hooks, NonzaHandler, Outgoing, Spec};
use crate::session::{BoundSession, Cx};
use crate::shard::Track;
use carillon_wire::ns;
use carillon_wire::stanza::{Kind, PresenceType, Stanza};
use carillon_wire::xml::Element;

/// The feature.
pub const FEATURE: Feature = Feature {
    name: "csi",
    about: "Holds back what can wait while nobody looks.",
    specs: &[Spec {
        id: "XEP-0352",
        title: "Client State Indication",
        version: "1.0.0",
        coverage: "Presence is held back and merged; an inactive device is not `active` for notifications. Inline in Bind 2.",
    }],
    inline_features: &[ns::CSI],
    hooks: Hooks {
        offer: Some(|_, features| features.push(Element::new("csi", ns::CSI))),
        emit: Some(emit),
        // XEP-0352 §5: a client that is back is active.
        resumed: Some(release),
        nonza: &[
            NonzaHandler {
                name: "active",
                ns: ns::CSI,
                handle: |session, _, cx| {
                    release(session, cx);
                    Ok(None)
                },
                unbound: None,
                unauthenticated: None,
            },
            NonzaHandler {
                name: "inactive",
                ns: ns::CSI,
                handle: |session, _, _| {
                    session.presence.is_inactive = true;
                    session.state.csi.0.get_or_insert_default();
                    Ok(None)
                },
                unbound: None,
                unauthenticated: None,
            },
        ],
        ..Hooks::NONE
    },
    ..Feature::NONE
};

/// Presences held back at most: past that all are sent.
const HELD_MAX: usize = 100;

/// Bytes that they take in memory at most, likewise.
const HELD_BYTES_MAX: usize = 64 * 1024;

fn emit(session: &mut BoundSession, outgoing: &Outgoing<'_>, cx: &mut Cx<'_>) -> Emit {
    if session.state.csi.0.is_none() {
        return Emit::Write;
    }
    let waits = match outgoing {
        Outgoing::Stanza(stanza, _) if can_wait(stanza) => Some((*stanza).clone()),
        Outgoing::Shared(shared, to) if can_wait(shared.stanza()) => Some(session.shared_for_it(shared, *to)),
        _ => None,
    };
    let (Some(stanza), Some(held)) = (waits, &mut session.state.csi.0) else {
        // The radio is awake anyway: what waited goes first, in its order.
        flush(session, cx);
        return Emit::Write;
    };
    held.0.retain(|other| other.from != stanza.from);
    held.0.push(stanza);
    let bytes: usize = held.0.iter().map(Stanza::memory_bytes).sum();
    if held.0.len() > HELD_MAX || bytes > HELD_BYTES_MAX {
        flush(session, cx);
    }
    Emit::Held(Held::Inactive)
}

fn can_wait(stanza: &Stanza) -> bool {
    matches!(stanza.kind, Kind::Presence(PresenceType::Available | PresenceType::Unavailable))
}

/// The client is active again.
fn release(session: &mut BoundSession, cx: &mut Cx<'_>) {
    session.presence.is_inactive = false;
    if let Some(held) = session.state.csi.0.take() {
        held.0.iter().for_each(|stanza| session.send(stanza, &Track::Nothing, cx));
    }
}

/// Sends what was held back; the client stays inactive.
fn flush(session: &mut BoundSession, cx: &mut Cx<'_>) {
    if session.state.csi.0.as_ref().is_some_and(|held| !held.0.is_empty()) {
        release(session, cx);
        session.presence.is_inactive = true;
        session.state.csi.0 = Some(Box::default());
    }
}
