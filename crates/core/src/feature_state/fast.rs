//! How often each token was used, where the client counts (XEP-0484 §3.5), so that a replayed login is refused.

use crate::feature_state::Shared;
use crate::model::Map;

/// The highest count seen of each token, in two generations.
#[derive(Debug, Default)]
pub struct Replays {
    young: Map<u64, u32>,
    old: Map<u64, u32>,
}

/// The count was seen before, or is lower than one that was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Replayed;

impl Shared for Replays {}

impl Replays {
    /// A client was given this token: its count begins anew, even if it had the same token before.
    pub(crate) fn begin(&mut self, token: u64) {
        self.young.remove(&token);
        self.old.remove(&token);
    }

    /// Notes a use of a token. At most `tokens_max` tokens are kept; those not used for the longest time are forgotten.
    pub(crate) fn note(&mut self, token: u64, count: u32, tokens_max: usize) -> Result<(), Replayed> {
        let last = self.young.get(&token).or_else(|| self.old.get(&token));
        if last.is_some_and(|last| count <= *last) {
            return Err(Replayed);
        }
        if self.young.len() >= (tokens_max / 2).max(1) && !self.young.contains_key(&token) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(token, count);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_taken_once() {
        let mut replays = Replays::default();
        assert_eq!(replays.note(1, 5, 4), Ok(()));
        assert_eq!(replays.note(1, 5, 4), Err(Replayed));
        assert_eq!(replays.note(1, 4, 4), Err(Replayed));
        assert_eq!(replays.note(1, 6, 4), Ok(()));
        assert_eq!(replays.note(2, 1, 4), Ok(()));
        // The older half is kept until the younger is full again.
        assert_eq!(replays.note(3, 1, 4), Ok(()));
        assert_eq!(replays.note(1, 6, 4), Err(Replayed));
        assert_eq!((replays.note(4, 1, 4), replays.note(5, 1, 4)), (Ok(()), Ok(())));
        assert_eq!(replays.note(1, 6, 4), Ok(()), "forgotten");
        replays.begin(1);
        assert_eq!(replays.note(1, 1, 4), Ok(()), "given anew");
    }
}
