//! A client at its account's home whose proof is checked by a feature.

use super::claimant::Claimant;
use super::exchange::{self, Failed, may_log_in};
use super::proven::Proved;
use super::{Asking, Authenticating, refusal, sasl2};
use crate::connection::{Client, FeatureProof};
use crate::model::{Domain, Identity, Login};
use crate::ports::{Fault, Question};
use crate::sasl::{Failure, Protection, SaslProfile, Stamp};
use crate::session::{Cx, Session};
use crate::shard::CachedLogin;
use carillon_wire::jid::AccountJid;

/// A client whose proof is being checked. The result consumes it.
#[derive(Debug)]
pub struct Proving {
    client: Client,
    claimant: Claimant,
    /// The proof.
    pub proof: FeatureProof,
}

/// What is known of the account that a client claims to be.
#[derive(Debug)]
pub enum KnownAccount {
    /// Read from the store.
    Read(Box<Identity>),
    /// Taken from the cache of logins, which is as current as the store.
    Remembered(CachedLogin),
}

/// The result of a proof that is right.
#[derive(Debug)]
pub struct Proven {
    /// The account.
    pub identity: Identity,
    /// The stamp of its keys, with which its login is cached.
    pub stamp: Stamp,
    /// What belongs to the account, from the cache.
    pub login: Option<Box<Login>>,
    /// The mechanism's answer to the client.
    pub answer: Vec<u8>,
}

impl Proving {
    pub(super) fn new(client: Client, claimant: Claimant, proof: FeatureProof) -> Proving {
        Proving { client, claimant, proof }
    }

    /// The account that it claims to be.
    pub fn account(&self) -> &AccountJid {
        &self.claimant.account
    }

    /// The account's domain.
    pub fn domain(&self) -> &Domain {
        &self.client.domain
    }

    /// What protects its stream.
    pub fn protection(&self) -> &Protection {
        &self.client.protection
    }

    /// Whether a login may be tried from its address, after those that failed.
    pub fn admits(&self, cx: &mut Cx<'_>) -> Result<(), Failure> {
        exchange::admits(self.claimant.address, cx)
    }

    /// Whether the account may log in.
    pub fn may_log_in(&self, identity: &Identity, cx: &Cx<'_>) -> Result<(), Failure> {
        may_log_in(identity, &self.claimant, cx)
    }

    /// Asks the store; `then` goes on with the answer. The client waits.
    pub fn ask_then<Q: Question>(
        self,
        question: Q,
        then: impl FnOnce(Proving, Result<Q::Answer, Fault>, &mut Cx<'_>) -> Session + Send + 'static,
        cx: &mut Cx<'_>,
    ) -> Session {
        let Proving { client, claimant, proof } = self;
        let then = move |client: Box<Authenticating>, answer, cx: &mut Cx<'_>| {
            then(Proving { client: client.client, claimant, proof }, answer, cx)
        };
        Asking::then(client, question, then, cx)
    }

    /// The proof is right: the client is told, and may bind a resource.
    pub fn proved(self, proven: Proven, cx: &mut Cx<'_>) -> Session {
        let Proving { client, claimant, proof } = self;
        let Proven { identity, stamp, login, answer } = proven;
        let (mechanism, data, stamp) = (None, Some(answer), Some(stamp));
        let proved = Proved { claimant, identity, mechanism, data, stamp, login };
        if let Some(authorise) = cx.pipeline.authorise
            && let Some(failed) = refusal::of(authorise, &client, Some(&proof.inline), &proved, cx)
        {
            return Authenticating::refuse(client, &SaslProfile::Sasl2(proof.inline), failed, cx);
        }
        sasl2::succeed(client, proof.inline, proved, cx)
    }

    /// The proof is refused. A wrong one counts against the address but not against the account, since tokens cannot be guessed.
    pub fn wrong(self, failure: Failure, cx: &mut Cx<'_>) -> Session {
        if failure == Failure::NotAuthorized {
            cx.login_failed(self.claimant.address);
        }
        let account = Some(self.claimant.account.clone());
        self.fail(Failed { account, ..failure.into() }, cx)
    }

    /// The login fails for another reason.
    pub fn refuse(self, failure: Failure, cx: &mut Cx<'_>) -> Session {
        self.fail(failure.into(), cx)
    }

    fn fail(self, failed: Failed, cx: &mut Cx<'_>) -> Session {
        let Proving { client, proof, .. } = self;
        Authenticating::refuse(client, &SaslProfile::Sasl2(proof.inline), failed, cx)
    }
}
