//! PLAIN: keys are derived from the password, on another thread since it takes milliseconds, and compared.

use super::super::claimant::Claimant;
use super::{ExchangeStep, Failed, admits, admits_to, credentials, proved, wrong};
use crate::model::{Identity, ScramKeys};
use crate::ports::{Derivation, Derived, Hashes, Password};
use crate::sasl::{Failure, Hash, Mechanism};
use crate::session::Cx;
use subtle::ConstantTimeEq;

/// A password that is to be compared once its keys are derived.
#[derive(Debug)]
pub(in crate::session::auth) struct PasswordCheck {
    claimant: Claimant,
    /// None for an account that does not exist: the comparison takes the same course, and fails.
    identity: Option<Box<Identity>>,
    stored_key: Box<[u8]>,
}

/// Has the keys derived. The attempt counts as a failure at once, so that many attempts at the same time do not exceed the bound.
pub(super) fn begin(
    claimant: Claimant,
    password: Password,
    identity: Option<Box<Identity>>,
    cx: &mut Cx<'_>,
) -> ExchangeStep {
    if let Err(failure) = admits_to(&claimant, cx) {
        return failure.into();
    }
    let Some(domain) = cx.shard.domains.named(claimant.account.domain()).map(|domain| domain.id) else {
        return wrong(claimant, Failure::NotAuthorized, cx);
    };
    let credentials = credentials(identity.as_deref(), &claimant.account, cx);
    let (hash, keys) = match (credentials.sha256, credentials.sha1) {
        (Some(keys), _) => (Hash::Sha256, keys),
        (None, Some(keys)) => (Hash::Sha1, keys),
        (None, None) => return wrong(claimant, Failure::NotAuthorized, cx),
    };
    let limits = &cx.shard.settings.limits;
    cx.shard.logins.throttle.failed_to(claimant.address, &claimant.account, cx.now.mono, limits);
    let ScramKeys { salt, iterations, stored_key, .. } = keys;
    let derivation = Derivation { domain, password, salt, iterations, hashes: Hashes::One(hash) };
    ExchangeStep::Derive(derivation, PasswordCheck { claimant, identity, stored_key })
}

impl PasswordCheck {
    /// The keys are there.
    pub(in crate::session::auth) fn derived(self, derived: Derived, cx: &mut Cx<'_>) -> ExchangeStep {
        let PasswordCheck { claimant, identity, stored_key } = self;
        let keys = match derived {
            Derived::Keys(keys) => keys.sha256.or(keys.sha1),
            Derived::Unusable => None,
            Derived::Busy => {
                cx.shard.logins.throttle.forgive(claimant.address, &claimant.account);
                return Failure::TemporaryAuthFailure.into();
            }
        };
        // Other attempts may have failed meanwhile: then the client does not learn the result.
        if let Err(failure) = admits(claimant.address, cx) {
            return failure.into();
        }
        let is_right = keys.is_some_and(|keys| keys.stored_key.ct_eq(&stored_key).into());
        match identity.filter(|_| is_right) {
            Some(identity) => {
                cx.shard.logins.throttle.forgive(claimant.address, &claimant.account);
                proved(claimant, *identity, Mechanism::Plain, None, cx)
            }
            None => {
                // It was counted against the account when it began.
                cx.login_failed(claimant.address);
                ExchangeStep::Failed(Failed {
                    account: Some(claimant.account),
                    ..Failure::NotAuthorized.into()
                })
            }
        }
    }
}
