//! IQ requests at an account's home: by one look into a table they come to the feature that answers.

use super::{answer_error, reply};
use crate::message::{AccountMessage, Requester};
use crate::session::homes::AtHome;
use crate::session::hook::{AnswerOther, AskedHandler};
use crate::session::pipeline::Pipeline;
use crate::session::{Cx, Sessions};
use carillon_wire::stanza::{Condition, Kind, Stanza, StanzaError};
use smallvec::SmallVec;

/// A request of one of the account's own sessions.
pub(super) fn own(
    requester: Requester,
    request: &Stanza,
    home: &AtHome<'_>,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) {
    let handler = match (request.kind, request.payload.children().next(), cx.pipeline.instead) {
        (Kind::Iq(kind), Some(payload), Some(instead)) if (instead.takes)(kind, &payload) => {
            return (instead.answer)(request, home, cx);
        }
        (Kind::Iq(kind), Some(payload), _) => cx.pipeline.home_handler(kind, payload.name(), payload.ns()),
        _ => None,
    };
    match handler {
        Some(handler) => (handler.answer)(requester, request, home, sessions, cx),
        None => {
            let error = StanzaError::new(Condition::ServiceUnavailable);
            reply(requester, request, Err(error), sessions, cx);
        }
    }
}

/// A request of another account, which one of the features answers, or none.
pub(super) fn other(request: &Stanza, home: &AtHome<'_>, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    let is_answered = of(request, cx.pipeline).into_iter().any(|handler| match handler.answer {
        AnswerOther::AtHome(answer) => answer(request, home, sessions, cx),
        AnswerOther::Now(_) => false,
    });
    if !is_answered {
        answer_error(request, &StanzaError::new(Condition::ServiceUnavailable), None, cx);
    }
}

/// Who may answer a request of another account, in their order.
fn of(request: &Stanza, pipeline: &Pipeline) -> SmallVec<[&'static AskedHandler; 2]> {
    match (request.kind, request.payload.children().next()) {
        (Kind::Iq(kind), Some(payload)) => pipeline.asked_handlers(kind, payload.name(), payload.ns()),
        _ => SmallVec::new(),
    }
}

/// The first that may answer a request of another account.
pub(super) fn first(request: &Stanza, pipeline: &Pipeline) -> Option<&'static AskedHandler> {
    of(request, pipeline).first().copied()
}

/// Whether a feature answers a request that another sends to the account: now, or at the account's home.
pub(crate) fn asked(request: &Stanza, cx: &mut Cx<'_>) -> bool {
    match first(request, cx.pipeline).map(|handler| handler.answer) {
        None => return false,
        Some(AnswerOther::Now(answer)) => answer(request, cx),
        Some(AnswerOther::AtHome(_)) => {
            if let Some(to) = &request.to {
                cx.tell_account(to.bare(), AccountMessage::Asked(Box::new(request.clone())));
            }
        }
    }
    true
}
