//! A reply that is given, whatever becomes of it.

use carillon_core::ports::{Reply, Unavailable};

/// A reply. Dropped without an answer it says that there is none.
pub(crate) struct Answering<T>(Option<Reply<Result<T, Unavailable>>>);

impl<T> Answering<T> {
    pub(crate) fn new(reply: Reply<Result<T, Unavailable>>) -> Answering<T> {
        Answering(Some(reply))
    }

    pub(crate) fn give(mut self, answer: T) {
        if let Some(reply) = self.0.take() {
            reply(Ok(answer));
        }
    }
}

impl<T> Drop for Answering<T> {
    fn drop(&mut self) {
        if let Some(reply) = self.0.take() {
            reply(Err(Unavailable));
        }
    }
}
