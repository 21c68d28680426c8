//! TLS of a connection, from bytes to bytes: no socket, no clock, no task.
//!
//! ```text
//!  Settings ──► Handshake ──feed──► Progress::Pending(Handshake) … ──► Progress::Done { link, secured }
//!  (one value,   (rustls, boxed,                                          │        └─ Secured: what was agreed
//!   swapped       gone when done)                                         ▼
//!   whole)                                      Link::Extracted(Keys)  or  Link::Buffered(rustls, TLS 1.2)
//! ```
//!
//! rustls does the handshake. When a TLS 1.3 handshake is complete the connection is *extracted*: its traffic keys,
//! sequence numbers and traffic secrets become [`Keys`], 224 bytes of plain data, and the kilobytes of rustls are freed.
//! From then on this folder's own record layer (RFC 8446 §5) seals and opens, keying the cipher for each burst. TLS 1.2
//! connections stay on rustls' record layer.
//!
//! | file | what is in it |
//! |---|---|
//! | `settings`, `settings_error`, `certificate`, `self_signed` | what a listener offers: certificate, suites, groups, ALPN, tickets |
//! | `ticketer` | session tickets and their keys |
//! | `handshake`, `capture` | rustls, fed one record at a time, and the hook that tells the traffic secrets |
//! | `link` | the two ways a connection can go on, behind one set of verbs |
//! | `keys`, `suite`, `schedule`, `hkdf` | an extracted connection's state, its algorithms, its key schedule |
//! | `seal`, `open`, `opened`, `record`, `key_update` | the record layer |
//! | `buffered` | the same verbs on a rustls connection |
//! | `fault` | what can go wrong, whose fault it is, which alert says so |
//!
//! Two rules for callers: what a call appended for the peer is sent before anything sealed later, and input that a call
//! did not consume is passed again, followed by more.

mod buffered;
mod capture;
mod certificate;
mod certificates;
mod clients;
mod fault;
mod handshake;
mod hkdf;
mod key_update;
mod keys;
mod link;
mod open;
mod opened;
mod record;
mod schedule;
mod seal;
mod self_signed;
mod settings;
mod settings_error;
mod suite;
#[cfg(test)]
mod tests;
mod ticketer;

pub use buffered::Buffered;
pub use certificates::certificate_files;
pub use clients::{ClientAuthority, client_names};
pub use fault::{Blame, Fault, Violation};
pub use handshake::{Handshake, Progress, Secured, Version};
pub use keys::{Keys, Malformed};
pub use link::Link;
pub use opened::{Circumstances, OpenedRecords};
pub use seal::Sealer;
pub use settings::Settings;
pub use settings_error::SettingsError;
pub use ticketer::MalformedTicketKeys;
