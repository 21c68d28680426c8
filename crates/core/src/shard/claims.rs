//! Which node is the home of an account, as far as this shard knows. It knows of the accounts whose names lead to it: on each node there is
//! one shard for a name.
//!
//! A node *claims* an account when a client of its own logs in, and is its home from then on, so that the session is where its connection
//! is. Each partition of names has a *keeper*, which knows the claims, and is the home of the accounts that nobody has claimed.
//!
//! ```text
//!  client of N ─► N: Claim ─► keeper: nobody has it ─► Home(N) ─► N: Taken ─► keeper
//!                                     M has it ─► keeper: Claim ─► M: has sessions ─► Home(M) ─► keeper ─► Home(M) ─► N: the connection is
//!                                                                                                                       carried to M
//!                                                                     has none ─► Left ─► keeper ─► Home(N) ─► N
//!  message for the account ─► at any node but its home: goes on to the keeper, and from there to the home
//! ```
//!
//! An account goes from one node to another by its keeper only. The keeper holds back what comes for it from when it has claimed it until the
//! home has answered: the claim goes the way of the messages, so nothing is on its way to a home that has left, and nothing comes back from it
//! later than what was sent behind it. It does so, too, from when it has given the account away until that node has taken it.
//!
//! While it is not known where a home is, what is for it waits here. Where nodes come or go and a partition has another keeper, every node
//! reports to it what it has of that partition; the keeper begins once it has heard of all.

use super::accounts::Recent;
use crate::message::{Claimant, Orphan, ShardMessage};
use crate::model::{ConnId, Map, Mono, NodeId, Partition, Partitions, Place, Set, ShardId, Trace, bucket};
use carillon_wire::jid::BareJid;
use std::collections::VecDeque;

/// What a shard knows of the homes of accounts.
#[derive(Debug, Default)]
pub struct Claims {
    /// Accounts that are at home here, have no session now, and another node keeps.
    held: Set<BareJid>,
    /// Accounts that are at home here, another node keeps, and has claimed in vain: the number of the claim, which it may ask again.
    stayed: Map<BareJid, u64>,
    /// Accounts of partitions that this node keeps, and the nodes that have claimed them, by the buckets of their names.
    claimed: Map<u16, Vec<(BareJid, NodeId)>>,
    /// Accounts of which it is not known where they are at home.
    moving: Map<BareJid, Moving>,
    /// Bytes of what waits for that.
    waiting_bytes: usize,
    /// What the other nodes have reported, a line per shard.
    reports: Map<NodeId, Vec<(ShardId, Partitions)>>,
    /// How many shards they have.
    shards: Map<NodeId, u16>,
    /// Partitions that this node keeps, and of which every node has reported.
    open: Partitions,
    /// Accounts without a session for which something was done lately: it may be under way yet.
    touched: Recent,
    /// Accounts to which clients here have lately tried to log in: a session may be about to begin, or a password is being guessed.
    logins: Recent,
    /// The ways to accounts that other nodes keep and to which this shard sends something.
    ways: Map<BareJid, Way>,
    /// Where those are at home who sent something to a room here lately, by the room and the account: what a room answers comes in order
    /// with what happens in it only if it goes the same way, straight to there.
    senders: Map<(BareJid, BareJid), Place>,
    /// Whether the other nodes, if there are any, were told of this shard.
    pub(crate) has_joined: bool,
    /// When what was not answered is asked again, and how often yet sooner than usual.
    pub(crate) retry_at: Option<Mono>,
    pub(crate) sooner: u8,
}

/// An account of which it is not known where it is at home.
#[derive(Debug)]
pub(crate) struct Moving {
    /// Why this is not known.
    pub(crate) why: Why,
    waiting: VecDeque<AwaitsHome>,
    bytes: usize,
    since: Mono,
    /// What is known of its notifications, where it was given away, until that was taken.
    traces: Vec<Trace>,
    /// Its sessions, where it is offered.
    sessions: Vec<Orphan>,
}

/// The way to an account that another node keeps: by its keeper, or straight to its home once that was asked for.
///
/// A way changes only so that nothing overtakes: the question where the account is at home goes the old way, behind everything that went there,
/// and what comes meanwhile waits for the answer. A node that becomes the home forgets its way, so every way leads to one that was the home later
/// than it was itself, and none leads in a circle.
#[derive(Clone, Copy, Debug)]
struct Way {
    /// The home; none if that was not asked.
    at: Option<NodeId>,
    /// How many messages went this way, up to [`ASKED_AFTER`].
    messages: u8,
    since: Mono,
}

/// Why it is not known where an account is at home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// Not all nodes have reported what they have of its partition.
    Gathering,
    /// This node has claimed it, by a claim of this number.
    Claiming(u64),
    /// It is at home here, and goes to that node as soon as nothing is under way for it.
    Leaving(Claimant),
    /// This node keeps it, and has given it to that one, which has not said yet that it has it.
    Giving(Claimant),
    /// It is at home here, and its keeper was told that it may have it: its sessions go along, as this node is drained.
    Offered,
    /// Its home was asked for, so that what is for it need not go by its keeper.
    Seeking,
}

/// What waits until it is known where an account is at home.
#[derive(Debug)]
pub(crate) enum AwaitsHome {
    /// A message for the account.
    Message(Box<ShardMessage>),
    /// A client that claims to be the account.
    Client(ConnId),
}

/// Where an account is at home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whereabouts {
    /// Here.
    Here,
    /// On this node, or by way of it.
    At(NodeId),
    /// It is being found out.
    Unknown,
}

/// An account to which so many messages went by its keeper is looked for.
const ASKED_AFTER: u8 = 2;
/// How long an answer counts.
const WAY_MS: u64 = 30_000;
/// Ways that are known.
const WAYS_MAX: usize = 16 * 1024;
/// Bytes that may wait for one account, and for all of the shard.
const WAITING_BYTES_MAX: usize = 1 << 20;
const ALL_WAITING_BYTES_MAX: usize = 32 << 20;
/// Senders of rooms that are remembered; past that all are forgotten.
const SENDERS_MAX: usize = 4096;
/// For how long something may be under way for an account for which something was done.
const TOUCHED_MS: u64 = 10_000;

impl Claims {
    /// Whether it is being found out where an account is at home.
    pub(crate) fn moving(&self, account: &str) -> Option<Why> {
        if self.moving.is_empty() {
            return None;
        }
        self.moving.get(account).map(|moving| moving.why)
    }

    /// Of how many accounts it is being found out where they are at home.
    pub(crate) fn moving_count(&self) -> usize {
        self.moving.len()
    }

    /// Begins to find out where an account is at home; until then, what is for it waits.
    pub(crate) fn begin(&mut self, account: &BareJid, why: Why, now: Mono) {
        let new = || Moving {
            why,
            waiting: VecDeque::new(),
            bytes: 0,
            since: now,
            traces: Vec::new(),
            sessions: Vec::new(),
        };
        self.moving.entry(account.clone()).or_insert_with(new).why = why;
    }

    /// What is known of the notifications of an account that is given away: it is told again if it was lost.
    pub(crate) fn keep_traces(&mut self, account: &str, traces: Vec<Trace>) {
        if let Some(moving) = self.moving.get_mut(account) {
            moving.traces = traces;
        }
    }

    /// The same, to tell it again.
    pub(crate) fn kept_traces(&self, account: &str) -> Vec<Trace> {
        self.moving.get(account).map_or_else(Vec::new, |moving| moving.traces.clone())
    }

    /// The sessions of an account that is offered go along with it.
    pub(crate) fn keep_sessions(&mut self, account: &str, sessions: Vec<Orphan>) {
        if let Some(moving) = self.moving.get_mut(account) {
            moving.sessions = sessions;
        }
    }

    /// Takes out the sessions that go along.
    pub(crate) fn take_sessions(&mut self, account: &str) -> Vec<Orphan> {
        self.moving.get_mut(account).map(|moving| std::mem::take(&mut moving.sessions)).unwrap_or_default()
    }

    /// Something waits for an account. It comes back if too much waits.
    pub(crate) fn wait(&mut self, account: &str, waiting: AwaitsHome) -> Result<(), AwaitsHome> {
        let Some(moving) = self.moving.get_mut(account) else { return Err(waiting) };
        let bytes = match &waiting {
            AwaitsHome::Message(message) => message.memory_bytes(),
            AwaitsHome::Client(_) => size_of::<AwaitsHome>(),
        };
        if moving.bytes + bytes > WAITING_BYTES_MAX || self.waiting_bytes + bytes > ALL_WAITING_BYTES_MAX {
            return Err(waiting);
        }
        moving.bytes += bytes;
        self.waiting_bytes += bytes;
        moving.waiting.push_back(waiting);
        Ok(())
    }

    /// Takes out the clients that wait for an account. Its messages go on waiting.
    pub(crate) fn take_clients(&mut self, account: &str) -> Vec<ConnId> {
        let Some(moving) = self.moving.get_mut(account) else { return Vec::new() };
        let mut clients = Vec::new();
        moving.waiting.retain(|waiting| match waiting {
            AwaitsHome::Client(conn) => {
                clients.push(*conn);
                false
            }
            AwaitsHome::Message(_) => true,
        });
        let bytes = clients.len() * size_of::<AwaitsHome>();
        moving.bytes -= bytes;
        self.waiting_bytes -= bytes;
        clients
    }

    /// Whether a client waits for an account already.
    pub(crate) fn awaits(&self, account: &str, client: ConnId) -> bool {
        let is_it = |waiting: &AwaitsHome| matches!(waiting, AwaitsHome::Client(conn) if *conn == client);
        self.moving.get(account).is_some_and(|moving| moving.waiting.iter().any(is_it))
    }

    /// Notes that it is known where an account is at home. Returns what waited for that.
    pub(crate) fn end(&mut self, account: &str) -> VecDeque<AwaitsHome> {
        let Some(moving) = self.moving.remove(account) else { return VecDeque::new() };
        self.waiting_bytes -= moving.bytes;
        moving.waiting
    }

    /// The accounts whose home is not known for a reason that is wanted, sorted.
    pub(crate) fn moving_for(&self, is_wanted: impl Fn(&BareJid, &Moving) -> bool) -> Vec<BareJid> {
        let wanted = self.moving.iter().filter(|(account, moving)| is_wanted(account, moving));
        let mut wanted: Vec<_> = wanted.map(|(account, _)| account.clone()).collect();
        // The order in which they are dealt with is to be the same in every run.
        wanted.sort_unstable();
        wanted
    }

    /// Whether it is time to ask where an account is at home.
    pub(crate) fn is_to_be_sought(&mut self, account: &BareJid, now: Mono) -> bool {
        let is_full = self.ways.len() >= WAYS_MAX;
        match self.ways.get_mut(account.as_str()) {
            Some(way) if way.at.is_some() => now.since(way.since) >= WAY_MS,
            Some(way) if way.messages >= ASKED_AFTER => true,
            Some(way) => {
                way.messages += 1;
                false
            }
            // Beyond the most, messages go by the keepers. No way is forgotten that may be in use: what goes another would overtake.
            None if is_full => false,
            None => {
                self.ways.insert(account.clone(), Way { at: None, messages: 1, since: now });
                false
            }
        }
    }

    /// The node that an account is sent something by, where that is not its keeper.
    pub(crate) fn way(&self, account: &str) -> Option<NodeId> {
        if self.ways.is_empty() { None } else { self.ways.get(account)?.at }
    }

    /// Notes the answer to a question where an account is at home.
    pub(crate) fn note_way(&mut self, account: &BareJid, at: NodeId, now: Mono) {
        self.ways.insert(account.clone(), Way { at: Some(at), messages: 0, since: now });
    }

    fn forget_way(&mut self, account: &str) {
        if !self.ways.is_empty() {
            self.ways.remove(account);
        }
    }

    /// An account without a session is at home here, and another node keeps it.
    pub(crate) fn hold(&mut self, account: &BareJid) {
        self.forget_way(account.as_str());
        self.held.insert(account.clone());
    }

    /// Forgets it there: it has a session now, or is not at home here any more.
    pub(crate) fn forget_held(&mut self, account: &str) {
        self.forget_way(account);
        if !self.held.is_empty() {
            self.held.remove(account);
        }
    }

    /// Whether an account without a session is at home here.
    pub(crate) fn holds(&self, account: &str) -> bool {
        !self.held.is_empty() && self.held.contains(account)
    }

    /// The keeper of an account that is at home here is told that it stays.
    pub(crate) fn note_stay(&mut self, account: &BareJid, number: u64) {
        self.stayed.insert(account.clone(), number);
    }

    /// Whether the keeper was told so, when it made the claim of this number.
    pub(crate) fn has_stayed(&self, account: &str, number: u64) -> bool {
        !self.stayed.is_empty() && self.stayed.get(account) == Some(&number)
    }

    /// An account is not at home here any more.
    pub(crate) fn leave(&mut self, account: &str) {
        self.forget_held(account);
        if !self.stayed.is_empty() {
            self.stayed.remove(account);
        }
    }

    /// The accounts without a session that are at home here.
    pub(crate) fn held(&self) -> impl Iterator<Item = &BareJid> {
        self.held.iter()
    }

    /// Something is done for an account without a session.
    pub(crate) fn touch(&mut self, account: &str) {
        self.touched.mark(account);
    }

    /// Whether something may be under way for an account without a session.
    pub(crate) fn is_touched(&self, account: &str) -> bool {
        self.touched.is_marked(account)
    }

    /// A client claims an account that is at home here.
    pub(crate) fn logs_in(&mut self, account: &str) {
        self.logins.mark(account);
    }

    /// Whether a client may be about to have a session of an account here.
    pub(crate) fn is_logging_in(&self, account: &str) -> bool {
        self.logins.is_marked(account)
    }

    /// An account sent something to a room here.
    pub(crate) fn note_sender(&mut self, room: BareJid, account: BareJid, at: Place) {
        if self.senders.len() >= SENDERS_MAX {
            self.senders.clear();
        }
        self.senders.insert((room, account), at);
    }

    /// Where an account is at home that sent something to a room here.
    pub(crate) fn sender(&self, room: BareJid, account: BareJid) -> Option<Place> {
        self.senders.get(&(room, account)).copied()
    }

    /// How many shards a node has, if it has said so.
    pub(crate) fn shards_of(&self, node: NodeId) -> Option<u16> {
        self.shards.get(&node).copied()
    }

    /// Forgets for which accounts something was done a while ago. `login_ms`: how long a login lasts at most.
    pub(crate) fn tidy(&mut self, now: Mono, login_ms: u64) {
        self.touched.tidy(now, TOUCHED_MS);
        self.logins.tidy(now, login_ms);
        // One that is in use is asked for anew before.
        self.ways.retain(|_, way| now.since(way.since) < 2 * WAY_MS);
        if self.moving.capacity() > 4 * self.moving.len() + 64 {
            self.moving.shrink_to_fit();
        }
        if self.held.capacity() > 4 * self.held.len() + 64 {
            self.held.shrink_to_fit();
        }
        if self.stayed.capacity() > 4 * self.stayed.len() + 64 {
            self.stayed.shrink_to_fit();
        }
    }

    /// The node that has claimed an account of a partition that this one keeps.
    pub(crate) fn claimed_by(&self, account: &str) -> Option<NodeId> {
        if self.claimed.is_empty() {
            return None;
        }
        let claimed = self.claimed.get(&bucket(account))?;
        claimed.iter().find(|(name, _)| name.as_str() == account).map(|(_, node)| *node)
    }

    /// A node is the home of an account that this one keeps.
    pub(crate) fn note(&mut self, account: &BareJid, node: NodeId) {
        let claimed = self.claimed.entry(bucket(account.as_str())).or_default();
        match claimed.iter_mut().find(|(name, _)| name == account) {
            Some((_, known)) => *known = node,
            None => claimed.push((account.clone(), node)),
        }
    }

    /// An account that this node keeps is at home on no other node.
    pub(crate) fn forget(&mut self, account: &str) {
        let bucket = bucket(account);
        if let Some(claimed) = self.claimed.get_mut(&bucket) {
            claimed.retain(|(name, _)| name.as_str() != account);
            if claimed.is_empty() {
                self.claimed.remove(&bucket);
            }
        }
    }

    /// The nodes that have claimed accounts of a bucket.
    pub(crate) fn nodes_with(&self, bucket: u16) -> Vec<NodeId> {
        let mut nodes: Vec<_> =
            self.claimed.get(&bucket).into_iter().flatten().map(|(_, node)| *node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// Whether every node has reported what it has of a partition that this node keeps.
    pub(crate) fn is_open(&self, partition: Partition) -> bool {
        self.open.has(partition)
    }

    /// A shard of another node, which has so many, has reported all it has of these partitions.
    pub(crate) fn reported(&mut self, node: NodeId, shard: ShardId, shards: u16, partitions: &Partitions) {
        self.shards.insert(node, shards);
        let lines = self.reports.entry(node).or_default();
        match lines.iter_mut().find(|(known, _)| *known == shard) {
            Some((_, known)) => known.join(partitions),
            None => lines.push((shard, *partitions)),
        }
    }

    /// Whether all shards of a node have reported a partition.
    pub(crate) fn has_reported(&self, node: NodeId, partition: Partition) -> bool {
        let lines = self.reports.get(&node).map_or(&[][..], Vec::as_slice);
        let reported = lines.iter().filter(|(_, partitions)| partitions.has(partition)).count();
        self.shards.get(&node).is_some_and(|shards| reported >= usize::from(*shards))
    }

    /// A partition is kept here, and every node has reported.
    pub(crate) fn open(&mut self, partition: Partition) {
        self.open.insert(partition);
    }

    /// These partitions are not kept here any more: what was known of them is of no use.
    pub(crate) fn lose(&mut self, lost: &Partitions) {
        for partition in Partition::all().filter(|partition| lost.has(*partition)) {
            self.open.remove(partition);
            self.reports.values_mut().flatten().for_each(|(_, known)| known.remove(partition));
        }
        self.claimed.retain(|bucket, _| !lost.has(Partition::of_bucket(*bucket)));
    }

    /// Nothing is with nodes that are gone. No way leads straight to one that leaves: what was sent to it last would be lost with it.
    pub(crate) fn keep_nodes(&mut self, lives: impl Fn(NodeId) -> bool, stays: impl Fn(NodeId) -> bool) {
        // Accounts may have other keepers, with numbers of their own.
        self.stayed.clear();
        self.claimed.retain(|_, claimed| {
            claimed.retain(|(_, node)| lives(*node));
            !claimed.is_empty()
        });
        self.ways.retain(|_, way| way.at.is_none_or(&stays));
        self.reports.retain(|node, _| lives(*node));
        self.shards.retain(|node, _| lives(*node));
    }
}

impl Moving {
    /// Since when it is not known.
    pub(crate) fn since(&self) -> Mono {
        self.since
    }
}
