//! A session between two processes: with what the shard keeps for it beside the others.

use super::BoundSession;
use super::homes::SeenGenerations;
use crate::model::{Mono, PubsubEvent};
use crate::shard::Wake;
use std::sync::Arc;

/// A session on its way to another process.
#[derive(Debug)]
pub(crate) struct Moved {
    pub(crate) session: Box<BoundSession>,
    /// Its timers, in their order.
    pub(crate) timers: Vec<(Mono, Wake)>,
    /// The last items of the topics it follows: it may still have to be given one of them. All who follow a topic share it.
    pub(crate) last_items: Vec<Arc<PubsubEvent>>,
    /// What it knows of its account's record.
    pub(crate) known: SeenGenerations,
}

crate::form! { struct Moved { session, timers, last_items, known: since(2) } }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::{Io, Noted, Reader};
    use crate::form::testing::{proves, written};
    use crate::model::ConnId;
    use crate::settings::Limits;
    use crate::shard::Timer;
    use carillon_wire::Framing;

    /// One of machine/restart.chat: with carbons, held-back presence, a topic's item and a notification that were not acknowledged.
    #[test]
    fn its_form() {
        let parked: Moved = written("Moved, parked");
        assert_eq!(parked.session.jid.as_str(), "alice@localhost/r");
        proves("Moved, parked", &parked);
        // The same session while it has a connection.
        let mut connected = parked;
        let conn = ConnId { slot: u32::MAX, generation: 0 };
        let mut reader = Reader::new(&Limits::default());
        reader.keep(b"<message");
        let (address, framing) = ([127, 0, 0, 1].into(), Framing::WebSocket);
        connected.session.io =
            Some(Io { conn, address, framing, tls: None, via: None, reader, noted: Noted::Begun });
        connected.session.resumption = None;
        proves("Moved, connected", &connected);
    }

    #[test]
    fn the_form_of_a_timer() {
        let wakes =
            [Wake::Backlog, Wake::Unthrottle, Wake::Waiting, Wake::Parked, Wake::Feature(Timer(*b"ping"))];
        proves("Wake", &wakes.to_vec());
    }
}
