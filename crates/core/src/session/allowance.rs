//! How much a client may send: an average over a window, past which it is read more slowly.

use crate::model::Mono;

/// What a client has sent in the present window of ten seconds.
#[derive(Debug)]
pub struct Allowance {
    window: Mono,
    used: u32,
    throttled: bool,
}

const WINDOW_MS: u64 = 10_000;

impl Allowance {
    /// A window that begins now.
    pub fn new(now: Mono) -> Allowance {
        Allowance { window: now, used: 0, throttled: false }
    }

    /// Counts one thing that came. When the client has just become too fast: how long it must wait, in milliseconds;
    /// until [`Allowance::lift`] it is throttled. `per_second` 0 means no bound.
    pub fn use_one(&mut self, now: Mono, per_second: u32) -> Option<u64> {
        if per_second == 0 {
            return None;
        }
        if now.since(self.window) >= WINDOW_MS {
            *self = Allowance::new(now);
        }
        self.used += 1;
        let is_over = u64::from(self.used) * 1000 >= u64::from(per_second) * WINDOW_MS;
        if !is_over || self.throttled {
            return None;
        }
        self.throttled = true;
        Some(WINDOW_MS - now.since(self.window))
    }

    /// Whether input must wait because the client is too fast.
    pub fn is_throttled(&self) -> bool {
        self.throttled
    }

    /// The wait is over; whether there was one.
    pub fn lift(&mut self) -> bool {
        std::mem::take(&mut self.throttled)
    }
}
