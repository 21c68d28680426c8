//! Stream features that were sent before authentication, printed.

use crate::connection::Io;
use crate::model::Domain;
use crate::sasl::Protection;
use carillon_wire::Framing;
use std::sync::Arc;

/// The features that were offered before, printed: in a storm of logins all clients are offered the same.
#[derive(Debug, Default)]
pub struct Offers(Vec<(OfferShape, Arc<[u8]>)>);

/// Everything besides the settings that an offer depends on. There are about twenty different ones.
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
    /// The printed offer of this shape.
    pub fn find(&self, shape: &OfferShape) -> Option<Arc<[u8]>> {
        self.0.iter().find(|(known, _)| known == shape).map(|(_, text)| text.clone())
    }

    /// Remembers a printed offer.
    pub fn remember(&mut self, shape: OfferShape, text: Arc<[u8]>) {
        self.0.push((shape, text));
    }

    /// Forgets all offers, because the settings have changed.
    pub fn forget(&mut self) {
        self.0.clear();
    }
}

impl OfferShape {
    /// The shape of the offer to a client of this domain.
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
