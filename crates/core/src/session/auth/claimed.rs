//! A client has said whose it is. All that comes of it happens at that account's home, which knows what else is tried there
//! and what was altered meanwhile, and may remember what a token needs: so the connection goes there first.

use super::Authenticating;
use super::redeem::{Found, TokenClaim};
use crate::Effect;
use crate::connection::{Claim, Claimed, Proof};
use crate::model::{ConnId, DomainId};
use crate::sasl::Wrap;
use crate::session::{Cx, Session};
use crate::shard::{CachedLogin, Wake, home};
use carillon_wire::jid::BareJid;

impl Claimed {
    /// Of a client whose exchange has only begun.
    pub(super) fn new(authenticating: Box<Authenticating>, claim: Claim) -> Box<Claimed> {
        Box::new(Claimed { client: authenticating.client, claim })
    }

    /// The account that it claims to be.
    pub fn account(&self) -> &BareJid {
        &self.claim.account
    }

    /// The account's domain.
    pub fn domain(&self) -> DomainId {
        self.client.domain.id
    }

    /// Whether it brings a token: then what the node remembers may do.
    pub fn has_token(&self) -> bool {
        matches!(self.claim.proof, Proof::Token(..))
    }

    /// Whether this is the account's home.
    pub fn is_home(&self, cx: &Cx<'_>) -> bool {
        home(self.account().as_str(), cx.shard.shard_count) == cx.shard.id
    }

    /// It has another name on the shard it came to, where the time for its login goes on.
    pub fn arrived(&mut self, conn: ConnId, cx: &mut Cx<'_>) {
        self.client.io.conn = conn;
        cx.wake_in(conn, cx.shard.settings.timeouts.auth_ms, Wake::Login);
    }

    /// Leaves for its account's home.
    pub fn depart(self: Box<Self>, cx: &mut Cx<'_>) {
        let conn = self.client.io.conn;
        let to = home(self.account().as_str(), cx.shard.shard_count);
        cx.out.push(Effect::Move { conn, to, moving: self });
    }

    /// At home, with a token for an account that is remembered.
    pub fn recalled(self, account: CachedLogin, cx: &mut Cx<'_>) -> Session {
        let Claimed { client, claim } = self;
        let Claim { wrap: Wrap::Sasl2(inline), account: name, proof: Proof::Token(mechanism, proof), .. } =
            claim
        else {
            unreachable!("what is remembered is for tokens, which only SASL2 has")
        };
        let (stamp, identity, login) = account.into_login();
        let claim = TokenClaim { inline, account: name, since: cx.shard.altered.now(), mechanism, proof };
        Authenticating::again(client).redeem(claim, Some(Found { identity, stamp, login: Some(login) }), cx)
    }

    /// At home, where nothing is known of the account: the store is asked.
    pub fn unknown(self, cx: &mut Cx<'_>) -> Session {
        let Claimed { client, mut claim } = self;
        claim.since = cx.shard.altered.now();
        Authenticating::again(client).ask_for(claim, cx)
    }
}
