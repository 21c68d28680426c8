//! A client that proved which account it is.

use super::claimant::Claimant;
use crate::connection::Client;
use crate::model::{AccountId, DomainId, Identity, Login, Moment, Revocations};
use crate::sasl::{Mechanism, Stamp};
use crate::session::Cx;
use crate::shard::{Deadline, LoginFound};
use carillon_wire::jid::{AccountJid, Jid};
use carillon_wire::stanza::{Condition, StanzaError};

/// A proof that was right, before the client is told.
#[derive(Debug)]
pub struct Proved {
    pub(super) claimant: Claimant,
    pub(super) identity: Identity,
    /// The mechanism; none for one of a feature, which SASL2 names.
    pub(super) mechanism: Option<Mechanism>,
    /// The data that the mechanism sends with the success.
    pub(super) data: Option<Vec<u8>>,
    /// The stamp of the account's keys, if its login is to be cached.
    pub(super) stamp: Option<Stamp>,
    /// What belongs to the account, from the cache: then the store is not asked.
    pub(super) login: Option<Box<Login>>,
}

/// Proof that the client is the account: only SASL makes one.
#[derive(Debug)]
pub struct Authenticated {
    jid: AccountJid,
    domain: DomainId,
    account: AccountId,
    revocations: Revocations,
    /// When what proves it was read: what was altered later is not known to it.
    since: Moment,
    stamp: Option<Stamp>,
    login: Option<Box<Login>>,
}

impl Proved {
    /// The account.
    pub fn account(&self) -> &AccountJid {
        &self.claimant.account
    }

    /// Who the account is. From the cache it comes without keys, but with a stamp.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The stamp of the account's keys, if its login is to be cached.
    pub fn stamp(&self) -> Option<Stamp> {
        self.stamp
    }

    /// Has what the login reads cached with the stamp of the account's keys, so that the next login need not ask the store.
    pub fn remember(&mut self, stamp: Stamp) {
        self.stamp = Some(stamp);
    }

    /// Makes the proof that binding a resource needs. The keys are dropped.
    pub(super) fn authenticated(self, client: &mut Client, cx: &mut Cx<'_>) -> Authenticated {
        cx.shard.counters.logins += 1;
        cx.shard.counters.login.record(cx.now.mono.since(client.began));
        client.io.reader.trust(&cx.shard.settings.limits);
        cx.set_deadline(client.io.conn, cx.shard.settings.timeouts.bind_ms, Deadline::Bind);
        let Proved { claimant, identity, stamp, login, .. } = self;
        let Identity { account, revocations, .. } = identity;
        let (jid, domain, since) = (claimant.account, client.domain.id, claimant.since);
        Authenticated { jid, domain, account, revocations, since, stamp, login }
    }
}

impl Authenticated {
    /// The account.
    pub fn jid(&self) -> &AccountJid {
        &self.jid
    }

    /// Its domain.
    pub fn domain(&self) -> DomainId {
        self.domain
    }

    /// Its number.
    pub fn account(&self) -> AccountId {
        self.account
    }

    /// The full JID for a client that asks for this resource, or for any.
    pub(super) fn resource(&self, wanted: Option<String>, cx: &mut Cx<'_>) -> Result<Jid, StanzaError> {
        let resource = wanted.unwrap_or_else(|| cx.shard.random.token());
        self.jid.with_resource(&resource).map_err(|_| {
            let error = StanzaError::new(Condition::BadRequest);
            error.with_text("the resource cannot be prepared (RFC 7622 §3.4)")
        })
    }

    /// Whether the account's password or state was altered since the client proved itself by what they were.
    pub fn is_outdated(&self, cx: &Cx<'_>) -> bool {
        cx.shard.accounts.altered.is_after(self.jid.as_str(), self.since)
    }

    /// What belongs to the account, from the cache.
    pub fn take_login(&mut self) -> Option<Box<Login>> {
        self.login.take()
    }

    /// Caches what was read of the account, if a feature wants that.
    pub fn remember(&self, login: &Login, cx: &mut Cx<'_>) {
        if let Some(stamp) = self.stamp {
            let known = LoginFound { account: self.account, revocations: &self.revocations, login };
            cx.remember(&self.jid, self.domain, known, stamp);
        }
    }
}
