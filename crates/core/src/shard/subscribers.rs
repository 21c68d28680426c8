//! Which sessions of this shard follow which topic, and the walk that gives them an item.
//!
//! The topic's home has no list of followers: a [`PubsubEvent`] comes once to each shard, which walks its own dense list of
//! slots. The list is shared with the walks under way (`Arc`) and copied only if it changes meanwhile. A walk is done in
//! slices, with logins and direct messages in between ([`super::walks`]).
//!
//! Events come from the topic's home in order. What a login read from the store may be older than the last event, or newer:
//! then its event is still on its way. So the shard counts changes of last items, and a session remembers the count at which
//! it was given them ([`Subscribers::clock`]). A walk passes over the sessions that were given its item, or a newer one,
//! before.
//!
//! A topic without followers here is remembered for a while, with its last item, for logins that read the store before that item was
//! published. How many bytes these items may have together is bounded: past it they are given up, and a login that read an older
//! one reads again ([`Subscribers::lacks`]).
//!
//! The revisions of a topic's items are numbers one behind the other, so what did not come is seen by what comes next: that is held back until the store
//! has been read ([`Subscribers::fill`]). Where nothing comes next, whoever hears that records of a node were lost says so ([`Subscribers::suspect`]).

use super::gaps::{Gaps, Held};
use super::walks::{Publication, Walks};
use super::{PendingFanout, Recent, Slice};
use crate::message::Pace;
use crate::model::{Map, Mono, PubsubEvent, Retained, Revision, TopicId};
use crate::settings::Fanout;
use carillon_wire::jid::BareJid;
use std::sync::Arc;

/// The topics that sessions of this shard follow.
#[derive(Debug, Default)]
pub struct Subscribers {
    topics: Map<TopicId, Local>,
    walks: Walks<Publication>,
    /// Counts events that came, and logins that brought an item before its event.
    clock: u64,
    /// A session that was given all last items at this count or later is passed over by the walk under way.
    walking: u64,
    /// Accounts that followed or left a topic lately.
    changed: Recent,
    swap_at: Mono,
    /// Bytes of last items of topics without followers here, or more: an item that was replaced counts until the bound is reached.
    idle_bytes: usize,
    gaps: Gaps,
    /// When topics that are followed here are suspected again.
    suspect_at: Option<Mono>,
}

/// A topic as this shard sees it.
#[derive(Debug, Default)]
struct Local {
    slots: Arc<Vec<u32>>,
    /// The newest event that is sent at login, if the topic has one.
    last: Option<Arc<PubsubEvent>>,
    /// The count at which it became the last.
    last_since: u64,
    /// Items up to this revision are known here; what a login read counts only if it is newer.
    floor: Revision,
    /// Last items that logins, or reads of what was missing, brought before their events came, oldest first, with the count at which each came.
    ahead: Vec<(Revision, u64)>,
    /// Sessions that were given such an item, or another, when they began to follow the topic, with the newest revision of these: by their slots, because a
    /// session that leaves is taken out, and after the death of a node these may be as many as the followers.
    given: Map<u32, Revision>,
    /// The topic was deleted. A login that read it before may still come.
    ended: bool,
    /// The revision of the last item, if that was given up.
    given_up: Option<Revision>,
    /// How often the shard has tidied since a session here followed the topic.
    idle: u8,
    heard: Option<Heard>,
}

/// Which items of a topic came here.
#[derive(Clone, Copy, Debug)]
struct Heard {
    /// Those up to this revision did, or are not for who follows the topic here.
    to: Revision,
    /// But of those up to this one nothing is known.
    unknown: Revision,
    /// So many revisions since the last item were made by changes that came here, too.
    changes: u64,
}

impl Subscribers {
    /// Adds a session to a topic's followers, and returns its position in the topic's list, for [`Subscribers::remove`].
    /// `last` is the topic's last item as the store knew it.
    pub fn add(&mut self, topic: TopicId, slot: u32, last: Option<Arc<PubsubEvent>>) -> u32 {
        if let Some(last) = last {
            self.learn(last);
        }
        let local = self.topics.entry(topic).or_default();
        local.idle = 0;
        if local.ended {
            return u32::MAX;
        }
        let slots = Arc::make_mut(&mut local.slots);
        slots.push(slot);
        slots.len() as u32 - 1
    }

    /// Takes note of a topic's last item as the store knew it. False if it was known here, or a newer one.
    pub fn learn(&mut self, last: Arc<PubsubEvent>) -> bool {
        let is_news = self.is_news(last.topic(), last.revision());
        if !is_news {
            return false;
        }
        let (topic, bytes) = (last.topic(), last.bytes());
        let local = self.topics.entry(topic).or_default();
        let is_idle = local.slots.is_empty();
        local.begins_at(last.revision());
        let was_given_up = local.given_up.take() == Some(last.revision());
        if !was_given_up {
            self.clock += 1;
            local.floor = last.revision();
            local.ahead.push((last.revision(), self.clock));
        }
        (local.last, local.last_since) = (Some(last), self.clock);
        if is_idle {
            self.is_idle_with(topic, bytes);
        }
        !was_given_up
    }

    /// Takes note that a topic exists. `revision`: that of the topic or of its newest item, if it is known.
    pub fn hear_of(&mut self, topic: TopicId, revision: Option<Revision>) {
        let local = self.topics.entry(topic).or_default();
        revision.into_iter().for_each(|revision| local.begins_at(revision));
    }

    /// Whether the topic is known here.
    pub fn knows(&self, topic: TopicId) -> bool {
        self.topics.contains_key(&topic)
    }

    /// Whether the topic's last item is known here, or that it has none.
    pub fn knows_last(&self, topic: TopicId) -> bool {
        self.topics.get(&topic).is_some_and(|local| local.given_up.is_none())
    }

    /// Whether a last item of this revision, read by a login, is newer than what is known here.
    pub fn is_news(&self, topic: TopicId, revision: Revision) -> bool {
        self.topics
            .get(&topic)
            .is_none_or(|local| !local.ended && (revision > local.floor || local.given_up == Some(revision)))
    }

    /// Whether the topic's last item was given up here, and what a login read is not that item nor a newer one: it has to read again.
    pub fn lacks(&self, topic: TopicId, read: Option<Revision>) -> bool {
        let is_given_up = self.topics.get(&topic).is_some_and(|local| local.given_up.is_some());
        is_given_up && read.is_none_or(|revision| !self.is_news(topic, revision))
    }

    /// Removes the session at this position from a topic's followers. Returns the slot of the session that takes over the
    /// position, if any; it must be told. There is no search, so that fifteen thousand sessions can end at once.
    pub fn remove(&mut self, topic: TopicId, position: u32) -> Option<u32> {
        let local = self.topics.get_mut(&topic)?;
        if position as usize >= local.slots.len() {
            // The topic is gone, and its list with it.
            return None;
        }
        let slots = Arc::make_mut(&mut local.slots);
        let gone = slots.swap_remove(position as usize);
        // What it was given is not what the next session in its slot was.
        local.given.remove(&gone);
        if slots.len() * 4 + 64 < slots.capacity() {
            slots.shrink_to(slots.len() * 2);
        }
        let successor = slots.get(position as usize).copied();
        if slots.is_empty()
            && let Some(last) = &local.last
        {
            let bytes = last.bytes();
            self.is_idle_with(topic, bytes);
        }
        successor
    }

    /// Takes a slot out of the topic's walks under way: its session follows the topic only from now on, so that earlier
    /// events are not for it.
    pub fn pass_over(&mut self, topic: TopicId, slot: u32) {
        self.walks.pass_over(topic, slot, |_| true);
    }

    /// Takes a slot out of the walks under way of the topic's items: its session is given a newer one before.
    pub fn pass_over_items(&mut self, topic: TopicId, slot: u32) {
        self.walks.pass_over(topic, slot, PubsubEvent::is_item);
    }

    /// The event that is sent for a topic at every login, if it has one.
    pub fn last(&self, topic: TopicId) -> Option<&Arc<PubsubEvent>> {
        self.topics.get(&topic)?.last.as_ref()
    }

    /// The last item for a new follower, which is not given it again when its event comes.
    pub fn last_for_new(&mut self, topic: TopicId, slot: u32) -> Option<Arc<PubsubEvent>> {
        let local = self.topics.get_mut(&topic)?;
        let last = local.last.clone()?;
        if local.expects_up_to(last.revision()) {
            local.give(slot, last.revision());
        }
        Some(last)
    }

    /// The newest revision of a topic that is known here.
    pub fn floor(&self, topic: TopicId) -> Revision {
        self.topics.get(&topic).map_or(Revision(0), |local| local.floor)
    }

    /// A follower was given the items up to this revision by another way: those of them whose events are on their way are not for it.
    pub fn note_given(&mut self, topic: TopicId, slot: u32, revision: Revision) {
        let Some(local) = self.topics.get_mut(&topic) else { return };
        if revision > local.floor || local.expects_up_to(revision) {
            local.give(slot, revision);
        }
    }

    /// The present count, for a session that was just given all last items.
    pub fn clock(&self) -> u64 {
        self.clock
    }

    /// Whether a session that was given all last items at `seen` is to be passed over by the walk under way.
    pub fn is_known(&self, seen: u64) -> bool {
        seen >= self.walking
    }

    /// Marks an account that followed or left a topic: a login may have read the store before that.
    pub fn mark(&mut self, account: &BareJid) {
        self.changed.mark(account.as_str());
    }

    /// Whether an account followed or left a topic lately.
    pub fn is_marked(&self, account: &BareJid) -> bool {
        self.changed.is_marked(account.as_str())
    }

    /// Takes note of what an event changes for later logins, and queues its walk. [`Pace::Behind`] when the topic's queue has
    /// just become too long. Where something before it is missing it waits: see [`Subscribers::next_gap`].
    pub fn publish(&mut self, event: &Arc<PubsubEvent>, bounds: &Fanout) -> Option<Pace> {
        if matches!(event.retained(), Retained::Unchanged) && !self.knows(event.topic()) {
            return None;
        }
        match self.gaps.holds(event) {
            Held::No => {}
            Held::Yes => return None,
            Held::TooMuch(held) => return self.admit_all(held, bounds),
        }
        let is_read = self.gaps.is_open(event.topic());
        if self.topics.get(&event.topic()).is_some_and(|local| local.misses_some(event, is_read)) {
            self.gaps.open(event);
            return None;
        }
        self.admit(event, bounds)
    }

    fn admit_all(
        &mut self,
        events: impl IntoIterator<Item = Arc<PubsubEvent>>,
        bounds: &Fanout,
    ) -> Option<Pace> {
        events.into_iter().fold(None, |pace, event| self.admit(&event, bounds).or(pace))
    }

    /// The event takes its turn: everything before it has, or is lost.
    fn admit(&mut self, event: &Arc<PubsubEvent>, bounds: &Fanout) -> Option<Pace> {
        self.clock += 1;
        // Also without followers here: a login whose data were read before may be on its way.
        let local = self.topics.entry(event.topic()).or_default();
        let is_new = local.hears(event, &mut self.gaps);
        let cutoff = local.cutoff(event).unwrap_or(self.clock);
        let slots = if is_new { local.receivers(event) } else { Arc::default() };
        local.arrived(event, self.clock);
        if event.is_end() {
            *local = Local { ended: true, ..Local::default() };
        }
        let idle_bytes = local.last.as_ref().filter(|_| local.slots.is_empty()).map(|last| last.bytes());
        let is_walked = (event.is_told() || event.is_end()) && !slots.is_empty();
        let falls_behind =
            is_walked && self.walks.push(Publication::new(event.clone(), slots, cutoff), bounds);
        if let Some(bytes) = idle_bytes {
            self.is_idle_with(event.topic(), bytes);
        }
        falls_behind.then_some(Pace::Behind)
    }

    /// Records of another node were lost, or it died: the topics that are followed here are to be read.
    pub fn suspect(&mut self) {
        let is_known = |local: &Local| !local.slots.is_empty() && local.heard.is_some();
        let followed = self.topics.iter().filter(|(_, local)| is_known(local));
        let mut followed: Vec<TopicId> = followed.map(|(topic, _)| *topic).collect();
        followed.sort_unstable();
        followed.into_iter().for_each(|topic| self.gaps.look_into(topic));
    }

    /// The same at this time.
    pub fn suspect_at(&mut self, at: Mono) {
        self.suspect_at.get_or_insert(at);
    }

    /// The next topic that is to be read, and how many of its newest items: more than was told may be missing of it. None while enough are being read.
    pub fn next_gap(&mut self) -> Option<(TopicId, u64)> {
        let (topic, newest) = self.gaps.next()?;
        let heard = self.heard(topic).unwrap_or_default();
        Some((topic, newest.map_or(1, |newest| newest.0.saturating_sub(heard.0)).max(1)))
    }

    /// The newest item of a topic that came here, or is not for who follows it here. None if that is not known.
    pub fn heard(&self, topic: TopicId) -> Option<Revision> {
        self.topics.get(&topic)?.heard.map(|heard| heard.to)
    }

    /// The topic has been read: these of its items did not come here, oldest first. They take their turn, each before what was held back and is newer.
    pub fn fill(
        &mut self,
        topic: TopicId,
        mut missed: Vec<Arc<PubsubEvent>>,
        bounds: &Fanout,
    ) -> Option<Pace> {
        let oldest_held = self.gaps.oldest_held(topic);
        let held = self.gaps.read(topic);
        // It may have ended meanwhile.
        if !self.knows(topic) {
            return None;
        }
        let Some((held, covered)) = held else {
            // It is to be read again: what is newer than what is held back waits for that.
            missed.retain(|item| oldest_held.is_none_or(|oldest| item.revision() < oldest));
            return self.admit_missed(missed, bounds);
        };
        let (mut missed, mut pace) = (missed.into_iter().peekable(), None);
        for event in held {
            while event.is_item() && missed.peek().is_some_and(|item| item.revision() <= event.revision()) {
                let item = missed.next().filter(|item| item.revision() < event.revision());
                pace = item.and_then(|item| self.admit(&item, bounds)).or(pace);
            }
            // What came after the store was asked may lack something before it, too.
            let is_covered = event.revision() <= covered;
            let own = if is_covered { self.admit(&event, bounds) } else { self.publish(&event, bounds) };
            pace = own.or(pace);
        }
        // Where something is missing again, this is read again, too.
        let rest = if self.gaps.is_open(topic) { Vec::new() } else { missed.collect() };
        self.admit_missed(rest, bounds).or(pace)
    }

    /// Items that the store had. It may be ahead of the topic's home: changes that are on their way may be older than the last one.
    fn admit_missed(&mut self, items: Vec<Arc<PubsubEvent>>, bounds: &Fanout) -> Option<Pace> {
        let newest = items.last().filter(|last| matches!(last.retained(), Retained::Last(_))).cloned();
        let pace = self.admit_all(items, bounds);
        if let Some(newest) = newest
            && let Some(local) = self.topics.get_mut(&newest.topic())
        {
            local.is_ahead(newest.revision(), self.clock);
        }
        pace
    }

    /// The store could not read a topic.
    pub fn cannot_fill(&mut self, topic: TopicId, now: Mono) {
        self.gaps.failed(topic, now);
    }

    /// When [`Subscribers::tick`] has something to do.
    pub fn due(&self) -> Option<Mono> {
        self.gaps.due().into_iter().chain(self.suspect_at).min()
    }

    /// Topics that the store could not read are to be read again, and those of which something was lost again meanwhile.
    pub fn tick(&mut self, now: Mono) {
        self.gaps.tick(now);
        if self.suspect_at.take_if(|at| *at <= now).is_some() {
            self.suspect();
        }
    }

    /// A topic without followers here has a last item of this many bytes. Past the bound the items of all other such topics are given up.
    fn is_idle_with(&mut self, topic: TopicId, bytes: usize) {
        self.idle_bytes += bytes;
        if self.idle_bytes <= IDLE_BYTES_MAX {
            return;
        }
        // This one's session may be about to follow it.
        self.idle_bytes = bytes;
        let idle = self.topics.iter_mut().filter(|(other, local)| **other != topic && local.slots.is_empty());
        for (_, local) in idle {
            if let Some(last) = local.last.take() {
                local.given_up = Some(last.revision());
            }
        }
    }

    /// The next followers to give an event to, at most `max`; none when no walk is under way.
    pub fn slice(&mut self, max: usize, bounds: &Fanout) -> Option<Slice> {
        let slice = Slice::from(self.walks.next(max, bounds)?);
        self.walking = slice.cutoff;
        Some(slice)
    }

    /// The slots of the topic's followers here.
    pub fn followers(&self, topic: TopicId) -> Arc<Vec<u32>> {
        self.topics.get(&topic).map(|local| local.slots.clone()).unwrap_or_default()
    }

    /// Whether a walk is under way.
    pub fn is_walking(&self) -> bool {
        !self.walks.is_empty()
    }

    /// Deliveries that are still to be made.
    pub fn backlog(&self) -> PendingFanout {
        self.walks.backlog()
    }

    /// Forgets topics that no session here has followed for a generation, which must be longer than the longest login.
    pub fn tidy(&mut self, now: Mono, generation_ms: u64) {
        self.changed.tidy(now, generation_ms);
        self.walks.tidy();
        self.gaps.tidy();
        if now < self.swap_at {
            return;
        }
        self.swap_at = now.plus(generation_ms);
        self.topics.retain(|_, local| {
            if local.slots.is_empty() {
                local.idle += 1;
            }
            local.idle < 3
        });
        if self.topics.capacity() > 4 * self.topics.len() + 64 {
            self.topics.shrink_to_fit();
        }
    }
}

impl Local {
    /// Whether events of items up to this revision may come yet.
    fn expects_up_to(&self, revision: Revision) -> bool {
        let is_open = |heard: Heard| heard.to < revision || heard.unknown > Revision(0);
        !self.ahead.is_empty() || self.heard.is_none_or(is_open)
    }

    /// The last item is this one, whose event may be on its way still, since this count.
    fn is_ahead(&mut self, revision: Revision, clock: u64) {
        if self.ahead.last().is_none_or(|(known, _)| *known < revision) {
            self.ahead.push((revision, clock));
        }
    }

    /// Items up to this revision are not for those who follow the topic here from now on. While some do already, more may be on its way to them.
    fn begins_at(&mut self, revision: Revision) {
        if self.heard.is_none() && self.slots.is_empty() && !self.ended {
            self.heard = Some(Heard { to: revision, unknown: Revision(0), changes: 0 });
        }
    }

    /// Whether something before this event did not come here, and somebody is to be told of it. While the topic is read because something may have been
    /// lost (`is_read`), changes that came are no reason for a gap: which revisions they made is not known.
    fn misses_some(&self, event: &PubsubEvent, is_read: bool) -> bool {
        let Some(heard) = self.heard.filter(|_| event.is_item() && !self.slots.is_empty()) else {
            return false;
        };
        let changes = if is_read { 0 } else { heard.changes };
        event.revision().0 > heard.to.0 + changes + 1
    }

    /// Takes note of which items came. False if this one came before.
    fn hears(&mut self, event: &PubsubEvent, gaps: &mut Gaps) -> bool {
        let revision = event.revision();
        if !event.is_item() {
            let changes = u64::from(event.makes_revision());
            self.heard.iter_mut().for_each(|heard| heard.changes += changes);
            return true;
        }
        let Some(heard) = &mut self.heard else {
            let unknown = Revision(revision.0.saturating_sub(1));
            self.heard = Some(Heard { to: revision, unknown, changes: 0 });
            return true;
        };
        if revision <= heard.to {
            return revision <= heard.unknown || gaps.was_passed(event.topic(), revision);
        }
        if revision.0 > heard.to.0 + heard.changes + 1 && !self.slots.is_empty() {
            gaps.pass(event.topic(), heard.to, revision);
        }
        (heard.to, heard.changes) = (revision, 0);
        true
    }

    /// The count at which a login brought this item or a newer one, or the event of a newer one came before this one's: a session that was given
    /// all last items since has it.
    fn cutoff(&self, item: &PubsubEvent) -> Option<u64> {
        if !item.is_item() {
            return None;
        }
        let known = self.ahead.iter().find(|(revision, _)| *revision >= item.revision());
        let is_late = || self.last.as_ref().is_some_and(|last| last.revision() > item.revision());
        known.map(|(_, at)| *at).or_else(|| is_late().then_some(self.last_since))
    }

    /// The followers that are to be given an event: not those that were given the same or a newer item.
    fn receivers(&mut self, event: &PubsubEvent) -> Arc<Vec<u32>> {
        let mut slots = self.slots.clone();
        if event.is_item() && !self.given.is_empty() {
            let has = |slot: &u32| self.given.get(slot).is_some_and(|revision| *revision >= event.revision());
            if self.given.values().any(|revision| *revision >= event.revision()) {
                let slots = Arc::make_mut(&mut slots).iter_mut();
                slots.filter(|slot| has(slot)).for_each(|slot| *slot = u32::MAX);
            }
            self.forget_given(event.revision());
        }
        slots
    }

    /// A session was given an item of this revision.
    fn give(&mut self, slot: u32, revision: Revision) {
        let given = self.given.entry(slot).or_insert(revision);
        *given = revision.max(*given);
    }

    /// Nothing up to this revision comes any more.
    fn forget_given(&mut self, revision: Revision) {
        self.given.retain(|_, given| *given > revision);
        if self.given.is_empty() {
            self.given = Map::default();
        }
    }

    /// Takes note of an event. Events come in order, so what is known here is complete up to its revision. The exception is an item
    /// whose publication was settled only when it was asked for again: it takes no newer item's place.
    fn arrived(&mut self, event: &PubsubEvent, clock: u64) {
        let past = self.ahead.iter().rposition(|(revision, _)| *revision <= event.revision());
        self.ahead.drain(..past.map_or(0, |i| i + 1));
        if !self.ahead.is_empty() {
            // A login knows better already; what it knows is on its way from the home, too.
            return;
        }
        self.forget_given(event.revision());
        if event.is_item() && event.revision() <= self.floor && self.given_up != Some(event.revision()) {
            return;
        }
        self.floor = self.floor.max(event.revision());
        if !matches!(event.retained(), Retained::Unchanged) {
            self.given_up = None;
        }
        match event.retained() {
            Retained::Last(last) => (self.last, self.last_since) = (Some(last.clone()), clock),
            Retained::Nothing => self.last = None,
            Retained::Unchanged => {}
        }
    }
}

/// Bytes of last items of topics that no session of the shard follows.
pub(crate) const IDLE_BYTES_MAX: usize = 16 << 20;
