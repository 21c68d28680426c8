//! The real store, with publications whose answers are lost or late, and commits of webhooks that are refused. It counts what it is asked about links.

use carillon_core::ports::store::items::Publish;
use carillon_core::ports::store::links::{CountClicks, Link, OpenNotifications};
use carillon_core::ports::store::webhooks::CommitWebhook;
use carillon_core::ports::{Answer, Ask, Fault, PushHint, Question, Reply, Store, StoreHealth, StoreStats};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// What becomes of publications.
#[derive(Default)]
enum Mode {
    /// They are done and answered.
    #[default]
    Well,
    /// They are done, and their answers are lost.
    Losing,
    /// They wait.
    Holding(Vec<(Ask, Reply<Answer>)>),
}

/// A store that can be made to lose or hold publications, and to refuse commits of webhooks.
pub(crate) struct Faulty {
    inner: Arc<dyn Store>,
    mode: Mutex<Mode>,
    /// Commits of webhooks that are to be refused.
    refusals: AtomicU32,
    asked: [AtomicU32; 3],
}

/// Questions about links that are counted.
#[derive(Clone, Copy)]
pub(crate) enum Counted {
    /// Where a code leads.
    Link,
    /// How often links were followed.
    CountClicks,
    /// Notifications that were opened.
    OpenNotifications,
}

impl Faulty {
    pub(crate) fn new(inner: Arc<dyn Store>) -> Faulty {
        Faulty { inner, mode: Mutex::default(), refusals: AtomicU32::new(0), asked: Default::default() }
    }

    /// How often this was asked.
    pub(crate) fn asked(&self, question: Counted) -> u32 {
        self.asked[question as usize].load(Ordering::SeqCst)
    }

    fn count(&self, ask: &Ask) {
        let counted =
            [Link::of(ask).is_some(), CountClicks::of(ask).is_some(), OpenNotifications::of(ask).is_some()];
        for (is_asked, count) in counted.into_iter().zip(&self.asked) {
            count.fetch_add(u32::from(is_asked), Ordering::SeqCst);
        }
    }

    /// From now on publications are done, and it is said that this is unknown.
    pub(crate) fn lose(&self) {
        *self.mode.lock().unwrap() = Mode::Losing;
    }

    /// From now on publications wait.
    pub(crate) fn hold(&self) {
        *self.mode.lock().unwrap() = Mode::Holding(Vec::new());
    }

    /// How many publications wait.
    pub(crate) fn held(&self) -> usize {
        match &*self.mode.lock().unwrap() {
            Mode::Holding(held) => held.len(),
            Mode::Well | Mode::Losing => 0,
        }
    }

    /// Refuses the next commits of webhooks, so many.
    pub(crate) fn refuse_webhooks(&self, count: u32) {
        self.refusals.store(count, Ordering::SeqCst);
    }

    /// Publications are done and answered again, those first that wait.
    pub(crate) fn go_on(&self) {
        if let Mode::Holding(held) = std::mem::take(&mut *self.mode.lock().unwrap()) {
            held.into_iter().for_each(|(ask, reply)| self.inner.ask(ask, reply));
        }
    }
}

impl Store for Faulty {
    fn ask(&self, ask: Ask, reply: Reply<Answer>) {
        self.count(&ask);
        if Publish::of(&ask).is_some() {
            match &mut *self.mode.lock().unwrap() {
                Mode::Well => {}
                Mode::Losing => {
                    let lost = Box::new(move |_| reply(Answer::Failed(Fault::Unknown)));
                    return self.inner.ask(ask, lost);
                }
                Mode::Holding(held) => return held.push((ask, reply)),
            }
        }
        let one_less = |count: u32| count.checked_sub(1);
        if CommitWebhook::of(&ask).is_some()
            && self.refusals.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok()
        {
            return reply(Answer::Failed(Fault::Broken));
        }
        self.inner.ask(ask, reply);
    }

    fn ask_all(&self, asks: &mut Vec<(Ask, Reply<Answer>)>) {
        match asks.iter().any(|(ask, _)| Publish::of(ask).is_some()) {
            true => asks.drain(..).for_each(|(ask, reply)| self.ask(ask, reply)),
            false => {
                asks.iter().for_each(|(ask, _)| self.count(ask));
                self.inner.ask_all(asks);
            }
        }
    }

    fn stats(&self) -> StoreStats {
        self.inner.stats()
    }

    fn hint_pushes(&self, hint: PushHint) -> bool {
        self.inner.hint_pushes(hint)
    }

    fn health(&self) -> StoreHealth {
        self.inner.health()
    }

    fn close(&self) {
        self.inner.close();
    }
}
