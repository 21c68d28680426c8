//! Stream features that were sent before authentication, printed.

use crate::connection::Io;
use crate::model::Domain;
use crate::sasl::Protection;
use carillon_wire::Framing;
use std::sync::Arc;

/// What was offered before, printed: in a storm of logins all are told the same.
#[derive(Debug, Default)]
pub struct Offers(Vec<(OfferShape, Arc<[u8]>)>);

/// All that an offer depends on, the settings apart. There are some twenty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfferShape {
    framing: Framing,
    security: Security,
    registration: bool,
}

/// What protects a stream, and what it offers for channel binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Security {
    None,
    Trusted,
    Tls { exporter: bool, end_point: bool },
}

impl Offers {
    /// What was offered in this shape.
    pub fn find(&self, shape: &OfferShape) -> Option<Arc<[u8]>> {
        self.0.iter().find(|(known, _)| known == shape).map(|(_, text)| text.clone())
    }

    /// Remembers what was offered.
    pub fn remember(&mut self, shape: OfferShape, text: Arc<[u8]>) {
        self.0.push((shape, text));
    }

    /// Forgets all: the settings have changed.
    pub fn forget(&mut self) {
        self.0.clear();
    }
}

impl OfferShape {
    /// Of what is offered to this client.
    pub fn of(io: &Io, domain: &Domain, protection: &Protection) -> OfferShape {
        let security = match protection {
            Protection::None => Security::None,
            Protection::Trusted => Security::Trusted,
            Protection::Tls(binding) => {
                Security::Tls { exporter: binding.exporter.is_some(), end_point: binding.end_point.is_some() }
            }
        };
        OfferShape { framing: io.framing, security, registration: domain.policy.registration }
    }
}
