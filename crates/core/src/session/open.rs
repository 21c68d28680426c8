//! The beginning of a stream, before authentication (RFC 6120 §4.2, §4.7).

use super::auth::{Authenticating, offer};
use super::{Closing, Offered, Session};
use crate::connection::{Io, Noted, Reader};
use crate::error::StreamError;
use crate::event::{Entry, Kind};
use crate::model::Domain;
use crate::sasl::Protection;
use crate::session::Cx;
use crate::shard::Deadline;
use crate::{Opened, Security};
use carillon_wire::jid::prepare_domain;
use carillon_wire::ns;
use carillon_wire::stream::{Condition, Header};
use std::sync::Arc;

/// Awaits a stream header, before authentication.
#[derive(Debug)]
pub struct Opening {
    pub(super) io: Io,
    pub(super) protection: Protection,
}

impl Opening {
    /// A connection was accepted.
    pub fn begin(opened: Opened, cx: &mut Cx<'_>) -> Session {
        let protection = match opened.security {
            Security::StartTls => Protection::None,
            Security::Secured(binding) => Protection::Tls(binding),
            Security::Trusted => Protection::Trusted,
        };
        let io = Io {
            conn: opened.conn,
            address: opened.address,
            framing: opened.framing,
            tls: Some(matches!(protection, Protection::Tls(_))),
            via: None,
            reader: Reader::new(&cx.shard.settings.limits),
            noted: Noted::Begun,
        };
        let (address, transport) = (io.address, io.transport());
        cx.out.journal.note(cx.now.unix, Kind::Connect, || Entry::Connect { address, transport });
        cx.set_deadline(io.conn, cx.shard.settings.timeouts.auth_ms, Deadline::Login);
        Session::Opening(Box::new(Opening { io, protection }))
    }

    pub(super) fn header(self, header: &Header, cx: &mut Cx<'_>) -> Session {
        let Opening { mut io, protection } = self;
        let domain = match check(header, cx) {
            Ok(domain) => domain,
            Err(error) => return Closing::with_error_after_header(io, &error, cx),
        };
        let id = cx.shard.random.token();
        io.reader.declare(header);
        io.send_header(&domain.name, &id, cx);
        if let Protection::None = protection {
            io.send_features(&[Offered::feature()], cx);
            return Session::Offered(Box::new(Offered { io }));
        }
        offer::send(&io, &domain, &protection, cx);
        Session::Authenticating(Authenticating::new(io, domain, protection))
    }
}

/// Checks a header, and returns the domain it is for.
pub(super) fn check(header: &Header, cx: &Cx<'_>) -> Result<Arc<Domain>, StreamError> {
    if header.default_ns != ns::CLIENT {
        return Err(StreamError::new(
            Condition::InvalidNamespace,
            "the default namespace is not jabber:client",
        ));
    }
    // RFC 6120 §4.7.5: no version means 0.9, which has neither TLS nor SASL.
    if header.version.is_none_or(|(major, _)| major < 1) {
        return Err(StreamError::new(Condition::UnsupportedVersion, "only version 1.0"));
    }
    if let Some(farewell) = cx.shard.draining() {
        // Who comes now is told the least time: it has waited already.
        return Err(super::farewell(farewell, |_| 0));
    }
    let Some(to) = &header.to else {
        return Err(StreamError::new(Condition::HostUnknown, "no domain in the header's 'to'"));
    };
    let name = prepare_domain(to)
        .map_err(|_| StreamError::new(Condition::ImproperAddressing, "'to' is not a domain"))?;
    let domain = cx.shard.domains.named(&name);
    domain.cloned().ok_or_else(|| StreamError::new(Condition::HostUnknown, "no such domain here"))
}
