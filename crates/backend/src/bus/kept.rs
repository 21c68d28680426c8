//! What has left, kept for a while: an engine may lose it on its way, and who misses it asks for it again.

use super::left::LeftEnvelope;
use bytes::Bytes;
use carillon_core::ports::Subject;
use std::collections::VecDeque;

/// What left so many beats ago is asked for no more.
const KEPT_BEATS: u64 = 40;

/// Envelopes that have left, the oldest first, bounded in bytes.
#[derive(Debug)]
pub(super) struct Kept {
    envelopes: VecDeque<Left>,
    bytes: usize,
    bytes_max: usize,
}

#[derive(Debug)]
struct Left {
    subject: Subject,
    /// The numbers of its first and last record.
    first: u64,
    last: u64,
    /// After which beat it left.
    beat: u64,
    envelope: Bytes,
}

impl Kept {
    pub(super) fn new(bytes_max: usize) -> Kept {
        Kept { envelopes: VecDeque::new(), bytes: 0, bytes_max }
    }

    /// An envelope leaves.
    pub(super) fn add(&mut self, subject: Subject, numbers: (u64, u64), beat: u64, envelope: &Bytes) {
        let (first, last) = numbers;
        self.bytes += envelope.len();
        self.envelopes.push_back(Left { subject, first, last, beat, envelope: envelope.clone() });
        while self.bytes > self.bytes_max {
            self.forget_oldest();
        }
    }

    /// Forgets what left long before this beat.
    pub(super) fn age(&mut self, beat: u64) {
        while self.envelopes.front().is_some_and(|left| left.beat + KEPT_BEATS < beat) {
            self.forget_oldest();
        }
        if self.envelopes.is_empty() {
            self.envelopes.shrink_to_fit();
        }
    }

    /// Those to a subject that have one of these numbers, and the number of the first record of each.
    pub(super) fn of(&self, subject: Subject, first: u64, last: u64) -> impl Iterator<Item = (u64, &Bytes)> {
        let is_one = move |left: &&Left| left.subject == subject && left.last >= first && left.first <= last;
        self.envelopes.iter().filter(is_one).map(|left| (left.first, &left.envelope))
    }

    /// All of them, the oldest first.
    pub(super) fn all(&self) -> Vec<LeftEnvelope> {
        let each = self.envelopes.iter().map(|Left { subject, first, last, beat, envelope }| LeftEnvelope {
            subject: *subject,
            first: *first,
            last: *last,
            beat: *beat,
            envelope: envelope.clone(),
        });
        each.collect()
    }

    fn forget_oldest(&mut self) {
        if let Some(left) = self.envelopes.pop_front() {
            self.bytes -= left.envelope.len();
        }
    }
}
