//! One topic at its home: what is known of it, and the operations that wait.
//!
//! ```text
//! Loading ─► Open ◄─► Held ─► Absent      (Held: one operation has the topic for itself)
//!    └────► Absent ─► Held ─► Open
//! ```

use super::rights::{self, Grant};
use super::step::{Stage, Step};
use crate::command::{Actor, Asker, TopicOp};
use crate::model::{Ticket, TopicKey, TopicRecord};
use crate::ports::Ask;
use crate::ports::store::topics;
use crate::session::Cx;
use std::collections::VecDeque;
use std::sync::Arc;

/// One topic.
#[derive(Debug)]
pub(super) struct Home {
    /// The name of its domain.
    pub(super) domain: Arc<str>,
    pub(super) stage: Stage,
    waiting: VecDeque<QueuedOp>,
    /// The questions to the store, oldest first.
    asked: VecDeque<(Ticket, Step)>,
    /// How often the shard has tidied since the topic was used.
    idle: u8,
}

/// An operation that has not begun.
#[derive(Debug)]
pub(super) struct QueuedOp {
    pub(super) actor: Actor,
    pub(super) op: TopicOp,
    pub(super) asker: Asker,
}

/// Questions per topic for which memory is kept.
const ASKED_KEPT: usize = 16;

/// Which operations on a topic may overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Concurrency {
    /// It asks the store nothing: it overlaps with any.
    Silent,
    /// It may begin while other writes are under way.
    Write,
    /// It begins when the writes before it are answered; others need not wait for it.
    Read,
    /// It needs the topic exclusively, because it changes what others are checked against, or asks more than one question.
    Alone,
}

impl Home {
    /// A topic of which nothing is known yet.
    pub(super) fn load_from_store(domain: Arc<str>, key: &TopicKey, cx: &mut Cx<'_>) -> Home {
        let (waiting, asked) = (VecDeque::new(), VecDeque::new());
        let mut home = Home { domain, stage: Stage::Loading, waiting, asked, idle: 0 };
        home.read_record(key, cx);
        home
    }

    /// Asks the store for the topic's record.
    pub(super) fn read_record(&mut self, key: &TopicKey, cx: &mut Cx<'_>) {
        self.ask(key, topics::Topic { domain: key.domain, name: (*key.name).into() }, Step::Load, cx);
    }

    /// What is known of the topic may be wrong: it is read again, and what is asked meanwhile waits.
    pub(super) fn load_again(&mut self, key: &TopicKey, cx: &mut Cx<'_>) {
        self.stage = Stage::Loading;
        self.read_record(key, cx);
    }

    /// Asks the store.
    pub(super) fn ask(&mut self, key: &TopicKey, question: impl Into<Ask>, step: Step, cx: &mut Cx<'_>) {
        let ticket = cx.ask_for_topic(key.clone(), question);
        self.asked.push_back((ticket, step));
    }

    /// The step that an answer belongs to. Answers nearly always come in the order of the questions.
    pub(super) fn take_step(&mut self, ticket: Ticket) -> Option<Step> {
        let at = self.asked.iter().position(|(asked, _)| *asked == ticket)?;
        let (_, step) = self.asked.remove(at)?;
        if self.asked.is_empty() && self.asked.capacity() > ASKED_KEPT {
            // A topic at rest does not keep what a burst made it grow to.
            self.asked = VecDeque::new();
        }
        Some(step)
    }

    /// How many operations were taken and not answered, without those that only read.
    pub(super) fn load(&self) -> usize {
        let begun = match self.stage {
            Stage::Open { writes, .. } => writes,
            Stage::Held => 1,
            Stage::Loading | Stage::Absent => 0,
        };
        begun + self.waiting.len()
    }

    /// Queues an operation.
    pub(super) fn push(&mut self, waiting: QueuedOp) {
        self.idle = 0;
        self.waiting.push_back(waiting);
    }

    /// The next operation, if it may begin now.
    pub(super) fn next(&mut self) -> Option<QueuedOp> {
        let next = self.waiting.front()?;
        let may_begin = match &self.stage {
            Stage::Loading | Stage::Held => false,
            Stage::Absent => true,
            Stage::Open { record, writes } => match concurrency(next, record) {
                Concurrency::Silent | Concurrency::Write => true,
                Concurrency::Read | Concurrency::Alone => *writes == 0,
            },
        };
        if may_begin { self.waiting.pop_front() } else { None }
    }

    /// Takes all operations that wait, so that they can be refused.
    pub(super) fn drain(&mut self) -> Vec<QueuedOp> {
        self.waiting.drain(..).collect()
    }

    /// A write was begun.
    pub(super) fn wrote(&mut self) {
        if let Stage::Open { writes, .. } = &mut self.stage {
            *writes += 1;
        }
    }

    /// A write was answered. `gone`: the answer was that there is no such topic.
    pub(super) fn written(&mut self, gone: bool) {
        if let Stage::Open { writes, .. } = &mut self.stage {
            *writes -= 1;
            if gone && *writes == 0 {
                self.stage = Stage::Absent;
            }
        }
    }

    /// The topic exists, and no operation holds it exclusively.
    pub(super) fn open(&mut self, record: Arc<TopicRecord>) {
        self.stage = Stage::Open { record, writes: 0 };
    }

    /// Whether no operation is under way or waits.
    pub(super) fn is_at_rest(&self) -> bool {
        matches!(self.stage, Stage::Open { writes: 0, .. })
            && self.waiting.is_empty()
            && self.asked.is_empty()
    }

    /// Whether there is no such topic and no operation waits for it.
    pub(super) fn is_nothing(&self) -> bool {
        matches!(self.stage, Stage::Absent) && self.waiting.is_empty() && self.asked.is_empty()
    }

    /// Counts that the shard tidied. Returns how often it has since the topic was used.
    pub(super) fn idle_turn(&mut self) -> u8 {
        self.idle = if self.is_at_rest() { self.idle.saturating_add(1) } else { 0 };
        self.idle
    }

    /// How many affiliations it has.
    pub(super) fn affiliations(&self) -> usize {
        match &self.stage {
            Stage::Open { record, .. } => record.affiliations.len(),
            Stage::Loading | Stage::Held | Stage::Absent => 0,
        }
    }
}

fn concurrency(waiting: &QueuedOp, record: &TopicRecord) -> Concurrency {
    match &waiting.op {
        TopicOp::Describe | TopicOp::Manage => Concurrency::Silent,
        TopicOp::Items { .. } | TopicOp::ItemNames { .. } | TopicOp::Subscribers { .. } => Concurrency::Read,
        TopicOp::Subscribe { .. } | TopicOp::Unsubscribe { .. } => Concurrency::Write,
        op @ (TopicOp::Publish { .. } | TopicOp::PublishIf { .. } | TopicOp::PublishNothing { .. }) => {
            match rights::grant(&waiting.actor, op, record) {
                Ok(Grant::IfFollowing) => Concurrency::Alone,
                Ok(Grant::Given) | Err(_) => Concurrency::Write,
            }
        }
        TopicOp::Create { .. }
        | TopicOp::Put { .. }
        | TopicOp::Configure { .. }
        | TopicOp::Amend { .. }
        | TopicOp::Delete
        // What is published while its last item is read would be told before it.
        | TopicOp::Listen
        | TopicOp::Retract { .. }
        | TopicOp::Purge
        | TopicOp::SetAffiliations { .. } => Concurrency::Alone,
    }
}
