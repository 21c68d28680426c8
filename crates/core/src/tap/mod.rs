//! Taps: what an operator follows of the sessions of one account (`carillon trace`).
//!
//! A session has a bit that says whether its account is followed; the others pay for a branch. What is noted goes to the [`Tape`] of the turn,
//! which the server hands to those who read: it is bounded in bytes, and what does not fit is counted. A tap ends by itself, at the latest when
//! its time is up.

mod entry;
mod kind;
mod tape;
#[cfg(test)]
mod tests;

pub use entry::{Entry, Happening, Sketch};
pub use kind::{Kind, Kinds};
pub use tape::Tape;

use crate::model::{Mono, Now};
use carillon_wire::jid::{BareJid, Jid};

/// Accounts that one shard follows at once.
pub const TAPS_MAX: usize = 16;

/// What is to be followed, and how far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// Its number, which its node uses once.
    pub id: u64,
    /// The account.
    pub account: BareJid,
    /// What is told of it.
    pub kinds: Kinds,
    /// When it ends.
    pub until: Mono,
    /// Entries after which it ends.
    pub count: u32,
    /// Entries per second; what exceeds them is counted, and not told.
    pub rate: u32,
    /// Whether elements are told whole.
    pub payloads: bool,
}

/// The taps of a shard.
#[derive(Debug, Default)]
pub struct Taps(Vec<Tap>);

#[derive(Debug)]
struct Tap {
    order: Order,
    /// Entries that it may still note.
    left: u32,
    /// The second in which it noted last, and how many entries.
    second: u64,
    in_second: u32,
}

impl Taps {
    /// Whether nothing is followed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether an account is followed.
    pub fn follow(&self, account: &str) -> bool {
        self.0.iter().any(|tap| tap.order.account.as_str() == account)
    }

    /// Follows an account. Beyond [`TAPS_MAX`] the oldest tap gives way.
    pub fn add(&mut self, order: Order) {
        if self.0.len() >= TAPS_MAX {
            self.0.remove(0);
        }
        let left = order.count;
        self.0.push(Tap { order, left, second: 0, in_second: 0 });
    }

    /// Ends a tap. The account that it followed.
    pub fn remove(&mut self, id: u64) -> Option<BareJid> {
        let at = self.0.iter().position(|tap| tap.order.id == id)?;
        Some(self.0.remove(at).order.account)
    }

    /// Ends the taps whose time is up. The accounts that they followed.
    pub fn expire(&mut self, now: Mono) -> Vec<BareJid> {
        let ended = self.0.extract_if(.., |tap| tap.order.until <= now);
        ended.map(|tap| tap.order.account).collect()
    }

    /// Notes something of an account for each tap that wants it. `make` is told whether elements are wanted whole.
    pub fn note(
        &mut self,
        now: Now,
        (account, session): (&str, Option<&Jid>),
        kind: Kind,
        tape: &mut Tape,
        make: &dyn Fn(bool) -> Happening,
    ) {
        for tap in self.0.iter_mut().filter(|tap| tap.wants(account, kind, now.mono)) {
            let Order { id: tap_id, payloads, .. } = tap.order;
            if !tap.has_room(now.mono) {
                tape.miss(tap_id);
                continue;
            }
            let entry = Entry { tap: tap_id, at: now.unix, session: session.cloned(), what: make(payloads) };
            if tape.push(entry) {
                tap.left -= 1;
            } else {
                tape.miss(tap_id);
            }
        }
    }
}

impl Tap {
    fn wants(&self, account: &str, kind: Kind, now: Mono) -> bool {
        let Order { account: followed, kinds, until, .. } = &self.order;
        self.left > 0 && kinds.contain(kind) && *until > now && followed.as_str() == account
    }

    /// Whether this second has room for one more.
    fn has_room(&mut self, now: Mono) -> bool {
        let second = now.0 / 1000;
        if second != self.second {
            (self.second, self.in_second) = (second, 0);
        }
        let has_room = self.in_second < self.order.rate;
        self.in_second += u32::from(has_room);
        has_room
    }
}
