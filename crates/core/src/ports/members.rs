//! The nodes of a cell, and the verdict that one is dead.

use super::Reply;
use super::claims::Unavailable;
use crate::form;
use crate::model::Epoch;
use std::fmt::Debug;

/// A node of a cell: the newest process of its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The number of this process.
    pub epoch: Epoch,
    /// The node's name, which outlives its processes.
    pub name: Box<str>,
    /// Where others reach it, as its settings say.
    pub address: Box<str>,
    /// What it does, as its settings say: `edge`, `ingress`, `api`.
    pub roles: Box<str>,
    /// Whether the store has a connection of this process: it has one from its first question on. The connections of a process that is killed
    /// are closed at once.
    pub is_connected: bool,
    /// The newest version of the form that others are to write for it; 0 if it does not say.
    pub form_newest: u16,
    /// Whether it was buried. Nothing of it is committed from then on, and it never lives again: its name may, with another epoch.
    pub is_dead: bool,
}

/// The nodes of a cell at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Membership {
    /// The nodes, by their epochs. The dead are among them for a while.
    pub members: Vec<Member>,
    /// The newest epoch that was given: whoever has an epoch up to this one and is not among the members is dead.
    pub newest: Epoch,
}

impl Membership {
    /// The version of the form that all read who live.
    pub fn form_version(&self) -> u16 {
        let said = self.members.iter().filter(|member| !member.is_dead && member.form_newest > 0);
        said.map(|member| member.form_newest).chain([form::announced()]).min().unwrap_or(form::VERSION)
    }

    /// The epochs that live.
    pub fn living(&self) -> Vec<Epoch> {
        self.members.iter().filter(|member| !member.is_dead).map(|member| member.epoch).collect()
    }
}

/// Who the nodes of a cell are: rows of the store, read and changed beside its questions, so that they do not wait for these.
///
/// Guarantees, for every implementation, each with the case of the conformance suite (`carillon_backend::conformance::members`) that
/// fails without it:
/// - **An epoch is given once**, and a later one is higher, whatever their names (`members::epochs_are_given_once`).
/// - **Of a name one lives.** Who starts under a name buries who had it before (`members::who_starts_buries_who_was_before`).
/// - **The buried commit nothing.** Once [`Members::bury`] was answered, or a process has started under the name, the store refuses every write of that epoch, and what it had
///   under way is committed before or never (`members::a_buried_epoch_never_commits`).
/// - **Whose process is gone has no connection**, at once where the process was killed, and is not dead by that
///   (`members::whose_process_is_gone_has_no_connection`).
/// - **The buried bury nobody**: of two that bury each other one lives (`members::of_two_that_bury_each_other_one_lives`).
pub trait Members: Debug + Send + Sync {
    /// The epoch of this process.
    fn epoch(&self) -> Epoch;

    /// The nodes as they are now. Answered within some seconds, whatever else the store is asked.
    fn list(&self, reply: Reply<Result<Membership, Unavailable>>);

    /// Buries a node, unless this process is buried itself. Whether it was buried by this: not if it is no member, or was dead.
    fn bury(&self, epoch: Epoch, reply: Reply<Result<bool, Unavailable>>);
}
