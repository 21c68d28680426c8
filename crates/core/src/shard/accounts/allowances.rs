//! How much the sessions of an account may still send. The account has one allowance for all its sessions, and keeps what it owes when they
//! end: to log in once more, or anew, gains nothing.

use crate::connection::{Allowance, Received};
use crate::model::{AccountId, Map, Mono};
use crate::settings::Rates;

/// The allowances of accounts that sent something lately. Any other has all of its burst.
#[derive(Debug, Default)]
pub struct Allowances {
    accounts: Map<AccountId, Allowance>,
}

impl Allowances {
    /// Debits what came from a session of an account. The milliseconds after which the burst is no longer exceeded.
    pub fn debit(&mut self, account: AccountId, now: Mono, received: Received, rates: &Rates) -> u64 {
        self.accounts.entry(account).or_insert_with(|| Allowance::new(now)).spend(now, received, rates)
    }

    /// What an account owes, for a session that goes on in another process.
    pub(crate) fn of(&self, account: AccountId) -> Option<&Allowance> {
        self.accounts.get(&account)
    }

    /// A session came from another process, where its account owed this.
    pub(crate) fn take_in(&mut self, account: AccountId, now: Mono, owed: &Allowance) {
        self.accounts.entry(account).or_insert_with(|| Allowance::new(now)).owe(owed);
    }

    /// Forgets the accounts that owe nothing.
    pub fn tidy(&mut self, now: Mono, rates: &Rates) {
        self.accounts.retain(|_, allowance| allowance.owes(now, rates));
        if self.accounts.len() * 4 + 64 < self.accounts.capacity() {
            self.accounts.shrink_to(self.accounts.len() * 2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_that_has_paid_costs_nothing() {
        let (mut all, rates) = (Allowances::default(), Rates::default());
        let stanza = Received { counts: true, bytes: 1000 };
        for account in 0..10_000 {
            assert_eq!(all.debit(AccountId(account), Mono(0), stanza, &rates), 0);
        }
        all.tidy(Mono(1), &rates);
        assert_eq!(all.accounts.len(), 10_000, "a stanza is paid for in five milliseconds");
        all.tidy(Mono(5), &rates);
        assert!(all.accounts.is_empty() && all.accounts.capacity() <= 64);
    }

    #[test]
    fn what_one_session_spent_is_not_there_for_the_next() {
        let (mut all, rates) = (Allowances::default(), Rates::default());
        let (account, stanza) = (AccountId(1), Received { counts: true, bytes: 100 });
        let burst = (0..).take_while(|_| all.debit(account, Mono(0), stanza, &rates) == 0).count();
        assert_eq!(burst, rates.stanzas_burst as usize);
        let mut elsewhere = Allowances::default();
        elsewhere.take_in(account, Mono(0), all.of(account).expect("it owes"));
        assert_eq!(elsewhere.debit(account, Mono(0), stanza, &rates), 10);
        assert_eq!(all.debit(AccountId(2), Mono(0), stanza, &rates), 0);
    }
}
