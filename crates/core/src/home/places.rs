//! The places of one kind at home on a shard, and the bounds of what they take in memory together.

use super::place::{Counted, task_bytes};
use super::{HomeKind, Place, Stage};
use crate::model::{Map, Mono};
use hashbrown::Equivalent;
use std::collections::VecDeque;
use std::hash::Hash;

/// The places of one kind.
#[derive(Debug)]
pub(crate) struct Places<K: HomeKind> {
    places: Map<K::Key, Place<K>>,
    /// Bytes of all records, and of all tasks that wait.
    bytes: Counted,
    /// Places with records that take memory, in the order in which they were read. Some may be gone, or be here twice.
    read: VecDeque<K::Key>,
    /// Places whose records could not be read, and when they are asked for again.
    failed: Vec<K::Key>,
    again: Option<Mono>,
}

/// How long after a failure of the store records are asked for again.
const AGAIN_MS: u64 = 1000;

/// What becomes of a task.
#[derive(Debug)]
pub(crate) enum Pushed<T> {
    /// It is its turn.
    Now(T),
    /// It waits; the record has to be asked for.
    Load,
    /// It waits.
    Waits,
    /// Too much waits.
    Refused(T),
}

/// The unfinished work of places whose home is elsewhere now.
pub(crate) struct Left<K: HomeKind> {
    /// What waited.
    pub(crate) tasks: Vec<(K::Key, K::Task)>,
    /// What was begun and goes no further.
    pub(crate) steps: Vec<(K::Key, K::Step)>,
}

impl<K: HomeKind> Default for Places<K> {
    fn default() -> Places<K> {
        Places {
            places: Map::default(),
            bytes: Counted::default(),
            read: VecDeque::new(),
            failed: Vec::new(),
            again: None,
        }
    }
}

impl<K: HomeKind> Places<K> {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// A place, if anything is known of it.
    pub(crate) fn get<Q: ?Sized + Hash + Equivalent<K::Key>>(&self, key: &Q) -> Option<&Place<K>> {
        self.places.get(key)
    }

    /// The same, to be changed: [`Places::settle`] is to be called afterwards.
    pub(crate) fn get_mut<Q: ?Sized + Hash + Equivalent<K::Key>>(
        &mut self,
        key: &Q,
    ) -> Option<&mut Place<K>> {
        self.places.get_mut(key)
    }

    /// The key of a place, as the place has it.
    pub(crate) fn key<Q: ?Sized + Hash + Equivalent<K::Key>>(&self, key: &Q) -> Option<&K::Key> {
        self.places.get_key_value(key).map(|(key, _)| key)
    }

    /// A place that is made if there is none.
    pub(crate) fn make(&mut self, key: &K::Key, new: impl FnOnce() -> Place<K>) -> &mut Place<K> {
        self.places.entry(key.clone()).or_insert_with(new)
    }

    /// Gives a place a task. It is to be made before.
    pub(crate) fn push(&mut self, key: &K::Key, task: K::Task) -> Pushed<K::Task> {
        let Some(place) = self.places.get_mut(key) else { return Pushed::Refused(task) };
        if place.has_moved() {
            // Its home is here again, and a step from before it moved is not finished.
            return Pushed::Refused(task);
        }
        place.touch();
        if place.waiting().len() == 0 && place.may_begin(&task) {
            return Pushed::Now(task);
        }
        let bytes = task_bytes::<K>(&task);
        let all = self.bytes.waiting + bytes;
        if place.waiting_bytes() + bytes > K::WAITING_BYTES_MAX || all > K::ALL_WAITING_BYTES_MAX {
            return Pushed::Refused(task);
        }
        self.push_anyway(key, task)
    }

    /// The same whatever waits already.
    pub(crate) fn push_anyway(&mut self, key: &K::Key, task: K::Task) -> Pushed<K::Task> {
        let Some(place) = self.places.get_mut(key) else { return Pushed::Refused(task) };
        place.push(task);
        count(&mut self.bytes, place);
        match place.stage() {
            Stage::Unknown => {
                place.begin_load();
                Pushed::Load
            }
            _ => Pushed::Waits,
        }
    }

    /// Counts what a place takes in memory, after it was changed. One that is of no use any more is removed.
    pub(crate) fn settle<Q: ?Sized + Hash + Equivalent<K::Key>>(
        &mut self,
        key: &Q,
        is_needed: impl FnOnce(&Place<K>) -> bool,
    ) {
        let Some(place) = self.places.get_mut(key) else { return };
        place.tidy();
        let had_record = place.counted.record > 0;
        count(&mut self.bytes, place);
        let has_record = place.counted.record > 0;
        if !is_needed(place) || (place.has_moved() && place.is_quiet()) {
            self.remove(key);
        } else if has_record
            && !had_record
            && let Some((key, _)) = self.places.get_key_value(key)
        {
            self.read.push_back(key.clone());
        }
    }

    fn remove<Q: ?Sized + Hash + Equivalent<K::Key>>(&mut self, key: &Q) {
        if let Some(place) = self.places.remove(key) {
            self.bytes.record -= place.counted.record;
            self.bytes.waiting -= place.counted.waiting;
        }
        if self.places.len() * 4 + 64 < self.places.capacity() {
            self.places.shrink_to(self.places.len() * 2);
        }
    }

    /// Drops records until they take at most so many bytes; they are read again when they are needed.
    pub(crate) fn shrink(&mut self, bytes_max: usize, is_needed: impl Fn(&Place<K>) -> bool) {
        while self.bytes.record > bytes_max
            && let Some(key) = self.read.pop_front()
        {
            if let Some(place) =
                self.places.get_mut(&key).filter(|place| place.is_at_rest() && K::may_drop(&place.state))
            {
                place.drop_record();
                self.settle(&key, &is_needed);
            }
        }
        // Names of places that are gone.
        if self.read.len() > 2 * self.places.len() + 64 {
            self.read.retain(|key| self.places.contains_key(key));
        }
    }

    /// Forgets the places that were at rest each of the last `turns` times.
    pub(crate) fn forget_idle(&mut self, turns: u8) {
        let bytes = &mut self.bytes;
        self.places.retain(|_, place| {
            let is_kept = place.idle_turn() < turns || !K::may_drop(&place.state);
            if !is_kept {
                bytes.record -= place.counted.record;
            }
            is_kept
        });
        if self.places.len() * 4 + 64 < self.places.capacity() {
            self.places.shrink_to(self.places.len() * 2);
        }
    }

    /// Forgets the places that are not kept, whatever their state, and gives the tasks that wait there. The store does what it was asked: where its
    /// answer ends something ([`HomeKind::ends_something`]) the place stays until then. Other answers go to nobody: gives their steps, too.
    pub(crate) fn keep(&mut self, is_kept: impl Fn(&K::Key) -> bool) -> Left<K> {
        let (bytes, mut left) = (&mut self.bytes, Left { tasks: Vec::new(), steps: Vec::new() });
        self.places.retain(|key, place| {
            if is_kept(key) && !place.has_moved() {
                return true;
            }
            bytes.waiting -= std::mem::take(&mut place.counted.waiting);
            left.tasks.extend(place.give_up(|_| false).into_iter().map(|task| (key.clone(), task)));
            left.steps.extend(place.move_away().into_iter().map(|step| (key.clone(), step)));
            let ends_something = !place.is_quiet();
            if !ends_something {
                bytes.record -= place.counted.record;
            }
            ends_something
        });
        left
    }

    /// Does something with each place.
    pub(crate) fn each(&mut self, then: impl FnMut(&mut Place<K>)) {
        self.places.values_mut().for_each(then);
    }

    /// The record of a place could not be read: it is asked for again after a while.
    pub(crate) fn failed(&mut self, key: &K::Key, now: Mono) {
        if let Some(place) = self.places.get_mut(key) {
            place.fail();
            self.failed.push(key.clone());
            self.again.get_or_insert(now.plus(AGAIN_MS));
        }
    }

    /// When records that could not be read are asked for again.
    pub(crate) fn due(&self) -> Option<Mono> {
        self.again
    }

    /// Takes the places whose records are to be asked for again: tasks wait for them.
    pub(crate) fn take_failed(&mut self) -> Vec<K::Key> {
        self.again = None;
        let mut failed = std::mem::take(&mut self.failed);
        failed.retain(|key| {
            let Some(place) = self.places.get_mut(key) else { return false };
            let has_failed = matches!(place.stage(), Stage::Failed);
            if has_failed {
                place.drop_record();
            }
            has_failed && place.waiting().len() > 0
        });
        failed
    }
}

/// Counts what a place takes in memory.
fn count<K: HomeKind>(all: &mut Counted, place: &mut Place<K>) {
    let record = match place.stage() {
        Stage::Open { record, .. } => K::record_bytes(record),
        // The record is with a task, or is being read again: it counts as before.
        Stage::Held | Stage::Loading => place.counted.record,
        Stage::Unknown | Stage::Failed | Stage::Absent => 0,
    };
    let now = Counted { record, waiting: place.waiting_bytes() };
    all.record = all.record + now.record - place.counted.record;
    all.waiting = all.waiting + now.waiting - place.counted.waiting;
    place.counted = now;
}
