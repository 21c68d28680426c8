//! What the matchmaker and the homes of matches tell each other.

use crate::model::{DomainId, MatchId, MatchResult, MatchRules, Place};
use carillon_wire::jid::BareJid;

/// A message between a queue of the matchmaker and the home of a match.
#[derive(Debug)]
pub enum GameMessage {
    /// A match begins. Sent to its home.
    Begin(Box<NewMatch>),
    /// The home of a match does not take it now. Sent to its queue.
    Refused {
        /// The queue.
        queue: QueueAddress,
        /// The match.
        id: MatchId,
    },
    /// A match is over. Sent to its queue.
    Ended {
        /// The queue.
        queue: QueueAddress,
        /// How it ended.
        result: MatchResult,
    },
}

crate::form! { enum GameMessage { 0 = Begin(new), 1 = Refused { queue, id }, 2 = Ended { queue, result } } }

/// A match that begins.
#[derive(Debug)]
pub struct NewMatch {
    /// Its name.
    pub id: MatchId,
    /// The queue that made it.
    pub queue: QueueAddress,
    /// How it is played.
    pub rules: MatchRules,
    /// Who has the seats, in their order.
    pub accounts: Vec<BareJid>,
    /// What the tokens of its seats are proved with.
    pub key: [u8; 32],
    /// A number for the random decisions of the game.
    pub seed: u64,
}

crate::form! { struct NewMatch { id, queue, rules, accounts, key, seed } }

/// A queue of the matchmaker, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueAddress {
    /// The shard that has it.
    pub place: Place,
    /// Its domain.
    pub domain: DomainId,
    /// Its name.
    pub name: Box<str>,
}

crate::form! { struct QueueAddress { place, domain, name } }

impl GameMessage {
    /// Where it goes.
    pub fn to(&self) -> Place {
        match self {
            GameMessage::Begin(new) => new.id.home(),
            GameMessage::Refused { queue, .. } | GameMessage::Ended { queue, .. } => queue.place,
        }
    }

    /// Bytes that it takes in memory, as far as somebody chose them.
    pub fn memory_bytes(&self) -> usize {
        match self {
            GameMessage::Begin(new) => {
                let accounts =
                    new.accounts.iter().map(|account| account.as_str().len() + size_of::<BareJid>());
                size_of::<NewMatch>() + accounts.sum::<usize>()
            }
            GameMessage::Refused { .. } => 0,
            GameMessage::Ended { result, .. } => result.outcome.len(),
        }
    }
}
