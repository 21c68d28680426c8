//! The header of a stream that a client opens (RFC 6120 §4.7): the first one, and the one after classic SASL.

use crate::error::StreamError;
use crate::model::Domain;
use crate::session::Cx;
use carillon_wire::jid::prepare_domain;
use carillon_wire::ns;
use carillon_wire::stream::{Condition, Header};
use std::sync::Arc;

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
