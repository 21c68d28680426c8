//! A client before authentication that may send something. Its elements go to the profile that it uses, and to the mechanism
//! that it chose.

use super::exchange::{self, ExchangeStep, Failed};
use super::{Asking, Deriving, classic, offer, refusal, sasl2};
use crate::connection::{Claim, Claimed, Client, Invited, Io, Proof};
use crate::error::StreamError;
use crate::event::{Entry, Kind};
use crate::model::{Domain, Mono};
use crate::ports::{Derivation, Derived, Fault, Question};
use crate::sasl::{self, Failure, Inline, Mechanism, Protection, SaslProfile};
use crate::session::{Closing, Cx, Session};
use carillon_wire::jid::AccountJid;
use carillon_wire::ns;
use carillon_wire::stanza::{Stanza, Unit};
use carillon_wire::stream::Condition;
use carillon_wire::xml::Element;
use std::net::IpAddr;
use std::sync::Arc;

/// SASL mechanisms were offered.
#[derive(Debug)]
pub struct Authenticating {
    pub(in crate::session) client: Client,
    awaits: Awaits,
}

/// What the client sends next.
#[derive(Debug)]
enum Awaits {
    /// The choice of a mechanism.
    Choice,
    /// The first message of the chosen mechanism.
    First(SaslProfile, Mechanism),
    /// The answer to a challenge.
    Response(SaslProfile, Box<exchange::Challenged>),
}

impl Authenticating {
    pub(in crate::session) fn new(
        io: Io,
        domain: Arc<Domain>,
        protection: Protection,
    ) -> Box<Authenticating> {
        let (attempts, misfits, began, invited) = (0, 0, Mono(0), None);
        Authenticating::again(Client { io, domain, protection, attempts, misfits, began, invited })
    }

    /// A client that may choose a mechanism.
    pub(super) fn again(client: Client) -> Box<Authenticating> {
        Box::new(Authenticating { client, awaits: Awaits::Choice })
    }

    pub(in crate::session) fn unit(mut self: Box<Self>, unit: Unit, cx: &mut Cx<'_>) -> Session {
        let element = match unit {
            Unit::Nonza(element) => element,
            Unit::Stanza(stanza) => return self.stanza(&stanza, cx),
            Unit::Refused { .. } => return self.stranger(cx),
        };
        let awaits = std::mem::replace(&mut self.awaits, Awaits::Choice);
        match (element.name(), element.ns(), awaits) {
            ("auth", ns::SASL, Awaits::Choice) => {
                self.client.began = cx.now.mono;
                classic::begin(self, &element, cx)
            }
            ("authenticate", ns::SASL2, Awaits::Choice) => {
                self.client.began = cx.now.mono;
                sasl2::begin(self, element, cx)
            }
            ("response", ns, Awaits::First(profile, mechanism)) if ns == profile.ns() => {
                match sasl::decode(&element) {
                    Ok(first) => self.first(profile, mechanism, &first.unwrap_or_default(), cx),
                    Err(failure) => Authenticating::refuse(self.client, &profile, failure.into(), cx),
                }
            }
            ("response", ns, Awaits::Response(profile, challenged)) if ns == profile.ns() => {
                match sasl::decode(&element) {
                    Ok(response) => {
                        let step = challenged.answered(&response.unwrap_or_default(), cx);
                        Authenticating::step(self.client, profile, step, cx)
                    }
                    Err(failure) => Authenticating::refuse(self.client, &profile, failure.into(), cx),
                }
            }
            ("abort", ns @ (ns::SASL | ns::SASL2), awaits) => {
                Authenticating::refuse(self.client, &awaits.into_profile(ns), Failure::Aborted.into(), cx)
            }
            ("auth" | "authenticate" | "response", ns @ (ns::SASL | ns::SASL2), awaits) => {
                Authenticating::refuse(
                    self.client,
                    &awaits.into_profile(ns),
                    Failure::MalformedRequest.into(),
                    cx,
                )
            }
            (_, _, awaits) => match cx.pipeline.unauthenticated(&element) {
                Some(answer) => self.too_early(awaits, &answer(), cx),
                None => self.stranger(cx),
            },
        }
    }

    /// Answers what only an authenticated client may ask for. It may go on with its login, after a few of them.
    fn too_early(mut self: Box<Self>, awaits: Awaits, answer: &Element, cx: &mut Cx<'_>) -> Session {
        self.client.misfits += 1;
        if self.client.misfits >= cx.shard.settings.limits.auth_attempts {
            return self.stranger(cx);
        }
        self.client.io.send_element(answer, cx);
        self.awaits = awaits;
        Session::Authenticating(self)
    }

    /// The domain that the client wants to log in to.
    pub fn domain(&self) -> &Domain {
        &self.client.domain
    }

    /// What protects its stream.
    pub fn protection(&self) -> &Protection {
        &self.client.protection
    }

    /// Whether a login may be tried from its address, after those that failed.
    pub fn admits(&self, cx: &mut Cx<'_>) -> Result<(), Failure> {
        exchange::admits(self.client.io.address, cx)
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

    /// The invitation that it has shown.
    pub fn invited(&self) -> Option<&Invited> {
        self.client.invited.as_deref()
    }

    /// Notes the invitation that it has shown, or that this is used up.
    pub fn set_invited(&mut self, invited: Option<Invited>) {
        self.client.invited = invited.map(Box::new);
    }

    /// Answers what was tried in vain. After a few of these nothing else is listened to.
    pub fn reply_in_vain(mut self: Box<Self>, reply: &Stanza, cx: &mut Cx<'_>) -> Session {
        self.client.misfits += 1;
        if self.client.misfits >= cx.shard.settings.limits.auth_attempts {
            return self.stranger(cx);
        }
        self.reply(reply, cx)
    }

    /// Asks the store; `then` goes on with the answer. The client waits.
    pub fn ask_then<Q: Question>(
        self: Box<Self>,
        question: Q,
        then: impl FnOnce(Box<Authenticating>, Result<Q::Answer, Fault>, &mut Cx<'_>) -> Session + Send + 'static,
        cx: &mut Cx<'_>,
    ) -> Session {
        Asking::then(self.client, question, then, cx)
    }

    /// Has keys derived; `then` goes on with them. The client waits.
    pub fn derive_then(
        self: Box<Self>,
        derivation: Derivation,
        then: impl FnOnce(Box<Authenticating>, Derived, &mut Cx<'_>) -> Session + Send + 'static,
        cx: &mut Cx<'_>,
    ) -> Session {
        Deriving::then(self.client, derivation, then, cx)
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
    fn stranger(self, cx: &mut Cx<'_>) -> Session {
        let error = StreamError::new(Condition::NotAuthorized, "authenticate first");
        Closing::with_error(self.client.io, &error, cx)
    }

    /// The client chose a mechanism. `first` is its first message, if it sent one.
    pub(super) fn choose(
        mut self: Box<Self>,
        profile: SaslProfile,
        mechanism: Option<&str>,
        first: Result<Option<String>, Failure>,
        cx: &mut Cx<'_>,
    ) -> Session {
        let offered = offer::mechanisms(&self.client.protection, profile.ns(), cx);
        let Some(mechanism) = mechanism.and_then(Mechanism::named).filter(|m| offered.contains(m)) else {
            return Authenticating::refuse(self.client, &profile, Failure::InvalidMechanism.into(), cx);
        };
        match first {
            Ok(Some(first)) => self.first(profile, mechanism, &first, cx),
            Ok(None) => {
                // The mechanism speaks first on the client's side: an empty challenge asks for it.
                self.client.io.send_element(&Element::new("challenge", profile.ns()), cx);
                self.awaits = Awaits::First(profile, mechanism);
                Session::Authenticating(self)
            }
            Err(failure) => Authenticating::refuse(self.client, &profile, failure.into(), cx),
        }
    }

    /// The client's first message, which names the account. The login continues at the account's home.
    fn first(
        self: Box<Self>,
        profile: SaslProfile,
        mechanism: Mechanism,
        message: &str,
        cx: &mut Cx<'_>,
    ) -> Session {
        let offers_binding = offer::has_channel_binding(&self.client.protection, profile.ns(), cx);
        match exchange::first(&self.client, mechanism, message, offers_binding, cx) {
            Ok((account, first)) => self.claim(account, Proof::Mechanism(profile, first)),
            Err(failure) => Authenticating::refuse(self.client, &profile, failure.into(), cx),
        }
    }

    /// The client named its account.
    pub(super) fn claim(self, account: AccountJid, proof: Proof) -> Session {
        Session::Claimed(Box::new(Claimed { client: self.client, claim: Claim { account, proof } }))
    }

    /// Does what an exchange asks for next.
    pub(super) fn step(client: Client, profile: SaslProfile, step: ExchangeStep, cx: &mut Cx<'_>) -> Session {
        match step {
            ExchangeStep::Challenge(message, challenged) => {
                client.io.send_element(&profile.challenge(&message), cx);
                let awaits = Awaits::Response(profile, challenged);
                Session::Authenticating(Box::new(Authenticating { client, awaits }))
            }
            ExchangeStep::Derive(derivation, check) => {
                Deriving::password(client, profile, derivation, check, cx)
            }
            ExchangeStep::Proved(proved) => {
                if let Some(authorise) = cx.pipeline.authorise
                    && let Some(failed) = refusal::of(authorise, &client, profile.inline(), &proved, cx)
                {
                    return Authenticating::refuse(client, &profile, failed, cx);
                }
                match profile {
                    SaslProfile::Classic => classic::succeed(client, *proved, cx),
                    SaslProfile::Sasl2(inline) => sasl2::succeed(client, inline, *proved, cx),
                }
            }
            ExchangeStep::Failed(failed) => Authenticating::refuse(client, &profile, failed, cx),
        }
    }

    /// Tells the client why its login failed. It may try again until it has failed too often.
    pub(super) fn refuse(
        mut client: Client,
        profile: &SaslProfile,
        failed: Failed,
        cx: &mut Cx<'_>,
    ) -> Session {
        let Failed { failure, account, text, ends_stream } = failed;
        client.io.send_element(&profile.failure(failure, text.as_deref()), cx);
        cx.shard.counters.login_failures.count(failure.as_str());
        cx.out.journal.note(cx.now.unix, Kind::LoginFailure, || Entry::LoginFailure {
            account: account.as_ref().map(|account| account.as_str()),
            address: client.io.address,
            reason: failure.as_str(),
        });
        if ends_stream {
            let text = text.map_or_else(|| "you may not log in".to_owned(), String::from);
            return Closing::with_error(client.io, &StreamError::new(Condition::PolicyViolation, text), cx);
        }
        // A client finds out which types of channel binding there are by trying: that is no failed login.
        let count =
            if failure == Failure::UnknownBinding { &mut client.misfits } else { &mut client.attempts };
        *count += 1;
        if *count >= cx.shard.settings.limits.auth_attempts {
            let error = StreamError::new(Condition::PolicyViolation, "too many failed logins");
            return Closing::with_error(client.io, &error, cx);
        }
        Session::Authenticating(Authenticating::again(client))
    }
}

impl Awaits {
    /// The profile of the present exchange, or of the received element if there is none.
    fn into_profile(self, ns: &str) -> SaslProfile {
        match self {
            Awaits::First(profile, _) | Awaits::Response(profile, _) => profile,
            Awaits::Choice if ns == ns::SASL2 => SaslProfile::Sasl2(Inline::default()),
            Awaits::Choice => SaslProfile::Classic,
        }
    }
}
