//! What a topic's home asked the store for, and what it does with the answer.

use crate::command::{Asker, Refusal};
use crate::model::{Affiliation, Item, OperationId, TopicConfig, TopicRecord};
use crate::ports::{Fault, Missing};
use bytes::Bytes;
use carillon_wire::jid::BareJid;
use std::sync::Arc;

/// What the store was asked for.
#[derive(Debug)]
pub(super) enum Step {
    /// The record.
    Load,
    /// Its last item, which a home before this one may have told nobody.
    LastItem(Arc<TopicRecord>),
    /// To create it; with the first item when it was a publication that creates it.
    Create { first: Option<Draft>, asker: Asker },
    /// Whether the publisher follows the topic.
    Standing { record: Arc<TopicRecord>, draft: Draft, asker: Asker },
    /// Its two newest items, before an edit that may take the last one away.
    Look(Editing),
    /// To edit it.
    Edit(Editing),
    /// To remove it.
    Delete { record: Arc<TopicRecord>, asker: Asker },
    /// To publish an item, once if it has the id of an operation.
    Publish(Option<OperationId>, Asker),
    /// To make an account follow it.
    Subscribe(BareJid, Asker),
    /// To end an account's subscription; there may be no asker.
    Unsubscribe(BareJid, Option<Asker>),
    /// Its last item, for anonymous followers.
    Listen { record: Arc<TopicRecord>, asker: Asker },
    /// Items.
    Items(Asker),
    /// The ids of items.
    ItemNames(Asker),
    /// Followers.
    Jids(Asker),
}

impl Step {
    /// Who waits for it.
    pub(super) fn asker(self) -> Option<Asker> {
        match self {
            Step::Load | Step::LastItem(_) => None,
            Step::Unsubscribe(_, asker) => asker,
            Step::Look(editing) | Step::Edit(editing) => Some(editing.asker),
            Step::Create { asker, .. }
            | Step::Standing { asker, .. }
            | Step::Delete { asker, .. }
            | Step::Publish(_, asker)
            | Step::Subscribe(_, asker)
            | Step::Listen { asker, .. }
            | Step::Items(asker)
            | Step::ItemNames(asker)
            | Step::Jids(asker) => Some(asker),
        }
    }
}

/// An item that is not published yet.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) id: Box<str>,
    pub(super) publisher: Option<BareJid>,
    pub(super) payload: Bytes,
    /// Names the publication, if it is to be done once.
    pub(super) operation: Option<OperationId>,
}

/// An operation that needs the topic exclusively.
#[derive(Debug)]
pub(super) enum Edit {
    Retract { item: Box<str>, notify: Option<bool> },
    Purge,
    Configure(TopicConfig),
    Affiliate(Vec<(BareJid, Affiliation)>),
}

/// An edit under way.
#[derive(Debug)]
pub(super) struct Editing {
    /// The topic as it was before.
    pub(super) record: Arc<TopicRecord>,
    pub(super) edit: Edit,
    /// Its two newest items before, where they matter.
    pub(super) newest: Vec<Arc<Item>>,
    pub(super) asker: Asker,
}

/// The store's answer, with [`Refusal::NotFound`] where it found nothing.
pub(super) fn found<T>(answer: Result<Option<T>, Fault>) -> Result<T, Refusal> {
    answer?.ok_or(Refusal::NotFound)
}

/// The result of a write.
pub(super) fn done(answer: Result<Result<(), Missing>, Fault>) -> Result<(), Refusal> {
    Ok(answer??)
}
