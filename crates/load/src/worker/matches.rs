//! The players of real-time matches: one thread that finds them matches over HTTP, and then plays all of them over TLS.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io::{ErrorKind, Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::TryRecvError;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use carillon_wire::frame::game::ALPN;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use serde_json::json;

use super::api::Api;
use super::quic::{Happened, QuicLines, Way};
use super::recorder::{Count, Metric, Recorder};
use super::setup::{self, Setup};
use super::step::{StepStart, ThreadContext};
use crate::client::tls::{PeerState, TlsLayer, Trust, config};
use crate::control::{Fault, LOGIN_ERROR, LOST_ERROR};
use crate::game::{MatchEvent, Player};
use crate::plan::{Action, Play, TransportKind};

/// Threads that ask the matchmaker, hence requests in flight at the same time.
const ASKERS: usize = 8;
/// How often a ticket that waits is asked for.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How long the matchmaker may take, and then the players to take their seats.
const FIND_TIMEOUT: Duration = Duration::from_secs(120);
/// How long matches may take to end when all have said that they are over.
const END_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a player whose connection was cut stays away.
const AWAY: Duration = Duration::from_millis(500);
/// After so many ticks a player tells its state.
const STATE_EVERY: u32 = 15;
/// The longest wait for sockets.
const WAIT_MAX: Duration = Duration::from_millis(50);

/// Whether a job has anything for this thread to do.
pub(super) fn is_needed(setup: &Setup) -> bool {
    setup.job.scenario.phases.iter().any(|phase| matches!(phase.action, Action::Play(_)))
}

/// Does the thread's part of each step, until the worker stops it.
pub(super) fn work(thread: &ThreadContext) -> Result<(), Fault> {
    let Some(api) = Api::of(&thread.setup.job.target).pop() else {
        return Err(setup::lacks("the HTTP API", "pass --http and --key"));
    };
    let mut next = None;
    while let Some(step) = next.take().or_else(|| thread.steps.recv().ok()) {
        if let Some(Action::Play(play)) = step.action(&thread.setup) {
            next = Hall::new(thread, play)?.play(&api, &step);
        }
        if next.is_none() {
            thread.barrier.done(step.serial);
        }
    }
    Ok(())
}

/// All players of a phase.
struct Hall<'a> {
    thread: &'a ThreadContext,
    play: &'a Play,
    tls: Arc<ClientConfig>,
    name: ServerName<'static>,
    poll: Poll,
    /// Their connections, where they are of QUIC.
    quic: Option<QuicLines>,
    seats: Vec<Seat>,
    /// When a player sends its next input, or comes back.
    due: BinaryHeap<Reverse<(Instant, usize)>>,
    scratch: Box<[u8]>,
    period: Duration,
    playing: usize,
    over: usize,
    /// All say that the game is over.
    is_ending: bool,
}

/// A player and its connection.
#[derive(Default)]
struct Seat {
    player: Player,
    token: String,
    /// When its ticket was sent.
    entered: Option<Instant>,
    line: Option<Line>,
    /// When each input was due whose tick has not come.
    sent: VecDeque<(u32, Instant)>,
    /// How long after a tick it sends its input.
    offset: Duration,
    state: SeatState,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SeatState {
    /// It has yet to take its seat.
    #[default]
    Out,
    /// Its connection was cut: it comes back.
    Away(Instant),
    Playing,
    Over,
}

struct Line {
    socket: TcpStream,
    tls: Option<TlsLayer>,
    has_joined: bool,
    unsent: Vec<u8>,
}

impl<'a> Hall<'a> {
    fn new(thread: &'a ThreadContext, play: &'a Play) -> Result<Self, Fault> {
        let target = &thread.setup.job.target;
        let trust = match &target.ca_pem {
            None => Trust::Anyone,
            Some(pem) => Trust::from_pem(pem.as_bytes()).map_err(|error| setup::worker(error.to_string()))?,
        };
        let mut poll = Poll::new().map_err(|error| setup::worker(error.to_string()))?;
        let quic = match target.transport {
            TransportKind::Quic => Some(quic(thread, &trust, &mut poll).map_err(setup::worker)?),
            _ => None,
        };
        let tls = config(&trust, Some(ALPN), false).map_err(|error| setup::worker(error.to_string()))?;
        let name = ServerName::try_from(target.domain.clone())
            .map_err(|error| setup::worker(format!("{}: {error}", target.domain)))?;
        let count = thread.setup.job.count as usize;
        let period = Duration::from_secs(1) / play.tick_rate;
        let seat = |number: usize| {
            // Spread over most of a tick: players do not act at the same moment.
            let offset = period.mul_f64(0.7 * (number * 7919 % 1000) as f64 / 1000.0);
            let mut seat = Seat { offset, ..Seat::default() };
            seat.player.set_ahead(play.ahead);
            seat
        };
        Ok(Self {
            thread,
            play,
            tls,
            name,
            poll,
            quic,
            seats: (0..count).map(seat).collect(),
            due: BinaryHeap::new(),
            scratch: vec![0; 64 * 1024].into(),
            period,
            playing: 0,
            over: 0,
            is_ending: false,
        })
    }

    fn recorder(&self) -> &'a Recorder {
        &self.thread.recorder
    }

    /// Plays the phase; returns the next step if that began before this one was done.
    fn play(mut self, api: &Api, step: &StepStart) -> Option<StepStart> {
        std::thread::sleep(step.at.saturating_duration_since(Instant::now()));
        self.find(api);
        let mut waiting: VecDeque<usize> =
            (0..self.seats.len()).filter(|at| !self.seats[*at].token.is_empty()).collect();
        let all = waiting.len();
        let (mut began, patience) = (None, Instant::now() + FIND_TIMEOUT);
        let mut has_cut = self.play.cut_share <= 0.0;
        let mut joining = 0_usize;
        let mut events = Events::with_capacity(4096);
        loop {
            match self.thread.steps.try_recv() {
                Ok(step) => return Some(step),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) => {}
            }
            let now = Instant::now();
            while joining.saturating_sub(self.playing + self.over) < self.play.in_flight as usize
                && let Some(at) = waiting.pop_front()
            {
                joining += 1;
                self.connect(at);
            }
            if began.is_none() && (self.playing + self.over == all || now > patience) {
                began = Some(now);
            }
            if let Some(began) = began {
                let played: Duration = now.saturating_duration_since(began);
                if !has_cut && played > self.play.span.0 / 2 {
                    has_cut = true;
                    self.cut();
                }
                if !self.is_ending && played > self.play.span.0 {
                    self.finish();
                }
                if self.over == all || played > self.play.span.0 + END_TIMEOUT {
                    break;
                }
            }
            self.act(now);
            self.recorder().set_online(self.playing);
            let quic_due = self.flush_quic();
            let wait = self.due.peek().map_or(WAIT_MAX, |Reverse((at, _))| {
                at.saturating_duration_since(Instant::now()).min(WAIT_MAX)
            });
            let until = |at: Instant| at.saturating_duration_since(Instant::now());
            let wait = quic_due.map_or(wait, |at| until(at).min(wait));
            // Rounded up by the system: a player is late rather than early.
            if self.poll.poll(&mut events, Some(wait)).is_err() {
                continue;
            }
            self.serve_quic();
            for event in events.iter().filter(|event| event.token() != QUIC) {
                self.serve(
                    event.token().0,
                    event.is_readable() || event.is_read_closed(),
                    event.is_writable(),
                );
            }
        }
        let missing: usize = self.seats.iter().map(|seat| seat.sent.len()).sum();
        // What was sent for ticks after the end is in none.
        if !self.is_ending {
            self.recorder().add(Count::Missing, missing as u64);
        }
        self.recorder().set_online(0);
        None
    }

    /// Has the matchmaker find a match for everybody.
    fn find(&mut self, api: &Api) {
        let (setup, recorder) = (&self.thread.setup, self.recorder());
        let queue = format!("load-{}", setup.job.test);
        let longest = self.play.span.0 + 2 * FIND_TIMEOUT;
        let declared = api.declare(
            &queue,
            &json!({
                "seats": self.play.seats,
                "tick_rate": self.play.tick_rate,
                "input_delay": self.play.ahead,
                "input_bytes_max": self.play.payload_bytes,
                "join_ms": FIND_TIMEOUT.as_millis() as u64,
                "duration_max_ms": longest.as_millis() as u64,
            }),
        );
        if let Err(error) = declared {
            return recorder.error_with(format!("queue: {}", error.kind()), error.words());
        }
        let (next, until) = (AtomicUsize::new(0), Instant::now() + FIND_TIMEOUT);
        let seats = Mutex::new(&mut self.seats);
        std::thread::scope(|scope| {
            for _ in 0..ASKERS {
                scope.spawn(|| {
                    let mut open = Vec::new();
                    let found = |at: usize, entered: Instant, token: String| {
                        let mut seats = seats.lock().unwrap_or_else(PoisonError::into_inner);
                        (seats[at].token, seats[at].entered) = (token, Some(entered));
                    };
                    loop {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        if at >= setup.job.count as usize {
                            break;
                        }
                        let account = setup.localpart(setup.job.first + at as u32);
                        let entered = Instant::now();
                        match api.enter(&queue, &account) {
                            Ok(Some(token)) => found(at, entered, token),
                            Ok(None) => open.push((at, account, entered)),
                            Err(error) => {
                                recorder.error_with(format!("ticket: {}", error.kind()), error.words());
                            }
                        }
                    }
                    while !open.is_empty() && Instant::now() < until {
                        open.retain(|(at, account, entered)| match api.seat(&queue, account) {
                            Ok(Some(token)) => {
                                found(*at, *entered, token);
                                false
                            }
                            _ => true,
                        });
                        if !open.is_empty() {
                            std::thread::sleep(POLL_INTERVAL);
                        }
                    }
                    // Who is left over makes no match: their number is not one of whole matches.
                    recorder.add(Count::Skipped, open.len() as u64);
                });
            }
        });
    }

    fn connect(&mut self, at: usize) {
        let addresses = &self.thread.setup.addresses;
        let target = addresses[at % addresses.len()];
        if let Some(quic) = &mut self.quic {
            if let Err(why) = quic.connect(at, target, &self.thread.setup.job.target.domain) {
                self.lost(at, &why);
            }
            return;
        }
        let opened = TcpStream::connect(target).and_then(|mut socket| {
            let interest = Interest::READABLE | Interest::WRITABLE;
            self.poll.registry().register(&mut socket, Token(at), interest)?;
            Ok(socket)
        });
        match opened {
            Ok(socket) => {
                self.seats[at].line = Some(Line { socket, tls: None, has_joined: false, unsent: Vec::new() });
            }
            Err(error) => self.lost(at, &error.kind().to_string()),
        }
    }

    /// Sends what players say over QUIC; when something of it is due.
    fn flush_quic(&mut self) -> Option<Instant> {
        let quic = self.quic.as_mut()?;
        quic.flush();
        quic.due()
    }

    fn serve_quic(&mut self) {
        let Some(quic) = &mut self.quic else { return };
        let mut happened = Vec::new();
        let received = quic.receive(&mut happened);
        for (at, what) in happened {
            let mut events = Vec::new();
            let Seat { player, token, .. } = &mut self.seats[at];
            let result = match what {
                Happened::Connected => {
                    let mut frame = Vec::new();
                    player.join(token, &mut frame);
                    self.quic.iter_mut().for_each(|quic| quic.say(at, &frame, Way::Stream));
                    Ok(())
                }
                Happened::Stream(bytes) => {
                    player.receive(&bytes, &mut events).map_err(|error| error.to_string())
                }
                Happened::Datagram(bytes) => {
                    player.receive_datagram(&bytes, &mut events).map_err(|error| error.to_string())
                }
                Happened::Lost(why) => Err(why),
            };
            let now = Instant::now();
            for event in events {
                self.happened(at, &event, now);
            }
            // A player whose connection was cut on purpose, or whose match is over, expects the error.
            if let Err(why) = result
                && !matches!(self.seats[at].state, SeatState::Over | SeatState::Away(_))
            {
                self.lost(at, &why);
            }
        }
        if let Err(error) = received {
            self.recorder().error(format!("{LOST_ERROR}{}", error.kind()));
        }
    }

    fn serve(&mut self, at: usize, readable: bool, writable: bool) {
        let mut events = Vec::new();
        let result = self.exchange(at, readable, writable, &mut events);
        let now = Instant::now();
        for event in events {
            self.happened(at, &event, now);
        }
        if let Err(why) = result
            && self.seats[at].state != SeatState::Over
        {
            self.lost(at, &why);
        }
    }

    /// Reads and writes what a socket has and takes.
    fn exchange(
        &mut self,
        at: usize,
        readable: bool,
        writable: bool,
        events: &mut Vec<MatchEvent>,
    ) -> Result<(), String> {
        let Self { seats, scratch, tls, name, .. } = self;
        let seat = &mut seats[at];
        let Some(line) = &mut seat.line else { return Ok(()) };
        let in_words = |error: std::io::Error| error.kind().to_string();
        if line.tls.is_none() {
            if let Ok(Some(error)) | Err(error) = line.socket.take_error() {
                return Err(in_words(error));
            }
            if !writable || line.socket.peer_addr().is_err() {
                return Ok(());
            }
            let _ = line.socket.set_nodelay(true);
            let layer =
                TlsLayer::new(tls, name.clone(), &mut line.unsent).map_err(|error| error.to_string())?;
            line.tls = Some(layer);
        }
        let mut text = Vec::new();
        let mut ended = false;
        while readable && !ended {
            match line.socket.read(scratch) {
                Ok(0) => ended = true,
                Ok(length) => {
                    let Some(layer) = &mut line.tls else { break };
                    let state = layer
                        .receive(&scratch[..length], &mut text, &mut line.unsent)
                        .map_err(|error| error.to_string())?;
                    ended = state == PeerState::Closed;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(in_words(error)),
            }
        }
        seat.player.receive(&text, events).map_err(|error| error.to_string())?;
        if let Some(layer) = &mut line.tls
            && !line.has_joined
            && !layer.is_handshaking()
        {
            line.has_joined = true;
            let mut frame = Vec::new();
            seat.player.join(&seat.token, &mut frame);
            layer.send(&frame, &mut line.unsent).map_err(|error| error.to_string())?;
        }
        line.flush().map_err(in_words)?;
        if ended { Err("the server closed the connection".to_owned()) } else { Ok(()) }
    }

    fn happened(&mut self, at: usize, event: &MatchEvent, now: Instant) {
        let (recorder, period) = (self.recorder(), self.period);
        let seat = &mut self.seats[at];
        match event {
            MatchEvent::Joined(_) => {
                match seat.state {
                    SeatState::Away(since) => {
                        recorder.count(Count::StreamsResumed);
                        recorder.time(Metric::Resume, now.saturating_duration_since(since + AWAY));
                    }
                    _ => {
                        recorder.count(Count::Logins);
                        let entered = seat.entered.unwrap_or(now);
                        recorder.time(Metric::Login, now.saturating_duration_since(entered));
                    }
                }
                seat.state = SeatState::Playing;
                self.playing += 1;
            }
            MatchEvent::Tick { tick, has_own, in_order } => {
                if !in_order {
                    recorder.count(Count::OutOfOrder);
                }
                while let Some((of, due)) = seat.sent.front().copied().filter(|(of, _)| of <= tick) {
                    seat.sent.pop_front();
                    match of == *tick && *has_own {
                        true => recorder.delivered(now.saturating_duration_since(due)),
                        false => recorder.count(Count::Missing),
                    }
                }
                let (is_told, is_last) = (tick % STATE_EVERY == 0, self.is_ending);
                if seat.sent.len() < self.play.ahead as usize && !is_last {
                    self.due.push(Reverse((now + seat.offset.min(period), at)));
                }
                if is_told {
                    let mut frame = Vec::new();
                    seat.player.tell_state(&mut frame);
                    self.say(at, &frame);
                }
            }
            MatchEvent::Desync { .. } => recorder.error("match: players have different states"),
            MatchEvent::Refused(code) => recorder.error(format!("match: {}", code.as_str())),
            MatchEvent::Ended(_) => {
                if seat.state == SeatState::Playing {
                    self.playing -= 1;
                }
                seat.state = SeatState::Over;
                seat.sent.clear();
                self.over += 1;
            }
            MatchEvent::Seat(..)
            | MatchEvent::Clock(_)
            | MatchEvent::Pong
            | MatchEvent::Snapshot(_)
            | MatchEvent::Wanted { .. } => {}
        }
    }

    /// Players send what is due, and those who were cut come back.
    fn act(&mut self, now: Instant) {
        while let Some(&Reverse((at_time, at))) = self.due.peek()
            && at_time <= now
        {
            self.due.pop();
            let seat = &mut self.seats[at];
            match seat.state {
                SeatState::Away(_) if seat.line.is_none() => self.connect(at),
                SeatState::Playing if seat.sent.len() < self.play.ahead as usize && !self.is_ending => {
                    let mut input = vec![0; self.play.payload_bytes];
                    input.iter_mut().zip((at as u32).to_le_bytes()).for_each(|(to, from)| *to = from);
                    let mut frame = Vec::new();
                    let tick = seat.player.send(&input, &mut frame);
                    seat.sent.push_back((tick, at_time));
                    self.recorder().sent(now.saturating_duration_since(at_time));
                    self.say_by(at, &frame, Way::Datagram);
                }
                _ => {}
            }
        }
    }

    fn say(&mut self, at: usize, frame: &[u8]) {
        self.say_by(at, frame, Way::Stream);
    }

    fn say_by(&mut self, at: usize, frame: &[u8], way: Way) {
        if let Some(quic) = &mut self.quic {
            return quic.say(at, frame, way);
        }
        let Some(line) = &mut self.seats[at].line else { return };
        let sent = match &mut line.tls {
            Some(layer) => layer.send(frame, &mut line.unsent).map_err(|error| error.to_string()),
            None => return,
        };
        if let Err(why) = sent.and_then(|()| line.flush().map_err(|error| error.kind().to_string())) {
            self.lost(at, &why);
        }
    }

    /// A share of the players loses its connection.
    fn cut(&mut self) {
        let now = Instant::now();
        let every = (1.0 / self.play.cut_share.max(0.001)).round().max(1.0) as usize;
        for at in (0..self.seats.len()).step_by(every) {
            let seat = &mut self.seats[at];
            if seat.state == SeatState::Playing {
                seat.line = None;
                self.quic.iter_mut().for_each(|quic| quic.forget(at));
                // What was on its way may be lost: it is sent again, for a later tick.
                seat.sent.clear();
                seat.state = SeatState::Away(now);
                self.playing -= 1;
                self.recorder().count(Count::Dropped);
                self.due.push(Reverse((now + AWAY, at)));
            }
        }
    }

    /// Everybody says that the game is over.
    fn finish(&mut self) {
        self.is_ending = true;
        for at in 0..self.seats.len() {
            let mut frame = Vec::new();
            self.seats[at].player.finish(b"over", &mut frame);
            self.say(at, &frame);
        }
    }

    fn lost(&mut self, at: usize, why: &str) {
        let recorder = self.recorder();
        let seat = &mut self.seats[at];
        seat.line = None;
        self.quic.iter_mut().for_each(|quic| quic.forget(at));
        match seat.state {
            SeatState::Over => return,
            SeatState::Playing => {
                self.playing -= 1;
                recorder.count(Count::Lost);
                recorder.error(format!("{LOST_ERROR}{why}"));
            }
            SeatState::Out | SeatState::Away(_) => recorder.error(format!("{LOGIN_ERROR}{why}")),
        }
        recorder.failed();
        seat.state = SeatState::Over;
        self.over += 1;
    }
}

/// The connections of all players over QUIC, on a socket that is watched.
fn quic(thread: &ThreadContext, trust: &Trust, poll: &mut Poll) -> Result<QuicLines, String> {
    let target = thread.setup.addresses.first().ok_or("no address")?;
    let mut quic = QuicLines::new(trust, *target)?;
    let registered = poll.registry().register(&mut quic.socket, QUIC, Interest::READABLE);
    registered.map_err(|error| error.to_string())?;
    Ok(quic)
}

/// The token of the socket of QUIC.
const QUIC: Token = Token(usize::MAX);

impl Line {
    fn flush(&mut self) -> std::io::Result<()> {
        let mut sent = 0;
        while sent < self.unsent.len() {
            match self.socket.write(&self.unsent[sent..]) {
                Ok(length) => sent += length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.unsent.drain(..sent);
        Ok(())
    }
}
