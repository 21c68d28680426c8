//! The machine that drives a shard: one input in, effects out. It is the topmost layer: it holds the sessions, the topics and
//! what they share, and gives each input to the one it is for.

mod admit;
mod adopting;
mod claims;
mod commands;
mod drain;
mod forwarding;
mod group;
mod handover;
mod light;
mod logging;
mod messages;
mod moved_homes;
mod offering;
mod reading;
mod restart;
mod resume;
mod returning;
mod rooms;
mod taps;
mod top;
/// What a client is told that reads too slowly.
fn too_slow(bound: QueueBound) -> StreamError {
    match bound {
        QueueBound::Own => {
            StreamError::new(Condition::PolicyViolation, "you read too slowly; your queue is full")
        }
        QueueBound::Common => {
            let text = "too much waits for clients that read too slowly, and you are among those for whom most waits";
            StreamError::new(Condition::ResourceConstraint, text)
        }
    }
}

#[cfg(test)]
mod tests;

pub use adopting::orphans_of;
#[cfg(any(test, feature = "sim"))]
pub(crate) use group::Part;
pub use handover::{Handed, HandedGroup, HandedSession, HandedTrace};
pub use logging::LogTurn;
pub use restart::{Group, Restored};
pub use top::HeavyAccount;

use crate::connection::QueueBound;
use crate::error::StreamError;
use crate::event::Leave;
use crate::feature_state::PerShard;
use crate::game::Matches;
use crate::message::Pace;
use crate::model::{ConnId, Domains, Mono, Now};
use crate::ports::modules::{ActiveModule, HookSet};
use crate::room::Rooms;
use crate::session::account_reads;
use crate::session::home;
use crate::session::homes::Homes;
use crate::session::pipeline::Pipeline;
use crate::session::{Agenda, BoundSession, Cx, Opening, Session, Sessions, Work};
use crate::settings::Settings;
use crate::shard::{Counters, Member, ShardState, Slice};
use crate::topic::{Topics, missed};
use crate::{Effect, Effects, Input};
use crate::{pipeline, route};
use carillon_wire::stream::Condition;
use std::sync::Arc;

/// One shard of the node.
pub struct ShardMachine {
    pipeline: Pipeline,
    shard: ShardState,
    agenda: Agenda,
    sessions: Sessions,
    topics: Topics,
    rooms: Rooms,
    matches: Matches,
    features: PerShard,
    homes: Homes,
    tidy_at: Mono,
    /// What was written of the sessions, where they are written down.
    log: Option<Box<logging::Log>>,
}

/// The handling of one input, or of one slice of the fan-outs.
struct Turn<'a> {
    cx: Cx<'a>,
    sessions: &'a mut Sessions,
    topics: &'a mut Topics,
    rooms: &'a mut Rooms,
    matches: &'a mut Matches,
    tidy_at: &'a mut Mono,
}

/// How often the shard tidies what it keeps for a limited time.
const TIDY_MS: u64 = 10_000;

impl ShardMachine {
    /// A shard without sessions. `seed` is 32 bytes of entropy.
    pub fn new(
        member: Member,
        settings: Arc<Settings>,
        domains: Arc<Domains>,
        seed: [u8; 32],
    ) -> ShardMachine {
        ShardMachine {
            pipeline: pipeline::of(&settings),
            shard: ShardState::new(member, settings, domains, seed, Mono(0)),
            agenda: Agenda::default(),
            sessions: Sessions::default(),
            topics: Topics::default(),
            rooms: Rooms::default(),
            matches: Matches::default(),
            features: PerShard::default(),
            homes: Homes::default(),
            tidy_at: Mono(0),
            log: None,
        }
    }

    /// Handles one input, and adds what is to be done to `effects`.
    // What it costs is counted by its name (`xtask instructions`).
    #[inline(never)]
    pub fn handle(&mut self, now: Now, input: Input<'_>, effects: &mut Effects) {
        self.turn(now, effects).handle(input);
    }

    /// Makes one slice of the deliveries under way. Returns whether any are left: then the caller does other work and calls
    /// again without sleeping.
    #[inline(never)]
    pub fn walk(&mut self, now: Now, effects: &mut Effects) -> bool {
        self.turn(now, effects).walk()
    }

    /// When [`Input::Tick`] is due, if ever.
    pub fn next_wake(&self) -> Option<Mono> {
        let ShardState { timers, retries, .. } = &self.shard;
        let due = [
            timers.sessions.next(),
            timers.connections.next(),
            retries.due(),
            self.features.due(),
            self.homes.due(),
            self.matches.due(),
            self.shard.claims.retry_at,
            self.shard.adoption.due(),
            self.shard.topics.subscribers.due(),
            self.log.as_ref().and_then(|log| log.due()),
            Some(self.tidy_at),
        ];
        due.into_iter().flatten().min()
    }

    /// The largest WebSocket message that a connection may send now, in bytes. It is smaller before authentication; a larger
    /// message must be refused while it arrives.
    pub fn message_bytes_max(&self, conn: ConnId) -> usize {
        let limits = &self.shard.settings.limits;
        match self.sessions.is_trusted(conn) {
            true => limits.stanza_bytes,
            false => limits.stanza_bytes_before_auth,
        }
    }

    /// How many connections have no session yet, and are not being closed either.
    pub fn unbound(&self) -> usize {
        let is_unbound =
            |conn: &ConnId| self.sessions.session_at(*conn).is_none() && !self.sessions.is_closing(*conn);
        self.sessions.conns().filter(is_unbound).count()
    }

    /// The shard's counters.
    pub fn counters(&self) -> &Counters {
        &self.shard.counters
    }

    /// Takes other settings. Which features are enabled does not change.
    pub fn reload(&mut self, settings: Arc<Settings>) {
        self.shard.settings = settings;
        self.shard.logins.offers.forget();
    }

    /// Replaces the modules, between two turns. Versions that were here keep their memory.
    pub fn set_modules(&mut self, modules: Vec<ActiveModule>) {
        // Those that only decide matches see nothing of accounts.
        let has_modules = modules.iter().any(|module| module.hooks().has_any(HookSet::ACCOUNTS));
        let seed = self.shard.random.number();
        self.matches.set_modules(&modules, &self.shard.domains);
        let pipeline =
            |has_modules| pipeline::with_modules(&self.pipeline, &self.shard.settings, has_modules);
        let with_modules = pipeline(true);
        if let Some(hook) = with_modules.set_modules {
            hook(modules, seed, &mut self.features, &mut self.shard.counters.modules);
        }
        self.pipeline = if has_modules { with_modules } else { pipeline(false) };
    }

    fn turn<'a>(&'a mut self, now: Now, effects: &'a mut Effects) -> Turn<'a> {
        let ShardMachine {
            pipeline,
            shard,
            features,
            agenda,
            sessions,
            topics,
            rooms,
            matches,
            homes,
            tidy_at,
            log: _,
        } = self;
        let cx = Cx { now, shard, features, homes, out: effects, pipeline, agenda };
        Turn { cx, sessions, topics, rooms, matches, tidy_at }
    }
}

impl Turn<'_> {
    /// Handles one input.
    fn handle(&mut self, input: Input<'_>) {
        match input {
            Input::Opened(opened) => {
                self.cx.shard.counters.connections += 1;
                let conn = opened.conn;
                let session = Opening::begin(opened, &mut self.cx);
                self.sessions.put(conn, session);
            }
            Input::OpenedLight { conn } => {
                self.cx.shard.counters.connections += 1;
                light::open(conn, self.sessions, &mut self.cx);
            }
            Input::OpenedPlayer { conn, datagrams } => self.matches.open(conn, datagrams, &mut self.cx),
            Input::PlayerBytes { conn, bytes } => self.matches.read(conn, bytes, &mut self.cx),
            Input::PlayerDatagram { conn, bytes } => self.matches.datagram(conn, bytes, &mut self.cx),
            Input::ArrivedPlayer { conn, joining } => self.matches.arrived(conn, *joining, &mut self.cx),
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
            Input::Closed { conn, unacked } => self.closed(conn, unacked),
            Input::Flushed { conn } => {
                if let Some(session) = self.sessions.bound_at(conn) {
                    session.flushed(&mut self.cx);
                } else {
                    self.matches.flushed(conn, &mut self.cx);
                }
            }
            Input::Unacked { conn, bytes, sent } => self.unacked(conn, bytes, sent),
            Input::Overflowed { conn, .. } if self.sessions.is_light(conn) => {
                light::end(conn, light::Ended::SlowReader, self.sessions, &mut self.cx);
            }
            Input::Overflowed { conn, .. } if self.matches.overflowed(conn, &mut self.cx) => {}
            Input::Overflowed { conn, bound } => self.cx.end_connection(conn, too_slow(bound)),
            Input::Arrived { conn, moving } => {
                self.cx.shard.counters.connections += 1;
                let mut claimed = moving;
                claimed.arrived(conn, &mut self.cx);
                let session = Session::Claimed(claimed);
                self.settle(conn, session);
                self.cx.read_on(conn);
            }
            Input::Carried { conn, via, claim } => match claim.arrived(&self.cx.shard.domains) {
                Some(mut claimed) => {
                    claimed.client.io.via = Some(via);
                    self.handle(Input::Arrived { conn, moving: Box::new(claimed) });
                }
                // The domain is gone, or this node has not heard of it yet: the client tries again.
                None => self.cx.out.push(Effect::Close { conn }),
            },
            Input::Message(message) => self.message(message),
            Input::Domains(domains) => self.domains(domains),
            Input::RecordsLost => missed::records_lost(&mut self.cx),
            Input::Directory(directory) => self.move_homes(&directory),
            Input::Answer { ticket, answer } => self.answer(ticket, answer),
            Input::Derived { ticket, derived } => self.derived(ticket, derived),
            Input::Tick => self.tick(),
            Input::Drain => self.drain(),
            Input::DrainSlice(slice) => self.end_slice(&slice),
            Input::StopDraining => self.stop_draining(),
        }
        self.work();
        self.after_answers();
    }

    /// Makes one slice of the deliveries under way. Returns whether any are left.
    fn walk(&mut self) -> bool {
        let settings = self.cx.shard.settings.clone();
        let mut left = settings.fanout.slice;
        // Several topics are served per slice when each has few followers.
        while left > 0
            && let Some(slice) = self.cx.shard.topics.subscribers.slice(left, &settings.fanout)
        {
            left -= slice.slots().len();
            self.give(&slice);
            self.work();
        }
        while left > 0
            && let Some(given) = self.give_next_of_rooms(left)
        {
            left -= given;
        }
        self.cx.count_backlog();
        let walks = self.cx.shard.topics.subscribers.is_walking() || self.cx.shard.room_walks.is_walking();
        if !self.cx.shard.topics.subscribers.is_walking() {
            self.cx.shard.light.rest();
        }
        self.walk_features(settings.fanout.slice) || walks
    }

    /// The same of what features give to many sessions.
    fn walk_features(&mut self, max: usize) -> bool {
        let mut walks = false;
        for hook in &self.cx.pipeline.walk {
            walks |= hook(max, self.sessions, &mut self.cx);
            self.work();
        }
        walks
    }

    /// Gives an event to one slice of its topic's followers.
    fn give(&mut self, slice: &Slice) {
        let mut written = light::Written::default();
        let before = self.cx.shard.counters.deliveries;
        for &slot in slice.slots() {
            match self.sessions.bound_in(slot) {
                Some(session) => {
                    for hook in &self.cx.pipeline.publication {
                        hook(session, &slice.event, &mut self.cx);
                    }
                }
                None => light::deliver(slot, &slice.event, &mut written, self.sessions, &mut self.cx),
            }
        }
        let (topic, count) = (slice.event.topic(), self.cx.shard.counters.deliveries - before);
        self.cx.shard.topics.figures.delivered(topic, count);
        if let Some(topic) = slice.caught_up {
            self.cx.tell_pace(topic, Pace::CaughtUp);
        }
    }

    /// Does what the input left to do in this shard.
    fn work(&mut self) {
        while let Some(work) = self.cx.agenda.next() {
            match work {
                Work::ShardMessage(message) => self.message(message),
                Work::Route { stanza, settlement } => {
                    route::arrived(*stanza, settlement, self.sessions, &mut self.cx);
                }
                Work::End(session, error) => self.end(session, &error),
                Work::EndConnection(conn, error) => self.end_connection(conn, &error),
                Work::Read(conn) => self.read(conn, b""),
                Work::Later(work) => work.go(self.sessions, &mut self.cx),
            }
        }
    }

    fn tick(&mut self) {
        self.wake_connections();
        self.wake_sessions();
        let refused = self.cx.shard.retries.take_due(self.cx.now.mono);
        if !refused.is_empty() {
            let hooks = &self.cx.pipeline.retry;
            hooks.iter().fold(refused, |refused, hook| hook(refused, &mut self.cx));
        }
        home::tick(&mut self.cx);
        self.matches.tick(&mut self.cx);
        self.retry_claims();
        self.give_up_orphans();
        missed::tick(&mut self.cx);
        for hook in &self.cx.pipeline.tick {
            hook(&mut self.cx);
        }
        if self.cx.now.mono >= *self.tidy_at {
            *self.tidy_at = self.cx.now.mono.plus(TIDY_MS);
            self.expire_taps();
            self.cx.shard.heavy.roll(self.cx.now.mono);
            self.topics.tidy();
            self.rooms.tidy(&mut self.cx.shard.counters.rooms);
            self.sessions.tidy();
            account_reads::tidy(self.sessions, &mut self.cx);
            let longest = self.cx.shard.settings.timeouts.auth_ms + self.cx.shard.settings.timeouts.bind_ms;
            self.cx.shard.topics.subscribers.tidy(self.cx.now.mono, longest + TIDY_MS);
            self.cx.shard.room_walks.tidy();
            self.tidy_claims(longest);
            self.cx.features.tidy();
            let rates = &self.cx.shard.settings.limits.rates;
            self.cx.shard.accounts.tidy(self.cx.now.mono, rates, longest + TIDY_MS);
        }
    }

    fn wake_connections(&mut self) {
        let mut due = Vec::new();
        self.cx.shard.timers.connections.advance(self.cx.now.mono, &mut due);
        for (conn, deadline) in due {
            if self.sessions.is_light(conn) {
                light::wake(conn, deadline, self.sessions, &mut self.cx);
            } else if self.sessions.session_at(conn).is_none()
                && let Some(session) = self.sessions.take(conn)
            {
                let session = session.wake(deadline, &mut self.cx);
                self.sessions.put(conn, session);
            } else {
                self.matches.wake(conn, deadline, &mut self.cx);
            }
        }
    }

    fn wake_sessions(&mut self) {
        let mut due = Vec::new();
        self.cx.shard.timers.sessions.advance(self.cx.now.mono, &mut due);
        for (id, wake) in due {
            let Some(mut session) = self.sessions.take_bound(id) else { continue };
            match session.wake(wake, &mut self.cx) {
                Err(_) if session.is_parked() => drop(self.part(session, Leave::NotResumed)),
                result => {
                    self.sessions.put_bound(session);
                    if let Err(error) = result {
                        self.end(id, &error);
                    }
                }
            }
        }
    }

    /// The domains changed: sessions of removed ones end.
    fn domains(&mut self, domains: Arc<Domains>) {
        let before = std::mem::replace(&mut self.cx.shard.domains, domains);
        light::domains_changed(&before, self.sessions, &mut self.cx);
        let now_served = Arc::clone(&self.cx.shard.domains);
        self.matches.domains_changed(&now_served, &mut self.cx);
        let shard = &mut *self.cx.shard;
        shard.accounts.login_cache.keep_domains(&shard.domains);
        shard.quotas.set(&shard.domains, shard.shard_count, self.cx.now.mono);
        self.cx
            .shard
            .counters
            .domains
            .keep(&self.cx.shard.domains, self.cx.shard.settings.limits.domains_counted);
        let gone = self
            .sessions
            .all_bound()
            .filter(|session| self.cx.shard.domains.named(session.bare.domain()).is_none());
        for session in gone.map(|session: &BoundSession| session.id).collect::<Vec<_>>() {
            let error = StreamError::new(Condition::HostGone, "this domain is no longer served");
            self.cx.end(session, error);
        }
    }
}
