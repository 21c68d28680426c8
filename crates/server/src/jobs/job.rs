//! A question to the store that a job repeats.

use crate::clock::unix;
use crate::node::Node;
use carillon_core::model::OperationId;
use carillon_core::ports::{Fault, Question};
use std::time::Instant;

/// A question that is asked again and again, once at a time. What is unknown is asked again as the same operation.
pub(super) struct Job<Q> {
    asked: Option<(OperationId, Instant, Q)>,
    is_under_way: bool,
}

impl<Q> Default for Job<Q> {
    fn default() -> Job<Q> {
        Job { asked: None, is_under_way: false }
    }
}

impl<Q: Question> Job<Q> {
    /// Asks, unless the question is with the store.
    pub(super) fn ask(
        &mut self,
        node: &Node,
        question: impl FnOnce() -> Q,
        reply: impl FnOnce(Result<Q::Answer, Fault>) + Send + 'static,
    ) {
        if std::mem::replace(&mut self.is_under_way, true) {
            return;
        }
        let begin = || (operation(), Instant::now(), question());
        let (operation, _, question) = self.asked.get_or_insert_with(begin);
        node.ask_as(*operation, question.clone(), reply);
    }

    /// Whether the question is with the store.
    pub(super) fn is_under_way(&self) -> bool {
        self.is_under_way
    }

    /// What was answered, and when it was first asked; nothing when the store could not do it, which is logged.
    pub(super) fn answered<T: Default>(&mut self, answer: Result<T, Fault>) -> (T, Instant) {
        self.is_under_way = false;
        let since = self.asked.as_ref().map_or_else(Instant::now, |(_, since, _)| *since);
        if !matches!(answer, Err(Fault::Unknown)) {
            self.asked = None;
        }
        let done = answer.unwrap_or_else(|fault| {
            tracing::warn!(%fault, job = std::any::type_name::<Q>(), "the store did not do it: it is asked again");
            T::default()
        });
        (done, since)
    }
}

fn operation() -> OperationId {
    let number = || getrandom::u64().expect("the operating system gives randomness");
    OperationId::new(unix(), u128::from(number()) << 64 | u128::from(number()))
}
