//! A client before it is authenticated, and what it claims. Plain data: it moves, with its connection, to the shard that is home
//! to the account.

use super::Io;
use crate::model::{Domain, Moment, Mono};
use crate::sasl::scram::ClientFirst;
use crate::sasl::{Mechanism, Password, Protection, Wrap, fast};
use carillon_wire::jid::BareJid;
use std::sync::Arc;

/// A client that is not authenticated.
#[derive(Debug)]
pub struct Client {
    /// Its connection.
    pub io: Io,
    /// The domain that it wants to log in to.
    pub domain: Arc<Domain>,
    /// What protects its stream.
    pub protection: Protection,
    /// Failed logins.
    pub attempts: u8,
    /// Attempts with a type of channel binding that there is not.
    pub misfits: u8,
    /// When it sent the first element of its present attempt.
    pub began: Mono,
}

/// The client named its account, and proved nothing yet.
#[derive(Debug)]
pub struct Claimed {
    /// The client.
    pub client: Client,
    /// What it claims.
    pub claim: Claim,
}

/// Whose the client says it is, and how it proves it.
#[derive(Debug)]
pub struct Claim {
    /// How the exchange is wrapped.
    pub wrap: Wrap,
    /// Whose.
    pub account: BareJid,
    /// How.
    pub proof: Proof,
    /// When its account's home took it up: what is altered later is not known to it.
    pub since: Moment,
}

/// How the client proves who it is.
#[derive(Debug)]
pub enum Proof {
    /// By SCRAM: the first message.
    Scram(Mechanism, ClientFirst),
    /// By its password.
    Plain(Password),
    /// By a token.
    Token(fast::Mechanism, fast::Proof),
}
