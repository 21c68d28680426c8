//! Messages that are being kept in archives, and what came for their recipients behind them: an account is given all of it in its order.

use crate::feature_state::Shared;
use crate::model::{Map, Settlement};
use carillon_wire::stanza::Stanza;
use std::collections::VecDeque;

/// Stanzas that wait, by account.
#[derive(Debug, Default)]
pub struct Archiving {
    accounts: Map<Box<str>, Queue>,
    /// Bytes of all of them.
    bytes: usize,
    /// How many were ever held.
    held: u64,
}

/// The stanzas that wait for one account.
#[derive(Debug, Default)]
struct Queue {
    stanzas: VecDeque<Held>,
    bytes: usize,
}

/// A stanza that waits.
#[derive(Debug)]
struct Held {
    number: u64,
    stanza: Stanza,
    bytes: usize,
    settlement: Option<Settlement>,
    /// Whether only those before it are waited for.
    is_ready: bool,
}

/// Bytes that wait for one account, and for all of a shard.
const HELD_BYTES_MAX: usize = 16 << 20;
const ALL_HELD_BYTES_MAX: usize = 64 << 20;

impl Shared for Archiving {}

impl Archiving {
    /// Whether anything waits for an account.
    pub(crate) fn holds(&self, account: &str) -> bool {
        !self.accounts.is_empty() && self.accounts.contains_key(account)
    }

    /// Whether a stanza of so many bytes may wait for an account.
    pub(crate) fn has_room(&self, account: &str, bytes: usize) -> bool {
        let held = self.accounts.get(account).map_or(0, |queue| queue.bytes);
        held + bytes <= HELD_BYTES_MAX && self.bytes + bytes <= ALL_HELD_BYTES_MAX
    }

    /// A stanza waits, for the store's answer about it unless `is_ready`; its number.
    pub(crate) fn hold(
        &mut self,
        account: &str,
        stanza: Stanza,
        settlement: Option<Settlement>,
        is_ready: bool,
    ) -> u64 {
        self.held += 1;
        let bytes = stanza.payload.bytes().len();
        if !self.accounts.contains_key(account) {
            self.accounts.insert(account.into(), Queue::default());
        }
        if let Some(queue) = self.accounts.get_mut(account) {
            queue.stanzas.push_back(Held { number: self.held, stanza, bytes, settlement, is_ready });
            queue.bytes += bytes;
            self.bytes += bytes;
        }
        self.held
    }

    /// The store has answered about a stanza: it is ready, as `change` leaves it.
    pub(crate) fn ready(&mut self, account: &str, number: u64, change: impl FnOnce(&mut Stanza)) {
        let queue = self.accounts.get_mut(account);
        let held = queue.and_then(|queue| queue.stanzas.iter_mut().find(|held| held.number == number));
        if let Some(held) = held {
            change(&mut held.stanza);
            held.is_ready = true;
        }
    }

    /// The store has not kept a stanza: it is not delivered.
    pub(crate) fn take(&mut self, account: &str, number: u64) -> Option<(Stanza, Option<Settlement>)> {
        let queue = self.accounts.get_mut(account)?;
        let place = queue.stanzas.iter().position(|held| held.number == number)?;
        let held = queue.stanzas.remove(place)?;
        queue.bytes -= held.bytes;
        self.bytes -= held.bytes;
        Some((held.stanza, held.settlement))
    }

    /// The next stanza for an account, if it is ready.
    pub(crate) fn next(&mut self, account: &str) -> Option<(Stanza, Option<Settlement>)> {
        let queue = self.accounts.get_mut(account)?;
        let next = queue.stanzas.pop_front_if(|held| held.is_ready);
        if let Some(held) = &next {
            queue.bytes -= held.bytes;
            self.bytes -= held.bytes;
        }
        if queue.stanzas.is_empty() {
            self.accounts.remove(account);
            // What a burst made it grow to is given back.
            if self.accounts.is_empty() && self.accounts.capacity() > 64 {
                self.accounts = Map::default();
            }
        }
        next.map(|held| (held.stanza, held.settlement))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use carillon_wire::stanza::MessageType;

    #[test]
    fn what_is_ready_waits_for_what_is_before_it() {
        let mut archiving = Archiving::default();
        let message = |id: &str| Stanza::message(MessageType::Chat).with_id(id);
        let next = |archiving: &mut Archiving| archiving.next("a@d").and_then(|(stanza, _)| stanza.id);
        let first = archiving.hold("a@d", message("1"), None, false);
        archiving.hold("a@d", message("2"), None, true);
        let third = archiving.hold("a@d", message("3"), None, false);
        assert_eq!(next(&mut archiving), None);
        archiving.ready("a@d", third, |_| {});
        assert_eq!(next(&mut archiving), None);
        archiving.ready("a@d", first, |stanza| stanza.id = Some("one".into()));
        assert_eq!(
            [next(&mut archiving), next(&mut archiving), next(&mut archiving)]
                .map(|id| id.unwrap().to_string()),
            ["one", "2", "3"]
        );
        assert!(!archiving.holds("a@d"));
        let fourth = archiving.hold("a@d", message("4"), None, false);
        assert!(archiving.take("a@d", fourth).is_some());
        assert_eq!(next(&mut archiving), None);
        assert!(!archiving.holds("a@d") && archiving.bytes == 0);
        assert!(archiving.has_room("a@d", HELD_BYTES_MAX) && !archiving.has_room("a@d", HELD_BYTES_MAX + 1));
    }
}
