//! Clients that claim accounts: each waits until its node is the account's home, or goes to where that is.

use crate::connection::Claimed;
use crate::error::StreamError;
use crate::machine::Turn;
use crate::message::{ClaimMessage, Claimant};
use crate::model::{ConnId, NodeId, Partition};
use crate::session::Session;
use crate::shard::{AwaitsHome, Whereabouts, Why};
use carillon_wire::jid::BareJid;
use carillon_wire::stream::Condition;

impl Turn<'_> {
    /// Whether this is the home of the account that a client claims.
    pub(in crate::machine) fn is_home_of(&mut self, claimed: &Claimed) -> bool {
        let account = claimed.account().as_str();
        let is_home = self.cx.shard.directory.account(account) == self.cx.shard.place
            && self.for_account(account) == Whereabouts::Here;
        if is_home && !self.is_alone() {
            self.cx.shard.claims.logs_in(account);
        }
        is_home
    }

    /// A client claims an account that is not known to be at home here: it goes to the shard that knows of it, and there it waits until
    /// this node is the home or another is found.
    pub(in crate::machine) fn seek_home(&mut self, claimed: Box<Claimed>) -> Option<Session> {
        let (conn, account) = (claimed.conn(), claimed.account().to_bare());
        let place = self.cx.shard.directory.account(account.as_str());
        if place != self.cx.shard.place {
            self.cx.shard.counters.connections -= 1;
            claimed.depart(place, &mut self.cx);
            return None;
        }
        if self.cx.shard.claims.awaits(account.as_str(), conn) {
            return Some(Session::Claimed(claimed));
        }
        match self.whereabouts(account.as_str()) {
            Whereabouts::At(_) => self.claim(&account),
            Whereabouts::Unknown if self.cx.shard.claims.moving(account.as_str()).is_none() => {
                self.begin(&account, Why::Gathering);
            }
            Whereabouts::Here | Whereabouts::Unknown => {}
        }
        if self.cx.shard.claims.wait(account.as_str(), AwaitsHome::Client(conn)).is_err() {
            let text = "too many wait for their account's home; try again later";
            let error = StreamError::new(Condition::ResourceConstraint, text);
            return Some(Session::Claimed(claimed).fail(&error, &mut self.cx));
        }
        Some(Session::Claimed(claimed))
    }

    /// This node claims an account.
    pub(super) fn claim(&mut self, account: &BareJid) {
        let number = match self.cx.shard.claims.moving(account.as_str()) {
            // It is asked again.
            Some(Why::Claiming(number)) => number,
            _ => self.cx.number(),
        };
        self.begin(account, Why::Claiming(number));
        let (keeper, by) = (self.keeper(account.as_str()), Claimant { place: self.cx.shard.place, number });
        let home = match keeper == self.own() {
            true => match self.cx.shard.claims.claimed_by(account.as_str()) {
                Some(home) => home,
                None if self.cx.shard.claims.is_open(Partition::of(account.as_str())) => {
                    return self.resolve(account, Some(keeper));
                }
                None => return self.begin(account, Why::Gathering),
            },
            false => self.way_to(account, keeper),
        };
        self.tell(home, account.as_str(), ClaimMessage::Claim { account: account.clone(), by });
    }

    pub(super) fn resolve_client(&mut self, conn: ConnId, home: Option<NodeId>) {
        let Some(session) = self.sessions.take(conn) else { return };
        match (session, home) {
            (Session::Claimed(claimed), Some(node)) if node != self.own() => {
                let place = self.place_on(node, claimed.account().as_str());
                self.cx.shard.counters.connections -= 1;
                claimed.depart(place, &mut self.cx);
                self.sessions.leave(conn);
            }
            (session @ Session::Claimed(_), _) => {
                self.settle(conn, session);
                self.cx.read_on(conn);
            }
            (session, _) => self.sessions.put(conn, session),
        }
    }

    /// Nobody says where an account is at home: its clients are sent away. What waited for it goes the way that is known, or waits anew. Where
    /// this node has claimed it or given it away, it goes on waiting until that is answered or who is to answer is dead: nobody else knows.
    pub(super) fn give_up_claim(&mut self, account: &BareJid) {
        for conn in self.cx.shard.claims.take_clients(account.as_str()) {
            let text = "the node that serves your account does not answer; try again later";
            let error = StreamError::new(Condition::RemoteConnectionFailed, text);
            self.cx.end_connection(conn, error);
        }
        match self.cx.shard.claims.moving(account.as_str()) {
            Some(Why::Claiming(_) | Why::Giving(_)) => {}
            _ => self.resolve(account, None),
        }
    }
}
