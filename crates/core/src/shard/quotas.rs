//! What the policies of domains allow their clients to do together. Accounts are spread evenly over the shards, and each shard has an even part of
//! what a domain may: no shard asks another.

use crate::connection::{Allowance, Received};
use crate::model::{DomainId, Domains, Map, Mono, Policy};
use crate::settings::Rates;

/// The domains that may not do as much as they like, what they have done, and how many sessions each domain has.
#[derive(Debug, Default)]
pub struct Quotas {
    domains: Map<DomainId, Quota>,
    /// Of every domain that has some: a bound may come later than they do.
    sessions: Map<DomainId, u32>,
}

#[derive(Debug)]
struct Quota {
    part: Part,
    sent: Allowance,
    given: Allowance,
    /// When others were told last that all was given.
    told: Option<Mono>,
    /// Until when sessions on other shards are paid for.
    given_elsewhere: Mono,
}

/// What one shard has of what a domain may.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// What its clients send.
    sent: Rates,
    /// What they are given.
    given: Rates,
    /// Their sessions; 0 for any number.
    sessions: u32,
}

/// How often other shards are told that all was given, at most, in milliseconds.
const TOLD_EVERY_MS: u64 = 250;

/// The longest that what another shard says counts, in milliseconds: it says it again.
const ELSEWHERE_MS_MAX: u64 = 60_000;

/// What of a rate may be used at once, in seconds.
const BURST_SECONDS: u32 = 5;

/// The longest that a client is not read because of what others of its domain are given, in milliseconds: whoever asks whether the server is
/// still there is answered.
const GIVEN_WAIT_MS_MAX: u64 = 5000;

impl Quotas {
    /// What is allowed has changed. A domain that has a quota as before goes on with what it has used.
    pub(crate) fn set(&mut self, domains: &Domains, shards: u16, now: Mono) {
        let mut before = std::mem::take(&mut self.domains);
        for domain in domains.iter() {
            let Some(part) = part(&domain.policy, shards) else { continue };
            let quota = match before.remove(&domain.id) {
                Some(quota) => Quota { part, ..quota },
                None => Quota {
                    part,
                    sent: Allowance::new(now),
                    given: Allowance::new(now),
                    told: None,
                    given_elsewhere: Mono(0),
                },
            };
            self.domains.insert(domain.id, quota);
        }
    }

    /// Debits what came from a session of a domain. The milliseconds after which that is paid for, and what its sessions were given.
    pub fn debit(&mut self, domain: DomainId, now: Mono, received: Received) -> u64 {
        match self.domains.get_mut(&domain) {
            Some(Quota { part, sent, given, .. }) => {
                let wait = given.give(now, 0, &part.given).min(GIVEN_WAIT_MS_MAX);
                sent.spend(now, received, &part.sent).max(wait)
            }
            None => 0,
        }
    }

    /// Debits what a session of a domain is given. The milliseconds after which that is paid for, where other shards are to be told.
    pub fn give(&mut self, domain: DomainId, now: Mono, bytes: usize) -> Option<u64> {
        let Quota { part, given, told, .. } = self.domains.get_mut(&domain)?;
        let wait = given.give(now, bytes, &part.given);
        let is_told = told.is_some_and(|told| now.since(told) < TOLD_EVERY_MS);
        if wait == 0 || is_told {
            return None;
        }
        *told = Some(now);
        Some(wait)
    }

    /// The sessions of a domain on another shard were given more than they may.
    pub(crate) fn given_elsewhere(&mut self, domain: DomainId, now: Mono, wait_ms: u64) {
        if let Some(quota) =
            self.domains.get_mut(&domain).filter(|quota| quota.part.given.bytes_per_second > 0)
        {
            quota.given_elsewhere = quota.given_elsewhere.max(now.plus(wait_ms.min(ELSEWHERE_MS_MAX)));
        }
    }

    /// Whether the sessions of a domain, on this shard or another, were given as much as they may.
    pub fn is_given_all(&mut self, domain: DomainId, now: Mono) -> bool {
        self.domains.get_mut(&domain).is_some_and(|quota| {
            quota.given_elsewhere > now || quota.given.give(now, 0, &quota.part.given) > 0
        })
    }

    /// Whether a domain has as many sessions as it may when `ending` of them make room.
    pub fn is_full_of_sessions(&self, domain: DomainId, ending: usize) -> bool {
        let most = self.domains.get(&domain).map_or(0, |quota| quota.part.sessions);
        let present = self.sessions.get(&domain).copied().unwrap_or(0) as usize;
        most > 0 && present.saturating_sub(ending) >= most as usize
    }

    /// A session of a domain begins.
    pub(crate) fn begin_session(&mut self, domain: DomainId) {
        *self.sessions.entry(domain).or_default() += 1;
    }

    /// A session of a domain has ended.
    pub(crate) fn end_session(&mut self, domain: DomainId) {
        if let Some(sessions) = self.sessions.get_mut(&domain) {
            *sessions -= 1;
            if *sessions == 0 {
                self.sessions.remove(&domain);
            }
        }
    }
}

/// What one of so many shards has of what a domain may, if anything of it is bounded.
fn part(policy: &Policy, shards: u16) -> Option<Part> {
    let part = |rate: u32| rate.div_ceil(u32::from(shards).max(1));
    let rates = |stanzas: u32, bytes: u32| Rates {
        stanzas_per_second: part(stanzas),
        stanzas_burst: part(stanzas).saturating_mul(BURST_SECONDS),
        bytes_per_second: part(bytes),
        bytes_burst: part(bytes).saturating_mul(BURST_SECONDS),
    };
    let Policy { stanzas_per_second, bytes_per_second, bytes_out_per_second, sessions_total_max, .. } =
        *policy;
    let is_bounded =
        (stanzas_per_second, bytes_per_second, bytes_out_per_second, sessions_total_max) != (0, 0, 0, 0);
    is_bounded.then(|| Part {
        sent: rates(stanzas_per_second, bytes_per_second),
        given: rates(0, bytes_out_per_second),
        sessions: part(sessions_total_max),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Domain;

    const A: DomainId = DomainId(1);
    const B: DomainId = DomainId(2);

    fn domains(stanzas_per_second: u32) -> Domains {
        let policy = Policy { stanzas_per_second, ..Policy::default() };
        let domain = |id, policy| Domain::new(id, format!("d{}.example", id.0), policy);
        Domains::new([domain(A, policy), domain(B, Policy::default())])
    }

    #[test]
    fn a_domain_has_its_part_of_each_shard_and_others_have_no_bound() {
        let (mut quotas, stanza) = (Quotas::default(), Received { counts: true, bytes: 100 });
        let at_once = |quotas: &mut Quotas, domain, now| {
            (0..1000).take_while(|_| quotas.debit(domain, now, stanza) == 0).count()
        };
        quotas.set(&domains(40), 4, Mono(0));
        assert_eq!(at_once(&mut quotas, A, Mono(0)), 50, "five seconds' worth of ten per second");
        assert_eq!(at_once(&mut quotas, B, Mono(0)), 1000);
        // Of the one that was too many nothing is forgotten by a change of another domain, nor by time that has not passed.
        quotas.set(&domains(40), 4, Mono(0));
        assert_eq!(at_once(&mut quotas, A, Mono(200)), 1);
        quotas.set(&domains(0), 4, Mono(0));
        assert_eq!(at_once(&mut quotas, A, Mono(200)), 1000);
    }

    #[test]
    fn the_smallest_quota_still_lets_something_pass() {
        let mut quotas = Quotas::default();
        quotas.set(&domains(1), 64, Mono(0));
        assert_eq!(quotas.debit(A, Mono(0), Received { counts: true, bytes: 100 }), 0);
    }

    fn with(policy: Policy) -> Quotas {
        let mut quotas = Quotas::default();
        quotas.set(&Domains::new([Domain::new(A, "a.example", policy)]), 2, Mono(0));
        quotas
    }

    #[test]
    fn what_clients_are_given_is_paid_for_by_those_who_send() {
        let mut quotas = with(Policy { bytes_out_per_second: 2000, ..Policy::default() });
        let received = Received { counts: true, bytes: 100 };
        assert_eq!(quotas.give(A, Mono(0), 5000), None);
        assert!(!quotas.is_given_all(A, Mono(0)), "five seconds' worth at once");
        assert_eq!(quotas.debit(A, Mono(0), received), 0);
        assert_eq!(quotas.give(A, Mono(0), 500), Some(500), "others are to be told");
        assert_eq!(quotas.give(A, Mono(0), 0), None, "they were");
        assert!(quotas.is_given_all(A, Mono(0)));
        assert_eq!(quotas.debit(A, Mono(0), received), 500);
        assert_eq!(quotas.debit(B, Mono(0), received), 0);
        assert!(!quotas.is_given_all(A, Mono(500)));
        assert_eq!(quotas.give(A, Mono(500), 1_000_000), Some(1_000_000));
        assert_eq!(
            quotas.debit(A, Mono(500), received),
            GIVEN_WAIT_MS_MAX,
            "a client is read again before it gives up"
        );
    }

    #[test]
    fn what_is_given_elsewhere_counts_for_topics_and_not_for_clients() {
        let mut quotas = with(Policy { bytes_out_per_second: 2000, ..Policy::default() });
        quotas.given_elsewhere(A, Mono(1000), 500);
        quotas.given_elsewhere(A, Mono(1000), 100);
        quotas.given_elsewhere(B, Mono(1000), 500);
        assert!(quotas.is_given_all(A, Mono(1499)) && !quotas.is_given_all(A, Mono(1500)));
        assert!(!quotas.is_given_all(B, Mono(1000)));
        assert_eq!(quotas.debit(A, Mono(1000), Received { counts: true, bytes: 100 }), 0);
    }

    #[test]
    fn sessions_are_counted_before_there_is_a_bound() {
        let mut quotas = Quotas::default();
        (0..3).for_each(|_| quotas.begin_session(A));
        quotas.begin_session(B);
        assert!(!quotas.is_full_of_sessions(A, 0));
        let policy = Policy { sessions_total_max: 6, ..Policy::default() };
        quotas.set(&Domains::new([Domain::new(A, "a.example", policy)]), 2, Mono(0));
        assert!(quotas.is_full_of_sessions(A, 0));
        assert!(!quotas.is_full_of_sessions(A, 1), "the session that a new one replaces makes room");
        assert!(!quotas.is_full_of_sessions(B, 0));
        quotas.end_session(A);
        assert!(!quotas.is_full_of_sessions(A, 0));
    }
}
