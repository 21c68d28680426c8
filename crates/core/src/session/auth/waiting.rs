//! A client that is not authenticated, and waits: for an answer of the store, or for keys. What it sends meanwhile waits too.

use super::exchange::{self, Claimant, PasswordCheck};
use super::proving::Proving;
use super::{Authenticating, claimed};
use crate::Effect;
use crate::connection::{Client, Proof};
use crate::ports::store::accounts;
use crate::ports::{Answer, Ask, Derivation, Derived, Fault, Question};
use crate::sasl::{Failure, SaslProfile};
use crate::session::{Cx, Session};

/// The store is asked.
#[derive(Debug)]
pub struct Asking {
    pub(in crate::session) client: Client,
    then: AfterAnswer,
}

/// Keys are derived, off this thread.
#[derive(Debug)]
pub struct Deriving {
    pub(in crate::session) client: Client,
    then: AfterKeys,
}

/// Who goes on with an answer.
#[expect(
    clippy::large_enum_variant,
    reason = "the larger one is the usual one: a box would be an allocation more per login"
)]
enum AfterAnswer {
    /// Whoever claims to be the account: it was asked who that is.
    Claimant(Claimant, Proof),
    /// Whoever asked.
    Asker(Box<Continue<Answer>>),
}

/// Who goes on with keys.
enum AfterKeys {
    /// A password is compared.
    Password(SaslProfile, PasswordCheck),
    /// Whoever wanted them.
    Asker(Box<Continue<Derived>>),
}

type Continue<T> = dyn FnOnce(Box<Authenticating>, T, &mut Cx<'_>) -> Session + Send;

impl Asking {
    /// Asks who the account is, and nothing else, since a stranger is to cost no more.
    pub(super) fn identity(client: Client, claimant: Claimant, proof: Proof, cx: &mut Cx<'_>) -> Session {
        let local = claimant.account.local().unwrap_or_default().into();
        let ask = accounts::Identity { domain: client.domain.id, local };
        Asking::begin(client, ask, AfterAnswer::Claimant(claimant, proof), cx)
    }

    /// Asks; `then` goes on with the answer.
    pub(super) fn then<Q: Question>(
        client: Client,
        question: Q,
        then: impl FnOnce(Box<Authenticating>, Result<Q::Answer, Fault>, &mut Cx<'_>) -> Session + Send + 'static,
        cx: &mut Cx<'_>,
    ) -> Session {
        let then = move |client, answer, cx: &mut Cx<'_>| then(client, Q::answer(answer), cx);
        Asking::begin(client, question, AfterAnswer::Asker(Box::new(then)), cx)
    }

    fn begin(client: Client, question: impl Into<Ask>, then: AfterAnswer, cx: &mut Cx<'_>) -> Session {
        cx.ask_unbound(client.io.conn, question);
        cx.out.push(Effect::Pause { conn: client.io.conn });
        Session::Asking(Box::new(Asking { client, then }))
    }

    /// The store answered.
    pub(crate) fn answered(self, answer: Answer, cx: &mut Cx<'_>) -> Session {
        let Asking { client, then } = self;
        cx.resume(client.io.conn);
        let (claimant, proof) = match then {
            AfterAnswer::Asker(then) => return then(Authenticating::again(client), answer, cx),
            AfterAnswer::Claimant(claimant, proof) => (claimant, proof),
        };
        match (proof, accounts::Identity::answer(answer)) {
            (Proof::Mechanism(profile, first), Ok(identity)) => {
                let step = exchange::begin(claimant, first, identity, cx);
                Authenticating::again(client).step(profile, step, cx)
            }
            (Proof::Feature(proof), Ok(identity)) => {
                claimed::identified(client, claimant, proof, identity, cx)
            }
            (Proof::Mechanism(profile, _), Err(_)) => {
                Authenticating::again(client).refuse(&profile, Failure::TemporaryAuthFailure.into(), cx)
            }
            (Proof::Feature(proof), Err(_)) => {
                Proving::new(client, claimant, proof).refuse(Failure::TemporaryAuthFailure, cx)
            }
        }
    }
}

impl Deriving {
    /// Has the keys of a password derived, to be compared.
    pub(super) fn password(
        client: Client,
        profile: SaslProfile,
        derivation: Derivation,
        check: PasswordCheck,
        cx: &mut Cx<'_>,
    ) -> Session {
        Deriving::begin(client, derivation, AfterKeys::Password(profile, check), cx)
    }

    /// Has keys derived; `then` goes on with them.
    pub(super) fn then(
        client: Client,
        derivation: Derivation,
        then: impl FnOnce(Box<Authenticating>, Derived, &mut Cx<'_>) -> Session + Send + 'static,
        cx: &mut Cx<'_>,
    ) -> Session {
        Deriving::begin(client, derivation, AfterKeys::Asker(Box::new(then)), cx)
    }

    fn begin(client: Client, derivation: Derivation, then: AfterKeys, cx: &mut Cx<'_>) -> Session {
        cx.derive_unbound(client.io.conn, derivation);
        cx.out.push(Effect::Pause { conn: client.io.conn });
        Session::Deriving(Box::new(Deriving { client, then }))
    }

    /// Keys were derived.
    pub(crate) fn derived(self, derived: Derived, cx: &mut Cx<'_>) -> Session {
        let Deriving { client, then } = self;
        cx.resume(client.io.conn);
        let client = Authenticating::again(client);
        match then {
            AfterKeys::Password(profile, check) => client.step(profile, check.derived(derived, cx), cx),
            AfterKeys::Asker(then) => then(client, derived, cx),
        }
    }
}

impl std::fmt::Debug for AfterAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            AfterAnswer::Claimant(claimant, _) => claimant.fmt(f),
            AfterAnswer::Asker(_) => f.write_str("Asker"),
        }
    }
}

impl std::fmt::Debug for AfterKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            AfterKeys::Password(_, check) => check.fmt(f),
            AfterKeys::Asker(_) => f.write_str("Asker"),
        }
    }
}
