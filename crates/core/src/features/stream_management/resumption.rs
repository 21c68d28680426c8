//! Resumption (XEP-0198 §5): what the client is told of it and what it says, and what is sent again.

use super::{acknowledge_up_to, failed, look_later, memory, request, too_high};
use crate::error::StreamError;
use crate::feature_state::stream_management::{Origin, Sent};
use crate::model::{Mono, SessionId, Settlement};
use crate::route;
use crate::sasl::Protection;
use crate::session::hook::ResumptionHandler;
use crate::session::{BoundSession, Cx, Progress, Resume, Resumption, Sessions};
use crate::shard::{Addressee, Chat, Fate, Names, Recipients};
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, Stanza};
use carillon_wire::xml::Element;

/// How clients resume sessions.
pub(super) const HANDLER: ResumptionHandler = ResumptionHandler {
    inline: |inline| inline.child("resume", ns::SM).map(read),
    check,
    resumed,
    go_on,
    away,
    failed: || failed(Condition::ItemNotFound),
    progress: |session| {
        let state = session.state.stream_management.as_ref()?;
        let (handled, settled) = state.inbound.counts();
        Some(Progress { sent: state.queue.sent(), handled, settled })
    },
    settlements,
    recent,
    orphaned,
    origin: |session, number| {
        let state = session.state.stream_management.as_ref()?;
        let origin = state.noted.as_ref()?.origin.as_ref()?;
        let is_early = origin.last.wrapping_sub(number).cast_signed() >= 0;
        is_early.then_some(Settlement { number, ..origin.old })
    },
    repoint,
    given_up,
};

/// XEP-0198 §9.2: that a client of SASL2 may resume inline.
pub(super) fn offer(_protection: &Protection, _cx: &Cx<'_>) -> Option<Element> {
    Some(Element::new("sm", ns::SM))
}

/// The answer to `<enable/>`: whether and how the session can be resumed, where the client asks for that.
pub(super) fn enabled(session: &mut BoundSession, enable: &Element, cx: &mut Cx<'_>) -> Element {
    let enabled = Element::new("enabled", ns::SM);
    let wants = matches!(enable.attr("resume"), Some("true" | "1"));
    let wanted_ms = enable.attr("max").and_then(|max| max.parse::<u64>().ok()).unwrap_or(u64::MAX);
    let timeout_ms = session.resumption_ms_max(cx).min(wanted_ms.saturating_mul(1000));
    if !wants || timeout_ms == 0 {
        return enabled;
    }
    let number = cx.shard.random.number();
    let key = cx.shard.adoption.key(number, cx.shard.place.node);
    session.resumption = Some(Box::new(Resumption { key, timeout_ms, parked: None, is_adopted: false }));
    let max = timeout_ms.div_ceil(1000).to_string();
    enabled.with_attr("id", name(key)).with_attr("resume", "true").with_attr("max", max)
}

/// The name of a session for its client.
fn name(key: u64) -> String {
    format!("{key:016x}")
}

/// Reads `<resume/>`. One that names no session of ours may be another server's.
pub(super) fn read(resume: &Element) -> Result<Resume, Element> {
    let key =
        resume.attr("previd").filter(|id| id.len() == 16).and_then(|id| u64::from_str_radix(id, 16).ok());
    let key = key.ok_or_else(|| failed(Condition::ItemNotFound))?;
    let h = resume.attr("h").and_then(|h| h.parse().ok()).ok_or_else(|| failed(Condition::BadRequest))?;
    Ok(Resume { key, h })
}

fn check(session: &BoundSession, h: u32) -> Result<(), StreamError> {
    let Some(state) = &session.state.stream_management else { return Ok(()) };
    state.queue.can_be_acknowledged(h).map_err(|too_many| too_high(h, &too_many))
}

/// The connection is gone. A stanza that still waits counts as handled: the client repeats it, and it must not be handled twice.
pub(super) fn parked(session: &mut BoundSession, waiting: Option<&Stanza>, _cx: &mut Cx<'_>) -> Option<u32> {
    let state = session.state.stream_management.as_mut()?;
    state.queue.is_cut();
    state.inbound.is_cut();
    let number = state.inbound.begin(waiting?);
    state.inbound.handled();
    Some(number)
}

/// The client did not come back at once. Chat messages that it may not have are stored, where no other session has them: their senders do
/// not wait for it, and newer ones, which are stored while it is away, come behind them.
fn away(id: SessionId, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    for (stanza, chat) in under_way(id, sessions) {
        route::unacknowledged(&stanza, chat, sessions, cx);
    }
}

/// The session is about to go on in another process, where nobody who sent it something is found. Chat messages for which their
/// senders wait are stored, too.
pub(super) fn leaves(id: SessionId, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    for (stanza, chat) in under_way(id, sessions) {
        if chat.settlement.is_some() {
            route::keep(&stanza, chat, cx);
        }
    }
}

/// The chat messages that a client may not have, and nobody else is known to have.
fn under_way(id: SessionId, sessions: &mut Sessions) -> Vec<(Stanza, Chat)> {
    let mut messages = Vec::new();
    let Some(session) = sessions.bound(id) else { return messages };
    let Some(state) = &mut session.state.stream_management else { return messages };
    for entry in state.queue.entries_mut() {
        let Sent::Chat(message) = entry else { continue };
        let recipients = message.1.recipients.get_or_insert_with(|| Recipients::of([id]));
        if recipients.fate() == Fate::Theirs {
            let mut stanza = message.0.clone();
            stanza.to = Some(session.bare.to_jid());
            messages.push((stanza, message.1.clone()));
        }
    }
    messages
}

/// The session came from another process. What was not settled there is not settled by anything here, unless it is the same node to others.
pub(super) fn restored(session: &mut BoundSession, names: &mut Names, cx: &mut Cx<'_>) {
    let is_connected = session.io.is_some();
    let account = session.account;
    let Some(state) = &mut session.state.stream_management else { return };
    match (is_connected, state.inbound.has_passed()) {
        _ if names.stay() => {}
        (true, _) => state.inbound.goes_on(),
        (false, false) => state.inbound.is_moved(),
        // Of one that a dead node left it is known what the client is not to repeat.
        (false, true) => {}
    }
    for entry in state.queue.entries_mut() {
        let Sent::Chat(message) = entry else { continue };
        let chat = &mut message.1;
        if !names.stay() {
            chat.settlement = None;
        }
        chat.recipients = chat.recipients.as_ref().map(|recipients| names.renamed(account, recipients));
    }
    memory::came(session, cx);
}

/// The settlements of messages that were acknowledged a moment ago.
fn recent(session: &mut BoundSession, now: Mono) -> Vec<Settlement> {
    let Some(state) = &mut session.state.stream_management else { return Vec::new() };
    state.recent(now)
}

/// The settlements of messages in the queue.
fn settlements(session: &BoundSession) -> Vec<Settlement> {
    let Some(state) = &session.state.stream_management else { return Vec::new() };
    let of = |entry: &Sent| match entry {
        Sent::Chat(message) => message.1.settlement,
        _ => None,
    };
    state.queue.entries().filter_map(of).collect()
}

/// Nobody knows what became of what was not settled, but of what is in the queues of others: the client repeats from there on, and what was handled
/// nevertheless is passed over.
fn orphaned(session: &mut BoundSession, held: &[u32], old: Settlement) {
    let Some(state) = &mut session.state.stream_management else { return };
    let last = state.inbound.counts().0.wrapping_add(UNWRITTEN);
    state.noted.get_or_insert_default().origin = Some(Origin { old, last });
    state.inbound.is_orphaned(held);
    // Its timers were not written.
    state.due = None;
}

/// Another waits from now on for a message in the queue.
fn repoint(session: &mut BoundSession, old: &Settlement, new: Settlement) -> bool {
    let Some(state) = &mut session.state.stream_management else { return false };
    let mut found = false;
    for entry in state.queue.entries_mut() {
        if let Sent::Chat(message) = entry
            && message.1.settlement.as_ref() == Some(old)
        {
            message.1.settlement = Some(new);
            found = true;
        }
    }
    found
}

/// How many stanzas a client may have sent of which the log of its session does not say that they were handled.
const UNWRITTEN: u32 = 1024;

/// Chat messages that the client of a session may not have, and that the store has not, go to the account's other sessions, or into the store.
fn given_up(mut session: Box<BoundSession>, cx: &mut Cx<'_>) {
    let Some(state) = session.state.stream_management.take() else { return };
    for entry in state.queue.into_entries() {
        let Sent::Chat(message) = entry else { continue };
        let (mut stanza, chat) = *message;
        if chat.recipients.is_none_or(|recipients| recipients.fate() == Fate::Theirs) {
            stanza.to = Some(session.bare.to_jid());
            cx.later(move |sessions, cx| route::stanza(&stanza, None, sessions, cx));
        }
    }
}

/// `<resumed/>`: how many stanzas of the client are settled. It repeats the others.
fn resumed(session: &mut BoundSession) -> Element {
    let h = session.state.stream_management.as_mut().map_or(0, |state| state.inbound.resume());
    let key = session.resumption.as_ref().map_or(0, |resumption| resumption.key);
    Element::new("resumed", ns::SM).with_attr("h", h.to_string()).with_attr("previd", name(key))
}

/// What has ended meanwhile, and the client never received, is not sent.
fn forget_what_is_over(session: &mut BoundSession, cx: &mut Cx<'_>) {
    // It is in use while features look at the session.
    let Some(mut state) = session.state.stream_management.take() else { return };
    let before = state.queue.memory_bytes();
    state.queue.retain(|entry| {
        let Sent::TrackedStanza(tracked) = entry else { return true };
        let handler = cx.pipeline.tracked_handler(tracked.0);
        let is_over = handler.is_some_and(|handler| (handler.is_over)(session, tracked.1, cx));
        if is_over {
            memory::uncount(entry, &mut cx.shard.queued);
        }
        !is_over
    });
    memory::resized(session.id, before, state.queue.memory_bytes(), cx);
    session.unacknowledged = Some(state.queue.len() as u32);
    session.state.stream_management = Some(state);
}

/// The client has `h` stanzas; it is sent the others again, in their order.
fn go_on(session: &mut BoundSession, h: u32, cx: &mut Cx<'_>) {
    // It was checked.
    let _ = acknowledge_up_to(session, h, cx);
    forget_what_is_over(session, cx);
    let (Some(state), Some(io)) = (&mut session.state.stream_management, &session.io) else { return };
    for entry in state.queue.entries() {
        match entry {
            // What was sent before it was known that the session can be resumed.
            Sent::Anything | Sent::Tracked(..) => {}
            Sent::Event(event) => {
                cx.out.send(io.conn, |out| event.write(out, session.jid.as_str(), io.framing));
            }
            Sent::Shared(stanza, to) => {
                let to = match to {
                    Addressee::Client => session.jid.as_str(),
                    Addressee::Account => session.bare.as_str(),
                };
                cx.out.send(io.conn, |out| stanza.write(to, out, io.framing));
            }
            Sent::Chat(message) => cx.out.send(io.conn, |out| message.0.write(out, io.framing)),
            Sent::Stanza(stanza) => cx.out.send(io.conn, |out| stanza.write(out, io.framing)),
            Sent::TrackedStanza(tracked) => cx.out.send(io.conn, |out| tracked.2.write(out, io.framing)),
        }
    }
    if state.queue.request_again() {
        request(session, cx);
    }
    let awaited = session.state.stream_management.as_ref();
    if awaited.is_some_and(|state| state.queue.entries().any(Sent::is_settled_by_acknowledgement)) {
        look_later(session, cx);
    }
}
