//! The durable store of a simulated node: plain ordered maps, a file per noun, which answer every question of the port.
//!
//! [`Committed`] is what is on disk. A question that is answered by it has taken effect: whatever lies between asking, the
//! commit and the answer (waiting, failing, crashing) is the business of [`Disk`], which holds the questions that were asked.

mod accounts;
mod activity;
mod acts;
mod archive;
mod blocking;
mod broadcasts;
mod cells;
mod disk;
mod domains;
mod endpoints;
mod idempotency;
mod inbox;
mod invitations;
mod items;
mod keys;
mod leases;
mod links;
mod listing;
mod modules;
mod nodes;
mod notifications;
mod offline;
mod page;
mod parked;
mod private;
mod push;
mod rooms;
mod roster;
mod subscriptions;
mod tables;
mod topics;
mod uploads;
mod vcard;
mod webhooks;

pub use disk::{Answered, Asks, Disk, Engine, Mood, Step};
pub use tables::Committed;

use crate::model::OperationId;
use crate::ports::store::{Answers, AnswersOnce, Question};
use crate::ports::{Answer, Ask, Fault};
use std::any::TypeId;

/// Tables of nouns that keep their own, beside [`Committed`]'s.
macro_rules! tables {
    ($($noun:ident,)*) => {
        /// Tables of nouns that keep their own. Of an account, they are found by its number, which is given once.
        #[derive(Clone, Debug, Default)]
        pub(super) struct Tables {
            $(pub(super) $noun: $noun::Table,)*
        }
    };
}

tables! {
    activity,
    acts,
    broadcasts,
    cells,
    endpoints,
    invitations,
    modules,
    push,
    rooms,
    uploads,
}

impl Committed {
    /// Answers a question, at once. What it changes is committed with it.
    pub fn answer(&mut self, ask: &Ask) -> Answer {
        let answer: Result<Answer, Fault> = match ask {
            Ask::Read(ask) => ask.answer_by(self),
            Ask::Write(ask) => ask.answer_by(self),
            Ask::Once(operation, ask) => ask.answer_once_by(*operation, self),
        };
        answer.unwrap_or_else(Answer::Failed)
    }
}

impl<Q: Question<Answer: Clone>> AnswersOnce<Q, Fault> for Committed
where
    Committed: Answers<Q, Fault>,
{
    fn answer_once(&mut self, operation: OperationId, question: &Q) -> Result<Q::Answer, Fault> {
        if let Some((question, answer)) = self.operations.get(&operation) {
            return if *question == TypeId::of::<Q>() {
                Q::answer(answer.clone())
            } else {
                Err(Fault::Broken)
            };
        }
        let answer = Answers::answer(self, question)?;
        self.operations.insert(operation, (TypeId::of::<Q>(), Q::wrap(answer.clone())));
        Ok(answer)
    }
}

/// Teaches the store its questions: each is answered by a function that cannot fail.
macro_rules! answers {
    ($($question:ty => $function:path;)*) => {
        $(impl $crate::ports::store::Answers<$question, $crate::ports::Fault> for $crate::sim::store::Committed {
            fn answer(
                &mut self,
                question: &$question,
            ) -> Result<<$question as $crate::ports::Question>::Answer, $crate::ports::Fault> {
                Ok($function(self, question))
            }
        })*
    };
}
use answers;
