//! What the store holds for a session: whether anything is still to be read of it, a page at a time, and what was given of it and
//! is not acknowledged. Counting alone, without a connection or a clock: [`crate::session::backlog`] asks and writes.

mod flight;

pub use flight::Flight;

use crate::form::{Form, Malformed, Reader, Writer};

/// How far a session is with what the store holds for it: one for each feature that has the store hold something. `E` is what is
/// known of an entry until it is acknowledged.
#[derive(Debug)]
pub struct Pager<E> {
    place: Place,
    /// Pages in a row that the store could not give.
    failures: u8,
    /// Whether the timer runs that finds out how much has arrived.
    timer_runs: bool,
    /// Given and not acknowledged.
    flight: Flight<E>,
}

crate::form! {
    struct Pager<E> { place, failures, timer_runs, flight }
        if Pager::is_sound, "a pager was acknowledged more than it gave"
}

/// How far a session is with the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The session was given all there is.
    CaughtUp,
    /// The store may hold something that the session was not given.
    Behind,
    /// A page is on its way. `again`: the store may hold something that is not in it.
    Asked { again: bool },
}

// A page that is on its way does not come to another process, which has to ask for it again.
impl Form for Place {
    fn write(&self, out: &mut Writer) {
        match self {
            Place::CaughtUp => out.tag(0),
            Place::Behind | Place::Asked { .. } => out.tag(1),
        }
    }

    fn read(input: &mut Reader<'_>) -> Result<Place, Malformed> {
        match input.tag()? {
            0 => Ok(Place::CaughtUp),
            1 => Ok(Place::Behind),
            _ => Err(input.unknown_tag("no place of a pager has this number")),
        }
    }
}

/// What follows for a session that can be given more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// There is nothing to ask for, or the session does not take it.
    Nothing,
    /// A page is on its way already.
    Waits,
    /// The next page is to be asked for.
    Ask,
}

impl<E> Default for Pager<E> {
    fn default() -> Pager<E> {
        Pager { place: Place::CaughtUp, failures: 0, timer_runs: false, flight: Flight::default() }
    }
}

impl<E> Pager<E> {
    /// The store may hold something that the session was not given.
    pub fn look_again(&mut self) {
        self.place = match self.place {
            Place::CaughtUp | Place::Behind => Place::Behind,
            Place::Asked { .. } => Place::Asked { again: true },
        };
    }

    /// Whether older entries are still to come from the store, so that a newer one must wait behind them there.
    pub fn is_behind(&self) -> bool {
        self.place != Place::CaughtUp
    }

    /// Whether there is nothing to know: the pager can be dropped.
    pub fn is_idle(&self) -> bool {
        !self.is_behind() && self.flight.is_empty() && !self.timer_runs
    }

    /// The session can be given more. `takes`: whether it takes what this pager is for.
    pub fn next(&mut self, takes: bool) -> Next {
        match self.place {
            Place::Asked { .. } => Next::Waits,
            Place::Behind if takes => {
                self.place = Place::Asked { again: false };
                Next::Ask
            }
            Place::Behind | Place::CaughtUp => Next::Nothing,
        }
    }

    /// The page that was asked for came. `more`: whether the store has more behind it, or the session does not take it now.
    pub fn came(&mut self, more: bool) {
        let again = matches!(self.place, Place::Asked { again: true });
        self.place = if again || more { Place::Behind } else { Place::CaughtUp };
        self.failures = 0;
    }

    /// The store could not give the page: it is to be asked again after this many milliseconds.
    pub fn failed(&mut self) -> u64 {
        let pause = PAUSE_MS << self.failures;
        self.failures = (self.failures + 1).min(DOUBLINGS_MAX);
        self.place = Place::Behind;
        pause
    }

    /// An entry was given to the session, which has been sent so many bytes with it ([`Flight::gave`]).
    pub fn gave(&mut self, entry: E, sent: u32) {
        self.flight.gave(entry, sent);
    }

    /// Whether as much is in flight as may be for a client without stream management: nothing else bounds how fast it is given more
    /// than it acknowledges.
    pub fn is_full(&self) -> bool {
        self.flight.bytes() >= IN_FLIGHT_BYTES_MAX
    }

    /// Given and not acknowledged, oldest first.
    pub fn in_flight(&self) -> impl ExactSizeIterator<Item = &E> {
        self.flight.entries()
    }

    /// Takes out the entry that was acknowledged, if it is in flight.
    pub fn acknowledged(&mut self, is_it: impl Fn(&E) -> bool) -> Option<E> {
        self.flight.take(is_it)
    }

    /// Takes out the entries that are to be given again.
    pub fn take_back(&mut self, is_it: impl Fn(&E) -> bool) -> Vec<E> {
        self.flight.take_all(is_it)
    }

    /// What has arrived at the client's side ([`Flight::arrived`]).
    pub fn arrived(&self, unacked: u64, sent: u32) -> impl Iterator<Item = &E> {
        self.flight.arrived(unacked, sent)
    }

    /// Whether the timer that finds out how much has arrived is to be set: it does not run yet, and runs from now on.
    pub fn begin_timer(&mut self) -> bool {
        !std::mem::replace(&mut self.timer_runs, true)
    }

    /// That timer fired.
    pub fn timer_fired(&mut self) {
        self.timer_runs = false;
    }

    /// Whether the counts fit each other, as they always do here: those that were read may not.
    fn is_sound(&self) -> bool {
        self.failures <= DOUBLINGS_MAX && self.flight.is_sound()
    }

    /// The same in another process, which knows nothing of this one's connections.
    #[cfg(test)]
    pub(crate) fn elsewhere(&mut self) {
        self.flight.elsewhere();
    }
}

/// A turn of writing what waits. It ends with the entry that passes the bound.
#[derive(Clone, Copy, Debug)]
pub struct PageTurn {
    began: usize,
}

impl PageTurn {
    /// Begins a turn; the buffer that is written into has this many bytes.
    pub fn begin(buffered: usize) -> PageTurn {
        PageTurn { began: buffered }
    }

    /// Whether as much as one turn may write is written.
    pub fn is_over(self, buffered: usize) -> bool {
        buffered - self.began >= TURN_BYTES_MAX
    }
}

/// Bytes written before the socket is waited for: the smallest `limits.out_queue_bytes`. The stanza that passes this bound is the
/// last of its turn: it may be of any size, because an empty queue takes whatever there is at once.
pub const TURN_BYTES_MAX: usize = 16 * 1024;
/// Bytes of what is known of the entries in flight of a session without stream management. A page may exceed it.
pub(crate) const IN_FLIGHT_BYTES_MAX: usize = 128 * 1024;
/// The first pause before a page is asked for again that the store could not give; it doubles each time.
const PAUSE_MS: u64 = 1000;
/// The doublings: 64 seconds.
const DOUBLINGS_MAX: u8 = 6;

#[cfg(test)]
mod tests;
