//! The states of a connection.

/// A session on its way to another shard, with what was read and not yet handled.
#[derive(Debug)]
pub struct Moving {}

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

impl Mechanism {
    /// All of them, strongest first.
    pub const ALL: [Mechanism; 5] = [
        Mechanism::ScramSha256Plus,
        Mechanism::ScramSha1Plus,
        Mechanism::ScramSha256,
        Mechanism::ScramSha1,
        Mechanism::Plain,
    ];
}
