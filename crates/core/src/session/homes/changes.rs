//! The order of the changes of an account's record. Every change has the generation before it and the one it made; the account's sessions
//! are told of changes in that order, whatever the order in which the messages come that tell of them.

use crate::feature_state::PerAccount;
use crate::message::AccountMessage;
use crate::model::{Generation, SessionId};
use std::collections::{BTreeMap, VecDeque};

/// What is known of an account at its home beside its record.
#[derive(Debug, Default)]
pub(in crate::session) struct Changes {
    /// The generation up to which its sessions know the record; none while nobody knows it.
    pub(in crate::session) told: Option<Generation>,
    /// Whether routing needs the record, because a session has chosen a list of its own: then it stays.
    pub(in crate::session) is_pinned: bool,
    /// `None` while changes arrive in order, which is nearly always.
    unsettled: Option<Box<Unsettled>>,
}

/// What is kept while changes arrive out of order.
#[derive(Debug, Default)]
struct Unsettled {
    /// Changes that arrived before one that they follow, by the generation they change, and their bytes.
    early: BTreeMap<Generation, VecDeque<AccountMessage>>,
    early_bytes: usize,
    /// The record as it was when it became stale, and its generation.
    stale: Option<(Generation, PerAccount)>,
    /// The sessions were shown a later record and were not told of the changes between these generations, which may still arrive.
    late: Option<(Generation, Generation)>,
    /// Sessions that were shown a record of this generation before all changes in it arrived here.
    ahead: Vec<(SessionId, Generation)>,
}

/// Bytes of changes that wait for one before them. Past that the record is read anew: the one that is missing may be lost.
const EARLY_BYTES_MAX: usize = 1 << 20;

impl Changes {
    /// For an account whose sessions know the record of this generation; `None`: no session knows it.
    pub(in crate::session) fn since(told: Option<Generation>) -> Changes {
        Changes { told, is_pinned: false, unsettled: None }
    }

    /// Whether no change has arrived early and none is missing.
    pub(in crate::session) fn are_in_order(&self) -> bool {
        self.unsettled.is_none()
    }

    /// Frees memory once everything is in order again.
    pub(in crate::session) fn tidy(&mut self) {
        let is_settled = |unsettled: &Unsettled| {
            let Unsettled { early, early_bytes: _, stale, late, ahead } = unsettled;
            early.is_empty() && ahead.is_empty() && stale.is_none() && late.is_none()
        };
        if self.unsettled.as_deref().is_some_and(is_settled) {
            self.unsettled = None;
        }
    }

    /// Whether a change is the next one that the sessions are to be told of. One that they know is passed over; one that is too early
    /// waits.
    pub(in crate::session) fn is_next(&mut self, message: &AccountMessage) -> bool {
        let Some((before, after)) = message.generations() else { return true };
        let told = *self.told.get_or_insert(before);
        // It changes no generation: the sessions may be told once they know the one it belongs to.
        if before == after && before <= told {
            return true;
        }
        if before == told {
            self.told = Some(after);
        } else if before > told {
            let unsettled = self.unsettled.get_or_insert_default();
            unsettled.early_bytes += early_bytes(message);
            unsettled.early.entry(before).or_default().push_back(message.clone());
        }
        before == told
    }

    /// The first early change, if the sessions know the generation before it by now.
    pub(in crate::session) fn next_early(&mut self) -> Option<AccountMessage> {
        let told = self.told?;
        let unsettled = self.unsettled.as_mut()?;
        let mut first = unsettled.early.first_entry().filter(|first| *first.key() <= told)?;
        // Messages about one generation keep their order.
        let message = first.get_mut().pop_front();
        if first.get().is_empty() {
            first.remove();
        }
        unsettled.early_bytes -= message.as_ref().map_or(0, early_bytes);
        message
    }

    /// Takes the early changes that a record of this generation contains.
    pub(in crate::session) fn take_known(&mut self, generation: Generation) -> Vec<AccountMessage> {
        let Some(unsettled) = &mut self.unsettled else { return Vec::new() };
        let later = unsettled.early.split_off(&generation);
        let known: Vec<AccountMessage> =
            std::mem::replace(&mut unsettled.early, later).into_values().flatten().collect();
        unsettled.early_bytes -= known.iter().map(early_bytes).sum::<usize>();
        known
    }

    /// Whether so many bytes wait for a missing change that it was probably lost.
    pub(in crate::session) fn is_flooded(&self) -> bool {
        self.unsettled.as_ref().is_some_and(|unsettled| unsettled.early_bytes > EARLY_BYTES_MAX)
    }

    /// Whether the sessions know a record that has this change, and were not told of it.
    pub(in crate::session) fn is_late(&self, message: &AccountMessage) -> bool {
        let late = self.unsettled.as_ref().and_then(|unsettled| unsettled.late);
        let (Some((from, to)), Some((before, after))) = (late, message.generations()) else { return false };
        before >= from && after <= to
    }

    /// Notes that changes between these generations may still arrive, of which the sessions have not been told.
    pub(in crate::session) fn expect_late(&mut self, from: Generation, to: Generation) {
        let late = &mut self.unsettled.get_or_insert_default().late;
        *late = Some(late.map_or((from, to), |(first, _)| (first, to)));
    }

    /// The record became stale. The one that was known first is kept.
    pub(in crate::session) fn set_stale(&mut self, record: Option<(Generation, PerAccount)>) {
        let stale = &mut self.unsettled.get_or_insert_default().stale;
        *stale = stale.take().or(record);
    }

    /// Takes the record as it was when it became stale.
    pub(in crate::session) fn take_stale(&mut self) -> Option<(Generation, PerAccount)> {
        self.unsettled.as_mut()?.stale.take()
    }

    /// Notes that a session was shown a record of this generation: it is not told of the changes in it.
    pub(in crate::session) fn shown(&mut self, session: SessionId, generation: Generation) {
        if self.told.is_none_or(|told| told < generation) {
            // One for each session: the account has so many at most.
            let ahead = &mut self.unsettled.get_or_insert_default().ahead;
            match ahead.iter_mut().find(|(of, _)| *of == session) {
                Some((_, has)) => *has = generation.max(*has),
                None => ahead.push((session, generation)),
            }
        }
    }

    /// The generation of the record that a session was shown, if others do not know it yet.
    pub(in crate::session) fn shown_to(&self, session: SessionId) -> Option<Generation> {
        let ahead = self.unsettled.iter().flat_map(|unsettled| &unsettled.ahead);
        ahead.filter(|(of, _)| *of == session).map(|(_, generation)| *generation).max()
    }

    /// Drops the entries of sessions that know no more than all others by now.
    pub(in crate::session) fn forget_ahead(&mut self) {
        let told = self.told;
        if let Some(unsettled) = &mut self.unsettled
            && !unsettled.ahead.is_empty()
        {
            unsettled.ahead.retain(|(_, generation)| told.is_none_or(|told| told < *generation));
            self.tidy();
        }
    }
}

fn early_bytes(message: &AccountMessage) -> usize {
    size_of::<AccountMessage>() + message.memory_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::RosterCause;
    use crate::model::{Contact, RosterChange};
    use carillon_wire::jid::BareJid;
    use std::sync::Arc;

    fn jid(local: &str) -> BareJid {
        BareJid::new(&format!("{local}@example.org")).expect("an address")
    }

    /// The change that leads from generation `before` to the next.
    fn change(before: u64) -> AccountMessage {
        let is = Some(Contact { request: Some(vec![b'x'; 400].into()), ..Contact::new(jid("bob")) });
        let (before, after) = (Generation(before), Generation(before + 1));
        let change =
            RosterChange { account: jid("alice"), before, after, contact: jid("bob"), was: None, is };
        AccountMessage::RosterChanged { change: Arc::new(change), cause: RosterCause::Contact }
    }

    fn told(generation: u64) -> Changes {
        Changes::since(Some(Generation(generation)))
    }

    /// As when the shard that made the first of many changes is the last to report it.
    #[test]
    fn changes_that_come_too_early_wait_for_their_turn_however_many_there_are() {
        let mut changes = told(1);
        (2..1000).rev().for_each(|before| assert!(!changes.is_next(&change(before))));
        assert!(!changes.is_flooded() && changes.next_early().is_none());
        assert!(changes.is_next(&change(1)));
        for before in 2..1000 {
            let message = changes.next_early().expect("the next one");
            assert_eq!(message.generations().map(|(before, _)| before), Some(Generation(before)));
            assert!(changes.is_next(&message));
        }
        assert_eq!(changes.unsettled.as_ref().map(|unsettled| unsettled.early_bytes), Some(0));
        changes.tidy();
        assert!(changes.are_in_order() && changes.told == Some(Generation(1000)));
    }

    #[test]
    fn what_waits_for_a_change_that_does_not_come_is_bounded_in_bytes() {
        let mut changes = told(1);
        let enough = EARLY_BYTES_MAX / early_bytes(&change(2)) + 1;
        for n in 0..enough as u64 {
            changes.is_next(&change(2 + n));
        }
        assert!(changes.is_flooded());
        // The record was read anew, and has half of them.
        let known = changes.take_known(Generation(2 + enough as u64 / 2));
        assert_eq!(known.len(), enough / 2);
        assert!(!changes.is_flooded());
    }

    #[test]
    fn a_session_that_asks_again_and_again_is_remembered_once() {
        let (session, mut changes) = (SessionId { slot: 1, generation: 1 }, told(1));
        for generation in (2..1000).chain(5..10) {
            changes.shown(session, Generation(generation));
        }
        assert_eq!(changes.unsettled.as_ref().map(|unsettled| unsettled.ahead.len()), Some(1));
        assert_eq!(changes.shown_to(session), Some(Generation(999)));
    }

    #[test]
    fn a_change_of_which_nobody_was_told_is_late() {
        let mut changes = told(9);
        assert!(!changes.is_next(&change(3)) && !changes.is_late(&change(3)));
        changes.expect_late(Generation(3), Generation(5));
        let late: Vec<u64> = (1..9).filter(|before| changes.is_late(&change(*before))).collect();
        assert_eq!(late, [3, 4]);
    }
}
