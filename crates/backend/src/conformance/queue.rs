//! What all [`Queue`]s must pass.

use carillon_core::ports::{Pulled, Queue, Reason, Verdict};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

/// A queue that messages can be put into. [`Queue::settle_within`] is a few seconds.
pub trait Engine: Send + Sync {
    /// A consumer of the queue: all that are opened share its messages.
    fn open(&self) -> Arc<dyn Queue>;

    /// Puts messages into the queue, which has accepted them when this is answered.
    fn put(&self, bodies: &[&str]) -> Running<'_>;

    /// Passes a moment: less than [`Queue::settle_within`].
    fn pass(&self) -> Running<'_>;
}

/// Something that runs on the runtime of whoever runs a case.
pub type Running<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// One thing that all queues must do.
#[derive(Clone, Copy)]
pub struct Case {
    /// Its name.
    pub name: &'static str,
    /// Runs it on an empty queue, and panics when it does not do what it must.
    pub run: for<'a> fn(&'a dyn Engine) -> Running<'a>,
}

macro_rules! cases {
    ($($case:ident),+ $(,)?) => {
        &[$(Case { name: concat!("queue::", stringify!($case)), run: |engine| Box::pin($case(engine)) }),+]
    };
}

/// Every case.
pub const CASES: &[Case] = cases![
    what_is_done_does_not_come_again,
    what_is_not_settled_comes_again,
    what_is_put_back_comes_after_its_time,
    a_dead_letter_is_kept_and_sent_again,
    no_more_come_than_were_asked_for,
];

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Messages, as many as are wanted.
async fn pull(queue: &Arc<dyn Queue>, wanted: usize) -> Vec<Pulled> {
    let began = Instant::now();
    let mut pulled = Vec::new();
    while pulled.len() < wanted {
        assert!(began.elapsed() < PATIENCE, "{wanted} messages, and only {} came", pulled.len());
        pulled.extend(queue.pull(wanted - pulled.len(), 1 << 20).await.expect("messages"));
    }
    pulled
}

fn bodies(pulled: &[Pulled]) -> Vec<&str> {
    pulled.iter().map(|message| std::str::from_utf8(&message.body).expect("text")).collect()
}

async fn settle(queue: &Arc<dyn Queue>, message: &Pulled, verdict: Verdict) {
    queue.settle(message.receipt, verdict).await.expect("it is told");
}

/// Nothing is left, on the way or waiting.
async fn is_empty(queue: &Arc<dyn Queue>) {
    queue.flush().await.expect("it is told");
    let began = Instant::now();
    loop {
        let depth = queue.depth().await.expect("a count");
        if (depth.waiting, depth.unsettled, depth.oldest) == (0, 0, None) {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "{depth:?}");
    }
    assert_eq!(queue.pull(10, 1 << 20).await, Ok(Vec::new()));
}

async fn what_is_done_does_not_come_again(engine: &dyn Engine) {
    let queue = engine.open();
    engine.put(&["one", "two", "three"]).await;
    let pulled = pull(&queue, 3).await;
    assert_eq!(bodies(&pulled), ["one", "two", "three"]);
    assert!(pulled.iter().all(|message| message.attempt == 1 && message.sent.0 > 0));
    assert!(pulled[0].id != pulled[1].id && pulled[0].receipt != pulled[1].receipt);
    for message in &pulled {
        settle(&queue, message, Verdict::Done).await;
    }
    is_empty(&queue).await;
}

async fn what_is_not_settled_comes_again(engine: &dyn Engine) {
    let queue = engine.open();
    engine.put(&["one", "two"]).await;
    let first = pull(&queue, 2).await;
    // Work on one goes on, and the other is forgotten: by another consumer, too, which is given it then.
    let other = engine.open();
    let mut again = Vec::new();
    let began = Instant::now();
    let mut pulling = other.pull(10, 1 << 20);
    while again.is_empty() {
        assert!(began.elapsed() < PATIENCE, "it does not come again");
        queue.extend(vec![first[0].receipt]).await.expect("it is told");
        let mut passing = engine.pass();
        // None once the moment has passed.
        let pulled = poll_fn(|cx| match pulling.as_mut().poll(cx) {
            Poll::Ready(pulled) => Poll::Ready(Some(pulled)),
            Poll::Pending => passing.as_mut().poll(cx).map(|()| None),
        });
        if let Some(pulled) = pulled.await {
            again = pulled.expect("messages");
            pulling = other.pull(10, 1 << 20);
        }
    }
    drop(pulling);
    assert_eq!(bodies(&again), ["two"]);
    assert_eq!(
        (&again[0].id, again[0].sent),
        (&first[1].id, first[1].sent),
        "it has the name and the time that it had"
    );
    assert!(again[0].attempt > 1);
    settle(&other, &again[0], Verdict::Done).await;
    other.flush().await.expect("it is told");
    settle(&queue, &first[0], Verdict::Done).await;
    is_empty(&queue).await;
}

async fn what_is_put_back_comes_after_its_time(engine: &dyn Engine) {
    let queue = engine.open();
    engine.put(&["one"]).await;
    let pulled = pull(&queue, 1).await;
    let (began, after) = (Instant::now(), Duration::from_millis(800));
    settle(&queue, &pulled[0], Verdict::Later(after)).await;
    let again = pull(&queue, 1).await;
    assert!(began.elapsed() >= after, "{:?}", began.elapsed());
    assert_eq!(again[0].id, pulled[0].id);
    settle(&queue, &again[0], Verdict::Done).await;
    is_empty(&queue).await;
}

async fn a_dead_letter_is_kept_and_sent_again(engine: &dyn Engine) {
    let queue = engine.open();
    engine.put(&["one", "two"]).await;
    let pulled = pull(&queue, 2).await;
    let reason = Reason { code: "not-json".into(), detail: "it is\nno JSON".into() };
    for message in &pulled {
        settle(&queue, message, Verdict::Dead(reason.clone())).await;
    }
    is_empty(&queue).await;
    let dead = queue.dead(10).await.expect("dead letters");
    assert_eq!(dead.len(), 2);
    assert_eq!(
        (&dead[0].id, dead[0].sent, &dead[0].body[..]),
        (&pulled[0].id, Some(pulled[0].sent), &b"one"[..])
    );
    let kept = dead[0].reason.as_ref().map(|reason| (&*reason.code, &*reason.detail));
    assert_eq!(kept, Some(("not-json", "it is no JSON")));
    assert_eq!(queue.depth().await.map(|depth| depth.dead), Ok(2));
    assert_eq!(queue.redrive(1).await, Ok(1));
    let again = pull(&queue, 1).await;
    assert_eq!((bodies(&again), &again[0].id, again[0].sent), (vec!["one"], &pulled[0].id, pulled[0].sent));
    settle(&queue, &again[0], Verdict::Done).await;
    is_empty(&queue).await;
    assert_eq!((queue.redrive(10).await, queue.redrive(10).await), (Ok(1), Ok(0)));
    let again = pull(&queue, 1).await;
    settle(&queue, &again[0], Verdict::Dead(reason)).await;
    is_empty(&queue).await;
    assert_eq!(queue.dead(10).await.map(|dead| dead.len()), Ok(1), "it may become one again");
}

async fn no_more_come_than_were_asked_for(engine: &dyn Engine) {
    let queue = engine.open();
    let body = "x".repeat(100_000);
    engine.put(&[body.as_str(); 20]).await;
    let pulled = queue.pull(3, 1 << 20).await.expect("messages");
    assert_eq!(pulled.len(), 3);
    let few = queue.pull(10, 250_000).await.expect("messages");
    assert!((1..=3).contains(&few.len()), "{}", few.len());
    let one = queue.pull(10, 64 * 1024).await.expect("messages");
    assert_eq!(one.len(), 1, "one that is larger than the room is given alone");
    let rest = pull(&queue, 20 - 3 - few.len() - 1).await;
    for message in pulled.iter().chain(&few).chain(&one).chain(&rest) {
        settle(&queue, message, Verdict::Done).await;
    }
    is_empty(&queue).await;
}
