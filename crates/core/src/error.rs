//! Errors say whose fault they are and what to do: a [`StanzaError`] is answered, a [`StreamError`] closes the stream, a
//! [`crate::ports::Fault`] is ours.

use carillon_wire::stanza::Condition as StanzaCondition;
pub use carillon_wire::stanza::StanzaError;
use carillon_wire::stream::Condition;
use carillon_wire::xml::Element;
use std::borrow::Cow;

/// The answer to a request for which the store is needed and cannot be asked: the client may repeat it.
pub(crate) fn store_unavailable() -> StanzaError {
    StanzaError::new(StanzaCondition::InternalServerError)
        .with_text("the store cannot answer; try again later")
}

/// Ends a stream: sent to the client before it is closed (RFC 6120 §4.9).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{condition:?}: {text}")]
pub struct StreamError {
    /// The defined condition.
    pub condition: Condition,
    /// A text for the client's developer; may be empty.
    pub text: Cow<'static, str>,
    /// A condition of the application's own, which says more (RFC 6120 §4.9.4).
    pub specific: Option<Box<Element>>,
    /// Where the client is to go, with [`Condition::SeeOtherHost`].
    pub other_host: Option<Box<str>>,
}

impl StreamError {
    /// An error with words.
    pub fn new(condition: Condition, text: impl Into<Cow<'static, str>>) -> StreamError {
        StreamError { condition, text: text.into(), specific: None, other_host: None }
    }

    /// With a condition of the application's own.
    pub fn with(self, specific: Element) -> StreamError {
        StreamError { specific: Some(Box::new(specific)), ..self }
    }
}

impl From<carillon_wire::xml::Error> for StreamError {
    fn from(error: carillon_wire::xml::Error) -> StreamError {
        StreamError::new(error.condition(), error.to_string())
    }
}
