//! Parked sessions between two processes (docs/adr/0019): read and forgotten before the node serves, written when it ends.

use crate::channels::inbox::Control;
use crate::node::Node;
use carillon_core::model::ShardId;
use carillon_core::ports::store::parked::{
    ForgetParked, ParkedGroup, ParkedGroups, StoreParked, StoreParkedAnswer,
};
use carillon_core::ports::{Fault, Page, Question, Store};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// All groups that the process before this one wrote. The store does not have them any more: whatever happens to this process, no
/// session comes back twice.
///
/// # Errors
/// If the store cannot be read or cannot forget them.
pub(crate) fn take(store: &dyn Store) -> Result<Vec<ParkedGroup>, Fault> {
    let mut groups: Vec<ParkedGroup> = Vec::new();
    loop {
        let after = groups.last().map(|group| group.number);
        let page = Page { entries: u16::MAX, bytes: PAGE_BYTES };
        let part = ask(store, &ParkedGroups { after, page })?;
        groups.extend(part.entries);
        if !part.more {
            break;
        }
    }
    if !groups.is_empty() {
        ask(store, &ForgetParked)?;
    }
    Ok(groups)
}

/// What was written at the end of the node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) groups: u32,
    pub(crate) sessions: u64,
    pub(crate) bytes: u64,
    /// Sessions for which there was no room, or which the store did not take: their shards have them back.
    pub(crate) returned: u64,
}

/// Has the shards write their parked sessions, and the store keep them. What it does not keep goes back to its shard.
pub(crate) fn write(node: &Node, store: &dyn Store, bytes_max: u64) -> Written {
    if !settle(node, SETTLE) {
        tracing::warn!("sessions are written while answers of the store are awaited");
    }
    let (sender, groups) = sync_channel(WAITING_MAX);
    node.control(|| Control::WriteParked(sender.clone()));
    drop(sender);
    // Each answer has its place: it never waits.
    let (answered, answers) = sync_channel(WAITING_MAX);
    let mut writing = Writing { store, bytes_max, under_way: 0, answers, written: Written::default() };
    let mut returned = Vec::new();
    // It ends when the last shard has dropped its sender.
    for (number, group) in groups.into_iter().enumerate() {
        if writing.under_way == WAITING_MAX {
            returned.extend(writing.answer());
        }
        writing.ask(ParkedGroup { number: number as u32, ..group }, &answered);
    }
    while writing.under_way > 0 {
        returned.extend(writing.answer());
    }
    let written = writing.written;
    for group in returned {
        node.control_of(ShardId(group.shard), Control::Restore(vec![group]));
    }
    written
}

struct Writing<'a> {
    store: &'a dyn Store,
    bytes_max: u64,
    under_way: usize,
    answers: Receiver<(ParkedGroup, Result<StoreParkedAnswer, Fault>)>,
    written: Written,
}

type Answered = SyncSender<(ParkedGroup, Result<StoreParkedAnswer, Fault>)>;

impl Writing<'_> {
    fn ask(&mut self, group: ParkedGroup, answered: &Answered) {
        let (kept, answered) = (group.clone(), answered.clone());
        let question = StoreParked { group, bytes_max: self.bytes_max };
        self.under_way += 1;
        // Nobody listens only when the store took too long.
        let reply = StoreParked::reply(move |answer| drop(answered.send((kept, answer))));
        self.store.ask(question.into(), reply);
    }

    /// Waits for an answer; the group, if the store does not have it.
    fn answer(&mut self) -> Option<ParkedGroup> {
        self.under_way -= 1;
        let Ok((group, answer)) = self.answers.recv_timeout(PATIENCE) else {
            tracing::error!("the store did not say whether it keeps parked sessions");
            return None;
        };
        let answer = match answer {
            // Asked again it is settled: the group has a number.
            Err(Fault::Unknown | Fault::Busy) => {
                ask(self.store, &StoreParked { group: group.clone(), bytes_max: self.bytes_max })
            }
            answer => answer,
        };
        let sessions = u64::from(group.sessions);
        match answer {
            Ok(StoreParkedAnswer::Stored) => {
                self.written.groups += 1;
                self.written.sessions += sessions;
                self.written.bytes += group.bytes.len() as u64;
                return None;
            }
            Ok(StoreParkedAnswer::Full) => {}
            // It may be there: what is there is restored, so it must not go on here.
            Err(Fault::Unknown) => return None,
            Err(fault) => tracing::error!(%fault, sessions, "parked sessions were not stored"),
        }
        self.written.returned += sessions;
        Some(group)
    }
}

/// Waits until nothing is under way: no shard awaits an answer of the store or has a message for another. Not longer than `limit`;
/// whether it came to that. A session is written with what it awaits as not done: a message that is being stored for it would be in
/// its queue, too.
pub(crate) fn settle(node: &Node, limit: Duration) -> bool {
    let until = Instant::now() + limit;
    let mut quiet = 0;
    while quiet < QUIET_ROUNDS && Instant::now() < until {
        if node.sum(Control::Awaited, limit) == 0 {
            quiet += 1;
        } else {
            quiet = 0;
            std::thread::sleep(MOMENT);
        }
    }
    quiet == QUIET_ROUNDS
}

/// Asks and waits; again where that settles it.
fn ask<Q: Question>(store: &dyn Store, question: &Q) -> Result<Q::Answer, Fault> {
    let mut answer = Err(Fault::Unknown);
    for _ in 0..ATTEMPTS {
        let (sender, answers) = sync_channel(1);
        store.ask(question.clone().into(), Q::reply(move |answer| drop(sender.try_send(answer))));
        answer = answers.recv_timeout(PATIENCE).unwrap_or(Err(Fault::Unknown));
        if !matches!(answer, Err(Fault::Unknown | Fault::Busy)) {
            break;
        }
    }
    answer
}

/// How large a group is, about.
pub(crate) const GROUP_BYTES: usize = 256 * 1024;
/// Groups that wait for the store at most.
const WAITING_MAX: usize = 8;
/// What is read of groups at once.
const PAGE_BYTES: usize = 8 << 20;
/// How long the store may take for an answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often a question is asked that the store did not settle.
const ATTEMPTS: usize = 3;
/// How long what is under way may take.
const SETTLE: Duration = Duration::from_secs(2);
/// The time between two looks, while answers are awaited.
const MOMENT: Duration = Duration::from_millis(1);
/// So many times in a row nothing was under way: a message between shards may ask the store, and its answer send another.
const QUIET_ROUNDS: usize = 3;

#[cfg(test)]
mod tests;
