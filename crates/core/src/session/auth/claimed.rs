//! A client has named its account. The login continues at the account's home, which counts the account's failed logins, hears of its
//! changes and may have its last login in the cache: so the connection moves there first.

use super::claimant::Claimant;
use super::exchange;
use super::proving::{KnownAccount, Proving};
use super::{Asking, Authenticating};
use crate::Effect;
use crate::connection::{Claim, Claimed, Client, FeatureProof, Proof};
use crate::model::{ConnId, DomainId, Identity, Place};
use crate::sasl::Failure;
use crate::session::{Cx, Session};
use crate::shard::{CachedLogin, Deadline};
use carillon_wire::jid::AccountJid;

impl Claimed {
    /// The account that it claims to be.
    pub fn account(&self) -> &AccountJid {
        &self.claim.account
    }

    /// The account's domain.
    pub fn domain(&self) -> DomainId {
        self.client.domain.id
    }

    /// Whether a feature checks its proof: then the cached login may be used.
    pub fn is_for_feature(&self) -> bool {
        matches!(self.claim.proof, Proof::Feature(_))
    }

    /// Its connection.
    pub fn conn(&self) -> ConnId {
        self.client.io.conn
    }

    /// It has a new number on the shard it came to, where the timeout of its login continues.
    pub fn arrived(&mut self, conn: ConnId, cx: &mut Cx<'_>) {
        self.client.io.conn = conn;
        cx.set_deadline(conn, cx.shard.settings.timeouts.auth_ms, Deadline::Login);
    }

    /// Leaves for its account's home, or for the shard that knows where that is.
    pub fn depart(self: Box<Self>, to: Place, cx: &mut Cx<'_>) {
        let conn = self.client.io.conn;
        cx.out.push(Effect::Move { conn, to, moving: self });
    }

    /// At the account's home, with the account's cached login. Where a feature checks the proof, that saves the question to the
    /// store.
    pub fn at_home(self, remembered: Option<CachedLogin>, cx: &mut Cx<'_>) -> Session {
        let Claimed { client, claim } = self;
        let Claim { account, proof } = claim;
        let claimant =
            Claimant { account, address: client.io.address, since: cx.shard.accounts.altered.now() };
        match (proof, remembered) {
            (Proof::Feature(proof), Some(remembered)) => {
                check(Proving::new(client, claimant, proof), Some(KnownAccount::Remembered(remembered)), cx)
            }
            // A token cannot be guessed, so it is not refused because somebody guesses passwords.
            (Proof::Feature(proof), None) => Asking::identity(client, claimant, Proof::Feature(proof), cx),
            (Proof::Mechanism(profile, first), _) => {
                if let Err(failure) = exchange::admits_to(&claimant, cx) {
                    return Authenticating::refuse(client, &profile, failure.into(), cx);
                }
                Asking::identity(client, claimant, Proof::Mechanism(profile, first), cx)
            }
        }
    }
}

/// The store answered who the account is: the feature checks the proof.
pub(super) fn identified(
    client: Client,
    claimant: Claimant,
    proof: FeatureProof,
    identity: Option<Box<Identity>>,
    cx: &mut Cx<'_>,
) -> Session {
    check(Proving::new(client, claimant, proof), identity.map(KnownAccount::Read), cx)
}

fn check(proving: Proving, account: Option<KnownAccount>, cx: &mut Cx<'_>) -> Session {
    match cx.pipeline.proof_handler(proving.proof.kind) {
        Some(handler) => (handler.check)(proving, account, cx),
        // The client came from a node where the feature is enabled.
        None => proving.refuse(Failure::InvalidMechanism, cx),
    }
}
