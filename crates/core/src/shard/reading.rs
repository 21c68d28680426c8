//! How far a session is with what the store holds for it.

/// The first pause before a page is asked for again that the store could not give; it doubles each time.
const PAUSE_MS: u64 = 1000;
/// The doublings: 64 seconds.
const DOUBLINGS_MAX: u8 = 6;

/// How far a session is with what the store holds for it: one for each feature that has the store hold something.
#[derive(Debug, Default)]
pub struct Reading {
    /// Whether the store may hold something that the session was not given.
    pub more: bool,
    /// Whether a page is on its way from the store.
    pub asking: bool,
    /// Pages in a row that the store could not give.
    failures: u8,
}

impl Reading {
    /// Whether something is known to wait that newer things must not overtake.
    pub fn is_behind(&self) -> bool {
        self.more || self.asking
    }

    /// A page came.
    pub fn came(&mut self, more: bool) {
        (self.asking, self.failures) = (false, 0);
        self.more |= more;
    }

    /// The store could not give it: it is asked again after so many milliseconds.
    pub fn failed(&mut self) -> u64 {
        let pause = PAUSE_MS << self.failures;
        self.failures = (self.failures + 1).min(DOUBLINGS_MAX);
        (self.asking, self.more) = (false, true);
        pause
    }
}
