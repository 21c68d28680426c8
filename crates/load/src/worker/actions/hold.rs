//! Nothing happens: sessions idle.

use std::time::Instant;

use super::executor::{Executor, Next};
use crate::plan::Span;
use crate::worker::context::ActionContext;
use crate::worker::step::StepStart;

/// Waits until a time.
pub(super) struct Hold {
    until: Instant,
}

impl Hold {
    pub(super) fn new(span: Span, step: &StepStart) -> Self {
        Self { until: step.at + span.0 }
    }
}

impl Executor for Hold {
    fn tick(&mut self, context: &mut ActionContext<'_>) -> Next {
        if context.now >= self.until { Next::Done } else { Next::At(Some(self.until)) }
    }
}
