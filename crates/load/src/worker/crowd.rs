//! The players of one thread, as a deed sees them: who is in session, and what can be done with them.

use std::ops::Range;
use std::time::Instant;

use super::setting::Setting;
use super::tally::{Count, Ledger};
use crate::plan::Protocol;
use crate::swarm::{Network, Start};

/// How things are with each player.
#[derive(Debug)]
pub(super) struct Roster {
    pub(super) numbers: Range<usize>,
    states: Vec<State>,
    /// Who has subscribed in this test.
    follows: Vec<bool>,
    /// Who has been in session in this test.
    known: Vec<bool>,
    logging_in: usize,
    in_session: usize,
}

/// How things are with a player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Not connected.
    Out,
    /// Connecting or logging in, which was due then.
    LoggingIn(Instant),
    /// In session.
    In,
}

/// What a deed works with.
pub(super) struct Crowd<'a> {
    pub(super) setting: &'a Setting,
    pub(super) ledger: &'a Ledger,
    pub(super) roster: &'a mut Roster,
    pub(super) network: &'a mut Network,
    pub(super) now: Instant,
}

impl Roster {
    /// Players with these numbers, none of whom is connected.
    pub(super) fn new(numbers: Range<usize>) -> Self {
        let states = vec![State::Out; numbers.len()];
        let nobody = vec![false; numbers.len()];
        Self { numbers, states, follows: nobody.clone(), known: nobody, logging_in: 0, in_session: 0 }
    }

    /// How things are with one.
    pub(super) fn state(&self, number: usize) -> State {
        self.states[number - self.numbers.start]
    }

    /// Whether one is in session.
    pub(super) fn is_in(&self, number: usize) -> bool {
        self.numbers.contains(&number) && self.state(number) == State::In
    }

    /// Takes note of how things are with one now; gives how they were.
    pub(super) fn set(&mut self, number: usize, state: State) -> State {
        let old = std::mem::replace(&mut self.states[number - self.numbers.start], state);
        for (state, sign) in [(old, -1), (state, 1)] {
            match state {
                State::Out => {}
                State::LoggingIn(_) => self.logging_in = self.logging_in.wrapping_add_signed(sign),
                State::In => self.in_session = self.in_session.wrapping_add_signed(sign),
            }
        }
        self.known[number - self.numbers.start] |= state == State::In;
        old
    }

    /// Whether one has subscribed in this test.
    pub(super) fn follows(&self, number: usize) -> bool {
        self.follows[number - self.numbers.start]
    }

    /// Takes note that one has subscribed.
    pub(super) fn follow(&mut self, number: usize) {
        self.follows[number - self.numbers.start] = true;
    }

    /// Takes note that one is subscribed no more.
    pub(super) fn unfollow(&mut self, number: usize) {
        self.follows[number - self.numbers.start] = false;
    }

    /// Whether one has been in session in this test.
    fn is_known(&self, number: usize) -> bool {
        self.known[number - self.numbers.start]
    }

    /// How many are logging in.
    pub(super) fn logging_in(&self) -> usize {
        self.logging_in
    }

    /// How many are in session.
    pub(super) fn in_session(&self) -> usize {
        self.in_session
    }

    /// Those in session.
    pub(super) fn members(&self) -> impl Iterator<Item = usize> + '_ {
        self.numbers.clone().filter(|number| self.is_in(*number))
    }
}

impl Crowd<'_> {
    /// Logs a player in. The login was due at a moment: its latency counts from there.
    pub(super) fn log_in(&mut self, number: usize, due: Instant) {
        self.roster.set(number, State::LoggingIn(due));
        let is_new = !self.roster.is_known(number);
        let start = match self.setting.job.scenario.players.protocol {
            Protocol::Xmpp => Start::Xmpp(self.setting.options(number, is_new)),
            // Its subscriptions ended with its last connection.
            Protocol::Light => {
                self.roster.unfollow(number);
                Start::Light
            }
        };
        self.network.connect(number, start);
    }

    /// Drops a player's connection without a word.
    pub(super) fn drop(&mut self, number: usize) {
        if self.roster.set(number, State::Out) != State::Out {
            self.ledger.count(Count::Dropped);
        }
        self.network.abort(number);
    }

    /// Counts something that is sent now and was due then.
    pub(super) fn sent(&self, due: Instant) {
        self.ledger.sent(self.now.saturating_duration_since(due));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_roster_counts_its_states() {
        let mut roster = Roster::new(10..13);
        roster.set(10, State::LoggingIn(Instant::now()));
        roster.set(11, State::LoggingIn(Instant::now()));
        roster.set(11, State::In);
        assert_eq!((roster.logging_in(), roster.in_session()), (1, 1));
        assert_eq!(roster.members().collect::<Vec<_>>(), [11]);
        assert_eq!(roster.set(11, State::Out), State::In);
        assert_eq!((roster.logging_in(), roster.in_session()), (1, 0));
        assert!(!roster.is_in(99));
    }
}
