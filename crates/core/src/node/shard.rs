//! The shard's loop as a machine: one input in, effects out.

use super::hub::Work;
use super::{Counters, Cx, Hub, Letter, Pace, Sessions, Slice, Then, commands, owed};
use crate::error::StreamError;
use crate::event::{Entry, Kind, Leave};
use crate::features::{notifications, offline, pubsub, registration};
use crate::model::{ConnId, Domains, Mono, Now, ShardId, Ticket};
use crate::ports::{Answer, Derived};
use crate::session::{Closing, Frame, Live, Noted, Opening, Session};
use crate::settings::Settings;
use crate::topic::Topics;
use crate::{Effects, Input, light, route};
use carillon_wire::stream::Condition;
use std::sync::Arc;

/// One shard of the node.
pub struct Shard {
    pub(super) hub: Hub,
    pub(super) sessions: Sessions,
    pub(super) topics: Topics,
    tidy_at: Mono,
}

/// How often the shard tidies what it keeps for a while.
const TIDY_MS: u64 = 10_000;

impl Shard {
    /// A shard without sessions: number `id` of `shards`. `seed` is 32 bytes of entropy.
    pub fn new(
        id: ShardId,
        shards: u16,
        settings: Arc<Settings>,
        domains: Arc<Domains>,
        seed: [u8; 32],
    ) -> Shard {
        Shard {
            hub: Hub::new(id, shards, settings, domains, seed, Mono(0)),
            sessions: Sessions::default(),
            topics: Topics::default(),
            tidy_at: Mono(0),
        }
    }

    /// Handles one input; what is to be done is added to `effects`.
    pub fn handle(&mut self, now: Now, input: Input<'_>, effects: &mut Effects) {
        match input {
            Input::Opened(opened) => {
                self.hub.counters.connections += 1;
                let conn = opened.conn;
                let session = Opening::begin(opened, &mut self.cx(now, effects));
                self.sessions.put(conn, session);
            }
            Input::OpenedLight { conn } => {
                self.hub.counters.connections += 1;
                light::open(conn, &mut self.sessions, &mut Cx { now, hub: &mut self.hub, out: effects });
            }
            Input::Secured { conn, binding } => {
                if let Some(session) = self.sessions.take(conn) {
                    let session = match session {
                        Session::Securing(securing) => securing.secured(binding),
                        other => other,
                    };
                    self.sessions.put(conn, session);
                }
            }
            Input::Bytes { conn, bytes } => self.read(conn, bytes, now, effects),
            Input::Closed { conn } => self.closed(conn, now, effects),
            Input::Flushed { conn } => {
                let mut cx = Cx { now, hub: &mut self.hub, out: effects };
                if let Some(live) = self.sessions.live(conn) {
                    live.flushed(&mut cx);
                }
            }
            Input::Unacked { conn, bytes } => self.unacked(conn, bytes, now, effects),
            Input::Overflowed { conn } if self.sessions.is_light(conn) => {
                let mut cx = Cx { now, hub: &mut self.hub, out: effects };
                light::end(conn, light::Ended::SlowReader, &mut self.sessions, &mut cx);
            }
            Input::Overflowed { conn } => {
                let error =
                    StreamError::new(Condition::PolicyViolation, "you read too slowly; your queue is full");
                self.hub.queue.push_back(Work::End(conn, error));
            }
            Input::Arrived { conn, moving } => {
                self.hub.counters.connections += 1;
                let mut cx = self.cx(now, effects);
                let mut claimed = moving;
                claimed.arrived(conn, &mut cx);
                let session = Session::Claimed(claimed);
                self.settle(conn, session, now, effects);
                self.hub.queue.push_back(Work::Read(conn));
            }
            Input::Letter(letter) => self.letter(letter, now, effects),
            Input::Answer { ticket, answer } => self.answer(ticket, answer, now, effects),
            Input::Derived { ticket, derived } => self.derived(ticket, derived, now, effects),
            Input::Tick => self.tick(now, effects),
            Input::Drain => self.drain(now, effects),
        }
        self.work(now, effects);
    }

    /// Goes on with the fan-outs under way, for one slice of deliveries. Whether any is left: then the caller looks at
    /// other work and comes back without sleeping.
    pub fn walk(&mut self, now: Now, effects: &mut Effects) -> bool {
        let settings = self.hub.settings.clone();
        let mut left = settings.fanout.slice;
        // Of topics that few follow, several get their turn.
        while left > 0
            && let Some(slice) = self.hub.subscribers.slice(left, &settings.fanout)
        {
            left -= slice.slots().len();
            self.give(&slice, now, effects);
            self.work(now, effects);
        }
        self.hub.counters.backlog = self.hub.subscribers.backlog();
        let walks = self.hub.subscribers.is_walking();
        if !walks {
            self.hub.light.rest();
        }
        walks
    }

    /// Gives a notice to some of those who follow its topic.
    fn give(&mut self, slice: &Slice, now: Now, effects: &mut Effects) {
        let mut cx = Cx { now, hub: &mut self.hub, out: effects };
        let mut written = light::Written::default();
        let before = cx.hub.counters.deliveries;
        for &slot in slice.slots() {
            match self.sessions.live_in(slot) {
                Some(live) => pubsub::deliver(live, &slice.notice, &mut cx),
                None => light::deliver(slot, &slice.notice, &mut written, &mut self.sessions, &mut cx),
            }
        }
        let (topic, count) = (slice.notice.topic(), cx.hub.counters.deliveries - before);
        cx.hub.topic_figures.delivered(topic, count);
        if let Some(topic) = slice.caught_up {
            cx.tell_pace(topic, Pace::CaughtUp);
        }
    }

    /// When [`Input::Tick`] is due, if ever.
    pub fn next_wake(&self) -> Option<Mono> {
        let due = [self.hub.timers.next(), self.hub.owed.due(), Some(self.tidy_at)];
        due.into_iter().flatten().min()
    }

    /// The largest WebSocket message that a connection may send now, in bytes: a stranger's are kept small, and must
    /// be refused while they arrive.
    pub fn message_bytes_max(&self, conn: ConnId) -> usize {
        let limits = &self.hub.settings.limits;
        match self.sessions.peek(conn) {
            Some(session) if session.is_trusted() => limits.stanza_bytes,
            _ => limits.stanza_bytes_before_auth,
        }
    }

    /// What the shard counts.
    pub fn counters(&self) -> &Counters {
        &self.hub.counters
    }

    /// Takes the settings that may change while it runs: all but which features are on.
    pub fn reload(&mut self, settings: Arc<Settings>) {
        self.hub.settings = settings;
        self.hub.offers.forget();
    }

    pub(super) fn cx<'a>(&'a mut self, now: Now, out: &'a mut Effects) -> Cx<'a> {
        Cx { now, hub: &mut self.hub, out }
    }

    /// What the input left to do in this shard.
    fn work(&mut self, now: Now, effects: &mut Effects) {
        while let Some(work) = self.hub.queue.pop_front() {
            match work {
                Work::Letter(letter) => self.letter(letter, now, effects),
                Work::End(conn, error) => self.end(conn, &error, now, effects),
                Work::Read(conn) => self.read(conn, b"", now, effects),
                Work::LookAgain(account) => {
                    let mut cx = Cx { now, hub: &mut self.hub, out: effects };
                    notifications::look_again(&account, &mut self.sessions, &mut cx);
                }
                Work::Unacknowledged(stanza, recipients) => {
                    let mut cx = Cx { now, hub: &mut self.hub, out: effects };
                    route::unacknowledged(&stanza, recipients.as_deref(), &mut self.sessions, &mut cx);
                }
            }
        }
    }

    /// Reads what came behind what was kept, unit by unit, until more is needed or the session must wait.
    fn read(&mut self, conn: ConnId, bytes: &[u8], now: Now, effects: &mut Effects) {
        let Some(mut session) = self.sessions.take(conn) else {
            let mut cx = Cx { now, hub: &mut self.hub, out: effects };
            return light::read(conn, bytes, &mut self.sessions, &mut cx);
        };
        let kept = session.io_mut().reader.take_rest().map(|mut kept| {
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
            let (frame, bytes) =
                match session.io_mut().next_frame(&input[at..], &self.hub.settings.limits, trusted) {
                    Ok((Some(frame), n)) => {
                        at += n;
                        (frame, n)
                    }
                    Ok((None, n)) => {
                        at += n;
                        break;
                    }
                    Err(error) => {
                        session = self.fail(session, &error, now, effects);
                        self.sessions.put(conn, session);
                        return;
                    }
                };
            // STARTTLS must know whether anything follows it in the clear (CVE-2011-0411).
            if matches!(session, Session::Offered(_)) {
                session.io_mut().reader.keep(&input[at..]);
            }
            let starttls = matches!(session, Session::Offered(_));
            match self.frame(conn, session, (frame, bytes), now, effects) {
                Some(next) => session = next,
                None => return,
            }
            if starttls {
                session.io_mut().reader.take_rest();
            }
            // Behind <starttls/> there is white space at most, and none of it may be taken for bytes protected by TLS.
            if matches!(session, Session::Closing(_) | Session::Securing(_)) {
                at = input.len();
            }
        }
        session.io_mut().reader.keep(&input[at..]);
        if let Some(session) = self.depart(session, now, effects) {
            self.sessions.put(conn, session);
        }
    }

    /// One frame and its length; the session that follows. None when it is put away already.
    fn frame(
        &mut self,
        conn: ConnId,
        session: Session,
        (frame, bytes): (Frame, usize),
        now: Now,
        effects: &mut Effects,
    ) -> Option<Session> {
        let next = match (session, frame) {
            (Session::Live(mut live), Frame::Unit(unit)) => {
                let result = live.unit(*unit, bytes, &mut self.cx(now, effects));
                let session = Session::Live(live);
                match result {
                    Ok(()) => session,
                    Err(error) => self.fail(session, &error, now, effects),
                }
            }
            (Session::Live(mut live), Frame::Close) => match live.leave(&mut self.cx(now, effects)) {
                true => self.close_politely(live, now, effects),
                false => Session::Live(live),
            },
            (Session::Live(live), Frame::Error) => {
                let io = self.part(live, Leave::ClientError, now, effects);
                Closing::politely(io, &mut self.cx(now, effects))
            }
            (session @ Session::Live(_), Frame::Header(_)) => {
                let error = StreamError::new(Condition::NotWellFormed, "a stream header inside a stream");
                self.fail(session, &error, now, effects)
            }
            (session, Frame::Unit(unit)) => session.unit(*unit, &mut self.cx(now, effects)),
            (session, Frame::Header(header)) => session.header(&header, &mut self.cx(now, effects)),
            // RFC 6120 §4.9.1.1: an error of the peer's is not answered with another.
            (session, Frame::Close | Frame::Error) => session.close(&mut self.cx(now, effects)),
        };
        match self.claimed(next, now, effects) {
            Session::Bound(bound) => {
                self.admit(*bound, now, effects);
                self.sessions.take(conn)
            }
            next => Some(next),
        }
    }

    /// Puts a session away, admitting it to its account when it was just bound.
    fn settle(&mut self, conn: ConnId, session: Session, now: Now, effects: &mut Effects) {
        match self.claimed(session, now, effects) {
            Session::Bound(bound) => self.admit(*bound, now, effects),
            session => {
                if let Some(session) = self.depart(session, now, effects) {
                    self.sessions.put(conn, session);
                }
            }
        }
    }

    /// Sends a session off to its home, when that is elsewhere.
    fn depart(&mut self, session: Session, now: Now, effects: &mut Effects) -> Option<Session> {
        match session {
            Session::Claimed(claimed) => {
                self.hub.counters.connections -= 1;
                claimed.depart(&mut self.cx(now, effects));
                None
            }
            session => Some(session),
        }
    }

    /// Ends a stream with an error, in whatever state it is.
    fn fail(&mut self, session: Session, error: &StreamError, now: Now, effects: &mut Effects) -> Session {
        match session {
            Session::Live(live) => {
                let io = self.part(live, Leave::Error(error.condition), now, effects);
                Closing::with_error(io, error, &mut self.cx(now, effects))
            }
            other => other.fail(error, &mut self.cx(now, effects)),
        }
    }

    pub(super) fn end(&mut self, conn: ConnId, error: &StreamError, now: Now, effects: &mut Effects) {
        if let Some(session) = self.sessions.take(conn) {
            let session = self.fail(session, error, now, effects);
            self.sessions.put(conn, session);
        }
    }

    /// It is known how much of what a session was sent has arrived. One whose client closed its stream ends now.
    fn unacked(&mut self, conn: ConnId, bytes: u64, now: Now, effects: &mut Effects) {
        let Some(live) = self.sessions.live(conn) else { return };
        live.unacked(bytes, &mut Cx { now, hub: &mut self.hub, out: effects });
        if live.is_leaving()
            && let Some(Session::Live(live)) = self.sessions.take(conn)
        {
            let session = self.close_politely(live, now, effects);
            self.sessions.put(conn, session);
        }
    }

    fn close_politely(&mut self, live: Box<Live>, now: Now, effects: &mut Effects) -> Session {
        let io = self.part(live, Leave::Closed, now, effects);
        Closing::politely(io, &mut self.cx(now, effects))
    }

    fn closed(&mut self, conn: ConnId, now: Now, effects: &mut Effects) {
        if self.sessions.is_light(conn) {
            self.hub.counters.connections -= 1;
            light::closed(conn, &mut self.sessions, &mut Cx { now, hub: &mut self.hub, out: effects });
        }
        if let Some(session) = self.sessions.take(conn) {
            self.hub.counters.connections -= 1;
            if let Session::Live(live) = session {
                self.part(live, Leave::Lost, now, effects);
            } else if session.io().noted == Noted::Begun {
                let (jid, address, reason) = (None, session.io().address, Leave::Unbound);
                let entry = || Entry::Disconnect { jid, address, reason, after_ms: 0 };
                effects.journal.note(now.unix, Kind::Disconnect, entry);
            }
        }
    }

    fn letter(&mut self, letter: Letter, now: Now, effects: &mut Effects) {
        let mut cx = Cx { now, hub: &mut self.hub, out: effects };
        match letter {
            Letter::Stanza(stanza) => route::stanza(&stanza, &mut self.sessions, &mut cx),
            Letter::Command { command, reply } => self.command(command, reply, now, effects),
            Letter::Topic { domain, name, actor, op, asker } => {
                self.topics.operate(domain, &name, actor, op, asker, &mut cx);
            }
            Letter::Publication(notice) => {
                if notice.is_end() {
                    cx.hub.topic_figures.forget(notice.topic());
                }
                let pace = cx.hub.subscribers.publish(&notice, &cx.hub.settings.fanout);
                cx.hub.counters.backlog = cx.hub.subscribers.backlog();
                if let Some(pace) = pace {
                    cx.tell_pace(notice.topic(), pace);
                }
            }
            Letter::Pace { topic, shard, pace } => cx.hub.behind.note(topic, shard, pace),
            Letter::Subscribed { account, topic, last } => {
                pubsub::subscribed(&account, topic, last, &mut self.sessions, &mut cx);
            }
            Letter::Unsubscribed { account, topic } => {
                pubsub::unsubscribed(&account, topic, &mut self.sessions, &mut cx);
            }
            Letter::Listening { name, result } => light::heard(&name, result, &mut self.sessions, &mut cx),
            Letter::Restricted { topic } => light::restricted(topic, &mut self.sessions, &mut cx),
            Letter::LoginFailed { address } => {
                let (mono, limits) = (cx.now.mono, &cx.hub.settings.limits);
                cx.hub.throttle.failed_from(address, mono, limits);
            }
            Letter::Registered { address } => {
                let (mono, limits) = (cx.now.mono, &cx.hub.settings.limits);
                cx.hub.throttle.registered_from(address, mono, limits);
            }
            Letter::Expired(trace) => notifications::tell_end_of(&trace, &mut cx),
            Letter::Domains(domains) => self.domains(domains, now, effects),
        }
    }

    fn answer(&mut self, ticket: Ticket, answer: Answer, now: Now, effects: &mut Effects) {
        let Some(then) = self.hub.answered(ticket) else { return };
        if let Answer::Failed(_) = answer {
            self.hub.counters.faults += 1;
        }
        let mut cx = Cx { now, hub: &mut self.hub, out: effects };
        match then {
            Then::Login(conn) => {
                let Some(session) = self.sessions.take(conn) else { return };
                let session = match session {
                    Session::Authenticating(authenticating) => authenticating.answered(answer, &mut cx),
                    Session::Loading(loading) => loading.answered(answer, &mut cx),
                    other => other,
                };
                self.settle(conn, session, now, effects);
            }
            Then::Topic(then) => self.topics.answered(then, answer, &mut cx),
            Then::Pubsub(then) => pubsub::answered(then, answer, &mut self.sessions, &mut cx),
            Then::Notification(then) => notifications::answered(then, answer, &mut self.sessions, &mut cx),
            Then::Offline(then) => offline::answered(then, answer, &mut self.sessions, &mut cx),
            Then::Registration(then) => registration::answered(&then, &answer, &mut self.sessions, &mut cx),
            Then::Revoked { account, reply } => commands::revoked(&account, reply, &answer, &mut cx),
            Then::Owed(changes) => owed::answered(changes, &answer, &mut cx),
            Then::Nothing => {}
        }
    }

    /// Keys were derived.
    fn derived(&mut self, ticket: Ticket, derived: Derived, now: Now, effects: &mut Effects) {
        let Some(then) = self.hub.answered(ticket) else { return };
        let mut cx = Cx { now, hub: &mut self.hub, out: effects };
        match then {
            Then::Login(conn) => {
                let Some(session) = self.sessions.take(conn) else { return };
                let session = match session {
                    Session::Authenticating(authenticating) => authenticating.derived(derived, &mut cx),
                    other => other,
                };
                self.settle(conn, session, now, effects);
            }
            Then::Registration(then) => registration::derived(then, derived, &mut self.sessions, &mut cx),
            then => debug_assert!(false, "{then:?} has nothing derived"),
        }
    }

    fn tick(&mut self, now: Now, effects: &mut Effects) {
        let mut due = Vec::new();
        self.hub.timers.advance(now.mono, &mut due);
        for (conn, wake) in due {
            let Some(session) = self.sessions.take(conn) else {
                let mut cx = Cx { now, hub: &mut self.hub, out: effects };
                light::wake(conn, wake, &mut self.sessions, &mut cx);
                continue;
            };
            let session = match session {
                Session::Live(mut live) => {
                    let result = live.wake(wake, &mut self.cx(now, effects));
                    let session = Session::Live(live);
                    match result {
                        Ok(()) => session,
                        Err(error) => self.fail(session, &error, now, effects),
                    }
                }
                other => other.wake(wake, &mut self.cx(now, effects)),
            };
            self.sessions.put(conn, session);
        }
        owed::retry(&mut Cx { now, hub: &mut self.hub, out: effects });
        if now.mono >= self.tidy_at {
            self.tidy_at = now.mono.plus(TIDY_MS);
            self.topics.tidy();
            self.sessions.tidy();
            let longest = self.hub.settings.timeouts.auth_ms + self.hub.settings.timeouts.bind_ms;
            self.hub.subscribers.tidy(now.mono, longest + TIDY_MS);
            self.hub.owed.tidy();
            self.hub.recent.tidy(now.mono, longest + TIDY_MS);
            self.hub.altered.tidy(now.mono, longest + TIDY_MS);
        }
    }

    fn drain(&mut self, now: Now, effects: &mut Effects) {
        self.hub.drain();
        let mut cx = Cx { now, hub: &mut self.hub, out: effects };
        light::end_all(light::Ended::Shutdown, &mut self.sessions, &mut cx);
        for conn in self.sessions.conns() {
            let error = StreamError::new(Condition::SystemShutdown, "the server is shutting down");
            self.hub.queue.push_back(Work::End(conn, error));
        }
    }

    /// The domains changed: sessions of those that are gone end.
    fn domains(&mut self, domains: Arc<Domains>, now: Now, effects: &mut Effects) {
        let before = std::mem::replace(&mut self.hub.domains, domains);
        light::domains_changed(
            &before,
            &mut self.sessions,
            &mut Cx { now, hub: &mut self.hub, out: effects },
        );
        self.hub.memory.keep_domains(&self.hub.domains);
        self.hub.counters.domains.keep(&self.hub.domains, self.hub.settings.limits.domains_counted);
        let gone = self.sessions.lives().filter(|live| self.hub.domains.named(live.bare.domain()).is_none());
        for conn in gone.map(|live: &Live| live.io.conn).collect::<Vec<_>>() {
            let error = StreamError::new(Condition::HostGone, "this domain is no longer served");
            self.hub.queue.push_back(Work::End(conn, error));
        }
    }
}
