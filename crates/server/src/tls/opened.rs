//! What opening records is told, and what it returns, on either record layer.

/// What [`Link::open`](super::Link::open) did with its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Bytes of the input that are dealt with. The others are the beginning of a record: hand them in again, as they
    /// are, when more has come.
    pub consumed: usize,
    /// The peer sent `close_notify`: nothing more will come, but it may still read (RFC 8446 §6.1).
    pub closed: bool,
}

/// What a link cannot know of itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Circumstances {
    /// Minutes of a clock that never goes back.
    pub minute: u32,
    /// Whether anything sealed earlier still waits to be sent. Then an answer that may be given later is: a peer that
    /// asks and does not read must not make the queue grow.
    pub has_queue: bool,
}

impl Opened {
    /// The peer is done: whatever there is has been dealt with.
    pub(super) fn ended(input: &[u8]) -> Opened {
        Opened { consumed: input.len(), closed: true }
    }
}
