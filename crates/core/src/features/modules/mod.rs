//! Modules: filters that an operator adds to a running node. This feature is in the pipeline only while a module is active.

use crate::feature_state::PerShard;
use crate::feature_state::modules::{Decision, Question};
use crate::model::Notification;
use crate::ports::modules::{ActiveModule, Failure, ModuleHook, Subject};
use crate::session::Cx;
use crate::session::hook::{Feature, Hooks, Taken};
use crate::shard::ModuleFigures;
use carillon_wire::jid::BareJid;
use carillon_wire::stanza::{Condition, Kind, MessageType, Stanza, StanzaError};
use std::sync::Arc;

/// The feature.
pub const FEATURE: Feature = Feature {
    name: "modules",
    about: "Asks the modules that an operator activated about messages and notifications.",
    hooks: Hooks { set_modules: Some(set_modules), screen: Some(screen), admit: Some(admit), ..Hooks::NONE },
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
    let question = Question { hook, account: sender.as_str(), domain: sender.domain(), now: cx.now };
    let subject = Subject::Message(std::mem::replace(message, Stanza::message(MessageType::Normal)));
    let (subject, decision) = cx.features.modules.decide(question, subject, &mut cx.shard.counters.modules);
    if let Subject::Message(decided) = subject {
        *message = decided;
    }
    match decision {
        Decision::Goes => Ok(None),
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
    let to = notification.to.clone();
    let question =
        Question { hook: ModuleHook::Notification, account: to.as_str(), domain: to.domain(), now: cx.now };
    let subject = Subject::Notification(notification.clone());
    let (subject, decision) = cx.features.modules.decide(question, subject, &mut cx.shard.counters.modules);
    if let Subject::Notification(decided) = subject {
        *notification = decided;
    }
    decision == Decision::Goes
}
