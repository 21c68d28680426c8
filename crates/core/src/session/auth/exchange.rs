//! The exchange between `<auth/>` and its success or failure.

use super::redeem::{Found, Revoking, TokenClaim};
use super::{Authenticated, Greeting, offer};
use crate::connection::{Claim, Claimed, Client, Io, Proof};
use crate::error::StreamError;
use crate::event::{Entry, Kind};
use crate::model::{AccountState, Credentials, Domain, Identity, Moment, Mono, ScramKeys};
use crate::ports::store::accounts;
use crate::ports::{Answer, Ask, Derivation, Derived, Fault, Hashes, Password, Question};
use crate::sasl::fast::{Stamp, Wanted};
use crate::sasl::scram::{self, ClientFirst};
use crate::sasl::{self, Failure, Hash, Inline, Mechanism, Protection, Wrap};
use crate::session::{Closing, Cx, Session};
use carillon_wire::jid::BareJid;
use carillon_wire::ns;
use carillon_wire::stanza::{Stanza, Unit};
use carillon_wire::stream::Condition;
use carillon_wire::xml::Element;
use std::net::IpAddr;
use std::sync::Arc;
use subtle::ConstantTimeEq;

/// SASL mechanisms were offered.
#[derive(Debug)]
pub struct Authenticating {
    pub(in crate::session) client: Client,
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
    Asking(Box<Claim>),
    /// The keys of a password are being derived, off this thread.
    Deriving(Box<Deriving>),
    /// The client is to prove it.
    Challenged(Box<Challenged>),
    /// The store is asked to take a token back.
    Revoking(Box<Revoking>),
    /// A feature waits for an answer.
    Waiting(Waiting),
}

/// Goes on with what was asked for.
type Continue<T> = dyn FnOnce(Box<Authenticating>, T, &mut Cx<'_>) -> Session + Send;

/// Who goes on with what a feature asked for.
pub(super) enum Waiting {
    Answer(Box<Continue<Answer>>),
    Derived(Box<Continue<Derived>>),
}

impl std::fmt::Debug for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Waiting::Answer(_) => "Answer",
            Waiting::Derived(_) => "Derived",
        })
    }
}

/// A password on its way to be compared.
#[derive(Debug)]
pub(super) struct Deriving {
    wrap: Wrap,
    account: BareJid,
    since: Moment,
    /// None for an account that is not there: the password is compared all the same, to the same end.
    identity: Option<Box<Identity>>,
    stored_key: Box<[u8]>,
}

#[derive(Debug)]
pub(super) struct Challenged {
    wrap: Wrap,
    account: BareJid,
    since: Moment,
    /// None for an account that is not there: the exchange goes on all the same, to its bad end.
    identity: Option<Box<Identity>>,
    scram: scram::Challenged,
}

impl Authenticating {
    pub(in crate::session) fn new(io: Io, domain: Arc<Domain>, protection: Protection) -> Authenticating {
        let client = Client { io, domain, protection, attempts: 0, misfits: 0, began: Mono(0) };
        Authenticating { client, stage: Stage::Idle }
    }

    /// A client whose exchange goes on at its account's home.
    pub(super) fn again(client: Client) -> Box<Authenticating> {
        Box::new(Authenticating { client, stage: Stage::Idle })
    }

    pub(in crate::session) fn is_asking(&self) -> bool {
        matches!(self.stage, Stage::Asking(_) | Stage::Deriving(_) | Stage::Revoking(_) | Stage::Waiting(_))
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
                self.client.began = cx.now.mono;
                let first = sasl::decode(&element);
                self.choose(&element, Wrap::Classic, first, cx)
            }
            ("authenticate", ns::SASL2, Stage::Idle) => {
                self.client.began = cx.now.mono;
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
                    Some(initial) => sasl::decode(initial).map(|d| Some(d.unwrap_or_default())),
                    None => Ok(None),
                };
                self.choose(&element, Wrap::Sasl2(inline), first, cx)
            }
            ("response", ns, Stage::Chosen(mechanism, wrap)) if ns == wrap.ns() => {
                match sasl::decode(&element) {
                    Ok(first) => self.first(mechanism, wrap, &first.unwrap_or_default(), cx),
                    Err(failure) => self.fail(&wrap, None, failure, cx),
                }
            }
            ("response", ns, Stage::Challenged(challenged)) if ns == challenged.wrap.ns() => {
                match sasl::decode(&element) {
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

    /// The domain that the client wants to log in to.
    pub fn domain(&self) -> &Domain {
        &self.client.domain
    }

    /// The client's address.
    pub fn address(&self) -> IpAddr {
        self.client.io.address
    }

    /// Answers a stanza.
    pub fn reply(self: Box<Self>, reply: &Stanza, cx: &mut Cx<'_>) -> Session {
        self.client.io.send_stanza(reply, cx);
        Session::Authenticating(self)
    }

    /// Asks the store; `then` goes on with the answer. The client waits.
    pub fn ask_then<Q: Question>(
        mut self: Box<Self>,
        question: Q,
        then: impl FnOnce(Box<Authenticating>, Result<Q::Answer, Fault>, &mut Cx<'_>) -> Session + Send + 'static,
        cx: &mut Cx<'_>,
    ) -> Session {
        let then = move |client, answer, cx: &mut Cx<'_>| then(client, Q::answer(answer), cx);
        self.stage = Stage::Waiting(Waiting::Answer(Box::new(then)));
        self.ask(question, cx)
    }

    /// Has keys derived; `then` goes on with them. The client waits.
    pub fn derive_then(
        mut self: Box<Self>,
        derivation: Derivation,
        then: impl FnOnce(Box<Authenticating>, Derived, &mut Cx<'_>) -> Session + Send + 'static,
        cx: &mut Cx<'_>,
    ) -> Session {
        self.stage = Stage::Waiting(Waiting::Derived(Box::new(then)));
        self.derive(derivation, cx)
    }

    fn stanza(mut self: Box<Self>, stanza: &Stanza, cx: &mut Cx<'_>) -> Session {
        for hook in &cx.pipeline.stanza_before_auth {
            match hook(self, stanza, cx) {
                Ok(session) => return session,
                Err(client) => self = client,
            }
        }
        self.stranger(cx)
    }

    /// RFC 6120 §4.9.3.12: nothing else is listened to before authentication.
    pub(super) fn stranger(self, cx: &mut Cx<'_>) -> Session {
        let error = StreamError::new(Condition::NotAuthorized, "authenticate first");
        Closing::with_error(self.client.io, &error, cx)
    }

    /// Waits for the answer to what the store is asked.
    pub(super) fn ask(self: Box<Self>, question: impl Into<Ask>, cx: &mut Cx<'_>) -> Session {
        cx.ask_unbound(self.client.io.conn, question);
        self.pause(cx)
    }

    /// Waits for keys to be derived.
    pub(super) fn derive(self: Box<Self>, derivation: Derivation, cx: &mut Cx<'_>) -> Session {
        cx.derive_unbound(self.client.io.conn, derivation);
        self.pause(cx)
    }

    fn pause(self: Box<Self>, cx: &mut Cx<'_>) -> Session {
        cx.out.push(crate::Effect::Pause { conn: self.client.io.conn });
        Session::Authenticating(self)
    }

    fn choose(
        mut self: Box<Self>,
        element: &Element,
        wrap: Wrap,
        first: Result<Option<String>, Failure>,
        cx: &mut Cx<'_>,
    ) -> Session {
        let offered = offer::mechanisms(&self.client.protection, wrap.ns(), cx);
        let named = element.attr("mechanism").and_then(Mechanism::named);
        let Some(mechanism) = named.filter(|m| offered.contains(m)) else {
            return self.fail(&wrap, None, Failure::InvalidMechanism, cx);
        };
        match first {
            Ok(Some(first)) => self.first(mechanism, wrap, &first, cx),
            Ok(None) => {
                // The mechanism speaks first on the client's side: an empty challenge asks for it.
                self.client.io.send_element(&Element::new("challenge", wrap.ns()), cx);
                self.stage = Stage::Chosen(mechanism, wrap);
                Session::Authenticating(self)
            }
            Err(failure) => self.fail(&wrap, None, failure, cx),
        }
    }

    /// The client's first message: whose login it is. It goes on at the account's home.
    fn first(self: Box<Self>, mechanism: Mechanism, wrap: Wrap, message: &str, cx: &mut Cx<'_>) -> Session {
        let (proof, username, authzid) = match self.parse(mechanism, &wrap, message, cx) {
            Ok(parsed) => parsed,
            Err(failure) => return self.fail(&wrap, None, failure, cx),
        };
        let Ok(account) = BareJid::from_parts(Some(&username), &self.client.domain.name) else {
            return self.fail(&wrap, None, Failure::NotAuthorized, cx);
        };
        if authzid.is_some_and(|id| !is_self(&id, &account)) {
            return self.fail(&wrap, None, Failure::InvalidAuthzid, cx);
        }
        if let Err(failure) = self.admits(cx) {
            return self.fail(&wrap, None, failure, cx);
        }
        let claim = Claim { wrap, account, proof, since: Moment::default() };
        Session::Claimed(Claimed::new(self, claim))
    }

    /// At the account's home: the store is asked what proves it, and nothing else, since a stranger is to cost no more.
    pub(super) fn ask_for(mut self: Box<Self>, claim: Claim, cx: &mut Cx<'_>) -> Session {
        // Tokens cannot be guessed: they are not refused because somebody guesses passwords.
        let is_password = !matches!(claim.proof, Proof::Token(..));
        if is_password && let Err(failure) = self.admits_to(&claim.account, cx) {
            return self.fail(&claim.wrap, None, failure, cx);
        }
        let local = claim.account.local().unwrap_or_default().into();
        let ask = accounts::Identity { domain: self.client.domain.id, local };
        self.stage = Stage::Asking(Box::new(claim));
        self.ask(ask, cx)
    }

    /// Whether a login may be tried from this address, after those that failed.
    pub(super) fn admits(&self, cx: &mut Cx<'_>) -> Result<(), Failure> {
        let (address, now, shard) = (self.client.io.address, cx.now.mono, &mut *cx.shard);
        let admitted = shard.throttle.admits_from(address, now, &shard.settings.limits);
        admitted.map_err(|_| Failure::TemporaryAuthFailure)
    }

    /// The same for a password of an account that is at home here.
    fn admits_to(&self, account: &BareJid, cx: &mut Cx<'_>) -> Result<(), Failure> {
        let (address, now, shard) = (self.client.io.address, cx.now.mono, &mut *cx.shard);
        let admitted = shard.throttle.admits_to(address, account, now, &shard.settings.limits);
        admitted.map_err(|_| Failure::TemporaryAuthFailure)
    }

    fn parse(
        &self,
        mechanism: Mechanism,
        wrap: &Wrap,
        message: &str,
        cx: &Cx<'_>,
    ) -> Result<(Proof, String, Option<String>), Failure> {
        match mechanism.hash() {
            Some(hash) => {
                let offered = offer::mechanisms(&self.client.protection, wrap.ns(), cx);
                let plus = offered.iter().any(|m| m.binds_channel());
                let mut first = ClientFirst::parse(mechanism, hash, message, plus)?;
                first.bind(self.client.protection.binding())?;
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
                let password = Password::new(password).ok_or(Failure::NotAuthorized)?;
                Ok((Proof::Plain(password), username.to_owned(), authzid))
            }
        }
    }

    /// The store answered.
    pub(crate) fn answered(mut self: Box<Self>, answer: Answer, cx: &mut Cx<'_>) -> Session {
        cx.resume(self.client.io.conn);
        match std::mem::replace(&mut self.stage, Stage::Idle) {
            Stage::Asking(claim) => match accounts::Identity::answer(answer) {
                Ok(identity) => self.known(*claim, identity, cx),
                Err(_) => self.fail(&claim.wrap, None, Failure::TemporaryAuthFailure, cx),
            },
            Stage::Revoking(revoking) => self.revoked(*revoking, answer, cx),
            Stage::Waiting(Waiting::Answer(then)) => then(self, answer, cx),
            stage => {
                self.stage = stage;
                Session::Authenticating(self)
            }
        }
    }

    /// Keys were derived.
    pub(crate) fn derived(mut self: Box<Self>, derived: Derived, cx: &mut Cx<'_>) -> Session {
        cx.resume(self.client.io.conn);
        match std::mem::replace(&mut self.stage, Stage::Idle) {
            Stage::Deriving(deriving) => self.compare(*deriving, derived, cx),
            Stage::Waiting(Waiting::Derived(then)) => then(self, derived, cx),
            stage => {
                self.stage = stage;
                Session::Authenticating(self)
            }
        }
    }

    fn known(self: Box<Self>, claim: Claim, identity: Option<Box<Identity>>, cx: &mut Cx<'_>) -> Session {
        let Claim { wrap, account, proof, since } = claim;
        match proof {
            Proof::Plain(password) => {
                self.password(Claimant { wrap, account, since }, password, identity, cx)
            }
            Proof::Token(mechanism, proof) => {
                let Wrap::Sasl2(inline) = wrap else { unreachable!("only SASL2 has tokens") };
                let found = identity.map(|identity| {
                    let stamp = Stamp::of(&cx.shard.settings.secret, &account, &identity.credentials);
                    Found { identity: *identity, stamp, login: None }
                });
                self.redeem(TokenClaim { inline, account, since, mechanism, proof }, found, cx)
            }
            Proof::Scram(mechanism, first) => {
                self.challenge(Claimant { wrap, account, since }, mechanism, first, identity, cx)
            }
        }
    }

    /// A password in clear: its keys are derived elsewhere, which takes milliseconds. That it is tried counts at once as a
    /// failure, so that many that are tried together are no more than the bound.
    fn password(
        mut self: Box<Self>,
        claimant: Claimant,
        password: Password,
        identity: Option<Box<Identity>>,
        cx: &mut Cx<'_>,
    ) -> Session {
        let Claimant { wrap, account, since } = claimant;
        if let Err(failure) = self.admits_to(&account, cx) {
            return self.fail(&wrap, None, failure, cx);
        }
        let credentials = match &identity {
            Some(identity) => identity.credentials.clone(),
            None => self.decoys(&account, cx),
        };
        let (hash, keys) = match (credentials.sha256, credentials.sha1) {
            (Some(keys), _) => (Hash::Sha256, keys),
            (None, Some(keys)) => (Hash::Sha1, keys),
            (None, None) => return self.fail(&wrap, Some(&account), Failure::NotAuthorized, cx),
        };
        let limits = &cx.shard.settings.limits;
        cx.shard.throttle.failed_to(self.client.io.address, &account, cx.now.mono, limits);
        let ScramKeys { salt, iterations, stored_key, .. } = keys;
        self.stage = Stage::Deriving(Box::new(Deriving { wrap, account, since, identity, stored_key }));
        self.derive(Derivation { password, salt, iterations, hashes: Hashes::One(hash) }, cx)
    }

    fn compare(self: Box<Self>, deriving: Deriving, derived: Derived, cx: &mut Cx<'_>) -> Session {
        let Deriving { wrap, account, since, identity, stored_key } = deriving;
        let keys = match derived {
            Derived::Keys(keys) => keys.sha256.or(keys.sha1),
            Derived::Unusable => None,
            Derived::Busy => {
                cx.shard.throttle.forgive(self.client.io.address, &account);
                return self.fail(&wrap, None, Failure::TemporaryAuthFailure, cx);
            }
        };
        // Those who tried beside it may have failed meanwhile: then it is not told how it ended.
        if let Err(failure) = self.admits(cx) {
            return self.fail(&wrap, None, failure, cx);
        }
        let is_right = keys.is_some_and(|keys| keys.stored_key.ct_eq(&stored_key).into());
        let address = self.client.io.address;
        match identity.filter(|_| is_right) {
            Some(identity) => {
                cx.shard.throttle.forgive(address, &account);
                self.prove(Claimant { wrap, account, since }, *identity, None, cx)
            }
            None => {
                // It is counted with its account already.
                cx.login_failed(address);
                self.refuse(&wrap, Some(&account), Failure::NotAuthorized, cx)
            }
        }
    }

    fn challenge(
        mut self: Box<Self>,
        claimant: Claimant,
        mechanism: Mechanism,
        first: ClientFirst,
        identity: Option<Box<Identity>>,
        cx: &mut Cx<'_>,
    ) -> Session {
        let Claimant { wrap, account, since } = claimant;
        let hash = mechanism.hash().expect("a SCRAM mechanism has a hash");
        let credentials = match &identity {
            Some(identity) => identity.credentials.clone(),
            None => self.decoys(&account, cx),
        };
        let keys = match hash {
            Hash::Sha1 => credentials.sha1,
            Hash::Sha256 => credentials.sha256,
        };
        // Keys that were imported for one hash only: the other mechanism is of no use for this account.
        let Some(keys) = keys else {
            return self.fail(&wrap, None, Failure::NotAuthorized, cx);
        };
        let nonce = cx.shard.random.token();
        let (message, scram) = first.challenge(keys, &nonce);
        self.client.io.send_element(&wrap.challenge(&message), cx);
        self.stage = Stage::Challenged(Box::new(Challenged { wrap, account, since, identity, scram }));
        Session::Authenticating(self)
    }

    /// The client's last message: the proof.
    fn last(self: Box<Self>, challenged: Challenged, message: &str, cx: &mut Cx<'_>) -> Session {
        let Challenged { wrap, account, since, identity, scram } = challenged;
        // Those who tried beside it may have failed meanwhile: then its proof is not looked at.
        if let Err(failure) = self.admits_to(&account, cx) {
            return self.fail(&wrap, None, failure, cx);
        }
        match (scram.verify(message), identity) {
            (Ok(signature), Some(identity)) => {
                self.prove(Claimant { wrap, account, since }, *identity, Some(signature), cx)
            }
            (Ok(_), None) => self.fail(&wrap, Some(&account), Failure::NotAuthorized, cx),
            (Err(failure), _) => self.fail(&wrap, Some(&account), failure, cx),
        }
    }

    fn prove(
        self: Box<Self>,
        claimant: Claimant,
        identity: Identity,
        data: Option<String>,
        cx: &mut Cx<'_>,
    ) -> Session {
        let Claimant { wrap, account, since } = claimant;
        if let Err(failure) = may_log_in(&identity, &account, since, cx) {
            return self.fail(&wrap, None, failure, cx);
        }
        cx.shard.throttle.succeeded(self.client.io.address, &account);
        let stamp = match &wrap {
            Wrap::Sasl2(inline) if inline.tokens.is_returning() => {
                Some(Stamp::of(&cx.shard.settings.secret, &account, &identity.credentials))
            }
            Wrap::Sasl2(_) | Wrap::Classic => None,
        };
        let stamp = stamp.filter(|_| cx.shard.settings.fast.are_tokens_on());
        let authenticated =
            Authenticated::proved(account, self.client.domain.id, identity, since, stamp, None);
        let greeting = Greeting::Success { wrap, data: data.map(String::into_bytes), token: None };
        authenticated.greet(self.client.io, greeting, self.client.began, &self.client.protection, cx)
    }

    /// Says why, and lets the client try again, not too often. `account`: the one whose proof was wrong.
    pub(super) fn fail(
        self: Box<Self>,
        wrap: &Wrap,
        account: Option<&BareJid>,
        failure: Failure,
        cx: &mut Cx<'_>,
    ) -> Session {
        if let Some(account) = account {
            let limits = &cx.shard.settings.limits;
            cx.shard.throttle.failed_to(self.client.io.address, account, cx.now.mono, limits);
            cx.login_failed(self.client.io.address);
        }
        self.refuse(wrap, account, failure, cx)
    }

    /// The same for a failure that is counted already.
    pub(super) fn refuse(
        mut self: Box<Self>,
        wrap: &Wrap,
        account: Option<&BareJid>,
        failure: Failure,
        cx: &mut Cx<'_>,
    ) -> Session {
        self.client.io.send_element(&wrap.failure(failure), cx);
        cx.shard.counters.login_failures.count(failure.as_str());
        cx.out.journal.note(cx.now.unix, Kind::LoginFailure, || Entry::LoginFailure {
            account: account.map(BareJid::as_str),
            address: self.client.io.address,
            reason: failure.as_str(),
        });
        // A client finds out which types of channel binding there are by trying: that is no failed login.
        let count = if failure == Failure::UnknownBinding {
            &mut self.client.misfits
        } else {
            &mut self.client.attempts
        };
        *count += 1;
        if *count >= cx.shard.settings.limits.auth_attempts {
            let error = StreamError::new(Condition::PolicyViolation, "too many failed logins");
            return Closing::with_error(self.client.io, &error, cx);
        }
        Session::Authenticating(self)
    }

    fn decoys(&self, account: &BareJid, cx: &Cx<'_>) -> Credentials {
        let decoy = |hash| {
            scram::decoy(
                hash,
                &cx.shard.settings.secret,
                account.as_str(),
                cx.shard.settings.scram_iterations,
            )
        };
        Credentials { sha1: Some(decoy(Hash::Sha1)), sha256: Some(decoy(Hash::Sha256)) }
    }
}

impl Stage {
    fn into_wrap(self) -> Wrap {
        match self {
            Stage::Chosen(_, wrap) => wrap,
            Stage::Asking(claim) => claim.wrap,
            Stage::Deriving(deriving) => deriving.wrap,
            Stage::Challenged(challenged) => challenged.wrap,
            Stage::Idle | Stage::Revoking(_) | Stage::Waiting(_) => Wrap::Classic,
        }
    }
}

/// Who claims an account, once it is known how.
struct Claimant {
    wrap: Wrap,
    account: BareJid,
    since: Moment,
}

/// Whether an account may log in whose client proved itself by what was read at `since`.
pub(super) fn may_log_in(
    identity: &Identity,
    account: &BareJid,
    since: Moment,
    cx: &Cx<'_>,
) -> Result<(), Failure> {
    match identity.state {
        AccountState::Disabled(_) => Err(Failure::AccountDisabled),
        // What it proved itself by may not be the truth any more: it may try again.
        AccountState::Enabled if cx.shard.altered.is_after(account.as_str(), since) => {
            Err(Failure::TemporaryAuthFailure)
        }
        AccountState::Enabled => Ok(()),
    }
}

/// Whether an authorization identity is the account itself.
fn is_self(authzid: &str, account: &BareJid) -> bool {
    BareJid::new(authzid).is_ok_and(|jid| jid == *account)
}
