//! The worker's publisher: a thread of its own, so that neither HTTP nor a blocked socket holds the players up.

use std::collections::HashSet;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use carillon_wire::stanza::Condition;
use serde_json::Value;

use super::api::{self, Api};
use super::hand::{Kit, Turn};
use super::mark::{self, Mark, Marks};
use super::players::kind;
use super::schedule::{Schedule, Share};
use super::setting::Setting;
use crate::blocking::{Client, ConnectError, StreamLost};
use crate::client::{Event, stanzas};
use crate::control::Fault;
use crate::plan::{By, Deed, Publish};

/// How long the answer to a request may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// How often the publisher looks at its connection while it has nothing to do.
const GLANCE: Duration = Duration::from_millis(200);

/// The thread's state.
struct Publisher {
    kit: Kit,
    marks: Marks,
    client: Option<Client>,
    /// One, or one of each node.
    apis: Vec<Api>,
    created: HashSet<String>,
}

/// Publishes what turns ask for, until there are no more turns.
pub(super) fn work(kit: Kit) -> Result<(), Fault> {
    let marks = Marks::of(&kit.setting.job.test);
    let apis = Api::of(&kit.setting.job.target);
    let mut publisher = Publisher { kit, marks, client: None, apis, created: HashSet::new() };
    let mut next = None;
    loop {
        let turn = match next.take() {
            Some(turn) => Ok(turn),
            None => publisher.kit.turns.recv_timeout(GLANCE),
        };
        match turn {
            Ok(turn) => {
                next = publisher.turn(turn);
                if next.is_none() {
                    publisher.kit.steps.done(turn.serial);
                }
            }
            Err(RecvTimeoutError::Timeout) => publisher.drain(),
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}

/// Whether a job has anything for a publisher to do.
pub(super) fn is_needed(setting: &Setting) -> bool {
    let phases = &setting.job.scenario.phases;
    let needs = |deed: &Deed| matches!(deed, Deed::Publish(_) | Deed::Subscribe { .. });
    setting.job.publishes && phases.iter().any(|phase| needs(&phase.deed))
}

/// How items of a topic are published: as the phase that publishes them says.
pub(super) fn means(setting: &Setting, topic: &str) -> By {
    let publishes = setting.job.scenario.phases.iter().find_map(|phase| match &phase.deed {
        Deed::Publish(publish) if publish.topic == topic => Some(publish.by),
        _ => None,
    });
    publishes.unwrap_or(By::Pubsub)
}

impl Publisher {
    /// Does a turn; gives the next one if that began before this one was done.
    fn turn(&mut self, turn: Turn) -> Option<Turn> {
        match turn.deed(&self.kit.setting)?.clone() {
            Deed::Subscribe { topic } if turn.position.step == 1 => {
                self.create(&topic, means(&self.kit.setting, &topic));
                None
            }
            Deed::Publish(publish) => self.publish_all(&publish, &turn),
            _ => None,
        }
    }

    fn publish_all(&mut self, publish: &Publish, turn: &Turn) -> Option<Turn> {
        self.create(&publish.topic, publish.by);
        let Some(rate) = &publish.rate else {
            let next = self.wait_until(turn.at);
            if next.is_none() {
                self.publish(publish, turn, turn.position.step.saturating_sub(1), turn.at);
            }
            return next;
        };
        let mut schedule = Schedule::new(rate, Share { first: 0, count: 1, total: 1 }, turn.at);
        for item in 0..publish.items {
            let due = schedule.next()?;
            if let Some(next) = self.wait_until(due) {
                return Some(next);
            }
            schedule.take(due);
            self.publish(publish, turn, item, due);
        }
        None
    }

    /// Waits, unless another turn comes.
    fn wait_until(&mut self, due: Instant) -> Option<Turn> {
        loop {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            match self.kit.turns.recv_timeout(left.min(GLANCE)) {
                Ok(turn) => return Some(turn),
                Err(RecvTimeoutError::Timeout) if left > GLANCE => self.drain(),
                Err(RecvTimeoutError::Timeout) => {}
                // The end is found by who asks next.
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    fn publish(&mut self, publish: &Publish, turn: &Turn, item: u32, due: Instant) {
        let number = mark::number(turn.position.phase, item);
        let mark = Mark { number, due_unix_ns: self.kit.setting.clock.unix_ns(due) };
        let payload = self.marks.json(mark, publish.payload_bytes);
        self.kit.ledger.sent(due.elapsed());
        let published = match publish.by {
            By::Pubsub => self.publish_by_pubsub(&publish.topic, number, &payload, publish.rate.is_some()),
            By::Http => self.at_every_api(|api| api.publish(&publish.topic, &payload)),
        };
        if let Err(kind) = published {
            self.kit.ledger.error(format!("publish: {kind}"));
        }
    }

    fn create(&mut self, topic: &str, by: By) {
        if self.created.contains(topic) {
            return;
        }
        let created = match by {
            By::Pubsub => self.create_by_pubsub(topic),
            By::Http => self.at_every_api(|api| api.create(topic)),
        };
        match created {
            Ok(()) => drop(self.created.insert(topic.to_owned())),
            Err(kind) => self.kit.ledger.error(format!("create topic: {kind}")),
        }
    }

    /// Asks all of them at the same time.
    fn at_every_api(&self, ask: impl Fn(&Api) -> Result<(), ureq::Error> + Sync) -> Result<(), String> {
        let (first, others) = self.apis.split_first().ok_or("pass --http and --key")?;
        std::thread::scope(|scope| {
            let ask = &ask;
            let others: Vec<_> = others.iter().map(|api| scope.spawn(move || ask(api))).collect();
            let first = ask(first);
            let others = others.into_iter().map(|other| other.join().expect("asking does not panic"));
            std::iter::once(first).chain(others).try_for_each(|done| done.map_err(|error| api::kind(&error)))
        })
    }

    fn create_by_pubsub(&mut self, topic: &str) -> Result<(), String> {
        let request = stanzas::create(self.kit.setting.service.clone(), topic);
        let answer = self.client()?.iq(request, ANSWER_TIMEOUT);
        match stanzas::error(&answer.map_err(|error| self.lost(&error))?) {
            Some(error) if error.condition != Condition::Conflict => Err(error.condition.to_string()),
            _ => Ok(()),
        }
    }

    /// Publishes; does not wait for the answer if more items are to follow at a rate.
    fn publish_by_pubsub(
        &mut self,
        topic: &str,
        number: u32,
        payload: &Value,
        goes_on: bool,
    ) -> Result<(), String> {
        let id = format!("{}-{number}", self.kit.setting.job.test);
        let payload = stanzas::json(&payload.to_string());
        let request = stanzas::publish(self.kit.setting.service.clone(), topic, Some(&id), payload);
        if goes_on {
            let sent = self.client()?.send(&request.with_id(&*id));
            return sent.map_err(|error| self.lost(&error));
        }
        let answer = self.client()?.iq(request, ANSWER_TIMEOUT);
        let answer = answer.map_err(|error| self.lost(&error))?;
        stanzas::error(&answer).map_or(Ok(()), |error| Err(error.condition.to_string()))
    }

    fn client(&mut self) -> Result<&mut Client, String> {
        if self.client.is_none() {
            let setting = &self.kit.setting;
            let options = setting.publisher().map_err(|_| "the publisher's account is not a JID")?;
            // The publisher is one account, so it is at one node.
            let place = setting.job.target.client_places().next().unwrap_or_default();
            let client = Client::connect(place.as_str(), options);
            self.client = Some(client.map_err(|error| match error {
                ConnectError::Ended(end) => format!("the publisher's login: {}", kind(&end)),
                other => format!("the publisher: {other}"),
            })?);
        }
        self.client.as_mut().ok_or_else(|| "the publisher has no connection".to_owned())
    }

    /// Takes what came for the publisher: what the server asks is answered, and refused items are counted.
    fn drain(&mut self) {
        let Some(client) = &mut self.client else { return };
        loop {
            match client.recv(Duration::ZERO) {
                Ok(Some(Event::Stanza(stanza))) => {
                    if let Some(error) = stanzas::error(&stanza) {
                        self.kit.ledger.error(format!("publish: {}", error.condition));
                    }
                }
                Ok(Some(_)) => {}
                Ok(None) => return,
                Err(error) => {
                    let kind = self.lost(&error);
                    return self.kit.ledger.error(format!("publish: {kind}"));
                }
            }
        }
    }

    /// The stream is over, or too slow to be of use: the next item is published on another.
    fn lost(&mut self, error: &StreamLost) -> String {
        self.client = None;
        match error {
            StreamLost::Ended(end) => format!("the publisher was lost: {}", kind(end)),
            StreamLost::Io(error) => format!("the publisher was lost: {}", error.kind()),
            StreamLost::Timeout(_) => "no answer".to_owned(),
        }
    }
}
