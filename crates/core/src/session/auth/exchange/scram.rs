//! SCRAM: the challenge, and the check of the proof.

use super::super::claimant::Claimant;
use super::{ExchangeStep, admits_to, credentials, proved, wrong};
use crate::model::Identity;
use crate::sasl::scram::{self, ClientFirst};
use crate::sasl::{Failure, Hash};
use crate::session::Cx;

/// The client was challenged.
#[derive(Debug)]
pub(in crate::session::auth) struct Challenged {
    claimant: Claimant,
    /// None for an account that does not exist: the exchange takes the same course, and fails.
    identity: Option<Box<Identity>>,
    scram: scram::Challenged,
}

/// Challenges the client.
pub(super) fn begin(
    claimant: Claimant,
    first: ClientFirst,
    identity: Option<Box<Identity>>,
    cx: &mut Cx<'_>,
) -> ExchangeStep {
    let credentials = credentials(identity.as_deref(), &claimant.account, cx);
    let keys = match first.hash() {
        Hash::Sha1 => credentials.sha1,
        Hash::Sha256 => credentials.sha256,
    };
    // Keys may have been imported for one hash only.
    let Some(keys) = keys else { return Failure::NotAuthorized.into() };
    let (message, scram) = first.challenge(keys, &cx.shard.random.token());
    ExchangeStep::Challenge(message, Box::new(Challenged { claimant, identity, scram }))
}

impl Challenged {
    /// The client's last message: the proof.
    pub(in crate::session::auth) fn answered(self, message: &str, cx: &mut Cx<'_>) -> ExchangeStep {
        let Challenged { claimant, identity, scram } = self;
        // Other attempts may have failed meanwhile: then the proof is not checked.
        if let Err(failure) = admits_to(&claimant, cx) {
            return failure.into();
        }
        let mechanism = scram.mechanism();
        match (scram.verify(message), identity) {
            (Ok(signature), Some(identity)) => proved(claimant, *identity, mechanism, Some(signature), cx),
            (Ok(_), None) => wrong(claimant, Failure::NotAuthorized, cx),
            (Err(failure), _) => wrong(claimant, failure, cx),
        }
    }
}
