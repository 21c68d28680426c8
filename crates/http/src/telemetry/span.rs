//! A span that has ended.

use carillon_core::model::TraceContext;
use std::borrow::Cow;
use std::time::SystemTime;

/// A span that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) name: Cow<'static, str>,
    pub(crate) kind: SpanKind,
    /// Its trace and its own number.
    pub(crate) context: TraceContext,
    /// The span that it follows from; 0 for none.
    pub(crate) parent: u64,
    pub(crate) start: SystemTime,
    pub(crate) end: SystemTime,
    pub(crate) attributes: Vec<(&'static str, Value)>,
    /// Spans of other traces that it also follows from.
    pub(crate) links: Vec<TraceContext>,
    /// Why it counts as failed.
    pub(crate) error: Option<Cow<'static, str>>,
}

/// The kinds of spans that there are here, by their numbers in OTLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpanKind {
    Internal = 1,
    Server = 2,
    Client = 3,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Text(Cow<'static, str>),
    Number(i64),
}
