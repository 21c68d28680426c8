//! Topics as a kind of home: their operations wait for each other as [`concurrency`] says.

use super::rights::{self, Grant};
use super::step::Step;
use crate::command::{Actor, Asker, TopicOp};
use crate::home::{Concurrency, HomeKey, HomeKind, Place, Stage};
use crate::model::{TopicKey, TopicRecord};
use crate::ports::Ask;
use crate::ports::store::topics;
use crate::session::Cx;
use carillon_wire::jid::BareJid;
use std::sync::Arc;

/// The kind of home that topics have.
#[derive(Debug)]
pub(super) struct Topic;

/// A topic at its home.
pub(super) type Home = Place<Topic>;

/// What is known of a topic beside its record.
#[derive(Debug)]
pub(super) struct TopicState {
    /// The name of its domain.
    pub(super) domain: Arc<str>,
}

/// An operation that has not begun.
#[derive(Debug)]
pub(super) struct QueuedOp {
    pub(super) actor: Actor,
    pub(super) op: TopicOp,
    pub(super) asker: Asker,
}

impl HomeKind for Topic {
    type Key = TopicKey;
    type Record = Arc<TopicRecord>;
    type State = TopicState;
    type Task = QueuedOp;
    type Step = Step;

    const WAITING_BYTES_MAX: usize = 16 << 20;
    const ALL_WAITING_BYTES_MAX: usize = 64 << 20;

    fn task_bytes(queued: &QueuedOp) -> usize {
        queued.op.payload_bytes()
    }

    fn record_bytes(record: &Arc<TopicRecord>) -> usize {
        let names: usize = record.affiliations.iter().map(|(account, _)| account.as_str().len()).sum();
        names + record.affiliations.len() * size_of::<(BareJid, crate::model::Affiliation)>()
    }

    fn ends_something(step: &Step) -> bool {
        match step {
            Step::Edit(_)
            | Step::Delete { .. }
            | Step::Publish(..)
            | Step::Subscribe(..)
            | Step::Unsubscribe(..) => true,
            Step::Load
            | Step::LastItem(_)
            | Step::Create { .. }
            | Step::Standing { .. }
            | Step::Look(_)
            | Step::Listen { .. }
            | Step::Items(_)
            | Step::ItemNames(_)
            | Step::Jids(_) => false,
        }
    }

    fn concurrency(queued: &QueuedOp, record: &Arc<TopicRecord>, _: &TopicState) -> Concurrency {
        concurrency(queued, record)
    }
}

impl Home {
    /// Asks the store for the topic's record.
    pub(super) fn read_record(&mut self, key: &TopicKey, cx: &mut Cx<'_>) {
        self.begin_load();
        self.ask(key, topics::Topic { domain: key.domain, name: (*key.name).into() }, Step::Load, cx);
    }

    /// Asks the store.
    pub(super) fn ask(&mut self, key: &TopicKey, question: impl Into<Ask>, step: Step, cx: &mut Cx<'_>) {
        let ticket = cx.ask_for_home(HomeKey::Topic(key.clone()), question);
        self.asked(ticket, step);
    }

    /// The topic, if it is known to exist.
    pub(super) fn known(&self) -> Option<Arc<TopicRecord>> {
        match self.stage() {
            Stage::Open { record, .. } => Some(record.clone()),
            _ => None,
        }
    }
}

fn concurrency(queued: &QueuedOp, record: &TopicRecord) -> Concurrency {
    match &queued.op {
        TopicOp::Describe | TopicOp::Manage => Concurrency::Silent,
        TopicOp::Items { .. } | TopicOp::ItemNames { .. } | TopicOp::Subscribers { .. } => Concurrency::Read,
        TopicOp::Subscribe { .. } | TopicOp::Unsubscribe { .. } => Concurrency::Write,
        op @ (TopicOp::Publish { .. } | TopicOp::PublishIf { .. } | TopicOp::PublishNothing { .. }) => {
            match rights::grant(&queued.actor, op, record) {
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
