//! What is tracked of a stanza until the client acknowledges it.

use crate::form::{Form, Malformed, Reader, Writer};
use crate::model::{SessionId, Settlement};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is tracked of something written to the client.
#[derive(Clone, Debug)]
pub enum Track {
    /// Nothing: it may be lost with the connection (presence, IQ, headline).
    Nothing,
    /// A chat message: it is routed again when the connection ends before it was acknowledged.
    Chat(Chat),
    /// A kind and a number of a feature, which is told when the client acknowledges it.
    Of(Tracked, u128),
}

crate::form! { enum Track { 0 = Nothing, 1 = Chat(chat), 2 = Of(kind, number) } }

/// What is known of a chat message that a session is given.
#[derive(Clone, Debug, Default)]
pub struct Chat {
    /// The sessions that are given it, where there are several.
    pub recipients: Option<Arc<Recipients>>,
    /// Its sender, which waits until it is acknowledged.
    pub settlement: Option<Settlement>,
}

crate::form! { struct Chat { recipients, settlement } }

/// The address to which a session gets a stanza that many get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addressee {
    /// That of its client.
    Client,
    /// That of its account.
    Account,
}

crate::form! { enum Addressee { 0 = Client, 1 = Account } }

/// A kind of thing that a feature tracks: a unique name of four letters. Numbers are unique per kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tracked(pub [u8; 4]);

crate::form! { struct Tracked(name) }

/// The sessions that were given the same message.
#[derive(Debug)]
pub struct Recipients {
    /// Those that are to acknowledge it.
    pub sessions: Box<[SessionId]>,
    /// Those that were given it otherwise, and of which nothing more will be known: copies (XEP-0280), for one.
    copies: Box<[SessionId]>,
    /// See [`Fate`].
    fate: AtomicU64,
}

// It stays shared only among what one writer writes: the sessions of an account.
impl Form for Recipients {
    fn write(&self, out: &mut Writer) {
        let Recipients { sessions, copies, fate } = self;
        // In another process nobody waits for an acknowledgement.
        [&sessions[..], copies].concat().write(out);
        elsewhere(fate.load(Ordering::Relaxed)).write(out);
    }

    fn read(input: &mut Reader<'_>) -> Result<Recipients, Malformed> {
        let sessions = Form::read(input)?;
        Ok(Recipients {
            sessions,
            copies: Box::default(),
            fate: AtomicU64::new(elsewhere(u64::read(input)?)),
        })
    }
}

/// What becomes of a message in another process: there, no answer comes.
fn elsewhere(fate: u64) -> u64 {
    if fate == ASKED { THEIRS } else { fate }
}

/// What becomes of a message that several sessions were given, or one that is parked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// One of them is to acknowledge it.
    Theirs,
    /// All of them are parked: the store is asked to keep it.
    Asked,
    /// The store has it, under this number.
    Stored(u64),
    /// One of them has it, or it was routed again: nobody else is to be given it.
    Settled,
}

impl Recipients {
    /// These sessions; one of them is to acknowledge the message.
    pub fn of(sessions: impl IntoIterator<Item = SessionId>) -> Arc<Recipients> {
        Recipients::with_copies(sessions, [])
    }

    /// The same, and others were given the message as well.
    pub fn with_copies(
        sessions: impl IntoIterator<Item = SessionId>,
        copies: impl IntoIterator<Item = SessionId>,
    ) -> Arc<Recipients> {
        let (sessions, copies) = (sessions.into_iter().collect(), copies.into_iter().collect());
        Arc::new(Recipients { sessions, copies, fate: AtomicU64::new(THEIRS) })
    }

    /// All sessions that were given the message.
    pub fn all(&self) -> impl Iterator<Item = SessionId> {
        self.sessions.iter().chain(&self.copies).copied()
    }

    /// The same message, of the same sessions under other names.
    pub(super) fn renamed(&self, name: impl Fn(SessionId) -> Option<SessionId>) -> Recipients {
        let renamed = |ids: &[SessionId]| ids.iter().filter_map(|id| name(*id)).collect();
        let fate = AtomicU64::new(self.fate.load(Ordering::Relaxed));
        Recipients { sessions: renamed(&self.sessions), copies: renamed(&self.copies), fate }
    }

    /// What becomes of it.
    pub fn fate(&self) -> Fate {
        match self.fate.load(Ordering::Relaxed) {
            THEIRS => Fate::Theirs,
            ASKED => Fate::Asked,
            SETTLED => Fate::Settled,
            number => Fate::Stored(number),
        }
    }

    /// One of them has it. Returns the number under which the store is to delete it, if it has it.
    pub fn acknowledged(&self) -> Option<u64> {
        match self.fate() {
            Fate::Stored(number) => Some(number),
            Fate::Theirs | Fate::Asked | Fate::Settled => {
                self.decide(Fate::Settled);
                None
            }
        }
    }

    /// Notes what becomes of it. Returns what it was to be until now.
    pub fn decide(&self, fate: Fate) -> Fate {
        let before = self.fate();
        let number = match fate {
            Fate::Theirs => THEIRS,
            Fate::Asked => ASKED,
            Fate::Settled => SETTLED,
            Fate::Stored(number) => number,
        };
        self.fate.store(number, Ordering::Relaxed);
        before
    }
}

/// The store's numbers begin at 1, and end before these.
const THEIRS: u64 = 0;
const ASKED: u64 = u64::MAX;
const SETTLED: u64 = u64::MAX - 1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::testing::{proves, together};
    use crate::model::{NodeId, Place, ShardId};

    const SESSION: SessionId = SessionId { slot: 3, generation: 1 };

    #[test]
    fn its_form() {
        let recipients = Recipients::of([SESSION, SESSION]);
        recipients.decide(Fate::Stored(7));
        let settlement =
            Settlement { place: Place { node: NodeId(0), shard: ShardId(1) }, session: SESSION, number: 9 };
        let chat = Chat { recipients: Some(recipients), settlement: Some(settlement) };
        let all = [Track::Nothing, Track::Chat(chat), Track::Of(Tracked(*b"noti"), 1 << 100)];
        proves("Track", &all.to_vec());
    }

    /// What one session of an account does with a message, the others see.
    #[test]
    fn sessions_of_an_account_go_on_sharing_a_message() {
        let chat = Chat { recipients: Some(Recipients::of([SESSION, SESSION])), settlement: None };
        let (_, read) = together(&[chat.clone(), chat]);
        let [first, second] = [&read[0], &read[1]].map(|chat| chat.recipients.as_ref().unwrap());
        assert_eq!(first.decide(Fate::Settled), Fate::Theirs);
        assert_eq!(second.fate(), Fate::Settled);
    }
}
