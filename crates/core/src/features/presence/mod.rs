//! Presence (RFC 6121 §4): that of a session, which the account's other sessions are sent, and directed presence. What contacts are sent
//! is the roster's; while that is disabled, rosters are empty.

mod xml;

use crate::error::StanzaError;
use crate::event::Leave;
use crate::message::Announcement;
use crate::session::hook::{At, Feature, Flow, Hooks, IqAnswer, IqHandler, Request, Spec, Taken};
use crate::session::{BoundSession, Cx, backlog};
use crate::shard::Track;
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, IqType, Kind, Payload, PresenceType, Stanza};
use carillon_wire::xml::Element;

/// The feature.
pub const FEATURE: Feature = Feature {
    name: "presence",
    about: "Own presence and directed presence.",
    specs: &[Spec {
        id: "RFC 6121",
        title: "XMPP: Instant Messaging and Presence",
        version: "",
        coverage: "§4.2–4.5 own presence between an account's sessions, §4.6 directed presence, §4.7.2.3 priority, \
                   §8.5 routing. Contacts: see roster.",
    }],
    hooks: Hooks {
        submit_presence: Some(submit),
        close: Some(close),
        iq: &[
            IqHandler { kind: IqType::Get, name: "query", ns: ns::ROSTER, at: At::Account, handle: roster },
            IqHandler {
                kind: IqType::Set,
                name: "query",
                ns: ns::ROSTER,
                at: At::Account,
                handle: no_roster,
            },
        ],
        ..Hooks::NONE
    },
    ..Feature::NONE
};

/// Bytes of the JIDs that one session may have sent directed presence to.
const DIRECTED_LIST_BYTES_MAX: usize = 64 * 1024;

/// Bytes of the payload of an unavailable presence, for all of these together: past that they get it without its payload.
const DIRECTED_BYTES_MAX: usize = 256 * 1024;

fn submit(session: &mut BoundSession, stanza: &mut Stanza, cx: &mut Cx<'_>) -> Result<Flow, StanzaError> {
    let Kind::Presence(kind) = stanza.kind else { return Ok(Flow::Pass) };
    let bytes_max = cx.shard.settings.limits.presence_bytes;
    if stanza.payload.bytes().len() > bytes_max {
        let text = format!("a presence carries at most {bytes_max} bytes");
        return Err(StanzaError::new(Condition::PolicyViolation).with_text(text));
    }
    match (kind, &stanza.to) {
        (PresenceType::Available, None) => {
            available(session, stanza, cx).map(|()| Flow::Taken(Taken::Presence))
        }
        (PresenceType::Unavailable, None) => {
            unavailable(session, stanza, cx);
            Ok(Flow::Taken(Taken::Presence))
        }
        (PresenceType::Available, Some(to)) => {
            let to = to.clone();
            let directed = session.state.presence.directed.get_or_insert_default();
            // One pass: whether it is there, and else what all of them take.
            let bytes =
                directed.iter().try_fold(0, |bytes, jid| (*jid != to).then(|| bytes + jid.as_str().len()));
            if let Some(bytes) = bytes {
                if directed.len() >= cx.shard.settings.limits.directed_presence
                    || bytes + to.as_str().len() > DIRECTED_LIST_BYTES_MAX
                {
                    return Err(StanzaError::new(Condition::ResourceConstraint)
                        .with_text("too much directed presence"));
                }
                directed.push(to);
            }
            Ok(Flow::Pass)
        }
        (PresenceType::Unavailable, Some(to)) => {
            if let Some(directed) = &mut session.state.presence.directed {
                directed.retain(|jid| jid != to);
            }
            Ok(Flow::Pass)
        }
        (PresenceType::Error, _) => Ok(Flow::Pass),
        // RFC 6121 §4.3: a client has no need to probe. Those of its own account are told it here, of others by the roster.
        (PresenceType::Probe, Some(to)) => {
            if to.bare_str() == session.bare.as_str() {
                stanza.to = Some(session.bare.to_jid());
            }
            Ok(Flow::Pass)
        }
        (PresenceType::Probe, None) => Ok(Flow::Taken(Taken::Ignored)),
        _ => Err(StanzaError::new(Condition::FeatureNotImplemented).with_text("rosters are disabled here")),
    }
}

fn available(session: &mut BoundSession, stanza: &mut Stanza, cx: &mut Cx<'_>) -> Result<(), StanzaError> {
    let (availability, priority) = xml::parse(stanza)?;
    let initial = !session.presence.is_available();
    session.presence.set(availability, priority, &stanza.payload);
    tell_account(session, stanza, cx);
    if initial {
        cx.shard.counters.available += 1;
        let probe = Stanza::presence(PresenceType::Probe)
            .with_from(session.jid.clone())
            .with_to(session.bare.to_bare());
        cx.route(probe);
        session.announce(stanza, Announcement::Initial, cx);
        backlog::begin(session, stanza, cx);
    } else {
        session.announce(stanza, Announcement::Update, cx);
        // A priority that is not negative any more takes messages.
        backlog::go_on(session, cx);
    }
    Ok(())
}

fn unavailable(session: &mut BoundSession, stanza: &Stanza, cx: &mut Cx<'_>) {
    if session.presence.withdraw() {
        cx.shard.counters.available -= 1;
        tell_account(session, stanza, cx);
        session.announce(stanza, Announcement::Gone, cx);
    }
    tell_directed(session, stanza, cx);
}

/// Sends presence to every available session of the account, its own included (RFC 6121 §4.2.2, §4.5.2).
fn tell_account(session: &mut BoundSession, stanza: &Stanza, cx: &mut Cx<'_>) {
    let mut told = stanza.clone();
    told.to = Some(session.bare.to_jid());
    cx.route(told.clone());
    told.to = Some(session.jid.clone());
    session.send(&told, &Track::Nothing, cx);
}

fn tell_directed(session: &mut BoundSession, stanza: &Stanza, cx: &mut Cx<'_>) {
    let Some(directed) = session.state.presence.directed.take() else { return };
    let mut told = stanza.clone();
    if told.payload.bytes().len().saturating_mul(directed.len()) > DIRECTED_BYTES_MAX {
        // RFC 6121 §4.6.3: that it is unavailable is what they must be told.
        told.payload = Payload::empty();
    }
    for to in *directed {
        cx.reply(told.clone().with_to(to));
    }
}

/// A session that ends withdraws its presence (RFC 6121 §4.5.2).
fn close(session: &mut BoundSession, _leave: Leave, cx: &mut Cx<'_>) {
    let gone = Stanza::presence(PresenceType::Unavailable).with_from(session.jid.clone());
    if session.presence.withdraw() {
        cx.shard.counters.available -= 1;
        cx.route(gone.clone().with_to(session.bare.to_bare()));
        session.announce(&gone, Announcement::Gone, cx);
    }
    tell_directed(session, &gone, cx);
}

fn roster(
    _live: &mut BoundSession,
    _request: &Request<'_>,
    _cx: &mut Cx<'_>,
) -> Result<IqAnswer, StanzaError> {
    Ok(IqAnswer::Payload(Element::new("query", ns::ROSTER)))
}

fn no_roster(
    _live: &mut BoundSession,
    _request: &Request<'_>,
    _cx: &mut Cx<'_>,
) -> Result<IqAnswer, StanzaError> {
    Err(StanzaError::new(Condition::FeatureNotImplemented).with_text("rosters are disabled here"))
}
