//! A client before authentication, and the account it claims. Plain data: it moves, with its connection, to the account's
//! home.

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
    /// Attempts with a type of channel binding that is not offered.
    pub misfits: u8,
    /// When the present attempt began.
    pub began: Mono,
}

/// A client that named its account and has proved nothing yet.
#[derive(Debug)]
pub struct Claimed {
    /// The client.
    pub client: Client,
    /// What it claims.
    pub claim: Claim,
}

/// The account that a client claims, and how it will prove it.
#[derive(Debug)]
pub struct Claim {
    /// How the exchange is wrapped.
    pub wrap: Wrap,
    /// The account.
    pub account: BareJid,
    /// How the client proves it.
    pub proof: Proof,
    /// When the account's home took it up: the login does not know of later changes.
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
