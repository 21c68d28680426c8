//! Measures what is stored of the domains whose policies bound it: page by page, so that others are read between, and no more often than that it
//! takes a fiftieth of one reader's time.

use super::JobMessage;
use crate::node::Node;
use carillon_core::model::DomainId;
use carillon_core::ports::Fault;
use carillon_core::ports::store::domains::{NoteStored, StoredBytes, StoredKind, StoredPart};
use std::sync::mpsc::SyncSender;
use std::time::Instant;

/// What the store did.
pub(crate) enum Told {
    /// It read a page.
    Read(Result<StoredPart, Fault>),
    /// It wrote a sum down, or could not.
    Noted,
}

/// A round through the domains.
#[derive(Default)]
pub(super) struct Measuring {
    /// Domains that are still to be measured in this round.
    left: Vec<DomainId>,
    /// The page that the store is asked for, and what the pages before it came to.
    page: Option<StoredBytes>,
    bytes: u64,
    /// Whether a sum is being written down.
    is_noting: bool,
    /// Whether a sum of this round is another than it was.
    has_changed: bool,
    /// Whether the round ends with the page that is read.
    is_stopped: bool,
    began: Option<Instant>,
    /// When the next round begins, in ticks.
    next_round: u32,
}

impl Measuring {
    /// Whether an answer of the store is awaited.
    pub(super) fn is_under_way(&self) -> bool {
        self.page.is_some() || self.is_noting
    }

    /// Asks nothing more in this round.
    pub(super) fn stop(&mut self) {
        self.left.clear();
        self.is_stopped = self.page.is_some();
    }

    /// A second has passed.
    pub(super) fn tick(&mut self, node: &Node, sender: &SyncSender<JobMessage>) {
        if self.began.is_some() {
            return;
        }
        if let Some(left) = self.next_round.checked_sub(1) {
            self.next_round = left;
            return;
        }
        let domains = node.domains();
        self.left = domains.iter().filter(|d| d.policy.stored_bytes_max > 0).map(|d| d.id).collect();
        self.began = Some(Instant::now());
        self.has_changed = false;
        self.next_domain(node, sender);
    }

    /// The store has done what it was asked for.
    pub(super) fn heard(&mut self, told: Told, node: &Node, sender: &SyncSender<JobMessage>) {
        match told {
            Told::Read(answer) => self.read(answer, node, sender),
            Told::Noted => {
                self.is_noting = false;
                self.next_domain(node, sender);
            }
        }
    }

    fn read(&mut self, answer: Result<StoredPart, Fault>, node: &Node, sender: &SyncSender<JobMessage>) {
        let Some(page) = self.page.take() else { return };
        if std::mem::take(&mut self.is_stopped) {
            return self.next_domain(node, sender);
        }
        // What could not be read is measured in the next round.
        let Ok(part) = answer else { return self.next_domain(node, sender) };
        self.bytes += part.bytes;
        let next = match (part.last, page.kind) {
            (Some(last), _) => StoredBytes { after: Some(last), ..page },
            (None, StoredKind::Accounts) => StoredBytes { kind: StoredKind::Topics, after: None, ..page },
            (None, StoredKind::Topics) => return self.note(page.domain, node, sender),
        };
        self.ask(next, node, sender);
    }

    fn note(&mut self, domain: DomainId, node: &Node, sender: &SyncSender<JobMessage>) {
        let bytes = self.bytes;
        if node.domains().numbered(domain).is_none_or(|domain| domain.stored_bytes == bytes) {
            return self.next_domain(node, sender);
        }
        (self.is_noting, self.has_changed) = (true, true);
        let sender = sender.clone();
        node.ask(NoteStored { domain, bytes }, move |_| drop(sender.send(JobMessage::Stored(Told::Noted))));
    }

    fn next_domain(&mut self, node: &Node, sender: &SyncSender<JobMessage>) {
        self.bytes = 0;
        if let Some(domain) = self.left.pop() {
            let page = StoredBytes { domain, kind: StoredKind::Accounts, after: None, limit: PAGE };
            return self.ask(page, node, sender);
        }
        let took = self.began.take().map_or(0, |began| began.elapsed().as_secs());
        self.next_round = ROUND_TICKS_MIN.max(u32::try_from(took).unwrap_or(u32::MAX).saturating_mul(PART));
        if self.has_changed {
            node.reload_domains(Box::new(|()| {}));
        }
    }

    fn ask(&mut self, page: StoredBytes, node: &Node, sender: &SyncSender<JobMessage>) {
        self.page = Some(page.clone());
        let sender = sender.clone();
        node.ask(page, move |answer| drop(sender.send(JobMessage::Stored(Told::Read(answer)))));
    }
}

/// Accounts or topics that are read at once.
const PAGE: u32 = 1000;
/// The least time between two rounds, in ticks.
const ROUND_TICKS_MIN: u32 = 10;
/// Rounds take this part of the time at most.
const PART: u32 = 50;
