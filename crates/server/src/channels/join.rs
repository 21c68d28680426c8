//! Joining the answers of several shards into one.

use carillon_core::command::Outcome;
use carillon_core::ports::Reply;
use std::sync::{Arc, Mutex, PoisonError};

/// Calls back when its last holder drops it: when every shard has done its part, or has ended.
pub(crate) struct AllDone(Mutex<Option<Reply<()>>>);

impl AllDone {
    /// A token that calls `reply` when its last clone is dropped.
    pub(crate) fn new(reply: Reply<()>) -> Arc<AllDone> {
        Arc::new(AllDone(Mutex::new(Some(reply))))
    }
}

impl Drop for AllDone {
    fn drop(&mut self) {
        if let Some(reply) = self.0.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            reply(());
        }
    }
}

/// Calls back when each of several shards has counted it down once. A shard that never does so prevents the call.
pub(crate) struct Countdown(Mutex<Awaited>);

struct Awaited {
    missing: usize,
    reply: Option<Reply<()>>,
}

impl Countdown {
    /// Waits for `missing` shards.
    pub(crate) fn new(missing: usize, reply: Reply<()>) -> Arc<Countdown> {
        Arc::new(Countdown(Mutex::new(Awaited { missing, reply: Some(reply) })))
    }

    /// Counts one shard.
    pub(crate) fn count_down(&self) {
        let mut awaited = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        awaited.missing = awaited.missing.saturating_sub(1);
        if awaited.missing == 0
            && let Some(reply) = awaited.reply.take()
        {
            drop(awaited);
            reply(());
        }
    }
}

/// Joins the outcomes of one command that every shard carries out.
pub(crate) struct Join(Mutex<Joined>);

struct Joined {
    missing: usize,
    outcome: Option<Outcome>,
    /// Sessions listed at most.
    limit: usize,
    reply: Option<Reply<Outcome>>,
}

impl Join {
    /// Joins `parts` outcomes.
    pub(crate) fn new(parts: usize, limit: usize, reply: Reply<Outcome>) -> Arc<Join> {
        Arc::new(Join(Mutex::new(Joined { missing: parts, outcome: None, limit, reply: Some(reply) })))
    }

    /// The callback for one shard's outcome.
    pub(crate) fn part(self: &Arc<Self>) -> Reply<Outcome> {
        let join = Arc::clone(self);
        Box::new(move |outcome| join.add(outcome))
    }

    fn add(&self, outcome: Outcome) {
        let mut joined = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        joined.missing = joined.missing.saturating_sub(1);
        let so_far = joined.outcome.take();
        joined.outcome = Some(match so_far {
            Some(so_far) => merge(so_far, outcome),
            None => outcome,
        });
        if joined.missing == 0
            && let (Some(reply), Some(mut outcome)) = (joined.reply.take(), joined.outcome.take())
        {
            if let Outcome::Sessions(sessions) = &mut outcome {
                sessions.truncate(joined.limit);
            }
            drop(joined);
            reply(outcome);
        }
    }
}

/// Merges two outcomes. If a shard could not answer, the whole is unavailable: half a list would look like a complete
/// one. No command that is split among shards writes to the store, so none of them is unknown.
fn merge(a: Outcome, b: Outcome) -> Outcome {
    match (a, b) {
        (Outcome::Unavailable, _) | (_, Outcome::Unavailable) => Outcome::Unavailable,
        (Outcome::Count(a), Outcome::Count(b)) => Outcome::Count(a + b),
        (Outcome::Sessions(mut a), Outcome::Sessions(b)) => {
            a.extend(b);
            Outcome::Sessions(a)
        }
        (Outcome::Traces(mut a), Outcome::Traces(b)) => {
            a.extend(b);
            Outcome::Traces(a)
        }
        (Outcome::Presence(mut a), Outcome::Presence(b)) => {
            a.extend(b);
            Outcome::Presence(a)
        }
        (Outcome::TopicFigures(mut a), Outcome::TopicFigures(b)) => {
            a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
            Outcome::TopicFigures(a)
        }
        (Outcome::Missing, other) | (other, _) => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    fn joined(outcomes: Vec<Outcome>) -> Vec<Outcome> {
        let (tx, rx) = mpsc::channel();
        let join = Join::new(outcomes.len(), 10, Box::new(move |outcome| tx.send(outcome).unwrap()));
        outcomes.into_iter().for_each(|outcome| join.part()(outcome));
        rx.try_iter().collect()
    }

    #[test]
    fn counts_are_added() {
        let outcomes = joined(vec![Outcome::Count(1), Outcome::Missing, Outcome::Count(2)]);
        assert!(matches!(outcomes[..], [Outcome::Count(3)]));
    }

    #[test]
    fn one_unavailable_shard_makes_all_unavailable() {
        let outcomes = joined(vec![Outcome::Count(1), Outcome::Unavailable, Outcome::Count(2)]);
        assert!(matches!(outcomes[..], [Outcome::Unavailable]));
    }

    #[test]
    fn all_done_calls_when_the_last_is_gone() {
        let (tx, rx) = mpsc::channel();
        let first = AllDone::new(Box::new(move |()| tx.send(()).unwrap()));
        let second = Arc::clone(&first);
        drop(first);
        assert!(rx.try_recv().is_err());
        drop(second);
        assert!(rx.try_recv().is_ok());
    }
}
