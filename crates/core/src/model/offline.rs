//! A chat message kept for an account that was away (XEP-0160).

use super::UnixMs;
use bytes::Bytes;
use carillon_wire::jid::BareJid;

/// A chat message kept for an account that was away (XEP-0160).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfflineMessage {
    /// Its number in the store; later messages of an account have higher ones.
    pub seq: u64,
    /// When the server took it, for the XEP-0203 stamp.
    pub received: UnixMs,
    /// The whole `<message/>` as it is to be delivered, in namespace `jabber:client`, without the stamp.
    pub stanza: Bytes,
    /// When it ends, if its sender gave a time.
    pub expires: Option<UnixMs>,
}

crate::form! { struct OfflineMessage { seq, received, stanza, expires } }

/// A message whose time is over, and the account that it was kept for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpiredMessage {
    /// The account.
    pub to: BareJid,
    /// The message.
    pub message: OfflineMessage,
}

crate::form! { struct ExpiredMessage { to, message } }
