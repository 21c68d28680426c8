//! A seat of a match: who has it, whether its player is there, and what the player sent.

use crate::connection::Allowance;
use crate::model::{ConnId, Mono};
use carillon_wire::frame::game::{Header, SeatState};
use carillon_wire::jid::BareJid;
use smallvec::SmallVec;
use std::collections::VecDeque;

/// An input; most are short.
type Input = SmallVec<[u8; 16]>;

/// A seat of a match.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) account: BareJid,
    pub(super) presence: Presence,
    /// Its player was there once: the token is good for coming back, also after its time.
    pub(super) has_joined: bool,
    /// Which ticks the server has the inputs of.
    pub(super) got: Header,
    /// Inputs of ticks that are not closed, in their order.
    waiting: VecDeque<(u32, Input)>,
    /// The newest input, and its tick.
    last: (u32, Input),
    /// How much its player may send.
    pub(super) allowance: Allowance,
    pub(super) pauses_left: u8,
    /// What its player says came of the match.
    pub(super) outcome: Option<Vec<u8>>,
}

/// Whether the player of a seat is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    /// The connection is lost, or did not come yet.
    Away {
        /// Until when the seat is held.
        until: Mono,
    },
    /// There is a connection.
    Here(Line),
    /// The player has left for good.
    Left,
}

/// A connection that is given the ticks of a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) conn: ConnId,
    /// The last tick that it was given.
    pub(super) sent: u32,
    /// It is given earlier ticks, slice by slice, and none of the present before it has all of them.
    pub(super) catches_up: bool,
}

/// What became of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// It waits for its tick.
    InTime,
    /// Its tick is closed: it counts as what is repeated.
    Late,
    /// It was there before.
    Again,
    /// Its tick is too far ahead.
    TooFar,
}

impl Seat {
    pub(super) fn new(account: BareJid, until: Mono, pauses: u8) -> Seat {
        Seat {
            account,
            presence: Presence::Away { until },
            has_joined: false,
            got: Header::default(),
            waiting: VecDeque::new(),
            last: (0, Input::new()),
            allowance: Allowance::new(Mono(0)),
            pauses_left: pauses,
            outcome: None,
        }
    }

    pub(super) fn state(&self) -> SeatState {
        match self.presence {
            Presence::Away { .. } => SeatState::Away,
            Presence::Here(_) => SeatState::Here,
            Presence::Left => SeatState::Left,
        }
    }

    pub(super) fn line(&mut self) -> Option<&mut Line> {
        match &mut self.presence {
            Presence::Here(line) => Some(line),
            Presence::Away { .. } | Presence::Left => None,
        }
    }

    pub(super) fn conn(&self) -> Option<ConnId> {
        match self.presence {
            Presence::Here(line) => Some(line.conn),
            Presence::Away { .. } | Presence::Left => None,
        }
    }

    pub(super) fn has_left(&self) -> bool {
        self.presence == Presence::Left
    }

    /// Takes the input of a tick. `closed` is the last tick that is closed.
    pub(super) fn take(&mut self, tick: u32, input: &[u8], closed: u32) -> Taken {
        if self.has(tick) {
            return Taken::Again;
        }
        if tick > closed.saturating_add(AHEAD_MAX) {
            return Taken::TooFar;
        }
        self.got.acknowledge(tick);
        if tick <= closed {
            if tick > self.last.0 {
                self.last = (tick, Input::from_slice(input));
            }
            return Taken::Late;
        }
        let at = self.waiting.partition_point(|(other, _)| *other < tick);
        self.waiting.insert(at, (tick, Input::from_slice(input)));
        Taken::InTime
    }

    /// Whether the input of a tick came before, as far as that is known: of those long ago it is taken for granted.
    pub(super) fn has(&self, tick: u32) -> bool {
        self.got.acknowledges(tick) || tick.saturating_add(32) < self.got.ack
    }

    /// Closes a tick. Whether the player sent an input for it, which is then [`Seat::last`].
    pub(super) fn close(&mut self, tick: u32) -> bool {
        match self.waiting.front() {
            Some((first, _)) if *first == tick => {
                self.last = self.waiting.pop_front().unwrap_or_default();
                true
            }
            _ => false,
        }
    }

    /// The newest input that counts.
    pub(super) fn last(&self) -> &[u8] {
        &self.last.1
    }
}

/// How many ticks ahead an input may be.
const AHEAD_MAX: u32 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn seat() -> Seat {
        Seat::new(BareJid::new("a@localhost").unwrap(), Mono(0), 0)
    }

    #[test]
    fn an_input_counts_in_its_tick_and_what_is_late_is_repeated() {
        let mut seat = seat();
        assert_eq!(seat.take(2, b"two", 0), Taken::InTime);
        assert_eq!(seat.take(1, b"one", 0), Taken::InTime);
        assert_eq!(seat.take(2, b"other", 0), Taken::Again);
        assert!(seat.close(1));
        assert_eq!(seat.last(), b"one");
        assert!(seat.close(2));
        assert!(!seat.close(3));
        assert_eq!(seat.last(), b"two");
        assert_eq!(seat.take(3, b"three", 3), Taken::Late);
        assert!(!seat.close(4));
        assert_eq!(seat.last(), b"three");
        // A later one came in time before an earlier one came late.
        assert_eq!(seat.take(6, b"six", 4), Taken::InTime);
        assert!(!seat.close(5) && seat.close(6));
        assert_eq!(seat.take(5, b"five", 6), Taken::Late);
        assert_eq!(seat.last(), b"six");
    }

    #[test]
    fn what_waits_is_bounded_however_much_is_sent() {
        let mut seat = seat();
        for tick in (1..10_000).rev() {
            seat.take(tick, b"x", 0);
        }
        assert!(seat.waiting.len() <= AHEAD_MAX as usize);
        assert_eq!(seat.take(65, b"x", 0), Taken::TooFar);
    }
}
