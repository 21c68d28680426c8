//! Where the homes of accounts are: claimed by the node that a client comes to, told to the keepers of their partitions, left again.
//! [`Claims`](crate::shard::Claims) says what for.

mod clients;
mod finding;
mod leaving;
mod passing;
mod reports;

use crate::machine::Turn;
use crate::message::{ClaimMessage, Orphans, ShardMessage};
use crate::model::{Mono, NodeId, Partition, Partitions, Place, ShardId, bucket};
use crate::session::AfterBarrier;
use crate::shard::{AwaitsHome, Whereabouts, Why};
use carillon_wire::jid::BareJid;

/// How long an answer of another node may take before it is asked again.
const RETRY_MS: u64 = 2_000;
/// So often it is asked again sooner after nodes came or went, as others may not know yet who keeps what: after an eighth of that time first, then twice as long each
/// time.
const SOONER: u8 = 3;
/// How long a client waits for its account's home.
const PATIENCE_MS: u64 = 15_000;
/// How often what is under way for an account is waited for: what answers it may ask again, and that once more.
const ROUNDS: u8 = 12;

impl Turn<'_> {
    /// Whether this node runs alone: then all homes are here.
    pub(in crate::machine) fn is_alone(&self) -> bool {
        self.cx.shard.directory.other_nodes().is_empty()
    }

    fn own(&self) -> NodeId {
        self.cx.shard.place.node
    }

    fn keeper(&self, account: &str) -> NodeId {
        self.cx.shard.directory.keeper(Partition::of(account))
    }

    /// The shard of a node that knows of an account.
    fn place_on(&self, node: NodeId, account: &str) -> Place {
        match node == self.own() {
            true => self.cx.shard.directory.account(account),
            // It brings into range what is not.
            false => {
                let shards = self.cx.shard.claims.shards_of(node).unwrap_or(u16::MAX);
                Place { node, shard: ShardId(bucket(account) % shards.max(1)) }
            }
        }
    }

    fn tell(&mut self, node: NodeId, account: &str, message: ClaimMessage) {
        let place = self.place_on(node, account);
        self.cx.post(place, ShardMessage::Claim(Box::new(message)));
    }

    /// Where an account is at home whose name leads to this shard.
    pub(in crate::machine) fn whereabouts(&self, account: &str) -> Whereabouts {
        let claims = &self.cx.shard.claims;
        if claims.moving(account).is_some() {
            return Whereabouts::Unknown;
        }
        if self.is_alone() || self.sessions.has_any(account) || claims.holds(account) {
            return Whereabouts::Here;
        }
        let partition = Partition::of(account);
        let keeper = self.cx.shard.directory.keeper(partition);
        if keeper != self.own() {
            return Whereabouts::At(keeper);
        }
        match claims.claimed_by(account) {
            Some(node) => Whereabouts::At(node),
            None if claims.is_open(partition) => Whereabouts::Here,
            None => Whereabouts::Unknown,
        }
    }

    /// Whether this node has claimed an account and awaits the answer.
    fn is_claimed_here(&self, account: &str) -> bool {
        matches!(self.cx.shard.claims.moving(account), Some(Why::Claiming(_)))
    }

    /// Where an account is at home, for something that is done for it now if that is here.
    fn for_account(&mut self, account: &str) -> Whereabouts {
        if self.cx.shard.directory.account(account) != self.cx.shard.place {
            // Another shard of this node knows.
            return Whereabouts::At(self.own());
        }
        let at = self.whereabouts(account);
        if at == Whereabouts::Here && !self.sessions.has_any(account) {
            self.cx.shard.claims.touch(account);
        }
        at
    }

    fn begin(&mut self, account: &BareJid, why: Why) {
        let now = self.cx.now.mono;
        self.cx.shard.claims.begin(account, why, now);
        let retry_at = now.plus(self.retry_ms());
        self.cx.shard.claims.retry_at.get_or_insert(retry_at);
    }

    /// Somebody asks where an account is at home. The question goes on as a message for it would.
    fn where_is(&mut self, account: BareJid, asker: Place) {
        match self.whereabouts(account.as_str()) {
            Whereabouts::Here => {
                let at = self.own();
                self.cx.post(asker, ShardMessage::Claim(Box::new(ClaimMessage::There { account, at })));
            }
            Whereabouts::At(node) => {
                let place = self.place_on(self.way_to(&account, node), account.as_str());
                let message = ClaimMessage::Where { account, asker };
                self.cx.post(place, ShardMessage::Claim(Box::new(message)));
            }
            Whereabouts::Unknown => {
                let message = ClaimMessage::Where { account: account.clone(), asker };
                self.have_wait(&account, ShardMessage::Claim(Box::new(message)));
            }
        }
    }

    /// It is known again where an account is at home: what waited goes there. `home`: what its clients are told, if this node claimed it.
    fn resolve(&mut self, account: &BareJid, home: Option<NodeId>) {
        let own = self.own();
        let claimed = self.is_claimed_here(account.as_str());
        let sessions = self.cx.shard.claims.take_sessions(account.as_str());
        let waiting = self.cx.shard.claims.end(account.as_str());
        if home == Some(own) && claimed && self.keeper(account.as_str()) != own {
            self.cx.shard.claims.hold(account);
            self.cx.shard.claims.touch(account.as_str());
        }
        if !sessions.is_empty() {
            // Nobody took it.
            self.adopt_moved(Orphans { account: account.clone(), of: own, sessions });
        }
        let home = home.filter(|_| claimed);
        for waiting in waiting {
            match waiting {
                AwaitsHome::Message(message) => match (*message, home) {
                    (ShardMessage::Claim(claim), Some(node)) if node != own => {
                        self.resolve_claim(*claim, node);
                    }
                    (message, _) => self.message(message),
                },
                AwaitsHome::Client(conn) => self.resolve_client(conn, home),
            }
        }
    }

    /// Another node says something about the homes of accounts.
    pub(in crate::machine) fn claim_message(&mut self, message: ClaimMessage) {
        match message {
            ClaimMessage::Claim { account, by } => self.claim_came(account, by),
            ClaimMessage::Home { account, at, said_by, number, traces } => {
                self.home_is(&account, at, said_by, number, traces);
            }
            ClaimMessage::Idle { account, at } => self.idle(&account, at),
            ClaimMessage::Left { account, from, number, traces } => self.left(&account, from, number, traces),
            ClaimMessage::Taken { account, at, number } => self.taken(&account, at, number),
            ClaimMessage::Report { from, shards, partitions, accounts } => {
                self.reported(from, shards, &partitions, accounts);
            }
            ClaimMessage::Command { account, command, reply } => {
                let message = ClaimMessage::Command { account: account.clone(), command, reply };
                if let Some(ShardMessage::Claim(message)) =
                    self.pass_on(&account, ShardMessage::Claim(Box::new(message)))
                    && let ClaimMessage::Command { command, reply, .. } = *message
                {
                    self.command(command, reply);
                }
            }
            ClaimMessage::Where { account, asker } => self.where_is(account, asker),
            ClaimMessage::There { account, at } => {
                if self.cx.shard.claims.moving(account.as_str()) == Some(Why::Seeking) {
                    if at != self.own() && reports::keeps_any(&*self.cx.shard.directory, at) {
                        self.cx.shard.claims.note_way(&account, at, self.cx.now.mono);
                    }
                    self.resolve(&account, None);
                }
            }
            ClaimMessage::Traces { account, traces } => self.take_in_traces(&account, traces),
            ClaimMessage::Find { command, reply, left, keeper } => {
                self.look_for(command, reply, left, keeper);
            }
            ClaimMessage::ReportAgain { to } => {
                let is_theirs = |partition: &Partition| self.cx.shard.directory.keeper(*partition) == to;
                let partitions: Partitions = Partition::all().filter(is_theirs).collect();
                if to != self.own() && !partitions.is_empty() {
                    self.report(to, partitions);
                }
            }
        }
    }

    /// What waited for the store need not wait any longer.
    pub(in crate::machine) fn after_answers(&mut self) {
        while let Some(all) = self.cx.agenda.next_after_answers() {
            for then in all {
                match then {
                    AfterBarrier::Leave { account, rounds } => self.go_on_leaving(account, rounds),
                    // While writes are repeated nothing moves. The keeper asks again.
                    AfterBarrier::Report { rounds: 0, .. } if self.repeats_writes() => {}
                    AfterBarrier::Report { to, partitions, rounds: 0 } => self.send_report(to, &partitions),
                    AfterBarrier::Report { to, partitions, rounds } => {
                        let rounds = rounds - 1;
                        self.cx.agenda.await_answers(AfterBarrier::Report { to, partitions, rounds });
                    }
                }
            }
            self.work();
        }
    }

    /// What was not answered in time is asked again.
    pub(in crate::machine) fn retry_claims(&mut self) {
        let now = self.cx.now.mono;
        if self.cx.shard.claims.retry_at.is_none_or(|at| at > now) {
            return;
        }
        self.cx.shard.claims.retry_at = None;
        self.cx.shard.claims.sooner = self.cx.shard.claims.sooner.saturating_sub(1);
        if !std::mem::replace(&mut self.cx.shard.claims.has_joined, true) {
            return self.join();
        }
        let late = |since: Mono| now.since(since) >= PATIENCE_MS;
        let given_up = self.cx.shard.claims.moving_for(|_, moving| late(moving.since()));
        for account in given_up {
            self.give_up_claim(&account);
        }
        let sought = self.cx.shard.claims.moving_for(|_, moving| moving.why == Why::Seeking);
        for account in sought {
            // The question or its answer was lost. Messages go on by the way they went, and it is asked again after a while.
            let at = self.way_to(&account, self.keeper(account.as_str()));
            self.cx.shard.claims.note_way(&account, at, now);
            self.resolve(&account, None);
        }
        let is_unanswered = |why: Why| matches!(why, Why::Claiming(_) | Why::Giving(_));
        let again = self.cx.shard.claims.moving_for(|_, moving| is_unanswered(moving.why));
        let waits = !again.is_empty();
        for account in again {
            match self.cx.shard.claims.moving(account.as_str()) {
                Some(Why::Giving(to)) => {
                    let traces = self.cx.shard.claims.kept_traces(account.as_str());
                    self.tell_home(account, to.place.node, to, traces);
                }
                _ => self.claim(&account),
            }
        }
        for account in self.cx.shard.claims.moving_for(|_, moving| moving.why == Why::Offered) {
            self.say_idle(&account);
        }
        let misses = self.ask_for_reports();
        if waits || misses || self.cx.shard.claims.moving_count() > 0 {
            self.cx.shard.claims.retry_at = Some(now.plus(self.retry_ms()));
        }
    }

    /// How long an answer of another node may take now.
    fn retry_ms(&self) -> u64 {
        RETRY_MS >> self.cx.shard.claims.sooner
    }
}
