//! Errors say whose fault they are and what to do: a [`StanzaError`] is answered, a [`StreamError`] closes the stream, a
//! [`crate::ports::Fault`] is ours.

pub use carillon_wire::stanza::StanzaError;
use carillon_wire::stream::Condition;
use std::borrow::Cow;

/// Ends a stream: sent to the client before it is closed (RFC 6120 §4.9).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{condition:?}: {text}")]
pub struct StreamError {
    /// The defined condition.
    pub condition: Condition,
    /// A text for the client's developer; may be empty.
    pub text: Cow<'static, str>,
}

impl StreamError {
    /// An error with words.
    pub fn new(condition: Condition, text: impl Into<Cow<'static, str>>) -> StreamError {
        StreamError { condition, text: text.into() }
    }
}

impl From<carillon_wire::xml::Error> for StreamError {
    fn from(error: carillon_wire::xml::Error) -> StreamError {
        StreamError::new(error.condition(), error.to_string())
    }
}
