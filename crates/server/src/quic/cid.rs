//! Connection ids that name the shard which gave them (RFC 9000 §5.1).
//!
//! The kernel gives a packet to the socket of any shard, and to another one as soon as a client's address changes. Which shard knows the
//! connection, the packet says itself: the first two bytes of its destination's id. Those that a client chose for its first packets are
//! random, and name a shard as well: every shard that is asked finds the same one.

use carillon_core::model::ShardId;
use quinn_proto::{ConnectionId, ConnectionIdGenerator};
use std::time::Duration;

/// Bytes of the ids that are given: two for the shard, six that cannot be guessed.
pub(super) const CID_BYTES: usize = 8;

/// Gives the ids of a shard.
pub(super) struct ShardCids(pub(super) ShardId);

impl ConnectionIdGenerator for ShardCids {
    fn generate_cid(&mut self) -> ConnectionId {
        let mut id = [0; CID_BYTES];
        // Without randomness the id is still one: the endpoint asks for another if it has it already.
        let _ = getrandom::fill(&mut id[2..]);
        id[..2].copy_from_slice(&self.0.0.to_be_bytes());
        ConnectionId::new(&id)
    }

    fn cid_len(&self) -> usize {
        CID_BYTES
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// The shard whose packet this is, of so many; none if it is too short for a packet of QUIC.
pub(super) fn shard_of(packet: &[u8], shards: u16) -> Option<ShardId> {
    let at = if packet.first()? & LONG_HEADER == 0 { SHORT_ID_AT } else { LONG_ID_AT };
    let named = packet.get(at..at + 2)?.try_into().ok().map(u16::from_be_bytes)?;
    named.checked_rem(shards).map(ShardId)
}

/// The bit of the first byte that a long header has (RFC 9000 §17.2).
pub(super) const LONG_HEADER: u8 = 0x80;
/// Where the destination's id is: behind the first byte,
pub(super) const SHORT_ID_AT: usize = 1;
/// or behind the version and its length, too.
pub(super) const LONG_ID_AT: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;

    fn short(id: &[u8]) -> Vec<u8> {
        [&[0x40], id, &[0; 30]].concat()
    }

    fn long(id: &[u8]) -> Vec<u8> {
        [&[0xc0, 0, 0, 0, 1, id.len() as u8], id, &[0; 30]].concat()
    }

    #[test]
    fn an_id_names_the_shard_that_gave_it_in_both_headers() {
        for shard in [0, 1, 5, 255, 256, 1023] {
            let id = ShardCids(ShardId(shard)).generate_cid();
            assert_eq!(id.len(), CID_BYTES);
            for packet in [short(&id), long(&id)] {
                assert_eq!(shard_of(&packet, 1024), Some(ShardId(shard)));
                assert_eq!(shard_of(&packet, 1), Some(ShardId(0)));
            }
        }
    }

    #[test]
    fn two_ids_of_a_shard_differ() {
        let mut cids = ShardCids(ShardId(1));
        assert_ne!(cids.generate_cid(), cids.generate_cid());
    }

    #[test]
    fn an_id_that_a_client_chose_names_one_shard() {
        let packet = long(&[0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08]);
        assert_eq!(shard_of(&packet, 4), Some(ShardId(0x8394 % 4)));
        assert_eq!(shard_of(&packet, 3), Some(ShardId(0x8394 % 3)));
    }

    #[test]
    fn what_is_too_short_is_of_no_shard() {
        for packet in [&b""[..], &[0x40], &[0x40, 1], &[0xc0, 0, 0, 0, 1, 8, 1]] {
            assert_eq!(shard_of(packet, 4), None, "{packet:?}");
        }
        assert_eq!(shard_of(&short(&[0; 8]), 0), None);
    }
}
