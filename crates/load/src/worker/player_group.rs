//! The players of one thread: in every action they log in, are counted, and are reported when their session is lost.

use std::ops::Range;
use std::sync::mpsc::TryRecvError;
use std::time::{Duration, Instant};

use carillon_wire::stanza::Stanza;

use super::actions::{self, Executor, Idle, Loss, Next};
use super::context::ActionContext;
use super::keepalive::KeepAlive;
use super::player_states::{PlayerState, PlayerStates};
use super::recorder::{Count, Metric};
use super::step::{StepStart, ThreadContext};
use super::watch::Watch;
use crate::client::ClientEvent;
use crate::control::{LOGIN_ERROR, LOST_ERROR};
use crate::light::LightEvent;
use crate::plan::{Action, Protocol};
use crate::swarm::{Flow, Handler, Network, SwarmEvent};

/// The time that a server has to close the streams of players who leave.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(5);

/// The players of a thread, and what they are doing.
pub(super) struct PlayerGroup {
    thread: ThreadContext,
    states: PlayerStates,
    keepalive: KeepAlive,
    executor: Box<dyn Executor>,
    /// The player whose stream has just been resumed: it is ready next, and has not logged in.
    resumed: Option<usize>,
    /// What players receive around the event of the test, in its phase.
    watch: Option<Watch>,
    /// The step that is not done.
    step: Option<StepStart>,
    /// The test is over.
    leaving: Option<Leaving>,
}

/// Players close their streams, and wait for the server to do so.
struct Leaving {
    until: Instant,
    left: usize,
}

impl PlayerGroup {
    /// Players with these numbers, who do nothing yet.
    pub(super) fn new(thread: ThreadContext, numbers: Range<usize>) -> Self {
        let needs_pings = thread.setup.job.scenario.players.protocol == Protocol::Light;
        let keepalive = KeepAlive::new(needs_pings, &numbers);
        Self {
            thread,
            states: PlayerStates::new(numbers),
            keepalive,
            executor: Box::new(Idle),
            resumed: None,
            watch: None,
            step: None,
            leaving: None,
        }
    }

    /// Whether the test is over and no stream is left that the server would keep for a client to resume: in the next test
    /// it would be a session of somebody who is not there.
    fn has_left(&mut self, now: Instant, network: &mut Network) -> bool {
        if let Some(leaving) = &self.leaving {
            return leaving.left == 0 || now >= leaving.until;
        }
        // A test that is aborted tells what was noticed up to then.
        self.finish_watch();
        let resumable = self.thread.setup.job.scenario.players.resumption;
        let members: Vec<_> = self.states.members().filter(|_| resumable).collect();
        for number in &members {
            self.states.set(*number, PlayerState::Out);
            network.close(*number);
        }
        let left = members.len();
        self.leaving = Some(Leaving { until: now + LEAVE_TIMEOUT, left });
        left == 0
    }

    /// The executor of the current action, and its context.
    fn executor<'a>(
        &'a mut self,
        now: Instant,
        network: &'a mut Network,
    ) -> (&'a mut dyn Executor, ActionContext<'a>) {
        let Self { thread, states, executor, watch, .. } = self;
        let context =
            ActionContext { setup: &thread.setup, recorder: &thread.recorder, states, network, watch, now };
        (executor.as_mut(), context)
    }

    /// Begins to watch the players when the phase of the event begins.
    fn watch_step(&mut self, step: &StepStart) {
        let event = self.thread.setup.job.event.filter(|event| event.phase == step.position.phase);
        let begun = self.watch.as_ref().is_some_and(|watch| watch.phase() == step.position.phase);
        match event {
            Some(event) if !begun => {
                let numbers = self.states.numbers.clone();
                self.watch = Some(Watch::new(event.phase, step.at + event.at.0, numbers));
            }
            Some(_) => {}
            // A phase that ran out of time has not ended it.
            None => self.finish_watch(),
        }
    }

    /// Ends the watch with the last step of its phase.
    fn end_watch(&mut self, step: &StepStart) {
        let steps = step.action(&self.thread.setup).map_or(1, Action::steps);
        if step.position.step >= steps {
            self.finish_watch();
        }
    }

    fn finish_watch(&mut self) {
        if let Some(watch) = self.watch.take() {
            watch.finish(&self.thread.recorder);
        }
    }

    fn ready(&mut self, number: usize, now: Instant, network: &mut Network) {
        let (count, metric) = match self.resumed.take() == Some(number) {
            true => (Count::StreamsResumed, Metric::Resume),
            false => (Count::Logins, Metric::Login),
        };
        if let PlayerState::LoggingIn(due) = self.states.set(number, PlayerState::In) {
            self.thread.recorder.time(metric, now.saturating_duration_since(due));
        }
        self.thread.recorder.count(count);
        let (executor, mut context) = self.executor(now, network);
        executor.ready(number, &mut context);
    }

    fn stanza(&mut self, number: usize, stanza: &Stanza, now: Instant, network: &mut Network) {
        let (executor, mut context) = self.executor(now, network);
        executor.stanza(number, stanza, &mut context);
    }

    fn light(&mut self, number: usize, event: &LightEvent, now: Instant, network: &mut Network) {
        let (executor, mut context) = self.executor(now, network);
        executor.light(number, event, &mut context);
    }

    fn closed(
        &mut self,
        number: usize,
        (why, words): (&str, Option<&str>),
        now: Instant,
        network: &mut Network,
    ) {
        if let Some(leaving) = &mut self.leaving {
            leaving.left = leaving.left.saturating_sub(1);
            return;
        }
        let recorder = &self.thread.recorder;
        match self.states.set(number, PlayerState::Out) {
            PlayerState::Out => return,
            PlayerState::LoggingIn(_) => recorder.error_with(format!("{LOGIN_ERROR}{why}"), words),
            PlayerState::In => {
                recorder.count(Count::Lost);
                recorder.error_with(format!("{LOST_ERROR}{why}"), words);
                if let Some(watch) = &self.watch {
                    watch.disconnected(now, recorder);
                }
            }
        }
        let (executor, mut context) = self.executor(now, network);
        if executor.lost(number, &mut context) == Loss::Final {
            context.recorder.failed();
        }
    }
}

impl Handler for PlayerGroup {
    fn event(&mut self, index: usize, event: SwarmEvent, now: Instant, network: &mut Network) {
        match event {
            SwarmEvent::Xmpp(ClientEvent::Ready) | SwarmEvent::Light(LightEvent::Ready) => {
                self.ready(index, now, network);
            }
            SwarmEvent::Xmpp(ClientEvent::Secured(security)) if security.resumed => {
                self.thread.recorder.count(Count::Resumed);
            }
            SwarmEvent::Xmpp(ClientEvent::Resumed { resent }) => {
                self.resumed = Some(index);
                self.thread.recorder.add(Count::Resent, resent as u64);
            }
            SwarmEvent::Xmpp(ClientEvent::NotResumed { condition, unhandled, .. }) => {
                self.thread.recorder.not_resumed(&condition);
                self.executor.not_resumed(index, unhandled);
            }
            SwarmEvent::Xmpp(ClientEvent::Closed(end)) => {
                self.closed(index, (&end.kind(), end.words()), now, network);
            }
            SwarmEvent::Light(LightEvent::Closed(end)) => {
                self.closed(index, (&end.to_string(), None), now, network);
            }
            SwarmEvent::Xmpp(ClientEvent::Stanza(stanza)) => self.stanza(index, &stanza, now, network),
            SwarmEvent::Light(event) => self.light(index, &event, now, network),
            SwarmEvent::Xmpp(_) => {}
        }
    }

    fn tick(&mut self, now: Instant, network: &mut Network) -> Flow {
        match self.thread.steps.try_recv() {
            Ok(step) => {
                let action = step.action(&self.thread.setup);
                self.executor = actions::executor(action, &step, &self.thread.setup, &self.states);
                self.watch_step(&step);
                self.step = Some(step);
            }
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) if self.has_left(now, network) => return Flow::Stop,
            Err(TryRecvError::Disconnected) => return Flow::Continue(None),
        }
        self.keepalive.send_due(&self.states, now, network);
        let at = self.step.map(|step| step.at);
        if let Some(at) = at.filter(|at| *at > now) {
            return Flow::Continue(Some(at));
        }
        let (executor, mut context) = self.executor(now, network);
        let next = executor.tick(&mut context);
        self.thread.recorder.set_online(self.states.in_session());
        match next {
            Next::At(wake) => Flow::Continue(wake),
            Next::Done => {
                if let Some(step) = self.step.take() {
                    self.end_watch(&step);
                    self.thread.barrier.done(step.serial);
                }
                Flow::Continue(None)
            }
        }
    }
}
