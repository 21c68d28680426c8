//! Draining a shard: its sessions end in slices, first those that cost least to come back, and each is told why.

use super::{Turn, light};
use crate::command::Reach;
use crate::error::StreamError;
use crate::event::Leave;
use crate::model::{ConnId, DrainSlice, Farewell, SessionId};
use crate::session::{BoundSession, Closing, Session};
use std::sync::Arc;

/// Somebody who is still there.
#[derive(Clone, Copy)]
enum Present {
    Light(ConnId),
    /// A client whose session is not bound.
    Unbound(ConnId),
    Session(SessionId),
}

/// What it costs to end somebody, for them and for the host that they come back to: the cheapest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Cost {
    /// A login that is not complete.
    Unbound,
    /// A parked session, or a light one: nobody uses it, or it has no state but its topics.
    Little,
    /// A session that nobody uses now, with nothing under way.
    Idle,
    /// All others.
    Busy,
}

impl Turn<'_> {
    /// Ends everybody, at once.
    pub(super) fn drain(&mut self) {
        self.end_slice(&DrainSlice { farewell: Arc::default(), slices_left: 0, slices: 1, is_last: true });
    }

    /// Ends as many that no more are left than this slice leaves. From the first slice on nobody new is taken.
    pub(super) fn end_slice(&mut self, slice: &DrainSlice) {
        let mut present = self.present(&slice.farewell);
        let of = self.cx.shard.drain(Arc::clone(&slice.farewell), present.len());
        // Rounded up: none ends before its time.
        let left = (of as u64 * u64::from(slice.slices_left)).div_ceil(u64::from(slice.slices.max(1)));
        let ends = present.len().saturating_sub(left as usize);
        if 0 < ends && ends < present.len() {
            present.select_nth_unstable_by_key(ends - 1, |(cost, _)| *cost);
        }
        for (_, present) in present.into_iter().take(ends) {
            self.dismiss(present, &slice.farewell, slice.is_last);
        }
        if slice.slices_left == 0 {
            // They had the time of the drain to come to their end.
            self.matches.end_all(&mut self.cx);
        }
    }

    /// The node goes on: whoever comes is taken.
    pub(super) fn stop_draining(&mut self) {
        self.cx.shard.stop_draining();
    }

    /// All who have yet to be ended, with what that costs.
    fn present(&self, farewell: &Farewell) -> Vec<(Cost, Present)> {
        let connections = self.sessions.conns().filter_map(|conn| {
            match self.sessions.session_at(conn) {
                _ if self.sessions.is_closing(conn) => None,
                _ if self.sessions.is_light(conn) => Some((Cost::Little, Present::Light(conn))),
                None => Some((Cost::Unbound, Present::Unbound(conn))),
                // It follows below.
                Some(_) => None,
            }
        });
        let stays_parked = matches!(farewell, Farewell::Restart { .. });
        let sessions = self.sessions.all_bound().filter(|session| !(stays_parked && session.is_parked()));
        connections.chain(sessions.map(|session| (cost(session), Present::Session(session.id)))).collect()
    }

    /// Ends somebody. `is_last`: whether there is no later slice.
    fn dismiss(&mut self, present: Present, farewell: &Farewell, is_last: bool) {
        match present {
            Present::Light(conn) => light::end(conn, light::Ended::Shutdown, self.sessions, &mut self.cx),
            Present::Unbound(conn) => {
                let error = self.error_of(farewell);
                self.end_connection(conn, &error);
            }
            Present::Session(id) => {
                let error = self.error_of(farewell);
                let is_parked = matches!(farewell, Farewell::Restart { .. });
                if !is_parked && self.offer(id, &error, is_last) {
                    return;
                }
                self.tell_shutdown(id, farewell);
                match self.sessions.take_bound(id) {
                    Some(session) if is_parked => self.park_and_close(session, &error),
                    Some(session) => {
                        self.sessions.put_bound(session);
                        self.end(id, &error);
                    }
                    None => {}
                }
            }
        }
    }

    /// Tells the client of a session that ends with this node what it is told by features, before its stream is closed. One that goes on, here or elsewhere,
    /// is told nothing.
    fn tell_shutdown(&mut self, id: SessionId, farewell: &Farewell) {
        let Some(session) = self.sessions.bound(id).filter(|session| !session.is_parked()) else { return };
        let goes_on = match farewell {
            Farewell::Shutdown => false,
            Farewell::Restart { .. } => session.is_resumable(&self.cx),
            Farewell::SeeOtherHost(_) => true,
        };
        if !goes_on {
            for hook in &self.cx.pipeline.shutdown {
                hook(session, &mut self.cx);
            }
        }
    }

    /// Parks a session if it can be, and closes its stream.
    fn park_and_close(&mut self, session: Box<BoundSession>, error: &StreamError) {
        let Some(conn) = session.conn() else { return self.sessions.put_bound(session) };
        let next: Option<Session> = self
            .lose(session, Leave::Error(error.condition))
            .map(|io| Closing::with_error(io, error, &mut self.cx));
        match next {
            Some(next) => self.sessions.put(conn, next),
            None => self.sessions.leave(conn),
        }
    }

    /// What somebody is told. Each is told another time to come back.
    fn error_of(&mut self, farewell: &Farewell) -> StreamError {
        let random = &mut self.cx.shard.random;
        crate::session::farewell(farewell, |most| (random.number() % (u64::from(most) + 1)) as u32)
    }
}

fn cost(session: &BoundSession) -> Cost {
    if session.is_parked() {
        Cost::Little
    } else if session.reach() < Reach::Active
        && session.unacknowledged.is_none_or(|count| count == 0)
        && !session.is_waiting()
    {
        Cost::Idle
    } else {
        Cost::Busy
    }
}
