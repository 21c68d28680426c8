//! Finishes removals of accounts and of domains whose parts are not all gone: the process of whoever began ended meanwhile, or the store failed. One after the
//! other; several nodes of a cell that finish the same one do no harm to each other.

use super::JobMessage;
use crate::clock::unix;
use crate::node::Node;
use carillon_core::command::{Command, Outcome};
use carillon_core::model::{DomainId, RosterChange, UnixMs};
use carillon_core::ports::store::accounts::{UnfinishedRemoval, UnfinishedRemovals};
use carillon_core::ports::store::domains::{DOMAIN_PART_ROWS, DeleteDomain};
use carillon_core::ports::{Fault, Missing, Part};
use std::sync::mpsc::SyncSender;

/// What came of a step.
pub(crate) enum Done {
    /// The store lists what is not finished.
    Listed(Result<Vec<UnfinishedRemoval>, Fault>),
    /// The home of an account has removed it, or could not.
    Account,
    /// The store has removed a part of a domain.
    PartOf(DomainId, Result<Result<Part<RosterChange>, Missing>, Fault>),
}

/// What is under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Pending {
    #[default]
    Nothing,
    /// The store is asked something.
    Asks,
    /// The home of an account removes it.
    Commands,
}

/// The removals that are finished in this round.
#[derive(Default)]
pub(super) struct Finishing {
    left: Vec<UnfinishedRemoval>,
    step: Pending,
    /// Whether the store listed as many as it was asked for.
    has_more: bool,
    /// Whether a round has begun since the start.
    has_begun: bool,
    /// When the next round begins, in ticks.
    next_round: u32,
}

impl Finishing {
    /// Whether an answer of the store is awaited.
    pub(super) fn is_under_way(&self) -> bool {
        self.step == Pending::Asks
    }

    /// Begins nothing more in this round. An account whose home is removing it goes on there, or is found again later.
    pub(super) fn stop(&mut self) {
        self.left.clear();
        self.has_more = false;
    }

    /// A second has passed.
    pub(super) fn tick(&mut self, node: &Node, sender: &SyncSender<JobMessage>) {
        if self.step != Pending::Nothing {
            return;
        }
        match self.next_round.checked_sub(1) {
            Some(left) => self.next_round = left,
            None => self.list(node, sender),
        }
    }

    /// A step is done.
    pub(super) fn heard(
        &mut self,
        done: Done,
        is_paused: bool,
        node: &Node,
        sender: &SyncSender<JobMessage>,
    ) {
        self.step = Pending::Nothing;
        match done {
            Done::Listed(Ok(listed)) => {
                self.has_more = listed.len() == usize::from(LISTED_MAX);
                self.left = listed;
                self.left.reverse();
            }
            // It is asked again in the next round.
            Done::Listed(Err(_)) => self.has_more = false,
            Done::Account => {}
            Done::PartOf(domain, answer) => {
                let goes_on = has_more_of_domain(answer, node);
                if goes_on && !is_paused {
                    return self.remove_part(domain, node, sender);
                }
            }
        }
        match is_paused {
            true => self.stop(),
            false => self.next(node, sender),
        }
    }

    fn list(&mut self, node: &Node, sender: &SyncSender<JobMessage>) {
        // After a start nobody goes on with those of the process before.
        let idle_ms = if std::mem::replace(&mut self.has_begun, true) { IDLE_MS } else { 0 };
        let question =
            UnfinishedRemovals { before: UnixMs(unix().0.saturating_sub(idle_ms)), limit: LISTED_MAX };
        self.step = Pending::Asks;
        let sender = sender.clone();
        node.ask(question, move |answer| tell(&sender, Done::Listed(answer)));
    }

    fn next(&mut self, node: &Node, sender: &SyncSender<JobMessage>) {
        match self.left.pop() {
            Some(UnfinishedRemoval::Account(domain, account)) => {
                tracing::info!(
                    account = account.as_str(),
                    "the removal of an account was not finished; it goes on"
                );
                self.step = Pending::Commands;
                let sender = sender.clone();
                // Whatever came of it: one that is not finished yet is found again.
                let reply = move |_: Outcome| tell(&sender, Done::Account);
                node.command(Command::RemoveAccount { domain, account }, Box::new(reply));
            }
            Some(UnfinishedRemoval::Domain(domain)) => {
                tracing::info!(domain = domain.0, "the removal of a domain was not finished; it goes on");
                self.remove_part(domain, node, sender);
            }
            None => self.next_round = if std::mem::take(&mut self.has_more) { 0 } else { ROUND_TICKS },
        }
    }

    fn remove_part(&mut self, domain: DomainId, node: &Node, sender: &SyncSender<JobMessage>) {
        self.step = Pending::Asks;
        let sender = sender.clone();
        let part = DeleteDomain { domain, now: unix(), rows_max: DOMAIN_PART_ROWS };
        node.ask(part, move |answer| tell(&sender, Done::PartOf(domain, answer)));
    }
}

/// Tells those concerned what was removed; whether there is more of the domain.
fn has_more_of_domain(answer: Result<Result<Part<RosterChange>, Missing>, Fault>, node: &Node) -> bool {
    // Missing: another node was first. What the store did not do is found again.
    let Ok(Ok(Part { entries: changes, more })) = answer else { return false };
    if !changes.is_empty() {
        node.command(Command::ContactsRemoved { changes }, Box::new(|_| {}));
    }
    if !more {
        node.reload_domains(Box::new(|()| {}));
    }
    more
}

fn tell(sender: &SyncSender<JobMessage>, done: Done) {
    // There is room for it; and the thread may have ended.
    drop(sender.try_send(JobMessage::Removal(done)));
}

/// A removal of which no part was removed for so long is nobody's any more, in milliseconds.
const IDLE_MS: u64 = 60_000;
/// Between two rounds.
const ROUND_TICKS: u32 = 60;
/// Removals that are finished in one round, unless there are more.
const LISTED_MAX: u16 = 16;
