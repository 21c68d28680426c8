//! Where what comes of a match goes, and how frames are put there.

use crate::Effects;
use crate::model::{ConnId, Now};
use crate::shard::{MatchFigures, ModuleFigures};
use carillon_wire::frame::game::{Header, ServerFrame, framed};

/// Where a match puts what comes of it.
pub(super) struct Sink<'a> {
    pub(super) now: Now,
    pub(super) out: &'a mut Effects,
    pub(super) figures: &'a mut MatchFigures,
    pub(super) modules: &'a mut Vec<ModuleFigures>,
    /// Bytes of ticks that a match keeps.
    pub(super) log_bytes_max: usize,
}

pub(super) fn send(sink: &mut Sink<'_>, conn: ConnId, frame: &ServerFrame<'_>) {
    sink.out.send(conn, |out| framed(out, |out| frame.write(out)));
}

pub(super) fn send_tick(sink: &mut Sink<'_>, conn: ConnId, header: Header, inputs: &[u8]) {
    sink.out.send(conn, |out| framed(out, |out| ServerFrame::write_tick(out, header, inputs)));
    sink.figures.frames += 1;
}
