//! The client's side of SCRAM (RFC 5802, RFC 7677) with or without channel binding (RFC 9266), as two states:
//! [`ClientFirst`] waits for the server's challenge, [`ClientFinal`] for its signature.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::digest::{Digest, HashFunction};
use super::keys::{Derivation, KeyCache};

/// The most rounds a server may ask for: bounds the time a hostile one can cost us (RFC 5802 §9).
pub const ITERATIONS_MAX: u32 = 1_000_000;

/// What the client says about channel binding (the gs2 header, RFC 5802 §6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelBinding {
    /// The client cannot bind to the channel (`n`).
    Unsupported,
    /// The client can, and saw no offer by the server (`y`): lets the server notice a downgrade.
    NotOffered,
    /// Bound to the TLS exporter (`p=tls-exporter`, RFC 9266).
    TlsExporter([u8; 32]),
}

/// Why a SCRAM exchange was abandoned by the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScramError {
    /// The server's message does not follow the grammar of RFC 5802 §7.
    #[error("the server's SCRAM message is malformed")]
    Malformed,
    /// The server's nonce does not begin with ours: somebody replays.
    #[error("the server's nonce does not continue the client's")]
    ForeignNonce,
    /// The server asked for no rounds at all, or for more than [`ITERATIONS_MAX`].
    #[error("the server asked for an unreasonable number of iterations")]
    Iterations,
    /// The server did not prove that it knows the account's keys.
    #[error("the server's signature is wrong")]
    ServerSignature,
    /// The server ended the exchange with an error attribute (`e=`).
    #[error("the server refused the exchange")]
    Refused,
}

/// The client's first message is sent; the challenge is awaited.
#[derive(Debug)]
pub struct ClientFirst {
    hash: HashFunction,
    binding: ChannelBinding,
    nonce: String,
    bare: String,
}

/// The client's proof is sent; the server's signature is awaited.
#[derive(Debug)]
pub struct ClientFinal {
    message: String,
    server_signature: Digest,
}

impl ChannelBinding {
    fn gs2_header(&self) -> &'static str {
        match self {
            Self::Unsupported => "n,,",
            Self::NotOffered => "y,,",
            Self::TlsExporter(_) => "p=tls-exporter,,",
        }
    }

    fn data(&self) -> &[u8] {
        match self {
            Self::Unsupported | Self::NotOffered => &[],
            Self::TlsExporter(keying_material) => keying_material,
        }
    }
}

impl ClientFirst {
    /// Starts an exchange; `nonce` is printable, has no comma, and is never used twice.
    pub fn new(hash: HashFunction, binding: ChannelBinding, username: &str, nonce: String) -> Self {
        // RFC 5802 §5.1: '=' and ',' in names are written =3D and =2C.
        let username = username.replace('=', "=3D").replace(',', "=2C");
        let bare = format!("n={username},r={nonce}");
        Self { hash, binding, nonce, bare }
    }

    /// The `client-first-message`.
    pub fn message(&self) -> String {
        format!("{}{}", self.binding.gs2_header(), self.bare)
    }

    /// Answers the `server-first-message` with a proof that we know the password.
    pub fn challenge(
        self,
        server_first: &[u8],
        password: &str,
        cache: &KeyCache,
    ) -> Result<ClientFinal, ScramError> {
        let server_first = std::str::from_utf8(server_first).map_err(|_| ScramError::Malformed)?;
        let challenge = Challenge::parse(server_first)?;
        if !challenge.nonce.starts_with(&self.nonce) || challenge.nonce.len() == self.nonce.len() {
            return Err(ScramError::ForeignNonce);
        }
        let keys = cache.keys(&Derivation {
            hash: self.hash,
            password,
            salt: &challenge.salt,
            iterations: challenge.iterations,
        });

        let bound = [self.binding.gs2_header().as_bytes(), self.binding.data()].concat();
        let without_proof = format!("c={},r={}", BASE64.encode(bound), challenge.nonce);
        let auth_message = format!("{},{server_first},{without_proof}", self.bare);
        let stored_key = self.hash.hash(keys.client.as_bytes());
        let signature = self.hash.hmac(stored_key.as_bytes(), auth_message.as_bytes());
        let proof = keys.client.xor(&signature);
        Ok(ClientFinal {
            message: format!("{without_proof},p={}", BASE64.encode(proof.as_bytes())),
            server_signature: self.hash.hmac(keys.server.as_bytes(), auth_message.as_bytes()),
        })
    }
}

impl ClientFinal {
    /// The `client-final-message`.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Checks the `server-final-message`: an impostor does not have the account's keys.
    pub fn verify(&self, server_final: &[u8]) -> Result<(), ScramError> {
        let text = std::str::from_utf8(server_final).map_err(|_| ScramError::Malformed)?;
        let attribute = text.split(',').next().unwrap_or_default();
        if attribute.starts_with("e=") {
            return Err(ScramError::Refused);
        }
        let signature = attribute.strip_prefix("v=").ok_or(ScramError::Malformed)?;
        let signature = BASE64.decode(signature).map_err(|_| ScramError::Malformed)?;
        if signature != self.server_signature.as_bytes() {
            return Err(ScramError::ServerSignature);
        }
        Ok(())
    }
}

struct Challenge<'a> {
    nonce: &'a str,
    salt: Vec<u8>,
    iterations: u32,
}

impl<'a> Challenge<'a> {
    // RFC 5802 §7: server-first-message = [reserved-mext ","] nonce "," salt "," iteration-count ["," extensions].
    // A leading m= is a mandatory extension, and none is known: it fails here for not being r=.
    fn parse(text: &'a str) -> Result<Self, ScramError> {
        let mut attributes = text.split(',');
        let mut next = |name: &str| {
            attributes.next().and_then(|attribute| attribute.strip_prefix(name)).ok_or(ScramError::Malformed)
        };
        let nonce = next("r=")?;
        let salt = BASE64.decode(next("s=")?).map_err(|_| ScramError::Malformed)?;
        let iterations = next("i=")?.parse().map_err(|_| ScramError::Malformed)?;
        if !(1..=ITERATIONS_MAX).contains(&iterations) {
            return Err(ScramError::Iterations);
        }
        Ok(Self { nonce, salt, iterations })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(hash: HashFunction, nonce: &str, server_first: &str) -> ClientFinal {
        let first = ClientFirst::new(hash, ChannelBinding::Unsupported, "user", nonce.to_owned());
        assert_eq!(first.message(), format!("n,,n=user,r={nonce}"));
        first.challenge(server_first.as_bytes(), "pencil", &KeyCache::default()).expect("the vector is valid")
    }

    #[test]
    fn rfc_5802_section_5() {
        let last = exchange(
            HashFunction::Sha1,
            "fyko+d2lbbFgONRv9qkxdawL",
            "r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096",
        );
        assert_eq!(
            last.message(),
            "c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts="
        );
        assert_eq!(last.verify(b"v=rmF9pqV8S7suAoZWja4dJRkFsKQ="), Ok(()));
        assert_eq!(last.verify(b"v=AmF9pqV8S7suAoZWja4dJRkFsKQ="), Err(ScramError::ServerSignature));
        assert_eq!(last.verify(b"e=invalid-proof"), Err(ScramError::Refused));
        assert_eq!(last.verify(b"v=?"), Err(ScramError::Malformed));
        assert_eq!(last.verify(b""), Err(ScramError::Malformed));
    }

    #[test]
    fn rfc_7677_section_3() {
        let last = exchange(
            HashFunction::Sha256,
            "rOprNGfwEbeRWgbNEkqO",
            "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
        );
        assert_eq!(
            last.message(),
            "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
             p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
        );
        assert_eq!(last.verify(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="), Ok(()));
    }

    #[test]
    fn binding_covers_header_and_keying_material() {
        let first = ClientFirst::new(
            HashFunction::Sha256,
            ChannelBinding::TlsExporter([7; 32]),
            "a=b,c",
            "nonce".to_owned(),
        );
        assert_eq!(first.message(), "p=tls-exporter,,n=a=3Db=2Cc,r=nonce");
        let last = first.challenge(b"r=nonce1,s=AAAA,i=1", "p", &KeyCache::default()).expect("valid");
        let bound = [b"p=tls-exporter,,".as_slice(), &[7; 32]].concat();
        assert!(last.message().starts_with(&format!("c={},r=nonce1,p=", BASE64.encode(bound))));
    }

    #[test]
    fn bad_challenges_are_refused() {
        for (challenge, error) in [
            ("r=other1,s=AAAA,i=1", ScramError::ForeignNonce),
            ("r=nonce,s=AAAA,i=1", ScramError::ForeignNonce),
            ("r=nonce1,s=AAAA,i=0", ScramError::Iterations),
            ("r=nonce1,s=AAAA,i=4000000000", ScramError::Iterations),
            ("r=nonce1,s=AAAA,i=-1", ScramError::Malformed),
            ("r=nonce1,s=*,i=1", ScramError::Malformed),
            ("m=x,r=nonce1,s=AAAA,i=1", ScramError::Malformed),
            ("", ScramError::Malformed),
        ] {
            let first =
                ClientFirst::new(HashFunction::Sha1, ChannelBinding::NotOffered, "user", "nonce".to_owned());
            let result = first.challenge(challenge.as_bytes(), "p", &KeyCache::default());
            assert_eq!(result.map(|_| ()), Err(error), "{challenge}");
        }
    }
}
