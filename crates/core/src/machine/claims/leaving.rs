//! Accounts come to a node that claims them, and go back to their keepers.

use super::ROUNDS;
use crate::error::StreamError;
use crate::machine::Turn;
use crate::message::{AdoptionMessage, ClaimMessage, Claimant, Orphan, Orphans, ShardMessage};
use crate::model::{NodeId, Partition, Trace};
use crate::session::AfterBarrier;
use crate::shard::Why;
use carillon_wire::jid::BareJid;
use carillon_wire::stream::Condition;

impl Turn<'_> {
    /// A node claims an account. The keeper gives it away, once nobody else has it; its own claim goes to who has it. The claim of another than
    /// the keeper goes on to that as a message for the account would, behind those of the same node.
    pub(super) fn claim_came(&mut self, account: BareJid, by: Claimant) {
        let (name, own) = (account.as_str(), self.own());
        let (keeper, moving) = (self.keeper(name), self.cx.shard.claims.moving(name));
        match moving {
            _ if keeper != own && by.place.node == keeper => self.keeper_claims(account, by),
            // It is asked again, or has come back.
            Some(Why::Leaving(to) | Why::Giving(to)) if to.place.node == by.place.node => {}
            Some(Why::Claiming(_)) if by.place.node == own => {}
            Some(_) => {
                let message = ClaimMessage::Claim { account: account.clone(), by };
                self.have_wait(&account, ShardMessage::Claim(Box::new(message)));
            }
            None if keeper != own => {
                let at = self.way_to(&account, keeper);
                self.tell(at, account.as_str(), ClaimMessage::Claim { account: account.clone(), by });
            }
            None => self.answer_claim(account, by),
        }
    }

    /// A node claims an account that this one keeps: it is given it, told who has it, or waits until this node has claimed it from there.
    fn answer_claim(&mut self, account: BareJid, by: Claimant) {
        let (name, own) = (account.as_str(), self.own());
        if !self.cx.shard.directory.other_nodes().contains(&by.place.node) {
            // It has not been heard of yet, and asks again.
            return;
        }
        if self.sessions.has_any(name) || self.cx.shard.claims.is_logging_in(name) {
            return self.tell_home(account, own, by, Vec::new());
        }
        match self.cx.shard.claims.claimed_by(name) {
            // Its answer was lost, or comes twice.
            Some(home) if home == by.place.node => self.tell_home(account, home, by, Vec::new()),
            None if self.cx.shard.claims.is_open(Partition::of(name)) => self.leave(&account, by),
            found => {
                match found {
                    Some(_) => self.claim(&account),
                    None => self.begin(&account, Why::Gathering),
                }
                let message = ClaimMessage::Claim { account: account.clone(), by };
                self.have_wait(&account, ShardMessage::Claim(Box::new(message)));
            }
        }
    }

    /// The keeper claims an account, and holds back what comes for it until it is answered.
    fn keeper_claims(&mut self, account: BareJid, by: Claimant) {
        let name = account.as_str();
        if self.cx.shard.claims.has_stayed(name, by.number) {
            // It was asked twice, and the keeper goes by the first answer.
            return self.tell_home(account, self.own(), by, Vec::new());
        }
        match self.cx.shard.claims.moving(name) {
            Some(Why::Leaving(_)) => self.begin(&account, Why::Leaving(by)),
            Some(Why::Seeking | Why::Gathering) => {
                let message = ClaimMessage::Claim { account: account.clone(), by };
                self.have_wait(&account, ShardMessage::Claim(Box::new(message)));
            }
            None if self.sessions.has_any(name) || self.is_wanted_here(name) => self.stay(&account, by),
            None if self.cx.shard.claims.holds(name) => self.leave(&account, by),
            Some(Why::Offered) => self.leave(&account, by),
            // It is not at home here, even if it is about to be: this node's own claim comes to the keeper after this answer, or again.
            Some(Why::Claiming(_) | Why::Giving(_)) | None => {
                let left =
                    ClaimMessage::Left { account, from: self.own(), number: by.number, traces: Vec::new() };
                self.cx.post(by.place, ShardMessage::Claim(Box::new(left)));
            }
        }
    }

    /// Whether a client of this node may be about to have a session of an account: not where the node ends.
    fn is_wanted_here(&self, account: &str) -> bool {
        self.cx.shard.claims.is_logging_in(account) && !self.cx.shard.is_draining()
    }

    /// What waited until this node had the answer to its claim: the account is at home on that node.
    pub(super) fn resolve_claim(&mut self, waited: ClaimMessage, home: NodeId) {
        match waited {
            ClaimMessage::Claim { account, by } if self.keeper(account.as_str()) == self.own() => {
                self.tell_home(account, home, by, Vec::new());
            }
            other => self.claim_message(other),
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
        if self.keeper(account.as_str()) == self.own() {
            return;
        }
        self.cx.shard.claims.note_stay(account, claimant.number);
        if !self.sessions.has_any(account.as_str()) {
            self.cx.shard.claims.hold(account);
        }
    }

    /// Nothing of an account is here any more.
    pub(super) fn has_left(&mut self, account: &BareJid, to: Claimant) {
        let own = self.own();
        let sessions = self.cx.shard.claims.take_sessions(account.as_str());
        let traces = self.forget(account);
        match self.keeper(account.as_str()) {
            keeper if keeper == own => {
                self.cx.shard.claims.note(account, to.place.node);
                self.begin(account, Why::Giving(to));
                self.cx.shard.claims.keep_traces(account.as_str(), traces.clone());
                self.tell_home(account.clone(), to.place.node, to, traces);
                self.send_sessions(account, sessions, to);
            }
            _ => {
                let left =
                    ClaimMessage::Left { account: account.clone(), from: own, number: to.number, traces };
                self.cx.post(to.place, ShardMessage::Claim(Box::new(left)));
                self.send_sessions(account, sessions, to);
                self.resolve(account, None);
            }
        }
    }

    /// Whether another node keeps an account, which may have it.
    pub(in crate::machine) fn is_kept_elsewhere(&self, account: &BareJid) -> bool {
        !self.is_alone() && self.keeper(account.as_str()) != self.own()
    }

    /// An account is of no use here any more: its keeper is told so, and is given its sessions once it claims it.
    pub(in crate::machine) fn begin_offer(&mut self, account: &BareJid, sessions: Vec<Orphan>) {
        self.begin(account, Why::Offered);
        self.cx.shard.claims.keep_sessions(account.as_str(), sessions);
        self.say_idle(account);
    }

    /// The sessions of an account follow it, before what waits for it.
    fn send_sessions(&mut self, account: &BareJid, sessions: Vec<Orphan>, to: Claimant) {
        if !sessions.is_empty() {
            let moved =
                AdoptionMessage::Moved(Orphans { account: account.clone(), of: self.own(), sessions });
            self.cx.post(to.place, ShardMessage::Adoption(Box::new(moved)));
        }
    }

    /// What is known here of an account that is at home elsewhere is of no use any more, but for its notifications.
    pub(super) fn forget(&mut self, account: &BareJid) -> Vec<Trace> {
        self.cx.shard.claims.leave(account.as_str());
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
        if traces.is_empty() {
            return;
        }
        let message = ClaimMessage::Traces { account: account.clone(), traces };
        if let Some(ShardMessage::Claim(message)) =
            self.pass_on(account, ShardMessage::Claim(Box::new(message)))
            && let ClaimMessage::Traces { traces, .. } = *message
        {
            self.put(traces);
        }
    }

    /// An account has left the node that this one, its keeper, claimed it from, or gave it to.
    pub(super) fn left(&mut self, account: &BareJid, from: NodeId, number: u64, traces: Vec<Trace>) {
        let claims = &self.cx.shard.claims;
        let is_awaited = claims.claimed_by(account.as_str()) == Some(from)
            && match claims.moving(account.as_str()) {
                Some(Why::Claiming(claim)) => claim == number,
                Some(Why::Giving(to)) => to.number == number,
                _ => false,
            };
        if !is_awaited || self.keeper(account.as_str()) != self.own() {
            // Another keeps it by now, or it was answered before.
            return self.take_in_traces(account, traces);
        }
        self.cx.shard.claims.forget(account.as_str());
        self.put(traces);
        self.resolve(account, Some(self.own()));
    }

    /// A node has taken the account that this one, its keeper, gave it.
    pub(super) fn taken(&mut self, account: &BareJid, at: NodeId, number: u64) {
        match self.cx.shard.claims.moving(account.as_str()) {
            Some(Why::Giving(to)) if (to.place.node, to.number) == (at, number) => {
                self.resolve(account, None);
            }
            _ => {}
        }
    }

    /// A node has no use for an account that is at home there.
    pub(super) fn idle(&mut self, account: &BareJid, at: NodeId) {
        let name = account.as_str();
        let is_keeper = self.keeper(name) == self.own() && self.cx.shard.claims.moving(name).is_none();
        if is_keeper && self.cx.shard.claims.claimed_by(name) == Some(at) {
            self.claim(account);
        }
    }

    /// Tells the keeper of an account that it is of no use here.
    pub(super) fn say_idle(&mut self, account: &BareJid) {
        let (keeper, at) = (self.keeper(account.as_str()), self.own());
        self.tell(keeper, account.as_str(), ClaimMessage::Idle { account: account.clone(), at });
    }

    /// A node says where an account is at home.
    pub(super) fn home_is(
        &mut self,
        account: &BareJid,
        at: NodeId,
        said_by: NodeId,
        number: u64,
        traces: Vec<Trace>,
    ) {
        let (name, own) = (account.as_str(), self.own());
        let is_said_by_keeper = self.keeper(name) == said_by;
        let is_awaited = self.cx.shard.claims.moving(name) == Some(Why::Claiming(number));
        if at == own && is_said_by_keeper {
            let account = account.clone();
            let answer = if is_awaited || self.sessions.has_any(name) || self.cx.shard.claims.holds(name) {
                self.put(traces);
                ClaimMessage::Taken { account, at, number }
            } else {
                // An earlier claim that was asked twice was granted now.
                ClaimMessage::Left { account, from: own, number, traces }
            };
            self.tell(said_by, name, answer);
        }
        if is_awaited {
            // What answers an earlier claim, which was asked twice, may not hold any more.
            if at != own || is_said_by_keeper {
                self.resolve(account, Some(at));
            }
        } else if at != own && number == 0 && is_said_by_keeper {
            // Two nodes took themselves for its home, as one of them was away.
            self.cx.shard.claims.forget_held(name);
            let sessions: Vec<_> = self.sessions.bound_of(name).iter().map(|session| session.id).collect();
            for session in sessions {
                let text = "your account is served by another node; connect again";
                self.cx.end(session, StreamError::new(Condition::Reset, text));
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
        if self.cx.shard.is_draining() {
            // The node ends: others are not to find that out.
            self.say_idle(account);
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
            self.say_idle(&account);
        }
    }
}
