//! Partitions have other keepers, where nodes come or go: every node reports to them what it has.

use super::RETRY_MS;
use super::{ROUNDS, SOONER};
use crate::Effect;
use crate::machine::Turn;
use crate::message::{ClaimMessage, Claimant, ShardMessage};
use crate::model::{NodeId, Partition, Partitions, Place, Set};
use crate::ports::Directory;
use crate::session::AfterBarrier;
use crate::shard::Why;
use carillon_wire::jid::BareJid;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Whether a node keeps a partition: one that leaves keeps none.
pub(super) fn keeps_any(directory: &dyn Directory, node: NodeId) -> bool {
    Partition::all().any(|partition| directory.keeper(partition) == node)
}

/// Accounts in one report.
const REPORTED_MAX: usize = 256;

impl Turn<'_> {
    /// A shard of another node has told what it has of partitions that are kept here.
    pub(super) fn reported(
        &mut self,
        from: Place,
        shards: u16,
        partitions: &Partitions,
        accounts: Vec<BareJid>,
    ) {
        let own = self.own();
        let is_here =
            |account: &BareJid| self.cx.shard.directory.account(account.as_str()) == self.cx.shard.place;
        for account in accounts.into_iter().filter(is_here).collect::<Vec<_>>() {
            let home = match self.cx.shard.claims.claimed_by(account.as_str()) {
                None if self.sessions.has_any(account.as_str()) => own,
                None => from.node,
                Some(node) => node,
            };
            if home == from.node {
                self.cx.shard.claims.note(&account, home);
            } else if self.keeper(account.as_str()) == own {
                let place = self.place_on(from.node, account.as_str());
                self.tell_home(account, home, Claimant { place, number: 0 }, Vec::new());
            }
        }
        self.cx.shard.claims.reported(from.node, from.shard, shards, partitions);
        self.open_partitions();
    }

    /// Partitions of which every node has reported are served from now on.
    pub(super) fn open_partitions(&mut self) {
        let (own, directory) = (self.own(), Arc::clone(&self.cx.shard.directory));
        let claims = &self.cx.shard.claims;
        let others = directory.other_nodes();
        let is_known = |partition: &Partition| {
            directory.keeper(*partition) == own
                && !claims.is_open(*partition)
                && others.iter().all(|node| claims.has_reported(*node, *partition))
        };
        let opened: Partitions = Partition::all().filter(is_known).collect();
        if opened.is_empty() {
            return;
        }
        Partition::all().filter(|partition| opened.has(*partition)).for_each(|partition| {
            self.cx.shard.claims.open(partition);
        });
        let waiting = self.cx.shard.claims.moving_for(|account, moving| {
            moving.why == Why::Gathering && opened.has(Partition::of(account.as_str()))
        });
        for account in waiting {
            self.resolve(&account, None);
        }
    }

    /// Has a new keeper told what this shard has of its partitions, once what is under way for them is done.
    pub(super) fn report(&mut self, to: NodeId, partitions: Partitions) {
        self.cx.agenda.await_answers(AfterBarrier::Report { to, partitions, rounds: ROUNDS });
    }

    pub(super) fn send_report(&mut self, to: NodeId, partitions: &Partitions) {
        let directory = Arc::clone(&self.cx.shard.directory);
        let is_theirs =
            |partition: &Partition| partitions.has(*partition) && directory.keeper(*partition) == to;
        let partitions: Partitions = Partition::all().filter(is_theirs).collect();
        let is_of = |account: &&BareJid| partitions.has(Partition::of(account.as_str()));
        let mut accounts: Vec<BareJid> =
            self.sessions.all_bound().map(|session| &*session.bare).filter(is_of).cloned().collect();
        accounts.extend(self.cx.shard.claims.held().filter(is_of).cloned());
        accounts.sort_unstable();
        accounts.dedup();
        // What still waits at a place that nobody has a session for is for its new home.
        let left = {
            let (sessions, claims) = (&*self.sessions, &self.cx.shard.claims);
            let stays = |account: &BareJid| {
                !is_of(&account) || sessions.has_any(account.as_str()) || claims.holds(account.as_str())
            };
            self.cx.homes.keep(stays)
        };
        let traces = match self.cx.pipeline.traces {
            Some(handler) => {
                let sessions = &*self.sessions;
                let held: Set<BareJid> = self.cx.shard.claims.held().cloned().collect();
                let leaves = |account: &BareJid| {
                    is_of(&account) && !sessions.has_any(account.as_str()) && !held.contains(account)
                };
                (handler.take_where)(&leaves, &mut self.cx)
            }
            None => Vec::new(),
        };
        let (from, shards) = (self.cx.shard.place, self.cx.shard.shard_count);
        let mut chunks = accounts.chunks(REPORTED_MAX).peekable();
        loop {
            let accounts = chunks.next().unwrap_or_default().to_vec();
            let is_last = chunks.peek().is_none();
            let partitions = if is_last { partitions } else { Partitions::default() };
            let message = ClaimMessage::Report { from, shards, partitions, accounts };
            self.cx.out.push(Effect::PostAll { to, message: ShardMessage::Claim(Box::new(message)) });
            if is_last {
                break;
            }
        }
        for (account, message) in left {
            self.cx.tell_account(account, message);
        }
        for trace in traces {
            let account = trace.to.clone();
            self.take_in_traces(&account, vec![trace]);
        }
    }

    /// Nodes came or went: partitions have other keepers than they had by `before`.
    pub(in crate::machine) fn keepers_changed(&mut self, before: &dyn Directory) {
        let (own, directory) = (self.own(), Arc::clone(&self.cx.shard.directory));
        let lives = |node| directory.other_nodes().contains(&node);
        self.cx.shard.claims.keep_nodes(lives, |node| lives(node) && keeps_any(&*directory, node));
        let has_changed = |partition: &Partition| before.keeper(*partition) != directory.keeper(*partition);
        let mut gained: BTreeMap<NodeId, Partitions> = BTreeMap::new();
        for partition in Partition::all().filter(has_changed) {
            gained.entry(directory.keeper(partition)).or_default().insert(partition);
        }
        let changed: Partitions = Partition::all().filter(has_changed).collect();
        let lost: Partitions = Partition::all()
            .filter(|partition| before.keeper(*partition) == own && directory.keeper(*partition) != own)
            .collect();
        self.cx.shard.claims.lose(&lost);
        self.cx.shard.claims.has_joined = true;
        if before.other_nodes().is_empty() {
            // Nobody else had anything.
            let kept = Partition::all().filter(|partition| directory.keeper(*partition) == own);
            kept.for_each(|partition| self.cx.shard.claims.open(partition));
        }
        gained.remove(&own);
        for (to, partitions) in gained {
            self.report(to, partitions);
        }
        // Whoever waits for a keeper or a node that is another by now, or gone, begins anew.
        let lives = |node: NodeId| node == own || directory.other_nodes().contains(&node);
        let claims = &self.cx.shard.claims;
        let is_lost = |account: &BareJid| {
            directory.keeper(Partition::of(account.as_str())) == own
                && claims.claimed_by(account.as_str()).is_none()
        };
        let moving = self.cx.shard.claims.moving_for(|account, moving| match moving.why {
            Why::Leaving(to) | Why::Giving(to) => {
                !lives(to.place.node) || changed.has(Partition::of(account.as_str()))
            }
            // One that this node keeps again stays.
            Why::Offered => directory.keeper(Partition::of(account.as_str())) == own,
            Why::Seeking => true,
            Why::Claiming(_) => changed.has(Partition::of(account.as_str())) || is_lost(account),
            Why::Gathering => changed.has(Partition::of(account.as_str())),
        });
        for account in moving {
            self.resolve(&account, None);
        }
        for account in self.cx.shard.claims.moving_for(|_, moving| moving.why == Why::Offered) {
            self.say_idle(&account);
        }
        self.open_partitions();
        self.cx.shard.claims.sooner = SOONER;
        self.cx.shard.claims.retry_at = Some(self.cx.now.mono.plus(self.retry_ms()));
    }

    /// Sessions came from another process: whoever keeps their accounts is told.
    pub(in crate::machine) fn report_to_all(&mut self) {
        if !self.is_alone() && self.cx.shard.claims.has_joined {
            self.join();
        }
    }

    /// This shard begins beside other nodes: they are told that it has nothing of their partitions yet, and asked what they have of its own.
    pub(super) fn join(&mut self) {
        let (own, directory) = (self.own(), Arc::clone(&self.cx.shard.directory));
        for node in directory.other_nodes() {
            let is_theirs = |partition: &Partition| directory.keeper(*partition) == *node;
            let partitions: Partitions = Partition::all().filter(is_theirs).collect();
            if !partitions.is_empty() && *node != own {
                self.report(*node, partitions);
            }
        }
        self.cx.shard.claims.retry_at = Some(self.cx.now.mono.plus(RETRY_MS));
    }

    /// Nodes that have not reported what they have of partitions kept here are asked. Whether there is any.
    pub(super) fn ask_for_reports(&mut self) -> bool {
        let (own, directory) = (self.own(), Arc::clone(&self.cx.shard.directory));
        let claims = &self.cx.shard.claims;
        let is_missed = |node: &&NodeId| {
            Partition::all().any(|partition| {
                directory.keeper(partition) == own
                    && !claims.is_open(partition)
                    && !claims.has_reported(**node, partition)
            })
        };
        let missed: Vec<NodeId> = directory.other_nodes().iter().filter(is_missed).copied().collect();
        for to in &missed {
            let message = ShardMessage::Claim(Box::new(ClaimMessage::ReportAgain { to: own }));
            self.cx.out.push(Effect::PostAll { to: *to, message });
        }
        !missed.is_empty()
    }
}
