//! What every bus is made of, however it carries bytes.
//!
//! ```text
//!  post ─► Outbox: numbers and gathers ─► envelopes ─► an engine ─► Hearing: looks at the numbers ─► Heard
//!                     ├── beats, with the last numbers ──┤
//!                     └── what was not heard, again ◄────┘
//! ```

mod envelope;
mod hearing;
mod holds;
mod kept;
mod outbox;

pub(crate) use hearing::Hearing;
pub(crate) use outbox::Outbox;

use carillon_core::ports::bus::BusFigures;
use std::time::Duration;

/// Bounds and intervals of a bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many bytes may wait to be sent. Past it records are lost, and whoever they were for is told.
    pub waiting_bytes_max: usize,
    /// How many bytes that have left are kept for whoever did not hear them. They are asked for within seconds; what is there no more is lost, and
    /// whoever it was for is told.
    pub kept_bytes_max: usize,
    /// How often a node says that it lives. All nodes of a cell say so equally often.
    pub beat_every: Duration,
}

impl Default for Options {
    /// 64 MiB, 8 MiB, and half a second.
    fn default() -> Options {
        Options {
            waiting_bytes_max: 64 << 20,
            kept_bytes_max: 8 << 20,
            beat_every: Duration::from_millis(500),
        }
    }
}

/// How many times between two beats it is looked at what is due.
pub(crate) const TICKS_PER_BEAT: u32 = 4;

/// What a node's bus carried, and what waits.
pub(crate) fn figures(outbox: &Outbox, hearing: &Hearing) -> BusFigures {
    let mut figures = outbox.figures();
    hearing.add_to(&mut figures);
    figures
}
