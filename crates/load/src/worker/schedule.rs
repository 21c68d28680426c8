//! When the events of an open loop are due: a share of the rate of a traffic shape, from a start time on.

use std::time::{Duration, Instant};

use crate::plan::Shape;

/// Some of the players, who cause their share of the events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    /// The number of the first player.
    pub(super) first: u32,
    /// Number of players.
    pub(super) count: u32,
    /// How many players there are in all.
    pub(super) total: u32,
}

/// When the next event is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// It was due at this time and is taken.
    Now(Instant),
    /// It will be due at this time.
    At(Instant),
    /// There is none any more.
    Never,
}

/// The events of a share, one after the other.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    shape: Shape,
    /// Events of the shape per event of the share.
    stretch: f64,
    /// Offset of the first event, as a fraction of the interval between two events of the shape: the shares take turns.
    phase: f64,
    /// The time within the shape at the start.
    head_start: Duration,
    start: Instant,
    taken: u64,
}

impl Schedule {
    /// The events of a share, from a start time on.
    pub(super) fn new(shape: &Shape, share: Share, start: Instant) -> Self {
        let total = f64::from(share.total.max(1));
        let part = f64::from(share.count) / total;
        let phase = f64::from(share.first) / total;
        let stretch = if shape.is_per_player() { 1.0 / f64::from(share.count.max(1)) } else { 1.0 / part };
        Self { shape: shape.clone(), stretch, phase, head_start: Duration::ZERO, start, taken: 0 }
    }

    /// The same, after this many events were taken in an earlier step.
    pub(super) fn after(mut self, taken: u64) -> Self {
        self.taken = taken;
        self.head_start = self.offset().unwrap_or_default();
        self
    }

    /// When the next event is due; `None` if there are no more.
    pub(super) fn next(&self) -> Option<Instant> {
        Some(self.start + self.offset()?.saturating_sub(self.head_start))
    }

    /// When the event with this number, from 0, is due.
    pub(super) fn at(&self, event: u64) -> Option<Instant> {
        Self { taken: event, ..self.clone() }.next()
    }

    /// Takes the next event if it is due by now, and returns when it was due.
    pub(super) fn take(&mut self, now: Instant) -> Option<Instant> {
        let due = self.next().filter(|due| *due <= now)?;
        self.taken += 1;
        Some(due)
    }

    /// Takes the next event if it is due by now; events from `until` on are not taken.
    pub(super) fn take_before(&mut self, until: Instant, now: Instant) -> Due {
        match self.next() {
            Some(due) if due >= until => Due::Never,
            Some(due) if due > now => Due::At(due),
            Some(due) => {
                self.taken += 1;
                Due::Now(due)
            }
            None => Due::Never,
        }
    }

    /// The time of the next event within the shape.
    fn offset(&self) -> Option<Duration> {
        if !self.stretch.is_finite() {
            return None;
        }
        self.shape.due((self.taken as f64 + self.phase) * self.stretch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::NamedShape;

    const HALF: Share = Share { first: 5, count: 5, total: 10 };

    #[test]
    fn a_share_has_its_part_of_the_rate() {
        let start = Instant::now();
        let mut schedule = Schedule::new(&Shape::Steady(10.0), HALF, start);
        assert_eq!(schedule.take(start), None);
        // Five per second, midway between those of the first half.
        assert_eq!(schedule.next(), Some(start + Duration::from_millis(100)));
        let now = start + Duration::from_secs(2);
        assert_eq!(std::iter::from_fn(|| schedule.take(now)).count(), 10);
        assert_eq!(schedule.next(), Some(start + Duration::from_millis(2100)));
    }

    #[test]
    fn a_rate_per_player_does_not_depend_on_the_others() {
        let start = Instant::now();
        let shape = Shape::Named(NamedShape::PerPlayer { rate: 0.1 });
        let mut schedule = Schedule::new(&shape, HALF, start);
        let now = start + Duration::from_secs(10);
        assert_eq!(std::iter::from_fn(|| schedule.take(now)).count(), 5);
    }

    #[test]
    fn a_later_step_goes_on_where_the_last_one_was() {
        let start = Instant::now();
        let whole = Share { first: 0, count: 1, total: 1 };
        let over = crate::plan::Span::from_secs(10);
        let shape = Shape::Named(NamedShape::Ramp { from: 0.0, to: 10.0, over });
        let mut first = Schedule::new(&shape, whole, start);
        let end = start + Duration::from_secs(10);
        assert_eq!(std::iter::from_fn(|| first.take(end)).count(), 51);
        // Event 50 was due at 10 s; then ten per second are due.
        let mut second = Schedule::new(&shape, whole, start).after(50);
        assert_eq!(second.take(start), Some(start));
        assert_eq!(second.next(), Some(start + Duration::from_millis(100)));
    }

    #[test]
    fn nothing_is_taken_after_the_end() {
        let (start, half) = (Instant::now(), Duration::from_millis(500));
        let mut schedule = Schedule::new(&Shape::Steady(2.0), Share { first: 0, count: 1, total: 1 }, start);
        let until = start + half * 2;
        assert_eq!(schedule.take_before(until, start), Due::Now(start));
        assert_eq!(schedule.take_before(until, start), Due::At(start + half));
        assert_eq!(schedule.take_before(until, start + half * 9), Due::Now(start + half));
        assert_eq!(schedule.take_before(until, start + half * 9), Due::Never);
    }

    #[test]
    fn nobody_is_never_due() {
        let nobody = Share { first: 0, count: 0, total: 10 };
        assert_eq!(Schedule::new(&Shape::Steady(1.0), nobody, Instant::now()).next(), None);
    }
}
