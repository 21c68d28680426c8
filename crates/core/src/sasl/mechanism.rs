//! SASL mechanisms.

/// A SASL mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// SCRAM-SHA-256-PLUS (RFC 7677).
    ScramSha256Plus,
    /// SCRAM-SHA-1-PLUS (RFC 5802).
    ScramSha1Plus,
    /// SCRAM-SHA-256.
    ScramSha256,
    /// SCRAM-SHA-1.
    ScramSha1,
    /// PLAIN (RFC 4616), only under TLS.
    Plain,
}

/// The hash of a SCRAM mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hash {
    /// SHA-1.
    Sha1,
    /// SHA-256.
    Sha256,
}

crate::form! { enum Hash { 0 = Sha1, 1 = Sha256 } }

impl Mechanism {
    /// All mechanisms, strongest first.
    pub const ALL: [Mechanism; 5] = [
        Mechanism::ScramSha256Plus,
        Mechanism::ScramSha1Plus,
        Mechanism::ScramSha256,
        Mechanism::ScramSha1,
        Mechanism::Plain,
    ];

    /// SCRAM with this hash, bound to the TLS channel or not.
    pub fn scram(hash: Hash, binds_channel: bool) -> Mechanism {
        match (hash, binds_channel) {
            (Hash::Sha256, true) => Mechanism::ScramSha256Plus,
            (Hash::Sha1, true) => Mechanism::ScramSha1Plus,
            (Hash::Sha256, false) => Mechanism::ScramSha256,
            (Hash::Sha1, false) => Mechanism::ScramSha1,
        }
    }

    /// Its name in IANA's registry.
    pub fn as_str(self) -> &'static str {
        match self {
            Mechanism::ScramSha256Plus => "SCRAM-SHA-256-PLUS",
            Mechanism::ScramSha1Plus => "SCRAM-SHA-1-PLUS",
            Mechanism::ScramSha256 => "SCRAM-SHA-256",
            Mechanism::ScramSha1 => "SCRAM-SHA-1",
            Mechanism::Plain => "PLAIN",
        }
    }

    /// The mechanism with this name.
    pub fn named(name: &str) -> Option<Mechanism> {
        Mechanism::ALL.into_iter().find(|m| m.as_str() == name)
    }

    /// Whether it binds the login to the TLS channel.
    pub fn binds_channel(self) -> bool {
        matches!(self, Mechanism::ScramSha256Plus | Mechanism::ScramSha1Plus)
    }

    /// Its hash; none for PLAIN.
    pub fn hash(self) -> Option<Hash> {
        match self {
            Mechanism::ScramSha256Plus | Mechanism::ScramSha256 => Some(Hash::Sha256),
            Mechanism::ScramSha1Plus | Mechanism::ScramSha1 => Some(Hash::Sha1),
            Mechanism::Plain => None,
        }
    }
}
