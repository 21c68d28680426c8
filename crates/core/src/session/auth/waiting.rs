//! A client before authentication that waits for an answer of the store, or for keys. Its input is paused meanwhile.

use super::claimant::Claimant;
use super::exchange::{self, PasswordCheck};
use super::proving::Proving;
use super::{Authenticating, claimed};
use crate::Effect;
use crate::connection::{Client, Proof};
use crate::ports::store::accounts;
use crate::ports::{Answer, Ask, Derivation, Derived, Fault, Question};
use crate::sasl::{Failure, SaslProfile};
use crate::session::{Cx, Session};

/// Waits for an answer of the store.
#[derive(Debug)]
pub struct Asking {
    pub(in crate::session) client: Client,
    then: AfterAnswer,
}

/// Waits for keys, which are derived on another thread.
#[derive(Debug)]
pub struct Deriving {
    pub(in crate::session) client: Client,
    then: AfterKeys,
}

/// What uses the answer.
#[expect(
    clippy::large_enum_variant,
    reason = "almost every value is the larger one; a box would cost each login an allocation"
)]
enum AfterAnswer {
    /// The exchange: the question was who the account is.
    Claimant(Claimant, Proof),
    /// A continuation.
    Asker(Box<Continue<Answer>>),
}

/// What uses the keys.
enum AfterKeys {
    /// The comparison of a password.
    Password(SaslProfile, PasswordCheck),
    /// A continuation.
    Asker(Box<Continue<Derived>>),
}

type Continue<T> = dyn FnOnce(Box<Authenticating>, T, &mut Cx<'_>) -> Session + Send;

impl Asking {
    /// Asks who the account is. Nothing else is read for a client that has proved nothing.
    pub(super) fn identity(client: Client, claimant: Claimant, proof: Proof, cx: &mut Cx<'_>) -> Session {
        let local = claimant.account.local().into();
        let ask = accounts::Identity { domain: client.domain.id, local };
        Asking::begin(client, ask, AfterAnswer::Claimant(claimant, proof), cx)
    }

    /// Asks the store; `then` gets the answer.
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
                Authenticating::step(client, profile, step, cx)
            }
            (Proof::Feature(proof), Ok(identity)) => {
                claimed::identified(client, claimant, proof, identity, cx)
            }
            (Proof::Mechanism(profile, _), Err(_)) => {
                Authenticating::refuse(client, &profile, Failure::TemporaryAuthFailure.into(), cx)
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

    /// Has keys derived; `then` gets them.
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
        match then {
            AfterKeys::Password(profile, check) => {
                let step = check.derived(derived, cx);
                Authenticating::step(client, profile, step, cx)
            }
            AfterKeys::Asker(then) => then(Authenticating::again(client), derived, cx),
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
