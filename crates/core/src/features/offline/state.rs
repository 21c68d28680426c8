//! What is known of a session: its offline messages on their way.

use crate::shard::Pager;

/// A session's offline messages on their way.
#[derive(Debug, Default)]
pub struct State(pub(super) Option<Box<Progress>>);

crate::form! { struct State(progress) }

#[derive(Debug, Default)]
pub(super) struct Progress {
    pub(super) pager: Pager<Given>,
    /// The last one given: the next page begins after it.
    pub(super) last: u64,
    /// Deletions under way. Until they are committed the store would give the messages again.
    pub(super) deletions: u32,
}

// The store ends with the deletions that it was asked for before another process asks it anything.
crate::form! { struct Progress { pager, last, deletions: omitted(0) } }

/// A message given to the connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Given {
    pub(super) seq: u64,
    /// Whether stream management counts it.
    pub(super) managed: bool,
}

crate::form! { struct Given { seq, managed } }

impl State {
    /// Takes note of what a login read: whether any wait.
    pub(super) fn take_login(&mut self, wait: bool) {
        if wait {
            self.look_again();
        }
    }

    /// Takes note that the store may hold one that the session was not given.
    pub(super) fn look_again(&mut self) {
        self.progress().pager.look_again();
    }

    /// Whether older messages are still to come from the store, so that newer ones must wait behind them there.
    pub(super) fn is_behind(&self) -> bool {
        self.0.as_ref().is_some_and(|progress| progress.pager.is_behind())
    }

    /// Whether there are messages of which only the peer's TCP can say that they arrived.
    pub(super) fn has_unmanaged(&self) -> bool {
        self.0.as_ref().is_some_and(|progress| progress.pager.in_flight().any(|given| !given.managed))
    }

    pub(super) fn progress(&mut self) -> &mut Progress {
        self.0.get_or_insert_default()
    }

    /// Drops the box when it holds nothing: an idle session keeps none.
    pub(super) fn tidy(&mut self) {
        if self.0.as_ref().is_some_and(|progress| progress.pager.is_idle() && progress.deletions == 0) {
            self.0 = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::testing::proves;
    use crate::form::{decode, encode, testing::AT_ONCE};

    #[test]
    fn its_form() {
        let mut state = State::default();
        proves("offline, none", &state);
        state.progress().pager.gave(Given { seq: 1 << 33, managed: true }, 300);
        state.progress().pager.gave(Given { seq: (1 << 33) + 1, managed: false }, 400);
        state.progress().last = (1 << 33) + 1;
        proves("offline", &state);
        // Nobody counts in another process what the store has been asked for in this one.
        state.progress().deletions = 2;
        let read: State = decode(&encode(&state, 1_000_000), AT_ONCE).unwrap();
        assert_eq!(read.0.unwrap().deletions, 0);
    }
}
