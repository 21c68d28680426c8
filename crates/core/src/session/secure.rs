//! STARTTLS: offered and required; nothing else is accepted before it (RFC 6120 §5).

use super::{Closing, Opening, Session};
use crate::Effect;
use crate::connection::Io;
use crate::error::StreamError;
use crate::sasl::{ChannelBinding, Protection};
use crate::session::Cx;
use carillon_wire::ns;
use carillon_wire::stanza::Unit;
use carillon_wire::stream::Condition;
use carillon_wire::xml::Element;

/// STARTTLS was offered.
#[derive(Debug)]
pub struct Offered {
    pub(super) io: Io,
}

/// The TLS handshake is under way.
#[derive(Debug)]
pub struct Securing {
    pub(super) io: Io,
}

impl Offered {
    /// The stream feature.
    pub fn feature() -> Element {
        Element::new("starttls", ns::TLS).with_child(Element::new("required", ns::TLS))
    }

    pub(super) fn unit(self, unit: &Unit, cx: &mut Cx<'_>) -> Session {
        let Offered { io } = self;
        if !matches!(unit, Unit::Nonza(element) if element.is("starttls", ns::TLS)) {
            let error = StreamError::new(Condition::PolicyViolation, "STARTTLS first");
            return Closing::with_error(io, &error, cx);
        }
        // RFC 6120 §5.3.3 allows white space to be ignored, and many clients end each element with a line break.
        if io.reader.has_more_than_space() {
            // Bytes sent in the clear behind <starttls/> would be taken for bytes protected by TLS (CVE-2011-0411).
            let failure = Element::new("failure", ns::TLS);
            io.send_element(&failure, cx);
            let error = StreamError::new(Condition::PolicyViolation, "data after starttls before TLS");
            return Closing::with_error(io, &error, cx);
        }
        io.send_element(&Element::new("proceed", ns::TLS), cx);
        cx.out.push(Effect::Secure { conn: io.conn });
        Session::Securing(Box::new(Securing { io }))
    }
}

impl Securing {
    /// TLS is complete: a new stream begins.
    pub fn secured(self, binding: ChannelBinding) -> Session {
        let mut io = self.io;
        io.reader.restart();
        io.tls = Some(true);
        Session::Opening(Box::new(Opening { io, protection: Protection::Tls(binding) }))
    }
}
