//! Between the nodes of a cell.

use crate::model::Epoch;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

/// Whom a record is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// One node.
    Node(Epoch),
    /// Every node that follows this partition of the topics.
    Partition(u16),
    /// Every node.
    All,
}

/// How many bytes a record may have. A longer one is lost, as one of those that a full bus drops.
pub const RECORD_BYTES_MAX: usize = 1_000_000;

/// Carries records between the nodes of a cell.
///
/// Guarantees, for every implementation, each with the case of the conformance suite (`carillon_backend::conformance::bus`) that fails
/// without it:
/// - **At most once, in order.** Of one sender's records on one subject each node hears any at most once, and in the order in which they were
///   posted by one thread (`bus::records_come_in_order_and_once`). Between subjects, and between senders, there is no order.
/// - **What is lost is told.** Whoever follows a subject is told [`Heard::Gap`] where records of a sender are lost, whatever lost them: a bus that
///   is full, away, slow or restarted. At the latest some seconds after the loss, while the sender's beats are heard
///   (`bus::what_is_lost_is_told`, `bus::a_lost_last_record_is_told`). A gap is never told too little, but may be told where nothing was lost:
///   a node that begins to follow a subject is told one for each sender that has posted there before
///   (`bus::who_follows_later_is_told_that_something_was_before`). So it is right to follow first, and to read the store then.
/// - **Bounded.** What waits to be sent is bounded in bytes. Past that bound records are lost (`bus::what_waits_is_bounded`).
/// - **Nobody hears itself**, but for beats: a node whose own beats come back knows that others can hear it
///   (`bus::nobody_hears_its_own_records`).
/// - **What is carried is counted**, by subject and by sender (`bus::what_is_carried_is_counted`).
/// - **Who rests misses nothing**: what it does not hear meanwhile it is given afterwards, as what was lost (`bus::who_rests_hears_it_later`).
/// - **Another process goes on.** A bus that begins with what [`Bus::hand_over`] gave is the same to the others: nothing is heard twice, and nothing is
///   lost that would not have been (`bus::another_process_goes_on`).
/// - **Nothing is kept.** A node that does not follow a subject while a record passes never hears it.
///
/// A node follows from its start what is for [`Subject::All`] and for its own epoch.
pub trait Bus: Debug + Send + Sync {
    /// Gives a record to be sent; returns at once. Records of one turn to one subject travel together.
    fn post(&self, to: Subject, record: Vec<u8>);

    /// Hears what others post there from soon on.
    fn follow(&self, subject: Subject);

    /// Hears it no longer. A record that is under way may still be heard.
    fn leave(&self, subject: Subject);

    /// What the beats of this node say from now on of its reads of the store. At first they say that these work.
    fn tell_store(&self, works: bool);

    /// What it carried since it was opened, and what waits now.
    fn figures(&self) -> BusFigures;

    /// Whether nothing but beats is heard for now: no record from when this has returned, until it is called again. Its own records and beats go on.
    fn rest(&self, rests: bool);

    /// Stops as [`Bus::close`] does, and gives what the bus of the next process of this node, of the same epoch, begins with.
    fn hand_over(&self) -> Vec<u8>;

    /// Stops. What waits is sent if that takes no waiting; nothing is heard after this has returned.
    fn close(&self);
}

/// What a bus carried for a node since it was opened, and what waits now. Nodes that were silent for long, or sent nothing for long, are forgotten.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BusFigures {
    /// Whether it can be reached now.
    pub is_connected: bool,
    /// Bytes that wait to be sent.
    pub waiting_bytes: u64,
    /// Records that were lost here: there was no room for them, or they were too long.
    pub dropped: u64,
    /// Records that others posted and of which this node was told that they, or some of them, were lost: how often, by sender and subject.
    pub gaps: BTreeMap<(Epoch, Subject), u64>,
    /// What was taken to be sent, by subject.
    pub posted: BTreeMap<Subject, Traffic>,
    /// What was heard, by sender.
    pub heard: BTreeMap<Epoch, Traffic>,
}

/// So many records, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Records.
    pub records: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Traffic {
    /// Counts a record of so many bytes.
    pub fn count(&mut self, bytes: usize) {
        self.records += 1;
        self.bytes += bytes as u64;
    }
}

/// Something that a node hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// A record.
    Record {
        /// Who posted it.
        from: Epoch,
        /// Whom it is for.
        subject: Subject,
        /// What was posted.
        record: Vec<u8>,
    },
    /// Something from this sender on this subject was lost, or may have been.
    Gap {
        /// The sender.
        from: Epoch,
        /// The subject.
        subject: Subject,
    },
    /// A node lives; twice per second.
    Beat {
        /// The node. Its own beats are heard, too.
        from: Epoch,
        /// How many beats it had before.
        count: u64,
        /// Whether its reads of the store work.
        store: bool,
    },
    /// The bus cannot be reached. What is posted waits.
    Away,
    /// The bus can be reached: the first time, or again.
    Back,
}

/// What a node hears goes here, from one thread or several; what is of one sender on one subject, in its order. It must not block: whoever is
/// slow bounds what waits, and remembers that it dropped something as if it had been told [`Heard::Gap`].
pub type Hears = Arc<dyn Fn(Heard) + Send + Sync>;
