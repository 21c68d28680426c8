//! A seat of a match: who has it, whether its player is there, and what the player sent.

use super::datagrams::Unsure;
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
    /// The newest input that was in a tick, and the tick that it was sent for.
    last: (u32, Input),
    /// A newer one, whose tick was closed without it: it is in the next tick that has no input of its own.
    late: Option<(u32, Input)>,
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
    /// It lacks what was before, and is given the state of the game after the next tick. In authoritative matches only.
    pub(super) awaits_snapshot: bool,
    /// What is known of ticks that are sent in datagrams; none for a connection without.
    pub(super) datagrams: Option<Unsure>,
}

/// What became of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// It waits for its tick.
    InTime,
    /// Its tick is closed: it counts in the next one.
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
            late: None,
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
            let newest = self.late.as_ref().map_or(self.last.0, |(late, _)| *late);
            if tick > newest {
                self.late = Some((tick, Input::from_slice(input)));
            }
            return Taken::Late;
        }
        let at = self.waiting.partition_point(|(other, _)| *other < tick);
        self.waiting.insert(at, (tick, Input::from_slice(input)));
        Taken::InTime
    }

    /// What its client says that it has of the ticks. `last` is the last tick.
    pub(super) fn acknowledged(&mut self, header: Header, last: u32) {
        if let Some(unsure) = self.line().and_then(|line| line.datagrams.as_mut()) {
            unsure.acknowledge(header, last);
        }
    }

    /// Whether the input of a tick came before, as far as that is known: of those long ago it is taken for granted.
    pub(super) fn has(&self, tick: u32) -> bool {
        self.got.acknowledges(tick) || tick.saturating_add(32) < self.got.ack
    }

    /// Closes a tick. Whether an input of the player is in it, which is then [`Seat::last`]: the one for it, or one that came late. All see what
    /// counts, so a late input cannot count without being in a tick.
    pub(super) fn close(&mut self, tick: u32) -> bool {
        let late = self.late.take();
        let own = self.waiting.pop_front_if(|(first, _)| *first == tick);
        match own.or(late) {
            Some(input) => {
                self.last = input;
                true
            }
            None => false,
        }
    }

    /// The newest input that was in a tick.
    pub(super) fn last(&self) -> &[u8] {
        &self.last.1
    }

    /// Whether an input of the player was in a tick.
    pub(super) fn has_sent(&self) -> bool {
        self.last.0 > 0
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
    fn an_input_counts_in_its_tick_and_what_is_late_in_the_next() {
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
        assert_eq!(seat.last(), b"two");
        assert!(seat.close(4));
        assert_eq!(seat.last(), b"three");
        // A later one came in time before an earlier one came late.
        assert_eq!(seat.take(6, b"six", 4), Taken::InTime);
        assert!(!seat.close(5) && seat.close(6));
        assert_eq!(seat.take(5, b"five", 6), Taken::Late);
        assert!(!seat.close(7));
        assert_eq!(seat.last(), b"six");
        // The newest of the late ones counts, but not instead of one that is in time.
        assert_eq!((seat.take(8, b"eight", 9), seat.take(7, b"seven", 9)), (Taken::Late, Taken::Late));
        assert_eq!(seat.take(10, b"ten", 9), Taken::InTime);
        assert!(seat.close(10) && !seat.close(11));
        assert_eq!(seat.last(), b"ten");
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
