//! The state of each player of one thread.

use std::ops::Range;
use std::time::Instant;

/// The states of the players with consecutive numbers.
#[derive(Debug)]
pub(super) struct PlayerStates {
    pub(super) numbers: Range<usize>,
    states: Vec<PlayerState>,
    /// Players that have subscribed in this test.
    subscribed: Vec<bool>,
    /// Players that have been in session in this test.
    known: Vec<bool>,
    /// When the scenario last dropped each player's connection.
    dropped: Vec<Option<Instant>>,
    logging_in: usize,
    in_session: usize,
}

/// The state of a player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlayerState {
    /// Not connected.
    Out,
    /// Connecting or logging in; the login was due at this time.
    LoggingIn(Instant),
    /// In session.
    In,
}

impl PlayerStates {
    /// Players with these numbers, none of them connected.
    pub(super) fn new(numbers: Range<usize>) -> Self {
        let states = vec![PlayerState::Out; numbers.len()];
        let none = vec![false; numbers.len()];
        let dropped = vec![None; numbers.len()];
        Self { numbers, states, subscribed: none.clone(), known: none, dropped, logging_in: 0, in_session: 0 }
    }

    /// The state of a player.
    pub(super) fn state(&self, number: usize) -> PlayerState {
        self.states[number - self.numbers.start]
    }

    /// Whether a player is in session.
    pub(super) fn is_in(&self, number: usize) -> bool {
        self.numbers.contains(&number) && self.state(number) == PlayerState::In
    }

    /// Sets the state of a player and returns the previous one.
    pub(super) fn set(&mut self, number: usize, state: PlayerState) -> PlayerState {
        let old = std::mem::replace(&mut self.states[number - self.numbers.start], state);
        for (state, sign) in [(old, -1), (state, 1)] {
            match state {
                PlayerState::Out => {}
                PlayerState::LoggingIn(_) => self.logging_in = self.logging_in.wrapping_add_signed(sign),
                PlayerState::In => self.in_session = self.in_session.wrapping_add_signed(sign),
            }
        }
        self.known[number - self.numbers.start] |= state == PlayerState::In;
        old
    }

    /// Whether a player has subscribed in this test.
    pub(super) fn is_subscribed(&self, number: usize) -> bool {
        self.subscribed[number - self.numbers.start]
    }

    /// Notes that a player has subscribed.
    pub(super) fn subscribe(&mut self, number: usize) {
        self.subscribed[number - self.numbers.start] = true;
    }

    /// Notes that a player's subscription has ended.
    pub(super) fn unsubscribe(&mut self, number: usize) {
        self.subscribed[number - self.numbers.start] = false;
    }

    /// Whether a player has been in session in this test.
    pub(super) fn is_known(&self, number: usize) -> bool {
        self.known[number - self.numbers.start]
    }

    /// Notes that a player's connection is dropped.
    pub(super) fn dropped(&mut self, number: usize, at: Instant) {
        self.dropped[number - self.numbers.start] = Some(at);
    }

    /// When a player's connection was last dropped by the scenario.
    pub(super) fn last_dropped(&self, number: usize) -> Option<Instant> {
        self.dropped[number - self.numbers.start]
    }

    /// How many players are logging in.
    pub(super) fn logging_in(&self) -> usize {
        self.logging_in
    }

    /// How many players are in session.
    pub(super) fn in_session(&self) -> usize {
        self.in_session
    }

    /// The players in session.
    pub(super) fn members(&self) -> impl Iterator<Item = usize> + '_ {
        self.numbers.clone().filter(|number| self.is_in(*number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_counted() {
        let mut states = PlayerStates::new(10..13);
        states.set(10, PlayerState::LoggingIn(Instant::now()));
        states.set(11, PlayerState::LoggingIn(Instant::now()));
        states.set(11, PlayerState::In);
        assert_eq!((states.logging_in(), states.in_session()), (1, 1));
        assert_eq!(states.members().collect::<Vec<_>>(), [11]);
        assert_eq!(states.set(11, PlayerState::Out), PlayerState::In);
        assert_eq!((states.logging_in(), states.in_session()), (1, 0));
        assert!(!states.is_in(99));
    }
}
