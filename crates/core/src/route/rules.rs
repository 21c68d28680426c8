//! Rules that messages carry (XEP-0079), by what routing plans for them.

use super::is_to_nobody;
use crate::session::hook::{Delivery, Handling, Plan, RulesHandler};
use crate::session::{BoundSession, Cx};
use carillon_wire::stanza::{Kind, MessageType, Stanza};
use smallvec::SmallVec;

/// Whether a rule of a message ends it, of which this would become.
pub(super) fn end(
    rules: &RulesHandler,
    message: &Stanza,
    plan: &Plan,
    lives: &[&BoundSession],
    cx: &mut Cx<'_>,
) -> bool {
    let resources = resources(plan, lives);
    (rules.ends)(message, handling(message, &resources, lives, cx), cx)
}

/// This becomes of a message: its sender is told if a rule says so. Where the store is to keep it, that is said once it does.
pub(super) fn tell(
    rules: &RulesHandler,
    message: &Stanza,
    plan: &Plan,
    lives: &[&BoundSession],
    cx: &mut Cx<'_>,
) {
    let resources = resources(plan, lives);
    match handling(message, &resources, lives, cx) {
        Handling::Stored => {}
        handling => (rules.became)(message, handling, cx),
    }
}

/// The resources of the sessions that are given something.
fn resources<'a>(plan: &Plan, lives: &[&'a BoundSession]) -> SmallVec<[&'a str; 4]> {
    let session = |delivery: &Delivery| lives.iter().find(|session| session.id.slot == delivery.slot);
    plan.iter().filter_map(|delivery| session(delivery)?.jid.resource()).collect()
}

/// What becomes of a message that sessions with these resources are given.
fn handling<'a>(
    message: &Stanza,
    resources: &'a [&'a str],
    lives: &[&BoundSession],
    cx: &Cx<'_>,
) -> Handling<'a> {
    let is_kept = || match message.kind {
        Kind::Message(MessageType::Normal) => !is_to_nobody(message, lives),
        kind => kind == Kind::Message(MessageType::Chat),
    };
    let keeps = || cx.pipeline.keep.is_some_and(|handler| (handler.keeps)(message));
    match resources {
        [] if is_kept() && keeps() => Handling::Stored,
        [] => Handling::Nowhere,
        resources => Handling::Direct(resources),
    }
}
