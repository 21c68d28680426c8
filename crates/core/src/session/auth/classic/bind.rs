//! The new stream of classic SASL, and resource binding (RFC 6120 §7), to which clients of SASL2 come too that bound nothing inline.

use crate::connection::Io;
use crate::error::StreamError;
use crate::session::auth::{Authenticated, Greeting};
use crate::session::header::check;
use crate::session::{Closing, Cx, Loading, Resume, Resuming, Session};
use carillon_wire::jid::Jid;
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, IqType, Kind, Stanza, StanzaError, Unit};
use carillon_wire::stream::{self, Header};
use carillon_wire::xml::Element;

/// Authenticated by classic SASL; awaits the header of the new stream.
#[derive(Debug)]
pub struct Restarting {
    pub(in crate::session) io: Io,
    pub(in crate::session) authenticated: Authenticated,
}

/// Resource binding was offered.
#[derive(Debug)]
pub struct Binding {
    pub(in crate::session) io: Io,
    pub(in crate::session) authenticated: Authenticated,
}

impl Restarting {
    pub(in crate::session) fn header(self, header: &Header, cx: &mut Cx<'_>) -> Session {
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
    pub(in crate::session) fn offer(io: Io, authenticated: Authenticated, cx: &mut Cx<'_>) -> Session {
        let mut features = vec![Element::new("bind", ns::BIND)];
        for offer in &cx.pipeline.offer {
            offer(cx, &mut features);
        }
        io.send_features(&features, cx);
        Session::Binding(Box::new(Binding { io, authenticated }))
    }

    pub(in crate::session) fn unit(self: Box<Self>, unit: Unit, cx: &mut Cx<'_>) -> Session {
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
            Unit::Nonza(element) => match cx.pipeline.unbound(&element) {
                Some(Ok(resume)) => self.resume(resume),
                Some(Err(reply)) => {
                    self.io.send_element(&reply, cx);
                    Session::Binding(self)
                }
                None => {
                    let condition = stream::Condition::UnsupportedStanzaType;
                    let error = StreamError::new(condition, "bind a resource first");
                    Closing::with_error(self.io, &error, cx)
                }
            },
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

    fn resume(self, resume: Resume) -> Session {
        let Binding { io, authenticated } = self;
        Session::Resuming(Box::new(Resuming { io, authenticated, resume, success: None, until: None }))
    }

    /// As before: the client may try again.
    pub(crate) fn again(io: Io, authenticated: Authenticated) -> Session {
        Session::Binding(Box::new(Binding { io, authenticated }))
    }

    fn bind(self: Box<Self>, request: &Stanza, bind: &Element, cx: &mut Cx<'_>) -> Session {
        let wanted = bind.child("resource", ns::BIND).map(Element::text).filter(|text| !text.is_empty());
        let jid = match self.authenticated.resource(wanted, cx) {
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
