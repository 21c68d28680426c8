//! Those who watch a match, some time behind it.
//!
//! They are given ticks by a walk: a slice of them at a time, and those who are equally far are sent the same bytes. They see what is given to
//! all seats, and nothing that is for one.

use super::{Match, SLICE_BYTES, Sink, send};
use crate::Effect;
use crate::game::log::TickLog;
use crate::game::seat::Line;
use crate::game::token::{self, SPECTATOR, SeatClaim};
use crate::model::{ConnId, Mono, UnixMs};
use carillon_wire::frame::game::{ErrorCode, Header, ServerFrame, framed};
use std::collections::VecDeque;
use std::ops::Range;

/// So many are given ticks at a time; others come a millisecond later.
const SLICE: usize = 128;

/// The spectators of a match.
#[derive(Debug, Default)]
pub(super) struct Spectators {
    list: Vec<Line>,
    /// The next of the walk, and how many it has before it.
    next: usize,
    left: usize,
    at: Mono,
    /// Where a module decides: what all were told of each tick, or the state after it, by its first byte.
    said: TickLog,
    /// And states, for those who come: those that are shown by now or later, and one before them.
    states: VecDeque<(u32, Vec<u8>)>,
    /// What was said has a gap: the next is a state.
    pub(super) lack_state: bool,
}

impl Spectators {
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }
}

const UPDATE: u8 = 0;
const STATE: u8 = 1;

/// Frames that were written for one spectator: those behind a tick, and where they are.
type Written = Option<(u32, u32, Range<usize>)>;

impl Match {
    /// Whether it may be watched.
    pub(super) fn is_watched(&self) -> bool {
        self.rules.spectators > 0
    }

    /// The right to watch it, for as long as one to take a seat.
    pub(in crate::game) fn spectator_token(&self, now: UnixMs) -> Option<(Box<str>, UnixMs)> {
        let expires = now.plus(self.rules.join_ms.into());
        self.is_watched()
            .then(|| (token::mint(&self.key, self.id, SPECTATOR.0, expires, SPECTATOR.1), expires))
    }

    /// When the walk goes on.
    pub(super) fn walk_due(&self) -> Option<Mono> {
        (self.watched.left > 0).then_some(self.watched.at)
    }

    /// The last tick that spectators are given.
    fn shown(&self) -> u32 {
        let delay = u64::from(self.rules.spectator_delay_ms) * u64::from(self.rules.tick_rate);
        let ticks = u32::try_from(delay.div_ceil(1000)).unwrap_or(u32::MAX);
        self.log.last().saturating_sub(ticks)
    }

    /// Somebody wants to watch.
    pub(in crate::game) fn watch(
        &mut self,
        claim: &SeatClaim,
        conn: ConnId,
        sink: &mut Sink<'_>,
    ) -> Result<(), ErrorCode> {
        if !claim.is_proved_for(&self.key, SPECTATOR.1) {
            return Err(ErrorCode::BadToken);
        }
        if claim.expires < sink.now.unix {
            return Err(ErrorCode::ExpiredToken);
        }
        if self.watched.list.len() >= usize::from(self.rules.spectators) {
            return Err(ErrorCode::NoMatch);
        }
        let shown = self.shown();
        let start = match &self.logic {
            Some(_) => self.watched.states.iter().rfind(|(tick, _)| *tick <= shown),
            None => self.snapshots.kept().filter(|(tick, _)| *tick <= shown),
        };
        let log = if self.logic.is_some() { &self.watched.said } else { &self.log };
        let sent = start.map_or(0, |(tick, _)| *tick);
        if sent < log.forgotten() {
            return Err(ErrorCode::TooOld);
        }
        let welcome = self.welcome(SPECTATOR.0);
        send(sink, conn, &ServerFrame::Welcome { header: Header::default(), welcome });
        if let Some((tick, snapshot)) = start {
            send(sink, conn, &ServerFrame::Snapshot { header: Header::at(*tick), snapshot });
        }
        self.watched.list.push(Line {
            conn,
            sent,
            catches_up: false,
            awaits_snapshot: false,
            datagrams: None,
        });
        sink.figures.spectators += 1;
        let last = self.watched.list.len() - 1;
        self.serve(last, shown, &mut None, sink);
        Ok(())
    }

    /// A spectator is gone.
    pub(in crate::game) fn unwatch(&mut self, conn: ConnId, sink: &mut Sink<'_>) {
        if let Some(at) = self.watched.list.iter().position(|line| line.conn == conn) {
            self.watched.list.swap_remove(at);
            sink.figures.spectators -= 1;
        }
    }

    /// A spectator takes what it was sent: it is given more.
    pub(in crate::game) fn feed_spectator(&mut self, conn: ConnId, sink: &mut Sink<'_>) {
        let shown = self.shown();
        if let Some(at) = self.watched.list.iter().position(|line| line.conn == conn) {
            self.serve(at, shown, &mut None, sink);
        }
    }

    /// A tick was closed: spectators are given the next that is shown.
    pub(super) fn begin_walk(&mut self, sink: &mut Sink<'_>) {
        let shown = self.shown();
        let Spectators { list, states, left, .. } = &mut self.watched;
        while states.get(1).is_some_and(|(tick, _)| *tick <= shown) {
            states.pop_front();
        }
        *left = list.len();
        self.walk(sink);
    }

    /// Gives the next slice of spectators what is shown.
    pub(super) fn walk(&mut self, sink: &mut Sink<'_>) {
        let (shown, mut written) = (self.shown(), None);
        for _ in 0..SLICE.min(self.watched.left) {
            let Spectators { list, next, left, .. } = &mut self.watched;
            *left = (*left - 1).min(list.len().saturating_sub(1));
            *next = if *next + 1 >= list.len() { 0 } else { *next + 1 };
            let at = *next;
            self.serve(at, shown, &mut written, sink);
        }
        self.watched.at = sink.now.mono.plus(1);
    }

    /// Gives a spectator the ticks that it lacks, up to a bound, until it has taken them.
    fn serve(&mut self, at: usize, shown: u32, written: &mut Written, sink: &mut Sink<'_>) {
        let Spectators { list, said, .. } = &mut self.watched;
        let log = if self.logic.is_some() { &*said } else { &self.log };
        let Some(line) = list.get_mut(at) else { return };
        if line.sent >= shown {
            line.catches_up = false;
            return;
        }
        let conn = line.conn;
        match written {
            Some((from, to, range)) if *from == line.sent => {
                sink.out.send_again(conn, range.clone());
                line.sent = *to;
            }
            _ => {
                let (from, start) = (line.sent, sink.out.bytes.len());
                let decided = self.logic.is_some();
                let mut to = from;
                sink.out.send(conn, |out| {
                    while to < shown
                        && out.len() - start <= SLICE_BYTES
                        && let Some(bytes) = log.tick(to + 1)
                    {
                        to += 1;
                        framed(out, |out| write_tick(out, to, bytes, decided));
                    }
                });
                line.sent = to;
                *written = Some((from, to, start..sink.out.bytes.len()));
            }
        }
        sink.figures.frames += 1;
        line.catches_up = line.sent < shown;
        if line.catches_up {
            sink.out.push(Effect::WatchFlush { conn });
        }
    }

    /// Notes what the module said to all of a tick, or the state after it.
    pub(super) fn note_said(&mut self, update: &[u8], state: Option<&[u8]>, log_bytes_max: usize) {
        let Spectators { said, states, lack_state, .. } = &mut self.watched;
        let gap = std::mem::take(lack_state);
        let (kind, bytes) = match state.filter(|_| gap) {
            Some(state) => (STATE, state),
            None => (UPDATE, update),
        };
        said.add(log_bytes_max, |out| {
            out.push(kind);
            out.extend_from_slice(bytes);
        });
        if let Some(state) = state {
            states.push_back((said.last(), state.to_vec()));
        }
    }

    /// The match is over: spectators are given the rest, and that it is. Their connections.
    pub(in crate::game) fn end_watching(
        &mut self,
        frame: &ServerFrame<'_>,
        sink: &mut Sink<'_>,
    ) -> Vec<ConnId> {
        let (last, mut written) = (self.log.last(), None);
        for at in 0..self.watched.list.len() {
            self.serve(at, last, &mut written, sink);
        }
        let conns: Vec<ConnId> = self.watched.list.drain(..).map(|line| line.conn).collect();
        sink.figures.spectators -= conns.len() as u64;
        super::tell(conns.iter().copied(), frame, sink);
        conns
    }
}

fn write_tick(out: &mut Vec<u8>, tick: u32, bytes: &[u8], decided: bool) {
    let header = Header::at(tick);
    match (decided, bytes.split_first()) {
        (true, Some((&STATE, snapshot))) => ServerFrame::Snapshot { header, snapshot }.write(out),
        (true, Some((_, update))) => ServerFrame::Update { header, update }.write(out),
        _ => ServerFrame::write_tick(out, header, bytes),
    }
}
