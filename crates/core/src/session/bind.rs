//! After authentication: the new stream of classic SASL, and the choice of a resource (RFC 6120 §7).

use super::auth::{Authenticated, Greeting};
use super::open::check;
use super::{BoundSession, Closing, Session};
use crate::Effect;
use crate::connection::Io;
use crate::error::StreamError;
use crate::model::{AccountState, Login};
use crate::ports::store::accounts;
use crate::ports::{Answer, Question};
use crate::sasl::Failure;
use crate::session::Cx;
use carillon_wire::jid::Jid;
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, IqType, Kind, Stanza, StanzaError, Unit};
use carillon_wire::stream::{self, Header};
use carillon_wire::xml::Element;

/// Authenticated by classic SASL; awaits the header of the new stream.
#[derive(Debug)]
pub struct Restarting {
    pub(super) io: Io,
    pub(super) authenticated: Authenticated,
}

/// Resource binding was offered.
#[derive(Debug)]
pub struct Binding {
    pub(super) io: Io,
    pub(super) authenticated: Authenticated,
}

/// A resource is chosen; the store is asked what belongs to the account.
#[derive(Debug)]
pub struct Loading {
    pub(super) io: Io,
    authenticated: Authenticated,
    jid: Jid,
    greeting: Greeting,
}

/// What belongs to the account is there; the shard admits the session to its account.
#[derive(Debug)]
pub struct Loaded {
    /// The session to be.
    pub session: Box<BoundSession>,
    /// What the client is sent once it is bound.
    pub greeting: Greeting,
    /// What the store holds of its account.
    pub login: Box<Login>,
}

impl Restarting {
    pub(super) fn header(self, header: &Header, cx: &mut Cx<'_>) -> Session {
        let Restarting { mut io, authenticated } = self;
        let error = match check(header, cx) {
            Ok(domain) if domain.id == authenticated.domain() => None,
            Ok(_) => {
                Some(StreamError::new(stream::Condition::HostUnknown, "another domain than you logged in to"))
            }
            Err(error) => Some(error),
        };
        if let Some(error) = error {
            return Closing::with_error_after_header(io, &error, cx);
        }
        io.reader.declare(header);
        let id = cx.shard.random.token();
        io.send_header(authenticated.jid().domain(), &id, cx);
        Binding::offer(io, authenticated, cx)
    }
}

impl Binding {
    /// Offers resource binding and the other features for authenticated clients.
    pub(super) fn offer(io: Io, authenticated: Authenticated, cx: &mut Cx<'_>) -> Session {
        let mut features = vec![Element::new("bind", ns::BIND)];
        for offer in &cx.pipeline.offer {
            offer(cx, &mut features);
        }
        io.send_features(&features, cx);
        Session::Binding(Box::new(Binding { io, authenticated }))
    }

    pub(super) fn unit(self: Box<Self>, unit: Unit, cx: &mut Cx<'_>) -> Session {
        match unit {
            Unit::Stanza(stanza) => match stanza.payload.find("bind", ns::BIND) {
                Some(bind) if stanza.kind == Kind::Iq(IqType::Set) => {
                    let element = bind.element();
                    self.bind(&stanza, &element, cx)
                }
                _ => self.unbound(&stanza, cx),
            },
            Unit::Refused { reply, error } => {
                if let Some(reply) = reply.error_reply(&error) {
                    self.io.send_stanza(&reply, cx);
                }
                Session::Binding(self)
            }
            Unit::Nonza(element) => {
                if let Some(reply) = cx.pipeline.unbound(&element) {
                    self.io.send_element(&reply, cx);
                    return Session::Binding(self);
                }
                let error =
                    StreamError::new(stream::Condition::UnsupportedStanzaType, "bind a resource first");
                Closing::with_error(self.io, &error, cx)
            }
        }
    }

    /// RFC 6120 §7.1: before a resource is bound only binding is allowed. A stanza for anyone but the server or the client's
    /// own account ends the stream.
    fn unbound(self: Box<Self>, stanza: &Stanza, cx: &mut Cx<'_>) -> Session {
        let own = self.authenticated.jid();
        let is_own = |to: &Jid| to.as_str() == own.as_str() || to.as_str() == own.domain();
        if !stanza.to.as_ref().is_none_or(is_own) {
            let error = StreamError::new(stream::Condition::NotAuthorized, "bind a resource first");
            return Closing::with_error(self.io, &error, cx);
        }
        let error = StanzaError::new(Condition::NotAllowed).with_text("bind a resource first");
        if let Some(reply) = stanza.error_reply(&error) {
            self.io.send_stanza(&reply, cx);
        }
        Session::Binding(self)
    }

    fn bind(self: Box<Self>, request: &Stanza, bind: &Element, cx: &mut Cx<'_>) -> Session {
        let wanted = bind.child("resource", ns::BIND).map(Element::text).filter(|text| !text.is_empty());
        let jid = match choose(&self.authenticated, wanted.as_deref(), cx) {
            Ok(jid) => jid,
            Err(error) => {
                if let Some(reply) = request.error_reply(&error) {
                    self.io.send_stanza(&reply, cx);
                }
                return Session::Binding(self);
            }
        };
        let Binding { io, authenticated } = *self;
        let id = request.id.clone().unwrap_or_default();
        Loading::begin(io, authenticated, jid, Greeting::Bind { id }, cx)
    }
}

impl Loading {
    /// Binds at once where the node remembers what belongs to the account; else the store is asked.
    pub(super) fn begin(
        io: Io,
        mut authenticated: Authenticated,
        jid: Jid,
        greeting: Greeting,
        cx: &mut Cx<'_>,
    ) -> Session {
        let known = authenticated.take_known();
        let loading = Loading { io, authenticated, jid, greeting };
        if loading.authenticated.is_outdated(cx) {
            return loading.outdated(cx);
        }
        if let Some(login) = known {
            return loading.bound(login, cx);
        }
        let (account, parts) = (loading.authenticated.account(), cx.pipeline.login_parts());
        cx.ask_unbound(loading.io.conn, accounts::Login { account, parts, now: cx.now.unix });
        cx.out.push(Effect::Pause { conn: loading.io.conn });
        Session::Loading(Box::new(loading))
    }

    /// The store answered.
    pub(crate) fn answered(self, answer: Answer, cx: &mut Cx<'_>) -> Session {
        cx.resume(self.io.conn);
        match accounts::Login::answer(answer) {
            Ok(Some(_)) if self.authenticated.is_outdated(cx) => self.outdated(cx),
            Ok(Some(login)) if login.state == AccountState::Enabled => {
                self.authenticated.remember(&login, cx);
                self.bound(login, cx)
            }
            // It was disabled, or removed, since the client proved whose it is.
            Ok(Some(_)) => {
                self.refuse(Failure::AccountDisabled, "account-disabled: this account is disabled", cx)
            }
            Ok(None) => self.refuse(Failure::NotAuthorized, "this account is gone", cx),
            Err(_) => self.unavailable(cx),
        }
    }

    fn bound(self, login: Box<Login>, cx: &mut Cx<'_>) -> Session {
        let Loading { io, authenticated, jid, greeting } = self;
        let session =
            Box::new(BoundSession::new(io, jid, authenticated.domain(), authenticated.account(), cx));
        Session::Loaded(Box::new(Loaded { session, greeting, login }))
    }

    /// The account's password or state was altered since the client proved itself.
    fn outdated(self, cx: &mut Cx<'_>) -> Session {
        self.refuse(Failure::TemporaryAuthFailure, "your account was changed while you logged in", cx)
    }

    /// The client may not log in any more.
    fn refuse(self, failure: Failure, why: &'static str, cx: &mut Cx<'_>) -> Session {
        match self.greeting {
            // It was not told of its success yet.
            Greeting::Success { wrap, .. } => {
                self.io.send_element(&wrap.failure(failure), cx);
                Closing::politely(self.io, cx)
            }
            Greeting::Bind { .. } => {
                let error = StreamError::new(stream::Condition::NotAuthorized, why);
                Closing::with_error(self.io, &error, cx)
            }
        }
    }

    /// The store cannot answer: the client may try again.
    fn unavailable(self, cx: &mut Cx<'_>) -> Session {
        match self.greeting {
            Greeting::Success { wrap, .. } => {
                self.io.send_element(&wrap.failure(Failure::TemporaryAuthFailure), cx);
                Closing::politely(self.io, cx)
            }
            Greeting::Bind { id } => {
                let error = StanzaError::new(Condition::ResourceConstraint)
                    .with_text("the store cannot answer; try again later");
                let reply = Stanza::iq(IqType::Error).with_id(id).with_payload(error.to_element());
                self.io.send_stanza(&reply, cx);
                Session::Binding(Box::new(Binding { io: self.io, authenticated: self.authenticated }))
            }
        }
    }
}

/// The full JID for a client that asks for this resource, or for any.
pub(super) fn choose(
    authenticated: &Authenticated,
    wanted: Option<&str>,
    cx: &mut Cx<'_>,
) -> Result<Jid, StanzaError> {
    let resource = match wanted {
        Some(resource) => resource.to_owned(),
        None => cx.shard.random.token(),
    };
    authenticated.jid().with_resource(&resource).map_err(|_| {
        StanzaError::new(Condition::BadRequest).with_text("the resource cannot be prepared (RFC 7622 §3.4)")
    })
}
