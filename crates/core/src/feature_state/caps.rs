//! What clients can do (XEP-0115, XEP-0390), as far as the server needs it: whose events they want.
//!
//! What the clients of a domain with the same hash want is kept once, when one of them has answered with something that nothing else has the
//! hash of. It is forgotten when all of this takes too many bytes, and asked for again when it is needed. Any other answer counts for the
//! session that gave it, and for no other. A session that says nothing of this is not in here.

use crate::feature_state::Shared;
use crate::model::{DomainId, Map, Mono, SessionId, Wants};
use std::collections::VecDeque;
use std::hash::BuildHasher;

/// What clients can do.
#[derive(Debug, Default)]
pub struct Capabilities {
    /// By the number of a hash.
    known: Map<u64, Wants>,
    /// Their numbers, in the order in which they were learned.
    learned: VecDeque<u64>,
    /// Bytes of what is known of hashes.
    known_bytes: usize,
    /// Bytes of what single clients want.
    own_bytes: usize,
    clients: Map<SessionId, Client>,
}

/// A client that says what it can do by a hash.
#[derive(Debug)]
struct Client {
    /// The number of the hash.
    hash: u64,
    /// The question that it was asked, and when.
    asked: Option<(u64, Mono)>,
    /// What it wants, where that is not known of all that have the hash.
    own: Option<Wants>,
}

/// What is known of a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HashState {
    /// The same as when it said so before.
    Same,
    /// The features behind this hash are cached.
    Known,
    /// Nothing is known; its client should be asked.
    Unknown,
    /// A query is in flight.
    Asked,
}

/// How long an answer is waited for before a client is asked again.
const ASKED_MS: u64 = 60_000;

/// Bytes of an entry, beside its names.
const ENTRY: usize = size_of::<(u64, Client)>() + size_of::<u64>();

impl Shared for Capabilities {}

impl Capabilities {
    /// A client of this domain says what it can do: by which algorithm, and the hash.
    pub(crate) fn announce(
        &mut self,
        session: SessionId,
        domain: DomainId,
        (algorithm, hash): (&str, &str),
        now: Mono,
    ) -> HashState {
        let hash = self.known.hasher().hash_one((domain, algorithm, hash));
        let is_known = self.known.contains_key(&hash);
        match self.clients.get_mut(&session).filter(|client| client.hash == hash) {
            Some(Client { own: Some(_), .. }) => HashState::Same,
            // Another client said meanwhile what this one was asked.
            Some(Client { asked, .. }) if is_known => match asked.take() {
                Some(_) => HashState::Known,
                None => HashState::Same,
            },
            Some(Client { asked: Some((_, at)), .. }) if now < at.plus(ASKED_MS) => HashState::Asked,
            _ => {
                self.forget(session);
                self.clients.insert(session, Client { hash, asked: None, own: None });
                if is_known { HashState::Known } else { HashState::Unknown }
            }
        }
    }

    /// It was asked by a request with this id.
    pub(crate) fn ask(&mut self, session: SessionId, id: &str, now: Mono) {
        let id = self.known.hasher().hash_one(id);
        if let Some(client) = self.clients.get_mut(&session) {
            client.asked = Some((id, now));
        }
    }

    /// Whether a response with this id answers what the client was asked. It does so once.
    pub(crate) fn answers(&mut self, session: SessionId, id: &str) -> bool {
        let id = self.known.hasher().hash_one(id);
        let client = self.clients.get_mut(&session);
        client.is_some_and(|client| client.asked.take_if(|(asked, _)| *asked == id).is_some())
    }

    /// A client told what it wants. `is_proved`: whether nothing else has its hash. What is known of hashes has half of `bytes_max`, and so
    /// have single clients: neither takes the room of the other.
    pub(crate) fn learn(&mut self, session: SessionId, wants: Wants, is_proved: bool, bytes_max: usize) {
        let (bytes, bytes_max) = (bytes(&wants), bytes_max / 2);
        let Some(client) = self.clients.get_mut(&session) else { return };
        if is_proved && bytes <= bytes_max {
            let hash = client.hash;
            self.known_bytes += bytes;
            match self.known.insert(hash, wants) {
                Some(replaced) => self.known_bytes -= self::bytes(&replaced),
                None => self.learned.push_back(hash),
            }
        } else {
            // Nothing, where there is no room: so that it is not asked for ever.
            let wants = if self.own_bytes + bytes <= bytes_max { wants } else { Wants::default() };
            self.own_bytes += self::bytes(&wants);
            if let Some(replaced) = client.own.replace(wants) {
                self.own_bytes -= self::bytes(&replaced);
            }
        }
        while self.known_bytes > bytes_max
            && let Some(wants) = self.learned.pop_front().and_then(|oldest| self.known.remove(&oldest))
        {
            self.known_bytes -= self::bytes(&wants);
        }
    }

    /// What a client wants, if that is known.
    pub(crate) fn wanted(&self, session: SessionId) -> Option<&Wants> {
        let client = self.clients.get(&session)?;
        client.own.as_ref().or_else(|| self.known.get(&client.hash))
    }

    /// A client says nothing of this any more.
    pub(crate) fn forget(&mut self, session: SessionId) {
        if let Some(own) = self.clients.remove(&session).and_then(|client| client.own) {
            self.own_bytes -= bytes(&own);
        }
        if self.clients.len() * 4 + 64 < self.clients.capacity() {
            self.clients.shrink_to(self.clients.len() * 2);
        }
    }
}

fn bytes(wants: &Wants) -> usize {
    ENTRY + wants.iter().map(|name| size_of::<Box<str>>() + name.len()).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::SessionId;

    const NOW: Mono = Mono(1000);

    fn session(slot: u32) -> SessionId {
        SessionId { slot, generation: 1 }
    }

    fn wants(name: &str) -> Wants {
        [Box::from(name)].into()
    }

    fn announce(known: &mut Capabilities, slot: u32, hash: (&str, &str), now: Mono) -> HashState {
        known.announce(session(slot), DomainId(1), hash, now)
    }

    #[test]
    fn what_one_client_proves_is_known_of_all_with_its_hash() {
        let mut known = Capabilities::default();
        assert_eq!(announce(&mut known, 1, ("sha-1", "x"), NOW), HashState::Unknown);
        known.ask(session(1), "q", NOW);
        assert_eq!(announce(&mut known, 1, ("sha-1", "x"), NOW), HashState::Asked);
        assert!(!known.answers(session(1), "r") && !known.answers(session(2), "q"));
        assert!(known.answers(session(1), "q") && !known.answers(session(1), "q"), "once");
        known.learn(session(1), wants("news"), true, 1 << 20);
        assert_eq!(announce(&mut known, 1, ("sha-1", "x"), NOW), HashState::Same);
        assert_eq!(announce(&mut known, 2, ("sha-1", "x"), NOW), HashState::Known);
        assert_eq!(known.wanted(session(2)), Some(&wants("news")));
        assert_eq!(announce(&mut known, 2, ("sha-256", "x"), NOW), HashState::Unknown);
        assert_eq!(known.wanted(session(2)), None);
    }

    #[test]
    fn a_client_that_proves_nothing_is_believed_about_itself() {
        let mut known = Capabilities::default();
        announce(&mut known, 1, ("sha-1", "x"), NOW);
        known.learn(session(1), wants("news"), false, 1 << 20);
        assert_eq!(known.wanted(session(1)), Some(&wants("news")));
        assert_eq!(announce(&mut known, 2, ("sha-1", "x"), NOW), HashState::Unknown);
        known.forget(session(1));
        assert_eq!((known.wanted(session(1)), known.own_bytes), (None, 0));
    }

    #[test]
    fn what_another_client_said_is_known_of_one_that_was_asked() {
        let mut known = Capabilities::default();
        for slot in 1..=2 {
            announce(&mut known, slot, ("sha-1", "x"), NOW);
            known.ask(session(slot), "q", NOW);
        }
        known.learn(session(1), wants("news"), true, 1 << 20);
        assert_eq!(announce(&mut known, 2, ("sha-1", "x"), NOW), HashState::Known);
        assert_eq!(announce(&mut known, 2, ("sha-1", "x"), NOW), HashState::Same);
    }

    #[test]
    fn a_client_that_does_not_answer_is_asked_again() {
        let mut known = Capabilities::default();
        announce(&mut known, 1, ("sha-1", "x"), NOW);
        known.ask(session(1), "q", NOW);
        let later = NOW.plus(ASKED_MS);
        assert_eq!(announce(&mut known, 1, ("sha-1", "x"), later), HashState::Unknown);
    }

    #[test]
    fn a_hash_of_one_domain_says_nothing_in_another() {
        let mut known = Capabilities::default();
        announce(&mut known, 1, ("sha-1", "x"), NOW);
        known.learn(session(1), wants("news"), true, 1 << 20);
        assert_eq!(
            known.announce(session(2), DomainId(2), ("sha-1", "x"), NOW),
            HashState::Unknown,
            "of another domain"
        );
        assert_eq!(announce(&mut known, 3, ("sha-1", "x"), NOW), HashState::Known);
    }

    #[test]
    fn the_oldest_is_forgotten_for_the_newest() {
        let mut known = Capabilities::default();
        let max = 2 * 2 * bytes(&wants("news"));
        for slot in 1..=3 {
            announce(&mut known, slot, ("sha-1", &slot.to_string()), NOW);
            known.learn(session(slot), wants("news"), true, max);
        }
        assert_eq!((known.wanted(session(1)), known.known_bytes), (None, max / 2));
        assert_eq!(announce(&mut known, 1, ("sha-1", "1"), NOW), HashState::Unknown);
        assert!(known.wanted(session(3)).is_some());
        // Single clients have the other half, and nothing when that is used up.
        for slot in 4..=6 {
            announce(&mut known, slot, ("sha-1", "y"), NOW);
            known.learn(session(slot), wants("news"), false, max);
        }
        let held = [4, 5, 6].map(|slot| known.wanted(session(slot)).is_some_and(|wants| wants.len() == 1));
        assert_eq!((held, known.known_bytes), ([true, true, false], max / 2));
    }

    #[test]
    fn what_is_learned_again_is_counted_once() {
        let mut known = Capabilities::default();
        let max = 1 << 20;
        for (slot, is_proved) in [(1, true), (2, false)] {
            for name in ["news", "moods and weather", "x", "moods and weather"] {
                announce(&mut known, slot, ("sha-1", if is_proved { "x" } else { "y" }), NOW);
                known.learn(session(slot), wants(name), is_proved, max);
            }
        }
        let of_one = bytes(&wants("moods and weather"));
        assert_eq!((known.known_bytes, known.own_bytes, known.learned.len()), (of_one, of_one, 1));
    }
}
