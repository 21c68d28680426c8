//! Everyone stays as they are.

use std::time::Instant;

use super::{Act, Next};
use crate::plan::Span;
use crate::worker::crowd::Crowd;
use crate::worker::hand::Turn;

/// Waits until a time.
pub(super) struct Hold {
    until: Instant,
}

impl Hold {
    pub(super) fn new(span: Span, turn: &Turn) -> Self {
        Self { until: turn.at + span.0 }
    }
}

impl Act for Hold {
    fn tick(&mut self, crowd: &mut Crowd<'_>) -> Next {
        if crowd.now >= self.until { Next::Done } else { Next::At(Some(self.until)) }
    }
}
