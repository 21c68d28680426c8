//! Keys seen lately, so that a sender of many requests costs the store one question every few seconds.

use crate::app::App;
use crate::problem::Problem;
use carillon_core::model::{ApiKey, KeyId};
use carillon_core::ports::store::keys::Key;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::broadcast;

/// Keys seen lately, and the news of those deleted.
pub(crate) struct Keys {
    seen: Mutex<HashMap<[u8; 32], Seen>>,
    deleted: broadcast::Sender<KeyId>,
}

struct Seen {
    key: ApiKey,
    until: Instant,
}

impl Default for Keys {
    fn default() -> Keys {
        Keys { seen: Mutex::default(), deleted: broadcast::channel(64).0 }
    }
}

impl Keys {
    /// The key of this hash, if there is one. May be as old as [`KEPT`] when another node deleted it.
    pub(crate) async fn find(&self, app: &App, hash: [u8; 32]) -> Result<Option<ApiKey>, Problem> {
        if let Some(key) = self.recall(&hash, Instant::now()) {
            return Ok(Some(key));
        }
        // Deletions are told from here on, so that one which overtakes the answer is not forgotten again.
        let mut deleted = self.deleted.subscribe();
        let found = app.ask(Key { hash }).await?;
        if let Some(key) = &found
            && matches!(deleted.try_recv(), Err(broadcast::error::TryRecvError::Empty))
        {
            self.keep(hash, key.clone(), Instant::now());
        }
        Ok(found)
    }

    /// Forgets a key that was deleted, and tells the streams it opened.
    pub(crate) fn forget(&self, id: KeyId) {
        self.lock().retain(|_, seen| seen.key.id != id);
        // No stream is open when nobody listens.
        let _ = self.deleted.send(id);
    }

    /// News of deleted keys.
    pub(crate) fn deletions(&self) -> broadcast::Receiver<KeyId> {
        self.deleted.subscribe()
    }

    fn recall(&self, hash: &[u8; 32], now: Instant) -> Option<ApiKey> {
        self.lock().get(hash).filter(|seen| seen.until > now).map(|seen| seen.key.clone())
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

/// How long a key is believed without asking again.
const KEPT: Duration = Duration::from_secs(5);
const KEYS_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use carillon_core::model::{Scope, Scopes, UnixMs};

    fn key(id: u32) -> ApiKey {
        let scopes = Scopes::of(&[Scope::Send]);
        ApiKey { id: KeyId(id), name: "test".into(), domain: None, scopes, created: UnixMs(0), expires: None }
    }

    #[test]
    fn keys_are_believed_for_a_while() {
        let (keys, now) = (Keys::default(), Instant::now());
        keys.keep([1; 32], key(1), now);
        assert!(keys.recall(&[1; 32], now).is_some());
        assert!(keys.recall(&[1; 32], now + KEPT).is_none());
        assert!(keys.recall(&[2; 32], now).is_none());
    }

    #[test]
    fn a_deleted_key_is_forgotten_and_told() {
        let (keys, now) = (Keys::default(), Instant::now());
        let mut deletions = keys.deletions();
        keys.keep([1; 32], key(1), now);
        keys.keep([2; 32], key(2), now);
        keys.forget(KeyId(1));
        assert!(keys.recall(&[1; 32], now).is_none());
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
