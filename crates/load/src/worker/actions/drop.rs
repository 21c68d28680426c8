//! All connections are dropped at once.

use super::executor::{Executor, Next};
use crate::worker::context::ActionContext;

/// Drops all connections in its first tick.
pub(super) struct Drop;

impl Executor for Drop {
    fn tick(&mut self, context: &mut ActionContext<'_>) -> Next {
        for number in context.states.numbers.clone() {
            context.drop(number);
        }
        Next::Done
    }
}
