//! Accounts that logged in with a token, or were given one: what their next login needs, so that it asks no store
//! (docs/adr/0006).
//!
//! Entries are never stale: every change happens at the account's home or is reported to it, and evicts the account. Bounded:
//! two generations, of which the older is dropped when the younger is full.

use crate::model::{
    AccountId, AccountState, Credentials, DomainId, Domains, Generation, Identity, Login, LoginBacklog, Map,
    Revocations, Subscription, TopicId,
};
use crate::sasl::Stamp;
use carillon_wire::jid::BareJid;

/// The accounts that a shard remembers.
#[derive(Debug, Default)]
pub struct LoginCache {
    young: Map<BareJid, CachedLogin>,
    old: Map<BareJid, CachedLogin>,
}

/// What is known of an account that is enabled and for which nothing waits.
#[derive(Clone, Debug)]
pub struct CachedLogin {
    account: AccountId,
    domain: DomainId,
    stamp: Stamp,
    /// Boxed, because few accounts have any.
    revocations: Option<Box<Revocations>>,
    topics: Box<[TopicId]>,
    record: Generation,
}

/// What a login found out about an account.
#[derive(Clone, Copy, Debug)]
pub struct LoginFound<'a> {
    /// The account.
    pub account: AccountId,
    /// Which of its tokens were revoked.
    pub revocations: &'a Revocations,
    /// What belongs to it.
    pub login: &'a Login,
}

impl LoginCache {
    /// Remembers what a login found, unless something waits for the account: then the next login asks the store again.
    pub fn remember(
        &mut self,
        name: &BareJid,
        domain: DomainId,
        known: LoginFound<'_>,
        stamp: Stamp,
        max: usize,
    ) {
        let LoginFound { account, revocations, login } = known;
        if max == 0 || login.waiting != LoginBacklog::default() {
            return;
        }
        let account = CachedLogin {
            account,
            domain,
            stamp,
            revocations: (!revocations.is_empty()).then(|| Box::new(revocations.clone())),
            topics: login.subscriptions.iter().map(|s| s.topic).collect(),
            record: login.record,
        };
        self.put(name.clone(), account, max);
    }

    /// The entry of an account.
    pub fn recall(&mut self, name: &BareJid, domain: DomainId, max: usize) -> Option<CachedLogin> {
        if let Some(account) = self.old.remove(name) {
            self.put(name.clone(), account, max);
        }
        self.young.get(name).filter(|account| account.domain == domain).cloned()
    }

    /// Forgets an account: something changed.
    pub fn forget(&mut self, name: &str) {
        if self.young.remove(name).is_none() {
            self.old.remove(name);
        }
    }

    /// Forgets the accounts of removed domains.
    pub fn keep_domains(&mut self, domains: &Domains) {
        for accounts in [&mut self.young, &mut self.old] {
            accounts.retain(|_, account| domains.numbered(account.domain).is_some());
        }
    }

    /// Forgets the accounts whose home is elsewhere: changes of theirs are not heard of here.
    pub fn keep_homes(&mut self, is_here: impl Fn(&str) -> bool) {
        for accounts in [&mut self.young, &mut self.old] {
            accounts.retain(|name, _| is_here(name.as_str()));
        }
    }

    /// How many accounts are remembered.
    pub fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    /// Whether the cache is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn put(&mut self, name: BareJid, account: CachedLogin, max: usize) {
        self.old.remove(&name);
        if self.young.len() >= (max / 2).max(1) && !self.young.contains_key(&name) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(name, account);
    }
}

impl CachedLogin {
    /// The topics it follows.
    pub fn topics(&self) -> &[TopicId] {
        &self.topics
    }

    /// What the store would answer, but without the last items, which the shard knows, and with a stamp in place of the keys.
    pub fn into_login(self) -> (Stamp, Identity, Box<Login>) {
        let subscription = |topic: &TopicId| Subscription { topic: *topic, last: None, revision: None };
        let identity = Identity {
            account: self.account,
            credentials: Credentials::default(),
            state: AccountState::Enabled,
            revocations: self.revocations.map(|revocations| *revocations).unwrap_or_default(),
        };
        let login = Login {
            state: AccountState::Enabled,
            subscriptions: self.topics.iter().map(subscription).collect(),
            waiting: LoginBacklog::default(),
            generation: Generation::default(),
            record: self.record,
        };
        (self.stamp, identity, Box::new(login))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOMAIN: DomainId = DomainId(1);

    fn name(n: u32) -> BareJid {
        BareJid::new(&format!("u{n}@localhost")).expect("a JID")
    }

    fn login(topics: &[i64]) -> Login {
        let stamp = Stamp::of(b"", &name(0), &Credentials::default());
        let topics = topics.iter().map(|n| TopicId(*n as _)).collect();
        let account = AccountId(1);
        let record = Generation::default();
        let remembered = CachedLogin { account, domain: DOMAIN, stamp, revocations: None, topics, record };
        *remembered.into_login().2
    }

    fn known(login: &Login) -> LoginFound<'_> {
        static NONE: std::sync::LazyLock<Revocations> = std::sync::LazyLock::new(Revocations::default);
        LoginFound { account: AccountId(1), revocations: &NONE, login }
    }

    fn remember(login_cache: &mut LoginCache, n: u32, login: &Login) {
        let stamp = Stamp::of(b"", &name(n), &Credentials::default());
        login_cache.remember(&name(n), DOMAIN, known(login), stamp, 4);
    }

    #[test]
    fn is_bounded_and_keeps_those_that_come_back() {
        let mut login_cache = LoginCache::default();
        for n in 0..100 {
            remember(&mut login_cache, n, &login(&[1, 2]));
            assert!(login_cache.recall(&name(0), DOMAIN, 4).is_some(), "{n}");
            assert!(login_cache.len() <= 4);
        }
        assert!(login_cache.recall(&name(50), DOMAIN, 4).is_none());
        let (_, _, known) = login_cache.recall(&name(99), DOMAIN, 4).expect("the last").into_login();
        assert_eq!(known.subscriptions.iter().map(|s| s.topic.0).collect::<Vec<_>>(), [1, 2]);
        login_cache.forget("u99@localhost");
        assert!(login_cache.recall(&name(99), DOMAIN, 4).is_none());
        login_cache.keep_domains(&Domains::default());
        assert!(login_cache.is_empty());
    }

    #[test]
    fn passes_over_accounts_for_which_something_waits() {
        let mut login_cache = LoginCache::default();
        for (n, waiting) in [(true, false), (false, true)].into_iter().enumerate() {
            let waiting = LoginBacklog { notifications: waiting.0, messages: waiting.1 };
            remember(&mut login_cache, n as u32, &Login { waiting, ..login(&[]) });
        }
        let stamp = Stamp::of(b"", &name(3), &Credentials::default());
        login_cache.remember(&name(3), DOMAIN, known(&login(&[])), stamp, 0);
        assert!(login_cache.is_empty());
        remember(&mut login_cache, 4, &login(&[]));
        assert!(
            login_cache.recall(&name(4), DomainId(2), 4).is_none(),
            "a domain of the same name, made anew"
        );
    }
}
