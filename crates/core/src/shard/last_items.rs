//! Sessions that are being given the last items of nodes: what they are told of these meanwhile is newer than what was read.

use crate::model::{Map, SessionId};
use carillon_wire::jid::Jid;

/// Sessions whose last items are being read.
#[derive(Debug, Default)]
pub struct LastItems {
    sessions: Map<SessionId, Reading>,
    begun: u64,
}

#[derive(Debug)]
struct Reading {
    number: u64,
    /// The nodes of which something was told meanwhile; none when they are too many.
    told: Option<Vec<(Jid, Box<str>)>>,
}

/// Nodes that are remembered of one session.
const TOLD_MAX: usize = 256;

impl LastItems {
    /// Last items are read for a session. One for which they are being read begins anew.
    pub fn begin(&mut self, session: SessionId) -> u64 {
        self.begun += 1;
        let number = self.begun;
        self.sessions.insert(session, Reading { number, told: Some(Vec::new()) });
        number
    }

    /// A session was told of something on a node.
    pub fn tell(&mut self, session: SessionId, owner: &Jid, node: &str) {
        let Some(reading) = self.sessions.get_mut(&session) else { return };
        if let Some(told) = &mut reading.told {
            told.push((owner.clone(), node.into()));
            if told.len() > TOLD_MAX {
                reading.told = None;
            }
        }
    }

    /// Whether what was read still is for the session.
    pub fn goes_on(&self, session: SessionId, number: u64) -> bool {
        self.sessions.get(&session).is_some_and(|reading| reading.number == number)
    }

    /// Whether the last item of a node is old: something was told of it since the reading began.
    pub fn is_old(&self, session: SessionId, owner: &str, node: &str) -> bool {
        let told = self.sessions.get(&session).and_then(|reading| reading.told.as_ref());
        told.is_none_or(|told| told.iter().any(|(of, name)| of.as_str() == owner && **name == *node))
    }

    /// The session was given all, or has ended.
    pub fn end(&mut self, session: SessionId) {
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
        assert!(reading.is_old(session, "a@b", "n"));
        assert!(!reading.is_old(session, "a@b", "o") && !reading.is_old(session, "c@b", "n"));
        let second = reading.begin(session);
        assert!(!reading.goes_on(session, first) && reading.goes_on(session, second));
        assert!(!reading.is_old(session, "a@b", "n"));
        (0..=TOLD_MAX).for_each(|n| reading.tell(session, &owner, &n.to_string()));
        assert!(reading.is_old(session, "a@b", "n"), "nobody knows");
        reading.end(session);
        assert!(!reading.goes_on(session, second));
    }
}
