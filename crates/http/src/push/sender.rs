//! The task that sends pushes: it claims what is due, has requests made, and commits what came of them.

use super::gateway::Gateways;
use super::gone::{self, Ended, GoneApp, GoneApps};
use super::message::{self, Rendered, Showing};
use super::rules::Came;
use crate::app::App;
use crate::problem::Problem;
use crate::random;
use crate::values::time::now;
use carillon_core::command::{Command, Hearing, Outcome};
use carillon_core::model::{
    NotificationId, Push, PushId, PushOutcome, PushRegistration, PushStep, PushSubject, UnixMs,
};
use carillon_core::ports::Page;
use carillon_core::ports::store::push::{ClaimPushes, CommitPushes, NextPush, PushCommit};
use carillon_wire::jid::BareJid;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::{self, JoinError, JoinSet};
use tokio::time::Instant;

/// Sends pushes until the node closes. What is under way then has a moment to be answered; the rest is given back to the store: it is due at once, for whoever
/// sends pushes next.
pub(crate) async fn run(app: App) {
    let mut closing = app.closing.subscribe();
    let made = Arc::new(Notify::new());
    let hint = Arc::clone(&made);
    let is_hinted = app.node.hint_pushes(Arc::new(move || hint.notify_one()));
    let mut sender = Sender {
        app,
        owner: random::number(),
        held: BTreeSet::new(),
        gateways: Gateways::default(),
        under_way: BTreeMap::new(),
        heard: BTreeMap::new(),
        requests: JoinSet::new(),
        done: Vec::new(),
        gone: GoneApps::default(),
        ending: Vec::new(),
        endings: JoinSet::new(),
        rest: if is_hinted { REST } else { LOOK_EVERY },
    };
    let (mut look_at, mut tidy_at) = (Instant::now(), Instant::now() + TIDY_EVERY);
    let mut looked = look_at;
    loop {
        sender.start();
        if look_at <= Instant::now() {
            looked = Instant::now();
            look_at = looked + sender.look().await;
        }
        if tidy_at <= Instant::now() {
            sender.gateways.tidy(now());
            tidy_at = Instant::now() + TIDY_EVERY;
        }
        sender.start();
        sender.end_gone();
        match sender.commit().await {
            Ok(Some(due)) => look_at = look_at.min(Instant::now() + until(due).max(LOOK_EVERY)),
            Ok(None) => {}
            Err(_) => tokio::select! {
                () = tokio::time::sleep(PAUSE) => continue,
                _ = closing.wait_for(|closing| *closing) => break,
            },
        }
        let was_full = sender.is_full();
        let wake_at = sender.gone_due().map_or(look_at, |due| due.min(look_at));
        tokio::select! {
            Some(ended) = sender.requests.join_next_with_id() => {
                sender.finish(ended);
                while let Some(ended) = sender.requests.try_join_next_with_id() {
                    sender.finish(ended);
                }
                if was_full {
                    look_at = Instant::now();
                }
            }
            Some(ended) = sender.endings.join_next() => {
                sender.ended(ended);
                look_at = look_at.min(Instant::now() + LOOK_EVERY);
            }
            () = made.notified() => look_at = look_at.min(looked + LOOK_AFTER),
            () = tokio::time::sleep_until(wake_at) => {}
            _ = closing.wait_for(|closing| *closing) => break,
        }
    }
    sender.close().await;
}

/// The pushes of this node.
struct Sender {
    app: App,
    /// Names this sender to the store.
    owner: u64,
    /// Those that it has claimed, and has not told the store of.
    held: BTreeSet<PushId>,
    gateways: Gateways,
    /// What each request is about, and when it was sent.
    under_way: BTreeMap<task::Id, (Arc<str>, Push, UnixMs)>,
    /// Pushes about rooms, in the version in which a session was given what they tell and might still acknowledge it.
    heard: BTreeMap<PushId, u64>,
    requests: JoinSet<Sent>,
    /// What the store is to be told.
    done: Vec<PushCommit>,
    /// Apps that are gone, whose registrations have not ended yet.
    gone: GoneApps,
    /// The pushes by which those were found whose registrations are being ended, by the one task for that.
    ending: Vec<PushId>,
    endings: JoinSet<Ended>,
    /// After how long it is looked again whether something is due, though nothing says so.
    rest: Duration,
}

impl Sender {
    /// Claims what is due, and says how long nothing is to be looked for.
    async fn look(&mut self) -> Duration {
        if self.is_full() {
            return LOOK_EVERY;
        }
        let app = self.app.clone();
        let Ok(next) = app.ask(NextPush).await else { return PAUSE };
        app.pushes().counters.looked();
        if next.is_none_or(|next| next > now()) {
            return next.map_or(self.rest, |next| self.rest.min(until(next)));
        }
        let (at, entries) = (now(), HELD_MAX.saturating_sub(self.active()).min(CLAIMED_MAX));
        let page = Page { entries: entries as u16, bytes: CLAIMED_BYTES_MAX };
        let held = self.held.iter().copied().collect();
        let claim = ClaimPushes { owner: self.owner, now: at, until: at.plus(LEASE_MS), held, page };
        let Ok(claimed) = app.ask(claim).await else { return PAUSE };
        let wait = if claimed.is_empty() { LOOK_EVERY } else { Duration::ZERO };
        let mut postponed = 0;
        for push in claimed {
            self.held.insert(push.id);
            if let Err((push, next)) = self.gateways.add(push, at) {
                self.done.push(commit(&push, PushOutcome::Postponed { next }));
                postponed += 1;
            }
        }
        app.pushes().counters.postponed(postponed);
        // Where some were claimed there may be more. Where none were, what is due is held here or is another node's.
        wait
    }

    fn is_full(&self) -> bool {
        self.active() >= HELD_MAX || self.gone.is_full() || self.gateways.has_enough(now())
    }

    /// Pushes in memory, without those that only their registrations' end waits for.
    fn active(&self) -> usize {
        self.held.len().saturating_sub(self.gone.len() + self.ending.len())
    }

    /// Has requests made.
    fn start(&mut self) {
        while let Some((host, push)) = self.gateways.next() {
            let (app, asked) = (self.app.clone(), push.clone());
            let was_heard = self.heard.get(&push.id) == Some(&push.version);
            let request = self.requests.spawn(async move { send(&app, &asked, was_heard).await });
            self.under_way.insert(request.id(), (host, push, now()));
        }
        self.app.pushes().counters.note(self.held.len(), self.gateways.closed(now()));
    }

    /// Takes what came of a request.
    fn finish(&mut self, ended: Result<(task::Id, Sent), JoinError>) {
        let (id, sent_as) = ended.unwrap_or_else(|error| {
            if error.is_panic() {
                tracing::error!(%error, "a push ended badly");
            }
            let came = Came::Failed("the request was not made".into(), None);
            (error.id(), Sent::Asked { came, works: true })
        });
        let Some((host, push, sent)) = self.under_way.remove(&id) else { return };
        let at = now();
        let was_given = matches!(sent_as, Sent::NotAsked(PushOutcome::Postponed { .. }));
        let (outcome, works) = match sent_as {
            Sent::Asked { came, works } => (came.outcome(&push, at, at_most), Some(works)),
            Sent::NotAsked(outcome) => (outcome, None),
            Sent::NotRendered => (PushOutcome::Postponed { next: at.plus(RENDERED_AGAIN_MS) }, None),
        };
        self.heard.remove(&push.id);
        if was_given && self.heard.len() < HEARD_MAX {
            self.heard.insert(push.id, push.version);
        }
        let told = PushCommit { step: step(&push, &outcome, sent, at), ..commit(&push, outcome) };
        match told.outcome {
            PushOutcome::Gone => {
                let app = GoneApp { commit: told, registration: push.registration };
                self.gone.add(app, Instant::now());
            }
            _ => self.done.push(told),
        }
        if let Some((back, next)) = self.gateways.done(&host, works, at, at_most) {
            tracing::warn!(push_service = %host, "a push service does not answer; it gets nothing for a while");
            self.app.pushes().counters.postponed(back.len());
            self.done.extend(back.iter().map(|push| commit(push, PushOutcome::Postponed { next })));
        }
    }

    /// The node closes: what push services answer in a moment is noted, so that it is not pushed again after the next start. Nobody waits for the end of the
    /// claims of the rest.
    async fn close(&mut self) {
        let last = Instant::now() + CLOSES_IN;
        while let Ok(Some(ended)) = tokio::time::timeout_at(last, self.requests.join_next_with_id()).await {
            self.finish(ended);
        }
        self.requests.shutdown().await;
        let cut_off = std::mem::take(&mut self.under_way).into_values().map(|(_, push, _)| push);
        let at = now();
        let given_back = cut_off.chain(self.gateways.take_all());
        self.done.extend(given_back.map(|push| commit(&push, PushOutcome::Postponed { next: at })));
        if self.commit().await.is_err() {
            tracing::warn!("the store could not be told of pushes: they are sent again after the next start");
        }
        self.endings.shutdown().await;
    }

    /// When registrations are to be ended, if any are, and none are being ended.
    fn gone_due(&self) -> Option<Instant> {
        self.gone.due().filter(|_| self.endings.is_empty())
    }

    /// Ends registrations of apps that are gone, if it is time to.
    fn end_gone(&mut self) {
        if self.gone_due().is_some_and(|due| due <= Instant::now()) {
            let apps = self.gone.take();
            self.ending = apps.iter().map(|app| app.commit.id).collect();
            self.endings.spawn(gone::end(self.app.clone(), self.owner, apps));
        }
    }

    /// Takes what came of ending registrations.
    fn ended(&mut self, ended: Result<Ended, JoinError>) {
        match ended {
            Ok(Ended { done, again }) => {
                for id in &done {
                    self.held.remove(id);
                }
                again.into_iter().for_each(|app| self.gone.add(app, Instant::now()));
            }
            Err(error) => {
                tracing::error!(%error, "registrations for push could not be ended");
                // They are claimed already: they are found again, and pushed to again.
                for id in &self.ending {
                    self.held.remove(id);
                }
            }
        }
        self.ending.clear();
    }

    /// Tells the store what came of pushes. Says when the first of them may be due again.
    async fn commit(&mut self) -> Result<Option<UnixMs>, Problem> {
        let mut first = None;
        while !self.done.is_empty() {
            let count = self.done.len().min(COMMITTED_MAX);
            let pushes = self.done[..count].to_vec();
            let at = now();
            self.app.ask(CommitPushes { owner: self.owner, now: at, pushes }).await?;
            for done in self.done.drain(..count) {
                self.held.remove(&done.id);
                let due = match done.outcome {
                    PushOutcome::Failed { next, .. } | PushOutcome::Postponed { next } => next,
                    // Something newer may have come under its topic meanwhile.
                    PushOutcome::Taken { .. }
                    | PushOutcome::Over
                    | PushOutcome::Refused { .. }
                    | PushOutcome::Gone => at,
                };
                first = Some(first.map_or(due, |first: UnixMs| first.min(due)));
            }
        }
        Ok(first)
    }
}

/// What came of a push.
enum Sent {
    /// Its push service was asked: what came of the request, and whether the push service works.
    Asked { came: Came, works: bool },
    /// It was not, and this becomes of it.
    NotAsked(PushOutcome),
    /// It was not, because nobody said what modules make of it.
    NotRendered,
}

/// Sends a push. One about a room is sent unless a session of the account has heard what is told, or may say so yet; where nobody answers whether one has, it is
/// sent. A session that was given it (`was_heard`) and has ended in order since has it, too; one that is parked has not.
async fn send(app: &App, push: &Push, was_heard: bool) -> Sent {
    if let Some((room, said)) = push.room() {
        let account = push.registration.account.clone();
        match app.command(Command::Hears { account: account.clone(), room, said }).await {
            Ok(Outcome::Hearing(Hearing::None)) if was_heard && !is_parked(app, &account).await => {
                return Sent::NotAsked(PushOutcome::Over);
            }
            Ok(Outcome::Hearing(Hearing::Has)) => return Sent::NotAsked(PushOutcome::Over),
            Ok(Outcome::Hearing(Hearing::Until(at))) => {
                return Sent::NotAsked(PushOutcome::Postponed { next: at });
            }
            _ => {}
        }
    }
    let domain = app.domain(push.registration.account.domain());
    let mut showing = app.pushes().showing(push, domain.as_deref());
    if app.node.may_render_pushes() {
        match rendered(app, push, &showing).await {
            Ok(Some(rendered)) => showing.rendered = rendered,
            Ok(None) => return Sent::NotAsked(PushOutcome::Over),
            Err(Unanswered) => return Sent::NotRendered,
        }
    }
    let (came, works) = app.pushes().send(push, &showing).await;
    Sent::Asked { came, works }
}

/// The home of the account did not answer.
struct Unanswered;

/// What modules make of what a push tells, at the home of its account; none if it is not to be sent.
async fn rendered(app: &App, push: &Push, showing: &Showing) -> Result<Option<Rendered>, Unanswered> {
    let before = message::text(push, showing);
    let (account, text) = (push.registration.account.clone(), Box::new(before.clone()));
    match app.command(Command::RenderPush { account, text }).await {
        Ok(Outcome::PushText(text)) => Ok(text.map(|text| Rendered::of(&before, *text))),
        _ => Err(Unanswered),
    }
}

fn commit(push: &Push, outcome: PushOutcome) -> PushCommit {
    let registration = &push.registration;
    PushCommit {
        id: push.id,
        version: push.version,
        registration: registration.id,
        registered: registration.created,
        domain: registration.domain,
        local: registration.account.local().unwrap_or_default().into(),
        outcome,
        step: None,
    }
}

/// The step that a request is in the trace of the notification that was pushed, if it was one.
fn step(
    push: &Push,
    outcome: &PushOutcome,
    sent: UnixMs,
    answered: UnixMs,
) -> Option<Box<(NotificationId, PushStep)>> {
    let PushSubject::Notification(notification) = &push.subject else { return None };
    let (state, reason) = outcome.state()?;
    let PushRegistration { id, node, channel, .. } = &*push.registration;
    let step = PushStep {
        registration: *id,
        node: node.clone(),
        kind: channel.kind(),
        requests: 1,
        sent,
        answered,
        state,
        reason: reason.map(Box::from),
    };
    Some(Box::new((notification.id, step)))
}

/// Whether a session of an account waits to be resumed, or nobody says so.
async fn is_parked(app: &App, account: &BareJid) -> bool {
    match app
        .command(Command::Sessions { domain: None, account: Some(account.clone()), limit: SESSIONS_MAX })
        .await
    {
        Ok(Outcome::Sessions(sessions)) => sessions.iter().any(|session| session.parked),
        _ => true,
    }
}

/// How long it is until then.
fn until(at: UnixMs) -> Duration {
    Duration::from_millis(at.0.saturating_sub(now().0))
}

/// A random number up to this one.
fn at_most(most: u64) -> u64 {
    random::number() % most.saturating_add(1).max(1)
}

/// Pushes of which is known that a session was given what they tell: of more than these some are sent that need not be.
const HEARD_MAX: usize = 4096;
/// Sessions of an account that are looked at.
const SESSIONS_MAX: usize = 100;
/// When a push is tried again about which nobody said what modules make of it.
const RENDERED_AGAIN_MS: u64 = 5_000;
/// Pushes in memory.
const HELD_MAX: usize = 1024;
/// Pushes that are claimed at once, and what they may take up, in bytes.
const CLAIMED_MAX: usize = 256;
const CLAIMED_BYTES_MAX: usize = 4 << 20;
/// Pushes that the store is told of at once.
const COMMITTED_MAX: usize = 512;
/// How long a claim holds, in milliseconds: longer than a push waits here, whose push service has room for all of them in a minute or is closed.
const LEASE_MS: u64 = 180_000;
/// How often it is looked at most whether something is due, where a commit does not say so.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long after it was looked it is looked again because of a commit: so that those of a storm are found together.
const LOOK_AFTER: Duration = Duration::from_millis(20);
/// How often it is looked where commits say that something was made: for what nodes left that are gone.
const REST: Duration = Duration::from_secs(5);
/// How long is waited for a store that fails.
const PAUSE: Duration = Duration::from_secs(1);
const TIDY_EVERY: Duration = Duration::from_secs(60);
/// How long answers are waited for when the node closes.
const CLOSES_IN: Duration = Duration::from_millis(300);
