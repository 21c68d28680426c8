//! Why a text is no address.

use std::fmt;

/// The three parts of an address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Part {
    /// Before `@`.
    Local,
    /// The host.
    Domain,
    /// After the first `/`.
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

/// Why a text is no address: the part at fault and what is wrong with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum JidError {
    /// The part is there but has no characters (left).
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
    /// What stands in brackets is no IPv6 address.
    #[error("the domain is no valid IPv6 literal")]
    IpLiteral,
    /// A resource where a bare address is asked for.
    #[error("a bare address has no resource")]
    HasResource,
}
