//! What is asked of the matchmaker and of matches.

use super::Outcome;
use crate::model::{MatchView, NewTicket, QueueConfig, QueueView, TicketView};

/// Something to be done with a queue of the matchmaker.
#[derive(Clone, Debug)]
pub enum QueueRequest {
    /// Declare it → [`QueueOutcome::Queue`].
    Put { config: QueueConfig },
    /// How it goes → [`QueueOutcome::Queue`].
    Get,
    /// Forget it and its waiting tickets; its matches go on → [`QueueOutcome::Done`].
    Delete,
    /// Add a ticket → [`QueueOutcome::Ticket`].
    Enter { ticket: NewTicket },
    /// What became of a ticket → [`QueueOutcome::Ticket`].
    Ticket { id: Box<str> },
    /// Withdraw a ticket that waits → [`QueueOutcome::Done`].
    Cancel { id: Box<str> },
}

crate::form! {
    enum QueueRequest {
        0 = Put { config },
        1 = Get,
        2 = Delete,
        3 = Enter { ticket },
        4 = Ticket { id },
        5 = Cancel { id },
    }
}

impl QueueRequest {
    /// Bytes that it takes in memory, as far as somebody chose them.
    pub fn bytes(&self) -> usize {
        match self {
            QueueRequest::Enter { ticket } => ticket.bytes(),
            QueueRequest::Ticket { id } | QueueRequest::Cancel { id } => id.len(),
            QueueRequest::Put { .. } | QueueRequest::Get | QueueRequest::Delete => 0,
        }
    }
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueueOutcome {
    /// Done.
    Done,
    /// The queue; whether it was declared just now.
    Queue { queue: QueueView, created: bool },
    /// The ticket; whether it was added just now.
    Ticket { ticket: TicketView, created: bool },
}

crate::form! { enum QueueOutcome { 0 = Done, 1 = Queue { queue, created }, 2 = Ticket { ticket, created } } }

/// Why it is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueRefusal {
    /// There are no matches on this node: the settings allow none.
    Disabled,
    /// There is no such queue.
    NoQueue,
    /// There is no such ticket.
    NoTicket,
    /// A ticket of this name is there, with something else in it.
    OtherTicket,
    /// The account has a ticket in the queue that is not over.
    Present,
    /// The ticket does not wait any more.
    TooLate,
    /// There are as many queues as the settings allow.
    TooManyQueues,
    /// There are as many tickets as the settings allow.
    TooManyTickets,
    /// No module of this name that decides matches is active.
    NoModule,
    /// The ticket is of more accounts than the queue allows.
    PartyTooLarge,
    /// An account is in the ticket twice.
    Twice,
    /// Accounts enter no tickets themselves.
    NotOpen,
}

crate::form! {
    enum QueueRefusal {
        0 = Disabled,
        1 = NoQueue,
        2 = NoTicket,
        3 = OtherTicket,
        4 = Present,
        5 = TooLate,
        6 = TooManyQueues,
        7 = TooManyTickets,
        8 = NoModule,
        9 = PartyTooLarge,
        10 = Twice,
        11 = NotOpen,
    }
}

/// Something to be done with a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchRequest {
    /// What it is now → [`Outcome::Match`].
    Get,
    /// End it → [`Outcome::Match`], as it was before.
    End,
    /// The right to watch it → [`Outcome::MatchToken`]; [`Outcome::Missing`] also where nobody may.
    Watch,
    /// How it was played, also for a while after its end → [`Outcome::MatchReplay`].
    Replay,
}

crate::form! { enum MatchRequest { 0 = Get, 1 = End, 2 = Watch, 3 = Replay } }

impl From<Option<MatchView>> for Outcome {
    fn from(view: Option<MatchView>) -> Outcome {
        view.map_or(Outcome::Missing, |view| Outcome::Match(Box::new(view)))
    }
}
