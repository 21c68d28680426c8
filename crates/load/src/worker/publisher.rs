//! The worker's publisher: a thread of its own, so that neither HTTP nor a blocked socket delays the players.

use std::collections::HashSet;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use carillon_wire::stanza::Condition;
use serde_json::Value;

use super::api::{Api, CallError};
use super::mark::{self, Mark, Marks};
use super::schedule::{Schedule, Share};
use super::setup::Setup;
use super::step::{StepStart, ThreadContext};
use crate::blocking::{Client, ConnectError, StreamLost};
use crate::client::{ClientEvent, stanzas};
use crate::control::Fault;
use crate::plan::{Action, Publish, PublishMethod};

/// How long the answer to a request may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// How often the publisher reads its connection while it has nothing to do.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// The thread's state.
struct Publisher {
    thread: ThreadContext,
    marks: Marks,
    client: Option<Client>,
    /// One per node.
    apis: Vec<Api>,
    created: HashSet<String>,
}

/// Does the publisher's part of each step, until the worker stops the thread.
pub(super) fn work(thread: ThreadContext) -> Result<(), Fault> {
    let marks = Marks::of(&thread.setup.job.test);
    let apis = Api::of(&thread.setup.job.target);
    let mut publisher = Publisher { thread, marks, client: None, apis, created: HashSet::new() };
    let mut next = None;
    loop {
        let step = match next.take() {
            Some(step) => Ok(step),
            None => publisher.thread.steps.recv_timeout(POLL_INTERVAL),
        };
        match step {
            Ok(step) => {
                next = publisher.run(step);
                if next.is_none() {
                    publisher.thread.barrier.done(step.serial);
                }
            }
            Err(RecvTimeoutError::Timeout) => publisher.drain(),
            Err(RecvTimeoutError::Disconnected) => {
                // What was refused last has to be told, too.
                publisher.drain();
                return Ok(());
            }
        }
    }
}

/// Whether a job has anything for a publisher to do.
pub(super) fn is_needed(setup: &Setup) -> bool {
    let phases = &setup.job.scenario.phases;
    let needs = |action: &Action| matches!(action, Action::Publish(_) | Action::Subscribe { .. });
    setup.job.publishes && phases.iter().any(|phase| needs(&phase.action))
}

/// How items of a topic are published: as the phase that publishes them specifies.
pub(super) fn publish_method(setup: &Setup, topic: &str) -> PublishMethod {
    let publishes = setup.job.scenario.phases.iter().find_map(|phase| match &phase.action {
        Action::Publish(publish) if publish.topic == topic => Some(publish.by),
        _ => None,
    });
    publishes.unwrap_or(PublishMethod::Pubsub)
}

impl Publisher {
    /// Does a step; returns the next one if that began before this one was done.
    fn run(&mut self, step: StepStart) -> Option<StepStart> {
        match step.action(&self.thread.setup)?.clone() {
            Action::Subscribe { topic } if step.position.step == 1 => {
                self.create(&topic, publish_method(&self.thread.setup, &topic));
                None
            }
            Action::Publish(publish) => self.publish_all(&publish, &step),
            _ => None,
        }
    }

    fn publish_all(&mut self, publish: &Publish, step: &StepStart) -> Option<StepStart> {
        self.create(&publish.topic, publish.by);
        let Some(rate) = &publish.rate else {
            let next = self.wait_until(step.at);
            if next.is_none() {
                self.publish(publish, step, step.position.step.saturating_sub(1), step.at);
            }
            return next;
        };
        let mut schedule = Schedule::new(rate, Share { first: 0, count: 1, total: 1 }, step.at);
        for item in 0..publish.items {
            let due = schedule.next()?;
            if let Some(next) = self.wait_until(due) {
                return Some(next);
            }
            schedule.take(due);
            self.publish(publish, step, item, due);
        }
        None
    }

    /// Waits until a time; returns the next step if it begins earlier.
    fn wait_until(&mut self, due: Instant) -> Option<StepStart> {
        loop {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            match self.thread.steps.recv_timeout(left.min(POLL_INTERVAL)) {
                Ok(step) => return Some(step),
                Err(RecvTimeoutError::Timeout) if left > POLL_INTERVAL => self.drain(),
                Err(RecvTimeoutError::Timeout) => {}
                // The caller's next `recv` finds the end.
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    fn publish(&mut self, publish: &Publish, step: &StepStart, item: u32, due: Instant) {
        let number = mark::number(step.position.phase, item);
        let mark = Mark { number, due_unix_ns: self.thread.setup.clock.unix_ns(due) };
        let payload = self.marks.json(mark, publish.payload_bytes);
        self.thread.recorder.sent(due.elapsed());
        let published = match publish.by {
            PublishMethod::Pubsub => {
                self.publish_by_pubsub(&publish.topic, number, &payload, publish.rate.is_some())
            }
            PublishMethod::Http => self.at_every_api(|api| api.publish(&publish.topic, &payload)),
        };
        if let Err(kind) = published {
            self.thread.recorder.error(format!("publish: {kind}"));
        }
    }

    fn create(&mut self, topic: &str, by: PublishMethod) {
        if self.created.contains(topic) {
            return;
        }
        let created = match by {
            PublishMethod::Pubsub => self.create_by_pubsub(topic),
            PublishMethod::Http => self.at_every_api(|api| api.create(topic)),
        };
        match created {
            Ok(()) => drop(self.created.insert(topic.to_owned())),
            Err(kind) => self.thread.recorder.error(format!("create topic: {kind}")),
        }
    }

    /// Sends a request to the APIs of all nodes at the same time.
    fn at_every_api(&self, request: impl Fn(&Api) -> Result<(), CallError> + Sync) -> Result<(), String> {
        let (first, others) = self.apis.split_first().ok_or("pass --http and --key")?;
        std::thread::scope(|scope| {
            let request = &request;
            let others: Vec<_> = others.iter().map(|api| scope.spawn(move || request(api))).collect();
            let first = request(first);
            let others = others.into_iter().map(|other| other.join().expect("a request does not panic"));
            std::iter::once(first).chain(others).try_for_each(|done| done.map_err(|error| error.to_string()))
        })
    }

    fn create_by_pubsub(&mut self, topic: &str) -> Result<(), String> {
        let request = stanzas::create(self.thread.setup.service.clone(), topic);
        let answer = self.client()?.iq(request, ANSWER_TIMEOUT);
        match stanzas::error(&answer.map_err(|error| self.lost(&error))?) {
            Some(error) if error.condition != Condition::Conflict => Err(stanzas::refusal(&error)),
            _ => Ok(()),
        }
    }

    /// Publishes; waits for the answer only in a closed loop.
    fn publish_by_pubsub(
        &mut self,
        topic: &str,
        number: u32,
        payload: &Value,
        is_open_loop: bool,
    ) -> Result<(), String> {
        let id = format!("{}-{number}", self.thread.setup.job.test);
        let payload = stanzas::json(&payload.to_string());
        let request = stanzas::publish(self.thread.setup.service.clone(), topic, Some(&id), payload);
        if is_open_loop {
            let sent = self.client()?.send(&request.with_id(&*id));
            return sent.map_err(|error| self.lost(&error));
        }
        let answer = self.client()?.iq(request, ANSWER_TIMEOUT);
        let answer = answer.map_err(|error| self.lost(&error))?;
        stanzas::error(&answer).map_or(Ok(()), |error| Err(stanzas::refusal(&error)))
    }

    fn client(&mut self) -> Result<&mut Client, String> {
        if self.client.is_none() {
            let setup = &self.thread.setup;
            let options = setup.publisher().map_err(|_| "the publisher's account is not a JID")?;
            // The publisher is one account, which connects to the first node.
            let address = setup.job.target.client_places().next().unwrap_or_default();
            let client = Client::connect(address.as_str(), options);
            self.client = Some(client.map_err(|error| match error {
                ConnectError::Ended(end) => {
                    let words = end.words().map(|words| format!(" ({words})")).unwrap_or_default();
                    format!("the publisher's login: {}{words}", end.kind())
                }
                other => format!("the publisher: {other}"),
            })?);
        }
        self.client.as_mut().ok_or_else(|| "the publisher has no connection".to_owned())
    }

    /// Reads what arrived: requests of the server are answered, refused items are counted.
    fn drain(&mut self) {
        let Some(client) = &mut self.client else { return };
        loop {
            match client.recv(Duration::ZERO) {
                Ok(Some(ClientEvent::Stanza(stanza))) => {
                    if let Some(error) = stanzas::error(&stanza) {
                        self.thread.recorder.refused("publish", &error);
                    }
                }
                Ok(Some(_)) => {}
                Ok(None) => return,
                Err(error) => {
                    let kind = self.lost(&error);
                    return self.thread.recorder.error(format!("publish: {kind}"));
                }
            }
        }
    }

    /// Gives up a stream that has ended or does not answer; the next item is published on a new one.
    fn lost(&mut self, error: &StreamLost) -> String {
        self.client = None;
        match error {
            StreamLost::Ended(end) => format!("the publisher was lost: {}", end.kind()),
            StreamLost::Io(error) => format!("the publisher was lost: {}", error.kind()),
            StreamLost::Timeout(_) => "no answer".to_owned(),
        }
    }
}
