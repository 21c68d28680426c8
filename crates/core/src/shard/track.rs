//! What is tracked of a stanza until the client acknowledges it.

use crate::model::{SessionId, Settlement};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

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

/// A kind of thing that a feature tracks: a unique name of four letters. Numbers are unique per kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tracked(pub [u8; 4]);

crate::form! { struct Tracked(name) }

/// The sessions that were given the same message.
#[derive(Debug)]
pub struct Recipients {
    /// Their names.
    pub sessions: Box<[SessionId]>,
    /// Whether the message was routed again already, because none of them acknowledged it.
    pub has_gone_on: AtomicBool,
}

// It stays shared only among what one writer writes: the sessions of an account.
crate::form! { struct Recipients { sessions, has_gone_on } }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::testing::{proves, together};
    use crate::model::ShardId;
    use std::sync::atomic::Ordering;

    const SESSION: SessionId = SessionId { slot: 3, generation: 1 };

    #[test]
    fn its_form() {
        let recipients =
            Recipients { sessions: Box::new([SESSION, SESSION]), has_gone_on: AtomicBool::new(true) };
        let settlement = Settlement { shard: ShardId(1), session: SESSION, number: 9 };
        let chat = Chat { recipients: Some(Arc::new(recipients)), settlement: Some(settlement) };
        let all = [Track::Nothing, Track::Chat(chat), Track::Of(Tracked(*b"noti"), 1 << 100)];
        proves("Track", &all.to_vec());
    }

    /// What one session of an account does with a message, the others see.
    #[test]
    fn sessions_of_an_account_go_on_sharing_a_message() {
        let recipients =
            Recipients { sessions: Box::new([SESSION, SESSION]), has_gone_on: AtomicBool::new(false) };
        let chat = Chat { recipients: Some(Arc::new(recipients)), settlement: None };
        let (_, read) = together(&[chat.clone(), chat]);
        let [first, second] = [&read[0], &read[1]].map(|chat| chat.recipients.as_ref().unwrap());
        first.has_gone_on.store(true, Ordering::Relaxed);
        assert!(second.has_gone_on.load(Ordering::Relaxed));
    }
}
