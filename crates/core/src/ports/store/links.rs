//! Short links: where each code of a domain leads, how often it was followed, and the files of the apps that open them.

#![expect(missing_docs, reason = "the sentence of a question says what its fields are")]

use super::Missing;
use super::question::questions;
use crate::model::{self, Click, DomainId, KeyId, LinkFile, LinkId, NotificationId, UnixMs};
use bytes::Bytes;

questions! {
    Links,
    reads {
        Link => Option<Box<model::Link>>,
        Links => LinksAnswer,
        ReadLinkFile => Option<Bytes>,
    }
    writes {
        LinkSecret => Result<[u8; 32], Missing>,
        CreateLink => CreateLinkAnswer,
        ChangeLink => ChangeLinkAnswer,
        PutLinkFile => Result<(), Missing>,
        OpenNotifications => Vec<NotificationId>,
    }
    once {
        CountClicks => (),
    }
}

/// The link with this code.
#[derive(Clone, Debug)]
pub struct Link {
    pub domain: DomainId,
    pub code: Box<str>,
}

/// Links of a domain, newest first: those whose number is below `before`, and whose code or URL contains `search`; at most `limit`. A
/// store limits what it examines for one answer: it may return fewer than there are, and says where to go on.
#[derive(Clone, Debug)]
pub struct Links {
    pub domain: DomainId,
    pub search: Box<str>,
    pub before: LinkId,
    pub limit: u16,
}

/// What [`Links`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinksAnswer {
    /// Newest first.
    pub links: Vec<model::Link>,
    /// The value of `before` for the next ones; none when there are no more.
    pub next: Option<LinkId>,
}

/// The file of this kind that the hosts of a domain serve.
#[derive(Clone, Debug)]
pub struct ReadLinkFile {
    pub domain: DomainId,
    pub file: LinkFile,
}

/// What the codes of a domain are derived with: `fresh` from now on, if the domain has none yet. Whoever asks first decides, so that all
/// nodes on one store derive the same.
#[derive(Clone, Debug)]
pub struct LinkSecret {
    pub domain: DomainId,
    pub fresh: [u8; 32],
}

/// Creates a link with the first of these codes that is free, unless one before it leads to this URL: that link is left as it is. One whose
/// time is over by `now` begins anew, as it is asked for here. Needs a [`LinkSecret`].
#[derive(Clone, Debug)]
pub struct CreateLink {
    pub domain: DomainId,
    pub codes: Vec<Box<str>>,
    pub url: Box<str>,
    pub may_change: bool,
    pub expires: Option<UnixMs>,
    pub key: Option<KeyId>,
    pub now: UnixMs,
    pub bounds: LinkBounds,
}

/// How many links a domain may have, those that are taken down included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkBounds {
    /// Links.
    pub links: u64,
    /// What they take up ([`model::Link::bytes`]).
    pub bytes: u64,
}

/// What became of [`CreateLink`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CreateLinkAnswer {
    /// The link was created, or begun anew because it had expired.
    Created(Box<model::Link>),
    /// A link to this URL was there already.
    Exists(Box<model::Link>),
    /// All of the codes lead to other URLs.
    Taken,
    /// The domain has as many links as it may.
    Full,
    /// There is no such domain.
    NoDomain,
}

/// Changes what is named of a link: where it leads, when it expires, whether it is taken down. One that is taken down again stays so since
/// the first time.
#[derive(Clone, Debug)]
pub struct ChangeLink {
    pub domain: DomainId,
    pub code: Box<str>,
    pub url: Option<Box<str>>,
    pub expires: Option<Option<UnixMs>>,
    pub removed: Option<Option<UnixMs>>,
    pub bounds: LinkBounds,
}

/// What became of [`ChangeLink`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeLinkAnswer {
    /// The link as it is now.
    Link(Box<model::Link>),
    /// There is none with this code.
    Missing,
    /// With a longer URL the links of the domain would take up more than they may.
    Full,
}

/// Has the hosts of a domain serve this file, or none.
#[derive(Clone, Debug)]
pub struct PutLinkFile {
    pub domain: DomainId,
    pub file: LinkFile,
    pub body: Option<Bytes>,
}

/// Counts that links were followed. Those that are not there any more are left out.
#[derive(Clone, Debug)]
pub struct CountClicks {
    pub clicks: Vec<LinkClicks>,
}

/// How often a link was followed since it was counted last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkClicks {
    pub link: LinkId,
    pub clicks: u64,
    /// The last time.
    pub last: UnixMs,
}

/// Notes that the links of notifications were followed: the first time counts, and makes an event. One that has not ended ends as
/// acknowledged by this. Returns those that were noted by this or before; the others are not there.
#[derive(Clone, Debug)]
pub struct OpenNotifications {
    pub clicks: Vec<Click>,
}
