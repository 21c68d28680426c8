//! What a shard knows of the broadcasts that are open: no more than it takes to give them, whatever the number of accounts.

mod credit;
mod line;
#[cfg(test)]
mod tests;

use self::credit::{Credit, Share};
use self::line::Line;
use crate::model::{
    AccountId, Audience, Broadcast, DomainId, Mono, NotificationId, Now, SessionId, Set, UnixMs,
};
use crate::ports::store::broadcasts::{AccountEnd, GivenCount};
use crate::shard::Reads;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A broadcast and an account.
pub(crate) type Pair = (NotificationId, AccountId);

/// The broadcasts that a shard knows, and what it has to do about them.
#[derive(Debug, Default)]
pub(crate) struct Broadcasts {
    open: BTreeMap<NotificationId, Open>,
    /// Whether it has heard of all that were open when the node started.
    pub(crate) heard_all: bool,
    /// Sessions that are there now, and about whose accounts the store is to be asked.
    came: Line,
    /// Whether it is being asked about some of them.
    pub(crate) asks: bool,
    /// It is asked again then, because it could not answer.
    pub(crate) asks_at: Mono,
    /// Sessions that are to be given something once they have acknowledged what they were given.
    crowded: Set<SessionId>,
    /// Accounts that have acknowledged a broadcast, until that is committed.
    ending: Set<Pair>,
    /// Questions whose answers may not know of what was committed meanwhile.
    pub(crate) reads: Reads<Pair>,
    /// Those of them of which the store is to be told.
    ends: Vec<AccountEnd>,
    /// When it is told how often broadcasts were given.
    pub(crate) tell_at: Option<Mono>,
    /// When a broadcast goes on, or its time is over.
    wake: Option<Mono>,
    /// Something happened, or more can be given: a look at all of them is worth it.
    pub(crate) is_stirred: bool,
    /// The one that was given last: it is another's turn.
    last: Option<NotificationId>,
}

/// A broadcast that is open.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) broadcast: Arc<Broadcast>,
    /// What a message carries, without and with a request for a receipt.
    pub(crate) contents: [Bytes; 2],
    /// The walk over the sessions that were there when it began.
    pub(crate) walk: Walk,
    /// Whether it may be given now.
    is_due: bool,
    credit: Credit,
    /// What it is counted under in the store.
    counter: u64,
    /// How often it was given here.
    pub(crate) given: u64,
    told: u64,
}

/// How far a walk is.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    /// Whether accounts may have acknowledged it before.
    pub(crate) asks: bool,
    /// The next slot, and the first that is not its.
    pub(crate) next: u32,
    pub(crate) end: u32,
    /// Sessions before the end that are dealt with otherwise.
    pub(crate) passed: Set<SessionId>,
    /// Sessions that came while the rate did not allow more.
    pub(crate) queue: Line,
    /// Whether the store is being asked about some sessions.
    pub(crate) is_asked: bool,
    /// It is asked again then, because it could not answer.
    pub(crate) asks_at: Mono,
    /// Whether one began.
    has_begun: bool,
}

impl Broadcasts {
    /// Whether there may be anything to give now.
    pub(crate) fn has_work(&self, now: Mono) -> bool {
        let came = !self.came.is_empty() && !self.asks && self.asks_at <= now;
        self.is_stirred || came || self.wake.is_some_and(|at| at <= now)
    }

    /// Whether none is known.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Takes note of a broadcast, or of what it was changed to. `asks`: whether accounts may have acknowledged it.
    pub(crate) fn put(&mut self, broadcast: Arc<Broadcast>, contents: [Bytes; 2], asks: bool, counter: u64) {
        self.is_stirred = true;
        match self.open.get_mut(&broadcast.id) {
            Some(open) if open.broadcast.revision >= broadcast.revision => {}
            Some(open) if broadcast.is_open() => open.broadcast = broadcast,
            Some(open) => {
                // What is told of one that has ended is told at once, or not at all.
                let told = open.given == open.told;
                let id = broadcast.id;
                open.broadcast = broadcast;
                if told {
                    self.open.remove(&id);
                }
            }
            None if broadcast.is_open() => {
                let walk = Walk { asks, ..Walk::default() };
                let credit = Credit::default();
                let open = Open {
                    broadcast: broadcast.clone(),
                    contents,
                    walk,
                    is_due: false,
                    credit,
                    counter,
                    given: 0,
                    told: 0,
                };
                self.open.insert(broadcast.id, open);
            }
            None => {}
        }
    }

    /// The broadcasts that may be given now and of which sessions wait, those that have waited longest first. One that goes on, or whose time has come,
    /// begins a walk over the sessions in the slots below `slots`. `asks`: whether accounts may have acknowledged one that begins.
    pub(crate) fn due(&mut self, slots: u32, asks: bool, now: Now) -> Vec<NotificationId> {
        // Of one whose domain is gone nothing else is heard.
        self.open.retain(|_, open| open.broadcast.expires > now.unix || open.given != open.told);
        let mut due = Vec::new();
        for (id, open) in &mut self.open {
            let was_due = std::mem::replace(&mut open.is_due, open.broadcast.is_due(now.unix));
            if open.is_due && !was_due {
                open.walk.begin(slots, asks);
            }
            if open.is_due && open.walk.has_more() {
                due.push(*id);
            }
        }
        let served = due.partition_point(|id| Some(*id) <= self.last);
        due.rotate_left(served);
        due
    }

    /// Takes one out, to give it; it comes back by [`Broadcasts::give_back`].
    pub(crate) fn take(&mut self, id: NotificationId) -> Option<Open> {
        self.last = Some(id);
        self.open.remove(&id)
    }

    pub(crate) fn give_back(&mut self, open: Open) {
        self.open.insert(open.broadcast.id, open);
    }

    /// The one with this id.
    pub(crate) fn find(&mut self, id: NotificationId) -> Option<&mut Open> {
        self.open.get_mut(&id)
    }

    /// Those of a domain that who comes later is given, too, and that may be given now.
    pub(crate) fn for_who_comes(&self, domain: DomainId) -> Vec<NotificationId> {
        let theirs = self.open.values().filter(|open| open.is_due && open.is_for_who_comes(domain));
        theirs.map(|open| open.broadcast.id).collect()
    }

    /// A session is there, and may lack one that is open.
    pub(crate) fn came(&mut self, session: SessionId, domain: DomainId) {
        let mut is_asked_about = false;
        for open in self.open.values_mut().filter(|open| open.is_for_who_comes(domain)) {
            is_asked_about = true;
            open.walk.pass(session);
        }
        if is_asked_about {
            self.came.push(session);
        }
    }

    /// How many sessions came, and were not asked about yet.
    pub(crate) fn came_count(&self) -> usize {
        self.came.len()
    }

    /// The next session that came.
    pub(crate) fn next_that_came(&mut self) -> Option<SessionId> {
        self.came.pop()
    }

    /// The store could not say anything of these sessions, to which a walk had come.
    pub(crate) fn walk_again(
        &mut self,
        id: NotificationId,
        sessions: impl IntoIterator<Item = SessionId>,
        at: Mono,
    ) {
        if let Some(open) = self.open.get_mut(&id) {
            sessions.into_iter().for_each(|session| open.walk.queue.push(session));
            open.walk.asks_at = at;
        }
    }

    /// The store could not say anything of these, which came.
    pub(crate) fn ask_again(&mut self, sessions: impl IntoIterator<Item = SessionId>, at: Mono) {
        sessions.into_iter().for_each(|session| self.came.push(session));
        self.asks_at = at;
    }

    /// A session is there no more.
    pub(crate) fn left(&mut self, session: SessionId) {
        self.crowded.remove(&session);
        self.came.remove(session);
        for open in self.open.values_mut() {
            open.walk.queue.remove(session);
            open.walk.passed.remove(&session);
        }
    }

    /// A session has as much as it may leave unacknowledged.
    pub(crate) fn is_crowded(&mut self, session: SessionId) {
        self.crowded.insert(session);
    }

    /// Whether it had, and was not given something because of that.
    pub(crate) fn was_crowded(&mut self, session: SessionId) -> bool {
        !self.crowded.is_empty() && self.crowded.remove(&session)
    }

    /// Whether an account has acknowledged a broadcast, as far as this is not in the store yet, or not in what was read from it.
    pub(crate) fn has_ended(&self, pair: Pair) -> bool {
        self.ending.contains(&pair) || self.reads.has_ended(pair)
    }

    /// An account has acknowledged a broadcast. False if it had before.
    pub(crate) fn end(&mut self, end: AccountEnd) -> bool {
        let is_new = self.ending.insert((end.id, end.account));
        if is_new {
            self.ends.push(end);
        }
        is_new
    }

    /// What the store is to be told of accounts now: those of one broadcast together.
    pub(crate) fn take_ends(&mut self) -> Vec<AccountEnd> {
        let rest = self.ends.split_off(self.ends.len().min(ENDS_MAX));
        let mut ends = std::mem::replace(&mut self.ends, rest);
        ends.sort_by_key(|end| end.id);
        ends
    }

    /// That an account has acknowledged a broadcast is committed.
    pub(crate) fn ended(&mut self, pair: Pair) {
        self.reads.note_ended(pair);
        self.ending.remove(&pair);
    }

    /// The store is not told any more that an account has acknowledged a broadcast: it may be given again.
    pub(crate) fn stop_end(&mut self, pair: Pair) {
        self.ending.remove(&pair);
    }

    /// How often broadcasts were given, of which the store is to be told.
    pub(crate) fn untold(&self) -> Vec<GivenCount> {
        let untold = self.open.values().filter(|open| open.given != open.told);
        let given =
            untold.map(|open| GivenCount { id: open.broadcast.id, counter: open.counter, given: open.given });
        given.collect()
    }

    /// The store was told. Those that have ended are forgotten.
    pub(crate) fn told(&mut self, given: &[GivenCount]) {
        for told in given {
            if let Some(open) = self.open.get_mut(&told.id) {
                open.told = told.given;
            }
        }
        self.open.retain(|_, open| open.broadcast.is_open() || open.given != open.told);
    }

    /// When there is something to do, if ever.
    pub(crate) fn next_wake(&self) -> Option<Mono> {
        let asks_at = (!self.came.is_empty() && !self.asks).then_some(self.asks_at);
        [self.tell_at, self.wake, asks_at].into_iter().flatten().min()
    }

    /// When the next broadcast that is not due now, or that has spent its credit, goes on.
    pub(crate) fn plan_wake(&mut self, parts: u32, now: Now) {
        let after = |at: UnixMs| now.mono.plus(at.0.saturating_sub(now.unix.0).max(1));
        let goes_on = |open: &Open| match open.broadcast.next(now.unix) {
            Some(at) if at > now.unix => Some(after(at)),
            Some(_) if open.walk.has_more() && !open.walk.is_asked => {
                let credit = open.share(parts).map(|share| now.mono.plus(open.credit.wait_ms(share)));
                let asks_at = (open.walk.asks_at > now.mono).then_some(open.walk.asks_at);
                credit.max(asks_at)
            }
            _ => None,
        };
        let when = |open: &Open| goes_on(open).into_iter().chain([after(open.broadcast.expires)]).min();
        self.wake = self.open.values().filter_map(when).min();
    }

    /// Gives back what a burst made it grow to.
    pub(crate) fn tidy(&mut self) {
        if self.ending.capacity() > 4 * self.ending.len() + 64 {
            self.ending.shrink_to_fit();
        }
        self.came.tidy();
        self.crowded.shrink_to(2 * self.crowded.len() + 64);
    }
}

impl Open {
    /// Whether a session of this domain that comes later is given it.
    fn is_for_who_comes(&self, domain: DomainId) -> bool {
        self.broadcast.domain == domain && self.broadcast.audience == Audience::Always
    }

    /// How many deliveries its rate allows now, if it has one.
    pub(crate) fn allowed(&mut self, parts: u32, now: Mono) -> usize {
        self.share(parts).map_or(usize::MAX, |share| self.credit.deliveries(share, now))
    }

    /// So many deliveries were made.
    pub(crate) fn spend(&mut self, deliveries: usize, parts: u32) {
        if let Some(share) = self.share(parts) {
            self.credit.spend(deliveries, share);
        }
    }

    fn share(&self, parts: u32) -> Option<Share> {
        self.broadcast.pace.rate.map(|rate| Share { rate, parts })
    }
}

impl Walk {
    /// Begins, or begins again: then those who were there before may have acknowledged it.
    fn begin(&mut self, end: u32, asks: bool) {
        self.asks |= asks || self.has_begun;
        (self.next, self.end, self.has_begun) = (0, end, true);
        (self.passed, self.queue) = (Set::default(), Line::default());
    }

    /// A session is dealt with otherwise.
    pub(crate) fn pass(&mut self, session: SessionId) {
        if (self.next..self.end).contains(&session.slot) {
            self.passed.insert(session);
        }
    }

    /// Whether there are sessions that it has not come to.
    pub(crate) fn has_more(&self) -> bool {
        self.next < self.end || !self.queue.is_empty()
    }
}

/// Ends that the store is told at once.
const ENDS_MAX: usize = 1000;
