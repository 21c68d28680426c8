//! The beginning of a stream, before authentication (RFC 6120 §4.2, §4.7).

use super::auth::{Authenticating, offer};
use super::header::check;
use super::{Closing, Offered, Session};
use crate::connection::{Io, Noted, Reader};
use crate::event::{Entry, Kind};
use crate::sasl::Protection;
use crate::session::Cx;
use crate::shard::Deadline;
use crate::{Opened, Security};
use carillon_wire::stream::Header;

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
