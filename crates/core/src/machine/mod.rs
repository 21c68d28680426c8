//! The machine that drives a shard: one input in, effects out. On top of everything: it holds the sessions, the topics and what
//! they share, and gives each input to whom it concerns.

mod admit;
mod commands;
mod letters;
mod light;
mod reading;
mod returning;

use crate::error::StreamError;
use crate::message::Pace;
use crate::model::{ConnId, Domains, Mono, Now, ShardId};
use crate::node::{Counters, Hub, Slice};
use crate::pipeline;
use crate::session::pipeline::Pipeline;
use crate::session::{Agenda, Cx, Live, Opening, Session, Sessions, Work};
use crate::settings::Settings;
use crate::topic::Topics;
use crate::{Effects, Input};
use carillon_wire::stream::Condition;
use std::sync::Arc;

/// One shard of the node.
pub struct Shard {
    pipeline: Pipeline,
    hub: Hub,
    agenda: Agenda,
    sessions: Sessions,
    topics: Topics,
    tidy_at: Mono,
}

/// What is done with one input, or one slice of the fan-outs.
struct Turn<'a> {
    cx: Cx<'a>,
    sessions: &'a mut Sessions,
    topics: &'a mut Topics,
    tidy_at: &'a mut Mono,
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
            pipeline: pipeline::of(&settings.features_disabled),
            hub: Hub::new(id, shards, settings, domains, seed, Mono(0)),
            agenda: Agenda::default(),
            sessions: Sessions::default(),
            topics: Topics::default(),
            tidy_at: Mono(0),
        }
    }

    /// Handles one input; what is to be done is added to `effects`.
    pub fn handle(&mut self, now: Now, input: Input<'_>, effects: &mut Effects) {
        self.turn(now, effects).handle(input);
    }

    /// Goes on with the fan-outs under way, for one slice of deliveries. Whether any is left: then the caller looks at
    /// other work and comes back without sleeping.
    pub fn walk(&mut self, now: Now, effects: &mut Effects) -> bool {
        self.turn(now, effects).walk()
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

    fn turn<'a>(&'a mut self, now: Now, effects: &'a mut Effects) -> Turn<'a> {
        let Shard { pipeline, hub, agenda, sessions, topics, tidy_at } = self;
        Turn { cx: Cx { now, hub, out: effects, pipeline, agenda }, sessions, topics, tidy_at }
    }
}

impl Turn<'_> {
    /// Handles one input.
    fn handle(&mut self, input: Input<'_>) {
        match input {
            Input::Opened(opened) => {
                self.cx.hub.counters.connections += 1;
                let conn = opened.conn;
                let session = Opening::begin(opened, &mut self.cx);
                self.sessions.put(conn, session);
            }
            Input::OpenedLight { conn } => {
                self.cx.hub.counters.connections += 1;
                light::open(conn, self.sessions, &mut self.cx);
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
            Input::Bytes { conn, bytes } => self.read(conn, bytes),
            Input::Closed { conn } => self.closed(conn),
            Input::Flushed { conn } => {
                if let Some(live) = self.sessions.live(conn) {
                    live.flushed(&mut self.cx);
                }
            }
            Input::Unacked { conn, bytes } => self.unacked(conn, bytes),
            Input::Overflowed { conn } if self.sessions.is_light(conn) => {
                light::end(conn, light::Ended::SlowReader, self.sessions, &mut self.cx);
            }
            Input::Overflowed { conn } => {
                let error =
                    StreamError::new(Condition::PolicyViolation, "you read too slowly; your queue is full");
                self.cx.end(conn, error);
            }
            Input::Arrived { conn, moving } => {
                self.cx.hub.counters.connections += 1;
                let mut claimed = moving;
                claimed.arrived(conn, &mut self.cx);
                let session = Session::Claimed(claimed);
                self.settle(conn, session);
                self.cx.read_on(conn);
            }
            Input::Message(letter) => self.letter(letter),
            Input::Answer { ticket, answer } => self.answer(ticket, answer),
            Input::Derived { ticket, derived } => self.derived(ticket, derived),
            Input::Tick => self.tick(),
            Input::Drain => self.drain(),
        }
        self.work();
    }

    /// Goes on with the fan-outs under way, for one slice of deliveries. Whether any is left: then the caller looks at
    /// other work and comes back without sleeping.
    fn walk(&mut self) -> bool {
        let settings = self.cx.hub.settings.clone();
        let mut left = settings.fanout.slice;
        // Of topics that few follow, several get their turn.
        while left > 0
            && let Some(slice) = self.cx.hub.subscribers.slice(left, &settings.fanout)
        {
            left -= slice.slots().len();
            self.give(&slice);
            self.work();
        }
        self.cx.hub.counters.backlog = self.cx.hub.subscribers.backlog();
        let walks = self.cx.hub.subscribers.is_walking();
        if !walks {
            self.cx.hub.light.rest();
        }
        walks
    }

    /// Gives a notice to some of those who follow its topic.
    fn give(&mut self, slice: &Slice) {
        let mut written = light::Written::default();
        let before = self.cx.hub.counters.deliveries;
        for &slot in slice.slots() {
            match self.sessions.live_in(slot) {
                Some(live) => {
                    for hook in &self.cx.pipeline.publication {
                        hook(live, &slice.notice, &mut self.cx);
                    }
                }
                None => light::deliver(slot, &slice.notice, &mut written, self.sessions, &mut self.cx),
            }
        }
        let (topic, count) = (slice.notice.topic(), self.cx.hub.counters.deliveries - before);
        self.cx.hub.topic_figures.delivered(topic, count);
        if let Some(topic) = slice.caught_up {
            self.cx.tell_pace(topic, Pace::CaughtUp);
        }
    }

    /// What the input left to do in this shard.
    fn work(&mut self) {
        while let Some(work) = self.cx.agenda.next() {
            match work {
                Work::ShardMessage(letter) => self.letter(letter),
                Work::End(conn, error) => self.end(conn, &error),
                Work::Read(conn) => self.read(conn, b""),
                Work::Later(work) => work.go(self.sessions, &mut self.cx),
            }
        }
    }

    fn tick(&mut self) {
        let mut due = Vec::new();
        self.cx.hub.timers.advance(self.cx.now.mono, &mut due);
        for (conn, wake) in due {
            let Some(session) = self.sessions.take(conn) else {
                light::wake(conn, wake, self.sessions, &mut self.cx);
                continue;
            };
            let session = match session {
                Session::Live(mut live) => {
                    let result = live.wake(wake, &mut self.cx);
                    let session = Session::Live(live);
                    match result {
                        Ok(()) => session,
                        Err(error) => self.fail(session, &error),
                    }
                }
                other => other.wake(wake, &mut self.cx),
            };
            self.sessions.put(conn, session);
        }
        let refused = self.cx.hub.owed.take_due(self.cx.now.mono);
        if !refused.is_empty() {
            let hooks = &self.cx.pipeline.retry;
            hooks.iter().fold(refused, |refused, hook| hook(refused, &mut self.cx));
        }
        if self.cx.now.mono >= *self.tidy_at {
            *self.tidy_at = self.cx.now.mono.plus(TIDY_MS);
            self.topics.tidy();
            self.sessions.tidy();
            let longest = self.cx.hub.settings.timeouts.auth_ms + self.cx.hub.settings.timeouts.bind_ms;
            self.cx.hub.subscribers.tidy(self.cx.now.mono, longest + TIDY_MS);
            self.cx.hub.owed.tidy();
            self.cx.hub.recent.tidy(self.cx.now.mono, longest + TIDY_MS);
            self.cx.hub.altered.tidy(self.cx.now.mono, longest + TIDY_MS);
        }
    }

    fn drain(&mut self) {
        self.cx.hub.drain();
        light::end_all(light::Ended::Shutdown, self.sessions, &mut self.cx);
        for conn in self.sessions.conns() {
            let error = StreamError::new(Condition::SystemShutdown, "the server is shutting down");
            self.cx.end(conn, error);
        }
    }

    /// The domains changed: sessions of those that are gone end.
    fn domains(&mut self, domains: Arc<Domains>) {
        let before = std::mem::replace(&mut self.cx.hub.domains, domains);
        light::domains_changed(&before, self.sessions, &mut self.cx);
        self.cx.hub.memory.keep_domains(&self.cx.hub.domains);
        self.cx.hub.counters.domains.keep(&self.cx.hub.domains, self.cx.hub.settings.limits.domains_counted);
        let gone =
            self.sessions.lives().filter(|live| self.cx.hub.domains.named(live.bare.domain()).is_none());
        for conn in gone.map(|live: &Live| live.io.conn).collect::<Vec<_>>() {
            let error = StreamError::new(Condition::HostGone, "this domain is no longer served");
            self.cx.end(conn, error);
        }
    }
}
