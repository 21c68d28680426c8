//! Short links: a code of a domain that leads to a URL, and what is known of those who followed it.

use super::{DomainId, KeyId, LinkId, NotificationId, UnixMs};

/// A short link of a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its number.
    pub id: LinkId,
    /// The domain that it belongs to.
    pub domain: DomainId,
    /// What follows the host in the short URL.
    pub code: Box<str>,
    /// Where it leads, normalised.
    pub url: Box<str>,
    /// Whether its URL may be changed: then clients are told not to remember it.
    pub may_change: bool,
    /// When it was created.
    pub created: UnixMs,
    /// From when on it leads nowhere.
    pub expires: Option<UnixMs>,
    /// Since when it is taken down.
    pub removed: Option<UnixMs>,
    /// The API key that created it, if one did.
    pub key: Option<KeyId>,
    /// How often it was followed.
    pub clicks: u64,
    /// When it was followed last, to the second or so.
    pub last_click: Option<UnixMs>,
}

impl Link {
    /// What it counts for among the links of its domain, in bytes.
    pub fn bytes(&self) -> u64 {
        Link::bytes_of(&self.code, &self.url)
    }

    /// What a link with this code and URL counts for, in bytes.
    pub fn bytes_of(code: &str, url: &str) -> u64 {
        (code.len() + url.len()) as u64
    }

    /// Whether its time is over.
    pub fn is_expired(&self, now: UnixMs) -> bool {
        self.expires.is_some_and(|at| at <= now)
    }
}

/// The files by which the systems of telephones learn which app opens the links of a host. Each host of a domain serves them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkFile {
    /// `apple-app-site-association` (iOS).
    Apple,
    /// `assetlinks.json` (Android).
    Android,
}

impl LinkFile {
    /// Both.
    pub const ALL: [LinkFile; 2] = [LinkFile::Apple, LinkFile::Android];
    /// How large one may be: more is not read by Apple (TN3155).
    pub const BYTES_MAX: usize = 128 * 1024;

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            LinkFile::Apple => "apple-app-site-association",
            LinkFile::Android => "assetlinks.json",
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<LinkFile> {
        LinkFile::ALL.into_iter().find(|file| file.name() == name)
    }
}

/// What kind of program followed a link: all that is kept of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentClass {
    /// A telephone.
    Mobile,
    /// A tablet computer.
    Tablet,
    /// A computer.
    Desktop,
    /// Anything else that does not call itself a robot.
    Other,
}

crate::form! { enum AgentClass { 0 = Mobile, 1 = Tablet, 2 = Desktop, 3 = Other } }

/// The recipient of a notification has followed its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// When, for the first time.
    pub at: UnixMs,
    /// With what.
    pub agent: AgentClass,
}

crate::form! { struct Opened { at, agent } }

/// A notification whose link was followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Click {
    /// The notification.
    pub id: NotificationId,
    /// The domain of its target.
    pub domain: DomainId,
    /// When and with what.
    pub opened: Opened,
}
