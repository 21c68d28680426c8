//! Accounts and what a login needs of them.

use super::{AccountId, Generation, Item, Revision, Revocations, TopicId, UnixMs};
use std::sync::Arc;

/// What proves an account's password without holding it (RFC 5802 §3).
#[derive(Clone, PartialEq, Eq)]
pub struct ScramKeys {
    /// The salt, 16 bytes when made here.
    pub salt: Box<[u8]>,
    /// PBKDF2 iterations, at least 4096 (RFC 7677 §4).
    pub iterations: u32,
    /// `H(ClientKey)`: 20 bytes for SHA-1, 32 for SHA-256.
    pub stored_key: Box<[u8]>,
    /// `HMAC(SaltedPassword, "Server Key")`.
    pub server_key: Box<[u8]>,
}

/// An account's SCRAM keys. Either hash may be missing when the keys were imported.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    /// For SCRAM-SHA-1(-PLUS).
    pub sha1: Option<ScramKeys>,
    /// For SCRAM-SHA-256(-PLUS).
    pub sha256: Option<ScramKeys>,
}

// Keys never reach a log.
impl std::fmt::Debug for ScramKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ScramKeys({} iterations)", self.iterations)
    }
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Credentials(sha1: {}, sha256: {})", self.sha1.is_some(), self.sha256.is_some())
    }
}

/// A topic an account follows.
#[derive(Clone, Debug)]
pub struct Subscription {
    /// The topic.
    pub topic: TopicId,
    /// Its last item when the topic sends it at login (`send_last_published_item`), shared between all who read it.
    pub last: Option<Arc<Item>>,
    /// Its revision, if that was read and the topic keeps items.
    pub revision: Option<Revision>,
}

/// Who an account is and what proves it: all that is read before a client has proved anything.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The account.
    pub account: AccountId,
    /// What proves it.
    pub credentials: Credentials,
    /// Whether it may log in.
    pub state: AccountState,
    /// Which of its tokens were revoked.
    pub revocations: Revocations,
}

/// What belongs to an account: everything that a session needs from the store once its client has proved whose it is, read
/// in one round trip and at one [`Generation`]. What the question did not ask for ([`LoginParts`]) is empty.
#[derive(Clone, Debug)]
pub struct Login {
    /// Whether it may still log in.
    pub state: AccountState,
    /// The topics it follows, sorted by id.
    pub subscriptions: Vec<Subscription>,
    /// Whether anything waits for it. What waits is read when the session can be given it.
    pub waiting: LoginBacklog,
    /// The account's generation when all this was read.
    pub generation: Generation,
    /// The generation of the account's [`Record`](super::Record) then: 0 where there was never anything in it, so that nobody need
    /// read it.
    pub record: Generation,
}

/// What a login reads of an account besides its state: what the enabled features need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoginParts {
    /// The topics it follows, with their last items.
    pub subscriptions: bool,
    /// Whether notifications wait for it.
    pub notifications: bool,
    /// Whether offline messages wait for it.
    pub messages: bool,
}

impl LoginParts {
    /// Its state alone.
    pub const NONE: LoginParts = LoginParts { subscriptions: false, notifications: false, messages: false };
    /// Everything.
    pub const ALL: LoginParts = LoginParts { subscriptions: true, notifications: true, messages: true };

    /// The union of both.
    pub const fn and(self, other: LoginParts) -> LoginParts {
        LoginParts {
            subscriptions: self.subscriptions || other.subscriptions,
            notifications: self.notifications || other.notifications,
            messages: self.messages || other.messages,
        }
    }
}

/// Whether anything waits for an account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoginBacklog {
    /// Whether notifications wait.
    pub notifications: bool,
    /// Whether offline messages wait.
    pub messages: bool,
}

/// Whether an account may log in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountState {
    /// The account may log in.
    Enabled,
    /// The account may not log in, since this time (SASL `account-disabled`).
    Disabled(UnixMs),
}
