//! A message of an archive, as the tail has it.

use crate::rows::code::Code;
use carillon_core::model::EntryKind;

/// A message of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct TailEntry {
    pub(in super::super) seq: u64,
    pub(in super::super) peer: u32,
    /// Its bytes, and in the highest bits what it is to its conversation.
    bytes_and_kind: u32,
}

const BYTES_MAX: u32 = (1 << 30) - 1;

impl TailEntry {
    pub(in super::super) fn new(seq: u64, peer: u32, bytes: usize, kind: EntryKind) -> TailEntry {
        let bytes = u32::try_from(bytes).map_or(BYTES_MAX, |bytes| bytes.min(BYTES_MAX));
        TailEntry { seq, peer, bytes_and_kind: bytes | (kind.code() as u32) << 30 }
    }

    /// How many bytes [`TailEntry::to_bytes`] has.
    pub(in super::super) const BYTES: usize = 16;

    /// As bytes, for a list.
    pub(in super::super) fn to_bytes(self) -> [u8; TailEntry::BYTES] {
        let TailEntry { seq, peer, bytes_and_kind } = self;
        (u128::from(seq) | u128::from(peer) << 64 | u128::from(bytes_and_kind) << 96).to_le_bytes()
    }

    /// Reads [`TailEntry::to_bytes`].
    pub(in super::super) fn from_bytes(bytes: [u8; TailEntry::BYTES]) -> TailEntry {
        let all = u128::from_le_bytes(bytes);
        TailEntry { seq: all as u64, peer: (all >> 64) as u32, bytes_and_kind: (all >> 96) as u32 }
    }

    pub(in super::super) fn bytes(self) -> u32 {
        self.bytes_and_kind & BYTES_MAX
    }

    pub(in super::super) fn kind(self) -> EntryKind {
        EntryKind::of((self.bytes_and_kind >> 30).into()).unwrap_or_default()
    }
}
