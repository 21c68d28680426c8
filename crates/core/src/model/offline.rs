//! A chat message kept for an account that was away (XEP-0160).

use super::UnixMs;
use bytes::Bytes;

/// A chat message kept for an account that was away (XEP-0160).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfflineMessage {
    /// Its number in the store; later messages of an account have higher ones.
    pub seq: u64,
    /// When the server took it, for the XEP-0203 stamp.
    pub received: UnixMs,
    /// The whole `<message/>` as it is to be delivered, in namespace `jabber:client`, without the stamp.
    pub stanza: Bytes,
}
