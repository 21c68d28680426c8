//! Who gets in: bounds on connections, decided before a byte is read or a key is computed.

use carillon_core::model::Mono;
use hashbrown::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Why a connection was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The node has as many as it may.
    Full,
    /// The address has as many as it may.
    Address,
    /// They come faster than they may.
    Rate,
    /// As many as may are on their way in: their handshakes come first.
    Busy,
    /// No descriptor is left for it.
    Descriptors,
}

/// The bounds of a node. 0 means none, for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Connections the node takes.
    pub connections: u64,
    /// Connections one address may have (an IPv6 /64 counts as one).
    pub connections_per_address: u32,
    /// Connections accepted a second, with a burst of as many.
    pub connects_per_second: u32,
    /// Connections whose TLS handshake, or WebSocket upgrade, is not complete.
    pub handshakes_in_flight: u32,
}

/// The bounds of a node, and how far they are used. Shared by the shards: all of it atomic but the count by address,
/// which is touched, in one of several maps, when a connection comes and when it goes, and only if there is such a bound.
#[derive(Debug)]
pub(crate) struct Admission {
    connections_max: AtomicU64,
    per_address_max: AtomicU32,
    /// Nanoseconds between two connections at the highest rate; 0 without a bound.
    interval_ns: AtomicU64,
    opening_max: AtomicU64,
    open: AtomicU64,
    /// Of these, those whose handshake is not complete.
    opening: AtomicU64,
    /// When the bucket of the rate will be full again, in nanoseconds of [`Mono`] (GCRA).
    theoretical_ns: AtomicU64,
    addresses: [Mutex<HashMap<u64, u32>>; STRIPES],
    hasher: RandomState,
    /// Someone waits for `open` to become 0.
    has_waiter: AtomicBool,
    empty: (Mutex<()>, Condvar),
}

/// A connection's place among those the node takes. Gives it back when it is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    admission: Arc<Admission>,
    address: u64,
    /// Its handshake is not complete.
    opening: bool,
}

impl Refusal {
    /// All of them, in the order of [`Refusal::index`].
    pub(crate) const ALL: [Refusal; 5] =
        [Refusal::Full, Refusal::Address, Refusal::Rate, Refusal::Busy, Refusal::Descriptors];

    /// Its place among all.
    pub(crate) fn index(self) -> usize {
        self as usize
    }

    /// How long until it is worth trying again, in seconds at least.
    pub(crate) fn patience_s(self) -> u32 {
        match self {
            // A second's burst, or the handshakes under way, are soon over.
            Refusal::Rate | Refusal::Busy => 2,
            // Somebody must leave first.
            Refusal::Full | Refusal::Address | Refusal::Descriptors => 15,
        }
    }

    /// The reason as a word for the log.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Refusal::Full => "full",
            Refusal::Address => "address",
            Refusal::Rate => "rate",
            Refusal::Busy => "busy",
            Refusal::Descriptors => "descriptors",
        }
    }
}

impl Admission {
    /// Admission within these bounds.
    pub(crate) fn new(bounds: Bounds) -> Admission {
        let admission = Admission {
            connections_max: AtomicU64::new(0),
            per_address_max: AtomicU32::new(0),
            interval_ns: AtomicU64::new(0),
            opening_max: AtomicU64::new(0),
            open: AtomicU64::new(0),
            opening: AtomicU64::new(0),
            theoretical_ns: AtomicU64::new(0),
            addresses: std::array::from_fn(|_| Mutex::default()),
            hasher: RandomState::new(),
            has_waiter: AtomicBool::new(false),
            empty: (Mutex::new(()), Condvar::new()),
        };
        admission.set(bounds);
        admission
    }

    /// Puts other bounds in force, for connections that come from now on.
    pub(crate) fn set(&self, bounds: Bounds) {
        let unless_0 = |n: u64| if n == 0 { u64::MAX } else { n };
        let interval = SECOND_NS.checked_div(u64::from(bounds.connects_per_second)).unwrap_or(0);
        self.connections_max.store(unless_0(bounds.connections), Ordering::Relaxed);
        self.per_address_max.store(bounds.connections_per_address, Ordering::Relaxed);
        self.interval_ns.store(interval, Ordering::Relaxed);
        self.opening_max.store(unless_0(bounds.handshakes_in_flight.into()), Ordering::Relaxed);
    }

    /// Connections whose handshake is not complete.
    pub(crate) fn opening(&self) -> u64 {
        self.opening.load(Ordering::Relaxed)
    }

    /// Connections open now.
    pub(crate) fn open(&self) -> u64 {
        self.open.load(Ordering::Relaxed)
    }

    /// Takes a connection from `address` in, or says why not.
    pub(crate) fn admit(self: &Arc<Self>, address: IpAddr, now: Mono) -> Result<Permit, Refusal> {
        if self.open.fetch_add(1, Ordering::AcqRel) >= self.connections_max.load(Ordering::Relaxed) {
            self.release();
            return Err(Refusal::Full);
        }
        // From here on dropping the permit undoes what was done.
        let mut permit = Permit { admission: Arc::clone(self), address: UNCOUNTED, opening: true };
        if self.opening.fetch_add(1, Ordering::Relaxed) >= self.opening_max.load(Ordering::Relaxed) {
            return Err(Refusal::Busy);
        }
        if !self.keeps_pace(now) {
            return Err(Refusal::Rate);
        }
        let per_address_max = self.per_address_max.load(Ordering::Relaxed);
        if per_address_max > 0 {
            let key = key(address);
            let mut counts = self.stripe(key);
            let count = counts.entry(key).or_default();
            if *count >= per_address_max {
                return Err(Refusal::Address);
            }
            *count += 1;
            drop(counts);
            permit.address = key;
        }
        Ok(permit)
    }

    /// Waits until no connection is open, or `timeout` is over. Whether none is.
    pub(crate) fn wait_until_empty(&self, timeout: Duration) -> bool {
        self.has_waiter.store(true, Ordering::SeqCst);
        let deadline = Instant::now() + timeout;
        let mut guard = self.empty.0.lock().unwrap_or_else(PoisonError::into_inner);
        while self.open.load(Ordering::SeqCst) > 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            guard = self.empty.1.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// The generic cell rate algorithm, with a burst of one second's worth.
    fn keeps_pace(&self, now: Mono) -> bool {
        let interval_ns = self.interval_ns.load(Ordering::Relaxed);
        if interval_ns == 0 {
            return true;
        }
        let now = now.0 * (SECOND_NS / 1000);
        let step = |theoretical: u64| {
            let next = theoretical.max(now) + interval_ns;
            (next <= now + SECOND_NS.max(interval_ns)).then_some(next)
        };
        self.theoretical_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, step).is_ok()
    }

    fn stripe(&self, key: u64) -> MutexGuard<'_, HashMap<u64, u32>> {
        let stripe = self.hasher.hash_one(key) as usize % STRIPES;
        self.addresses[stripe].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn release(&self) {
        if self.open.fetch_sub(1, Ordering::SeqCst) == 1 && self.has_waiter.load(Ordering::SeqCst) {
            // Taking the lock makes sure that the waiter is not between its look and its sleep.
            drop(self.empty.0.lock());
            self.empty.1.notify_all();
        }
    }
}

impl Permit {
    /// The handshake of its connection is complete: another may begin.
    pub(crate) fn opened(&mut self) {
        if std::mem::take(&mut self.opening) {
            self.admission.opening.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.opened();
        if self.address != UNCOUNTED {
            let mut counts = self.admission.stripe(self.address);
            if let Some(count) = counts.get_mut(&self.address) {
                *count -= 1;
                if *count == 0 {
                    counts.remove(&self.address);
                    // A storm from many addresses leaves no large table behind.
                    if counts.capacity() > 1024 && counts.len() < counts.capacity() / 8 {
                        counts.shrink_to_fit();
                    }
                }
            }
        }
        self.admission.release();
    }
}

/// What is counted as one address: an IPv4 address, or the /64 that an IPv6 host is given whole.
fn key(address: IpAddr) -> u64 {
    match address.to_canonical() {
        // Nobody has an address in 0:ffff::/64.
        IpAddr::V4(v4) => 0xffff_0000_0000 | u64::from(v4.to_bits()),
        IpAddr::V6(v6) => (v6.to_bits() >> 64) as u64,
    }
}

/// The permit is not counted by address. ffff:…/64 is multicast, nobody connects from there.
const UNCOUNTED: u64 = u64::MAX;
const SECOND_NS: u64 = 1_000_000_000;
/// Maps of addresses, so that shards seldom meet at one.
const STRIPES: usize = 16;
