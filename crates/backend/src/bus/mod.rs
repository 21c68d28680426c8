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
mod left;
mod outbox;

pub(crate) use hearing::Hearing;
pub(crate) use outbox::Outbox;

use carillon_core::model::Epoch;
use carillon_core::ports::bus::{BusFigures, Hears};
use left::Left;
use std::sync::Arc;
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
    /// What the process before this one of the same node left ([`Bus::hand_over`](carillon_core::ports::Bus::hand_over)): this bus goes on with it.
    pub left: Option<Arc<[u8]>>,
}

impl Default for Options {
    /// 64 MiB, 8 MiB, and half a second.
    fn default() -> Options {
        Options {
            waiting_bytes_max: 64 << 20,
            kept_bytes_max: 8 << 20,
            beat_every: Duration::from_millis(500),
            left: None,
        }
    }
}

/// How many times between two beats it is looked at what is due.
pub(crate) const TICKS_PER_BEAT: u32 = 4;

/// What a node sends and hears: from the beginning, or as the process before it left it.
pub(crate) fn begin(own: Epoch, hears: Hears, options: &Options) -> (Arc<Outbox>, Hearing) {
    let left = options.left.as_deref().and_then(|bytes| match Left::read(bytes) {
        Ok(left) => Some(left),
        Err(error) => {
            tracing::error!(%error, "what the bus of the process before left cannot be read: others are told that records are lost");
            None
        }
    });
    let outbox = Arc::new(Outbox::new(own, options));
    let hearing = Hearing::new(own, hears, Arc::clone(&outbox));
    if let Some(left) = left {
        hearing.begin_with(&left);
        outbox.begin_with(left);
    }
    (outbox, hearing)
}

/// Stops, and gives what the next process of the node begins with.
pub(crate) fn hand_over(outbox: &Outbox, hearing: &Hearing) -> Vec<u8> {
    outbox.close();
    hearing.close();
    let mut left = outbox.leave();
    hearing.leave(&mut left);
    left.write()
}

/// What a node's bus carried, and what waits.
pub(crate) fn figures(outbox: &Outbox, hearing: &Hearing) -> BusFigures {
    let mut figures = outbox.figures();
    hearing.add_to(&mut figures);
    figures
}
