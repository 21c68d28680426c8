//! An address without resource: the key of accounts.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

use super::error::JidError;
use super::prepare::{compose, parse};
use super::{Jid, join_resource};

/// An address without resource: `domain` or `local@domain`.
///
/// Hash, order and equality are those of the text, so a map keyed by `BareJid` can be asked with a `&str`.
#[derive(Clone)]
pub struct BareJid {
    text: Arc<str>,
    /// Length of the localpart in bytes; 0 where there is none.
    local_end: u16,
}

impl BareJid {
    /// The host `label` below this address's domain: `push.example.org`, say. A label that is prepared, of lower-case
    /// letters, makes a prepared address.
    pub fn service(&self, label: &'static str) -> Jid {
        debug_assert!(label.bytes().all(|c| c.is_ascii_lowercase()), "a label of our own");
        let host: Arc<str> = [label, ".", self.domain()].concat().into();
        Jid::from_bare(host, 0)
    }

    /// Prepares `text` as a bare address.
    ///
    /// # Errors
    /// As [`Jid::new`]; also if there is a resource.
    pub fn new(text: &str) -> Result<Self, JidError> {
        let (text, local_end, domain_end) = parse(text)?;
        if usize::from(domain_end) < text.len() {
            return Err(JidError::HasResource);
        }
        Ok(Self { text, local_end })
    }

    /// Prepares both parts and joins them.
    ///
    /// # Errors
    /// As [`Jid::new`].
    pub fn from_parts(local: Option<&str>, domain: &str) -> Result<Self, JidError> {
        let (text, local_end, _) = compose(local, domain, None)?;
        Ok(Self { text, local_end })
    }

    /// The part before `@`, if there is one.
    pub fn local(&self) -> Option<&str> {
        (self.local_end > 0).then(|| self.text.get(..usize::from(self.local_end))).flatten()
    }

    /// The domain.
    pub fn domain(&self) -> &str {
        let start = if self.local_end > 0 { usize::from(self.local_end) + 1 } else { 0 };
        self.text.get(start..).unwrap_or_default()
    }

    /// The whole address as text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The same address as a [`Jid`], sharing its text.
    pub fn to_jid(&self) -> Jid {
        Jid::from_bare(self.text.clone(), self.local_end)
    }

    /// The address with a resource.
    ///
    /// # Errors
    /// If `resource` is no valid resource.
    pub fn with_resource(&self, resource: &str) -> Result<Jid, JidError> {
        join_resource(&self.text, self.local_end, resource)
    }

    /// Wraps text that is prepared already.
    pub(super) fn prepared(text: Arc<str>, local_end: u16) -> Self {
        Self { text, local_end }
    }

    pub(super) fn into_parts(self) -> (Arc<str>, u16) {
        (self.text, self.local_end)
    }
}

impl PartialEq for BareJid {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for BareJid {}

impl PartialOrd for BareJid {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for BareJid {
    fn cmp(&self, other: &Self) -> Ordering {
        self.text.cmp(&other.text)
    }
}

impl Hash for BareJid {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Only the text, as `Borrow<str>` demands.
        self.text.hash(state);
    }
}

impl Borrow<str> for BareJid {
    fn borrow(&self) -> &str {
        &self.text
    }
}

impl AsRef<str> for BareJid {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for BareJid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for BareJid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BareJid({})", &self.text)
    }
}

impl FromStr for BareJid {
    type Err = JidError;

    fn from_str(text: &str) -> Result<Self, JidError> {
        Self::new(text)
    }
}
