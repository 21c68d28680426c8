//! What is acknowledged to the sender of a message.

use super::{Place, SessionId};

/// The session that waits until a message of its client is settled: until it is stored, its recipient's client has acknowledged it, or
/// it was refused, so that a crash cannot lose it. Given to a client that acknowledges nothing it is settled, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Settlement {
    /// Where the session is.
    pub place: Place,
    /// Its name there.
    pub session: SessionId,
    /// The message's number among the stanzas of the session.
    pub number: u32,
}

crate::form! { struct Settlement { place, session, number } }
