//! The exchange between `<auth/>` and its success or failure.

use super::claimed::Claim;
use super::fast::{self, Stamp, Wanted};
use super::mechanism::Mechanism;
use super::redeem::{Found, Revoking};
use super::scram::{self, ClientFirst};
use super::wrap::{self, Inline, Wrap};
use super::{Authenticated, Failure, Greeting, Proven, RegisterRequest, offer};
use crate::error::StreamError;
use crate::event::{Entry, Kind};
use crate::model::{AccountState, Credentials, Domain, Identity, Mono};
use crate::node::{Cx, Letter, Then};
use crate::ports::{Answer, Ask};
use crate::session::{Closing, Io, Protection, Session};
use carillon_wire::jid::BareJid;
use carillon_wire::ns;
use carillon_wire::stanza::Unit;
use carillon_wire::stream::Condition;
use carillon_wire::xml::Element;
use std::sync::Arc;

/// SASL mechanisms were offered.
#[derive(Debug)]
pub struct Authenticating {
    pub(in crate::session) io: Io,
    pub(super) domain: Arc<Domain>,
    pub(super) protection: Protection,
    attempts: u8,
    /// When the client sent the first element of its present attempt.
    pub(super) began: Mono,
    pub(super) stage: Stage,
}

/// How far the exchange is.
#[derive(Debug)]
pub(super) enum Stage {
    /// A mechanism is to be chosen.
    Idle,
    /// The mechanism is chosen, and its first message is awaited.
    Chosen(Mechanism, Wrap),
    /// The store is asked for the account.
    Asking(Box<Attempt>),
    /// The client is to prove it.
    Challenged(Box<Challenged>),
    /// The store is asked to take a token back.
    Revoking(Box<Revoking>),
    /// The store is asked to create an account (XEP-0077).
    Registering(Box<RegisterRequest>),
}

/// A login that waits for the account.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) wrap: Wrap,
    pub(super) account: BareJid,
    pub(super) proof: Proof,
}

/// How the client proves who it is.
#[derive(Debug)]
pub(super) enum Proof {
    Scram(Mechanism, ClientFirst),
    Plain(String),
    Token(fast::Mechanism, fast::Proof),
}

#[derive(Debug)]
pub(super) struct Challenged {
    wrap: Wrap,
    account: BareJid,
    /// None for an account that is not there: the exchange goes on all the same, to its bad end.
    identity: Option<Box<Identity>>,
    scram: scram::Challenged,
}

impl Authenticating {
    pub(in crate::session) fn new(io: Io, domain: Arc<Domain>, protection: Protection) -> Authenticating {
        Authenticating { io, domain, protection, attempts: 0, began: Mono(0), stage: Stage::Idle }
    }

    pub(in crate::session) fn is_asking(&self) -> bool {
        matches!(self.stage, Stage::Asking(_) | Stage::Revoking(_) | Stage::Registering(_))
    }

    pub(in crate::session) fn unit(mut self: Box<Self>, unit: Unit, cx: &mut Cx<'_>) -> Session {
        let element = match unit {
            Unit::Nonza(element) => element,
            Unit::Stanza(stanza) => return self.stanza(&stanza, cx),
            Unit::Refused { .. } => return self.stranger(cx),
        };
        let stage = std::mem::replace(&mut self.stage, Stage::Idle);
        match (element.name(), element.ns(), stage) {
            ("auth", ns::SASL, Stage::Idle) => {
                self.began = cx.now.mono;
                let first = wrap::decode(&element);
                self.choose(&element, Wrap::Classic, first, cx)
            }
            ("authenticate", ns::SASL2, Stage::Idle) => {
                self.began = cx.now.mono;
                let bind = element.child("bind", ns::BIND2).cloned();
                let Ok(tokens) = Wanted::read(&element) else {
                    return self.fail(&Wrap::Sasl2(Inline::default()), None, Failure::MalformedRequest, cx);
                };
                let inline = Inline { bind, tokens };
                if inline.tokens.using.is_some() {
                    return self.token(&element, inline, cx);
                }
                // XEP-0388: an empty <initial-response/> is an empty message, a missing one is none.
                let first = match element.child("initial-response", ns::SASL2) {
                    Some(initial) => wrap::decode(initial).map(|d| Some(d.unwrap_or_default())),
                    None => Ok(None),
                };
                self.choose(&element, Wrap::Sasl2(inline), first, cx)
            }
            ("response", ns, Stage::Chosen(mechanism, wrap)) if ns == wrap.ns() => {
                match wrap::decode(&element) {
                    Ok(first) => self.first(mechanism, wrap, &first.unwrap_or_default(), cx),
                    Err(failure) => self.fail(&wrap, None, failure, cx),
                }
            }
            ("response", ns, Stage::Challenged(challenged)) if ns == challenged.wrap.ns() => {
                match wrap::decode(&element) {
                    Ok(last) => self.last(*challenged, &last.unwrap_or_default(), cx),
                    Err(failure) => self.fail(&challenged.wrap, None, failure, cx),
                }
            }
            ("abort", ns::SASL | ns::SASL2, stage) => {
                let wrap = stage.into_wrap();
                self.fail(&wrap, None, Failure::Aborted, cx)
            }
            ("auth" | "authenticate" | "response", ns::SASL | ns::SASL2, stage) => {
                let wrap = stage.into_wrap();
                self.fail(&wrap, None, Failure::MalformedRequest, cx)
            }
            _ => self.stranger(cx),
        }
    }

    /// RFC 6120 §4.9.3.12: nothing else is listened to before authentication.
    pub(super) fn stranger(self, cx: &mut Cx<'_>) -> Session {
        let error = StreamError::new(Condition::NotAuthorized, "authenticate first");
        Closing::with_error(self.io, &error, cx)
    }

    pub(super) fn registering(
        mut self: Box<Self>,
        request: RegisterRequest,
        ask: Ask,
        cx: &mut Cx<'_>,
    ) -> Session {
        self.stage = Stage::Registering(Box::new(request));
        self.ask(ask, cx)
    }

    pub(super) fn ask(self: Box<Self>, ask: Ask, cx: &mut Cx<'_>) -> Session {
        cx.ask(ask, Then::Login(self.io.conn));
        cx.out.push(crate::Effect::Pause { conn: self.io.conn });
        Session::Authenticating(self)
    }

    fn choose(
        mut self: Box<Self>,
        element: &Element,
        wrap: Wrap,
        first: Result<Option<String>, Failure>,
        cx: &mut Cx<'_>,
    ) -> Session {
        let offered = offer::mechanisms(&self.protection, cx);
        let named = element.attr("mechanism").and_then(Mechanism::named);
        let Some(mechanism) = named.filter(|m| offered.contains(m)) else {
            return self.fail(&wrap, None, Failure::InvalidMechanism, cx);
        };
        match first {
            Ok(Some(first)) => self.first(mechanism, wrap, &first, cx),
            Ok(None) => {
                // The mechanism speaks first on the client's side: an empty challenge asks for it.
                self.io.send_element(&Element::new("challenge", wrap.ns()), cx);
                self.stage = Stage::Chosen(mechanism, wrap);
                Session::Authenticating(self)
            }
            Err(failure) => self.fail(&wrap, None, failure, cx),
        }
    }

    /// The client's first message: whose login it is. The store is asked what proves it, and nothing else: a stranger
    /// costs no more than that.
    fn first(
        mut self: Box<Self>,
        mechanism: Mechanism,
        wrap: Wrap,
        message: &str,
        cx: &mut Cx<'_>,
    ) -> Session {
        let (proof, username, authzid) = match self.parse(mechanism, message, cx) {
            Ok(parsed) => parsed,
            Err(failure) => return self.fail(&wrap, None, failure, cx),
        };
        let Ok(account) = BareJid::from_parts(Some(&username), &self.domain.name) else {
            return self.fail(&wrap, None, Failure::NotAuthorized, cx);
        };
        if authzid.is_some_and(|id| !is_self(&id, &account)) {
            return self.fail(&wrap, None, Failure::InvalidAuthzid, cx);
        }
        if let Err(failure) = self.admits(&account, cx) {
            return self.fail(&wrap, None, failure, cx);
        }
        let ask = self.question(&account);
        self.stage = Stage::Asking(Box::new(Attempt { wrap, account, proof }));
        self.ask(ask, cx)
    }

    /// Whether a login may be tried, after those that failed.
    pub(super) fn admits(&self, account: &BareJid, cx: &mut Cx<'_>) -> Result<(), Failure> {
        let (address, now, settings) = (self.io.address, cx.now.mono, cx.hub.settings.clone());
        let checked = cx.hub.throttle.check(address, account.as_str(), now, &settings.limits);
        checked.map_err(|_| Failure::TemporaryAuthFailure)
    }

    /// Who an account is, for the store.
    pub(super) fn question(&self, account: &BareJid) -> Ask {
        Ask::Identity { domain: self.domain.id, local: account.local().unwrap_or_default().into() }
    }

    fn parse(
        &self,
        mechanism: Mechanism,
        message: &str,
        cx: &Cx<'_>,
    ) -> Result<(Proof, String, Option<String>), Failure> {
        match mechanism.hash() {
            Some(hash) => {
                let plus = offer::mechanisms(&self.protection, cx).iter().any(|m| m.binds_channel());
                let mut first = ClientFirst::parse(mechanism, hash, message, plus)?;
                let (username, authzid) = (std::mem::take(&mut first.username), first.authzid.take());
                Ok((Proof::Scram(mechanism, first), username, authzid))
            }
            None => {
                // RFC 4616 §2: [authzid] NUL authcid NUL passwd
                let mut parts = message.split('\0');
                let (Some(authzid), Some(username), Some(password), None) =
                    (parts.next(), parts.next(), parts.next(), parts.next())
                else {
                    return Err(Failure::MalformedRequest);
                };
                let authzid = (!authzid.is_empty()).then(|| authzid.to_owned());
                Ok((Proof::Plain(password.to_owned()), username.to_owned(), authzid))
            }
        }
    }

    /// The store answered.
    pub(crate) fn answered(mut self: Box<Self>, answer: Answer, cx: &mut Cx<'_>) -> Session {
        cx.resume(self.io.conn);
        match std::mem::replace(&mut self.stage, Stage::Idle) {
            Stage::Asking(attempt) => match answer {
                Answer::Identity(identity) => self.known(*attempt, Some(identity), cx),
                Answer::Missing => self.known(*attempt, None, cx),
                _ => self.fail(&attempt.wrap, None, Failure::TemporaryAuthFailure, cx),
            },
            Stage::Revoking(revoking) => self.revoked(*revoking, answer, cx),
            Stage::Registering(request) => self.registered(&request, &answer, cx),
            stage => {
                self.stage = stage;
                Session::Authenticating(self)
            }
        }
    }

    fn known(self: Box<Self>, attempt: Attempt, identity: Option<Box<Identity>>, cx: &mut Cx<'_>) -> Session {
        let Attempt { wrap, account, proof } = attempt;
        match proof {
            Proof::Plain(password) => {
                let decoy = || self.decoys(&account, cx);
                let credentials = identity.as_ref().map_or_else(decoy, |i| i.credentials.clone());
                let right = scram::is_password(&password, &credentials);
                match identity.filter(|_| right) {
                    Some(identity) => self.prove(wrap, account, *identity, None, cx),
                    None => self.fail(&wrap, Some(account), Failure::NotAuthorized, cx),
                }
            }
            Proof::Token(mechanism, proof) => {
                let Wrap::Sasl2(inline) = wrap else { unreachable!("only SASL2 has tokens") };
                let claim = Claim { inline, account, mechanism, proof };
                let found = identity.map(|identity| {
                    let stamp = Stamp::of(&cx.hub.settings.secret, &claim.account, &identity.credentials);
                    Found { identity: *identity, stamp, login: None }
                });
                self.redeem(claim, found, cx)
            }
            Proof::Scram(mechanism, first) => self.challenge(wrap, account, mechanism, first, identity, cx),
        }
    }

    fn challenge(
        mut self: Box<Self>,
        wrap: Wrap,
        account: BareJid,
        mechanism: Mechanism,
        first: ClientFirst,
        identity: Option<Box<Identity>>,
        cx: &mut Cx<'_>,
    ) -> Session {
        let hash = mechanism.hash().expect("a SCRAM mechanism has a hash");
        let credentials = match &identity {
            Some(identity) => identity.credentials.clone(),
            None => self.decoys(&account, cx),
        };
        let keys = match hash {
            super::mechanism::Hash::Sha1 => credentials.sha1,
            super::mechanism::Hash::Sha256 => credentials.sha256,
        };
        // Keys that were imported for one hash only: the other mechanism is of no use for this account.
        let Some(keys) = keys else {
            return self.fail(&wrap, None, Failure::NotAuthorized, cx);
        };
        let nonce = cx.hub.random.token();
        let none = crate::Binding::default();
        let channel = match &self.protection {
            Protection::Tls(binding) => binding,
            Protection::None | Protection::Trusted => &none,
        };
        match first.challenge(keys, &nonce, channel) {
            Ok((message, scram)) => {
                self.io.send_element(&wrap.challenge(&message), cx);
                self.stage = Stage::Challenged(Box::new(Challenged { wrap, account, identity, scram }));
                Session::Authenticating(self)
            }
            Err(failure) => self.fail(&wrap, None, failure, cx),
        }
    }

    /// The client's last message: the proof.
    fn last(self: Box<Self>, challenged: Challenged, message: &str, cx: &mut Cx<'_>) -> Session {
        let Challenged { wrap, account, identity, scram } = challenged;
        match (scram.verify(message), identity) {
            (Ok(signature), Some(identity)) => self.prove(wrap, account, *identity, Some(signature), cx),
            (Ok(_), None) => self.fail(&wrap, Some(account), Failure::NotAuthorized, cx),
            (Err(failure), _) => self.fail(&wrap, Some(account), failure, cx),
        }
    }

    fn prove(
        self: Box<Self>,
        wrap: Wrap,
        account: BareJid,
        identity: Identity,
        data: Option<String>,
        cx: &mut Cx<'_>,
    ) -> Session {
        if let AccountState::Disabled(_) = identity.state {
            return self.fail(&wrap, None, Failure::AccountDisabled, cx);
        }
        let stamp = match &wrap {
            Wrap::Sasl2(inline) if inline.tokens.is_returning() => {
                Some(Stamp::of(&cx.hub.settings.secret, &account, &identity.credentials))
            }
            Wrap::Sasl2(_) | Wrap::Classic => None,
        };
        let stamp = stamp.filter(|_| cx.hub.settings.fast.are_tokens_on());
        let authenticated = Authenticated::proved(account, self.domain.id, identity, stamp, None);
        let greeting = Greeting::Success { wrap, data: data.map(String::into_bytes), token: None };
        Proven::new(self.io, authenticated, greeting, self.began).go_home(cx)
    }

    /// Says why, and lets the client try again, not too often. `account`: the one whose proof was wrong.
    pub(super) fn fail(
        mut self: Box<Self>,
        wrap: &Wrap,
        account: Option<BareJid>,
        failure: Failure,
        cx: &mut Cx<'_>,
    ) -> Session {
        self.io.send_element(&wrap.failure(failure), cx);
        self.attempts += 1;
        cx.hub.counters.login_failures.count(failure.as_str());
        cx.out.journal.note(cx.now.unix, Kind::LoginFailure, || Entry::LoginFailure {
            account: account.as_ref().map(BareJid::as_str),
            address: self.io.address,
            reason: failure.as_str(),
        });
        if let Some(account) = account {
            let address = self.io.address;
            cx.post_all(|| Letter::LoginFailed { address, account: account.clone() });
        }
        if self.attempts >= cx.hub.settings.limits.auth_attempts {
            let error = StreamError::new(Condition::PolicyViolation, "too many failed logins");
            return Closing::with_error(self.io, &error, cx);
        }
        Session::Authenticating(self)
    }

    fn decoys(&self, account: &BareJid, cx: &Cx<'_>) -> Credentials {
        use super::mechanism::Hash;
        let decoy = |hash| {
            scram::decoy(hash, &cx.hub.settings.secret, account.as_str(), cx.hub.settings.scram_iterations)
        };
        Credentials { sha1: Some(decoy(Hash::Sha1)), sha256: Some(decoy(Hash::Sha256)) }
    }
}

impl Stage {
    fn into_wrap(self) -> Wrap {
        match self {
            Stage::Chosen(_, wrap) => wrap,
            Stage::Asking(attempt) => attempt.wrap,
            Stage::Challenged(challenged) => challenged.wrap,
            Stage::Idle | Stage::Revoking(_) | Stage::Registering(_) => Wrap::Classic,
        }
    }
}

/// Whether an authorization identity is the account itself.
fn is_self(authzid: &str, account: &BareJid) -> bool {
    BareJid::new(authzid).is_ok_and(|jid| jid == *account)
}
