//! The questions that wait: bounded, taken in batches, in turns.
//!
//! They are taken in their order, except for what an account asks beyond its share: that waits in a lane of its own (`lanes`), and the lanes take
//! turns behind the others. So whoever asks much waits for itself, and nobody else waits for more than a share of it.

mod lanes;

use super::asked::{Asked, Carries};
use carillon_core::ports::{Answer, Fault};
use lanes::Lanes;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A queue keeps the memory for this many questions when it is empty; what a storm needed beyond is given back.
const KEPT_WHEN_EMPTY: usize = 1024;

/// So many questions are one thread's work: a snapshot begun and ended costs as much as several of them.
const FEW: usize = 32;

/// An account has at most this part of the queue.
const LANE_PART: usize = 4;

/// For so long those wait for others that may ([`Carries::is_patient`]).
const PATIENCE: Duration = Duration::from_millis(5);

/// The questions that wait for the threads of one kind.
pub(crate) struct Queue<A> {
    state: Mutex<QueueState<A>>,
    ready: Condvar,
    max: usize,
    bytes_max: usize,
}

struct QueueState<A> {
    waiting: Lanes<A>,
    /// Bytes that the waiting questions carry.
    bytes: usize,
    /// How many of the waiting ones may not wait for others ([`Carries::is_patient`]).
    urgent: usize,
    /// When the first of those that may came.
    patient_since: Option<Instant>,
    /// Threads that wait for questions.
    idle: usize,
    /// Of these, those that were called and have not come yet.
    called: usize,
    closed: bool,
}

/// What a thread gets that asks for work.
pub(crate) enum Taken<A> {
    /// At least one question, in the order they were asked.
    Batch(Vec<Asked<A>>),
    /// Nothing for as long as it was willing to wait.
    Idle,
    /// Nothing, and nothing will come.
    Closed,
}

impl<A: Carries> Queue<A> {
    /// A queue of at most `max` questions, which carry at most `bytes_max` if they are more than one.
    pub(crate) fn new(max: usize, bytes_max: usize) -> Queue<A> {
        let state = QueueState {
            waiting: Lanes::default(),
            bytes: 0,
            urgent: 0,
            patient_since: None,
            idle: 0,
            called: 0,
            closed: false,
        };
        Queue { state: Mutex::new(state), ready: Condvar::new(), max, bytes_max }
    }

    /// Adds a question; one there is no room for is answered at once.
    pub(crate) fn push(&self, question: Asked<A>) {
        self.push_all(std::iter::once(question));
    }

    /// Adds questions in their order; those there is no room for are answered at once.
    pub(crate) fn push_all(&self, questions: impl IntoIterator<Item = Asked<A>>) {
        let (mut refused, mut calls) = (Vec::new(), false);
        let mut state = self.lock();
        for question in questions {
            let (bytes, is_patient) = (question.bytes(), question.is_patient());
            let is_too_much = bytes > 0 && state.bytes + bytes > self.bytes_max && !state.waiting.is_empty();
            if state.closed {
                refused.push((question, Fault::Closed));
            } else if state.waiting.len() >= self.max || is_too_much {
                refused.push((question, Fault::Busy));
            } else if let Err(question) = state.waiting.push(question, self.max / LANE_PART) {
                refused.push((question, Fault::Busy));
            } else {
                state.bytes += bytes;
                calls |= state.entered(is_patient);
            }
        }
        if calls {
            self.call(state);
        } else {
            drop(state);
        }
        // The asker's code does not run under the lock.
        for (question, fault) in refused {
            question.respond.with(Answer::Failed(fault));
        }
    }

    /// Waits for questions, for `patience` at most where given, and takes the `share`-th part of them (rounded up), so
    /// that the other threads find some too; few are not shared; at most `max`.
    pub(crate) fn take(&self, share: usize, max: usize, patience: Option<Duration>) -> Taken<A> {
        let mut state = self.lock();
        while !state.is_due() {
            if state.closed {
                return Taken::Closed;
            }
            state.idle += 1;
            let mut timed_out = false;
            state = match state.wait(patience) {
                None => self.ready.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(patience) => {
                    let waited = self.ready.wait_timeout(state, patience);
                    let (state, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
                    timed_out = timeout.timed_out();
                    state
                }
            };
            state.idle -= 1;
            // Who comes uncalled answers a call all the same; the one that was meant finds nothing, and waits again.
            state.called = state.called.saturating_sub(1);
            if timed_out && state.waiting.is_empty() && !state.closed {
                return Taken::Idle;
            }
        }
        let count = state.waiting.len().div_ceil(share).max(FEW).min(max);
        let batch = state.waiting.take(count);
        state.left(&batch);
        if state.waiting.is_empty() {
            state.waiting.shrink_to(KEPT_WHEN_EMPTY);
        } else {
            self.call(state);
        }
        Taken::Batch(batch)
    }

    /// What an account asked came to so many units of work more than it had counted as, which was not known before: what it asks next waits for others until
    /// that is made up for.
    pub(crate) fn charge(&self, account: u64, units: usize) {
        // An account has so much among the others anyway.
        if units > lanes::SHARE {
            self.lock().waiting.charge(account, units);
        }
    }

    /// Lets questions gather for so long, unless the queue is closed. For a thread that is the only one of its queue; it is not called
    /// meanwhile, which spares the askers a system call each.
    pub(crate) fn gather(&self, time: Duration) {
        if !time.is_zero() {
            drop(self.ready.wait_timeout_while(self.lock(), time, |state| !state.closed));
        }
    }

    /// Calls a thread, if one waits and those that were called have enough to do. A call is a system call for who makes
    /// it and a change of threads for who comes.
    fn call(&self, mut state: MutexGuard<'_, QueueState<A>>) {
        let enough = state.called > 0 && state.waiting.len() <= state.called * FEW;
        if state.called < state.idle && !enough {
            state.called += 1;
            drop(state);
            self.ready.notify_one();
        }
    }

    /// Takes no more questions. Those that wait are still handed out.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.ready.notify_all();
    }

    /// Number of questions that wait.
    pub(crate) fn len(&self) -> usize {
        self.lock().waiting.len()
    }

    /// Number of questions that wait, and the bytes that they carry.
    #[cfg(feature = "postgres")]
    pub(crate) fn load(&self) -> (usize, usize) {
        let state = self.lock();
        (state.waiting.len(), state.bytes)
    }

    // No code that can panic runs under the lock, so a poisoned one is whole.
    fn lock(&self) -> MutexGuard<'_, QueueState<A>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<A> QueueState<A> {
    /// A question has entered. Whether a thread is to know: one that waits for the others of a patient one knows.
    fn entered(&mut self, is_patient: bool) -> bool {
        if !is_patient {
            self.urgent += 1;
            return true;
        }
        let is_first = self.patient_since.is_none();
        self.patient_since.get_or_insert_with(Instant::now);
        is_first
    }

    /// These have left it.
    fn left(&mut self, batch: &[Asked<A>]) {
        self.bytes -= batch.iter().map(Asked::bytes).sum::<usize>();
        self.urgent -= batch.iter().filter(|asked| !asked.is_patient()).count();
        if self.waiting.is_empty() {
            self.patient_since = None;
        }
    }

    /// Whether there are questions to take now.
    fn is_due(&self) -> bool {
        let is_over = |since: Instant| since.elapsed() >= PATIENCE;
        !self.waiting.is_empty() && (self.urgent > 0 || self.closed || self.patient_since.is_none_or(is_over))
    }

    /// How long a thread waits for them that is willing to wait so long.
    fn wait(&self, patience: Option<Duration>) -> Option<Duration> {
        self.patient_since.map_or(patience, |since| Some(PATIENCE.saturating_sub(since.elapsed())))
    }
}

/// Closes the queue of a thread that panicked, and answers what waits in it: nothing of that was begun.
pub(crate) struct Abandon<'a, A: Carries>(pub(crate) &'a Queue<A>);

impl<A: Carries> Drop for Abandon<'_, A> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.close();
            while let Taken::Batch(batch) = self.0.take(1, usize::MAX, None) {
                batch.into_iter().for_each(|asked| asked.respond.with(Answer::Failed(Fault::Broken)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::asked::Respond;
    use crate::engine::asked::Write;
    use carillon_core::model::DomainId;
    use carillon_core::ports::Ask;
    use carillon_core::ports::store::{ReadAsk, domains, notifications};
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn question() -> Asked<ReadAsk> {
        let ask = ReadAsk::Domains(domains::ReadAsk::Domains(domains::Domains));
        Asked::new(ask, Respond::to_read(Box::new(|_| ())))
    }

    #[test]
    fn nothing_waits_while_a_thread_does() {
        const ASKED: usize = 20_000;
        let (queue, taken) = (Queue::new(ASKED, 1 << 20), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    // It would not end if a question were left without a thread that was called.
                    while let Taken::Batch(batch) = queue.take(3, 64, None) {
                        if taken.fetch_add(batch.len(), Ordering::SeqCst) + batch.len() == ASKED {
                            queue.close();
                        }
                    }
                });
            }
            (0..2).for_each(|_| drop(scope.spawn(|| (0..ASKED / 2).for_each(|_| queue.push(question())))));
        });
        assert_eq!((taken.into_inner(), queue.len()), (ASKED, 0));
    }

    fn write(ask: impl Into<Ask>) -> Write {
        let Ask::Write(ask) = ask.into() else { panic!("it is a write") };
        ask.into()
    }

    fn urgent() -> Write {
        write(domains::DeleteDomain {
            domain: DomainId(1),
            now: carillon_core::model::UnixMs(0),
            rows_max: 1,
        })
    }

    /// A write that may wait for others.
    fn patient() -> Write {
        write(notifications::EndNotifications { changes: Vec::new() })
    }

    fn asked(write: Write) -> Asked<Write> {
        Asked::new(write, Respond::to_write(Box::new(|_| ())))
    }

    fn taken(queue: &Queue<Write>) -> usize {
        match queue.take(1, 100, None) {
            Taken::Batch(batch) => batch.len(),
            Taken::Idle | Taken::Closed => 0,
        }
    }

    #[test]
    fn what_may_wait_is_taken_with_the_next_or_after_a_while() {
        let queue = Queue::new(10, 1 << 20);
        for pushed in 0..3 {
            // It is due at once when one comes that may not wait, and when there will be no other.
            let began = Instant::now();
            queue.push(asked(patient()));
            assert!(!queue.lock().is_due() || began.elapsed() >= PATIENCE);
            match pushed {
                0 => queue.push(asked(urgent())),
                1 => {}
                _ => queue.close(),
            }
            assert!(queue.lock().is_due() == (pushed != 1) || began.elapsed() >= PATIENCE);
            assert_eq!(taken(&queue), if pushed == 0 { 2 } else { 1 });
            assert!(pushed != 1 || began.elapsed() >= PATIENCE);
            assert_eq!((queue.len(), queue.lock().urgent), (0, 0));
        }
    }

    #[test]
    fn a_thread_that_waits_is_told_of_what_may_wait() {
        let queue = Queue::new(10, 1 << 20);
        std::thread::scope(|scope| {
            // It would not end if it were told of nothing.
            let waiting = scope.spawn(|| taken(&queue));
            while queue.lock().idle == 0 {
                std::thread::yield_now();
            }
            queue.push(asked(patient()));
            assert_eq!(waiting.join().ok(), Some(1));
        });
    }

    #[test]
    fn what_waits_for_a_thread_that_panicked_is_answered() {
        let queue = Queue::new(10, 1 << 20);
        let (sender, receiver) = std::sync::mpsc::channel();
        let answered = || {
            let sender = sender.clone();
            Asked::new(urgent(), Respond::to_write(Box::new(move |answer| drop(sender.send(answer)))))
        };
        (0..3).for_each(|_| queue.push(answered()));
        let panicked = std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let _abandoned = Abandon(&queue);
                let _taken = queue.take(1, 1, None);
                panic!("this one is meant to");
            });
            thread.join().is_err()
        });
        assert!(panicked);
        queue.push(answered());
        let faults: Vec<_> = receiver.try_iter().collect();
        let fault = |at: usize| if let Answer::Failed(fault) = faults[at] { Some(fault) } else { None };
        // The one that it had taken may have been done.
        assert_eq!(fault(0), Some(Fault::Unknown));
        assert_eq!([1, 2, 3].map(fault), [Some(Fault::Broken), Some(Fault::Broken), Some(Fault::Closed)]);
    }

    #[test]
    fn few_questions_call_one_thread() {
        let queue = Queue::new(1000, 1 << 20);
        std::thread::scope(|scope| {
            (0..2).for_each(|_| drop(scope.spawn(|| queue.take(2, 64, None))));
            while queue.lock().idle < 2 {
                std::thread::yield_now();
            }
            {
                // Nobody comes while the lock is held: the calls add up.
                let mut state = queue.lock();
                for _ in 0..FEW {
                    assert!(state.waiting.push(question(), FEW).is_ok());
                    state.entered(false);
                }
                state.called = 1;
                queue.call(state);
            }
            assert!(queue.lock().called <= 1);
            (0..FEW).for_each(|_| queue.push(question()));
            queue.close();
        });
    }

    #[test]
    fn who_lets_questions_gather_goes_on_when_the_queue_closes() {
        let queue = Queue::<Write>::new(10, 100);
        std::thread::scope(|scope| {
            let gathering = scope.spawn(|| queue.gather(Duration::MAX));
            queue.close();
            gathering.join().expect("it went on");
        });
    }
}
