//! Modules: filters and observers that an operator adds to a running node. This feature is in the pipeline only while a module is active.

use crate::event::Leave;
use crate::feature_state::PerShard;
use crate::feature_state::modules::{Decision, Question};
use crate::model::{Event, Notification};
use crate::ports::modules::{
    ActiveModule, ClientSubject, Failure, LoginRefusal, ModuleHook, PushText, Subject,
};
use crate::sasl::Failure as LoginFailure;
use crate::session::hook::{Feature, Hooks, Taken};
use crate::session::{BoundSession, Cx};
use crate::shard::ModuleFigures;
use carillon_wire::jid::{BareJid, Jid};
use carillon_wire::stanza::{Condition, Kind, MessageType, Stanza, StanzaError};
use std::sync::Arc;

/// The feature.
pub const FEATURE: Feature = Feature {
    name: "modules",
    about: "Asks the modules that an operator activated about messages, notifications, logins and pushes, and tells them of sessions and events.",
    hooks: Hooks {
        set_modules: Some(set_modules),
        screen: Some(screen),
        screen_arrived: Some(screen_arrived),
        admit: Some(admit),
        authorise: Some(authorise),
        render_push: Some(render_push),
        open: Some(opened),
        close: Some(closed),
        event: Some(happened),
        ..Hooks::NONE
    },
    ..Feature::NONE
};

fn set_modules(
    modules: Vec<ActiveModule>,
    seed: u64,
    features: &mut PerShard,
    figures: &mut Vec<ModuleFigures>,
) {
    features.modules.replace(modules, seed, figures);
}

/// Asks the modules about something of an account.
fn ask(hook: ModuleHook, account: &BareJid, subject: Subject, cx: &mut Cx<'_>) -> (Subject, Decision) {
    let question = Question { hook, account: account.as_str(), domain: account.domain(), now: cx.now };
    cx.features.modules.decide(question, subject, &mut cx.shard.counters.modules)
}

fn screen(
    sender: &BareJid,
    message: &mut Stanza,
    is_for_service: bool,
    cx: &mut Cx<'_>,
) -> Result<Option<Taken>, StanzaError> {
    let hook = match message.kind {
        Kind::Message(MessageType::Error) => return Ok(None),
        // The type alone does not make it a message to a room: it may name an account, too.
        Kind::Message(MessageType::Groupchat) if is_for_service => ModuleHook::RoomMessage,
        _ => ModuleHook::SubmitMessage,
    };
    decide_message(hook, sender, message, cx)
}

/// What the server itself says, and what an account sends to itself, is nobody's to decide about.
fn screen_arrived(message: &mut Stanza, cx: &mut Cx<'_>) -> Result<Option<Taken>, StanzaError> {
    if !cx.features.modules.has(ModuleHook::Arrived) || !is_of_another(message) {
        return Ok(None);
    }
    let Some(account) = message.to.as_ref().map(Jid::bare) else { return Ok(None) };
    decide_message(ModuleHook::Arrived, &account, message, cx)
}

/// Whether it is a message of another account, or of a room.
fn is_of_another(stanza: &Stanza) -> bool {
    let Kind::Message(kind) = stanza.kind else { return false };
    let (Some(from), Some(to)) = (&stanza.from, &stanza.to) else { return false };
    kind != MessageType::Error && from.local().is_some() && from.bare_str() != to.bare_str()
}

fn decide_message(
    hook: ModuleHook,
    account: &BareJid,
    message: &mut Stanza,
    cx: &mut Cx<'_>,
) -> Result<Option<Taken>, StanzaError> {
    if !cx.features.modules.has(hook) {
        return Ok(None);
    }
    let subject = Subject::Message(std::mem::replace(message, Stanza::message(MessageType::Normal)));
    let (subject, decision) = ask(hook, account, subject, cx);
    if let Subject::Message(decided) = subject {
        *message = decided;
    }
    match decision {
        // Only logins are refused.
        Decision::Goes | Decision::Refused(_) => Ok(None),
        Decision::Dropped => Ok(Some(Taken::Dropped)),
        Decision::Rejected(why) => {
            let error = StanzaError::new(why.condition);
            Err(match why.text {
                Some(text) => error.with_text(String::from(text)),
                None => error,
            })
        }
        Decision::Failed(failure) => Err(failed(failure)),
    }
}

/// What the sender of a message is told when a module fails that is to fail closed.
fn failed(failure: Failure) -> StanzaError {
    match failure {
        Failure::Turn => StanzaError::new(Condition::ResourceConstraint).with_text("try again later"),
        _ => StanzaError::new(Condition::InternalServerError).with_text("a filter of this server failed"),
    }
}

fn admit(notification: &mut Arc<Notification>, cx: &mut Cx<'_>) -> bool {
    if !cx.features.modules.has(ModuleHook::Notification) {
        return true;
    }
    let (to, subject) = (notification.to.clone(), Subject::Notification(notification.clone()));
    let (subject, decision) = ask(ModuleHook::Notification, &to, subject, cx);
    if let Subject::Notification(decided) = subject {
        *notification = decided;
    }
    decision == Decision::Goes
}

fn authorise(account: &BareJid, client: Box<ClientSubject>, cx: &mut Cx<'_>) -> Option<LoginRefusal> {
    if !cx.features.modules.has(ModuleHook::Authorise) {
        return None;
    }
    match ask(ModuleHook::Authorise, account, Subject::Client(client), cx).1 {
        Decision::Refused(refusal) => Some(refusal),
        // The client may try again.
        Decision::Failed(_) => Some(LoginRefusal {
            failure: LoginFailure::TemporaryAuthFailure,
            ends_stream: false,
            text: Some("a filter of this server failed; try again later".into()),
        }),
        Decision::Goes | Decision::Dropped | Decision::Rejected(_) => None,
    }
}

fn render_push(account: &BareJid, text: Box<PushText>, cx: &mut Cx<'_>) -> Option<Box<PushText>> {
    if !cx.features.modules.has(ModuleHook::PushRender) {
        return Some(text);
    }
    match ask(ModuleHook::PushRender, account, Subject::Push(text), cx) {
        (Subject::Push(text), Decision::Goes) => Some(text),
        _ => None,
    }
}

fn opened(session: &mut BoundSession, cx: &mut Cx<'_>) {
    observe(ModuleHook::Opened, session, None, cx);
}

fn closed(session: &mut BoundSession, leave: Leave, cx: &mut Cx<'_>) {
    observe(ModuleHook::Closed, session, Some(leave.as_str()), cx);
}

/// Tells the modules of a session; whatever they say, nothing follows from it.
fn observe(hook: ModuleHook, session: &BoundSession, reason: Option<&'static str>, cx: &mut Cx<'_>) {
    if !cx.features.modules.has(hook) {
        return;
    }
    let parked = session.resumption.as_ref().and_then(|resumption| resumption.parked);
    let (address, transport) = match (&session.io, parked) {
        (Some(io), _) => (Some(io.address), Some(io.transport())),
        (None, Some(parked)) => (Some(parked.address), parked.transport),
        (None, None) => (None, None),
    };
    let jid = session.jid.as_str().into();
    let client = ClientSubject { jid, address, transport, mechanism: None, agent: None, reason };
    _ = ask(hook, &session.bare, Subject::Client(Box::new(client)), cx);
}

/// Tells the modules of an event; whatever they say, nothing follows from it. That of a room counts as the room's.
fn happened(event: &Event, cx: &mut Cx<'_>) {
    if !cx.features.modules.has(ModuleHook::Event) {
        return;
    }
    let (account, domain) = match event {
        Event::Notification(trace) => (&trace.to, cx.shard.domains.named(trace.to.domain())),
        Event::Room(fact, _) => (&fact.room, cx.shard.domains.numbered(fact.domain)),
    };
    let Some(domain) = domain.map(|domain| domain.name.clone()) else { return };
    let (hook, now) = (ModuleHook::Event, cx.now);
    let question = Question { hook, account: account.as_str(), domain: &domain, now };
    let subject = Subject::Event(Box::new(event.clone()));
    _ = cx.features.modules.decide(question, subject, &mut cx.shard.counters.modules);
}
