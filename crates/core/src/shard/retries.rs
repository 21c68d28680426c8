//! Writes that the store has not done yet: ends of notifications and broadcasts, deletions of messages, and messages to be kept for parked sessions. The store may refuse a write
//! because it is busy or broken; the write is then repeated, with growing pauses, until the store has done it.
//!
//! What a device acknowledged must not be delivered again in the meantime, although the store still holds it: the feature that asked for
//! the write remembers that until the store has done it, or until the write is given up here.

use super::Recipients;
use crate::model::{AccountId, DomainId, Mono, Notification, NotificationId, Settlement};
use crate::ports::store::broadcasts::AccountEnd;
use crate::ports::store::notifications::NotificationChange;
use crate::ports::store::offline::StoreOffline;
use carillon_wire::jid::BareJid;
use carillon_wire::stanza::Stanza;
use std::collections::VecDeque;
use std::sync::Arc;

/// Writes that the store has not done yet.
#[derive(Debug, Default)]
pub struct Retries {
    /// What the store refused, oldest first.
    refused: VecDeque<RefusedWrite>,
    bytes: usize,
    /// How many notifications and messages were given up since the start.
    given_up: u64,
    /// When the store is asked again.
    retry_at: Option<Mono>,
    /// The last pause.
    pause_ms: u64,
}

/// A write that the store refused.
#[derive(Debug)]
pub enum RefusedWrite {
    /// A notification ended.
    End(End),
    /// An account acknowledged a broadcast.
    EndBroadcast(AccountEnd),
    /// Messages of an account are to be deleted.
    Forget(Forget),
    /// A message that parked sessions were given is to be kept.
    Keep(Box<Keep>),
    /// A due notification for who is there: it is stored, and what became of it could not be read.
    Store(Arc<Notification>),
}

/// A notification that is to end.
#[derive(Clone, Debug)]
pub struct End {
    /// Its domain.
    pub domain: DomainId,
    /// How.
    pub change: NotificationChange,
}

/// Messages of an account that are to be deleted.
#[derive(Clone, Debug)]
pub struct Forget {
    /// The account's domain.
    pub domain: DomainId,
    /// Its local part.
    pub local: Box<str>,
    /// The messages' numbers.
    pub seqs: Vec<u64>,
}

/// A message that parked sessions were given, and that is to be kept for them.
#[derive(Debug)]
pub struct Keep {
    /// The message.
    pub message: Stanza,
    /// Its account.
    pub account: BareJid,
    /// What the store is asked.
    pub question: StoreOffline,
    /// The sessions.
    pub recipients: Arc<Recipients>,
    /// Its sender, which waits until it is kept.
    pub settlement: Option<Settlement>,
    /// Whether the store may have it, and did not say so.
    pub is_unsure: bool,
}

impl Retries {
    /// The store refused a write: it is to be repeated. Past the bound the oldest writes are given up, and returned: what they are about
    /// may then be delivered again, and nothing is lost.
    #[must_use]
    pub(crate) fn add(&mut self, write: RefusedWrite, now: Mono) -> Vec<RefusedWrite> {
        self.bytes += write.bytes();
        self.refused.push_back(write);
        let mut given_up = Vec::new();
        while self.bytes > BYTES_MAX {
            let Some(oldest) = self.refused.pop_front() else { break };
            self.bytes -= oldest.bytes();
            self.given_up += oldest.len();
            given_up.push(oldest);
        }
        if self.retry_at.is_none() {
            self.pause_ms = (self.pause_ms * 2).clamp(PAUSE_MIN_MS, PAUSE_MAX_MS);
            self.retry_at = Some(now.plus(self.pause_ms));
        }
        given_up
    }

    /// How many notifications and messages were given up since the start: they may be delivered again.
    pub fn given_up(&self) -> u64 {
        self.given_up
    }

    /// When the store is to be asked again.
    pub fn due(&self) -> Option<Mono> {
        self.retry_at
    }

    /// How many writes wait to be repeated.
    pub fn len(&self) -> usize {
        self.refused.len()
    }

    /// Whether no write waits.
    pub fn is_empty(&self) -> bool {
        self.refused.is_empty()
    }

    /// The store did a write, so it is asked for the others at once.
    pub fn succeeded(&mut self, now: Mono) {
        self.pause_ms = 0;
        if !self.refused.is_empty() {
            self.retry_at = Some(now);
        }
    }

    /// Takes the writes that are due.
    pub(crate) fn take_due(&mut self, now: Mono) -> Vec<RefusedWrite> {
        if self.retry_at.is_none_or(|at| at > now) {
            return Vec::new();
        }
        self.retry_at = None;
        let count = self.refused.len().min(TOGETHER);
        let writes: Vec<RefusedWrite> = self.refused.drain(..count).collect();
        self.bytes -= writes.iter().map(RefusedWrite::bytes).sum::<usize>();
        if self.refused.is_empty() {
            self.refused = VecDeque::new();
        }
        writes
    }
}

impl RefusedWrite {
    /// How many notifications and messages it is about.
    fn len(&self) -> u64 {
        match self {
            RefusedWrite::End(_)
            | RefusedWrite::EndBroadcast(_)
            | RefusedWrite::Store(_)
            | RefusedWrite::Keep(_) => 1,
            RefusedWrite::Forget(forget) => forget.seqs.len() as u64,
        }
    }

    /// Bytes that it takes, including those that its feature remembers of it.
    fn bytes(&self) -> usize {
        let carried = match self {
            RefusedWrite::End(_) => size_of::<NotificationId>(),
            RefusedWrite::EndBroadcast(_) => size_of::<(NotificationId, AccountId)>(),
            RefusedWrite::Forget(forget) => forget.local.len() + 2 * forget.seqs.len() * size_of::<u64>(),
            RefusedWrite::Keep(keep) => {
                size_of::<Keep>()
                    + keep.message.memory_bytes()
                    + keep.question.stanza.len()
                    + keep.account.as_str().len()
            }
            RefusedWrite::Store(notification) => size_of::<Notification>() + notification.payload.bytes(),
        };
        size_of::<RefusedWrite>() + carried
    }
}

/// Bytes of refused writes that a shard keeps.
const BYTES_MAX: usize = 16 << 20;
/// Writes repeated at once.
const TOGETHER: usize = 1000;
/// The first pause before the store is asked again; it doubles up to the second.
const PAUSE_MIN_MS: u64 = 1000;
const PAUSE_MAX_MS: u64 = 60_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{AcknowledgedBy, DomainId, NotificationState, UnixMs};

    fn end(n: u64) -> RefusedWrite {
        let change = NotificationChange {
            id: NotificationId(u128::from(n)),
            state: NotificationState::Acknowledged,
            sent: None,
            at: UnixMs(0),
            acknowledged_by: Some(AcknowledgedBy::Receipt),
            reason: None,
        };
        RefusedWrite::End(End { domain: DomainId(1), change })
    }

    #[test]
    fn the_pause_doubles_until_the_store_takes_a_write() {
        let mut retries = Retries::default();
        let (mut now, mut pauses) = (Mono(0), Vec::new());
        for _ in 0..9 {
            assert!(retries.add(end(1), now).is_empty());
            let due = retries.due().expect("it is asked again");
            pauses.push(due.since(now) / 1000);
            assert!(retries.take_due(Mono(due.0 - 1)).is_empty(), "not before");
            now = due;
            assert_eq!(retries.take_due(now).len(), 1);
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        retries.succeeded(now);
        assert!(retries.add(end(1), now).is_empty());
        assert_eq!(retries.due(), Some(now.plus(1000)));
    }

    #[test]
    fn is_bounded_in_bytes_and_gives_the_oldest_up() {
        let mut retries = Retries::default();
        let count = 2 * (BYTES_MAX / end(0).bytes()) as u64;
        let mut given_up = Vec::new();
        for n in 0..count {
            given_up.extend(retries.add(end(n), Mono(0)));
            assert!(retries.bytes <= BYTES_MAX);
        }
        let first = given_up.first().expect("more came than there is room");
        assert!(matches!(first, RefusedWrite::End(end) if end.change.id == NotificationId(0)));
        assert_eq!(given_up.len() as u64, retries.given_up());
        assert_eq!(retries.given_up(), count - retries.len() as u64, "each is counted");
        let mut left = retries.len();
        while left > 0 {
            retries.retry_at = Some(Mono(0));
            left -= retries.take_due(Mono(0)).len();
        }
        assert_eq!((retries.bytes, retries.len()), (0, 0));
    }

    #[test]
    fn messages_that_are_given_up_are_counted_one_by_one() {
        let mut retries = Retries::default();
        let messages = |seqs: std::ops::Range<u64>| {
            RefusedWrite::Forget(Forget { domain: DomainId(1), local: "alice".into(), seqs: seqs.collect() })
        };
        let most = (BYTES_MAX - messages(0..0).bytes()) as u64 / (2 * size_of::<u64>() as u64);
        assert!(retries.add(messages(0..most), Mono(0)).is_empty());
        assert_eq!((retries.given_up(), retries.len()), (0, 1), "it fits");
        assert_eq!(retries.add(messages(most..most + 3), Mono(0)).len(), 1);
        assert_eq!((retries.given_up(), retries.len()), (most, 1));
    }
}
