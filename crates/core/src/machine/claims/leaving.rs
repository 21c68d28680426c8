//! Accounts come to a node that claims them, and go back to their keepers.

use super::ROUNDS;
use crate::error::StreamError;
use crate::machine::Turn;
use crate::message::{ClaimMessage, Claimant, ShardMessage};
use crate::model::{NodeId, Partition, Trace};
use crate::session::AfterBarrier;
use crate::shard::Why;
use carillon_wire::jid::BareJid;
use carillon_wire::stream::Condition;

impl Turn<'_> {
    /// A node claims an account, says its keeper or the node itself.
    pub(super) fn claimed_by(&mut self, account: BareJid, by: Claimant) {
        let (name, own) = (account.as_str(), self.own());
        if by.place.node != own && !self.cx.shard.directory.other_nodes().contains(&by.place.node) {
            // It has not been heard of yet, and asks again.
            return;
        }
        if self.sessions.has_any(name) || self.cx.shard.claims.is_logging_in(name) {
            return self.tell_home(account, own, by, Vec::new());
        }
        let partition = Partition::of(name);
        let keeper = self.cx.shard.directory.keeper(partition);
        if keeper != own && self.cx.shard.claims.holds(name) {
            return self.leave(&account, by);
        }
        if keeper != own {
            // It has left since the keeper sent the claim here, or was never here.
            let left =
                ClaimMessage::Left { account: account.clone(), from: own, to: None, traces: Vec::new() };
            self.tell(keeper, name, left);
            return self.tell(keeper, name, ClaimMessage::Claim { account: account.clone(), by });
        }
        match self.cx.shard.claims.claimed_by(name) {
            Some(node) if node == by.place.node => self.tell_home(account, node, by, Vec::new()),
            Some(node) => {
                let place = self.place_on(node, name);
                self.cx.post(place, ShardMessage::Claim(Box::new(ClaimMessage::Claim { account, by })));
            }
            None if self.cx.shard.claims.is_open(partition) => self.leave(&account, by),
            None => {
                let message = ClaimMessage::Claim { account: account.clone(), by };
                self.have_wait(&account, ShardMessage::Claim(Box::new(message)));
            }
        }
    }

    /// Answers a claim: that node is the home.
    pub(super) fn tell_home(&mut self, account: BareJid, at: NodeId, to: Claimant, traces: Vec<Trace>) {
        let said_by = self.own();
        let message = ClaimMessage::Home { account, at, said_by, number: to.number, traces };
        self.cx.post(to.place, ShardMessage::Claim(Box::new(message)));
    }

    /// An account without a session goes to another node, once nothing is under way for it here.
    pub(super) fn leave(&mut self, account: &BareJid, to: Claimant) {
        if to.place.node == self.own() {
            return self.resolve(account, Some(to.place.node));
        }
        if self.repeats_writes() {
            return self.stay(account, to);
        }
        if !self.cx.shard.claims.is_touched(account.as_str()) && self.cx.homes.is_quiet(account.as_str()) {
            return self.has_left(account, to);
        }
        self.begin(account, Why::Leaving(to));
        self.cx.agenda.await_answers(AfterBarrier::Leave { account: account.clone(), rounds: ROUNDS });
    }

    /// What was under way when an account began to leave is done.
    pub(super) fn go_on_leaving(&mut self, account: BareJid, rounds: u8) {
        let Some(Why::Leaving(to)) = self.cx.shard.claims.moving(account.as_str()) else { return };
        let waits = rounds == 0 && !self.cx.homes.is_quiet(account.as_str());
        if self.sessions.has_any(account.as_str()) || self.repeats_writes() || waits {
            // A client was bound that had begun before, or the store refused what was under way.
            self.stay(&account, to);
            return self.resolve(&account, None);
        }
        if rounds > 0 {
            let rounds = rounds - 1;
            return self.cx.agenda.await_answers(AfterBarrier::Leave { account, rounds });
        }
        self.has_left(&account, to);
    }

    /// Whether the shard repeats writes that the store refused: they may be for any account, which is to hear what becomes of them.
    pub(super) fn repeats_writes(&self) -> bool {
        !self.cx.shard.retries.is_empty()
    }

    /// An account that a node claimed stays at home here.
    pub(super) fn stay(&mut self, account: &BareJid, claimant: Claimant) {
        self.tell_home(account.clone(), self.own(), claimant, Vec::new());
        if self.keeper(account.as_str()) != self.own() && !self.sessions.has_any(account.as_str()) {
            self.cx.shard.claims.hold(account);
        }
    }

    /// Nothing of an account is here any more.
    pub(super) fn has_left(&mut self, account: &BareJid, to: Claimant) {
        let own = self.own();
        let traces = self.forget(account);
        match self.keeper(account.as_str()) {
            keeper if keeper == own => {
                self.cx.shard.claims.note(account, to.place.node);
                self.tell_home(account.clone(), to.place.node, to, traces);
            }
            keeper => {
                let left = ClaimMessage::Left { account: account.clone(), from: own, to: Some(to), traces };
                self.tell(keeper, account.as_str(), left);
            }
        }
        self.resolve(account, None);
    }

    /// What is known here of an account that is at home elsewhere is of no use any more, but for its notifications.
    pub(super) fn forget(&mut self, account: &BareJid) -> Vec<Trace> {
        self.cx.shard.claims.forget_held(account.as_str());
        self.cx.shard.accounts.login_cache.forget(account.as_str());
        self.cx.homes.leave(account);
        let handler = self.cx.pipeline.traces;
        handler.map_or_else(Vec::new, |handler| (handler.take_of)(account, &mut self.cx))
    }

    pub(super) fn put(&mut self, traces: Vec<Trace>) {
        if let Some(handler) = self.cx.pipeline.traces {
            traces.into_iter().for_each(|trace| (handler.put)(trace, &mut self.cx));
        }
    }

    pub(super) fn take_in_traces(&mut self, account: &BareJid, traces: Vec<Trace>) {
        let message = ClaimMessage::Traces { account: account.clone(), traces };
        if let Some(ShardMessage::Claim(message)) =
            self.pass_on(account, ShardMessage::Claim(Box::new(message)))
            && let ClaimMessage::Traces { traces, .. } = *message
        {
            self.put(traces);
        }
    }

    /// An account has left a node. Its keeper is told so.
    pub(super) fn left(&mut self, account: &BareJid, from: NodeId, to: Option<Claimant>, traces: Vec<Trace>) {
        let is_keeper = self.keeper(account.as_str()) == self.own();
        if !is_keeper || self.cx.shard.claims.claimed_by(account.as_str()) != Some(from) {
            return;
        }
        self.cx.shard.claims.forget(account.as_str());
        match to {
            Some(to) if self.cx.shard.directory.other_nodes().contains(&to.place.node) => {
                self.cx.shard.claims.note(account, to.place.node);
                self.tell_home(account.clone(), to.place.node, to, traces);
            }
            to => {
                self.put(traces);
                if to.is_some_and(|to| to.place.node == self.own()) || self.is_claimed_here(account.as_str())
                {
                    self.resolve(account, Some(self.own()));
                }
            }
        }
    }

    /// A node says where an account is at home.
    pub(super) fn home_is(&mut self, account: &BareJid, at: NodeId, said_by: NodeId, number: u64) {
        let is_said_by_keeper = self.keeper(account.as_str()) == said_by;
        if let Some(Why::Claiming(claim)) = self.cx.shard.claims.moving(account.as_str()) {
            // What answers an earlier claim, which was asked twice, may not hold any more.
            if number == claim && (at != self.own() || is_said_by_keeper) {
                self.resolve(account, Some(at));
            }
        } else if at != self.own() && number == 0 && is_said_by_keeper {
            // Two nodes took themselves for its home, as one of them was away.
            self.cx.shard.claims.forget_held(account.as_str());
            let sessions: Vec<_> =
                self.sessions.bound_of(account.as_str()).iter().map(|session| session.id).collect();
            for session in sessions {
                let text = "your account is served by another node; connect again";
                self.cx.end(session, StreamError::new(Condition::Reset, text));
            }
        } else if at == self.own() && is_said_by_keeper && !self.sessions.has_any(account.as_str()) {
            // The claim was given up meanwhile.
            if !self.cx.shard.claims.holds(account.as_str()) {
                let traces = self.forget(account);
                let left = ClaimMessage::Left { account: account.clone(), from: at, to: None, traces };
                self.tell(said_by, account.as_str(), left);
            }
        }
    }

    /// The last session of an account that another node keeps has ended: it stays at home here for a while.
    pub(in crate::machine) fn hold_claim(&mut self, account: &BareJid) {
        if self.is_alone() || self.sessions.has_any(account.as_str()) {
            return;
        }
        self.cx.shard.claims.touch(account.as_str());
        let keeper = self.keeper(account.as_str());
        if keeper == self.own() {
            return;
        }
        self.cx.shard.claims.hold(account);
        if self.cx.shard.is_draining() && self.cx.shard.claims.moving(account.as_str()).is_none() {
            // The node ends: others are not to find that out.
            let place = self.place_on(keeper, account.as_str());
            self.leave(account, Claimant { place, number: 0 });
        }
    }

    /// Accounts for which nothing was done for a while go back to their keepers.
    pub(in crate::machine) fn tidy_claims(&mut self, login_ms: u64) {
        if self.is_alone() || self.repeats_writes() {
            return;
        }
        let now = self.cx.now.mono;
        self.cx.shard.claims.tidy(now, login_ms);
        let claims = &self.cx.shard.claims;
        let homes = &self.cx.homes;
        let is_idle =
            |account: &&BareJid| !claims.is_touched(account.as_str()) && homes.is_quiet(account.as_str());
        let mut idle: Vec<BareJid> = claims.held().filter(is_idle).cloned().collect();
        idle.sort_unstable();
        for account in idle {
            let traces = self.forget(&account);
            let (keeper, from) = (self.keeper(account.as_str()), self.own());
            let left = ClaimMessage::Left { account: account.clone(), from, to: None, traces };
            self.tell(keeper, account.as_str(), left);
        }
    }
}
