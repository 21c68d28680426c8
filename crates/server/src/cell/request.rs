//! What an operator asks of a node by another: how it is, to be drained. Questions and answers are records on the bus.

use carillon_core::model::{NodeId, OtherHost};
use carillon_core::ports::Reply;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What is asked of a node.
#[derive(Clone, Debug)]
pub enum NodeRequest {
    /// How it is.
    Report,
    /// Give its homes to the others, and end its connections over a time.
    Drain {
        /// Over how many milliseconds.
        over_ms: u64,
        /// Where clients are sent.
        to: Option<Box<str>>,
    },
    /// Take homes and sessions again.
    CancelDrain,
}

carillon_core::form! {
    enum NodeRequest { 0 = Report, 1 = Drain { over_ms, to }, 2 = CancelDrain }
}

impl NodeRequest {
    /// To be drained.
    pub fn drain(over: Duration, to: Option<&OtherHost>) -> NodeRequest {
        let to = to.map(|to| to.as_str().into());
        NodeRequest::Drain { over_ms: over.as_millis() as u64, to }
    }
}

/// How a node is, as it says itself.
#[derive(Clone, Debug)]
pub struct NodeReport {
    /// Its version.
    pub version: Box<str>,
    /// Whether it takes sessions.
    pub ready: bool,
    /// Milliseconds since it was started.
    pub uptime_ms: u64,
    /// Its shards.
    pub shards: u16,
    /// Connections open on it.
    pub connections: u64,
    /// Of these, those whose sessions are on other nodes.
    pub relayed: u64,
    /// Sessions on it.
    pub sessions: u64,
    /// Of these, those whose connections are on other nodes.
    pub carried: u64,
    /// Its drain, if it is drained.
    pub drain: Option<DrainReport>,
}

carillon_core::form! {
    struct NodeReport { version, ready, uptime_ms, shards, connections, relayed, sessions, carried, drain }
}

/// How far a drain has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrainReport {
    /// Connections and parked sessions when it began.
    pub total: u64,
    /// How many of them are left.
    pub left: u64,
    /// Milliseconds until the last slice is due.
    pub ends_in_ms: u64,
    /// The slices so far.
    pub slices_done: u32,
    /// All slices.
    pub slices: u32,
    /// Where clients are sent.
    pub to: Option<Box<str>>,
}

carillon_core::form! {
    struct DrainReport { total, left, ends_in_ms, slices_done, slices, to }
}

/// Those who wait for the answers of other nodes.
#[derive(Default)]
pub(crate) struct Questions(Mutex<Asked>);

#[derive(Default)]
struct Asked {
    last: u64,
    waiting: BTreeMap<u64, PendingReport>,
}

struct PendingReport {
    at: NodeId,
    since: Instant,
    reply: Reply<NodeReport>,
}

/// Who has waited for so long is given up: the answer is lost.
const LOST_AFTER: Duration = Duration::from_secs(10);
/// So many wait at once. A further one takes the place of the first.
const WAITING_MAX: usize = 1024;

impl Questions {
    /// Somebody waits for an answer of a node: the number by which it answers. Who is given up is not called.
    pub(crate) fn add(&self, at: NodeId, reply: Reply<NodeReport>) -> u64 {
        let mut asked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        asked.waiting.retain(|_, waiting| waiting.since.elapsed() < LOST_AFTER);
        while asked.waiting.len() >= WAITING_MAX {
            asked.waiting.pop_first();
        }
        asked.last += 1;
        let number = asked.last;
        asked.waiting.insert(number, PendingReport { at, since: Instant::now(), reply });
        number
    }

    /// A node has answered.
    pub(crate) fn give(&self, from: NodeId, number: u64, report: NodeReport) {
        let waiting = {
            let mut asked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match asked.waiting.get(&number) {
                Some(waiting) if waiting.at == from => asked.waiting.remove(&number),
                _ => None,
            }
        };
        if let Some(waiting) = waiting {
            (waiting.reply)(report);
        }
    }

    /// A node is gone: nobody waits for its answers.
    pub(crate) fn lose(&self, node: NodeId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).waiting.retain(|_, waiting| waiting.at != node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use carillon_core::form::{Clock, decode, encode};
    use std::sync::mpsc::sync_channel;

    fn report(sessions: u64) -> NodeReport {
        let drain = DrainReport { total: 9, left: 1, ends_in_ms: 2, slices_done: 3, slices: 4, to: None };
        NodeReport {
            version: "1".into(),
            ready: true,
            uptime_ms: 5,
            shards: 2,
            connections: 6,
            relayed: 7,
            sessions,
            carried: 8,
            drain: Some(drain),
        }
    }

    #[test]
    fn who_asked_a_node_is_answered_by_that_node_and_once() {
        let questions = Questions::default();
        let (sender, answers) = sync_channel(4);
        let number = questions.add(
            NodeId(2),
            Box::new(move |report| {
                let _ = sender.try_send(report.sessions);
            }),
        );
        questions.give(NodeId(3), number, report(1));
        questions.give(NodeId(2), number + 1, report(2));
        assert!(answers.try_recv().is_err());
        questions.give(NodeId(2), number, report(3));
        questions.give(NodeId(2), number, report(4));
        assert_eq!(answers.try_iter().collect::<Vec<_>>(), [3]);
    }

    #[test]
    fn nobody_waits_for_a_node_that_is_gone_and_only_so_many_wait() {
        let questions = Questions::default();
        let waits = || Box::new(|_: NodeReport| ());
        questions.add(NodeId(2), waits());
        for _ in 0..2 * WAITING_MAX {
            questions.add(NodeId(3), waits());
        }
        let count = || questions.0.lock().expect("nobody panics with it").waiting.len();
        assert_eq!(count(), WAITING_MAX);
        questions.lose(NodeId(3));
        assert_eq!(count(), 0);
    }

    #[test]
    fn a_report_has_a_form() {
        let read: NodeReport =
            decode(&encode(&report(3), 1), Clock { now_ms: 1, elapsed_ms: 0 }).expect("readable");
        assert_eq!((read.sessions, read.drain), (3, report(3).drain));
    }
}
