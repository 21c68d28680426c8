//! Addresses: RFC 7622 and RFC 6122, prepared once and then compared as bytes.
//!
//! A [`Jid`] is any address; a [`BareJid`] is one without resource; an [`AccountJid`] is one of these with a local part. All hold their text in one shared allocation,
//! already prepared, so that equality, order and hash are those of the text.

mod account;
mod bare;
mod error;
mod prepare;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

pub use account::AccountJid;
pub use bare::BareJid;
pub use error::{JidError, Part};
pub use prepare::{prepare_domain, prepare_local, prepare_resource};

use prepare::{compose, parse};

/// Any address: `domain` or `local@domain`, with or without `/resource`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Jid {
    text: Arc<str>,
    /// Length of the localpart in bytes; 0 where there is none.
    local_end: u16,
    /// Where the domain ends, in bytes.
    domain_end: u16,
}

impl Jid {
    /// Prepares `text` as an address.
    ///
    /// # Errors
    /// Says which part is empty, longer than 1023 bytes or holds what RFC 7622 forbids.
    pub fn new(text: &str) -> Result<Self, JidError> {
        let (text, local_end, domain_end) = parse(text)?;
        Ok(Self { text, local_end, domain_end })
    }

    /// Prepares the three parts and joins them.
    ///
    /// # Errors
    /// As [`Jid::new`].
    pub fn from_parts(local: Option<&str>, domain: &str, resource: Option<&str>) -> Result<Self, JidError> {
        let (text, local_end, domain_end) = compose(local, domain, resource)?;
        Ok(Self { text, local_end, domain_end })
    }

    /// The part before `@`, if there is one.
    pub fn local(&self) -> Option<&str> {
        (self.local_end > 0).then(|| self.text.get(..usize::from(self.local_end))).flatten()
    }

    /// The domain: what remains without localpart and resource.
    pub fn domain(&self) -> &str {
        let start = if self.local_end > 0 { usize::from(self.local_end) + 1 } else { 0 };
        self.text.get(start..usize::from(self.domain_end)).unwrap_or_default()
    }

    /// The part after the first `/`, if there is one.
    pub fn resource(&self) -> Option<&str> {
        self.text.get(usize::from(self.domain_end) + 1..)
    }

    /// The address without its resource. Allocates only if there is one.
    pub fn bare(&self) -> BareJid {
        let text = if self.is_bare() { self.text.clone() } else { Arc::from(self.bare_str()) };
        BareJid::prepared(text, self.local_end)
    }

    /// The address without its resource, as text.
    pub fn bare_str(&self) -> &str {
        self.text.get(..usize::from(self.domain_end)).unwrap_or_default()
    }

    /// The whole address as text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether there is no resource.
    pub fn is_bare(&self) -> bool {
        usize::from(self.domain_end) == self.text.len()
    }

    /// The same bare address with another resource.
    ///
    /// # Errors
    /// If `resource` is no valid resource.
    pub fn with_resource(&self, resource: &str) -> Result<Self, JidError> {
        join_resource(self.bare_str(), self.local_end, resource)
    }

    /// Wraps text that is prepared and has no resource.
    fn from_bare(text: Arc<str>, local_end: u16) -> Self {
        // A bare JID is at most 2047 bytes.
        let domain_end = text.len() as u16;
        Self { text, local_end, domain_end }
    }
}

/// Adds a resource to prepared bare text.
fn join_resource(bare: &str, local_end: u16, resource: &str) -> Result<Jid, JidError> {
    let resource = prepare::resource(resource)?;
    let text = [bare, "/", &resource].concat();
    Ok(Jid { text: text.into(), local_end, domain_end: bare.len() as u16 })
}

impl fmt::Display for Jid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Jid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Jid({})", &self.text)
    }
}

impl FromStr for Jid {
    type Err = JidError;

    fn from_str(text: &str) -> Result<Self, JidError> {
        Self::new(text)
    }
}

impl AsRef<str> for Jid {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

impl From<BareJid> for Jid {
    fn from(jid: BareJid) -> Self {
        let (text, local_end) = jid.into_parts();
        Self::from_bare(text, local_end)
    }
}

#[cfg(test)]
mod tests;
