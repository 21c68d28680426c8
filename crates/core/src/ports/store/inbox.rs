//! How the conversations of archives stand (XEP-0430). The archives themselves are in [`archive`](super::archive).

#![expect(missing_docs, reason = "the sentence of a question says what its fields are")]

use super::question::questions;
use super::{Missing, Page};
use crate::model::{
    ArchiveStart, Conversation, ConversationChange, DomainId, InboxEntry, InboxFilter, InboxTotals,
};
use carillon_wire::jid::BareJid;

questions! {
    Inbox,
    reads {
        ReadInbox => Option<InboxPage>,
    }
    writes {
        ChangeConversation => Result<Conversation, Missing>,
    }
    once {
        EmptyBin => Result<Emptied, Missing>,
    }
}

/// A page of an account's conversations, the one with the newest message first, or the one with the oldest. A conversation is named by its newest
/// message, which need not be there any more. None where there is no such account. The page is bounded as [`Page`] says, and costs its size however
/// many conversations there are.
#[derive(Clone, Debug)]
pub struct ReadInbox {
    pub domain: DomainId,
    pub local: Box<str>,
    pub filter: InboxFilter,
    pub is_oldest_first: bool,
    pub start: ArchiveStart,
    pub page: Page,
}

/// The answer to [`ReadInbox`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InboxPage {
    /// The conversations, in the order that was asked for.
    pub entries: Vec<InboxEntry>,
    /// Whether more would follow in the direction of the page.
    pub more: bool,
    /// Of all that the filter lets through, as far as they are counted.
    pub totals: InboxTotals,
}

/// Changes how a conversation stands. Missing where there is none.
#[derive(Clone, Debug)]
pub struct ChangeConversation {
    pub domain: DomainId,
    pub local: Box<str>,
    pub with: BareJid,
    pub change: ConversationChange,
}

/// Takes conversations out of the account's bin: those with accounts, and those in rooms, at most `max` of either. Their messages stay in the archive.
#[derive(Clone, Debug)]
pub struct EmptyBin {
    pub domain: DomainId,
    pub local: Box<str>,
    pub max: u32,
}

/// What [`EmptyBin::max`] is, unless there is a reason: other writes wait for some milliseconds.
pub const BIN_PART: u32 = 500;

/// What came of [`EmptyBin`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Emptied {
    /// How many conversations it was.
    pub conversations: u32,
    /// Whether there may be more in it: then it is asked again.
    pub more: bool,
}
