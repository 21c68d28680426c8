//! Administrative acts: who did what by which key.

use super::{DomainId, KeyId, UnixMs};

/// An administrative act, done or refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Act {
    /// When it was answered.
    pub at: UnixMs,
    /// The API key.
    pub key: KeyId,
    /// The name of the key at that time: it may be gone.
    pub key_name: Box<str>,
    /// The domain that the key is bound to; none for a key of the whole node.
    pub domain: Option<DomainId>,
    /// Where the request came from, as far as the node knows.
    pub address: Option<Box<str>>,
    /// What was asked for: method and path of a request, or a command.
    pub what: Box<str>,
    /// Why, if that was said.
    pub reason: Option<Box<str>>,
    /// What became of it: a status, and the code of a problem.
    pub outcome: Box<str>,
    /// The id of the request, which is in the log, too.
    pub request: Box<str>,
}

impl Act {
    /// Bytes of its texts.
    pub fn bytes(&self) -> usize {
        let optional = [&self.address, &self.reason];
        [&self.key_name, &self.what, &self.outcome, &self.request]
            .into_iter()
            .chain(optional.into_iter().flatten())
            .map(|text| text.len())
            .sum()
    }
}
