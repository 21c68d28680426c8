//! Clicks: gathered in memory, and given to the store some times per second, many at once.

use super::cache::CachedLink;
use super::code::{self, Secret, TOKEN_LEN};
use super::{Figures, Links, count};
use crate::app::App;
use crate::values::time::now;
use carillon_core::model::{AgentClass, Click, DomainId, Opened, UnixMs};
use carillon_core::ports::store::links::{CountClicks, LinkClicks, OpenNotifications};
use std::collections::HashMap;
use std::mem::take;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Clicks that the store has not been told of, in parts that are locked apart.
#[derive(Default)]
pub(super) struct Clicks([Shard; SHARDS]);

#[derive(Default)]
struct Shard {
    /// Links that were followed: how often is in them.
    followed: Mutex<Vec<Arc<CachedLink>>>,
    /// Links of notifications that were followed.
    seen: Mutex<Vec<Seen>>,
}

/// The link of a notification was followed.
#[derive(Clone, Copy)]
struct Seen {
    domain: DomainId,
    token: [u8; TOKEN_LEN],
    opened: Opened,
}

/// As many as the cache has.
const SHARDS: usize = 16;
/// Of either in a part, at most: what comes beyond is dropped, and counted.
const WAITING_MAX: usize = (1 << 17) / SHARDS;

impl Clicks {
    /// Notes that a link was followed. Never waits for more than some instructions.
    pub(super) fn note(
        &self,
        figures: &Figures,
        entry: &Arc<CachedLink>,
        token: Option<&[u8; TOKEN_LEN]>,
        now: UnixMs,
        class: impl FnOnce() -> Option<AgentClass>,
    ) {
        if entry.clicks.fetch_add(1, Ordering::Relaxed) == 0 {
            self.followed(figures, entry.clone());
        }
        if let Some(token) = token
            && let Some(agent) = class()
        {
            let opened = Opened { at: now, agent };
            self.seen(figures, Seen { domain: entry.domain, token: *token, opened });
        }
    }

    fn followed(&self, figures: &Figures, entry: Arc<CachedLink>) {
        let shard = &self.0[entry.link.0 as usize % SHARDS];
        push(&shard.followed, figures, entry);
    }

    /// By the recipient: one link may be followed by all of them at once.
    fn seen(&self, figures: &Figures, seen: Seen) {
        let shard = &self.0[usize::from(seen.token[TOKEN_LEN - 1]) % SHARDS];
        push(&shard.seen, figures, seen);
    }
}

fn push<T>(waiting: &Mutex<Vec<T>>, figures: &Figures, one: T) {
    let mut waiting = lock(waiting);
    if waiting.len() < WAITING_MAX {
        waiting.push(one);
    } else {
        count(&figures.dropped);
    }
}

fn lock<T>(waiting: &Mutex<Vec<T>>) -> MutexGuard<'_, Vec<T>> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells the store, until the node closes; once more then.
pub(crate) async fn run(app: App) {
    if !app.links().are_on() {
        return;
    }
    let mut closing = app.closing.subscribe();
    let mut turns = 0u32;
    loop {
        let is_last = tokio::select! {
            () = tokio::time::sleep(OPENED_EVERY) => false,
            _ = closing.wait_for(|closing| *closing) => true,
        };
        turns = turns.wrapping_add(1);
        tell_opened(&app).await;
        if is_last || turns.is_multiple_of(COUNTED_EVERY) {
            tell_followed(&app).await;
        }
        if is_last {
            return;
        }
    }
}

/// How often the store is told of notifications that were opened.
const OPENED_EVERY: Duration = Duration::from_millis(250);
/// After how many such times it is told how often links were followed: the longer, the fewer of its pages change.
const COUNTED_EVERY: u32 = 8;
/// How many go into one question.
const TOGETHER: usize = 1000;

async fn tell_followed(app: &App) {
    let (clicks, figures) = (&app.links().clicks, &app.links().figures);
    let followed: Vec<_> = clicks.0.iter().flat_map(|shard| take(&mut *lock(&shard.followed))).collect();
    for entries in followed.chunks(TOGETHER) {
        let last = now();
        let counted: Vec<_> = entries
            .iter()
            .map(|entry| LinkClicks {
                link: entry.link,
                clicks: entry.clicks.swap(0, Ordering::Relaxed),
                last,
            })
            .collect();
        let sum = counted.iter().map(|one| one.clicks).sum();
        if app.ask(CountClicks { clicks: counted.clone() }).await.is_ok() {
            figures.clicks.fetch_add(sum, Ordering::Relaxed);
            continue;
        }
        for (entry, counted) in entries.iter().zip(counted) {
            if entry.clicks.fetch_add(counted.clicks, Ordering::Relaxed) == 0 {
                clicks.followed(figures, entry.clone());
            }
        }
    }
}

async fn tell_opened(app: &App) {
    let (clicks, figures) = (&app.links().clicks, &app.links().figures);
    let seen: Vec<_> = clicks.0.iter().flat_map(|shard| take(&mut *lock(&shard.seen))).collect();
    let mut secrets: HashMap<DomainId, Option<Secret>> = HashMap::new();
    for part in seen.chunks(TOGETHER) {
        let mut opened = Vec::with_capacity(part.len());
        for one in part {
            let secret = match secrets.get(&one.domain) {
                Some(secret) => *secret,
                None => {
                    let secret = Links::secret(app, one.domain).await.ok();
                    secrets.insert(one.domain, secret);
                    secret
                }
            };
            opened.extend(secret.and_then(|secret| one.read(&secret)));
        }
        if opened.is_empty() {
            continue;
        }
        match app.ask(OpenNotifications { clicks: opened }).await {
            Ok(noted) => {
                figures.opened.fetch_add(noted.len() as u64, Ordering::Relaxed);
                app.events.notify_one();
            }
            Err(_) => part.iter().for_each(|one| clicks.seen(figures, *one)),
        }
    }
}

impl Seen {
    /// The notification that was opened. Of a text that was made up the id says a time that cannot be: nothing is asked for it.
    fn read(&self, secret: &Secret) -> Option<Click> {
        let id = code::notification(secret, &self.token)?;
        let accepted = id.time();
        let can_be = accepted.0 <= self.opened.at.0 + CLOCKS_MS && accepted.plus(TRACES_MS) >= self.opened.at;
        can_be.then_some(Click { id, domain: self.domain, opened: self.opened })
    }
}

/// How far the clocks of two nodes may be apart.
const CLOCKS_MS: u64 = 60_000;
/// Longer than any notification waits and its trace is kept.
const TRACES_MS: u64 = 100 * 24 * 60 * 60 * 1000;
