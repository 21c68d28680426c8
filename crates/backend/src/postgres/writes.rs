//! The writes of a group, in their order: those of a kind that follow each other share statements where they are many.

use super::error::Result;
use super::transaction::Transaction;
use super::{archive, ending, keeping};
use crate::engine::asked::Write;
use crate::engine::writing::Done;
use carillon_core::ports::store::archive::KeepMessage;
use carillon_core::ports::store::notifications::{EndNotifications, StoreNotification};
use carillon_core::ports::{Answer, Question};

/// Carries out all of them; what came of each.
pub(super) fn answer_all(write: &mut Transaction<'_>, asks: &[Write]) -> Result<Vec<Done>> {
    let mut done = Vec::with_capacity(asks.len());
    for run in asks.chunk_by(|one, next| {
        WriteKind::of(one) == WriteKind::of(next) && WriteKind::of(one) != WriteKind::Other
    }) {
        done.extend(together(write, run)?);
    }
    Ok(done)
}

/// The writes that are many when there is much to do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WriteKind {
    Keep,
    End,
    Archive,
    Other,
}

impl WriteKind {
    fn of(write: &Write) -> WriteKind {
        if StoreNotification::among(&write.ask).is_some() {
            WriteKind::Keep
        } else if EndNotifications::among(&write.ask).is_some() {
            WriteKind::End
        } else if write.operation.is_none() && KeepMessage::among(&write.ask).is_some() {
            WriteKind::Archive
        } else {
            WriteKind::Other
        }
    }
}

/// Writes of one kind; what came of each.
fn together(write: &mut Transaction<'_>, run: &[Write]) -> Result<Vec<Done>> {
    let answers: Vec<Answer> = match WriteKind::of(&run[0]) {
        WriteKind::Keep => {
            let keeps: Vec<_> = run.iter().filter_map(|one| StoreNotification::among(&one.ask)).collect();
            keeping::keep_all(write, &keeps)?.into_iter().map(StoreNotification::wrap).collect()
        }
        WriteKind::End => {
            let ends: Vec<_> = run.iter().filter_map(|one| EndNotifications::among(&one.ask)).collect();
            ending::end_all(write, &ends)?.into_iter().map(EndNotifications::wrap).collect()
        }
        WriteKind::Archive => {
            let keeps: Vec<_> = run.iter().filter_map(|one| KeepMessage::among(&one.ask)).collect();
            archive::keep_all(write, &keeps)?.into_iter().map(KeepMessage::wrap).collect()
        }
        WriteKind::Other => return run.iter().map(|asked| one(write, asked)).collect(),
    };
    Ok(answers.into_iter().map(Done::as_it_carries).collect())
}

/// A write of any kind.
fn one(write: &mut Transaction<'_>, asked: &Write) -> Result<Done> {
    let before = write.rows.get();
    let answer = match asked.operation {
        None => asked.ask.answer_by(write),
        Some(operation) => asked.ask.answer_once_by(operation, write),
    }?;
    Ok(Done { answer, rows: (write.rows.get() - before) as usize })
}
