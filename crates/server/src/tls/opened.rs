//! The context and the result of opening records, on either record layer.

/// The result of [`Link::open`](super::Link::open).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenedRecords {
    /// How many bytes of the input are handled. The others are the beginning of a record: pass them again, unchanged,
    /// when more has come.
    pub consumed: usize,
    /// The peer sent `close_notify`: nothing more will come, but it may still read (RFC 8446 §6.1).
    pub closed: bool,
}

/// The circumstances in which a link opens records.
#[derive(Clone, Copy, Debug, Default)]
pub struct Circumstances {
    /// Minutes of a clock that never goes back.
    pub minute: u32,
    /// Whether anything sealed earlier still waits to be sent. Then answers that may be late are delayed: a peer that
    /// asks and does not read must not make the queue grow.
    pub has_queue: bool,
}

impl OpenedRecords {
    /// The peer has ended its side: all of the input is handled.
    pub(super) fn ended(input: &[u8]) -> OpenedRecords {
        OpenedRecords { consumed: input.len(), closed: true }
    }
}
