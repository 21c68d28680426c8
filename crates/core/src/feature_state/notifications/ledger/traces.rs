//! Traces of notifications that are not, or not yet, in the store: those for `active` and `connected` audiences, and the
//! times at which stored ones were given to a connection. Bounded in bytes: traces that have ended are forgotten first, the
//! oldest first; then others, whose acknowledgement can then not be reported any more.

use crate::model::{Audience, Map, NotificationId, Trace, bucket};
use carillon_wire::jid::BareJid;
use std::collections::{BTreeSet, VecDeque};

/// How many notifications that are not in the store a shard lists: this bounds the cost of a list.
const LISTED_MAX: usize = 4096;
/// How many that have ended are taken out: senders repeat what they sent within seconds, and reading traces takes time.
const ENDED_TAKEN_MAX: usize = 10_000;

/// Traces in memory.
#[derive(Debug, Default)]
pub(super) struct Traces {
    by_id: Map<NotificationId, Kept>,
    /// Places of traces that have not ended, in the order they came. May hold outdated places, but fewer than valid ones.
    open: VecDeque<Place>,
    /// Places of traces that have ended, in the order they ended. May hold outdated places likewise.
    ended: VecDeque<Place>,
    /// The newest notifications that are not in the store.
    unkept: VecDeque<NotificationId>,
    /// All of them by the buckets of their accounts, once those of an account were asked for.
    by_bucket: Option<BTreeSet<(u16, NotificationId)>>,
    /// The number of the last place.
    last: u64,
    bytes: usize,
}

/// A trace, and the number of its place in one of the orders.
#[derive(Debug)]
struct Kept {
    trace: Trace,
    place: u64,
}

/// A place in one of the orders. A trace has one at a time.
#[derive(Clone, Copy, Debug)]
struct Place {
    id: NotificationId,
    number: u64,
}

impl Traces {
    /// Keeps a trace, or its newer state, and forgets others while all together take more than `bytes_max`.
    pub(super) fn put(&mut self, trace: Trace, bytes_max: usize) {
        let (id, has_ended) = (trace.id, trace.ended.is_some());
        self.bytes += bytes(&trace);
        let before = self.remove(id);
        if before.is_none() && trace.audience != Audience::Always {
            self.note_unkept(id);
        }
        let place = match before {
            Some(Kept { trace, place }) if trace.ended.is_some() == has_ended => place,
            _ => self.place(id, has_ended),
        };
        self.by_id.insert(id, Kept { trace, place });
        if let Some(index) = &mut self.by_bucket {
            index.insert((id.bucket(), id));
        }
        while self.bytes > bytes_max {
            let Some(oldest) = self.ended.pop_front().or_else(|| self.open.pop_front()) else { break };
            if self.is_held(&oldest) {
                self.remove(oldest.id);
            }
        }
        self.compact();
    }

    /// The trace of a notification, if it is here.
    pub(super) fn find(&self, id: NotificationId) -> Option<&Trace> {
        self.by_id.get(&id).map(|kept| &kept.trace)
    }

    /// Lets `end` put a trace into its last state, unless it has ended before. Returns the ended trace.
    pub(super) fn end(&mut self, id: NotificationId, end: impl FnOnce(&mut Trace)) -> Option<Trace> {
        let kept = self.by_id.get_mut(&id).filter(|kept| kept.trace.ended.is_none())?;
        end(&mut kept.trace);
        debug_assert!(kept.trace.ended.is_some(), "an end has a time");
        let trace = kept.trace.clone();
        let place = self.place(id, true);
        self.by_id.entry(id).and_modify(|kept| kept.place = place);
        self.compact();
        Some(trace)
    }

    /// The traces of the newest notifications that are not kept, newest first.
    pub(super) fn unkept(&self) -> impl Iterator<Item = &Trace> {
        self.unkept.iter().rev().filter_map(|id| self.find(*id))
    }

    /// Forgets a trace, because the store has it from now on.
    pub(super) fn forget(&mut self, id: NotificationId) -> Option<Trace> {
        self.remove(id).map(|kept| kept.trace)
    }

    /// Takes out traces that have not ended, of about so many bytes, the oldest first; none when none are left.
    pub(super) fn take_open(&mut self, bytes_max: usize) -> Vec<Trace> {
        let (mut taken, enough) = (Vec::new(), self.bytes.saturating_sub(bytes_max));
        while self.bytes > enough
            && let Some(place) = self.open.pop_front()
        {
            taken.extend(self.take(&place));
        }
        taken
    }

    /// The same for those that have ended. What ended before the newest of them is forgotten.
    pub(super) fn take_ended(&mut self, bytes_max: usize) -> Vec<Trace> {
        for place in self.ended.drain(..self.ended.len().saturating_sub(ENDED_TAKEN_MAX)).collect::<Vec<_>>()
        {
            self.take(&place);
        }
        let (mut taken, enough) = (Vec::new(), self.bytes.saturating_sub(bytes_max));
        while self.bytes > enough
            && let Some(place) = self.ended.pop_front()
        {
            taken.extend(self.take(&place));
        }
        taken
    }

    /// Takes out those of an account.
    pub(super) fn take_of(&mut self, account: &BareJid) -> Vec<Trace> {
        let all = || self.by_id.keys().map(|id| (id.bucket(), *id)).collect();
        let index = self.by_bucket.get_or_insert_with(all);
        let bucket = bucket(account.as_str());
        let ids = index.range((bucket, NotificationId(0))..=(bucket, NotificationId(u128::MAX)));
        let is_theirs =
            |id: &NotificationId| self.by_id.get(id).is_some_and(|kept| kept.trace.to == *account);
        let ids: Vec<_> = ids.map(|(_, id)| *id).filter(is_theirs).collect();
        ids.into_iter().filter_map(|id| self.forget(id)).collect()
    }

    /// Takes out those of some accounts.
    pub(super) fn take_where(&mut self, is_wanted: impl Fn(&BareJid) -> bool) -> Vec<Trace> {
        let wanted = self.by_id.iter().filter(|(_, kept)| is_wanted(&kept.trace.to));
        let mut ids: Vec<_> = wanted.map(|(id, _)| *id).collect();
        ids.sort_unstable();
        ids.into_iter().filter_map(|id| self.forget(id)).collect()
    }

    fn take(&mut self, place: &Place) -> Option<Trace> {
        self.is_held(place).then(|| self.forget(place.id)).flatten()
    }

    fn remove(&mut self, id: NotificationId) -> Option<Kept> {
        let kept = self.by_id.remove(&id)?;
        self.bytes -= bytes(&kept.trace);
        if let Some(index) = &mut self.by_bucket {
            index.remove(&(id.bucket(), id));
        }
        Some(kept)
    }

    fn note_unkept(&mut self, id: NotificationId) {
        if self.unkept.len() == LISTED_MAX {
            self.unkept.pop_front();
        }
        self.unkept.push_back(id);
    }

    fn place(&mut self, id: NotificationId, has_ended: bool) -> u64 {
        self.last += 1;
        let order = if has_ended { &mut self.ended } else { &mut self.open };
        order.push_back(Place { id, number: self.last });
        self.last
    }

    fn is_held(&self, place: &Place) -> bool {
        self.by_id.get(&place.id).is_some_and(|kept| kept.place == place.number)
    }

    /// Removes outdated places from the orders once they are the majority.
    fn compact(&mut self) {
        let bound = 2 * self.by_id.len() + 64;
        if self.open.len() <= bound && self.ended.len() <= bound {
            return;
        }
        let (open, ended) = (std::mem::take(&mut self.open), std::mem::take(&mut self.ended));
        self.open = open.into_iter().filter(|place| self.is_held(place)).collect();
        self.ended = ended.into_iter().filter(|place| self.is_held(place)).collect();
    }
}

/// Bytes of a trace, of what it carries, and of its places in the map and the orders.
fn bytes(trace: &Trace) -> usize {
    let carried = trace.to.as_str().len() + trace.collapse_key.as_ref().map_or(0, |key| key.len());
    size_of::<Trace>() + carried + 3 * size_of::<Place>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{DomainId, Notification, NotificationState, Payload, Priority, UnixMs};
    use carillon_wire::jid::BareJid;

    fn trace_for(id: NotificationId, audience: Audience) -> Trace {
        Trace::of(&Notification {
            id,
            domain: DomainId(1),
            to: BareJid::new("alice@localhost").expect("a JID"),
            audience,
            priority: Priority::Normal,
            expires: None,
            collapse_key: None,
            key: None,
            payload: Payload::Json("1".into()),
            accepted: UnixMs(0),
            send_at: None,
        })
    }

    fn trace(n: u64) -> Trace {
        trace_for(id(n), Audience::Always)
    }

    fn ended(trace: &mut Trace) {
        trace.state = NotificationState::Acknowledged;
        trace.ended = Some(UnixMs(1));
    }

    fn id(n: u64) -> NotificationId {
        NotificationId(u128::from(n))
    }

    /// At 20,000 a second an order of 100,000 ids, the gone ones included, was full within five seconds.
    #[test]
    fn one_that_waits_outlives_any_number_that_come_and_go() {
        let mut traces = Traces::default();
        let bytes_max = 1000 * bytes(&trace(0));
        traces.put(trace(0), bytes_max);
        for n in 1..200_000 {
            traces.put(trace(n), bytes_max);
            assert!(traces.end(id(n), ended).is_some());
            assert!(traces.end(id(n), ended).is_none(), "once");
            traces.forget(id(n));
            assert!(traces.open.len() + traces.ended.len() < 1000);
        }
        assert!(traces.end(id(0), ended).is_some(), "its acknowledgement is told");
        traces.forget(id(0));
        assert_eq!(traces.bytes, 0);
    }

    #[test]
    fn those_that_ended_are_forgotten_first_and_then_the_oldest() {
        let mut traces = Traces::default();
        let bytes_max = 100 * bytes(&trace(0));
        for n in 0..100 {
            traces.put(trace(n), bytes_max);
        }
        (50..60).for_each(|n| assert!(traces.end(id(n), ended).is_some()));
        for n in 100..110 {
            traces.put(trace(n), bytes_max);
            assert!(traces.bytes <= bytes_max);
        }
        assert!((0..50).chain(60..110).all(|n| traces.find(id(n)).is_some()));
        assert!((50..60).all(|n| traces.find(id(n)).is_none()));
        (110..120).for_each(|n| traces.put(trace(n), bytes_max));
        assert!((0..10).all(|n| traces.find(id(n)).is_none()) && traces.find(id(10)).is_some());
        for n in 0..1000 {
            let mut trace = trace(n % 7);
            ended(&mut trace);
            traces.put(trace, bytes_max);
            assert!(traces.ended.len() < 300 && traces.bytes <= bytes_max);
        }
    }

    #[test]
    fn those_that_come_again_and_again_take_one_place() {
        let mut traces = Traces::default();
        for n in 0..10_000 {
            traces.put(trace(n % 3), usize::MAX);
            if n % 2 == 0 {
                traces.forget(id(n % 3));
            }
            if n % 5 == 0 {
                traces.end(id(n % 3), ended);
            }
            assert!(traces.open.len() + traces.ended.len() < 300);
        }
    }

    #[test]
    fn all_that_wait_are_taken_out_and_the_newest_of_those_that_ended() {
        let mut traces = Traces::default();
        let count = ENDED_TAKEN_MAX as u64 + 50;
        for n in 0..count {
            traces.put(trace(n), usize::MAX);
        }
        (100..count).for_each(|n| assert!(traces.end(id(n), ended).is_some()));
        (0..150).for_each(|n| traces.put(trace(count + n), usize::MAX));
        let groups = |take: &mut dyn FnMut() -> Vec<Trace>| -> Vec<Vec<NotificationId>> {
            let groups = std::iter::repeat_with(take).take_while(|group| !group.is_empty());
            groups.map(|group| group.iter().map(|trace| trace.id).collect()).collect()
        };
        let hundred = 100 * bytes(&trace(0));
        let waiting = groups(&mut || traces.take_open(hundred));
        assert_eq!(waiting.iter().map(Vec::len).collect::<Vec<_>>(), [100, 100, 50]);
        let all: Vec<NotificationId> = (0..100).chain(count..count + 150).map(id).collect();
        assert_eq!(waiting.concat(), all);
        // What came after them has its place among those that wait.
        let gone = groups(&mut || traces.take_ended(hundred)).concat();
        assert_eq!(gone, (100..count).map(id).collect::<Vec<_>>());
        assert_eq!((traces.bytes, traces.by_id.len()), (0, 0));
        for n in 0..count {
            let mut trace = trace(n);
            ended(&mut trace);
            traces.put(trace, usize::MAX);
        }
        let newest = groups(&mut || traces.take_ended(usize::MAX)).concat();
        assert_eq!(newest, (50..count).map(id).collect::<Vec<_>>());
        assert_eq!(traces.bytes, 0);
    }

    #[test]
    fn lists_what_is_not_kept_newest_first_and_no_more_than_so_many() {
        let mut traces = Traces::default();
        for n in 0..10_000 {
            let audience = if n % 2 == 0 { Audience::Active } else { Audience::Always };
            traces.put(trace_for(id(n), audience), usize::MAX);
        }
        traces.put(trace_for(id(9998), Audience::Active), usize::MAX);
        let listed: Vec<NotificationId> = traces.unkept().map(|trace| trace.id).collect();
        assert_eq!((listed.len(), listed[0], listed[1]), (LISTED_MAX, id(9998), id(9996)));
        traces.forget(id(9998));
        assert_eq!(traces.unkept().next().map(|trace| trace.id), Some(id(9996)));
    }
}
