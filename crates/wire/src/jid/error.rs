//! Why a text is not an address.

use std::fmt;

/// The three parts of an address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Part {
    /// The part before `@`.
    Local,
    /// The domain.
    Domain,
    /// The part after the first `/`.
    Resource,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Local => "localpart",
            Self::Domain => "domain",
            Self::Resource => "resource",
        })
    }
}

/// Why a text is not an address: the part at fault and the reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum JidError {
    /// The part is empty, or empty after preparation.
    #[error("the {0} is empty")]
    Empty(Part),
    /// The part is longer than 1023 bytes.
    #[error("the {0} is longer than 1023 bytes")]
    TooLong(Part),
    /// The part holds a character that may not stand there.
    #[error("the {0} holds the forbidden character {1:?}")]
    Forbidden(Part, char),
    /// Nodeprep, Nameprep or Resourceprep rejects the part, or preparing it has no stable result.
    #[error("the {0} cannot be prepared")]
    Unprepared(Part),
    /// Two dots follow each other, or the domain begins with one.
    #[error("the domain has an empty label")]
    EmptyLabel,
    /// The text in brackets is not an IPv6 address.
    #[error("the domain is no valid IPv6 literal")]
    IpLiteral,
    /// A resource in what must be a bare address.
    #[error("a bare address has no resource")]
    HasResource,
}
