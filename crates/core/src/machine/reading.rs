//! Reading from a connection unit by unit, until more bytes are needed or the session must wait.

use super::{Turn, light};
use crate::connection::{Frame, Noted};
use crate::error::StreamError;
use crate::event::{Entry, Kind, Leave};
use crate::model::{ConnId, SessionId};
use crate::session::{BoundSession, Closing, Resuming, Session};
use carillon_wire::stream::Condition;

impl Turn<'_> {
    /// Reads new bytes after those that were kept, unit by unit, until more are needed or the session must wait.
    #[expect(clippy::indexing_slicing, reason = "`at` counts the bytes of `input` that the reader consumed")]
    pub(super) fn read(&mut self, conn: ConnId, bytes: &[u8]) {
        let Some(mut session) = self.sessions.take(conn) else {
            return light::read(conn, bytes, self.sessions, &mut self.cx);
        };
        let kept = session.io_mut().and_then(|io| io.reader.take_rest()).map(|mut kept| {
            kept.extend_from_slice(bytes);
            kept
        });
        let input = kept.as_deref().map_or(bytes, Vec::as_slice);
        let mut at = 0;
        loop {
            if session.is_waiting() {
                break;
            }
            let trusted = session.is_trusted();
            let Some(io) = session.io_mut() else { break };
            let (frame, bytes) = match io.next_frame(&input[at..], &self.cx.shard.settings.limits, trusted) {
                Ok((Some(frame), n)) => {
                    at += n;
                    (frame, n)
                }
                Ok((None, n)) => {
                    at += n;
                    break;
                }
                Err(error) => {
                    let next = self.fail(session, &error);
                    return self.leave_at(conn, next);
                }
            };
            // STARTTLS must know whether anything follows it in the clear (CVE-2011-0411).
            let starttls = matches!(session, Session::Offered(_));
            if starttls && let Some(io) = session.io_mut() {
                io.reader.keep(&input[at..]);
            }
            match self.frame(conn, session, (frame, bytes)) {
                Some(next) => session = next,
                None => return,
            }
            if starttls && let Some(io) = session.io_mut() {
                io.reader.take_rest();
            }
            // Behind <starttls/> there is white space at most, and none of it may be taken for bytes protected by TLS.
            if matches!(session, Session::Closing(_) | Session::Securing(_)) {
                at = input.len();
            }
        }
        if let Some(io) = session.io_mut() {
            io.reader.keep(&input[at..]);
        }
        let session = self.depart(session);
        self.leave_at(conn, session);
    }

    /// What a connection is left with.
    fn leave_at(&mut self, conn: ConnId, session: Option<Session>) {
        match session {
            Some(session) => self.sessions.put(conn, session),
            None => self.sessions.leave(conn),
        }
    }

    /// Handles one frame of this length. Returns what follows; none when that is stored already, or nobody is there any more.
    fn frame(&mut self, conn: ConnId, session: Session, (frame, bytes): (Frame, usize)) -> Option<Session> {
        let next = match (session, frame) {
            (Session::Bound(mut session), Frame::Unit(unit)) => {
                let result = session.unit(*unit, bytes, &mut self.cx);
                let session = Session::Bound(session);
                match result {
                    Ok(()) => session,
                    Err(error) => return self.fail(session, &error),
                }
            }
            (Session::Bound(mut session), Frame::Close) => match session.leave(&mut self.cx) {
                true => return self.close_politely(session, Leave::Closed),
                false => Session::Bound(session),
            },
            (Session::Bound(session), Frame::Error) => {
                return self.close_politely(session, Leave::ClientError);
            }
            (session @ Session::Bound(_), Frame::Header(_)) => {
                let error = StreamError::new(Condition::NotWellFormed, "a stream header inside a stream");
                return self.fail(session, &error);
            }
            (session, Frame::Unit(unit)) => session.unit(*unit, &mut self.cx),
            (session, Frame::Header(header)) => session.header(&header, &mut self.cx),
            // RFC 6120 §4.9.1.1: an error of the peer's is not answered with another.
            (session, Frame::Close | Frame::Error) => session.close(&mut self.cx),
        };
        match self.claimed(next) {
            Session::Loaded(loaded) => {
                self.admit(*loaded);
                self.sessions.take(conn)
            }
            Session::Resuming(resuming) => self.try_resuming(conn, *resuming),
            next => Some(next),
        }
    }

    /// The session that a client resumes, or the one that it binds because there is none.
    fn try_resuming(&mut self, conn: ConnId, resuming: Resuming) -> Option<Session> {
        match self.resume(resuming)? {
            Session::Loaded(loaded) => {
                self.admit(*loaded);
                self.sessions.take(conn)
            }
            next => Some(next),
        }
    }

    /// Stores a session, and admits it to its account when it was just bound.
    pub(super) fn settle(&mut self, conn: ConnId, session: Session) {
        match self.claimed(session) {
            Session::Loaded(loaded) => self.admit(*loaded),
            Session::Resuming(resuming) => {
                let next = self.try_resuming(conn, *resuming);
                self.leave_at(conn, next);
            }
            session => {
                let session = self.depart(session);
                self.leave_at(conn, session);
            }
        }
    }

    /// Moves a session to its home, if that is elsewhere.
    fn depart(&mut self, session: Session) -> Option<Session> {
        match session {
            Session::Claimed(claimed) => self.seek_home(claimed),
            session => Some(session),
        }
    }

    /// Ends a stream with an error, in whatever state it is.
    fn fail(&mut self, session: Session, error: &StreamError) -> Option<Session> {
        match session {
            // The client may be gone, and come back.
            Session::Bound(session) if error.condition == Condition::ConnectionTimeout => {
                let io = self.lose(session, Leave::Error(error.condition))?;
                Some(Closing::with_error(io, error, &mut self.cx))
            }
            Session::Bound(session) => {
                let io = self.part(session, Leave::Error(error.condition))?;
                Some(Closing::with_error(io, error, &mut self.cx))
            }
            other => Some(other.fail(error, &mut self.cx)),
        }
    }

    /// Ends a session, and its stream with an error.
    pub(super) fn end(&mut self, id: SessionId, error: &StreamError) {
        let Some(session) = self.sessions.take_bound(id) else { return };
        let conn = session.conn();
        let next = self.fail(Session::Bound(session), error);
        if let Some(conn) = conn {
            self.leave_at(conn, next);
        }
    }

    /// Ends what is at a connection with an error.
    pub(super) fn end_connection(&mut self, conn: ConnId, error: &StreamError) {
        if let Some(session) = self.sessions.take(conn) {
            let next = self.fail(session, error);
            self.leave_at(conn, next);
        }
    }

    /// It is known how much of what a session was sent has arrived. If the client closed its stream, the session ends now.
    pub(super) fn unacked(&mut self, conn: ConnId, bytes: u64, sent: u32) {
        let Some(session) = self.sessions.bound_at(conn) else { return };
        session.unacked(bytes, sent, &mut self.cx);
        if session.is_leaving()
            && let Some(Session::Bound(session)) = self.sessions.take(conn)
        {
            let next = self.close_politely(session, Leave::Closed);
            self.leave_at(conn, next);
        }
    }

    fn close_politely(&mut self, session: Box<BoundSession>, leave: Leave) -> Option<Session> {
        let io = self.part(session, leave)?;
        Some(Closing::politely(io, &mut self.cx))
    }

    /// A connection is gone. What had arrived need not be given again.
    pub(super) fn closed(&mut self, conn: ConnId, unacked: u64) {
        if self.sessions.is_light(conn) {
            self.cx.shard.counters.connections -= 1;
            light::closed(conn, self.sessions, &mut self.cx);
        }
        if let Some(session) = self.sessions.take(conn) {
            self.cx.shard.counters.connections -= 1;
            if let Session::Bound(mut session) = session {
                session.lost(unacked, &mut self.cx);
                self.lose(session, Leave::Lost);
            } else if let Some(io) = session.io().filter(|io| io.noted == Noted::Begun) {
                let (jid, address, reason) = (None, io.address, Leave::Unbound);
                let entry = || Entry::Disconnect { jid, address, reason, after_ms: 0 };
                self.cx.out.journal.note(self.cx.now.unix, Kind::Disconnect, entry);
            }
        } else {
            self.matches.closed(conn, &mut self.cx);
        }
        self.sessions.leave(conn);
    }
}
