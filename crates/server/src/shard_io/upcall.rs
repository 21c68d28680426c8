//! What the core must hear of its own effects.

use carillon_core::Input;
use carillon_core::connection::QueueBound;
use carillon_core::model::ConnId;

/// Something the core must hear of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Upcall {
    /// A connection is gone, and how many bytes its peer's TCP never acknowledged.
    Closed(ConnId, u64),
    /// The bytes that were watched have left.
    Flushed(ConnId),
    /// How many bytes the peer's TCP has not acknowledged, and how much the session had been sent.
    Unacked(ConnId, u64, u32),
    /// Too much waits for a connection.
    Overflowed(ConnId, QueueBound),
}

impl Upcall {
    /// The connection.
    pub(crate) fn conn(self) -> ConnId {
        match self {
            Upcall::Closed(conn, _)
            | Upcall::Flushed(conn)
            | Upcall::Unacked(conn, ..)
            | Upcall::Overflowed(conn, _) => conn,
        }
    }

    /// The core's input that tells it.
    pub(crate) fn input(self) -> Input<'static> {
        match self {
            Upcall::Closed(conn, unacked) => Input::Closed { conn, unacked },
            Upcall::Flushed(conn) => Input::Flushed { conn },
            Upcall::Unacked(conn, bytes, sent) => Input::Unacked { conn, bytes, sent },
            Upcall::Overflowed(conn, bound) => Input::Overflowed { conn, bound },
        }
    }
}
