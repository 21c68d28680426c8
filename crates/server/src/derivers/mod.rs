//! Threads that derive SCRAM keys from passwords. A derivation takes milliseconds of processor time, which would delay
//! all sessions of a shard. The queue is bounded; past the bound the answer is [`Derived::Busy`]. Domains take turns ([`Turns`]), so
//! that passwords that are guessed in one neither delay the logins of another nor take its room in the queue.

mod turns;

use crate::channels::inbox::{Inbox, InboxItem};
use carillon_core::model::Ticket;
use carillon_core::ports::{Derivation, Derived};
use std::io;
use std::num::NonZero;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use turns::Turns;

/// A handle to the threads. They end when the last handle is dropped, and what waits is done.
#[derive(Clone)]
pub(crate) struct Derivers(Arc<Handle>);

/// The handles together.
struct Handle(Arc<Queue>);

/// What the threads share.
struct Queue {
    jobs: Mutex<Jobs>,
    changed: Condvar,
}

struct Jobs {
    turns: Turns<Job>,
    /// No more come.
    is_closed: bool,
}

/// A derivation, and the inbox that gets its result.
struct Job {
    ticket: Ticket,
    derivation: Derivation,
    inbox: Arc<Inbox>,
}

impl Derivers {
    /// Starts the threads: one for every two cores, two at most, so that the shards keep their share of the machine.
    pub(crate) fn start() -> io::Result<Derivers> {
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        let derivers = Derivers::without_threads(WAITING_MAX);
        for n in 0..cores.div_ceil(2).min(THREADS_MAX) {
            let queue = Arc::clone(&derivers.0.0);
            Builder::new().name(format!("derive-{n}")).spawn(move || queue.run())?;
        }
        Ok(derivers)
    }

    fn without_threads(waiting: usize) -> Derivers {
        let jobs = Mutex::new(Jobs { turns: Turns::new(waiting), is_closed: false });
        Derivers(Arc::new(Handle(Arc::new(Queue { jobs, changed: Condvar::new() }))))
    }

    /// Queues a derivation. Its result is put into the inbox.
    pub(crate) fn derive(&self, ticket: Ticket, derivation: Derivation, inbox: Arc<Inbox>) {
        let queue = &self.0.0;
        let without_room = queue.lock().turns.push(derivation.domain, Job { ticket, derivation, inbox });
        queue.changed.notify_one();
        if let Some(job) = without_room {
            job.inbox.push(InboxItem::Derived { ticket: job.ticket, derived: Derived::Busy });
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.lock().is_closed = true;
        self.0.changed.notify_all();
    }
}

impl Queue {
    /// Derives until the queue is closed and empty.
    fn run(&self) {
        while let Some(Job { ticket, derivation, inbox }) = self.next() {
            inbox.push(InboxItem::Derived { ticket, derived: derivation.run() });
        }
    }

    fn next(&self) -> Option<Job> {
        let mut jobs = self.lock();
        loop {
            match jobs.turns.pop() {
                None if !jobs.is_closed => {
                    jobs = self.changed.wait(jobs).unwrap_or_else(PoisonError::into_inner);
                }
                next => return next,
            }
        }
    }

    /// Held for some instructions, never during a derivation.
    fn lock(&self) -> MutexGuard<'_, Jobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const THREADS_MAX: usize = 2;
/// Derivations that wait, of a kilobyte at most each: two seconds of work for one thread.
const WAITING_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shard_io::special;
    use carillon_core::model::DomainId;
    use carillon_core::ports::{Hashes, Password};
    use mio::{Poll, Waker};
    use std::collections::VecDeque;

    fn derivation(domain: u32) -> Derivation {
        let password = Password::new("secret").expect("it is short");
        let (domain, salt) = (DomainId(domain), b"salt".as_slice().into());
        Derivation { domain, password, salt, iterations: 4096, hashes: Hashes::Both }
    }

    #[test]
    fn every_ticket_is_answered_and_too_many_at_once() {
        let mut poll = Poll::new().expect("a poll");
        let inbox = Arc::new(Inbox::new(Waker::new(poll.registry(), special(255)).expect("a waker")));
        // Without a thread, what waits stays.
        let derivers = Derivers::without_threads(3);
        (0..5).for_each(|n| derivers.derive(Ticket(n), derivation(1), Arc::clone(&inbox)));
        derivers.derive(Ticket(5), derivation(2), Arc::clone(&inbox));
        let queue = Arc::clone(&derivers.0.0);
        drop(derivers);
        let (mut mail, mut events) = (VecDeque::new(), mio::Events::with_capacity(8));
        inbox.take(&mut mail);
        let busy = |mail: &InboxItem| matches!(mail, InboxItem::Derived { derived: Derived::Busy, .. });
        assert_eq!((mail.len(), mail.iter().all(busy)), (3, true));
        mail.clear();
        assert!(inbox.sleep());
        queue.run();
        poll.poll(&mut events, None).expect("the shard is woken");
        inbox.take(&mut mail);
        let tickets: Vec<_> = mail
            .iter()
            .map(|mail| match mail {
                InboxItem::Derived { ticket, derived: Derived::Keys(keys) } if keys.sha1.is_some() => {
                    ticket.0
                }
                _ => panic!("keys"),
            })
            .collect();
        assert_eq!(tickets, [0, 5, 1], "the other domain has its turn");
    }
}
