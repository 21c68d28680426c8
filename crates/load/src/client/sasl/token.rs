//! Tokens (XEP-0484): kept between the connections of an account, and proved by the mechanisms HT-SHA-256
//! (draft-schmaus-kitten-sasl-ht).

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use carillon_wire::jid::BareJid;
use serde::{Deserialize, Serialize};

use super::Exchange;
use super::digest::HashFunction;
use super::mechanism::Mechanism;

/// The tokens that the clients of a profile were given.
#[derive(Default)]
pub struct TokenStore(Mutex<HashMap<BareJid, Token>>);

/// A token as it is kept between two runs of a program. It opens the account: whoever keeps it in a file lets nobody else
/// read that file.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedToken {
    /// The token.
    pub token: String,
    /// The mechanism it is good for, `HT-SHA-256-EXPR` for example.
    pub mechanism: String,
    /// How often it was used.
    pub count: u32,
}

/// A token of an account.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) secret: String,
    pub(crate) mechanism: Mechanism,
    /// How often it was used.
    pub(crate) count: u32,
}

impl TokenStore {
    /// The token of an account, to be kept for a later run.
    pub fn save(&self, account: &BareJid) -> Option<SavedToken> {
        let tokens = self.lock();
        let Token { secret, mechanism, count } = tokens.get(account)?.clone();
        Some(SavedToken { token: secret, mechanism: mechanism.name().to_owned(), count })
    }

    /// Takes the token of an earlier run. One of a mechanism that is not known any more is passed over.
    pub fn restore(&self, account: &BareJid, saved: SavedToken) {
        let known = [Mechanism::HtSha256Expr, Mechanism::HtSha256None];
        if let Some(mechanism) = known.into_iter().find(|known| known.name() == saved.mechanism) {
            let token = Token { secret: saved.token, mechanism, count: saved.count };
            self.lock().insert(account.clone(), token);
        }
    }

    /// Keeps a new token in place of an older one.
    pub(crate) fn put(&self, account: &BareJid, secret: String, mechanism: Mechanism) {
        self.lock().insert(account.clone(), Token { secret, mechanism, count: 0 });
    }

    /// Whether there is a token.
    pub(crate) fn has(&self, account: &BareJid) -> bool {
        self.lock().contains_key(account)
    }

    /// The token to use now; each use has a higher count.
    pub(crate) fn next_use(&self, account: &BareJid) -> Option<Token> {
        let mut tokens = self.lock();
        let token = tokens.get_mut(account)?;
        token.count += 1;
        Some(token.clone())
    }

    /// Forgets a token that was refused.
    pub(crate) fn forget(&self, account: &BareJid) {
        self.lock().remove(account);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<BareJid, Token>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for SavedToken {
    // Without the token.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SavedToken({})", self.mechanism)
    }
}

impl std::fmt::Debug for TokenStore {
    // Without the tokens.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TokenStore({})", self.lock().len())
    }
}

impl Mechanism {
    /// The mechanism to ask a token for on such a connection.
    pub(crate) fn for_tokens(exporter: Option<[u8; 32]>) -> Self {
        if exporter.is_some() { Self::HtSha256Expr } else { Self::HtSha256None }
    }
}

impl Token {
    /// The exchange, and its one message.
    pub(crate) fn start(&self, username: &str, exporter: Option<[u8; 32]>) -> (Exchange, Vec<u8>) {
        let binding = match self.mechanism {
            Mechanism::HtSha256Expr => exporter.map(Vec::from).unwrap_or_default(),
            _ => Vec::new(),
        };
        let hash = |role: &[u8]| {
            HashFunction::Sha256.hmac(self.secret.as_bytes(), &[role, &binding].concat()).as_bytes().to_vec()
        };
        let message = [username.as_bytes(), b"\0", &hash(b"Initiator")].concat();
        (Exchange::Token { answer: hash(b"Responder") }, message)
    }
}

/// The id of an account's client (XEP-0388: a UUID, the same each time).
pub(crate) fn agent_id(account: &BareJid) -> String {
    let hash = HashFunction::Sha256.hmac(b"user-agent", account.as_str().as_bytes());
    let mut id = String::with_capacity(36);
    for (i, byte) in hash.as_bytes().iter().take(16).enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            id.push('-');
        }
        // The version and the variant of a random UUID (RFC 9562 §5.4).
        let byte = match i {
            6 => byte & 0x0f | 0x40,
            8 => byte & 0x3f | 0x80,
            _ => *byte,
        };
        write!(id, "{byte:02x}").expect("a string takes everything");
    }
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alice() -> BareJid {
        BareJid::new("alice@localhost").expect("a JID")
    }

    #[test]
    fn each_use_has_a_higher_count() {
        let tokens = TokenStore::default();
        assert!(tokens.next_use(&alice()).is_none());
        tokens.put(&alice(), "a".to_owned(), Mechanism::HtSha256None);
        assert_eq!([1, 2], [(); 2].map(|()| tokens.next_use(&alice()).expect("kept").count));
        tokens.put(&alice(), "b".to_owned(), Mechanism::HtSha256None);
        assert_eq!(
            tokens.next_use(&alice()).map(|token| (token.secret, token.count)),
            Some(("b".to_owned(), 1))
        );
        tokens.forget(&alice());
        assert!(tokens.next_use(&alice()).is_none());
    }

    #[test]
    fn a_token_outlives_the_program() {
        let (tokens, later) = (TokenStore::default(), TokenStore::default());
        assert_eq!(tokens.save(&alice()), None);
        tokens.put(&alice(), "a".to_owned(), Mechanism::HtSha256Expr);
        tokens.next_use(&alice());
        let saved = tokens.save(&alice()).expect("kept");
        later.restore(&alice(), saved.clone());
        let token = later.next_use(&alice()).expect("restored");
        assert_eq!((token.secret.as_str(), token.mechanism, token.count), ("a", Mechanism::HtSha256Expr, 2));
        assert_eq!(format!("{saved:?}"), "SavedToken(HT-SHA-256-EXPR)");
        let unknown = SavedToken { mechanism: "HT-SHA-1024".to_owned(), ..saved };
        later.forget(&alice());
        later.restore(&alice(), unknown);
        assert!(!later.has(&alice()));
    }

    #[test]
    fn the_server_must_know_the_token_too() {
        let token = Token { secret: "s".to_owned(), mechanism: Mechanism::HtSha256Expr, count: 1 };
        let (exchange, message) = token.start("alice", Some([1; 32]));
        assert_eq!((message.len(), &message[..6]), (38, &b"alice\0"[..]));
        let answer = HashFunction::Sha256.hmac(b"s", &[&b"Responder"[..], &[1; 32]].concat());
        assert_eq!(exchange.succeed(answer.as_bytes()), Ok(()));
        let (exchange, _) = token.start("alice", Some([1; 32]));
        assert!(exchange.succeed(b"").is_err());
    }

    #[test]
    fn an_id_is_a_uuid() {
        let id = agent_id(&alice());
        assert_eq!((id.len(), id.as_bytes()[14], id == agent_id(&alice())), (36, b'4', true), "{id}");
    }
}
