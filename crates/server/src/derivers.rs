//! Threads that derive SCRAM keys from passwords. A derivation takes milliseconds of processor time, which would delay
//! all sessions of a shard. The queue is bounded; past the bound the answer is [`Derived::Busy`].

use crate::inbox::{Inbox, InboxItem};
use carillon_core::model::Ticket;
use carillon_core::ports::{Derivation, Derived};
use std::io;
use std::num::NonZero;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;

/// A handle to the threads. They end when the last handle is dropped.
#[derive(Clone)]
pub(crate) struct Derivers(SyncSender<Job>);

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
        Derivers::start_with(cores.div_ceil(2).min(THREADS_MAX), WAITING_MAX)
    }

    fn start_with(threads: usize, waiting: usize) -> io::Result<Derivers> {
        let (sender, jobs) = sync_channel(waiting);
        let jobs = Arc::new(Mutex::new(jobs));
        for n in 0..threads {
            let jobs = Arc::clone(&jobs);
            Builder::new().name(format!("derive-{n}")).spawn(move || run(&jobs))?;
        }
        Ok(Derivers(sender))
    }

    /// Queues a derivation. Its result is put into the inbox.
    pub(crate) fn derive(&self, ticket: Ticket, derivation: Derivation, inbox: Arc<Inbox>) {
        let refused = self.0.try_send(Job { ticket, derivation, inbox });
        if let Err(TrySendError::Full(job) | TrySendError::Disconnected(job)) = refused {
            job.inbox.push(InboxItem::Derived { ticket: job.ticket, derived: Derived::Busy });
        }
    }
}

fn run(jobs: &Mutex<Receiver<Job>>) {
    loop {
        // The thread that waits for a job holds the lock; the others wait for the lock.
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Job { ticket, derivation, inbox }) = job else { return };
        inbox.push(InboxItem::Derived { ticket, derived: derivation.run() });
    }
}

const THREADS_MAX: usize = 2;
/// Derivations that wait, of a kilobyte at most each: two seconds of work for one thread.
const WAITING_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shard_io::special;
    use carillon_core::ports::{Hashes, Password};
    use mio::{Poll, Waker};
    use std::collections::VecDeque;

    fn derivation() -> Derivation {
        let password = Password::new("secret").expect("it is short");
        Derivation { password, salt: b"salt".as_slice().into(), iterations: 4096, hashes: Hashes::Both }
    }

    #[test]
    fn every_ticket_is_answered_and_too_many_at_once() {
        let mut poll = Poll::new().expect("a poll");
        let inbox = Arc::new(Inbox::new(Waker::new(poll.registry(), special(255)).expect("a waker")));
        // Without a thread, what waits stays.
        let (sender, jobs) = sync_channel(2);
        let derivers = Derivers(sender);
        (0..5).for_each(|n| derivers.derive(Ticket(n), derivation(), Arc::clone(&inbox)));
        drop(derivers);
        let (mut mail, mut events) = (VecDeque::new(), mio::Events::with_capacity(8));
        inbox.take(&mut mail);
        let busy = |mail: &InboxItem| matches!(mail, InboxItem::Derived { derived: Derived::Busy, .. });
        assert_eq!((mail.len(), mail.iter().all(busy)), (3, true));
        mail.clear();
        assert!(inbox.sleep());
        run(&Mutex::new(jobs));
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
        assert_eq!(tickets, [0, 1]);
    }
}
