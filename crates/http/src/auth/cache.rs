//! Keys seen lately, so that a sender of many requests costs the store one question every few seconds.

use crate::app::App;
use crate::problem::Problem;
use crate::values::time::now;
use carillon_core::model::{ApiKey, KeyId};
use carillon_core::ports::store::keys::{Key, NoteKeyUse};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::broadcast;

/// Keys seen lately, and the news of those deleted.
pub(crate) struct Keys {
    seen: Mutex<HashMap<[u8; 32], Seen>>,
    deleted: broadcast::Sender<KeyId>,
    /// When a store that failed was asked last.
    probed: Mutex<Option<Instant>>,
}

struct Seen {
    key: ApiKey,
    until: Instant,
}

impl Default for Keys {
    fn default() -> Keys {
        Keys { seen: Mutex::default(), deleted: broadcast::channel(64).0, probed: Mutex::default() }
    }
}

impl App {
    /// API keys seen lately.
    pub(crate) fn keys(&self) -> &Keys {
        self.part()
    }
}

impl Keys {
    /// The key of this hash, if there is one. May be as old as [`KEPT`] when another node deleted it; and as [`KEPT_AWAY`] while the store fails.
    pub(crate) async fn find(&self, app: &App, hash: [u8; 32]) -> Result<Option<ApiKey>, Problem> {
        let now = Instant::now();
        if let Some(key) = self.recall(&hash, now) {
            return Ok(Some(key));
        }
        let old = self.recall_old(&hash, now);
        if old.is_some() && app.node.store_health().fails {
            // What needs no store goes on while that is away; and it is found out that it is back.
            if self.may_probe(now) {
                let app = app.clone();
                tokio::spawn(async move { app.keys().ask(&app, hash).await.is_ok() });
            }
            return Ok(old);
        }
        match self.ask(app, hash).await {
            Err(problem) => old.map(Some).ok_or(problem),
            found => found,
        }
    }

    /// The same from the store.
    async fn ask(&self, app: &App, hash: [u8; 32]) -> Result<Option<ApiKey>, Problem> {
        // Deletions are told from here on, so that one which overtakes the answer is not forgotten again.
        let mut deleted = self.deleted.subscribe();
        let found = app.ask(Key { hash }).await?;
        if let Some(key) = &found
            && matches!(deleted.try_recv(), Err(broadcast::error::TryRecvError::Empty))
        {
            self.keep(hash, key.clone(), Instant::now());
        }
        if let Some(key) = &found {
            note_use(app, key);
        }
        if found.is_none() {
            // Another node deleted it.
            self.lock().remove(&hash);
        }
        Ok(found)
    }

    /// Whether a store that fails is asked again: once per second.
    fn may_probe(&self, now: Instant) -> bool {
        let mut probed = self.probed.lock().unwrap_or_else(PoisonError::into_inner);
        let may = probed.is_none_or(|at| now.saturating_duration_since(at) >= PROBE);
        if may {
            *probed = Some(now);
        }
        may
    }

    /// Forgets a key that was deleted, and tells the streams it opened.
    pub(crate) fn forget(&self, id: KeyId) {
        self.lock().retain(|_, seen| seen.key.id != id);
        // No stream is open when nobody listens.
        let _ = self.deleted.send(id);
    }

    /// Forgets what is known of a key that was changed.
    pub(crate) fn changed(&self, id: KeyId) {
        self.lock().retain(|_, seen| seen.key.id != id);
    }

    /// News of deleted keys.
    pub(crate) fn deletions(&self) -> broadcast::Receiver<KeyId> {
        self.deleted.subscribe()
    }

    fn recall(&self, hash: &[u8; 32], now: Instant) -> Option<ApiKey> {
        self.lock().get(hash).filter(|seen| seen.until > now).map(|seen| seen.key.clone())
    }

    /// The same of a key that would have to be asked for again.
    fn recall_old(&self, hash: &[u8; 32], now: Instant) -> Option<ApiKey> {
        self.lock().get(hash).filter(|seen| seen.until + KEPT_AWAY > now).map(|seen| seen.key.clone())
    }

    fn keep(&self, hash: [u8; 32], key: ApiKey, now: Instant) {
        let mut seen = self.lock();
        if seen.len() >= KEYS_MAX {
            seen.retain(|_, seen| seen.until > now);
        }
        if seen.len() < KEYS_MAX {
            seen.insert(hash, Seen { key, until: now + KEPT });
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<[u8; 32], Seen>> {
        // A map of copies is whole after any panic.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Notes that a key is used, once per hour.
fn note_use(app: &App, key: &ApiKey) {
    let at = now();
    if key.used.is_some_and(|used| used.plus(NOTED_MS) > at) {
        return;
    }
    let (app, id) = (app.clone(), key.id);
    tokio::spawn(async move {
        // One that fails is noted when the key is asked for again.
        let _ = app.ask(NoteKeyUse { id, at }).await;
    });
}

const NOTED_MS: u64 = 60 * 60 * 1000;

/// How long a key is believed without asking again.
const KEPT: Duration = Duration::from_secs(5);
/// For how much longer it is while the store cannot be asked.
const KEPT_AWAY: Duration = Duration::from_secs(600);
/// How often a store that fails is asked.
const PROBE: Duration = Duration::from_secs(1);
const KEYS_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use carillon_core::model::{Scope, Scopes, UnixMs};

    fn key(id: u32) -> ApiKey {
        let scopes = Scopes::of(&[Scope::Send]);
        ApiKey {
            id: KeyId(id),
            name: "test".into(),
            domain: None,
            scopes,
            created: UnixMs(0),
            expires: None,
            networks: Box::default(),
            certificates: Box::default(),
            used: None,
        }
    }

    #[test]
    fn keys_are_believed_for_a_while() {
        let (keys, now) = (Keys::default(), Instant::now());
        keys.keep([1; 32], key(1), now);
        assert!(keys.recall(&[1; 32], now).is_some());
        assert!(keys.recall(&[1; 32], now + KEPT).is_none());
        assert!(keys.recall_old(&[1; 32], now + KEPT_AWAY).is_some(), "while the store cannot be asked");
        assert!(keys.recall_old(&[1; 32], now + KEPT + KEPT_AWAY).is_none());
        assert!(keys.recall(&[2; 32], now).is_none());
    }

    #[test]
    fn a_deleted_key_is_forgotten_and_told() {
        let (keys, now) = (Keys::default(), Instant::now());
        let mut deletions = keys.deletions();
        keys.keep([1; 32], key(1), now);
        keys.keep([2; 32], key(2), now);
        keys.forget(KeyId(1));
        assert!(keys.recall(&[1; 32], now).is_none() && keys.recall_old(&[1; 32], now).is_none());
        assert!(keys.recall(&[2; 32], now).is_some());
        assert_eq!(deletions.try_recv(), Ok(KeyId(1)));
    }

    #[test]
    fn the_cache_is_bounded() {
        let (keys, now) = (Keys::default(), Instant::now());
        for i in 0..2 * KEYS_MAX as u32 {
            let mut hash = [0; 32];
            hash[..4].copy_from_slice(&i.to_be_bytes());
            keys.keep(hash, key(i), now);
        }
        assert_eq!(keys.lock().len(), KEYS_MAX);
        keys.keep([9; 32], key(0), now + KEPT);
        assert_eq!(keys.lock().len(), 1);
    }
}
