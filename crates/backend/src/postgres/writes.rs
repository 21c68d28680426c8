//! The writes of a group, in their order: those of a kind that follow each other share statements where they are many.

use super::error::Result;
use super::transaction::Transaction;
use crate::engine::asked::Write;
use carillon_core::ports::Answer;

/// Carries out all of them; an answer for each.
pub(super) fn answer_all(write: &mut Transaction<'_>, asks: &[Write]) -> Result<Vec<Answer>> {
    asks.iter().map(|asked| one(write, asked)).collect()
}

/// A write of any kind.
fn one(write: &mut Transaction<'_>, asked: &Write) -> Result<Answer> {
    match asked.operation {
        None => asked.ask.answer_by(write),
        Some(operation) => asked.ask.answer_once_by(operation, write),
    }
}
