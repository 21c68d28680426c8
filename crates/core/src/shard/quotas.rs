//! What the policies of domains allow their clients to send together. Accounts are spread evenly over the shards, and each shard has an even part of
//! what a domain may: no shard asks another.

use crate::connection::{Allowance, Received};
use crate::model::{DomainId, Domains, Map, Mono, Policy};
use crate::settings::Rates;

/// The domains that may not send as much as they like, and what they have sent.
#[derive(Debug, Default)]
pub struct Quotas {
    domains: Map<DomainId, Quota>,
}

#[derive(Debug)]
struct Quota {
    rates: Rates,
    spent: Allowance,
}

/// What of a rate may be used at once, in seconds.
const BURST_SECONDS: u32 = 5;

impl Quotas {
    /// What is allowed has changed. A domain that has a quota as before goes on with what it has sent.
    pub(crate) fn set(&mut self, domains: &Domains, shards: u16, now: Mono) {
        let mut before = std::mem::take(&mut self.domains);
        for domain in domains.iter() {
            let Some(rates) = part(&domain.policy, shards) else { continue };
            let spent = before.remove(&domain.id).map_or_else(|| Allowance::new(now), |quota| quota.spent);
            self.domains.insert(domain.id, Quota { rates, spent });
        }
    }

    /// Debits what came from a session of a domain. The milliseconds after which it is paid for.
    pub fn debit(&mut self, domain: DomainId, now: Mono, received: Received) -> u64 {
        match self.domains.get_mut(&domain) {
            Some(Quota { rates, spent }) => spent.spend(now, received, rates),
            None => 0,
        }
    }
}

/// What one of so many shards has of a domain's rates, if there are any.
fn part(policy: &Policy, shards: u16) -> Option<Rates> {
    let part = |rate: u32| rate.div_ceil(u32::from(shards).max(1));
    let (stanzas_per_second, bytes_per_second) =
        (part(policy.stanzas_per_second), part(policy.bytes_per_second));
    ((stanzas_per_second, bytes_per_second) != (0, 0)).then(|| Rates {
        stanzas_per_second,
        stanzas_burst: stanzas_per_second.saturating_mul(BURST_SECONDS),
        bytes_per_second,
        bytes_burst: bytes_per_second.saturating_mul(BURST_SECONDS),
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
}
