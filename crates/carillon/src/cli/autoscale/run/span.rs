//! Times in the settings file.

use carillon_load::plan::Span;
use std::time::Duration;

/// A time that may be left out.
pub(super) fn span(span: Option<Span>, default: Duration) -> Duration {
    span.map_or(default, |span| span.0)
}
