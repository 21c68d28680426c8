//! What a worker's thread counts and times between two reports of progress.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use carillon_wire::stanza::StanzaError;

use crate::control::{Progress, Slice};
use crate::measure::TDigest;

/// A send that leaves later than this after it was due is late.
const LATE: Duration = Duration::from_millis(10);
/// The most kinds of errors of an interval. From half of them on, kinds are told apart without the server's words.
const KINDS_MAX: usize = 64;
/// The most bytes of a server's words in the kind of an error.
const WORDS_BYTES_MAX: usize = 120;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Count {
    /// Logins that succeeded.
    Logins,
    /// TLS handshakes that a ticket shortened.
    Resumed,
    /// Messages, notifications or items that were sent.
    Sent,
    /// Messages, notifications or items that were received.
    Deliveries,
    /// Receipts of notifications.
    Receipts,
    /// Rosters that were received.
    Rosters,
    /// Contacts on rosters: subscriptions in both directions.
    Contacts,
    /// Presence of contacts that was received.
    Presences,
    /// Pages of archives that were read.
    Pages,
    /// Messages on them.
    Archived,
    /// Of these, messages of this test.
    ArchivedInTest,
    /// Subscriptions that succeeded.
    Subscribed,
    /// Rooms that players have entered.
    Entered,
    /// Sessions that ended without the player's doing.
    Lost,
    /// Streams that were resumed (XEP-0198).
    StreamsResumed,
    /// Returns of players whose streams were not resumed.
    NotResumed,
    /// Stanzas that players sent again on resumed streams.
    Resent,
    /// Messages that were due before their recipient's connection was dropped, and that arrived on a later one.
    Redelivered,
    /// Messages that arrived again.
    Duplicates,
    /// Messages that arrived after a later one of the same sender.
    OutOfOrder,
    /// Sends that were due while the player, or its neighbour's address, was not there.
    Skipped,
    /// Connections that the scenario dropped.
    Dropped,
    /// What was sent and had not arrived when its phase was over.
    Missing,
    /// Notifications that arrived and whose acknowledgement was not reported in time.
    MissingReceipts,
    /// Sends that left more than 10 ms after they were due: the tester, not the server, was slow.
    Late,
}

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Metric {
    /// From when a login was due to its end.
    Login,
    /// From when a player's return was due, which is when its connection begins, to the resumption of its stream.
    Resume,
    /// From when a message was due to its arrival.
    Rtt,
    /// From when a notification was due to its receipt.
    Receipt,
    /// From when a player's session began to its roster.
    Roster,
    /// From the same to the presence of every contact that was available before the player.
    Contacts,
    /// From when the second of two contacts sent its presence to the presence of one at the other.
    Presence,
    /// From the request for a page of an archive to its end.
    Page,
    /// The longest silence of a player before the event of the test, and after it.
    SilenceBefore,
    Silence,
}

/// Counts, errors and latencies since they were last collected.
#[derive(Debug, Default)]
pub(super) struct Interval {
    counts: [u64; Count::ALL.len()],
    /// Streams that were not resumed, by the server's condition.
    not_resumed: BTreeMap<String, u64>,
    metrics: [TDigest; Metric::ALL.len()],
    last_delivery: BTreeMap<u32, Duration>,
    slices: BTreeMap<i32, Slice>,
    errors: BTreeMap<String, u64>,
    failed: u64,
    online: u32,
}

/// What a thread records and the engine collects, interval by interval.
#[derive(Debug, Default)]
pub(super) struct Recorder(Mutex<Interval>);

impl Count {
    const ALL: [Self; 25] = [
        Self::Logins,
        Self::Resumed,
        Self::Sent,
        Self::Deliveries,
        Self::Receipts,
        Self::Rosters,
        Self::Contacts,
        Self::Presences,
        Self::Pages,
        Self::Archived,
        Self::ArchivedInTest,
        Self::Subscribed,
        Self::Entered,
        Self::Lost,
        Self::StreamsResumed,
        Self::NotResumed,
        Self::Resent,
        Self::Redelivered,
        Self::Duplicates,
        Self::OutOfOrder,
        Self::Skipped,
        Self::Dropped,
        Self::Missing,
        Self::MissingReceipts,
        Self::Late,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Logins => "logins",
            Self::Resumed => "resumed",
            Self::Sent => "sent",
            Self::Deliveries => "deliveries",
            Self::Receipts => "receipts",
            Self::Rosters => "rosters",
            Self::Contacts => "mutual_contacts",
            Self::Presences => "presences",
            Self::Pages => "pages",
            Self::Archived => "archived",
            Self::ArchivedInTest => "archived_in_test",
            Self::Subscribed => "subscribed",
            Self::Entered => "entered",
            Self::Lost => "lost",
            Self::StreamsResumed => "streams_resumed",
            Self::NotResumed => "not_resumed",
            Self::Resent => "resent",
            Self::Redelivered => "redelivered",
            Self::Duplicates => "duplicates",
            Self::OutOfOrder => "out_of_order",
            Self::Skipped => "skipped",
            Self::Dropped => "dropped",
            Self::Missing => "missing",
            Self::MissingReceipts => "missing_receipts",
            Self::Late => "late",
        }
    }
}

impl Metric {
    const ALL: [Self; 10] = [
        Self::Login,
        Self::Resume,
        Self::Rtt,
        Self::Receipt,
        Self::Roster,
        Self::Contacts,
        Self::Presence,
        Self::Page,
        Self::SilenceBefore,
        Self::Silence,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Login => "login",
            Self::Resume => "resume",
            Self::Rtt => "RTT",
            Self::Receipt => "receipt",
            Self::Roster => "roster",
            Self::Contacts => "contacts",
            Self::Presence => "presence",
            Self::Page => "page",
            Self::SilenceBefore => "silence_before",
            Self::Silence => "silence",
        }
    }
}

impl Recorder {
    /// Counts one.
    pub(super) fn count(&self, count: Count) {
        self.add(count, 1);
    }

    /// Adds to a count.
    pub(super) fn add(&self, count: Count, many: u64) {
        self.lock().counts[count as usize] += many;
    }

    /// Counts something that was sent this long after it was due.
    pub(super) fn sent(&self, lateness: Duration) {
        let mut interval = self.lock();
        interval.counts[Count::Sent as usize] += 1;
        interval.counts[Count::Late as usize] += u64::from(lateness > LATE);
    }

    /// Counts a return of a player whose stream was not resumed, by the condition.
    pub(super) fn not_resumed(&self, condition: &str) {
        let mut interval = self.lock();
        interval.counts[Count::NotResumed as usize] += 1;
        *interval.not_resumed.entry(format!("not_resumed_{condition}")).or_default() += 1;
    }

    /// Adds a latency.
    pub(super) fn time(&self, metric: Metric, latency: Duration) {
        self.lock().metrics[metric as usize].record(latency);
    }

    /// Counts something that arrived, and how long it took.
    pub(super) fn delivered(&self, latency: Duration) {
        let mut interval = self.lock();
        interval.counts[Count::Deliveries as usize] += 1;
        interval.metrics[Metric::Rtt as usize].record(latency);
    }

    /// The same for an item that goes to all subscribers, whose last arrival is a metric, too.
    pub(super) fn delivered_item(&self, item: u32, latency: Duration) {
        self.delivered(latency);
        let mut interval = self.lock();
        let last = interval.last_delivery.entry(item).or_default();
        *last = latency.max(*last);
    }

    /// Counts something that arrived in a slice of time.
    pub(super) fn delivered_in(&self, slice: i32) {
        self.lock().slices.entry(slice).or_default().deliveries += 1;
    }

    /// Counts a session that was lost in a slice of time.
    pub(super) fn disconnected_in(&self, slice: i32) {
        self.lock().slices.entry(slice).or_default().disconnects += 1;
    }

    /// Counts an error by its kind: a few words that are the same each time.
    pub(super) fn error(&self, kind: impl Into<String>) {
        self.lock().error(kind.into(), None);
    }

    /// Counts an error by its kind, and by the words of the server, which may be different each time.
    pub(super) fn error_with(&self, kind: impl Into<String>, words: Option<&str>) {
        self.lock().error(kind.into(), words);
    }

    /// Counts a request of this kind that was refused.
    pub(super) fn refused(&self, what: &str, error: &StanzaError) {
        self.error_with(format!("{what}: {}", error.condition), error.text.as_deref());
    }

    /// Counts a player that failed.
    pub(super) fn failed(&self) {
        self.lock().failed += 1;
    }

    /// Sets how many players are in session.
    pub(super) fn set_online(&self, online: usize) {
        self.lock().online = u32::try_from(online).unwrap_or(u32::MAX);
    }

    /// Moves what was recorded since the last call into a progress.
    pub(super) fn take_into(&self, progress: &mut Progress) {
        let interval = {
            let mut interval = self.lock();
            let online = interval.online;
            std::mem::replace(&mut *interval, Interval { online, ..Interval::default() })
        };
        progress.online += interval.online;
        progress.failed += interval.failed;
        for (count, many) in Count::ALL.into_iter().zip(interval.counts).filter(|(_, many)| *many > 0) {
            *progress.counts.entry(count.name().to_owned()).or_default() += many;
        }
        for (name, many) in interval.not_resumed {
            *progress.counts.entry(name).or_default() += many;
        }
        for (metric, digest) in Metric::ALL.into_iter().zip(interval.metrics) {
            if !digest.is_empty() {
                progress.metrics.entry(metric.name().to_owned()).or_default().merge(digest);
            }
        }
        for (slice, happened) in interval.slices {
            let slice = progress.slices.entry(slice).or_default();
            slice.deliveries += happened.deliveries;
            slice.disconnects += happened.disconnects;
        }
        for (kind, many) in interval.errors {
            *progress.errors.entry(kind).or_default() += many;
        }
        if !interval.last_delivery.is_empty() {
            let largest = progress.largest.entry("last_delivery".to_owned()).or_default();
            for (item, latency) in interval.last_delivery {
                let largest = largest.entry(item).or_default();
                *largest = largest.max(latency.as_secs_f64() * 1000.0);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Interval> {
        // A panic elsewhere leaves no number half written.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Interval {
    fn error(&mut self, kind: String, words: Option<&str>) {
        let full = words.filter(|words| !words.is_empty()).map(|words| format!("{kind} ({})", short(words)));
        let has_room = |kind: &String, max| self.errors.contains_key(kind) || self.errors.len() < max;
        let kind = full.filter(|full| has_room(full, KINDS_MAX / 2)).unwrap_or(kind);
        let kind = if has_room(&kind, KINDS_MAX) { kind } else { "others".to_owned() };
        *self.errors.entry(kind).or_default() += 1;
    }
}

/// The beginning of a text.
fn short(words: &str) -> &str {
    words.get(..words.floor_char_boundary(WORDS_BYTES_MAX)).unwrap_or(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_recorded_is_reported_once() {
        let recorder = Recorder::default();
        recorder.set_online(3);
        recorder.count(Count::Logins);
        recorder.error("login: not-authorized");
        recorder.sent(LATE);
        recorder.sent(LATE * 2);
        recorder.delivered_item(7, Duration::from_millis(2));
        recorder.delivered_item(7, Duration::from_millis(1));
        let mut progress = Progress::default();
        recorder.take_into(&mut progress);
        let counts = [("logins", 1), ("deliveries", 2), ("sent", 2), ("late", 1)];
        assert_eq!(progress.counts, counts.map(|(name, many)| (name.to_owned(), many)).into());
        assert_eq!(progress.errors, BTreeMap::from([("login: not-authorized".into(), 1)]));
        assert_eq!(progress.largest["last_delivery"], BTreeMap::from([(7, 2.0)]));
        assert!(!progress.metrics["RTT"].is_empty());
        let mut again = Progress::default();
        recorder.take_into(&mut again);
        assert_eq!(again, Progress { online: 3, ..Progress::default() });
    }

    #[test]
    fn errors_have_the_words_of_the_server_as_long_as_these_are_few() {
        let recorder = Recorder::default();
        let refusal =
            |text: String| StanzaError::new(carillon_wire::stanza::Condition::Forbidden).with_text(text);
        for at in 0..200 {
            recorder.refused("publish", &refusal(format!("you are number {at}")));
        }
        recorder.refused("publish", &refusal("you are number 0".to_owned()));
        recorder.refused("publish", &refusal(String::new()));
        (0..200).for_each(|at| recorder.error(format!("kind {at}")));
        let mut progress = Progress::default();
        recorder.take_into(&mut progress);
        assert_eq!(progress.errors["publish: forbidden (you are number 0)"], 2);
        assert_eq!(progress.errors["publish: forbidden"], 1 + 200 - KINDS_MAX as u64 / 2);
        assert_eq!(progress.errors.len(), KINDS_MAX + 1);
        assert_eq!(progress.errors.values().sum::<u64>(), 402);
        assert_eq!(short(&"ü".repeat(100)).len(), WORDS_BYTES_MAX);
    }

    #[test]
    fn names_are_in_the_order_of_the_arrays() {
        assert!(Count::ALL.into_iter().enumerate().all(|(at, count)| count as usize == at));
        assert!(Metric::ALL.into_iter().enumerate().all(|(at, metric)| metric as usize == at));
    }
}
