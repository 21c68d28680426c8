//! Seats whose ticks are sent in datagrams, which may be lost.

use super::{Match, Sink};
use crate::game::datagrams::{Unsure, WINDOW_MAX, stream_ticks};
use crate::game::seat::{Line, Seat};
use carillon_wire::frame::game::Mode;

impl Match {
    /// Sends ticks to a seat in datagrams from now on: its connection has them. What it was given before came by its stream.
    pub(in crate::game) fn use_datagrams(&mut self, seat: u8) {
        if self.rules.mode == Mode::Authoritative {
            // What a module says of a tick is not kept, so it cannot be sent again: it goes by the stream.
            return;
        }
        if let Some(line) = self.seats.get_mut(usize::from(seat)).and_then(Seat::line) {
            let mut unsure = Unsure::default();
            unsure.is_sure_to(line.sent);
            line.datagrams = Some(unsure);
        }
    }

    /// In how many datagrams a tick is sent at most before it is sent by the stream.
    pub(in crate::game) fn datagram_window(&self) -> u32 {
        match self.rules.mode {
            Mode::Relay => (4 * self.seats.len() as u32).min(WINDOW_MAX),
            _ => 4,
        }
    }

    /// Sends by the streams what was sent in datagrams and is not acknowledged: no datagram follows soon.
    pub(in crate::game) fn settle(&mut self, sink: &mut Sink<'_>) {
        let log = &self.log;
        for seat in &mut self.seats {
            let got = seat.got;
            let Some(Line { conn, sent, datagrams: Some(unsure), .. }) = seat.line() else { continue };
            stream_ticks(sink, *conn, got, unsure.take_old(*sent, 0), log);
        }
    }

    /// Whether an input may have begun the wait after which ticks are sent by the streams: where ticks have no clock.
    pub(in crate::game) fn settles_by_itself(&self) -> bool {
        self.rules.mode == Mode::Relay && self.settle_at.is_some()
    }
}
