//! What the node's own faults become for a client.

use super::{Code, Problem};
use crate::request_id;
use carillon_core::ports::Fault;
use carillon_wire::stanza::{Condition, StanzaError};

impl From<Fault> for Problem {
    fn from(fault: Fault) -> Problem {
        match fault {
            Fault::Busy => Problem::new(Code::Unavailable, "the store is busy").retry_after(1),
            Fault::Closed => Problem::new(Code::Unavailable, "the node is shutting down").retry_after(5),
            Fault::Broken => {
                Problem::new(Code::Unavailable, "the store failed; the node's log says why").retry_after(5)
            }
        }
    }
}

impl Problem {
    /// The node could not do it now; nothing was changed.
    pub(crate) fn unavailable() -> Problem {
        Problem::new(Code::Unavailable, "the node cannot do it now; nothing was changed").retry_after(1)
    }

    /// The core refused an operation as it would have over XMPP. `missing` is what `item-not-found` means here.
    pub(crate) fn refused(error: &StanzaError, missing: Code) -> Problem {
        let code = match error.condition {
            Condition::ItemNotFound | Condition::Gone => missing,
            Condition::Conflict => Code::AlreadyExists,
            Condition::Forbidden | Condition::NotAllowed | Condition::NotAuthorized => Code::Forbidden,
            Condition::JidMalformed => Code::InvalidJid,
            Condition::BadRequest | Condition::NotAcceptable | Condition::PolicyViolation => {
                Code::InvalidValue
            }
            Condition::SubscriptionRequired | Condition::UnexpectedRequest => Code::NotSubscribed,
            Condition::ResourceConstraint => Code::TooFast,
            Condition::ServiceUnavailable => return Problem::unavailable(),
            _ => return Problem::unexpected(error),
        };
        let detail = error.text.as_deref().unwrap_or(code.title());
        let problem = Problem::new(code, detail);
        if code == Code::TooFast { problem.retry_after(1) } else { problem }
    }

    /// The node gave an answer that does not fit the question: a fault of ours.
    pub(crate) fn unexpected(answer: &dyn std::fmt::Debug) -> Problem {
        let request_id = request_id::current();
        tracing::error!(?answer, request_id = request_id.as_deref(), "an answer does not fit its question");
        Problem::new(Code::Internal, "the node gave an answer that does not fit")
    }
}
