//! Message archives (XEP-0313).

#![expect(missing_docs, reason = "the sentence of a question says what its fields are")]

use super::question::questions;
use super::{Missing, Page};
use crate::model::{
    AccountId, ArchiveEnds, ArchiveFilter, ArchiveId, ArchivePreferences, ArchiveSide, ArchiveStart,
    ArchivedMessage, DomainId, UnixMs,
};
use bytes::Bytes;

questions! {
    Archive,
    reads {
        ArchivePage => ArchivePageAnswer,
        ArchivedMessages => ArchivePageAnswer,
        ReadArchiveEnds => Option<ArchiveEnds>,
        ReadArchivePreferences => Option<ArchivePreferences>,
    }
    writes {
        SetArchivePreferences => Result<(), Missing>,
        EraseArchive => Result<(), Missing>,
        SweepArchives => SweepArchivesAnswer,
    }
    once {
        KeepMessage => KeepMessageAnswer,
    }
}

/// Keeps a message in the archives of its two sides, in one commit: in that of each whose preferences want it. A side is none where its domain has
/// no archives. Both sides share what is stored.
///
/// In the same commit the conversation changes on both sides ([`Conversation`](crate::model::Conversation)): a message with contents is its newest; and if the sender says that
/// one with the id `displayed` was seen, everything up to that one is read, provided that it is among the newest [`MARKED_MAX`](crate::model::MARKED_MAX) unread ones.
#[derive(Clone, Debug)]
pub struct KeepMessage {
    pub sender: Option<ArchiveSide>,
    pub recipient: Option<ArchiveSide>,
    pub received: UnixMs,
    pub stanza: Bytes,
    pub has_contents: bool,
    pub displayed: Option<Box<str>>,
}

/// What became of [`KeepMessage`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepMessageAnswer {
    /// It is kept.
    Kept {
        /// Its number in both archives: 1 or higher, and higher than that of every message that was kept in either before.
        id: ArchiveId,
        /// Whether it is in the sender's archive.
        sender: bool,
        /// Whether it is in the recipient's.
        recipient: bool,
    },
    /// Nobody wants it; or the recipient's domain is of this store, and there is no such account.
    NotKept,
}

/// A page of an account's archive: the messages that the filter lets through, in the order of their numbers, whatever the direction. A page is
/// bounded as [`Page`] says.
#[derive(Clone, Debug)]
pub struct ArchivePage {
    pub domain: DomainId,
    pub local: Box<str>,
    pub filter: ArchiveFilter,
    pub start: ArchiveStart,
    pub page: Page,
}

/// Messages of an account's archive by their numbers, in their order. Not bounded in bytes: whoever asks for many asks more than once.
#[derive(Clone, Debug)]
pub struct ArchivedMessages {
    pub domain: DomainId,
    pub local: Box<str>,
    pub ids: Vec<ArchiveId>,
}

/// A store looks at some more messages than so many at most for one page, however few of them the filter lets through.
pub const EXAMINED_MAX: usize = 4096;

/// The answer to [`ArchivePage`] and [`ArchivedMessages`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArchivePageAnswer {
    /// The messages, the oldest first.
    Page {
        messages: Vec<ArchivedMessage>,
        /// Whether more would follow in the direction of the page.
        more: bool,
        /// Where to go on if the page ended because so many messages were looked at ([`EXAMINED_MAX`]): the last of them, whether or not it is in the page.
        reached: Option<ArchiveId>,
    },
    /// A message that was named is not in the archive.
    NotFound,
    /// There is no such account.
    NoAccount,
}

/// The oldest and the newest message of an account's archive.
#[derive(Clone, Debug)]
pub struct ReadArchiveEnds {
    pub domain: DomainId,
    pub local: Box<str>,
}

/// What an account wants in its archive. None where there is no such account.
#[derive(Clone, Debug)]
pub struct ReadArchivePreferences {
    pub domain: DomainId,
    pub local: Box<str>,
}

/// Sets what an account wants in its archive from now on.
#[derive(Clone, Debug)]
pub struct SetArchivePreferences {
    pub domain: DomainId,
    pub local: Box<str>,
    pub preferences: ArchivePreferences,
}

/// Empties an account's archive. What was in it is not read any more at once; [`SweepArchives`] frees the space.
#[derive(Clone, Debug)]
pub struct EraseArchive {
    pub domain: DomainId,
    pub local: Box<str>,
}

/// Removes from archives what their domains do not keep any longer ([`ArchiveBounds`](crate::model::ArchiveBounds)), what was erased, and what
/// belonged to accounts that are gone: of the accounts after `after`, and at most `max` messages.
#[derive(Clone, Debug)]
pub struct SweepArchives {
    pub now: UnixMs,
    pub after: AccountId,
    pub max: u32,
}

/// What [`SweepArchives`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SweepArchivesAnswer {
    /// How many messages it took out of archives.
    pub removed: u32,
    /// Where to go on, which may be where it began; none when all archives were looked at.
    pub next: Option<AccountId>,
}
