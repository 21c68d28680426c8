//! Stream management (XEP-0198): acknowledgement of stanzas in both directions. What was not acknowledged when the
//! connection ends is not lost: chat messages are routed again, and the features that track stanzas keep theirs.

mod memory;
mod resumption;

use crate::error::StreamError;
use crate::event::Leave;
use crate::feature_state::stream_management::{Bounds, Next, Request, Sent, TooMany};
use crate::model::Settlement;
use crate::route;
use crate::session::hook::{Feature, Hooks, NonzaHandler, Outgoing, Spec, TimerHandler, Unbound};
use crate::session::{BoundSession, Cx, backlog};
use crate::shard::{Timer, Track, Tracked};
use carillon_wire::ns;
use carillon_wire::stanza::{Condition as StanzaCondition, Kind, MessageType, PresenceType, Stanza};
use carillon_wire::stream::Condition;
use carillon_wire::xml::Element;
use carillon_wire::xml::writer::Writer;
use smallvec::SmallVec;
use std::sync::Arc;

/// The feature.
pub const FEATURE: Feature = Feature {
    name: "stream_management",
    about: "Acknowledges stanzas in both directions.",
    specs: &[Spec {
        id: "XEP-0198",
        title: "Stream Management",
        version: "1.6.3",
        coverage: "Acknowledgement and resumption, also inline in Bind 2 and SASL2; a chat message is acknowledged when it is stored or its recipient's client has it.",
    }],
    inline_features: &[ns::SM],
    hooks: Hooks {
        offer: Some(|_, features| features.push(Element::new("sm", ns::SM))),
        offer_inline: Some(resumption::offer),
        resumption: Some(&resumption::HANDLER),
        parked: Some(resumption::parked),
        leaves: Some(resumption::leaves),
        restored: Some(resumption::restored),
        taken: Some(|session, cx| {
            if let Some(state) = &session.state.stream_management {
                memory::left(session.id, state, cx);
            }
        }),
        repeated: Some(|session, stanza| {
            session.state.stream_management.as_mut().is_some_and(|state| state.inbound.is_repeated(stanza))
        }),
        receive: Some(receive),
        unsettled: Some(unsettled),
        settled: Some(settled),
        timers: &[
            TimerHandler { timer: ANSWER, handle: answer_in_part },
            TimerHandler { timer: ACKNOWLEDGED, handle: check },
        ],
        emitted: Some(emitted),
        close: Some(close),
        describe: Some(|session, info| info.stream_management = session.unacknowledged.is_some()),
        nonza: &[
            NonzaHandler {
                name: "enable",
                ns: ns::SM,
                handle: enable,
                unbound: Some(Unbound::Reply(too_early)),
                unauthenticated: Some(too_early),
            },
            NonzaHandler {
                name: "resume",
                ns: ns::SM,
                handle: resume,
                unbound: Some(Unbound::Resume(resumption::read)),
                unauthenticated: Some(too_early),
            },
            NonzaHandler { name: "r", ns: ns::SM, handle: answer, unbound: None, unauthenticated: None },
            NonzaHandler { name: "a", ns: ns::SM, handle: acknowledge, unbound: None, unauthenticated: None },
        ],
        ..Hooks::NONE
    },
    ..Feature::NONE
};

fn enable(
    session: &mut BoundSession,
    element: &Element,
    cx: &mut Cx<'_>,
) -> Result<Option<Element>, StreamError> {
    if session.state.stream_management.is_some() {
        return Ok(Some(failed(StanzaCondition::UnexpectedRequest)));
    }
    session.state.stream_management = Some(Box::default());
    session.unacknowledged = Some(0);
    Ok(Some(resumption::enabled(session, element, cx)))
}

/// XEP-0198 §5: a session is resumed instead of binding one.
fn resume(
    _session: &mut BoundSession,
    _element: &Element,
    _cx: &mut Cx<'_>,
) -> Result<Option<Element>, StreamError> {
    Ok(Some(failed(StanzaCondition::UnexpectedRequest)))
}

/// XEP-0198 §3: only a bound stream is managed, and only for a client that has authenticated is one resumed.
fn too_early() -> Element {
    failed(StanzaCondition::UnexpectedRequest)
}

fn failed(condition: StanzaCondition) -> Element {
    Element::new("failed", ns::SM).with_child(Element::new(condition.as_str(), ns::STANZA_ERRORS))
}

/// Answers `<r/>`: now, or when the messages that came before it are settled. The answer is as short as the request and costs as little to
/// make, so that the request costs its sender its bytes alone, as its own acknowledgements do: a client that asks behind each stanza is not
/// read more slowly than one that does not ask.
fn answer(
    session: &mut BoundSession,
    _element: &Element,
    cx: &mut Cx<'_>,
) -> Result<Option<Element>, StreamError> {
    let state = session.state.stream_management.as_mut().ok_or_else(not_enabled)?;
    match state.inbound.request() {
        Request::Answer(h) => session.send_element(&acknowledgement(h), cx),
        Request::Later { needs_timer: true } => session.set_timer(ANSWER_MS, ANSWER, cx),
        Request::Later { needs_timer: false } => {}
    }
    Ok(None)
}

/// What came before an `<r/>` is not settled in time: the client learns that the stream is alive, and how much is settled.
fn answer_in_part(session: &mut BoundSession, cx: &mut Cx<'_>) -> Result<(), StreamError> {
    let state = session.state.stream_management.as_mut();
    if let Some(h) = state.and_then(|state| state.inbound.timer_fired()) {
        session.send_element(&acknowledgement(h), cx);
    }
    Ok(())
}

fn acknowledgement(h: u32) -> Element {
    Element::new("a", ns::SM).with_attr("h", h.to_string())
}

/// Takes `<a/>`.
fn acknowledge(
    session: &mut BoundSession,
    element: &Element,
    cx: &mut Cx<'_>,
) -> Result<Option<Element>, StreamError> {
    if session.state.stream_management.is_none() {
        return Err(not_enabled());
    }
    let h: u32 = element.attr("h").and_then(|h| h.parse().ok()).ok_or_else(|| {
        StreamError::new(Condition::BadFormat, "the 'h' of <a/> is not a number below 2^32")
    })?;
    acknowledge_up_to(session, h, cx)?;
    if session.state.stream_management.as_mut().is_some_and(|state| state.queue.request_again()) {
        request(session, cx);
    }
    backlog::go_on(session, cx);
    Ok(None)
}

/// The client has `h` stanzas.
fn acknowledge_up_to(session: &mut BoundSession, h: u32, cx: &mut Cx<'_>) -> Result<(), StreamError> {
    let Some(state) = &mut session.state.stream_management else { return Ok(()) };
    let before = state.queue.memory_bytes();
    let done = state.queue.acknowledge(h).map_err(|too_many| too_high(h, &too_many))?;
    let kept = cx.pipeline.keep.map(|handler| handler.kind);
    let mut settled = SmallVec::<[Settlement; 4]>::new();
    let mut done_with = |entry: Sent| {
        memory::uncount(&entry, &mut cx.shard.queued);
        match entry {
            Sent::Tracked(kind, id) => Some((kind, id)),
            Sent::TrackedStanza(tracked) => Some((tracked.0, tracked.1)),
            Sent::Chat(message) => {
                settled.extend(message.1.settlement);
                cx.settle(message.1.settlement);
                let number = message.1.recipients.and_then(|recipients| recipients.acknowledged());
                Some((kept?, number?.into()))
            }
            Sent::Anything | Sent::Stanza(_) | Sent::Event(_) | Sent::Shared(..) => None,
        }
    };
    let done: SmallVec<[(Tracked, u128); 4]> = done.filter_map(&mut done_with).collect();
    if cx.shard.adoption.is_on {
        let own = cx.shard.place.node;
        let ours = settled.into_iter().filter(|settlement| settlement.place.node == own);
        ours.for_each(|settlement| state.note_recent(settlement, cx.now.mono));
    }
    memory::resized(session.id, before, state.queue.memory_bytes(), cx);
    let left = state.queue.len() as u32;
    let acknowledged = session.unacknowledged.unwrap_or_default().saturating_sub(left);
    session.unacknowledged = Some(left);
    if session.is_tapped && acknowledged > 0 {
        session.tap_stored("acknowledged", acknowledged, cx);
    }
    // Consecutive entries of one feature are told together.
    for run in done.chunk_by(|(a, _), (b, _)| a == b) {
        let ids: SmallVec<[u128; 4]> = run.iter().map(|(_, id)| *id).collect();
        if let Some(handler) = run.first().and_then(|(kind, _)| cx.pipeline.tracked_handler(*kind)) {
            (handler.acknowledged)(session, &ids, cx);
        }
    }
    Ok(())
}

fn too_high(h: u32, too_many: &TooMany) -> StreamError {
    let text = format!("h={h} acknowledges more than the {} stanzas sent", too_many.sent);
    let specific = Element::new("handled-count-too-high", ns::SM).with_attr("h", h.to_string());
    let specific = specific.with_attr("send-count", too_many.sent.to_string());
    StreamError::new(Condition::UndefinedCondition, text).with(specific)
}

fn not_enabled() -> StreamError {
    StreamError::new(Condition::UnsupportedStanzaType, "stream management is not enabled")
}

fn receive(session: &mut BoundSession, _cx: &mut Cx<'_>) {
    if let Some(state) = &mut session.state.stream_management {
        state.inbound.handled();
    }
}

/// A message may have to be stored: where the domain says so, it is acknowledged only then.
fn unsettled(session: &mut BoundSession, stanza: &Stanza, counted: Option<u32>, cx: &Cx<'_>) -> Option<u32> {
    let state = session.state.stream_management.as_mut()?;
    let may_be_stored = matches!(
        stanza.kind,
        Kind::Message(MessageType::Chat | MessageType::Normal | MessageType::Groupchat)
            | Kind::Presence(
                PresenceType::Subscribe
                    | PresenceType::Subscribed
                    | PresenceType::Unsubscribe
                    | PresenceType::Unsubscribed
            )
    );
    let is_durable = || Some(cx.shard.domains.numbered(session.domain)?.policy.messages_durable);
    (may_be_stored && is_durable() == Some(true))
        .then(|| counted.unwrap_or_else(|| state.inbound.begin(stanza)))
}

fn settled(session: &mut BoundSession, number: u32, cx: &mut Cx<'_>) {
    let state = session.state.stream_management.as_mut();
    if let Some(h) = state.and_then(|state| state.inbound.settled(number)) {
        session.send_element(&acknowledgement(h), cx);
    }
}

fn emitted(session: &mut BoundSession, outgoing: &Outgoing<'_>, cx: &mut Cx<'_>) {
    let Some(state) = &mut session.state.stream_management else { return };
    let entry = match (outgoing, &session.resumption) {
        (Outgoing::Stanza(stanza, Track::Chat(chat)), _) => {
            Sent::Chat(Box::new(((*stanza).clone(), chat.clone())))
        }
        (Outgoing::Stanza(_, Track::Of(kind, id)), None) => Sent::Tracked(*kind, *id),
        (Outgoing::Stanza(stanza, Track::Of(kind, id)), Some(_)) => {
            Sent::TrackedStanza(Box::new((*kind, *id, (*stanza).clone())))
        }
        (Outgoing::Stanza(_, Track::Nothing) | Outgoing::PubsubEvent(_) | Outgoing::Shared(..), None) => {
            Sent::Anything
        }
        (Outgoing::Stanza(stanza, Track::Nothing), Some(_)) => Sent::Stanza(Box::new((*stanza).clone())),
        (Outgoing::PubsubEvent(event), Some(_)) => Sent::Event(Arc::clone(event)),
        (Outgoing::Shared(shared, to), Some(_)) => Sent::Shared(Arc::clone(shared), *to),
    };
    let limits = &cx.shard.settings.limits;
    let bounds = Bounds { stanzas: limits.unacknowledged as usize, bytes: limits.unacknowledged_bytes };
    let is_awaited = entry.is_settled_by_acknowledgement();
    memory::count(&entry, &mut cx.shard.queued);
    let before = state.queue.memory_bytes();
    let next = state.queue.push(entry, bounds);
    memory::resized(session.id, before, state.queue.memory_bytes(), cx);
    session.unacknowledged = Some(state.queue.len() as u32);
    if is_awaited {
        look_later(session, cx);
    }
    match next {
        Next::Nothing => {}
        Next::Request => request(session, cx),
        Next::Overflow => {
            let error = StreamError::new(Condition::PolicyViolation, "too many stanzas are unacknowledged");
            cx.end(session.id, error);
        }
    }
}

/// A sender waits until what was sent is acknowledged: sets the timer that looks whether it is, unless it is set.
fn look_later(session: &mut BoundSession, cx: &mut Cx<'_>) {
    let Some(state) = &mut session.state.stream_management else { return };
    if state.due.is_none() {
        state.due = Some(state.queue.sent());
        session.set_timer(cx.shard.settings.timeouts.ping_wait_ms, ACKNOWLEDGED, cx);
    }
}

/// A client that acknowledges nothing for too long is taken for dead, so that senders need not wait for it: what it was sent goes
/// another way.
fn check(session: &mut BoundSession, cx: &mut Cx<'_>) -> Result<(), StreamError> {
    let is_parked = session.is_parked();
    let Some(state) = &mut session.state.stream_management else { return Ok(()) };
    // It is looked again when the client is back.
    if is_parked {
        state.due = None;
        return Ok(());
    }
    if state.due.take().is_some_and(|due| !state.queue.is_acknowledged(due)) {
        let text = "chat messages were not acknowledged in time";
        return Err(StreamError::new(Condition::ConnectionTimeout, text));
    }
    if state.queue.entries().any(Sent::is_settled_by_acknowledgement) {
        look_later(session, cx);
    }
    Ok(())
}

/// Requests an acknowledgement.
fn request(session: &BoundSession, cx: &mut Cx<'_>) {
    if let Some(conn) = session.conn() {
        cx.out.send(conn, |out| {
            Writer::new(out).empty("r", ns::SM);
        });
        if session.is_tapped {
            session.tap_element(&Element::new("r", ns::SM), cx);
        }
    }
}

/// XEP-0198 §4 leaves open what becomes of messages that were not acknowledged. One that another session of the account was also
/// given is dropped; the others are routed to the account as if they came now: to its sessions, or into the offline store.
fn close(session: &mut BoundSession, _leave: Leave, cx: &mut Cx<'_>) {
    let Some(state) = session.state.stream_management.take() else { return };
    memory::left(session.id, &state, cx);
    for entry in state.queue.into_entries() {
        if let Sent::Chat(message) = entry {
            let (mut stanza, chat) = *message;
            stanza.to = Some(session.bare.to_jid());
            cx.later(move |sessions, cx| route::unacknowledged(&stanza, chat, sessions, cx));
        }
    }
}

/// When an `<r/>` is answered, settled or not.
const ANSWER: Timer = Timer(*b"sm-r");
/// When what senders wait for must have been acknowledged.
const ACKNOWLEDGED: Timer = Timer(*b"sm-a");
/// How long an `<r/>` waits for messages to be settled.
const ANSWER_MS: u64 = 1000;
