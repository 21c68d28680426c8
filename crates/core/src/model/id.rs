//! Identifiers. Each is a type of its own, so that none is taken for another.

use super::UnixMs;
use crate::form::{Form, Malformed, Reader, Writer};
use std::fmt;
use std::str::FromStr;

macro_rules! number_id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        crate::form! { struct $name(number) }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number_id!(
    /// A domain's number in the store.
    DomainId(u32)
);
number_id!(
    /// An account's number in the store.
    AccountId(u64)
);
number_id!(
    /// The number of an administrative act in the store: later ones have higher ones.
    ActId(u64)
);
number_id!(
    /// A topic's number in the store. Four bytes, because every session keeps a list of them.
    TopicId(u32)
);
number_id!(
    /// A room's number in the store.
    RoomId(u32)
);
number_id!(
    /// An API key's number in the store.
    KeyId(u32)
);
number_id!(
    /// A webhook's number in the store.
    WebhookId(u32)
);
number_id!(
    /// A short link's number in the store.
    LinkId(u64)
);
number_id!(
    /// An invitation's number in the store.
    InvitationId(u64)
);
number_id!(
    /// The number of a registration for push in the store.
    RegistrationId(u64)
);
number_id!(
    /// A push's number in the store.
    PushId(u64)
);
number_id!(
    /// A point in the history of one topic: each change has a higher one. Revisions of different topics cannot be compared.
    Revision(u64)
);
number_id!(
    /// A point in the history of one account: each change of its keys, its state, its revoked tokens or its subscriptions has
    /// a higher one. Generations of different accounts cannot be compared.
    Generation(u64)
);
number_id!(
    /// A message's number in the archives that it is in (XEP-0313), which is also the id it has for clients (XEP-0359).
    ArchiveId(u64)
);
number_id!(
    /// One of the node's shards, counted from 0.
    ShardId(u16)
);
number_id!(
    /// One of the nodes of a cell; a node that runs alone is number 0.
    NodeId(u32)
);
number_id!(
    /// One life of a node: a number that the store gives to a process when it starts, and never again.
    Epoch(u64)
);
number_id!(
    /// Names a question that awaits its answer. Never used twice by the same asker.
    Ticket(u64)
);

/// A shard of any node: where a home is, and where what is sent to somebody goes. The one address that a message between shards may name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The node.
    pub node: NodeId,
    /// The shard of that node.
    pub shard: ShardId,
}

impl Form for Place {
    fn write(&self, out: &mut Writer) {
        let Place { node, shard } = self;
        shard.write(out);
        node.write(out);
    }

    // Before version 4 it was the number of a shard of the only node.
    fn read(input: &mut Reader<'_>) -> Result<Place, Malformed> {
        let shard = ShardId::read(input)?;
        let node = if input.version() < 4 { NodeId(0) } else { NodeId::read(input)? };
        Ok(Place { node, shard })
    }
}

/// A connection of one shard. The generation tells a slot's present holder from earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId {
    /// Index in the shard's slab.
    pub slot: u32,
    /// How many holders the slot had before.
    pub generation: u32,
}

crate::form! { struct ConnId { slot, generation } }

/// A session of one shard. It may outlive its connection, and is never used twice by the same shard while anything may remember it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SessionId {
    /// Index among the shard's sessions.
    pub slot: u32,
    /// Tells the slot's present session from earlier ones.
    pub generation: u32,
}

crate::form! { struct SessionId { slot, generation } }

/// The permanent id of a notification: 48 bits of time (Unix ms), 16 bits of the account's [`bucket`], 64 random bits. The
/// bucket tells any node which shard knows about it. Written as 26 characters of Crockford's base 32, which sort by time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NotificationId(pub u128);

crate::form! { struct NotificationId(number) }

impl NotificationId {
    /// An id for a notification accepted at `at` for an account of `bucket`.
    pub fn new(at: UnixMs, bucket: u16, random: u64) -> NotificationId {
        let time = u128::from(at.0 & 0xffff_ffff_ffff);
        NotificationId(time << 80 | u128::from(bucket) << 64 | u128::from(random))
    }

    /// The lowest id that a notification accepted at `at` can have.
    pub fn first_at(at: UnixMs) -> NotificationId {
        NotificationId(u128::from(at.0.min((1 << 48) - 1)) << 80)
    }

    /// The account's bucket, as given to [`NotificationId::new`].
    pub fn bucket(self) -> u16 {
        (self.0 >> 64) as u16
    }

    /// When the notification was accepted.
    pub fn time(self) -> UnixMs {
        UnixMs((self.0 >> 80) as u64)
    }
}

/// Names one write, so that it can be asked again without being done again: 48 bits of time (Unix ms), 80 random bits. That they
/// begin with the time keeps those of one time together in a store, which forgets the oldest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationId(pub u128);

crate::form! { struct OperationId(number) }

impl OperationId {
    /// An id for a write that is first asked at `at`.
    pub fn new(at: UnixMs, random: u128) -> OperationId {
        OperationId(u128::from(at.0 & 0xffff_ffff_ffff) << 80 | random >> 48)
    }

    /// The lowest id of what is first asked at `at`.
    pub fn first_at(at: UnixMs) -> OperationId {
        OperationId::new(at, 0)
    }
}

const CROCKFORD: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

impl fmt::Display for NotificationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0u8; 26];
        for (i, c) in text.iter_mut().enumerate() {
            let digit = (self.0 >> (125 - 5 * i)) as usize & 31;
            *c = CROCKFORD.get(digit).copied().unwrap_or_default();
        }
        f.write_str(std::str::from_utf8(&text).expect("Crockford's alphabet is ASCII"))
    }
}

impl fmt::Debug for NotificationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for NotificationId {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<NotificationId, NotAnId> {
        if text.len() != 26 || text.as_bytes().first().is_none_or(|first| *first > b'7') {
            return Err(NotAnId);
        }
        text.bytes()
            .try_fold(0u128, |id, c| {
                let digit = CROCKFORD.iter().position(|&k| k == c.to_ascii_uppercase())?;
                Some(id << 5 | digit as u128)
            })
            .map(NotificationId)
            .ok_or(NotAnId)
    }
}

/// The text is not a notification id: 26 characters of Crockford's base 32, the first at most `7`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a notification id")]
pub struct NotAnId;

/// One of the parts into which names are divided. All names of a partition are with one node, and move together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition(pub u8);

impl Partition {
    /// How many there are.
    pub const COUNT: usize = 256;

    /// That of a name.
    pub fn of(name: &str) -> Partition {
        Partition::of_bucket(bucket(name))
    }

    /// That of the names with a bucket.
    pub fn of_bucket(bucket: u16) -> Partition {
        Partition((bucket >> 8) as u8)
    }

    /// All of them.
    pub fn all() -> impl Iterator<Item = Partition> {
        (0..=u8::MAX).map(Partition)
    }
}

/// Some of the partitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Partitions([u64; 4]);

impl Form for Partitions {
    fn write(&self, out: &mut Writer) {
        self.0.iter().for_each(|word| word.write(out));
    }

    fn read(input: &mut Reader<'_>) -> Result<Partitions, Malformed> {
        let mut partitions = Partitions::default();
        for word in &mut partitions.0 {
            *word = u64::read(input)?;
        }
        Ok(partitions)
    }
}

impl Partitions {
    /// Whether one is among them.
    pub fn has(&self, partition: Partition) -> bool {
        let Partition(number) = partition;
        self.0.get(usize::from(number >> 6)).is_some_and(|word| word >> (number & 63) & 1 == 1)
    }

    /// Adds one.
    pub fn insert(&mut self, partition: Partition) {
        let Partition(number) = partition;
        if let Some(word) = self.0.get_mut(usize::from(number >> 6)) {
            *word |= 1 << (number & 63);
        }
    }

    /// Takes one out.
    pub fn remove(&mut self, partition: Partition) {
        let Partition(number) = partition;
        if let Some(word) = self.0.get_mut(usize::from(number >> 6)) {
            *word &= !(1 << (number & 63));
        }
    }

    /// Adds others.
    pub fn join(&mut self, others: &Partitions) {
        self.0.iter_mut().zip(others.0).for_each(|(word, other)| *word |= other);
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        *self == Partitions::default()
    }
}

impl FromIterator<Partition> for Partitions {
    fn from_iter<I: IntoIterator<Item = Partition>>(partitions: I) -> Partitions {
        let mut all = Partitions::default();
        partitions.into_iter().for_each(|partition| all.insert(partition));
        all
    }
}

/// The bucket of a name (a bare JID, or `topic@pubsub.domain`): the same on every node and in every version, because it
/// decides where a thing lives. FNV-1a, folded to 16 bits.
pub fn bucket(name: &str) -> u16 {
    let hash =
        name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
    (hash ^ hash >> 16 ^ hash >> 32 ^ hash >> 48) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notification_ids_round_trip_and_sort() {
        let id = NotificationId::new(UnixMs(1_795_167_000_125), 0xbeef, 42);
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!((id.bucket(), id.time()), (0xbeef, UnixMs(1_795_167_000_125)));
        let later = NotificationId::new(UnixMs(1_795_167_000_126), 0, 0);
        assert!(later.to_string() > id.to_string());
        assert!("short".parse::<NotificationId>().is_err());
        assert!("80000000000000000000000000".parse::<NotificationId>().is_err());
        assert!("0000000000000000000000000U".parse::<NotificationId>().is_err());
    }

    #[test]
    fn buckets_are_spread() {
        let mut counts = [0u32; 8];
        for i in 0..8000 {
            counts[usize::from(bucket(&format!("u{i}@localhost"))) % 8] += 1;
        }
        assert!(counts.iter().all(|&n| (850..1150).contains(&n)), "{counts:?}");
    }
}
