//! Ticks that a module decides.

use super::{Match, Sink, send};
use crate::game::logic::{Decided, Meter, Moment};
use crate::game::modules::{TurnFuel, Version};
use crate::game::seat::Seat;
use crate::ports::modules::{MatchVerdict, ModuleHash, SeatInput};
use carillon_wire::frame::game::{EndReason, Header, ServerFrame};

impl Match {
    /// How much its next tick may take of the fuel of a turn.
    pub(in crate::game) fn fuel_wanted(&self) -> u64 {
        self.logic.as_ref().map_or(0, |logic| logic.fuel_wanted())
    }

    /// The name of the module that decides it, if one does.
    pub(in crate::game) fn module(&self) -> Option<&str> {
        self.logic.as_ref().map(|logic| &*logic.version().name)
    }

    /// The version of it, with its hash.
    pub(super) fn version(&self) -> Option<(Box<str>, ModuleHash)> {
        let version = self.logic.as_ref()?.version();
        Some(((&*version.name).into(), version.hash))
    }

    /// Another version of its module decides it from the next tick on.
    pub(in crate::game) fn change_to(&mut self, version: &Version) {
        if let Some(logic) = &mut self.logic {
            logic.change_to(version);
        }
    }

    /// Has the module decide the tick that was closed, in which the seats of `given` have an input. Says why the match is over, if it is.
    pub(super) fn decide(
        &mut self,
        given: u64,
        sink: &mut Sink<'_>,
        turn: &mut TurnFuel,
    ) -> Option<EndReason> {
        let moment = Moment {
            id: self.id,
            tick: self.log.last(),
            seats: self.seats.len() as u8,
            tick_rate: self.rules.tick_rate,
            seed: self.seed,
        };
        sink.figures.ticks += 1;
        let logic = self.logic.as_mut()?;
        let mut inputs = logic.take_inputs();
        for (at, seat) in self.seats.iter().enumerate() {
            let input = match (seat.has_left(), given & 1 << at != 0) {
                (true, _) => SeatInput::Left,
                (false, true) => SeatInput::Given(seat.last()),
                (false, false) if seat.has_sent() => SeatInput::Repeated(seat.last()),
                (false, false) => SeatInput::None,
            };
            input.put(&mut inputs);
        }
        let is_needed =
            self.seats.iter_mut().any(|seat| seat.line().is_some_and(|line| line.awaits_snapshot));
        let Sink { now, figures, modules, .. } = sink;
        let mut meter = Meter { now: *now, turn, figures, modules };
        match logic.tick(moment, inputs, is_needed, &mut meter) {
            Decided::Done(verdict, state) => {
                if self.is_watched() {
                    self.note_said(&verdict.update, state.as_deref(), sink.log_bytes_max);
                }
                self.give(moment.tick, &verdict, state.as_deref(), sink);
                verdict.is_over.then(|| {
                    self.decided = Some(verdict.outcome);
                    EndReason::Finished
                })
            }
            Decided::Restored => {
                if self.is_watched() {
                    self.note_said(b"", None, sink.log_bytes_max);
                    self.watched.lack_state = true;
                }
                // What they have is of a state that is no more.
                self.seats.iter_mut().filter_map(Seat::line).for_each(|line| line.awaits_snapshot = true);
                None
            }
            Decided::Ended => Some(EndReason::Module),
        }
    }

    /// Gives a tick to all who are there: the whole state to those who lack what was before.
    fn give(&mut self, tick: u32, verdict: &MatchVerdict, state: Option<&[u8]>, sink: &mut Sink<'_>) {
        for (at, seat) in self.seats.iter_mut().enumerate() {
            let header = Header { tick, ..seat.got };
            let Some(line) = seat.line() else { continue };
            line.sent = tick;
            let conn = line.conn;
            match state.filter(|_| line.awaits_snapshot) {
                Some(snapshot) => {
                    line.awaits_snapshot = false;
                    sink.figures.snapshots += 1;
                    send(sink, conn, &ServerFrame::Snapshot { header, snapshot });
                }
                None => {
                    let own = verdict.own.iter().find(|(seat, _)| usize::from(*seat) == at);
                    let update = own.map_or(&verdict.update, |(_, own)| own);
                    send(sink, conn, &ServerFrame::Update { header, update });
                }
            }
            sink.figures.frames += 1;
        }
    }
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
