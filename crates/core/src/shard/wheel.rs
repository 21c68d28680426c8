//! Timers of a shard's sessions, on one wheel. Setting one costs a push; none is cancelled: a session checks whether a timer
//! that fires still matters.

use crate::model::{ConnId, Mono};

/// A timer of a feature: a unique name of four letters. When it fires, the feature is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timer(pub [u8; 4]);

/// What a timer of a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// The login must be complete.
    Login,
    /// The resource must be bound.
    Bind,
    /// What waits for the session is asked for again, after the store failed.
    Backlog,
    /// Reading goes on after the client was too fast.
    Unthrottle,
    /// The answer that a stanza waits for must have come.
    Parked,
    /// A light session must have sent something.
    Idle,
    /// A timer of a feature.
    Feature(Timer),
}

/// One timer.
#[derive(Clone, Copy, Debug)]
struct Scheduled {
    at: Mono,
    conn: ConnId,
    wake: Wake,
}

/// A hashed timing wheel: one turn takes [`Wheel::TURN_MS`]; a timer further off stays in its slot for another turn.
#[derive(Debug)]
pub struct Wheel {
    slots: Vec<Vec<Scheduled>>,
    /// All timers before this tick have fired.
    tick: u64,
    count: usize,
}

impl Wheel {
    const TICK_MS: u64 = 128;
    const SLOTS: u64 = 1024;
    /// Milliseconds per turn.
    pub const TURN_MS: u64 = Wheel::TICK_MS * Wheel::SLOTS;

    /// An empty wheel at this time.
    pub fn new(now: Mono) -> Wheel {
        let slots = (0..Wheel::SLOTS).map(|_| Vec::new()).collect();
        Wheel { slots, tick: now.0 / Wheel::TICK_MS, count: 0 }
    }

    /// Sets a timer. It fires at the end of its tick: up to 128 ms late, never early.
    #[expect(clippy::indexing_slicing, reason = "the index is below the number of slots")]
    pub fn set(&mut self, at: Mono, conn: ConnId, wake: Wake) {
        let tick = (at.0 / Wheel::TICK_MS).max(self.tick);
        self.slots[(tick % Wheel::SLOTS) as usize].push(Scheduled { at, conn, wake });
        self.count += 1;
    }

    /// Moves the timers that are due by `now` into `due`.
    #[expect(clippy::indexing_slicing, reason = "the index is below the number of slots")]
    pub fn advance(&mut self, now: Mono, due: &mut Vec<(ConnId, Wake)>) {
        let current = now.0 / Wheel::TICK_MS;
        // After a long pause every slot is visited once at most.
        let from = self.tick.max(current.saturating_sub(Wheel::SLOTS));
        for tick in from..current {
            let slot = &mut self.slots[(tick % Wheel::SLOTS) as usize];
            let before = slot.len();
            slot.retain(|t| {
                let stays = t.at.0 / Wheel::TICK_MS > tick.max(current - 1);
                if !stays {
                    due.push((t.conn, t.wake));
                }
                stays
            });
            self.count -= before - slot.len();
            if slot.is_empty() && slot.capacity() > 64 {
                *slot = Vec::new();
            }
        }
        self.tick = self.tick.max(current);
    }

    /// When the wheel must be looked at again, if any timer is set.
    pub fn next(&self) -> Option<Mono> {
        (self.count > 0).then_some(Mono((self.tick + 1) * Wheel::TICK_MS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONN: ConnId = ConnId { slot: 1, generation: 2 };

    fn due(wheel: &mut Wheel, at: u64) -> Vec<Wake> {
        let mut due = Vec::new();
        wheel.advance(Mono(at), &mut due);
        due.into_iter().map(|(_, w)| w).collect()
    }

    #[test]
    fn fires_after_its_time_and_never_before() {
        let mut wheel = Wheel::new(Mono(1000));
        wheel.set(Mono(31_000), CONN, Wake::Login);
        assert!(due(&mut wheel, 30_999).is_empty());
        assert_eq!(due(&mut wheel, 31_000 + Wheel::TICK_MS), [Wake::Login]);
        assert_eq!(wheel.next(), None);
    }

    #[test]
    fn a_timer_beyond_one_turn_waits_for_its_turn() {
        let mut wheel = Wheel::new(Mono(0));
        wheel.set(Mono(Wheel::TURN_MS * 2 + 5), CONN, Wake::Idle);
        for at in (0..Wheel::TURN_MS * 2).step_by(97) {
            assert!(due(&mut wheel, at).is_empty());
        }
        assert_eq!(due(&mut wheel, Wheel::TURN_MS * 2 + 5 + Wheel::TICK_MS), [Wake::Idle]);
    }

    #[test]
    fn a_long_pause_loses_none() {
        let mut wheel = Wheel::new(Mono(0));
        (0..5000).for_each(|i| wheel.set(Mono(i * 100), CONN, Wake::Idle));
        assert_eq!(due(&mut wheel, 100_000_000).len(), 5000);
        assert_eq!(wheel.next(), None);
    }

    #[test]
    fn a_timer_in_the_past_fires_at_the_next_tick() {
        let mut wheel = Wheel::new(Mono(10_000));
        wheel.set(Mono(5), CONN, Wake::Bind);
        assert_eq!(due(&mut wheel, 10_000 + Wheel::TICK_MS), [Wake::Bind]);
    }
}
