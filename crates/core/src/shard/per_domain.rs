//! What a shard counts per domain, for a bounded number of domains.

use crate::model::{DomainId, Domains};

/// The counts of one domain, or of several together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DomainCounters {
    /// Bound sessions now.
    pub sessions: u64,
    /// Topic items and notifications given to sessions.
    pub deliveries: u64,
    /// Notifications accepted.
    pub notifications_accepted: u64,
    /// Notifications acknowledged.
    pub notifications_acknowledged: u64,
    /// Notifications that ended without being acknowledged.
    pub notifications_ended: u64,
    /// How often a session was read more slowly because its domain sent as much as it may.
    pub sends_delayed: u64,
    /// What was refused because the domain, or an account of it, has as much as the domain's policy allows.
    pub refused: Refused,
}

/// Refusals by quotas of domains: in the order of [`DomainQuota::ALL`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refused([u64; DomainQuota::ALL.len()]);

/// A quota by which something is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DomainQuota {
    /// `accounts_max`.
    Accounts,
    /// `sessions_total_max`.
    Sessions,
    /// `topics_max` and `topics_owned_max`.
    Topics,
    /// `subscriptions_max`.
    Subscriptions,
    /// `rooms_max` and `rooms_owned_max`.
    Rooms,
    /// `bytes_out_per_second`.
    BytesOut,
    /// `stored_bytes_max`.
    StoredBytes,
}

impl DomainQuota {
    /// All of them.
    pub const ALL: [DomainQuota; 7] = [
        DomainQuota::Accounts,
        DomainQuota::Sessions,
        DomainQuota::Topics,
        DomainQuota::Subscriptions,
        DomainQuota::Rooms,
        DomainQuota::BytesOut,
        DomainQuota::StoredBytes,
    ];

    /// As figures name it.
    pub fn as_str(self) -> &'static str {
        match self {
            DomainQuota::Accounts => "accounts",
            DomainQuota::Sessions => "sessions",
            DomainQuota::Topics => "topics",
            DomainQuota::Subscriptions => "subscriptions",
            DomainQuota::Rooms => "rooms",
            DomainQuota::BytesOut => "bytes-out",
            DomainQuota::StoredBytes => "stored-bytes",
        }
    }
}

impl Refused {
    /// Counts a refusal.
    #[expect(clippy::indexing_slicing, reason = "there is one for each")]
    pub fn count(&mut self, by: DomainQuota) {
        self.0[by as usize] += 1;
    }

    /// How often this quota refused something.
    #[expect(clippy::indexing_slicing, reason = "there is one for each")]
    pub fn by(&self, quota: DomainQuota) -> u64 {
        self.0[quota as usize]
    }
}

/// What is counted by domain. The first domains have counters of their own, the others share theirs.
///
/// Whether a domain has counters of its own is decided once, when a shard first sees the domain, so that a session is
/// subtracted where it was added. All shards decide alike, because they see the same tables of domains in the same order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PerDomain {
    /// In the order of their numbers.
    known: Vec<(DomainId, DomainCounters)>,
    others: DomainCounters,
    /// The highest number seen. The store gives none twice.
    newest: Option<DomainId>,
}

impl PerDomain {
    /// The counters for a domain.
    #[expect(clippy::indexing_slicing, reason = "the search found this index")]
    pub fn of(&mut self, domain: DomainId) -> &mut DomainCounters {
        match self.known.binary_search_by_key(&domain, |(id, _)| *id) {
            Ok(at) => &mut self.known[at].1,
            Err(_) => &mut self.others,
        }
    }

    /// Gives new domains counters of their own while fewer than `max` have some, and forgets removed domains that have no
    /// session left.
    pub fn keep(&mut self, domains: &Domains, max: usize) {
        self.known.retain(|(id, counters)| domains.numbered(*id).is_some() || counters.sessions > 0);
        let mut new: Vec<DomainId> =
            domains.iter().map(|domain| domain.id).filter(|id| Some(*id) > self.newest).collect();
        new.sort_unstable();
        self.newest = new.last().copied().or(self.newest);
        new.truncate(max.saturating_sub(self.known.len()));
        self.known.extend(new.into_iter().map(|id| (id, DomainCounters::default())));
    }

    /// The domains with counters of their own, by their numbers.
    pub fn known(&self) -> &[(DomainId, DomainCounters)] {
        &self.known
    }

    /// The counts of all other domains together.
    pub fn others(&self) -> DomainCounters {
        self.others
    }

    /// Adds the counts of another shard.
    #[expect(clippy::indexing_slicing, reason = "the search found this index")]
    pub fn add(&mut self, other: &PerDomain) {
        self.others.add(&other.others);
        for (id, counters) in &other.known {
            match self.known.binary_search_by_key(id, |(known, _)| *known) {
                Ok(at) => self.known[at].1.add(counters),
                Err(at) => self.known.insert(at, (*id, *counters)),
            }
        }
    }
}

impl DomainCounters {
    fn add(&mut self, other: &DomainCounters) {
        self.sessions += other.sessions;
        self.deliveries += other.deliveries;
        self.notifications_accepted += other.notifications_accepted;
        self.notifications_acknowledged += other.notifications_acknowledged;
        self.notifications_ended += other.notifications_ended;
        self.sends_delayed += other.sends_delayed;
        self.refused.0.iter_mut().zip(other.refused.0).for_each(|(own, more)| *own += more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Domain, Policy};

    fn domains(ids: &[u32]) -> Domains {
        let domain = |id: &u32| Domain::new(DomainId(*id), format!("d{id}.example"), Policy::default());
        Domains::new(ids.iter().map(domain))
    }

    fn ids(counted: &PerDomain) -> Vec<u32> {
        counted.known().iter().map(|(id, _)| id.0).collect()
    }

    #[test]
    fn the_first_domains_have_their_own_and_the_rest_share() {
        let mut counted = PerDomain::default();
        counted.keep(&domains(&[3, 1, 2]), 2);
        assert_eq!(ids(&counted), [1, 2]);
        counted.of(DomainId(1)).deliveries += 1;
        counted.of(DomainId(3)).sessions += 1;
        // 2 goes, 4 is new and has room; 3 stays with the others, where its session was counted.
        counted.keep(&domains(&[1, 3, 4, 5]), 2);
        assert_eq!(ids(&counted), [1, 4]);
        counted.of(DomainId(3)).sessions -= 1;
        assert_eq!(counted.others(), DomainCounters::default());
        assert_eq!(counted.of(DomainId(1)).deliveries, 1);
    }

    #[test]
    fn a_domain_stays_until_its_last_session_is_gone() {
        let mut counted = PerDomain::default();
        counted.keep(&domains(&[1]), 10);
        counted.of(DomainId(1)).sessions += 1;
        counted.keep(&domains(&[]), 10);
        counted.of(DomainId(1)).sessions -= 1;
        assert_eq!(counted.others().sessions, 0);
        counted.keep(&domains(&[]), 10);
        assert!(counted.known().is_empty());
    }

    #[test]
    fn shards_are_summed() {
        let (mut one, mut other) = (PerDomain::default(), PerDomain::default());
        one.keep(&domains(&[2]), 10);
        other.keep(&domains(&[1, 2]), 10);
        one.of(DomainId(2)).deliveries += 1;
        other.of(DomainId(2)).deliveries += 2;
        other.of(DomainId(2)).refused.count(DomainQuota::Rooms);
        other.of(DomainId(9)).sessions += 1;
        one.add(&other);
        assert_eq!(ids(&one), [1, 2]);
        assert_eq!((one.of(DomainId(2)).deliveries, one.others().sessions), (3, 1));
        let refused = DomainQuota::ALL.map(|quota| one.of(DomainId(2)).refused.by(quota));
        assert_eq!(refused, [0, 0, 0, 0, 1, 0, 0]);
    }
}
