//! Taking messages from a queue: as many as there is room for, while the store keeps up.

use super::perform::{Done, is_behind, perform};
use super::sender::NoSender;
use super::{Figures, Intake, QueueState};
use crate::app::App;
use carillon_core::model::ApiKey;
use carillon_core::ports::queue::Pending;
use carillon_core::ports::{Pulled, QueueFault, Receipt, Verdict};
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};

/// The first pause after the store or the queue failed, and the longest: each is twice the one before.
const PAUSE: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// How long a message is put back that could not be done: by how often it was delivered, up to the longest.
const BACK: Duration = Duration::from_secs(1);
const BACK_MAX: Duration = Duration::from_secs(60);
/// How often it is looked whether the node is ready, and how often the queue counts its messages.
const LOOK: Duration = Duration::from_millis(500);
const COUNT: Duration = Duration::from_secs(10);
/// How long what was asked for is waited for when the node ends, to be given back.
const GIVE_BACK: Duration = Duration::from_secs(1);
/// Messages that are asked for at once, at most.
const PULL_MAX: usize = 256;

/// Takes the messages of the `n`th queue until the app closes.
pub(super) async fn run(app: App, n: usize) {
    let intake = &app.intakes()[n];
    let mut closing = app.closing.subscribe();
    let puller = Puller { app: &app, intake, under_way: Mutex::default() };
    let counting = puller.count();
    tokio::select! {
        () = counting => {}
        () = puller.pull_until(async move { drop(closing.wait_for(|closing| *closing).await) }) => {}
    }
}

/// What takes the messages of a queue.
struct Puller<'a> {
    app: &'a App,
    intake: &'a Intake,
    under_way: Mutex<BTreeMap<Receipt, Taken>>,
}

/// A delivery under way.
struct Taken {
    bytes: usize,
    /// When its time began.
    since: Instant,
}

/// Whether messages are asked for.
enum Gate {
    /// So many, as this sender.
    Open(usize, Box<ApiKey>),
    /// Not before then.
    Shut(Instant),
    /// There is no room.
    Full,
}

/// What a piece of work says of the store when it is done.
type Behind = Option<Box<str>>;

impl Puller<'_> {
    /// Pulls until `end`, and ends when what is under way is done.
    async fn pull_until(&self, end: impl Future<Output = ()>) {
        let mut end = std::pin::pin!(end);
        // When the end came.
        let mut ended: Option<Instant> = None;
        let mut pause = Pause::default();
        let mut pulling: Option<(Pending<Vec<Pulled>>, Box<ApiKey>)> = None;
        let mut working: FuturesUnordered<BoxFuture<'_, Behind>> = FuturesUnordered::new();
        let mut look = interval((self.intake.options.queue.settle_within() / 4).max(LOOK));
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !(ended.is_some() && working.is_empty() && pulling.is_none()) {
            let mut again = Instant::now() + LOOK;
            if ended.is_none() && pulling.is_none() {
                match self.gate(&mut pause).await {
                    Gate::Open(max, sender) => {
                        let bytes = self.bytes_left();
                        pulling = Some((self.intake.options.queue.pull(max, bytes), sender));
                    }
                    Gate::Shut(until) => again = until,
                    Gate::Full => {}
                }
            }
            tokio::select! {
                Some(behind) = working.next(), if !working.is_empty() => pause.worked(self.intake, behind),
                (pulled, sender) = next(&mut pulling) => match pulled {
                    Ok(pulled) if ended.is_some() => pulled.iter().for_each(|one| working.push(Box::pin(self.give_back(one.receipt)))),
                    Ok(pulled) => self.take(pulled, &sender, &working),
                    Err(fault) => pause.failed(self.intake, fault),
                },
                _ = look.tick() => self.extend().await,
                () = sleep_until(again), if pulling.is_none() && ended.is_none() => {}
                // What comes later is delivered again when its time is over.
                () = given_up(ended), if pulling.is_some() => pulling = None,
                () = &mut end, if ended.is_none() => {
                    ended = Some(Instant::now());
                    self.intake.count().state = QueueState::Resting;
                }
            }
        }
        // What the queue is not told is delivered again, and known then.
        drop(timeout(PAUSE_MAX, self.intake.options.queue.flush()).await);
    }

    /// Whether messages may be asked for now.
    async fn gate(&self, pause: &mut Pause) -> Gate {
        let (now, node) = (Instant::now(), &self.app.node);
        if pause.until > now {
            return Gate::Shut(pause.until);
        }
        if !node.is_ready()
            || node.drain_progress().is_some()
            || node.cell().is_some_and(|cell| cell.fence.is_some())
        {
            self.intake.count().state = QueueState::Resting;
            return Gate::Shut(now + LOOK);
        }
        let sender = match self.intake.sender.find(self.app, &self.intake.options.sender).await {
            Ok(sender) => Box::new(sender),
            Err(NoSender::Unread(why)) => return Gate::Shut(pause.behind(self.intake, why.into())),
            Err(NoSender::Wrong(why)) => {
                pause.failed(self.intake, QueueFault::Wrong(why.into()));
                return Gate::Shut(pause.until);
            }
        };
        let left = self.intake.options.messages_max.saturating_sub(self.under_way().len());
        if left == 0 || self.bytes_left() == 0 {
            return Gate::Full;
        }
        // After a failure one message tries how it is.
        let max = if pause.length.is_zero() { left.min(PULL_MAX) } else { 1 };
        Gate::Open(max, sender)
    }

    fn bytes_left(&self) -> usize {
        let taken: usize = self.under_way().values().map(|taken| taken.bytes).sum();
        self.intake.options.bytes_max.saturating_sub(taken)
    }

    /// Begins work on messages: those of one group one after the other, all others at once.
    fn take<'a>(
        &'a self,
        pulled: Vec<Pulled>,
        sender: &ApiKey,
        working: &FuturesUnordered<BoxFuture<'a, Behind>>,
    ) {
        let mut groups: BTreeMap<Box<str>, Vec<Pulled>> = BTreeMap::new();
        let mut figures = self.intake.count();
        if figures.state != QueueState::Pulling && !matches!(figures.state, QueueState::Behind(_)) {
            tracing::info!(queue = &*self.intake.options.name, "messages are taken from the queue");
            figures.state = QueueState::Pulling;
        }
        for message in pulled {
            figures.received += 1;
            figures.redelivered += u64::from(message.attempt > 1);
            let taken = Taken { bytes: message.bytes(), since: Instant::now() };
            self.under_way().insert(message.receipt, taken);
            match message.group.clone() {
                Some(group) => groups.entry(group).or_default().push(message),
                None => working.push(Box::pin(self.work(vec![message], sender.clone()))),
            }
        }
        self.note_under_way(&mut figures);
        drop(figures);
        for messages in groups.into_values() {
            working.push(Box::pin(self.work(messages, sender.clone())));
        }
    }

    /// Does messages one after the other. Behind one that is put back the others are put back, too, so that their order stays.
    async fn work(&self, messages: Vec<Pulled>, sender: ApiKey) -> Behind {
        let mut back: Option<(Duration, Box<str>)> = None;
        let mut behind = None;
        for message in messages {
            let verdict = match &back {
                Some((after, code)) => {
                    Figures::of_reason(&mut self.intake.count().put_back, code);
                    Verdict::Later(*after)
                }
                None => {
                    let done = perform(self.app, self.intake, &sender, &message).await;
                    if let Done::Later(problem) = &done {
                        behind = is_behind(problem).then(|| problem.detail().into());
                        back = Some((put_back_for(message.attempt), problem.code().as_str().into()));
                    }
                    self.verdict(&message, done)
                }
            };
            self.settle(&message, verdict).await;
        }
        behind
    }

    /// Counts what became of a message, and says what its queue is told.
    fn verdict(&self, message: &Pulled, done: Done) -> Verdict {
        let mut figures = self.intake.count();
        match done {
            Done::Accepted { known } => {
                figures.accepted += 1;
                figures.repeated += u64::from(known);
                Verdict::Done
            }
            Done::Later(problem) => {
                Figures::of_reason(&mut figures.put_back, problem.code().as_str());
                Verdict::Later(put_back_for(message.attempt))
            }
            Done::Dead(reason) => {
                let count = Figures::of_reason(&mut figures.dead, &reason.code);
                drop(figures);
                // Of many of a kind the log has a few.
                if count.is_power_of_two() {
                    let (queue, id) = (&*self.intake.options.name, &*message.id);
                    let (code, detail) = (&*reason.code, &*reason.detail);
                    tracing::warn!(queue, id, code, detail, count, "a message becomes a dead letter");
                }
                Verdict::Dead(reason)
            }
        }
    }

    /// Has a message that came too late delivered to another node at once.
    async fn give_back(&self, receipt: Receipt) -> Behind {
        // What the queue is not told is delivered again when its time is over.
        drop(self.intake.options.queue.settle(receipt, Verdict::Later(Duration::ZERO)).await);
        None
    }

    async fn settle(&self, message: &Pulled, verdict: Verdict) {
        let told = self.intake.options.queue.settle(message.receipt, verdict).await;
        self.under_way().remove(&message.receipt);
        let mut figures = self.intake.count();
        if let Err(fault) = told {
            // It is delivered again, and known then.
            figures.unsettled += 1;
            let queue = &*self.intake.options.name;
            tracing::debug!(queue, %fault, "the queue was not told what became of a message");
        }
        self.note_under_way(&mut figures);
    }

    /// Begins the time of deliveries anew of which half has passed.
    async fn extend(&self) {
        let (now, queue) = (Instant::now(), &self.intake.options.queue);
        let half = queue.settle_within() / 2;
        let mut due = Vec::new();
        for (receipt, taken) in self.under_way().iter_mut().filter(|(_, taken)| now - taken.since >= half) {
            due.push(*receipt);
            taken.since = now;
        }
        if !due.is_empty()
            && let Ok(Err(fault)) = timeout(half, queue.extend(due)).await
        {
            tracing::debug!(queue = &*self.intake.options.name, %fault, "deliveries were not extended");
        }
    }

    /// Has the queue count its messages now and then.
    async fn count(&self) {
        let mut ticks = interval(COUNT);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            // A queue that is away says so when it is pulled from.
            if let Ok(Ok(depth)) = timeout(COUNT, self.intake.options.queue.depth()).await {
                self.intake.count().depth = Some((depth, std::time::Instant::now()));
            }
        }
    }

    fn note_under_way(&self, figures: &mut Figures) {
        let under_way = self.under_way();
        figures.in_flight = under_way.len() as u64;
        figures.in_flight_bytes = under_way.values().map(|taken| taken.bytes as u64).sum();
    }

    fn under_way(&self) -> MutexGuard<'_, BTreeMap<Receipt, Taken>> {
        // Nothing that can panic is done under the lock.
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Until what was asked for before the end is given up. For ever, before the end.
async fn given_up(ended: Option<Instant>) {
    match ended {
        Some(at) => sleep_until(at + GIVE_BACK).await,
        None => std::future::pending().await,
    }
}

/// The messages that were asked for. For ever, if none were.
async fn next(
    pulling: &mut Option<(Pending<Vec<Pulled>>, Box<ApiKey>)>,
) -> (Result<Vec<Pulled>, QueueFault>, Box<ApiKey>) {
    match pulling {
        Some((pull, sender)) => {
            let pulled = pull.await;
            let sender = sender.clone();
            *pulling = None;
            (pulled, sender)
        }
        None => std::future::pending().await,
    }
}

fn put_back_for(attempt: u64) -> Duration {
    BACK.saturating_mul(2u32.saturating_pow(attempt.saturating_sub(1).min(6) as u32)).min(BACK_MAX)
}

/// How long nothing is pulled after a failure.
struct Pause {
    length: Duration,
    until: Instant,
}

impl Default for Pause {
    fn default() -> Pause {
        Pause { length: Duration::ZERO, until: Instant::now() }
    }
}

impl Pause {
    /// Work is done; `behind` says why the store could not do it, if so.
    fn worked(&mut self, intake: &Intake, behind: Behind) {
        match behind {
            Some(why) => drop(self.behind(intake, why)),
            None => {
                self.length = Duration::ZERO;
                let mut figures = intake.count();
                if matches!(figures.state, QueueState::Behind(_)) {
                    tracing::info!(
                        queue = &*intake.options.name,
                        "the store has caught up: messages are taken again"
                    );
                    figures.state = QueueState::Pulling;
                }
            }
        }
    }

    /// The store is behind. Until when nothing is pulled.
    fn behind(&mut self, intake: &Intake, why: Box<str>) -> Instant {
        self.longer();
        let mut figures = intake.count();
        if !matches!(figures.state, QueueState::Behind(_)) {
            tracing::warn!(
                queue = &*intake.options.name,
                why = &*why,
                "the store is behind: no messages are taken"
            );
        }
        figures.state = QueueState::Behind(why);
        self.until
    }

    /// The queue failed.
    fn failed(&mut self, intake: &Intake, fault: QueueFault) {
        self.longer();
        let mut figures = intake.count();
        figures.faults += 1;
        let state = match fault {
            QueueFault::Away(why) => QueueState::Away(why),
            QueueFault::Wrong(why) => QueueState::Wrong(why),
        };
        if figures.state != state {
            let (queue, state, why) = (&*intake.options.name, state.word(), state.why());
            tracing::warn!(queue, state, why, "no messages are taken from the queue");
        }
        figures.state = state;
    }

    /// Twice as long as before. What fails while the pause lasts is of before it.
    fn longer(&mut self) {
        let now = Instant::now();
        if self.until > now {
            return;
        }
        self.length = (self.length * 2).clamp(PAUSE, PAUSE_MAX);
        self.until = now + self.length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_put_back_for_longer_each_time() {
        let seconds = [1, 2, 3, 7, 8, 1000].map(|attempt| put_back_for(attempt).as_secs());
        assert_eq!(seconds, [1, 2, 4, 60, 60, 60]);
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_once_per_failure_of_many() {
        let mut pause = Pause::default();
        let mut lengths = Vec::new();
        for _ in 0..8 {
            for _ in 0..100 {
                pause.longer();
            }
            lengths.push(pause.length.as_millis());
            tokio::time::advance(pause.length).await;
        }
        assert_eq!(lengths, [250, 500, 1000, 2000, 4000, 8000, 10_000, 10_000]);
    }
}
