//! What the nodes of a cell tell each other about whose home an account has.

use crate::command::{Command, ReplyTo};
use crate::model::{NodeId, Partitions, Place, Trace};
use carillon_wire::jid::BareJid;

/// Who claims an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claimant {
    /// The shard that knows of the account on the node that claims it.
    pub place: Place,
    /// The number of the claim, which its answer repeats: a claim that is asked again has the same, and a later one of the account another.
    pub number: u64,
}

crate::form! { struct Claimant { place, number } }

/// Something about the homes of accounts, for the shard of a node that knows where they are.
#[derive(Clone, Debug)]
pub enum ClaimMessage {
    /// A client of this shard's node claims an account: the node wants to be its home. For the account's keeper, by the way that messages
    /// for the account go. If another node is the home, the keeper claims the account from it first, with a claim of its own.
    Claim {
        /// The account.
        account: BareJid,
        /// Who claims it.
        by: Claimant,
    },
    /// The answer: that node is the account's home.
    Home {
        /// The account.
        account: BareJid,
        /// The home: the node that claimed it, or another, which keeps it because it has sessions of the account.
        at: NodeId,
        /// Who says so: the keeper, or the home to the keeper.
        said_by: NodeId,
        /// The number of the claim; 0 where two nodes took themselves for the home.
        number: u64,
        /// What was known of its notifications at its home before.
        traces: Vec<Trace>,
    },
    /// An account is at home on a node, which has no session of it and does nothing for it. For its keeper, which claims it.
    Idle {
        /// The account.
        account: BareJid,
        /// The node.
        at: NodeId,
    },
    /// The answer to the keeper that gave an account to a node: the account is at home there from now on.
    Taken {
        /// The account.
        account: BareJid,
        /// The node.
        at: NodeId,
        /// The number of its claim.
        number: u64,
    },
    /// The answer to the keeper's claim: an account is not at home on this node, or not any more. Also to the keeper that gave the account to
    /// the node, where that does not want it any more.
    Left {
        /// The account.
        account: BareJid,
        /// The node.
        from: NodeId,
        /// The number of the keeper's claim, or of the node's.
        number: u64,
        /// What is known of its notifications.
        traces: Vec<Trace>,
    },
    /// Accounts that are at home on this shard's node. For each shard of the node that has become the keeper of their partitions.
    Report {
        /// The shard.
        from: Place,
        /// How many shards its node has, each of which reports.
        shards: u16,
        /// The partitions of which this shard has told everything, once this was read.
        partitions: Partitions,
        /// The accounts.
        accounts: Vec<BareJid>,
    },
    /// A keeper has no report of this node.
    ReportAgain {
        /// The keeper.
        to: NodeId,
    },
    /// What is known of the notifications of an account, for its home.
    Traces {
        /// The account.
        account: BareJid,
        /// What is known.
        traces: Vec<Trace>,
    },
    /// Where is an account at home? For its home, by the way that messages for it go.
    Where {
        /// The account.
        account: BareJid,
        /// The shard that wants to know.
        asker: Place,
    },
    /// The answer of the home.
    There {
        /// The account.
        account: BareJid,
        /// The home.
        at: NodeId,
    },
    /// A command about a notification, for the home of its account.
    Command {
        /// The account.
        account: BareJid,
        /// The command.
        command: Command,
        /// Where its outcome goes.
        reply: ReplyTo,
    },
    /// The same for one that the store does not have: carried out where it is known, else by the keeper of its account.
    Find {
        /// The command.
        command: Command,
        /// Where its outcome goes.
        reply: ReplyTo,
        /// The nodes that are asked behind this one.
        left: Vec<NodeId>,
        /// The keeper's shard.
        keeper: Place,
    },
}

crate::form! {
    enum ClaimMessage {
        0 = Claim { account, by },
        1 = Home { account, at, said_by, number, traces },
        2 = Left { account, from, number, traces },
        3 = Report { from, shards, partitions, accounts },
        4 = ReportAgain { to },
        5 = Command { account, command, reply },
        6 = Find { command, reply, left, keeper },
        7 = Traces { account, traces },
        8 = Where { account, asker },
        9 = There { account, at },
        10 = Idle { account, at },
        11 = Taken { account, at, number },
    }
}

impl ClaimMessage {
    /// Bytes that it takes in memory, as far as a client chose them.
    pub fn memory_bytes(&self) -> usize {
        let bytes = |account: &BareJid| size_of::<BareJid>() + account.as_str().len();
        match self {
            ClaimMessage::Claim { account, .. }
            | ClaimMessage::Home { account, .. }
            | ClaimMessage::Command { account, .. }
            | ClaimMessage::Traces { account, .. }
            | ClaimMessage::Where { account, .. }
            | ClaimMessage::There { account, .. }
            | ClaimMessage::Idle { account, .. }
            | ClaimMessage::Taken { account, .. }
            | ClaimMessage::Left { account, .. } => bytes(account),
            ClaimMessage::Report { accounts, .. } => accounts.iter().map(bytes).sum(),
            ClaimMessage::ReportAgain { .. } | ClaimMessage::Find { .. } => 0,
        }
    }
}
