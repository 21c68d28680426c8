//! A client before authentication, and the account it claims. Plain data: it moves, with its connection, to the account's
//! home.

use super::Io;
use crate::model::{Domain, Mono, TokenHash};
use crate::sasl::scram::ClientFirst;
use crate::sasl::{Inline, Password, Protection, SaslProfile};
use carillon_wire::jid::AccountJid;
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
    /// The invitation that it has shown, and may register an account by.
    pub invited: Option<Box<Invited>>,
}

/// An invitation that a client has shown (XEP-0445). Whether it can still be used is decided when it is.
#[derive(Clone, Debug)]
pub struct Invited {
    /// What finds it.
    pub hash: TokenHash,
    /// The only localpart that can be registered with it; none for any.
    pub local: Option<Box<str>>,
    /// The localpart of the account that made it.
    pub inviter: Option<Box<str>>,
}

crate::form! { struct Invited { hash, local, inviter } }

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
    /// The account.
    pub account: AccountJid,
    /// How the client proves it.
    pub proof: Proof,
}

/// How the client proves who it is.
#[derive(Debug)]
pub enum Proof {
    /// By a mechanism that is in either profile.
    Mechanism(SaslProfile, FirstMessage),
    /// By a mechanism of a feature, which only SASL2 has.
    Feature(FeatureProof),
}

crate::form! { enum Proof { 0 = Mechanism(profile, first), 1 = Feature(proof) } }

/// What a client claims by a mechanism of a feature's own.
#[derive(Debug)]
pub struct FeatureClaim {
    /// The account that it claims to be.
    pub account: AccountJid,
    /// The message that is to be checked at that account's home.
    pub message: Box<[u8]>,
}

/// A proof that a feature checks.
#[derive(Debug)]
pub struct FeatureProof {
    /// Which feature's mechanism it is.
    pub kind: ProofKind,
    /// The `<authenticate/>`.
    pub inline: Inline,
    /// The message of the mechanism.
    pub message: Box<[u8]>,
}

crate::form! { struct FeatureProof { kind, inline, message } }

/// The mechanisms of a feature, by a name of four letters that no other has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProofKind(pub [u8; 4]);

crate::form! { struct ProofKind(letters) }

/// A client's first message, by its mechanism.
#[derive(Debug)]
pub enum FirstMessage {
    /// SCRAM.
    Scram(ClientFirst),
    /// A password in clear.
    Plain(Password),
}

crate::form! { enum FirstMessage { 0 = Scram(first), 1 = Plain(password) } }
