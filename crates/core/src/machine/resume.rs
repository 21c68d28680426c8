//! Parking a session whose connection is lost, and giving it another one.

use super::Turn;
use crate::connection::{Io, Noted};
use crate::error::StreamError;
use crate::event::{Entry, Kind, Leave};
use crate::model::SessionId;
use crate::session::auth::{Authenticated, Binding, Success};
use crate::session::{BoundSession, Closing, Resuming, Session};
use carillon_wire::stream::Condition;

impl Turn<'_> {
    /// The connection of a session is lost, and its client with it for now. What is left is the connection.
    pub(super) fn lose(&mut self, session: Box<BoundSession>, leave: Leave) -> Option<Io> {
        let id = session.id;
        let io = self.cut(session, leave);
        if let Some(handler) = self.cx.pipeline.resumption {
            (handler.away)(id, self.sessions, &mut self.cx);
        }
        io
    }

    /// A session loses its connection: it is parked if its client may resume it, else it ends.
    fn cut(&mut self, session: Box<BoundSession>, leave: Leave) -> Option<Io> {
        if session.is_parked() || !session.is_resumable(&self.cx) {
            return self.part(session, leave);
        }
        self.park(session, leave)
    }

    /// Parks a session. Its connection, if it has one.
    pub(super) fn park(&mut self, mut session: Box<BoundSession>, leave: Leave) -> Option<Io> {
        let Some(mut io) = session.io.take() else {
            self.sessions.put_bound(session);
            return None;
        };
        self.cx.out.journal.note(self.cx.now.unix, Kind::Disconnect, || Entry::Disconnect {
            jid: Some(session.jid.as_str()),
            address: io.address,
            reason: Leave::Parked,
            after_ms: self.cx.now.unix.0.saturating_sub(session.since.0),
        });
        io.noted = Noted::Ended;
        self.cx.shard.counters.parked += 1;
        session.park(&io, &mut self.cx);
        if session.is_tapped {
            session.tap_session("parked", leave.as_str(), &mut self.cx);
        }
        self.sessions.put_bound(session);
        Some(io)
    }

    /// A client wants to resume a session.
    pub(super) fn resume(&mut self, resuming: Resuming) -> Option<Session> {
        let Resuming { io, authenticated, resume, success, until } = resuming;
        let handler = self.cx.pipeline.resumption?;
        if authenticated.is_outdated(&self.cx) {
            return Some(self.unresumed(io, authenticated, success));
        }
        let sessions = self.sessions.bound_of(authenticated.jid().as_str());
        let is_it = |session: &&&BoundSession| {
            session.resumption.as_ref().is_some_and(|resumption| resumption.key == resume.key)
        };
        let Some(session) = sessions.iter().find(is_it) else {
            drop(sessions);
            return Some(self.missed(Resuming { io, authenticated, resume, success, until }));
        };
        if let Err(error) = (handler.check)(session, resume.h) {
            let (id, resumption) = (session.id, session.resumption.as_ref());
            let is_adopted = resumption.is_some_and(|resumption| resumption.is_adopted);
            drop(sessions);
            if is_adopted {
                // The engine of the log has lost the end of it: what the session was sent is not known.
                self.end(id, &error);
                return Some(self.unresumed(io, authenticated, success));
            }
            return Some(Closing::with_error(io, &error, &mut self.cx));
        }
        let id = session.id;
        drop(sessions);
        self.detach(id);
        let Some(mut session) = self.sessions.take_bound(id) else {
            return Some(self.unresumed(io, authenticated, success));
        };
        self.cx.shard.counters.parked -= 1;
        self.cx.shard.counters.resumed += 1;
        self.cx.out.journal.note(self.cx.now.unix, Kind::Resume, || Entry::Resume {
            jid: session.jid.as_str(),
            address: io.address,
            transport: io.transport(),
        });
        if session.is_tapped {
            session.tap_session("resumed", io.transport().word(), &mut self.cx);
        }
        session.resume(io, success, resume.h, handler, &mut self.cx);
        Some(Session::Bound(session))
    }

    /// A session that is resumed while it has a connection loses that.
    fn detach(&mut self, id: SessionId) {
        let Some(session) = self.sessions.take_bound(id) else { return };
        let Some(conn) = session.conn() else { return self.sessions.put_bound(session) };
        if let Some(io) = self.cut(session, Leave::Error(Condition::Conflict)) {
            let error =
                StreamError::new(Condition::Conflict, "the session was resumed over another connection");
            let closing = Closing::with_error(io, &error, &mut self.cx);
            self.sessions.put(conn, closing);
        }
    }

    /// There is no such session: the client is told, and binds a resource.
    pub(super) fn unresumed(
        &mut self,
        io: Io,
        authenticated: Authenticated,
        success: Option<Success>,
    ) -> Session {
        let Some(handler) = self.cx.pipeline.resumption else { return Binding::again(io, authenticated) };
        let failed = (handler.failed)();
        match success {
            Some(success) => success.with(failed).go_on(io, authenticated, &mut self.cx),
            None => {
                io.send_element(&failed, &mut self.cx);
                Binding::again(io, authenticated)
            }
        }
    }
}
