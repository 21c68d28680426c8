//! The newest events of the store, read once for all streams.

use crate::app::App;
use carillon_core::command::StateChange;
use carillon_core::model::{Event, EventFilter, States};
use carillon_core::ports::store::notifications::{Events, EventsAnswer};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// The newest events. They are read while somebody follows them; as many are kept as a stream may be behind before it asks the store
/// itself.
pub(crate) struct Tail {
    recent: Mutex<Recent>,
    /// The number up to which events were read.
    read: watch::Sender<u64>,
    /// Something has ended: there is more to read.
    hint: Arc<Notify>,
    kept_max: usize,
}

/// Events that were read lately.
struct Recent {
    is_read_on: bool,
    /// All events after this number that were read are here.
    after: u64,
    events: VecDeque<Numbered>,
    /// What they take up, in bytes.
    bytes: usize,
}

impl Default for Recent {
    fn default() -> Recent {
        // None is here until it is known from where on they are read.
        Recent { is_read_on: false, after: u64::MAX, events: VecDeque::new(), bytes: 0 }
    }
}

/// An event: its number, and what it tells.
pub(crate) type Numbered = (u64, Arc<Event>);

impl Tail {
    /// Keeps as many events as this, and reads on when it is told of more.
    pub(crate) fn new(kept_max: usize, hint: Arc<Notify>) -> Tail {
        let (recent, read) = (Mutex::default(), watch::Sender::new(0));
        Tail { recent, read, hint, kept_max }
    }

    /// Follows the newest events: the number up to which they were read.
    pub(crate) fn follow(app: &App) -> watch::Receiver<u64> {
        let tail = app.tail();
        // Those who follow already have a sink, which the node keeps as long as there is somebody.
        if tail.read.receiver_count() == 0 {
            let weak = Arc::downgrade(tail);
            let sink = move |_: &StateChange| weak.upgrade().is_some_and(|tail| tail.hear());
            app.node.watch(None, States::ENDS, Box::new(sink));
            let weak = Arc::downgrade(tail);
            app.node.watch_events(Box::new(move || weak.upgrade().is_some_and(|tail| tail.hear())));
        }
        let follower = tail.read.subscribe();
        if !std::mem::replace(&mut tail.recent().is_read_on, true) {
            tokio::spawn(read_on(app.clone()));
        }
        follower
    }

    /// The events after this number, `max` at most, as far as they were read; none when the store has to be asked.
    pub(crate) fn after(&self, number: u64, max: usize) -> Option<Vec<Numbered>> {
        let recent = self.recent();
        if number < recent.after {
            return None;
        }
        let first = recent.events.partition_point(|(of, _)| *of <= number);
        Some(recent.events.iter().skip(first).take(max).cloned().collect())
    }

    /// The node says that something has ended; whether anybody wants to know.
    fn hear(&self) -> bool {
        self.hint.notify_one();
        self.read.receiver_count() > 0
    }

    /// Takes what the store has after this number.
    fn add(&self, after: u64, answer: EventsAnswer) {
        let mut recent = self.recent();
        if let Some(next) = answer.next_after_gap(after) {
            // Who has not seen what is before the gap must hear of it from the store.
            *recent = Recent { after: next - 1, events: VecDeque::new(), bytes: 0, ..*recent };
        }
        for (number, event) in answer.events {
            recent.bytes += event.bytes();
            recent.events.push_back((number, Arc::new(event)));
        }
        while (recent.events.len() > self.kept_max || recent.bytes > KEPT_BYTES_MAX)
            && let Some((number, event)) = recent.events.pop_front()
        {
            recent.after = number;
            recent.bytes -= event.bytes();
        }
    }

    /// Ends reading if nobody follows.
    fn is_over(&self) -> bool {
        let mut recent = self.recent();
        let is_over = self.read.receiver_count() == 0;
        if is_over {
            *recent = Recent::default();
        }
        is_over
    }

    fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads what comes, until nobody follows.
async fn read_on(app: App) {
    let (mut read, mut next) = (None, Instant::now());
    while !app.tail().is_over() {
        // What another node ended is not heard of here.
        let _ = tokio::time::timeout(LOOK, async {
            if read.is_some() {
                app.tail().hint.notified().await;
            }
        })
        .await;
        // What ends meanwhile is read with it.
        tokio::time::sleep_until(next).await;
        next = Instant::now() + READ_EVERY;
        read = match read {
            None => begin(&app).await,
            Some(from) => Some(read_from(&app, from).await),
        };
        match read {
            Some(read) => drop(app.tail().read.send_replace(read)),
            None => tokio::time::sleep(LOOK).await,
        }
    }
}

/// The number from which on events are read.
async fn begin(app: &App) -> Option<u64> {
    let newest = newest(app).await?;
    app.tail().recent().after = newest;
    Some(newest)
}

/// The number of the newest event; none when the store does not say.
pub(crate) async fn newest(app: &App) -> Option<u64> {
    let question = Events { after: 0, domain: None, wanted: EventFilter::ALL, max: 0 };
    app.ask(question).await.ok().map(|answer| answer.newest)
}

/// Reads what there is after a number; the number that was reached.
async fn read_from(app: &App, mut from: u64) -> u64 {
    loop {
        let question = Events { after: from, domain: None, wanted: EventFilter::ALL, max: PAGE };
        // What fails now is read with what comes next, or after a while.
        let Ok(answer) = app.ask(question).await else { return from };
        let examined = answer.examined;
        // The newest may be forgotten: then nothing is examined any more.
        let is_all = examined >= answer.newest || examined == from;
        app.tail().add(from, answer);
        from = examined;
        if is_all {
            return from;
        }
    }
}

/// How long after the last read the next one begins at the earliest.
const READ_EVERY: Duration = Duration::from_millis(2);
/// How often the store is asked if nothing is heard.
const LOOK: Duration = Duration::from_secs(1);
/// Events read at once.
const PAGE: u16 = 512;
/// What the events that are kept may take up, in bytes: messages of rooms are as large as their senders make them.
const KEPT_BYTES_MAX: usize = 8 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use carillon_core::model::{Audience, Notification, NotificationId, Payload, Priority, Trace, UnixMs};

    fn trace() -> Event {
        Event::Notification(Trace::of(&Notification {
            id: NotificationId(1),
            domain: carillon_core::model::DomainId(1),
            to: "alice@example.com".parse().expect("an address"),
            audience: Audience::Always,
            priority: Priority::Normal,
            expires: None,
            collapse_key: None,
            key: None,
            payload: Payload::Json("1".into()),
            accepted: UnixMs(0),
            send_at: None,
        }))
    }

    fn answer(oldest: u64, newest: u64, events: Vec<(u64, Event)>) -> EventsAnswer {
        EventsAnswer { events, examined: newest, oldest, newest }
    }

    fn numbers(tail: &Tail, after: u64) -> Option<Vec<u64>> {
        tail.after(after, 9).map(|events| events.iter().map(|(number, _)| *number).collect())
    }

    #[test]
    fn what_was_forgotten_before_it_was_read_has_to_be_asked_for() {
        let tail = Tail::new(2, Arc::default());
        tail.recent().after = 3;
        tail.add(3, answer(1, 4, vec![(4, trace())]));
        assert_eq!(numbers(&tail, 3), Some(vec![4]));
        // All that there was is forgotten.
        tail.add(4, answer(0, 7, vec![]));
        assert_eq!((numbers(&tail, 4), numbers(&tail, 6), numbers(&tail, 7)), (None, None, Some(vec![])));
        // Some of it.
        tail.add(7, answer(9, 9, vec![(9, trace())]));
        assert_eq!((numbers(&tail, 7), numbers(&tail, 8)), (None, Some(vec![9])));
        tail.add(9, answer(9, 11, vec![(10, trace()), (11, trace())]));
        assert_eq!((numbers(&tail, 8), numbers(&tail, 9)), (None, Some(vec![10, 11])));
    }
}
