//! The tokens of FAST (XEP-0484), without a connection: `features/fast` gives and takes them.
//!
//! Tokens are not stored: they are derived again from what is known of the account (docs/adr/0006). `token` derives and
//! checks them.

#[cfg(test)]
mod tests;
mod token;

pub use token::{Checked, GivenToken, Proof, Refused, Tokens};

use super::Protection;

/// A hashed-token mechanism (draft-schmaus-kitten-sasl-ht). They differ in what the login is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// HT-SHA-256-EXPR: bound to the TLS connection, by `tls-exporter`.
    Exporter,
    /// HT-SHA-256-ENDP: bound to the server's certificate, by `tls-server-end-point`.
    EndPoint,
    /// HT-SHA-256-NONE: not bound.
    Unbound,
}

impl Mechanism {
    /// All mechanisms, strongest first.
    pub const ALL: [Mechanism; 3] = [Mechanism::Exporter, Mechanism::EndPoint, Mechanism::Unbound];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Mechanism::Exporter => "HT-SHA-256-EXPR",
            Mechanism::EndPoint => "HT-SHA-256-ENDP",
            Mechanism::Unbound => "HT-SHA-256-NONE",
        }
    }

    /// The mechanism with this name.
    pub fn named(name: &str) -> Option<Mechanism> {
        Mechanism::ALL.into_iter().find(|m| m.as_str() == name)
    }

    /// The mechanisms that can be used on a connection.
    pub fn usable(protection: &Protection) -> impl Iterator<Item = Mechanism> {
        Mechanism::ALL.into_iter().filter(|m| m.binding(protection).is_some())
    }

    /// The data that it binds to on a connection; none where it cannot be used. A token is only ever sent under TLS that ends
    /// at this server.
    pub fn binding(self, protection: &Protection) -> Option<&[u8]> {
        let Protection::Tls(binding) = protection else { return None };
        match self {
            Mechanism::Exporter => binding.exporter.as_ref().map(|exporter| &exporter[..]),
            Mechanism::EndPoint => binding.end_point.as_deref(),
            Mechanism::Unbound => Some(b""),
        }
    }
}

/// The settings of tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How long a token is valid, in milliseconds; with 0 no tokens are offered.
    pub token_lifetime_ms: u64,
    /// Accounts whose last login the node remembers, so that the next one asks no store; 0 for none.
    pub remembered_accounts: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { token_lifetime_ms: 21 * 86_400_000, remembered_accounts: 1_000_000 }
    }
}

impl Settings {
    /// Whether tokens are offered.
    pub fn are_tokens_on(&self) -> bool {
        self.token_lifetime_ms > 0
    }
}
