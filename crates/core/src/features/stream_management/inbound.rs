//! What a client may be told of the stanzas it sent: those up to the first that is not settled.

use smallvec::SmallVec;

/// The counts of a session's inbound stanzas. All numbers are modulo 2^32.
#[derive(Debug, Default)]
pub(super) struct Inbound {
    /// How many were handled.
    handled: u32,
    /// Those of them, and the one that is being handled, that are not settled, oldest first. Four bytes each, and no more of them than
    /// the store and the other shards take to their queues.
    unsettled: SmallVec<[u32; 4]>,
    /// The stanza up to which an `<r/>` waits to be answered.
    requested: Option<u32>,
    /// Whether the timer is set that answers an `<r/>` in any case.
    has_timer: bool,
}

/// What becomes of an `<r/>`.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// It is answered with this `h`.
    Answer(u32),
    /// It waits, and a timer for it has to be set if there is none.
    Later { needs_timer: bool },
}

impl Inbound {
    /// A stanza was handled.
    pub(super) fn handled(&mut self) {
        self.handled = self.handled.wrapping_add(1);
    }

    /// The stanza that is being handled is not settled with that: its number.
    pub(super) fn begin(&mut self) -> u32 {
        let number = self.handled.wrapping_add(1);
        self.unsettled.push(number);
        number
    }

    /// A stanza is settled. Returns the `h` for an `<r/>` that has waited for it.
    pub(super) fn settled(&mut self, number: u32) -> Option<u32> {
        // They are settled in their order, but for those to other shards.
        if let Some(at) = self.unsettled.iter().position(|unsettled| *unsettled == number) {
            self.unsettled.remove(at);
        }
        if self.unsettled.is_empty() {
            self.unsettled = SmallVec::new();
        }
        let (requested, h) = (self.requested?, self.h());
        let is_reached = requested.wrapping_sub(h).cast_signed() <= 0;
        is_reached.then(|| {
            self.requested = None;
            h
        })
    }

    /// An `<r/>` came.
    pub(super) fn request(&mut self) -> Request {
        if self.h() == self.handled {
            return Request::Answer(self.handled);
        }
        self.requested = Some(self.handled);
        Request::Later { needs_timer: !std::mem::replace(&mut self.has_timer, true) }
    }

    /// The timer fired. Returns the `h` for an `<r/>` that still waits; once all is settled it is answered again.
    pub(super) fn timer_fired(&mut self) -> Option<u32> {
        self.has_timer = false;
        self.requested.map(|_| self.h())
    }

    /// The stanzas that are acknowledged: all before the first that is not settled.
    fn h(&self) -> u32 {
        self.unsettled.first().map_or(self.handled, |first| first.wrapping_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_settled_is_not_acknowledged() {
        let mut inbound = Inbound::default();
        inbound.handled();
        assert_eq!(inbound.request(), Request::Answer(1));
        let first = inbound.begin();
        inbound.handled();
        let second = inbound.begin();
        inbound.handled();
        inbound.handled();
        assert_eq!(inbound.request(), Request::Later { needs_timer: true });
        assert_eq!(inbound.request(), Request::Later { needs_timer: false });
        assert_eq!(inbound.timer_fired(), Some(1), "the first is not settled");
        // Another one comes before they are settled, in another order.
        let third = inbound.begin();
        inbound.handled();
        assert_eq!(inbound.settled(second), None);
        assert_eq!(inbound.settled(first), Some(4));
        assert_eq!(inbound.settled(third), None, "nobody asked for this one");
        assert_eq!(inbound.request(), Request::Answer(5));
        assert_eq!(inbound.timer_fired(), None);
    }

    #[test]
    fn numbers_begin_again_after_the_last() {
        let mut inbound = Inbound { handled: u32::MAX - 1, ..Inbound::default() };
        let last = inbound.begin();
        inbound.handled();
        let first = inbound.begin();
        inbound.handled();
        assert_eq!((last, first), (u32::MAX, 0));
        assert_eq!(inbound.request(), Request::Later { needs_timer: true });
        assert_eq!(inbound.settled(last), None);
        assert_eq!(inbound.settled(first), Some(0));
    }
}
