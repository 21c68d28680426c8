//! Files that clients upload (XEP-0363). What is in them is elsewhere, under the id of the file and the number of the attempt that uploaded it: the
//! store says which attempts count, and which are to be removed there.

#![expect(missing_docs, reason = "the sentence of a question says what its fields are")]

use super::question::questions;
use super::{Load, Loads};
use crate::model::{DomainId, UnixMs, UploadAttempt, UploadBounds, UploadId, UploadedFile};

questions! {
    Uploads,
    reads {
        Upload => Option<Box<UploadedFile>>,
        UploadsOf => Vec<(UploadId, UploadedFile)>,
        RemovableUploads => Vec<(UploadId, UploadAttempt)>,
    }
    writes {
        CreateSlot => CreateSlotAnswer,
        StartUpload => StartUploadAnswer,
        FinishUpload => FinishUploadAnswer,
        DeleteUpload => (),
        ExpireUploads => bool,
        ForgetUploads => (),
    }
    once {}
    loads {
        CreateSlot,
    }
}

/// The file or slot of a domain with this id, expired or not.
#[derive(Clone, Debug)]
pub struct Upload {
    pub domain: DomainId,
    pub id: UploadId,
}

/// The files and slots of an account, that which expires first at the beginning, those after `after`: at most `max`.
#[derive(Clone, Debug)]
pub struct UploadsOf {
    pub domain: DomainId,
    pub local: Box<str>,
    pub after: Option<(UnixMs, UploadId)>,
    pub max: u16,
}

/// Attempts whose contents were to be removed at `until` or before, at most `max` of them.
#[derive(Clone, Debug)]
pub struct RemovableUploads {
    pub until: UnixMs,
    pub max: u32,
}

/// What a file or slot takes of the bounds beside its own bytes: its row, and the last block of its contents.
pub const FILE_COST: u64 = 4096;

/// Makes a slot, which takes its bytes and [`FILE_COST`] of the bounds until it expires. A slot that is there is answered the same.
#[derive(Clone, Debug)]
pub struct CreateSlot {
    pub domain: DomainId,
    pub local: Box<str>,
    pub id: UploadId,
    pub name: Box<str>,
    pub media_type: Box<str>,
    pub bytes: u64,
    pub expires: UnixMs,
    pub bounds: UploadBounds,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateSlotAnswer {
    /// It is there.
    Created,
    /// The account, or its domain, has no room for it; when the first of the account's files expires, if it has any.
    Full(Option<UnixMs>),
    /// There is no such account.
    NoAccount,
}

/// An attempt to upload into a slot begins. Its contents are to be removed at `remove_at`, unless it is finished before; until then the slot stays.
#[derive(Clone, Debug)]
pub struct StartUpload {
    pub domain: DomainId,
    pub id: UploadId,
    pub attempt: UploadAttempt,
    pub now: UnixMs,
    pub remove_at: UnixMs,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartUploadAnswer {
    /// It may write.
    Started,
    /// Another attempt uploaded the file.
    Taken,
    /// The slot is not there, or it has expired.
    Missing,
}

/// The contents of an attempt are on disk: the slot is a file from now on, which expires at `expires`.
#[derive(Clone, Debug)]
pub struct FinishUpload {
    pub domain: DomainId,
    pub id: UploadId,
    pub attempt: UploadAttempt,
    pub now: UnixMs,
    pub expires: UnixMs,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinishUploadAnswer {
    /// The file is there.
    Finished,
    /// Another attempt uploaded it.
    Taken,
    /// The slot is not there any more, or the attempt took too long.
    Missing,
}

/// Deletes a file or slot, if it is there. The contents are to be removed from now on.
#[derive(Clone, Debug)]
pub struct DeleteUpload {
    pub domain: DomainId,
    pub id: UploadId,
}

/// Deletes what has expired, at most `max` of them; whether there is more.
#[derive(Clone, Debug)]
pub struct ExpireUploads {
    pub now: UnixMs,
    pub max: u32,
}

/// The contents of these attempts were removed.
#[derive(Clone, Debug)]
pub struct ForgetUploads {
    pub removed: Vec<(UploadId, UploadAttempt)>,
}

impl Loads for CreateSlot {
    fn load(&self) -> Load<'_> {
        Load { bytes: self.name.len() + self.media_type.len(), account: Some((self.domain, &self.local)) }
    }
}
