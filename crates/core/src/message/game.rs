//! What the matchmaker and the homes of matches tell each other.

use crate::command::PendingIq;
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
    /// An account asks a queue for something. Sent to the queue.
    Asked {
        /// The queue.
        queue: QueueAddress,
        /// What for.
        wish: Box<Wish>,
        /// The name that its ticket is given, if it enters one.
        ticket: Box<str>,
        /// Whom to answer, and so who asks.
        iq: Box<PendingIq>,
    },
}

crate::form! {
    enum GameMessage {
        0 = Begin(new),
        1 = Refused { queue, id },
        2 = Ended { queue, result },
        3 = Asked { queue, wish, ticket, iq },
    }
}

/// What an account asks of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// To play: its ticket is entered, if it has none there.
    Enter {
        /// How good the player is.
        rating: i64,
        /// What all players of a match must have alike, in the order of the names.
        alike: Vec<(Box<str>, Box<str>)>,
    },
    /// What has become of its ticket.
    Look,
    /// To withdraw its ticket.
    Cancel,
}

crate::form! { enum Wish { 0 = Enter { rating, alike }, 1 = Look, 2 = Cancel } }

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
            GameMessage::Refused { queue, .. }
            | GameMessage::Ended { queue, .. }
            | GameMessage::Asked { queue, .. } => queue.place,
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
            GameMessage::Asked { wish, iq, .. } => {
                let alike = match &**wish {
                    Wish::Enter { alike, .. } => &alike[..],
                    Wish::Look | Wish::Cancel => &[],
                };
                let alike = alike.iter().map(|(name, value)| name.len() + value.len() + ALIKE_BYTES);
                iq.id.len() + iq.from.as_str().len() + alike.sum::<usize>()
            }
        }
    }
}

/// What a name and its value take beside their bytes.
const ALIKE_BYTES: usize = size_of::<(Box<str>, Box<str>)>();
