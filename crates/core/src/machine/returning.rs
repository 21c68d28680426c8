//! Clients that claim an account, at the account's home: one whose proof a feature checks may be in the login cache there.

use super::Turn;
use crate::connection::Claimed;
use crate::session::Session;
use crate::shard::CachedLogin;

impl Turn<'_> {
    /// Goes on with a client that claims an account, if this is the account's home.
    pub(super) fn claimed(&mut self, session: Session) -> Session {
        let claimed = match session {
            Session::Claimed(claimed) if self.is_home_of(&claimed) => claimed,
            other => return other,
        };
        let remembered = claimed.is_for_feature().then(|| self.recall(&claimed)).flatten();
        self.cx.shard.counters.logins_remembered += u64::from(remembered.is_some());
        claimed.at_home(remembered, &mut self.cx)
    }

    /// The cached login of an account, if the login needs nothing else.
    fn recall(&mut self, claimed: &Claimed) -> Option<CachedLogin> {
        let (name, max) = (claimed.account(), self.cx.shard.cached_logins_max());
        let account = self.cx.shard.accounts.login_cache.recall(name, claimed.domain(), max)?;
        // The store has what another session has yet to acknowledge, and gives it to this one, too.
        let sessions = self.sessions.bound_of(name.as_str());
        let hooks = &self.cx.pipeline.in_flight;
        let in_flight = sessions.iter().any(|session| hooks.iter().any(|hook| hook(session)));
        // What the shard knows of a topic includes its last item.
        let knows_topics =
            account.topics().iter().all(|topic| self.cx.shard.topics.subscribers.knows_last(*topic));
        (!in_flight && knows_topics).then_some(account)
    }
}
