//! Links that were asked for lately, and that there are none: in memory, bounded in bytes.
//!
//! Two generations: what is asked for is in the young one, or comes there from the old one. When the young one is full it becomes the old
//! one, and what was there is dropped. So nothing is sorted, and finding something changes nothing but a count.

use super::code::CUSTOM_MAX;
use axum::http::{HeaderValue, StatusCode};
use carillon_core::model::{DomainId, LinkId, Map, UnixMs};
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Where a code leads.
#[derive(Debug)]
pub(super) enum Lead {
    /// There.
    To { location: HeaderValue, status: StatusCode, expires: Option<UnixMs>, created: UnixMs },
    /// Nowhere any more: it is taken down.
    Removed,
    /// Nowhere: there is no such link.
    Unknown,
}

/// A code, and where it leads.
#[derive(Debug)]
pub(super) struct CachedLink {
    pub(super) domain: DomainId,
    pub(super) link: LinkId,
    pub(super) lead: Lead,
    /// How often it was followed since that was counted last.
    pub(super) clicks: AtomicU64,
    /// Until when it is believed, Unix ms.
    fresh_until: AtomicU64,
}

impl CachedLink {
    pub(super) fn new(domain: DomainId, link: LinkId, lead: Lead, now: UnixMs) -> CachedLink {
        let kept = if matches!(lead, Lead::Unknown) { UNKNOWN_KEPT_MS } else { KEPT_MS };
        CachedLink {
            domain,
            link,
            lead,
            clicks: AtomicU64::new(0),
            fresh_until: AtomicU64::new(now.0 + kept),
        }
    }

    /// Whether it is to be believed. Of those who ask when its time is over one is told that it is not, and asks the store; the others
    /// are told so a little later.
    fn is_fresh(&self, now: UnixMs) -> bool {
        let until = self.fresh_until.load(Ordering::Relaxed);
        if now.0 < until {
            return true;
        }
        let later = now.0 + ASKING_MS;
        self.fresh_until.compare_exchange(until, later, Ordering::Relaxed, Ordering::Relaxed).is_err()
    }

    fn bytes(&self, key: &[u8]) -> usize {
        let location = if let Lead::To { location, .. } = &self.lead { location.len() } else { 0 };
        OVERHEAD + key.len() + location
    }
}

/// How long an entry is believed: what another node changed shows after this time.
const KEPT_MS: u64 = 60_000;
/// The same for one that says that there is no link.
const UNKNOWN_KEPT_MS: u64 = 5_000;
/// How long the store is given to say something newer.
const ASKING_MS: u64 = 2_000;
/// What an entry takes besides its texts: its place in a table, and itself.
const OVERHEAD: usize = 48 + size_of::<CachedLink>();
/// Parts that are locked apart.
const SHARDS: usize = 16;

/// The name of a code among those of all domains.
#[derive(Clone, Copy)]
pub(super) struct Key {
    bytes: [u8; 2 + CUSTOM_MAX],
    len: usize,
}

impl Key {
    /// Of a code of the hosts with this number; none if it is too long for a code.
    pub(super) fn new(number: u16, code: &[u8]) -> Option<Key> {
        let mut bytes = [0; 2 + CUSTOM_MAX];
        bytes[..2].copy_from_slice(&number.to_be_bytes());
        bytes.get_mut(2..2 + code.len())?.copy_from_slice(code);
        Some(Key { bytes, len: 2 + code.len() })
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Links that were asked for lately.
pub(super) struct Cache {
    shards: [Mutex<Shard>; SHARDS],
    hasher: carillon_core::model::Hashing,
    bytes_max: usize,
}

#[derive(Default)]
struct Shard {
    young: Map<Box<[u8]>, Arc<CachedLink>>,
    old: Map<Box<[u8]>, Arc<CachedLink>>,
    young_bytes: usize,
    old_bytes: usize,
    /// How often something in it was forgotten because it changed.
    changes: u64,
}

impl Cache {
    /// A cache of so many bytes.
    pub(super) fn new(bytes_max: usize) -> Cache {
        Cache { shards: Default::default(), hasher: Default::default(), bytes_max }
    }

    /// Where a code leads, if that is known and to be believed.
    pub(super) fn find(&self, key: &Key, now: UnixMs) -> Option<Arc<CachedLink>> {
        let mut shard = self.shard(key);
        let entry = match shard.young.get(key.as_bytes()) {
            Some(entry) => entry.clone(),
            None => {
                let (name, entry) = shard.old.remove_entry(key.as_bytes())?;
                let bytes = entry.bytes(&name);
                shard.old_bytes = shard.old_bytes.saturating_sub(bytes);
                shard.put(name, entry.clone(), self.bytes_max / SHARDS);
                entry
            }
        };
        drop(shard);
        entry.is_fresh(now).then_some(entry)
    }

    /// To be asked before the store is: what it says is kept only if nothing was changed since.
    pub(super) fn changes(&self, key: &Key) -> u64 {
        self.shard(key).changes
    }

    /// Keeps what the store said.
    pub(super) fn keep(&self, key: &Key, changes: u64, entry: Arc<CachedLink>) {
        let mut shard = self.shard(key);
        if shard.changes == changes {
            shard.forget(key);
            shard.put(key.as_bytes().into(), entry, self.bytes_max / SHARDS);
        }
    }

    /// Forgets a link that was changed.
    pub(super) fn forget(&self, key: &Key) {
        let mut shard = self.shard(key);
        shard.changes += 1;
        shard.forget(key);
    }

    /// Forgets all links of the hosts with this number.
    pub(super) fn forget_all(&self, number: u16) {
        for shard in &self.shards {
            let mut shard = lock(shard);
            let Shard { young, old, young_bytes, old_bytes, changes } = &mut *shard;
            *changes += 1;
            for (entries, bytes) in [(young, young_bytes), (old, old_bytes)] {
                entries.retain(|name, entry| {
                    let is_kept = !name.starts_with(&number.to_be_bytes());
                    *bytes -= if is_kept { 0 } else { entry.bytes(name) };
                    is_kept
                });
            }
        }
    }

    /// Bytes that are taken up.
    pub(super) fn bytes(&self) -> usize {
        self.shards.iter().map(lock).map(|shard| shard.young_bytes + shard.old_bytes).sum()
    }

    fn shard(&self, key: &Key) -> MutexGuard<'_, Shard> {
        let hash = self.hasher.hash_one(key.as_bytes());
        lock(&self.shards[(hash >> 56) as usize % SHARDS])
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shard {
    fn put(&mut self, name: Box<[u8]>, entry: Arc<CachedLink>, bytes_max: usize) {
        let bytes = entry.bytes(&name);
        if self.young_bytes + bytes > bytes_max / 2 {
            self.old = std::mem::take(&mut self.young);
            self.old_bytes = std::mem::take(&mut self.young_bytes);
        }
        self.young_bytes += bytes;
        self.young.insert(name, entry);
    }

    fn forget(&mut self, key: &Key) {
        if let Some((name, entry)) = self.young.remove_entry(key.as_bytes()) {
            self.young_bytes -= entry.bytes(&name);
        }
        if let Some((name, entry)) = self.old.remove_entry(key.as_bytes()) {
            self.old_bytes -= entry.bytes(&name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixMs = UnixMs(1_795_167_000_000);

    fn key(n: usize) -> Key {
        Key::new(0, format!("code{n}").as_bytes()).expect("it is short")
    }

    fn leads(url: &str) -> Arc<CachedLink> {
        let location = HeaderValue::from_str(url).expect("ASCII");
        let status = StatusCode::PERMANENT_REDIRECT;
        let lead = Lead::To { location, status, expires: None, created: NOW };
        Arc::new(CachedLink::new(DomainId(1), LinkId(1), lead, NOW))
    }

    #[test]
    fn it_is_bounded_in_bytes_and_keeps_what_is_asked_for() {
        let cache = Cache::new(1 << 20);
        let url = format!("https://example.com/{}", "a".repeat(1000));
        for n in 0..10_000 {
            cache.keep(&key(n), 0, leads(&url));
            assert!(cache.find(&key(0), NOW).is_some(), "it is asked for all the time, after {n}");
            assert!(cache.bytes() <= 1 << 20, "{} after {n}", cache.bytes());
        }
        let kept = (0..10_000).filter(|n| cache.find(&key(*n), NOW).is_some()).count();
        assert!((100..1000).contains(&kept), "{kept}");
    }

    #[test]
    fn what_was_read_before_a_change_is_not_kept_after_it() {
        let cache = Cache::new(1 << 20);
        let before = cache.changes(&key(1));
        cache.forget(&key(1));
        cache.keep(&key(1), before, leads("https://example.com/old"));
        assert!(cache.find(&key(1), NOW).is_none());
        cache.keep(&key(1), cache.changes(&key(1)), leads("https://example.com/new"));
        assert!(cache.find(&key(1), NOW).is_some());
        cache.forget(&key(1));
        assert!(cache.find(&key(1), NOW).is_none());
        assert_eq!(cache.bytes(), 0);
    }

    #[test]
    fn when_its_time_is_over_one_asks_and_the_others_go_on() {
        let cache = Cache::new(1 << 20);
        cache.keep(&key(1), 0, leads("https://example.com/"));
        assert!(cache.find(&key(1), NOW.plus(KEPT_MS - 1)).is_some());
        assert!(cache.find(&key(1), NOW.plus(KEPT_MS)).is_none(), "the first is to ask");
        assert!(cache.find(&key(1), NOW.plus(KEPT_MS)).is_some(), "the second need not");
        assert!(cache.find(&key(1), NOW.plus(KEPT_MS + ASKING_MS)).is_none(), "nothing newer came");
    }

    #[test]
    fn codes_of_domains_are_apart_and_none_is_too_long() {
        let cache = Cache::new(1 << 20);
        cache.keep(&key(1), 0, leads("https://example.com/"));
        let other = Key::new(1, b"code1").expect("short");
        assert!(cache.find(&other, NOW).is_none());
        cache.keep(&other, 0, leads("https://example.com/other"));
        cache.forget_all(0);
        assert!(cache.find(&key(1), NOW).is_none() && cache.find(&other, NOW).is_some());
        cache.forget_all(1);
        assert_eq!(cache.bytes(), 0);
        assert!(Key::new(0, &[b'a'; CUSTOM_MAX]).is_some() && Key::new(0, &[b'a'; CUSTOM_MAX + 1]).is_none());
    }
}
