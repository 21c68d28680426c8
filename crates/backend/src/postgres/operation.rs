//! Operations: writes that are done once, however often they are asked with the same id.

use super::column::Id;
use super::error::{Error, Result};
use super::transaction::Transaction;
use super::{domain, ending, notification, sweep};
use crate::rows::remembered::{self, Recalls, Remembered};
use carillon_core::model::*;
use carillon_core::ports::store::notifications::Sweep;
use carillon_core::ports::store::{Answers, AnswersOnce};
use std::sync::Arc;

impl<Q: Remembered> AnswersOnce<Q, Error> for Transaction<'_>
where
    Self: Answers<Q, Error>,
{
    fn answer_once(&mut self, operation: OperationId, question: &Q) -> Result<Q::Answer> {
        let id = Id(operation.0);
        let known = self.db.opt("SELECT outcome FROM operation WHERE id = $1", &[&id])?;
        if let Some(known) = known {
            return remembered::again(question, known.try_get(0)?, self)?
                .ok_or(Error::Unfit("the id is another operation's"));
        }
        let answer = Answers::answer(self, question)?;
        if let Some(kept) = remembered::kept::<Q>(&answer) {
            self.run("INSERT INTO operation (id, outcome) VALUES ($1, $2)", &[&id, &kept])?;
        }
        Ok(answer)
    }
}

impl Recalls for Transaction<'_> {
    type Error = Error;

    fn last_item(&mut self, topic: TopicId) -> Result<Option<Arc<Item>>> {
        self.newest(topic)
    }

    fn domain(&mut self, name: &str) -> Result<Option<Domain>> {
        domain::named(self.db, name)
    }

    fn is_due(&mut self, now: UnixMs) -> Result<bool> {
        notification::is_due(self.db, now)
    }

    fn claimed(&mut self, ids: &[NotificationId]) -> Result<Vec<Notification>> {
        notification::claimed(self.db, ids)
    }

    fn ended(&mut self, ids: &[NotificationId]) -> Result<Vec<Trace>> {
        ending::ended_traces(self.db, ids)
    }

    fn has_more(&mut self, sweep: &Sweep) -> Result<bool> {
        sweep::has_more(self.db, sweep)
    }
}
