//! Admission: bounds on connections, checked before a byte is read or a key is computed.

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
    /// The node has as many connections as it may.
    Full,
    /// The address has as many connections as it may.
    Address,
    /// Connections come faster than they may.
    Rate,
    /// As many handshakes as may are in flight.
    Busy,
    /// No descriptor is left.
    Descriptors,
    /// It comes from a trusted proxy, and did not begin with a PROXY header.
    ProxyHeader,
}

/// The bounds of a node. For each, 0 means no bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Connections of the node.
    pub connections: u64,
    /// Connections per address; an IPv6 /64 counts as one.
    pub connections_per_address: u32,
    /// Connections accepted per second, with a burst of the same number.
    pub connects_per_second: u32,
    /// Connections whose TLS handshake, or WebSocket upgrade, is not complete.
    pub handshakes_in_flight: u32,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            connections: 1_000_000,
            connections_per_address: 1000,
            connects_per_second: 10_000,
            handshakes_in_flight: 8192,
        }
    }
}

impl Bounds {
    /// No bound at all.
    pub const NONE: Bounds = Bounds {
        connections: 0,
        connections_per_address: 0,
        connects_per_second: 0,
        handshakes_in_flight: 0,
    };
}

/// The bounds of a node, and how far they are used. All shards share it. The counters are atomic; the counts per address
/// are in maps behind locks, one of which is taken when a connection comes and when it goes, and only if there is such a
/// bound.
#[derive(Debug)]
pub(crate) struct Admission {
    connections_max: AtomicU64,
    per_address_max: AtomicU32,
    /// Nanoseconds between two connections at the highest rate; 0 without a bound.
    interval_ns: AtomicU64,
    opening_max: AtomicU64,
    open: AtomicU64,
    /// Open connections whose handshake is not complete.
    opening: AtomicU64,
    /// When the bucket of the rate will be full again, in nanoseconds of [`Mono`] (GCRA).
    theoretical_ns: AtomicU64,
    addresses: [Mutex<HashMap<u64, u32>>; STRIPES],
    hasher: RandomState,
    /// A thread waits for `open` to become 0.
    has_waiter: AtomicBool,
    empty: (Mutex<()>, Condvar),
}

/// A connection's place among those that the node may have, released when it is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    admission: Arc<Admission>,
    address: u64,
    /// Its handshake is not complete.
    opening: bool,
}

impl Refusal {
    /// All of them, in the order of [`Refusal::index`].
    pub(crate) const ALL: [Refusal; 6] = [
        Refusal::Full,
        Refusal::Address,
        Refusal::Rate,
        Refusal::Busy,
        Refusal::Descriptors,
        Refusal::ProxyHeader,
    ];

    /// Its index in [`Refusal::ALL`].
    pub(crate) fn index(self) -> usize {
        self as usize
    }

    /// The least time until another try makes sense, in seconds.
    pub(crate) fn patience_s(self) -> u32 {
        match self {
            // A burst, or the handshakes in flight, are soon over.
            Refusal::Rate | Refusal::Busy => 2,
            // A connection must end first.
            Refusal::Full | Refusal::Address | Refusal::Descriptors | Refusal::ProxyHeader => 15,
        }
    }

    /// The reason as a label for logs and metrics.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Refusal::Full => "full",
            Refusal::Address => "address",
            Refusal::Rate => "rate",
            Refusal::Busy => "busy",
            Refusal::Descriptors => "descriptors",
            Refusal::ProxyHeader => "proxy-header",
        }
    }
}

impl Admission {
    /// Creates an admission with these bounds.
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

    /// Replaces the bounds, for connections that come from now on.
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

    /// Admits a connection from `address`, or returns why not.
    pub(crate) fn admit(self: &Arc<Self>, address: IpAddr, now: Mono) -> Result<Permit, Refusal> {
        let mut permit = self.admit_proxied(now)?;
        permit.count_for(address)?;
        Ok(permit)
    }

    /// Admits a connection whose address a proxy has yet to tell ([`Permit::count_for`]), or returns why not.
    pub(crate) fn admit_proxied(self: &Arc<Self>, now: Mono) -> Result<Permit, Refusal> {
        if self.open.fetch_add(1, Ordering::AcqRel) >= self.connections_max.load(Ordering::Relaxed) {
            self.release();
            return Err(Refusal::Full);
        }
        // From here on, dropping the permit undoes what was counted.
        let permit = Permit { admission: Arc::clone(self), address: UNCOUNTED, opening: true };
        if self.opening.fetch_add(1, Ordering::Relaxed) >= self.opening_max.load(Ordering::Relaxed) {
            return Err(Refusal::Busy);
        }
        if !self.keeps_pace(now) {
            return Err(Refusal::Rate);
        }
        Ok(permit)
    }

    /// Admits a connection that the process before this one had admitted, at its place there ([`Permit::place`]).
    pub(crate) fn readmit(self: &Arc<Self>, place: u64) -> Permit {
        self.open.fetch_add(1, Ordering::AcqRel);
        let is_counted = place != UNCOUNTED && self.per_address_max.load(Ordering::Relaxed) > 0;
        if is_counted {
            *self.stripe(place).entry(place).or_default() += 1;
        }
        let address = if is_counted { place } else { UNCOUNTED };
        Permit { admission: Arc::clone(self), address, opening: false }
    }

    /// Waits until no connection is open, `timeout` at most. Whether none is open.
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
            // Taking the lock ensures that the waiter is not between its check and its sleep.
            drop(self.empty.0.lock());
            self.empty.1.notify_all();
        }
    }
}

impl Permit {
    /// Counts it among the connections of an address, and of no other, unless that has as many as it may.
    pub(crate) fn count_for(&mut self, address: IpAddr) -> Result<(), Refusal> {
        self.uncount();
        let per_address_max = self.admission.per_address_max.load(Ordering::Relaxed);
        if per_address_max > 0 {
            let key = key(address);
            let mut counts = self.admission.stripe(key);
            let count = counts.entry(key).or_default();
            if *count >= per_address_max {
                return Err(Refusal::Address);
            }
            *count += 1;
            drop(counts);
            self.address = key;
        }
        Ok(())
    }

    /// Counts it among the connections of no address.
    fn uncount(&mut self) {
        let address = std::mem::replace(&mut self.address, UNCOUNTED);
        if address == UNCOUNTED {
            return;
        }
        let mut counts = self.admission.stripe(address);
        if let Some(count) = counts.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&address);
                // Frees the table that a storm from many addresses leaves behind.
                if counts.capacity() > 1024 && counts.len() < counts.capacity() / 8 {
                    counts.shrink_to_fit();
                }
            }
        }
    }

    /// What it counts for among the connections of an address.
    pub(crate) fn place(&self) -> u64 {
        self.address
    }

    /// The handshake of its connection is complete.
    pub(crate) fn opened(&mut self) {
        if std::mem::take(&mut self.opening) {
            self.admission.opening.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.opened();
        self.uncount();
        self.admission.release();
    }
}

/// What counts as one address: an IPv4 address, or an IPv6 /64, as a host has a whole one.
fn key(address: IpAddr) -> u64 {
    match address.to_canonical() {
        // Nobody has an address in 0:ffff::/64.
        IpAddr::V4(v4) => 0xffff_0000_0000 | u64::from(v4.to_bits()),
        IpAddr::V6(v6) => (v6.to_bits() >> 64) as u64,
    }
}

/// The key of a permit that is not counted per address. ffff:…/64 is multicast, so nobody connects from there.
const UNCOUNTED: u64 = u64::MAX;
const SECOND_NS: u64 = 1_000_000_000;
/// Maps of counts per address, so that shards seldom wait for the same lock.
const STRIPES: usize = 16;
