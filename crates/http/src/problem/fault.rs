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
            Fault::Unknown => Problem::unknown(),
        }
    }
}

impl Problem {
    /// The node could not do it now, and nothing was changed; `why` says why.
    pub(crate) fn unavailable(why: &str) -> Problem {
        Problem::new(Code::Unavailable, why).retry_after(1)
    }

    /// What was to do it is busy or fails; nothing was changed.
    pub(crate) fn busy() -> Problem {
        Problem::unavailable("the store or a shard is busy or failing; nothing was changed")
    }

    /// The store failed, and it is unknown whether it was done before.
    pub(crate) fn unknown() -> Problem {
        let detail = "the store failed, and it is unknown whether this was done before; the same request again settles it";
        Problem::new(Code::OutcomeUnknown, detail).retry_after(5)
    }

    /// Nobody answered in time.
    pub(crate) fn timed_out() -> Problem {
        Problem::new(Code::TimedOut, "the node did not answer in time").retry_after(5)
    }

    /// Whether it is unknown if the request was carried out.
    pub(crate) fn leaves_open(&self) -> bool {
        matches!(self.code(), Code::OutcomeUnknown | Code::TimedOut)
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
            Condition::ServiceUnavailable => return Problem::busy(),
            _ => return Problem::unexpected(error),
        };
        let detail = error.text.as_deref().unwrap_or(code.title());
        let problem = Problem::new(code, detail);
        if code == Code::TooFast { problem.too_fast(1) } else { problem }
    }

    /// The node gave an answer that does not fit the question: a fault of ours.
    pub(crate) fn unexpected(answer: &dyn std::fmt::Debug) -> Problem {
        let request_id = request_id::current();
        tracing::error!(?answer, request_id = request_id.as_deref(), "an answer does not fit its question");
        Problem::new(Code::Internal, "the node gave an unexpected answer")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unknown_is_not_said_to_have_changed_nothing() {
        for (fault, code) in [
            (Fault::Busy, Code::Unavailable),
            (Fault::Closed, Code::Unavailable),
            (Fault::Broken, Code::Unavailable),
            (Fault::Unknown, Code::OutcomeUnknown),
        ] {
            let problem = Problem::from(fault);
            assert_eq!((problem.code(), problem.status().as_u16()), (code, 503), "{fault}");
            assert_eq!(problem.leaves_open(), fault == Fault::Unknown);
        }
        let timed_out = Problem::timed_out();
        assert!(timed_out.leaves_open());
        let response = axum::response::IntoResponse::into_response(timed_out);
        assert_eq!(response.status().as_u16(), 504);
        assert_eq!(response.headers()["retry-after"], "5");
        assert!(Code::Unavailable.meaning().contains("nothing was changed"));
        assert!(Code::OutcomeUnknown.meaning().contains("`Idempotency-Key`"));
    }
}
