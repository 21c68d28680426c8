//! What a shard counts. Plain numbers, read by the server between two turns of the shard's loop.

use super::{Latency, MatchFigures, ModuleFigures, PendingFanout, PerDomain, RoomFigures};
use crate::model::DomainId;

/// Counts since the start, and sizes now (the first six).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Connections now.
    pub connections: u64,
    /// Bound sessions now.
    pub sessions: u64,
    /// Of these, the parked ones: they have no connection.
    pub parked: u64,
    /// Sessions with available presence now.
    pub available: u64,
    /// Sessions of the light protocol now.
    pub light: u64,
    /// Deliveries of topics' events that wait now.
    pub backlog: PendingFanout,
    /// Logins that succeeded.
    pub logins: u64,
    /// Of these, the logins that asked the store nothing.
    pub logins_remembered: u64,
    /// Logins that failed, by the SASL condition that the client was told.
    pub login_failures: Reasons,
    /// Sessions that were resumed.
    pub resumed: u64,
    /// Sessions of dead nodes that go on here.
    pub sessions_adopted: u64,
    /// Sessions of dead nodes that cannot go on here.
    pub sessions_not_adopted: u64,
    /// 1 while sessions are to be written down and there is nobody to keep them.
    pub session_log_away: u64,
    /// Sessions that ended, by cause.
    pub sessions_ended: Reasons,
    /// Stanzas received from clients.
    pub stanzas_in: u64,
    /// Stanzas sent to clients.
    pub stanzas_out: u64,
    /// Stanzas that a feature took, by what it did with them.
    pub stanzas_taken: Reasons,
    /// Stanzas that were not given to a session when they came, by the reason.
    pub stanzas_held: Reasons,
    /// Topic items and notifications given to connections.
    pub deliveries: u64,
    /// Notifications accepted.
    pub notifications_accepted: u64,
    /// Notifications acknowledged.
    pub notifications_acknowledged: u64,
    /// Notifications that ended without an acknowledgement, by state; dropped ones by reason.
    pub notifications_ended: Reasons,
    /// Times that broadcasts were given to connections.
    pub broadcasts_given: u64,
    /// Accounts that acknowledged broadcasts.
    pub broadcasts_acknowledged: u64,
    /// Items published on topics whose home is here.
    pub published: u64,
    /// Items that did not come here from the home of their topic, and were read from the store.
    pub items_recovered: u64,
    /// Publications that were refused to topics whose home is here, because a shard was behind.
    pub too_fast: u64,
    /// Questions of this shard that the store could not answer.
    pub faults: u64,
    /// Notifications and messages whose end was not written before [`Retries`](super::Retries) gave up: they may be delivered
    /// again.
    pub given_up: u64,
    /// Stream errors sent, by condition.
    pub stream_errors: Reasons,
    /// Errors sent to clients of the light protocol, by code.
    pub light_errors: Reasons,
    /// Time from the acceptance of an item or a notification until it is given to a connection.
    pub latency: Latency,
    /// Time from giving a notification to a connection until the device acknowledges it.
    pub acknowledgement: Latency,
    /// Time from a client's first SASL element to the server's success.
    pub login: Latency,
    /// What is counted of each domain.
    pub domains: PerDomain,
    /// What is counted of each module that is active, in their order.
    pub modules: Vec<ModuleFigures>,
    /// What is counted of matches, and what there are of them now.
    pub matches: MatchFigures,
    /// What is counted of rooms, and what there are of them now.
    pub rooms: RoomFigures,
}

impl Counters {
    /// Counts an item or a notification that a session of this domain is given.
    pub fn delivered(&mut self, domain: DomainId) {
        self.deliveries += 1;
        self.domains.of(domain).deliveries += 1;
    }
}

/// Counts by reason. The reasons are constants of the program: a few dozen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reasons(Vec<(&'static str, u64)>);

impl Reasons {
    /// Counts one more.
    pub fn count(&mut self, reason: &'static str) {
        self.add(reason, 1);
    }

    /// Adds the counts of another shard.
    pub fn add_all(&mut self, others: &Reasons) {
        others.0.iter().for_each(|(reason, count)| self.add(reason, *count));
    }

    /// The sum over all reasons.
    pub fn total(&self) -> u64 {
        self.0.iter().map(|(_, count)| count).sum()
    }

    /// The reasons counted so far, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0.iter().copied()
    }

    fn add(&mut self, reason: &'static str, count: u64) {
        match self.0.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, sum)) => *sum += count,
            None => self.0.push((reason, count)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Reasons;

    #[test]
    fn reasons_are_summed_by_their_words() {
        let (mut one, mut other) = (Reasons::default(), Reasons::default());
        one.count("conflict");
        one.count("conflict");
        other.count("conflict");
        other.count("host-gone");
        one.add_all(&other);
        assert_eq!(one.iter().collect::<Vec<_>>(), [("conflict", 3), ("host-gone", 1)]);
        assert_eq!(one.total(), 4);
    }
}
