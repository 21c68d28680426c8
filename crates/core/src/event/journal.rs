//! The journal: the entries of a shard, encoded one after the other until the server takes them.
//!
//! An encoded entry is its length (4 bytes), kind (1), time (8) and number (8), and the values of its fields. Numbers are
//! little-endian. The form is the server's own: what it spills to disk and reads back is the same bytes.

use super::record::UNKNOWN;
use super::{Entry, Kind, Kinds, acknowledger_word, audience_word, end_word, priority_word};
use crate::model::{NotificationId, UnixMs};
use std::net::IpAddr;

/// The entries of a shard that the server has not taken yet. By default no kind is kept, and it stays empty.
#[derive(Debug, Default)]
pub struct Journal {
    kinds: Kinds,
    /// The number of the next entry.
    next: u64,
    bytes: Vec<u8>,
}

impl Journal {
    /// Keeps entries of these kinds from now on, and no others.
    pub fn keep(&mut self, kinds: Kinds) {
        self.kinds = kinds;
    }

    /// Notes what happened, if its kind is wanted; `entry` is called only then.
    pub fn note<'a>(&mut self, at: UnixMs, kind: Kind, entry: impl FnOnce() -> Entry<'a>) {
        if self.kinds.contains(kind) {
            let entry = entry();
            debug_assert_eq!(entry.kind(), kind, "an entry is asked for by its own kind");
            self.push(at, &entry);
        }
    }

    /// Notes what happened, whatever kinds are wanted.
    #[expect(clippy::indexing_slicing, reason = "the four bytes were added above")]
    pub fn push(&mut self, at: UnixMs, entry: &Entry<'_>) {
        let out = &mut self.bytes;
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        out.push(entry.kind() as u8);
        number(out, at.0);
        number(out, self.next);
        values(out, entry);
        let len = out.len() - start - 4;
        // A stanza is bounded far below 4 GiB, and so is what is noted of it.
        out[start..start + 4].copy_from_slice(&(len as u32).to_le_bytes());
        self.next += 1;
    }

    /// The entries, encoded: what [`super::records`] reads.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Swaps the entries for another buffer, which must be empty.
    pub fn take(&mut self, empty: Vec<u8>) -> Vec<u8> {
        debug_assert!(empty.is_empty(), "a buffer is given back empty");
        std::mem::replace(&mut self.bytes, empty)
    }
}

/// The values of an entry's fields, in the order of [`Kind::fields`].
fn values(out: &mut Vec<u8>, entry: &Entry<'_>) {
    match *entry {
        Entry::Start | Entry::Stop => {}
        Entry::Connect { address: from, transport } => {
            address(out, from);
            text(out, transport.word());
            flag(out, transport.tls);
        }
        Entry::Login { jid, address: from, transport } | Entry::Resume { jid, address: from, transport } => {
            text(out, jid);
            address(out, from);
            text(out, transport.word());
            flag(out, transport.tls);
        }
        Entry::LoginFailure { account, address: from, reason } => {
            text(out, account.unwrap_or_default());
            address(out, from);
            text(out, reason);
        }
        Entry::Disconnect { jid, address: from, reason, after_ms } => {
            text(out, jid.unwrap_or_default());
            address(out, from);
            text(out, reason.as_str());
            number(out, after_ms);
        }
        Entry::Accept { id, to, audience, priority } => {
            notification(out, id);
            text(out, to);
            text(out, audience_word(audience));
            text(out, priority_word(priority));
        }
        Entry::Deliver { id, to, after_ms } => {
            notification(out, id);
            text(out, to);
            number(out, after_ms);
        }
        Entry::Acknowledge { id, to, by, after_ms } => {
            notification(out, id);
            text(out, to);
            text(out, acknowledger_word(by));
            number(out, after_ms);
        }
        Entry::Drop { id, to, state, reason } => {
            notification(out, id);
            text(out, to);
            text(out, end_word(state, reason));
        }
        Entry::Publish { domain, topic, item } => texts(out, &[domain, topic, item]),
        Entry::Item { topic, item, to, after_ms } => {
            text(out, topic);
            text(out, item);
            text(out, to);
            number(out, after_ms);
        }
        Entry::MatchEnded { id, queue, reason, ticks, outcome } => {
            text(out, id);
            text(out, queue);
            text(out, reason);
            number(out, ticks.into());
            text(out, outcome);
        }
        Entry::RoomCreated { room, by } => texts(out, &[room, by.unwrap_or_default()]),
        Entry::RoomDestroyed { room, reason, by } => texts(out, &[room, reason, by.unwrap_or_default()]),
        Entry::RoomRemoved { room, account, reason, by } => {
            texts(out, &[room, account, reason, by.unwrap_or_default()]);
        }
    }
}

fn texts(out: &mut Vec<u8>, texts: &[&str]) {
    texts.iter().for_each(|one| text(out, one));
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

fn number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_le_bytes());
}

fn flag(out: &mut Vec<u8>, flag: Option<bool>) {
    out.push(flag.map_or(UNKNOWN, u8::from));
}

fn notification(out: &mut Vec<u8>, id: NotificationId) {
    out.extend_from_slice(&id.0.to_le_bytes());
}

/// An IPv4 address as the IPv6 address it is mapped to (RFC 4291 §2.5.5.2).
fn address(out: &mut Vec<u8>, address: IpAddr) {
    let mapped = match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    out.extend_from_slice(&mapped.octets());
}
