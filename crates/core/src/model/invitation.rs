//! Invitations: tokens by which people without an account register one, and become contacts of whoever invited them.

use super::{DomainId, InvitationId, UnixMs};
use sha2::{Digest, Sha256};
use std::fmt;

/// The SHA-256 of an invitation's token: the token itself is not kept anywhere.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TokenHash(pub [u8; 32]);

crate::form! { struct TokenHash(bytes) }

impl TokenHash {
    /// That of a token.
    pub fn of(token: &str) -> TokenHash {
        // A token has at least 128 random bits: it needs no salt and no slow hash.
        TokenHash(Sha256::digest(token).into())
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash(…)")
    }
}

/// An invitation to a domain, without its token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invitation {
    /// Its number.
    pub id: InvitationId,
    /// The domain.
    pub domain: DomainId,
    /// The localpart of the account that made it, whose contact becomes whoever uses it; none where an operator did for nobody.
    pub inviter: Option<Box<str>>,
    /// The only localpart that can be registered with it, prepared; none for any.
    pub local: Option<Box<str>>,
    /// Whether an account can be registered with it. Otherwise it only makes contacts.
    pub registers: bool,
    /// How often it can be used.
    pub uses_max: u32,
    /// How often it was used.
    pub uses: u32,
    /// When it was made.
    pub created: UnixMs,
    /// From when on it cannot be used.
    pub expires: UnixMs,
}

impl Invitation {
    /// Whether it can be used now.
    pub fn is_usable(&self, now: UnixMs) -> bool {
        self.uses < self.uses_max && now < self.expires
    }

    /// Whether an account with this localpart can be registered with it.
    pub fn allows(&self, local: &str) -> bool {
        self.registers && self.local.as_deref().is_none_or(|only| only == local)
    }

    /// The URI by which clients open it (XEP-0445 §2, XEP-0379 §3.1).
    pub fn uri(&self, domain: &str, token: &str) -> String {
        let (domain, token) = (encoded(domain), encoded(token));
        match (&self.local, &self.inviter) {
            (Some(local), _) => format!("xmpp:{}@{domain}?register;preauth={token}", encoded(local)),
            (None, Some(inviter)) => {
                let registers = if self.registers { ";ibr=y" } else { "" };
                format!("xmpp:{}@{domain}?roster;preauth={token}{registers}", encoded(inviter))
            }
            (None, None) => format!("xmpp:{domain}?register;preauth={token}"),
        }
    }
}

/// A part of a URI: what is not unreserved (RFC 3986 §2.3) is percent-encoded.
fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(byte.into()),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invitation_is_usable_until_it_is_used_up_or_expires() {
        let fresh = Invitation {
            id: InvitationId(1),
            domain: DomainId(1),
            inviter: None,
            local: Some("juliet".into()),
            registers: true,
            uses_max: 2,
            uses: 0,
            created: UnixMs(0),
            expires: UnixMs(10),
        };
        assert!(fresh.is_usable(UnixMs(9)) && !fresh.is_usable(UnixMs(10)));
        assert!(!Invitation { uses: 2, ..fresh.clone() }.is_usable(UnixMs(0)));
        assert!(fresh.allows("juliet") && !fresh.allows("romeo"));
        assert!(!Invitation { registers: false, ..fresh }.allows("juliet"));
    }

    #[test]
    fn its_uri_says_what_it_is_for() {
        let uri = |inviter: Option<&str>, local: Option<&str>, registers| {
            let (inviter, local) = (inviter.map(Into::into), local.map(Into::into));
            let (id, domain, uses_max, uses) = (InvitationId(1), DomainId(1), 1, 0);
            let (created, expires) = (UnixMs(0), UnixMs(1));
            Invitation { id, domain, inviter, local, registers, uses_max, uses, created, expires }
                .uri("x.example", "a-b_c")
        };
        assert_eq!(uri(None, None, true), "xmpp:x.example?register;preauth=a-b_c");
        assert_eq!(uri(Some("romeo"), None, true), "xmpp:romeo@x.example?roster;preauth=a-b_c;ibr=y");
        assert_eq!(uri(Some("r&j?"), None, false), "xmpp:r%26j%3F@x.example?roster;preauth=a-b_c");
        assert_eq!(uri(Some("romeo"), Some("é"), true), "xmpp:%C3%A9@x.example?register;preauth=a-b_c");
    }
}
