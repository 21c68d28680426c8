//! SASL as a client performs it, free of the XML around it: `Exchange` takes and gives the mechanism's own bytes,
//! so that classic SASL (RFC 6120 §6) and SASL2 (XEP-0388) share it.

mod digest;
mod keys;
mod mechanism;
mod scram;
mod token;

pub use digest::{Digest, HashFunction};
pub use keys::{Derivation, KeyCache, ScramKeys};
pub(crate) use mechanism::{Choice, Offer};
pub use mechanism::{Mechanism, UnknownMechanism};
pub use scram::{ChannelBinding, ClientFinal, ClientFirst, ITERATIONS_MAX, ScramError};
pub use token::{SavedToken, TokenStore};
pub(crate) use token::{Token, agent_id};

/// A mechanism under way.
#[derive(Debug)]
pub(crate) enum Exchange {
    /// Everything was in the initial response.
    Plain,
    /// The challenge is awaited.
    ScramFirst(ClientFirst),
    /// The server's signature is awaited.
    ScramFinal(ClientFinal),
    /// The server's proof that it knows the token is awaited.
    Token {
        /// The expected proof.
        answer: Vec<u8>,
    },
    /// The server proved itself; only its success is awaited.
    Verified,
}

/// The client abandons an exchange because of what the server said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SaslError {
    /// The mechanism itself failed.
    #[error(transparent)]
    Scram(#[from] ScramError),
    /// A challenge where the mechanism has none.
    #[error("the server sent a challenge where the mechanism has none")]
    UnexpectedChallenge,
    /// The server claims success without having proved that it knows the account.
    #[error("the server reports success without its signature")]
    Unproven,
}

impl Exchange {
    /// Starts the chosen mechanism; the second value is the initial response.
    pub(crate) fn start(choice: Choice, username: &str, password: &str, nonce: String) -> (Self, Vec<u8>) {
        match choice.mechanism.hash() {
            None => (Self::Plain, format!("\0{username}\0{}", prepared(password)).into_bytes()),
            Some(hash) => {
                let first = ClientFirst::new(hash, choice.binding, username, nonce);
                let message = first.message().into_bytes();
                (Self::ScramFirst(first), message)
            }
        }
    }

    /// Answers a challenge.
    pub(crate) fn challenge(
        self,
        data: &[u8],
        password: &str,
        cache: &KeyCache,
    ) -> Result<(Self, Vec<u8>), SaslError> {
        match self {
            Self::ScramFirst(first) => {
                let last = first.challenge(data, &prepared(password), cache)?;
                let message = last.message().as_bytes().to_vec();
                Ok((Self::ScramFinal(last), message))
            }
            // RFC 4422 §3.6: a server may send its final message as a challenge, answered by an empty response.
            Self::ScramFinal(last) => {
                last.verify(data)?;
                Ok((Self::Verified, Vec::new()))
            }
            Self::Plain | Self::Token { .. } | Self::Verified => Err(SaslError::UnexpectedChallenge),
        }
    }

    /// Checks the data that came with the server's success.
    pub(crate) fn succeed(self, data: &[u8]) -> Result<(), SaslError> {
        match self {
            Self::ScramFinal(last) => Ok(last.verify(data)?),
            Self::Token { answer } if answer != data => Err(SaslError::Unproven),
            Self::Plain | Self::Token { .. } | Self::Verified => Ok(()),
            Self::ScramFirst(_) => Err(SaslError::Unproven),
        }
    }
}

/// The password by SASLprep (RFC 4013); one that the profile prohibits is left for the server to judge.
fn prepared(password: &str) -> std::borrow::Cow<'_, str> {
    stringprep::saslprep(password).unwrap_or(password.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(mechanism: Mechanism) -> (Exchange, Vec<u8>) {
        let choice = Choice { mechanism, binding: ChannelBinding::Unsupported };
        Exchange::start(choice, "user", "pencil", "rOprNGfwEbeRWgbNEkqO".to_owned())
    }

    const CHALLENGE: &[u8] =
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
    const SIGNATURE: &[u8] = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";

    #[test]
    fn plain_says_all_at_once() {
        let (exchange, initial) = start(Mechanism::Plain);
        assert_eq!(initial, b"\0user\0pencil");
        assert_eq!(exchange.succeed(b""), Ok(()));
        let (exchange, _) = start(Mechanism::Plain);
        let answer = exchange.challenge(b"", "pencil", &KeyCache::default());
        assert_eq!(answer.map(|_| ()), Err(SaslError::UnexpectedChallenge));
    }

    #[test]
    fn the_signature_may_come_as_a_challenge_or_with_success() {
        let cache = KeyCache::default();
        let (exchange, _) = start(Mechanism::ScramSha256);
        let (exchange, _) = exchange.challenge(CHALLENGE, "pencil", &cache).expect("valid");
        assert_eq!(exchange.succeed(SIGNATURE), Ok(()));

        let (exchange, _) = start(Mechanism::ScramSha256);
        let (exchange, _) = exchange.challenge(CHALLENGE, "pencil", &cache).expect("valid");
        let (exchange, answer) = exchange.challenge(SIGNATURE, "pencil", &cache).expect("valid");
        assert_eq!(answer, b"");
        assert_eq!(exchange.succeed(b""), Ok(()));
    }

    #[test]
    fn success_without_proof_is_no_success() {
        let cache = KeyCache::default();
        assert_eq!(start(Mechanism::ScramSha256).0.succeed(SIGNATURE), Err(SaslError::Unproven));
        let (exchange, _) = start(Mechanism::ScramSha256);
        let (exchange, _) = exchange.challenge(CHALLENGE, "pencil", &cache).expect("valid");
        assert_eq!(exchange.succeed(b""), Err(SaslError::Scram(ScramError::Malformed)));
    }
}
