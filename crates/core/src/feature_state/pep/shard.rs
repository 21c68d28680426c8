//! Sessions that are being given the last items of nodes: what they are told of these meanwhile is newer than what was read.

use crate::feature_state::Shared;
use crate::model::{Map, SessionId};
use carillon_wire::jid::Jid;
use smallvec::SmallVec;

/// Sessions for which last items are being read.
#[derive(Debug, Default)]
pub struct LastItems {
    sessions: Map<SessionId, SmallVec<[Reading; 1]>>,
    begun: u64,
}

#[derive(Debug)]
struct Reading {
    number: u64,
    /// The nodes of which something was told meanwhile; none when they are too many.
    told: Option<Vec<(Jid, Box<str>)>>,
}

/// Nodes that are remembered while one reading lasts.
const TOLD_MAX: usize = 256;

/// Readings for one session at once; one that begins then ends the first.
const READINGS_MAX: usize = 64;

impl Shared for LastItems {}

impl LastItems {
    /// Last items are read for a session.
    pub(crate) fn begin(&mut self, session: SessionId) -> u64 {
        self.begun += 1;
        let number = self.begun;
        let readings = self.sessions.entry(session).or_default();
        if readings.len() >= READINGS_MAX {
            readings.remove(0);
        }
        readings.push(Reading { number, told: Some(Vec::new()) });
        number
    }

    /// A session was told of something on a node.
    pub(crate) fn tell(&mut self, session: SessionId, owner: &Jid, node: &str) {
        for reading in self.sessions.get_mut(&session).into_iter().flatten() {
            if let Some(told) = &mut reading.told {
                told.push((owner.clone(), node.into()));
                if told.len() > TOLD_MAX {
                    reading.told = None;
                }
            }
        }
    }

    /// Whether what was read still is for the session.
    pub(crate) fn goes_on(&self, session: SessionId, number: u64) -> bool {
        self.reading(session, number).is_some()
    }

    /// Whether the last item of a node is old: something was told of it since the reading began.
    pub(crate) fn is_old(&self, session: SessionId, number: u64, owner: &str, node: &str) -> bool {
        let told = self.reading(session, number).and_then(|reading| reading.told.as_ref());
        told.is_none_or(|told| told.iter().any(|(of, name)| of.as_str() == owner && **name == *node))
    }

    fn reading(&self, session: SessionId, number: u64) -> Option<&Reading> {
        self.sessions.get(&session)?.iter().find(|reading| reading.number == number)
    }

    /// The session was given what was read.
    pub(crate) fn end(&mut self, session: SessionId, number: u64) {
        if let Some(readings) = self.sessions.get_mut(&session) {
            readings.retain(|reading| reading.number != number);
            if readings.is_empty() {
                self.forget(session);
            }
        }
    }

    /// The session has ended.
    pub(crate) fn forget(&mut self, session: SessionId) {
        self.sessions.remove(&session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_told_meanwhile_is_newer() {
        let (session, owner) = (SessionId { slot: 1, generation: 1 }, Jid::new("a@b").unwrap());
        let mut reading = LastItems::default();
        let first = reading.begin(session);
        reading.tell(session, &owner, "n");
        assert!(reading.is_old(session, first, "a@b", "n"));
        assert!(!reading.is_old(session, first, "a@b", "o") && !reading.is_old(session, first, "c@b", "n"));
        let second = reading.begin(session);
        assert!(!reading.is_old(session, second, "a@b", "n"), "that was before it");
        reading.end(session, first);
        assert!(!reading.goes_on(session, first) && reading.goes_on(session, second));
        (0..=TOLD_MAX).for_each(|n| reading.tell(session, &owner, &n.to_string()));
        assert!(reading.is_old(session, second, "a@b", "n"), "nobody knows");
        reading.forget(session);
        assert!(!reading.goes_on(session, second) && reading.sessions.is_empty());
    }

    #[test]
    fn only_so_many_go_on_at_once() {
        let (session, mut reading) = (SessionId { slot: 1, generation: 1 }, LastItems::default());
        let first = reading.begin(session);
        for _ in 0..READINGS_MAX {
            reading.begin(session);
        }
        assert!(!reading.goes_on(session, first));
    }
}
