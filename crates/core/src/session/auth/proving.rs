//! A client at its account's home, whose proof a feature checks.

use super::exchange::{self, Claimant, Failed, may_log_in};
use super::proven::Proved;
use super::{Asking, Authenticating, sasl2};
use crate::connection::{Client, FeatureProof};
use crate::model::{Domain, Identity, Login};
use crate::ports::{Fault, Question};
use crate::sasl::{Failure, Protection, SaslProfile, Stamp};
use crate::session::{Cx, Session};
use crate::shard::CachedLogin;
use carillon_wire::jid::BareJid;

/// A client whose proof is checked. What becomes of it consumes it.
#[derive(Debug)]
pub struct Proving {
    client: Client,
    claimant: Claimant,
    /// What it brought.
    pub proof: FeatureProof,
}

/// What is known of the account that a client claims to be.
#[derive(Debug)]
pub enum KnownAccount {
    /// Who the store says it is.
    Read(Box<Identity>),
    /// What the node remembers of its last login, which stands for what the store says.
    Remembered(CachedLogin),
}

/// A proof that is right.
#[derive(Debug)]
pub struct Proven {
    /// Whose it is.
    pub identity: Identity,
    /// What stands for its keys.
    pub stamp: Stamp,
    /// What belongs to the account, where the node remembers it.
    pub login: Option<Box<Login>>,
    /// What the mechanism says to that.
    pub answer: Vec<u8>,
}

impl Proving {
    pub(super) fn new(client: Client, claimant: Claimant, proof: FeatureProof) -> Proving {
        Proving { client, claimant, proof }
    }

    /// The account that it claims to be.
    pub fn account(&self) -> &BareJid {
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

    /// Whether the account may log in, of which this was read.
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

    /// The proof is right: the client is told so.
    pub fn proved(self, proven: Proven, cx: &mut Cx<'_>) -> Session {
        let Proving { client, claimant, proof } = self;
        let Proven { identity, stamp, login, answer } = proven;
        let proved = Proved { claimant, identity, data: Some(answer), stamp: Some(stamp), login };
        sasl2::succeed(client, proof.inline, proved, cx)
    }

    /// The proof is refused. A wrong one counts against the address, and not against the account: nobody guesses what a feature
    /// gives.
    pub fn wrong(self, failure: Failure, cx: &mut Cx<'_>) -> Session {
        if failure == Failure::NotAuthorized {
            cx.login_failed(self.claimant.address);
        }
        let account = Some(self.claimant.account.clone());
        self.fail(Failed { failure, account }, cx)
    }

    /// The login fails for another reason.
    pub fn refuse(self, failure: Failure, cx: &mut Cx<'_>) -> Session {
        self.fail(failure.into(), cx)
    }

    fn fail(self, failed: Failed, cx: &mut Cx<'_>) -> Session {
        let Proving { client, proof, .. } = self;
        Authenticating::again(client).refuse(&SaslProfile::Sasl2(proof.inline), failed, cx)
    }
}
