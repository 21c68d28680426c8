//! Which SASL mechanism to use, given what both sides can do.

use std::str::FromStr;

use super::digest::HashFunction;
use super::scram::ChannelBinding;

/// A SASL mechanism this client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mechanism {
    /// SCRAM-SHA-256 bound to the TLS channel.
    ScramSha256Plus,
    /// SCRAM-SHA-1 bound to the TLS channel.
    ScramSha1Plus,
    /// SCRAM-SHA-256 (RFC 7677).
    ScramSha256,
    /// SCRAM-SHA-1 (RFC 5802).
    ScramSha1,
    /// PLAIN (RFC 4616): the password itself.
    Plain,
    /// HT-SHA-256-EXPR: a token (XEP-0484), bound to the TLS channel. Never chosen, but used when there is a token.
    HtSha256Expr,
    /// HT-SHA-256-NONE: a token, bound to nothing.
    HtSha256None,
}

/// The name is none of a [`Mechanism`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown SASL mechanism {0:?}; known are {known}", known = Mechanism::ALL.map(Mechanism::name).join(", "))]
pub struct UnknownMechanism(String);

/// What a server says it can do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offer {
    /// Names of mechanisms.
    pub(crate) mechanisms: Vec<String>,
    /// Names of channel bindings (XEP-0440); empty when the server does not tell.
    pub(crate) bindings: Vec<String>,
}

/// A mechanism both sides can use, and what to say about channel binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) mechanism: Mechanism,
    pub(crate) binding: ChannelBinding,
}

impl Mechanism {
    /// Every mechanism that can be chosen, the strongest first.
    pub const ALL: [Self; 5] =
        [Self::ScramSha256Plus, Self::ScramSha1Plus, Self::ScramSha256, Self::ScramSha1, Self::Plain];

    /// The registered name.
    pub fn name(self) -> &'static str {
        match self {
            Self::ScramSha256Plus => "SCRAM-SHA-256-PLUS",
            Self::ScramSha1Plus => "SCRAM-SHA-1-PLUS",
            Self::ScramSha256 => "SCRAM-SHA-256",
            Self::ScramSha1 => "SCRAM-SHA-1",
            Self::Plain => "PLAIN",
            Self::HtSha256Expr => "HT-SHA-256-EXPR",
            Self::HtSha256None => "HT-SHA-256-NONE",
        }
    }

    /// Whether it proves that client and server see the same TLS connection.
    pub fn binds_channel(self) -> bool {
        matches!(self, Self::ScramSha256Plus | Self::ScramSha1Plus | Self::HtSha256Expr)
    }

    pub(crate) fn hash(self) -> Option<HashFunction> {
        match self {
            Self::ScramSha256Plus | Self::ScramSha256 => Some(HashFunction::Sha256),
            Self::ScramSha1Plus | Self::ScramSha1 => Some(HashFunction::Sha1),
            Self::Plain | Self::HtSha256Expr | Self::HtSha256None => None,
        }
    }
}

impl FromStr for Mechanism {
    type Err = UnknownMechanism;

    fn from_str(name: &str) -> Result<Self, UnknownMechanism> {
        Self::ALL
            .into_iter()
            .find(|mechanism| mechanism.name().eq_ignore_ascii_case(name))
            .ok_or_else(|| UnknownMechanism(name.to_owned()))
    }
}

impl Offer {
    /// The first of `wanted` that works, given the channel's keying material if it has any.
    pub(crate) fn choose(&self, wanted: &[Mechanism], exporter: Option<[u8; 32]>) -> Option<Choice> {
        // XEP-0440: a server that tells its bindings means it; one that does not may still know tls-exporter.
        let usable = self.bindings.is_empty() || self.bindings.iter().any(|name| name == "tls-exporter");
        let exporter = exporter.filter(|_| usable);
        let mechanism = wanted.iter().copied().find(|mechanism| {
            self.offers(mechanism.name()) && (exporter.is_some() || !mechanism.binds_channel())
        })?;
        let binding = match exporter {
            Some(keying_material) if mechanism.binds_channel() => {
                ChannelBinding::TlsExporter(keying_material)
            }
            // RFC 5802 §6: `y` towards a server that does offer -PLUS makes it suspect an attack.
            Some(_) if !self.mechanisms.iter().any(|name| name.ends_with("-PLUS")) => {
                ChannelBinding::NotOffered
            }
            _ => ChannelBinding::Unsupported,
        };
        Some(Choice { mechanism, binding })
    }

    fn offers(&self, name: &str) -> bool {
        self.mechanisms.iter().any(|offered| offered == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYING_MATERIAL: [u8; 32] = [1; 32];

    fn offer(mechanisms: &[&str], bindings: &[&str]) -> Offer {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        Offer { mechanisms: owned(mechanisms), bindings: owned(bindings) }
    }

    #[test]
    fn the_first_wanted_that_works_is_taken() {
        let all = offer(&["PLAIN", "SCRAM-SHA-1", "SCRAM-SHA-256", "SCRAM-SHA-256-PLUS"], &["tls-exporter"]);
        let bound = ChannelBinding::TlsExporter(KEYING_MATERIAL);
        let cases = [
            (&all, &Mechanism::ALL[..], Some(KEYING_MATERIAL), Mechanism::ScramSha256Plus, bound),
            (&all, &Mechanism::ALL, None, Mechanism::ScramSha256, ChannelBinding::Unsupported),
            (&all, &Mechanism::ALL[3..], None, Mechanism::ScramSha1, ChannelBinding::Unsupported),
            (
                &all,
                &[Mechanism::ScramSha256],
                Some(KEYING_MATERIAL),
                Mechanism::ScramSha256,
                ChannelBinding::Unsupported,
            ),
            (
                &offer(&["SCRAM-SHA-1"], &[]),
                &Mechanism::ALL,
                Some(KEYING_MATERIAL),
                Mechanism::ScramSha1,
                ChannelBinding::NotOffered,
            ),
            (
                &offer(&["SCRAM-SHA-1", "SCRAM-SHA-1-PLUS"], &["tls-unique"]),
                &Mechanism::ALL,
                Some(KEYING_MATERIAL),
                Mechanism::ScramSha1,
                ChannelBinding::Unsupported,
            ),
        ];
        for (offer, wanted, exporter, mechanism, binding) in cases {
            assert_eq!(offer.choose(wanted, exporter), Some(Choice { mechanism, binding }));
        }
        assert_eq!(offer(&["EXTERNAL"], &[]).choose(&Mechanism::ALL, None), None);
    }

    #[test]
    fn names_are_read_back() {
        for mechanism in Mechanism::ALL {
            assert_eq!(mechanism.name().parse(), Ok(mechanism));
        }
        assert!("DIGEST-MD5".parse::<Mechanism>().is_err());
    }
}
