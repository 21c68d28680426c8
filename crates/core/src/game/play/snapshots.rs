//! States of the game that clients of a lockstep match send, for those who come late.
//!
//! Every so many ticks all clients are asked for the hash of the state after one, and one of them for the state. It is kept if its hash is
//! what most say. Who lacks more than that is given it, and the ticks since.

use super::{Match, Sink, send};
use crate::game::seat::Seat;
use carillon_wire::frame::game::{ServerFrame, state_hash};

/// The state that was sent last, and the one that is on its way.
#[derive(Debug, Default)]
pub(super) struct Snapshots {
    kept: Option<(u32, Vec<u8>)>,
    asked: Option<Asked>,
}

#[derive(Debug)]
struct Asked {
    tick: u32,
    seat: u8,
    bytes: Vec<u8>,
    is_whole: bool,
}

impl Snapshots {
    /// The state that was sent last, and the tick after which it is.
    pub(super) fn kept(&self) -> Option<&(u32, Vec<u8>)> {
        self.kept.as_ref()
    }
}

impl Match {
    /// A tick was given to all. If it is time for that, they are asked for the state after it.
    pub(super) fn ask_for_snapshot(&mut self, sink: &mut Sink<'_>) {
        let (tick, every) = (self.log.last(), u32::from(self.rules.snapshot_ticks));
        if every == 0 || !tick.is_multiple_of(every) {
            return;
        }
        let present: smallvec::SmallVec<[u8; 8]> = (0..self.seats.len() as u8)
            .filter(|at| {
                let seat = self.seats.get_mut(usize::from(*at));
                // Who catches up is not there yet.
                seat.and_then(Seat::line).is_some_and(|line| line.sent == tick)
            })
            .collect();
        // Another one each time: a client that does not answer is not asked again at once.
        let turn = (tick / every) as usize % present.len().max(1);
        let Some(&provider) = present.get(turn) else { return };
        self.snapshots.asked = Some(Asked { tick, seat: provider, bytes: Vec::new(), is_whole: false });
        for at in present {
            if let Some(conn) = self.seats.get(usize::from(at)).and_then(Seat::conn) {
                send(sink, conn, &ServerFrame::Wanted { tick, whole: at == provider });
            }
        }
    }

    /// Whether a part of the state after a tick is wanted from a seat.
    pub(in crate::game) fn wants(&self, at: u8, tick: u32, offset: u32, total: u32) -> bool {
        let asked = self.snapshots.asked.as_ref();
        asked.is_some_and(|asked| {
            let is_next = asked.bytes.len() == offset as usize && !asked.is_whole;
            (asked.seat, asked.tick) == (at, tick) && is_next && total > 0
        })
    }

    /// A part of the state came that is wanted.
    pub(in crate::game) fn take_part(&mut self, total: u32, part: &[u8], sink: &mut Sink<'_>) {
        let Some(asked) = &mut self.snapshots.asked else { return };
        asked.bytes.extend_from_slice(part);
        asked.is_whole = asked.bytes.len() >= total as usize;
        self.keep_snapshot(sink);
    }

    /// Keeps the state that came, once most say the hash that it has.
    pub(super) fn keep_snapshot(&mut self, sink: &mut Sink<'_>) {
        let Some(asked) = self.snapshots.asked.take_if(|asked| asked.is_whole) else { return };
        let present = self.seats.iter().filter(|seat| seat.conn().is_some()).count();
        match self.hashes.agreed(asked.tick, present) {
            Some(hash) if hash == state_hash(&asked.bytes) => {
                sink.figures.snapshots_taken += 1;
                self.snapshots.kept = Some((asked.tick, asked.bytes));
            }
            Some(_) => sink.figures.snapshots_refused += 1,
            // Others have not spoken.
            None => self.snapshots.asked = Some(asked),
        }
    }

    /// The state that is given to who has everything up to a tick: if the ticks since are forgotten, or are more than it.
    pub(super) fn snapshot_for(&self, have: u32) -> Option<(u32, &[u8])> {
        let (tick, state) = self.snapshots.kept.as_ref()?;
        let is_shorter = || self.log.bytes_between(have, *tick) > state.len();
        let serves = *tick > have && *tick >= self.log.forgotten();
        (serves && (have < self.log.forgotten() || is_shorter())).then_some((*tick, state))
    }
}

#[cfg(test)]
#[path = "snapshots_tests.rs"]
mod tests;
