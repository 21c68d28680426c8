//! The exchange of a SASL mechanism: the account that the client's first message names, and the check of its proof. It knows nothing
//! of XML: the profile passes messages in and carries out each [`ExchangeStep`].

mod first;
mod plain;
mod scram;

pub(super) use first::first;
pub(super) use plain::PasswordCheck;
pub(super) use scram::Challenged;

use super::claimant::Claimant;
use super::proven::Proved;
use crate::connection::FirstMessage;
use crate::model::{AccountState, Credentials, Identity};
use crate::ports::Derivation;
use crate::sasl::{Failure, Hash, Mechanism, scram as keys};
use crate::session::Cx;
use carillon_wire::jid::{AccountJid, BareJid};
use std::net::IpAddr;

/// What the profile does next.
#[derive(Debug)]
pub(super) enum ExchangeStep {
    /// Sends this challenge, and passes the answer on.
    Challenge(String, Box<Challenged>),
    /// Has the keys of a password derived on another thread, and passes them on.
    Derive(Derivation, PasswordCheck),
    /// Tells the client of its success.
    Proved(Box<Proved>),
    /// Tells the client of its failure.
    Failed(Failed),
}

/// A login that failed, and has been counted.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) failure: Failure,
    /// The account whose proof was wrong, or that may not log in.
    pub(super) account: Option<AccountJid>,
    /// A sentence for the client's user, in place of what is said of such a failure otherwise.
    pub(super) text: Option<Box<str>>,
    /// Whether the client may not try again on this stream.
    pub(super) ends_stream: bool,
}

impl From<Failure> for Failed {
    fn from(failure: Failure) -> Failed {
        Failed { failure, account: None, text: None, ends_stream: false }
    }
}

impl From<Failure> for ExchangeStep {
    fn from(failure: Failure) -> ExchangeStep {
        ExchangeStep::Failed(failure.into())
    }
}

/// Begins the exchange, with what the store answered. For an account that does not exist it takes the same course, and fails.
pub(super) fn begin(
    claimant: Claimant,
    first: FirstMessage,
    identity: Option<Box<Identity>>,
    cx: &mut Cx<'_>,
) -> ExchangeStep {
    match first {
        FirstMessage::Scram(first) => scram::begin(claimant, first, identity, cx),
        FirstMessage::Plain(password) => plain::begin(claimant, password, identity, cx),
    }
}

/// Whether a login may be tried from this address, after those that failed.
pub(super) fn admits(address: IpAddr, cx: &mut Cx<'_>) -> Result<(), Failure> {
    let shard = &mut *cx.shard;
    let admitted =
        shard.logins.throttle.admits_from(address, cx.now.mono, &shard.settings.limits, shard.shard_count);
    admitted.map_err(|_| Failure::TemporaryAuthFailure)
}

/// Whether a password of this account may be tried.
pub(super) fn admits_to(claimant: &Claimant, cx: &mut Cx<'_>) -> Result<(), Failure> {
    let (now, shard) = (cx.now.mono, &mut *cx.shard);
    let (limits, shards) = (&shard.settings.limits, shard.shard_count);
    let admitted = shard.logins.throttle.admits_to(claimant.address, &claimant.account, now, limits, shards);
    admitted.map_err(|_| Failure::TemporaryAuthFailure)
}

/// Whether the account may log in, and was not changed since its identity was read.
pub(super) fn may_log_in(identity: &Identity, claimant: &Claimant, cx: &Cx<'_>) -> Result<(), Failure> {
    match identity.state {
        AccountState::Disabled(_) => Err(Failure::AccountDisabled),
        // What the proof was checked against may be outdated: the client may try again.
        AccountState::Enabled
            if cx.shard.accounts.altered.is_after(claimant.account.as_str(), claimant.since) =>
        {
            Err(Failure::TemporaryAuthFailure)
        }
        AccountState::Enabled => Ok(()),
    }
}

/// The proof is right.
fn proved(
    claimant: Claimant,
    identity: Identity,
    mechanism: Mechanism,
    data: Option<String>,
    cx: &mut Cx<'_>,
) -> ExchangeStep {
    if let Err(failure) = may_log_in(&identity, &claimant, cx) {
        return failure.into();
    }
    cx.shard.logins.throttle.succeeded(claimant.address, &claimant.account);
    let data = data.map(String::into_bytes);
    let mechanism = Some(mechanism);
    ExchangeStep::Proved(Box::new(Proved { claimant, identity, mechanism, data, stamp: None, login: None }))
}

/// The proof is wrong: that counts against the account and the address.
fn wrong(claimant: Claimant, failure: Failure, cx: &mut Cx<'_>) -> ExchangeStep {
    let Claimant { account, address, .. } = claimant;
    cx.shard.logins.throttle.failed_to(address, &account, cx.now.mono, &cx.shard.settings.limits);
    cx.login_failed(address);
    ExchangeStep::Failed(Failed { account: Some(account), ..failure.into() })
}

/// The keys of an account. One that does not exist has decoys, the same each time.
fn credentials(identity: Option<&Identity>, account: &BareJid, cx: &Cx<'_>) -> Credentials {
    if let Some(identity) = identity {
        return identity.credentials.clone();
    }
    let settings = &cx.shard.settings;
    let decoy = |hash| keys::decoy(hash, &settings.secret, account.as_str(), settings.scram_iterations);
    Credentials { sha1: Some(decoy(Hash::Sha1)), sha256: Some(decoy(Hash::Sha256)) }
}
