//! The lines of a batch that are on their way through the node: asked in order, answered in any order, given out in
//! order. A place in a ring and a closure is all that a line costs.

use super::submit::{SendResult, Target, rehearsed, sent, unknown_device};
use crate::problem::Problem;
use carillon_core::command::Outcome;
use carillon_core::model::Notification;
use carillon_core::ports::Fault;
use carillon_core::ports::store::accounts::Enrolment;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use tokio::time::Instant;

/// What a line asks for.
#[derive(Clone)]
pub(super) enum Order {
    /// To send a notification.
    Send(Arc<Notification>),
    /// To say whether the target is there.
    Rehearse(Target),
}

/// What the node says to a line's order.
pub(super) enum Said {
    /// By the home of the target.
    Outcome(Outcome),
    /// By the cell of the target.
    Sent(SendResult),
    /// By the store, of the target.
    Found(Result<Option<Box<Enrolment>>, Fault>),
    /// Before anybody was asked, or because nobody answered.
    Problem(Problem),
}

/// Lines on their way.
pub(super) struct Window {
    shared: Arc<Shared>,
    max: usize,
    bytes_max: usize,
}

/// A line's place, for whoever answers it. Dropped without an answer, it says that the node is going away.
pub(super) struct Place {
    shared: Arc<Shared>,
    number: u64,
    answered: bool,
}

struct Shared(Mutex<WindowState>);

#[derive(Default)]
struct WindowState {
    /// The number of the first place.
    first: u64,
    lines: VecDeque<PendingLine>,
    /// Bytes that the lines in progress hold.
    bytes: usize,
    /// Whether a line was turned away because too much waits.
    refused: bool,
    waiter: Option<Waker>,
}

struct PendingLine {
    /// The line's number in the batch.
    line: u64,
    /// Bytes that it holds.
    bytes: usize,
    since: Instant,
    order: Option<Order>,
    tries: u32,
    said: Option<Said>,
}

impl Window {
    /// A window for `max` lines, which hold `bytes_max` and the last of them at most.
    pub(super) fn new(max: usize, bytes_max: usize) -> Window {
        Window { shared: Arc::new(Shared(Mutex::default())), max, bytes_max }
    }

    /// Whether one more line may be asked.
    pub(super) fn has_room(&self) -> bool {
        let state = self.state();
        state.lines.len() < self.max && state.bytes < self.bytes_max
    }

    /// Whether no line is on its way.
    pub(super) fn is_empty(&self) -> bool {
        self.state().lines.is_empty()
    }

    /// Takes a line of so many bytes in; its place.
    pub(super) fn add(&self, line: u64, order: Order, bytes: usize) -> Place {
        self.put(PendingLine { line, bytes, since: Instant::now(), order: Some(order), tries: 0, said: None })
    }

    /// Takes in a line that nobody need be asked about.
    pub(super) fn add_refused(&self, line: u64, problem: Problem) {
        let said = Some(Said::Problem(problem));
        self.put(PendingLine { line, bytes: 0, since: Instant::now(), order: None, tries: 0, said });
    }

    fn put(&self, waiting: PendingLine) -> Place {
        let mut state = self.state();
        let number = state.first + state.lines.len() as u64;
        state.bytes += waiting.bytes;
        state.lines.push_back(waiting);
        drop(state);
        self.place(number)
    }

    fn place(&self, number: u64) -> Place {
        Place { shared: Arc::clone(&self.shared), number, answered: false }
    }

    /// What became of the next line that is done, if it is the turn of one.
    pub(super) fn next(&self) -> Option<(u64, Result<SendResult, Problem>)> {
        let mut state = self.state();
        state.lines.front().filter(|line| line.is_done())?;
        let PendingLine { line, bytes, order, said, .. } = state.lines.pop_front()?;
        state.first += 1;
        state.bytes -= bytes;
        drop(state);
        Some((line, result(order, said?)))
    }

    /// Whether lines are to be asked again after a pause.
    pub(super) fn has_refused(&self) -> bool {
        self.state().refused
    }

    /// The lines to be asked again, with their places, in their order.
    pub(super) fn ask_again(&self) -> Vec<(Place, Order)> {
        let mut state = self.state();
        state.refused = false;
        let first = state.first;
        let mut again = Vec::new();
        for (i, line) in state.lines.iter_mut().enumerate() {
            if line.is_refused()
                && let Some(order) = &line.order
            {
                (line.tries, line.since, line.said) = (line.tries + 1, Instant::now(), None);
                again.push((self.place(first + i as u64), order.clone()));
            }
        }
        again
    }

    /// Until the next line is done, or one was turned away.
    pub(super) async fn moved(&self) {
        poll_fn(|context| {
            let mut state = self.state();
            if state.refused || state.lines.front().is_some_and(PendingLine::is_done) {
                return Poll::Ready(());
            }
            state.waiter = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Since when the first line waits.
    pub(super) fn waits_since(&self) -> Option<Instant> {
        self.state().lines.front().map(|line| line.since)
    }

    /// Nobody answered the first line in time.
    pub(super) fn give_up_first(&self) {
        if let Some(line) = self.state().lines.front_mut() {
            let problem = Problem::timed_out();
            line.said.get_or_insert(Said::Problem(problem));
        }
    }

    fn state(&self) -> MutexGuard<'_, WindowState> {
        self.shared.lock()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, WindowState> {
        // Nothing that can panic is done under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Takes what the node says. Wakes the batch only when it is the turn of this line, so that a burst of answers
    /// wakes it once.
    pub(super) fn answer(mut self, said: Said) {
        self.answered = true;
        self.take(said);
    }

    fn take(&self, said: Said) {
        let mut state = self.shared.lock();
        // What was given up may still be answered.
        let Some(at) = self.number.checked_sub(state.first) else { return };
        let Some(line) = state.lines.get_mut(at as usize).filter(|line| line.said.is_none()) else { return };
        line.said = Some(said);
        let refused = line.is_refused();
        state.refused |= refused;
        let waker = if at == 0 || refused { state.waiter.take() } else { None };
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.answered {
            self.take(Said::Problem(Problem::busy()));
        }
    }
}

impl PendingLine {
    /// Whether it is to be asked again.
    fn is_refused(&self) -> bool {
        self.tries < TRIES && self.said.as_ref().is_some_and(Said::is_too_busy)
    }

    fn is_done(&self) -> bool {
        self.said.is_some() && !self.is_refused()
    }
}

impl Said {
    /// Whether the same order may be taken a little later. One of which it is unknown whether it was taken is settled by that.
    fn is_too_busy(&self) -> bool {
        match self {
            Said::Outcome(outcome) => matches!(outcome, Outcome::Unavailable | Outcome::Unknown),
            Said::Found(found) => matches!(found, Err(Fault::Busy)),
            Said::Sent(_) | Said::Problem(_) => false,
        }
    }
}

fn result(order: Option<Order>, said: Said) -> Result<SendResult, Problem> {
    match (order, said) {
        (_, Said::Problem(problem)) => Err(problem),
        (_, Said::Sent(result)) => Ok(result),
        (_, Said::Outcome(Outcome::Notified(trace))) => sent(&trace),
        (_, Said::Outcome(Outcome::Unavailable)) => Err(Problem::busy()),
        (_, Said::Outcome(Outcome::Unknown)) => Err(Problem::unknown()),
        (Some(Order::Send(notification)), Said::Outcome(Outcome::Missing)) => {
            Err(unknown_device(&notification.to))
        }
        (_, Said::Outcome(other)) => Err(Problem::unexpected(&other)),
        (Some(Order::Rehearse(target)), Said::Found(found)) => rehearsed(&target, found?.as_deref()),
        (_, Said::Found(other)) => Err(Problem::unexpected(&other)),
    }
}

/// How often a line is asked again that was turned away because too much waits.
const TRIES: u32 = 50;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Code;
    use futures_util::FutureExt;

    fn problem(text: &str) -> Said {
        Said::Problem(Problem::new(Code::InvalidValue, text))
    }

    fn order() -> Order {
        let jid = carillon_wire::jid::BareJid::new("a@localhost").unwrap();
        Order::Rehearse(Target { jid, domain: carillon_core::model::DomainId(1) })
    }

    fn details(window: &Window) -> Vec<(u64, String)> {
        std::iter::from_fn(|| window.next())
            .map(|(line, result)| (line, result.unwrap_err().detail().to_owned()))
            .collect()
    }

    #[test]
    fn answers_come_out_in_the_order_of_the_lines() {
        let window = Window::new(3, 1000);
        let [first, second, third] = [1, 2, 3].map(|line| window.add(line, order(), 1));
        assert!(!window.has_room());
        third.answer(problem("third"));
        second.answer(problem("second"));
        assert!(window.moved().now_or_never().is_none(), "the first is still on its way");
        assert_eq!(details(&window), []);
        first.answer(problem("first"));
        assert!(window.moved().now_or_never().is_some());
        let all = [(1, "first".to_owned()), (2, "second".to_owned()), (3, "third".to_owned())];
        assert_eq!(details(&window), all);
        assert!(window.is_empty());
    }

    #[test]
    fn a_line_that_was_turned_away_is_asked_again_until_it_has_been_often_enough() {
        let window = Window::new(2, 1000);
        let mut place = window.add(1, order(), 1);
        for _ in 0..TRIES {
            place.answer(Said::Outcome(Outcome::Unavailable));
            assert!(window.has_refused());
            let mut again = window.ask_again();
            place = again.pop().unwrap().0;
            assert!(again.is_empty() && !window.has_refused());
        }
        place.answer(Said::Outcome(Outcome::Unavailable));
        assert!(!window.has_refused());
        assert_eq!(window.next().unwrap().1.unwrap_err().code(), Code::Unavailable);
    }

    #[test]
    fn nobody_waits_for_ever() {
        let window = Window::new(2, 1000);
        let place = window.add(7, order(), 1);
        assert!(window.waits_since().is_some());
        window.give_up_first();
        place.answer(problem("late"));
        let (line, result) = window.next().unwrap();
        assert_eq!((line, result.unwrap_err().code()), (7, Code::TimedOut));
        let last = window.add(8, order(), 1000);
        assert!(!window.has_room(), "it holds too much for another");
        drop(last);
        assert_eq!(
            window.next().unwrap().1.unwrap_err().code(),
            Code::Unavailable,
            "nobody is left to answer"
        );
    }
}
