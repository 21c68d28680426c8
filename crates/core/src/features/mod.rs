//! The features: one folder each, all of the same shape. `mod.rs` declares and decides, `xml.rs` parses and prints,
//! `*.chat` converses. Their order is in [`crate::pipeline`].

pub mod archive;
pub mod blocking;
pub mod caps;
pub mod carbons;
pub mod csi;
pub mod disco;
pub mod fast;
pub mod inbox;
pub mod json;
pub mod notifications;
pub mod offline;
pub mod pep;
pub mod ping;
pub mod presence;
pub mod private;
pub mod pubsub;
pub mod receipts;
pub mod registration;
pub mod roster;
pub mod session_establishment;
pub mod stanza_ids;
pub mod state;
pub mod stream_limits;
pub mod stream_management;
pub mod time;
pub mod vcard;
pub mod version;
