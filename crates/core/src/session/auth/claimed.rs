//! A client that comes back with a token has said whose it is. Its account's home can tell whether that is so, perhaps
//! without asking anyone: so it goes there first.

use super::exchange::Authenticating;
use super::fast::{self, Proof};
use super::redeem::Found;
use super::wrap::Inline;
use crate::Effect;
use crate::model::{ConnId, DomainId};
use crate::node::{Cx, Remembered, Wake, home};
use crate::session::{Moving, Session};
use carillon_wire::jid::BareJid;

/// The client named its account and sent a proof that nobody checked yet.
#[derive(Debug)]
pub struct Claimed {
    pub(in crate::session) authenticating: Box<Authenticating>,
    claim: Claim,
}

/// Whose the client says it is, and its proof.
#[derive(Debug)]
pub(super) struct Claim {
    pub(super) inline: Inline,
    pub(super) account: BareJid,
    pub(super) mechanism: fast::Mechanism,
    pub(super) proof: Proof,
}

impl Claimed {
    pub(super) fn new(authenticating: Box<Authenticating>, claim: Claim) -> Box<Claimed> {
        Box::new(Claimed { authenticating, claim })
    }

    /// The account that it claims to be.
    pub fn account(&self) -> &BareJid {
        &self.claim.account
    }

    /// The account's domain.
    pub fn domain(&self) -> DomainId {
        self.authenticating.domain.id
    }

    /// Whether this is the account's home.
    pub fn is_home(&self, cx: &Cx<'_>) -> bool {
        home(self.account().as_str(), cx.hub.shards) == cx.hub.id
    }

    /// It has another name on the shard it came to, where the time for its login goes on.
    pub fn arrived(&mut self, conn: ConnId, cx: &mut Cx<'_>) {
        self.authenticating.io.conn = conn;
        cx.wake_in(conn, cx.hub.settings.timeouts.auth_ms, Wake::Login);
    }

    /// Leaves for its account's home.
    pub fn depart(self: Box<Self>, cx: &mut Cx<'_>) {
        let conn = self.authenticating.io.conn;
        let to = home(self.account().as_str(), cx.hub.shards);
        cx.out.push(Effect::Move { conn, to, moving: Box::new(Moving::Claimed(self)) });
    }

    /// At home, where the account is remembered.
    pub fn recalled(self, account: Remembered, cx: &mut Cx<'_>) -> Session {
        let Claimed { authenticating, claim } = self;
        let (stamp, identity, login) = account.into_login();
        authenticating.redeem(claim, Some(Found { identity, stamp, login: Some(login) }), cx)
    }

    /// At home, where nothing is known of the account: the store is asked.
    pub fn unknown(self, cx: &mut Cx<'_>) -> Session {
        let Claimed { authenticating, claim } = self;
        authenticating.ask_for(claim, cx)
    }
}
