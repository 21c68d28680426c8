//! What a shard remembers of accounts beside their records: most of it is of few accounts or for a short time, and takes no memory for
//! the others. A record has a place of its own ([`Homes`](crate::session::homes::Homes)).

mod allowances;
mod altered;
mod login_cache;
mod recent;

pub use allowances::Allowances;
pub use altered::Altered;
pub use login_cache::{CachedLogin, LoginCache, LoginFound};
pub use recent::Recent;

use crate::model::{AccountId, Mono, Set};
use crate::settings::Rates;

/// What is remembered of the accounts at home on a shard.
#[derive(Debug, Default)]
pub struct Accounts {
    /// Those with more than one session: for all others, what concerns an account's other sessions is skipped.
    pub multi_session: Set<AccountId>,
    /// How much they may send.
    pub allowances: Allowances,
    /// Those whose right to log in was altered lately.
    pub altered: Altered,
    /// Those for which something was stored lately.
    pub stored_for: Recent,
    /// Those whose records changed lately.
    pub changed_records: Recent,
    /// Those whose next login needs no store.
    pub login_cache: LoginCache,
}

impl Accounts {
    /// Something of an account changed in the store: what was read of it before is out of date.
    pub fn changed(&mut self, account: &str) {
        self.stored_for.mark(account);
        self.login_cache.forget(account);
    }

    /// The record of an account changed.
    pub fn record_changed(&mut self, account: &str) {
        self.changed(account);
        self.changed_records.mark(account);
    }

    /// An account got another password or state, or was removed: logins under way that read it before fail.
    pub fn altered(&mut self, account: &str) {
        self.altered.note(account);
        self.changed(account);
    }

    /// Forgets what is of no use any more. `login_ms`: how long a login lasts at most, in milliseconds.
    pub fn tidy(&mut self, now: Mono, rates: &Rates, login_ms: u64) {
        self.allowances.tidy(now, rates);
        self.stored_for.tidy(now, login_ms);
        self.changed_records.tidy(now, login_ms);
        self.altered.tidy(now, login_ms);
    }
}
