//! What is known of a session: its offline messages on their way.

use crate::model::Mono;
use crate::shard::{Chat, Flight, Pager, Recipients};
use carillon_wire::stanza::Stanza;
use std::sync::Arc;

/// A session's offline messages on their way.
#[derive(Debug, Default)]
pub struct OfflineInFlight(pub(crate) Option<Box<Progress>>);

crate::form! { struct OfflineInFlight(progress) }

#[derive(Debug, Default)]
pub(crate) struct Progress {
    pub(crate) pager: Pager<GivenMessage>,
    /// The last one given: the next page begins after it.
    pub(crate) last: u64,
    /// Deletions under way. Until they are committed the store would give the messages again.
    pub(crate) deletions: u32,
    /// What its client was given as it came, and may not have.
    pub(crate) live: Live,
}

// The store ends with the deletions that it was asked for before another process asks it anything. It has what was in flight, too
// (`arrival::leaves`).
crate::form! { struct Progress { pager, last, deletions: omitted(0), live: omitted(Live::default()) } }

/// Chat messages that a client without stream management was given, and that have not arrived.
#[derive(Debug, Default)]
pub(crate) struct Live {
    flight: Flight<Box<Message>>,
    /// Bytes that they take.
    bytes: usize,
    /// Those of them that were given since it was last counted how much has arrived.
    uncounted: usize,
    /// Whether the timer runs that looks for a sender.
    soon: bool,
    /// Whether the session is about to leave the process.
    leaves: bool,
}

/// A chat message that was given.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) stanza: Stanza,
    pub(crate) chat: Chat,
    /// When it was given.
    pub(crate) at: Mono,
}

impl Message {
    fn bytes(&self) -> usize {
        ENTRY_BYTES + self.stanza.memory_bytes()
    }
}

impl Live {
    /// A message was given to a session that has been sent so many bytes.
    pub(crate) fn gave(&mut self, message: Message, sent: u32) {
        self.bytes += message.bytes();
        self.uncounted += message.bytes();
        self.flight.gave(Box::new(message), sent);
    }

    /// Bytes that they take.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether `bytes` were given, so that it is to be counted at once how much has arrived; not again for as much.
    pub(crate) fn is_count_due(&mut self, bytes: usize) -> bool {
        let is_due = self.uncounted >= bytes;
        if is_due {
            self.uncounted = 0;
        }
        is_due
    }

    /// Whether the timer that looks for a sender is to be set: it does not run yet, and runs from now on.
    pub(crate) fn begin_soon(&mut self) -> bool {
        !std::mem::replace(&mut self.soon, true)
    }

    /// That timer fired.
    pub(crate) fn soon_fired(&mut self) {
        self.soon = false;
    }

    /// The session is about to leave the process. Returns whether anything is in flight.
    pub(crate) fn leaves(&mut self) -> bool {
        self.leaves = !self.flight.is_empty();
        self.leaves
    }

    /// Whether it is, and it is known now what has arrived.
    pub(crate) fn has_left(&mut self) -> bool {
        std::mem::take(&mut self.leaves)
    }

    /// Takes out what has arrived ([`Flight::take_arrived`]).
    pub(crate) fn take_arrived(&mut self, unacked: u64, sent: u32) -> impl Iterator<Item = Message> {
        let bytes = &mut self.bytes;
        self.flight
            .take_arrived(unacked, sent)
            .map(|message| *message)
            .inspect(|message| *bytes -= message.bytes())
    }

    /// Takes out all of them.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Message> + use<> {
        let Live { mut flight, .. } = std::mem::take(self);
        flight.take_all(|_| true).into_iter().map(|message| *message)
    }

    /// Takes out the one that these sessions were given, if it is among them.
    pub(crate) fn take_of(&mut self, recipients: &Arc<Recipients>) -> Option<Message> {
        let message = self
            .flight
            .take(|message| message.chat.recipients.as_ref().is_some_and(|of| Arc::ptr_eq(of, recipients)))?;
        self.bytes -= message.bytes();
        Some(*message)
    }

    /// Since when a sender waits for the oldest that one waits for.
    pub(crate) fn awaited_since(&self) -> Option<Mono> {
        self.flight.entries().find(|message| message.chat.settlement.is_some()).map(|message| message.at)
    }

    /// All of them, oldest first.
    pub(crate) fn messages_mut(&mut self) -> impl Iterator<Item = &mut Message> {
        self.flight.entries_mut().map(|message| &mut **message)
    }
}

/// A message given to the connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GivenMessage {
    pub(crate) seq: u64,
    /// Whether stream management counts it.
    pub(crate) managed: bool,
}

crate::form! { struct GivenMessage { seq, managed } }

impl OfflineInFlight {
    /// Takes note of what a login read: whether any wait.
    pub(crate) fn take_login(&mut self, wait: bool) {
        if wait {
            self.look_again();
        }
    }

    /// Takes note that the store may hold one that the session was not given.
    pub(crate) fn look_again(&mut self) {
        self.progress().pager.look_again();
    }

    /// Whether older messages are still to come from the store, so that newer ones must wait behind them there.
    pub(crate) fn is_behind(&self) -> bool {
        self.0.as_ref().is_some_and(|progress| progress.pager.is_behind())
    }

    /// Whether there are messages of which only the peer's TCP can say that they arrived.
    pub(crate) fn has_unmanaged(&self) -> bool {
        self.0.as_ref().is_some_and(|progress| {
            !progress.live.flight.is_empty() || progress.pager.in_flight().any(|given| !given.managed)
        })
    }

    /// Whether the client was given the message with this number from the store, and has not acknowledged it.
    pub(crate) fn has(&self, seq: u64) -> bool {
        self.0.as_ref().is_some_and(|progress| progress.pager.in_flight().any(|given| given.seq == seq))
    }

    /// Whether so much was given as it came, and has not arrived, that the store takes what comes now. `bytes_max`: at which the session
    /// ends.
    pub(crate) fn is_full(&self, bytes_max: usize) -> bool {
        self.0.as_ref().is_some_and(|progress| progress.live.bytes >= bytes_max / 2)
    }

    pub(crate) fn progress(&mut self) -> &mut Progress {
        self.0.get_or_insert_default()
    }

    /// Drops the box when it holds nothing: an idle session keeps none.
    pub(crate) fn tidy(&mut self) {
        let is_idle = |progress: &Progress| {
            progress.pager.is_idle()
                && progress.deletions == 0
                && progress.live.flight.is_empty()
                && !progress.live.soon
        };
        if self.0.as_deref().is_some_and(is_idle) {
            self.0 = None;
        }
    }
}

/// Bytes that a message takes besides its stanza.
const ENTRY_BYTES: usize = size_of::<Message>() - size_of::<Stanza>() + 2 * size_of::<u64>();

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::testing::proves;
    use crate::form::{decode, encode, testing::AT_ONCE};

    #[test]
    fn its_form() {
        let mut state = OfflineInFlight::default();
        proves("offline, none", &state);
        state.progress().pager.gave(GivenMessage { seq: 1 << 33, managed: true }, 300);
        state.progress().pager.gave(GivenMessage { seq: (1 << 33) + 1, managed: false }, 700);
        state.progress().pager.elsewhere();
        state.progress().last = (1 << 33) + 1;
        proves("offline", &state);
        // Nobody counts in another process what the store has been asked for in this one.
        state.progress().deletions = 2;
        let read: OfflineInFlight = decode(&encode(&state, 1_000_000), AT_ONCE).unwrap();
        assert_eq!(read.0.unwrap().deletions, 0);
    }
}
