//! What is known of a session: its offline messages on their way.

use crate::shard::Reading;

/// A session's offline messages on their way.
#[derive(Debug, Default)]
pub struct State(pub(super) Option<Box<Progress>>);

#[derive(Debug, Default)]
pub(super) struct Progress {
    /// How far the session is with what the store holds for it.
    pub(super) reading: Reading,
    /// The last one given.
    pub(super) last: u64,
    /// Given to a connection without stream management; not known to have arrived.
    pub(super) unacked: Vec<Given>,
    /// Bytes of all that were given.
    pub(super) given: u64,
    /// Whether a timer runs that looks how much has arrived.
    pub(super) timed: bool,
}

/// A message given to the connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Given {
    pub(super) seq: u64,
    /// [`Progress::given`] with this one.
    pub(super) end: u64,
}

impl State {
    /// Takes note of what a login read: whether any wait.
    pub(super) fn take_login(&mut self, waits: bool) {
        if waits {
            self.progress().reading.more = true;
        }
    }

    /// Whether older messages are still to come from the store, so that newer ones must wait behind them there.
    pub(super) fn is_behind(&self) -> bool {
        self.0.as_ref().is_some_and(|progress| progress.reading.is_behind())
    }

    pub(super) fn progress(&mut self) -> &mut Progress {
        self.0.get_or_insert_default()
    }
}
