//! All connections are dropped at once.

use super::{Act, Next};
use crate::worker::crowd::Crowd;

/// Drops everyone in its first tick.
pub(super) struct Drop;

impl Act for Drop {
    fn tick(&mut self, crowd: &mut Crowd<'_>) -> Next {
        for number in crowd.roster.numbers.clone() {
            crowd.drop(number);
        }
        Next::Done
    }
}
