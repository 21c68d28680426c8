//! Timers, on a wheel for the shard's sessions and one for its connections. Setting one costs a push; none is cancelled: who set it
//! checks whether a timer that fires still matters.

use crate::model::Mono;

/// A timer of a feature: a unique name of four letters. When it fires, the feature is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timer(pub [u8; 4]);

crate::form! { struct Timer(name) }

/// What a timer of a connection is for whose session is not bound, or is a light one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// The login must be complete.
    Login,
    /// The resource must be bound.
    Bind,
    /// A light session must have sent something.
    Idle,
    /// Reading from a light session goes on after the client was too fast.
    Unthrottle,
}

/// What a timer of a bound session is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// What waits for the session is asked for again, after the store failed.
    Backlog,
    /// Reading goes on after the client was too fast.
    Unthrottle,
    /// The answer that a stanza waits for must have come.
    Waiting,
    /// The client of a parked session must have resumed it.
    Parked,
    /// A timer of a feature.
    Feature(Timer),
}

crate::form! { enum Wake { 0 = Backlog, 1 = Unthrottle, 2 = Waiting, 3 = Parked, 4 = Feature(timer) } }

/// One timer.
#[derive(Clone, Copy, Debug)]
struct Scheduled<T> {
    at: Mono,
    timer: T,
}

/// A hashed timing wheel: one turn takes [`Wheel::TURN_MS`]; a timer further off stays in its slot for another turn. `T` says whose
/// timer it is and what for.
#[derive(Debug)]
pub struct Wheel<T> {
    slots: Vec<Vec<Scheduled<T>>>,
    /// All timers before this tick have fired.
    tick: u64,
    count: usize,
}

impl<T: Copy> Wheel<T> {
    const TICK_MS: u64 = 128;
    const SLOTS: u64 = 1024;
    /// Milliseconds per turn.
    pub const TURN_MS: u64 = Self::TICK_MS * Self::SLOTS;

    /// An empty wheel at this time.
    pub fn new(now: Mono) -> Self {
        let slots = (0..Self::SLOTS).map(|_| Vec::new()).collect();
        Wheel { slots, tick: now.0 / Self::TICK_MS, count: 0 }
    }

    /// Sets a timer. It fires at the end of its tick: up to 128 ms late, never early.
    #[expect(clippy::indexing_slicing, reason = "the index is below the number of slots")]
    pub fn set(&mut self, at: Mono, timer: T) {
        let tick = (at.0 / Self::TICK_MS).max(self.tick);
        self.slots[(tick % Self::SLOTS) as usize].push(Scheduled { at, timer });
        self.count += 1;
    }

    /// Moves the timers that are due by `now` into `due`.
    #[expect(clippy::indexing_slicing, reason = "the index is below the number of slots")]
    pub fn advance(&mut self, now: Mono, due: &mut Vec<T>) {
        let current = now.0 / Self::TICK_MS;
        // After a long pause every slot is visited once at most.
        let from = self.tick.max(current.saturating_sub(Self::SLOTS));
        for tick in from..current {
            let slot = &mut self.slots[(tick % Self::SLOTS) as usize];
            let before = slot.len();
            slot.retain(|t| {
                let stays = t.at.0 / Self::TICK_MS > tick.max(current - 1);
                if !stays {
                    due.push(t.timer);
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

    /// Every timer that is set, and when it fires.
    pub fn iter(&self) -> impl Iterator<Item = (Mono, T)> {
        self.slots.iter().flatten().map(|scheduled| (scheduled.at, scheduled.timer))
    }

    /// When the wheel must be looked at again, if any timer is set.
    pub fn next(&self) -> Option<Mono> {
        (self.count > 0).then_some(Mono((self.tick + 1) * Self::TICK_MS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK_MS: u64 = Wheel::<Deadline>::TICK_MS;
    const TURN_MS: u64 = Wheel::<Deadline>::TURN_MS;

    fn due(wheel: &mut Wheel<Deadline>, at: u64) -> Vec<Deadline> {
        let mut due = Vec::new();
        wheel.advance(Mono(at), &mut due);
        due
    }

    #[test]
    fn fires_after_its_time_and_never_before() {
        let mut wheel = Wheel::new(Mono(1000));
        wheel.set(Mono(31_000), Deadline::Login);
        assert!(due(&mut wheel, 30_999).is_empty());
        assert_eq!(due(&mut wheel, 31_000 + TICK_MS), [Deadline::Login]);
        assert_eq!(wheel.next(), None);
    }

    #[test]
    fn a_timer_beyond_one_turn_waits_for_its_turn() {
        let mut wheel = Wheel::new(Mono(0));
        wheel.set(Mono(TURN_MS * 2 + 5), Deadline::Idle);
        for at in (0..TURN_MS * 2).step_by(97) {
            assert!(due(&mut wheel, at).is_empty());
        }
        assert_eq!(due(&mut wheel, TURN_MS * 2 + 5 + TICK_MS), [Deadline::Idle]);
    }

    #[test]
    fn a_long_pause_loses_none() {
        let mut wheel = Wheel::new(Mono(0));
        (0..5000).for_each(|i| wheel.set(Mono(i * 100), Deadline::Idle));
        assert_eq!(due(&mut wheel, 100_000_000).len(), 5000);
        assert_eq!(wheel.next(), None);
    }

    #[test]
    fn a_timer_in_the_past_fires_at_the_next_tick() {
        let mut wheel = Wheel::new(Mono(10_000));
        wheel.set(Mono(5), Deadline::Bind);
        assert_eq!(due(&mut wheel, 10_000 + TICK_MS), [Deadline::Bind]);
    }
}
