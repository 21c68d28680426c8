//! Messages that are kept for accounts that are away.

#![expect(missing_docs, reason = "the sentence of a question says what its fields are")]

use super::question::questions;
use super::{Page, Part};
use crate::model::{DomainId, ExpiredMessage, OfflineMessage, UnixMs, Wake};
use bytes::Bytes;

questions! {
    Offline,
    reads {
        Offline => Part<OfflineMessage>,
        ExpiredOffline => Part<ExpiredMessage>,
    }
    writes {
        DeleteOffline => (),
    }
    once {
        StoreOffline => StoreOfflineAnswer,
    }
}

/// The next offline messages of an account, those after `after`: at most `page`. Their numbers ascend in the order in which they become
/// visible: a database gives them under the lock of the account's row, as it does revisions.
#[derive(Clone, Debug)]
pub struct Offline {
    pub domain: DomainId,
    pub local: Box<str>,
    pub after: u64,
    pub page: Page,
}

/// Messages of all accounts that expired by `now`, the oldest first: at most `page`. They are there until somebody deletes them; the cost
/// is that of those that are found.
#[derive(Clone, Debug)]
pub struct ExpiredOffline {
    pub now: UnixMs,
    pub page: Page,
}

/// Keeps a chat message, unless the account has `queue_max` already, or would have more than `bytes_max` bytes of stanzas with it.
#[derive(Clone, Debug)]
pub struct StoreOffline {
    pub domain: DomainId,
    pub local: Box<str>,
    pub received: UnixMs,
    pub stanza: Bytes,
    pub expires: Option<UnixMs>,
    pub queue_max: u32,
    pub bytes_max: u64,
    /// When it is pushed to the account's registrations, if it is.
    pub wake: Option<Wake>,
}

/// What became of [`StoreOffline`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreOfflineAnswer {
    /// It is kept, under this number ([`OfflineMessage::seq`]): 1 or higher.
    Stored(u64),
    /// There is no such account.
    NoAccount,
    /// The account has as many as it may, or as many bytes.
    Full,
}

/// Deletes the offline messages of an account with these numbers.
#[derive(Clone, Debug)]
pub struct DeleteOffline {
    pub domain: DomainId,
    pub local: Box<str>,
    pub seqs: Vec<u64>,
}
