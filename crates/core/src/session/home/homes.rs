//! What is known of the accounts of which this shard is the home.

use crate::features::state::PerAccount;
use crate::message::Letter;
use crate::model::{Generation, Map, Mono, SessionId, Set};
use carillon_wire::jid::BareJid;
use std::collections::{BTreeMap, VecDeque};

/// The accounts of which this shard is the home, as far as anybody is interested in them now.
#[derive(Debug, Default)]
pub struct Homes {
    pub(super) accounts: Map<BareJid, Home>,
    /// Bytes of all records.
    pub(super) bytes: usize,
    /// Bytes of all letters that wait for one.
    pub(super) waiting: usize,
    /// Accounts with records that take memory, in the order in which they were read. Some may be gone, or be here twice.
    pub(super) read: VecDeque<BareJid>,
    /// Accounts without a session in whose records there is nothing.
    pub(super) empty: Set<BareJid>,
    /// Accounts whose records could not be read, and when they are asked for again.
    pub(super) unread: Vec<BareJid>,
    pub(super) again: Option<Mono>,
}

/// One account.
#[derive(Debug, Default)]
pub(super) struct Home {
    /// The generation up to which its sessions know the record; none while nobody knows it.
    pub(super) told: Option<Generation>,
    /// The record, and its generation.
    pub(super) record: Option<(Generation, PerAccount)>,
    pub(super) mailbox: Option<Box<Mailbox>>,
}

/// Letters that cannot be dealt with yet.
#[derive(Debug, Default)]
pub(super) struct Mailbox {
    /// Those that wait for the record, in their order.
    pub(super) letters: VecDeque<Letter>,
    pub(super) bytes: usize,
    /// Changes that come after one that is not known yet, by the generations before them, and their bytes.
    pub(super) early: BTreeMap<Generation, VecDeque<Letter>>,
    pub(super) early_bytes: usize,
    /// The record as it was when it became doubtful, and its generation.
    pub(super) doubted: Option<(Generation, PerAccount)>,
    /// Changes between these generations may still come, of which the sessions were not told, although they know the record of later.
    pub(super) late: Option<(Generation, Generation)>,
    /// Sessions that were shown a record of this generation, of which changes are still to come here.
    pub(super) ahead: Vec<(SessionId, Generation)>,
    /// How often the record was asked for. Only the last answer counts: one before may be of before what was dealt with since.
    pub(super) asked: u32,
    /// The record could not be read; it is asked for again after a while.
    pub(super) is_unread: bool,
}

/// What a session knows of its account's record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    /// All its account's sessions were told of the changes up to this generation; none if nobody knows the record yet.
    told: Option<Generation>,
    /// It was shown the record of this generation since.
    shown: Option<Generation>,
}

crate::form! { struct Known { told, shown } }

impl Known {
    /// What one knows that has an account in whose record there was never anything.
    pub(super) fn of_nothing() -> Known {
        Known { told: Some(Generation::default()), shown: None }
    }
}

/// What becomes of a letter.
pub(super) enum Received {
    /// It is its turn.
    Now(Letter),
    /// It waits; the record has to be asked for.
    First,
    /// It waits.
    Waits,
    /// Too much waits, or for too long.
    Refused(Letter),
}

/// Bytes of letters that wait for one record, and for all of a shard.
const WAITING_BYTES_MAX: usize = 16 << 20;
const ALL_WAITING_BYTES_MAX: usize = 64 << 20;

/// Bytes of changes that wait for one before them. Past that the record is read anew: the one that is missing may be lost.
const EARLY_BYTES_MAX: usize = 1 << 20;

/// Accounts without a session of which it is remembered that there is nothing in their records.
const EMPTY_MAX: usize = 16 * 1024;

/// How long after a failure of the store records are asked for again.
pub(super) const AGAIN_MS: u64 = 1000;

impl Homes {
    /// A session begins, whose login read this generation of the record.
    pub(crate) fn enter(&mut self, account: &BareJid, record: Generation) {
        if let Some(home) = self.accounts.get_mut(account.as_str()) {
            // The record may have been read before what the login read: then it lacks changes that are still to come here.
            let known = home.record.as_ref().map_or(record, |(generation, _)| record.min(*generation));
            home.told.get_or_insert(known);
        } else if record != Generation::default() {
            self.accounts.insert(account.clone(), Home { told: Some(record), ..Home::default() });
        }
    }

    /// A session begins, whose login may have read the record before a change of which this home has heard already: it knows the record
    /// that is read first.
    pub(crate) fn enter_unread(&mut self, account: &BareJid) {
        self.accounts.entry(account.clone()).or_default();
    }

    /// A session goes on here that began in another process.
    pub(crate) fn enter_again(&mut self, account: &BareJid, session: SessionId, known: Known) {
        let Known { told, shown } = known;
        // One that was shown the record by itself knows what that said.
        let told = told.or(shown);
        if let Some(home) = self.accounts.get_mut(account.as_str()) {
            home.told = home.told.into_iter().chain(told).min();
        } else if known != Known::of_nothing() {
            self.accounts.insert(account.clone(), Home { told, ..Home::default() });
        }
        if let Some(generation) = shown {
            self.shown(account, session, generation);
        }
    }

    /// What a session knows of its account's record.
    pub(crate) fn known(&self, account: &str, session: SessionId) -> Known {
        let Some(home) = self.accounts.get(account) else { return Known::of_nothing() };
        let ahead = home.mailbox.iter().flat_map(|mailbox| &mailbox.ahead);
        let shown = ahead.filter(|(of, _)| *of == session).map(|(_, generation)| *generation).max();
        Known { told: home.told, shown }
    }

    /// Whether it is known that there is nothing in the record of an account that has a session. Such an account has no entry here: most
    /// sessions of a push service are of one.
    pub fn is_empty(&self, account: &str) -> bool {
        self.accounts.get(account).is_none_or(Home::is_empty)
    }

    /// An account's record, if it is here.
    pub fn record(&self, account: &str) -> Option<&PerAccount> {
        self.accounts.get(account)?.record.as_ref().map(|(_, record)| record)
    }

    /// When records that could not be read are asked for again.
    pub(crate) fn due(&self) -> Option<Mono> {
        self.again
    }

    /// A session is shown the record as it is: what it says is not to be told to it again.
    pub fn shown(&mut self, account: &BareJid, session: SessionId, generation: Generation) {
        if let Some(home) = self.accounts.get_mut(account.as_str())
            && home.told.is_none_or(|told| told < generation)
        {
            // One for each session: the account has so many at most.
            let ahead = &mut home.mailbox.get_or_insert_default().ahead;
            match ahead.iter_mut().find(|(of, _)| *of == session) {
                Some((_, has)) => *has = generation.max(*has),
                None => ahead.push((session, generation)),
            }
        }
    }

    /// Whether a session was shown a record that has this change.
    pub fn was_shown(&self, account: &BareJid, session: SessionId, change: Generation) -> bool {
        let home = self.accounts.get(account.as_str());
        let mailbox = home.and_then(|home| home.mailbox.as_ref());
        mailbox.is_some_and(|mailbox| mailbox.ahead.iter().any(|(of, has)| *of == session && *has >= change))
    }

    pub(super) fn receive(&mut self, account: &BareJid, mut letter: Letter, has_session: bool) -> Received {
        let absent = || if has_session { Home::empty() } else { Home::default() };
        let home = self.accounts.entry(account.clone()).or_insert_with(absent);
        if home.record.is_some() && home.mailbox.as_ref().is_none_or(|mailbox| mailbox.letters.is_empty()) {
            return Received::Now(letter);
        }
        let mailbox = home.mailbox.get_or_insert_default();
        if mailbox.is_unread && !letter.can_wait() {
            return Received::Refused(letter);
        }
        let mut bytes = size_of::<Letter>() + letter.memory_bytes();
        if mailbox.bytes + bytes > WAITING_BYTES_MAX || self.waiting + bytes > ALL_WAITING_BYTES_MAX {
            if !letter.is_of_record() {
                return Received::Refused(letter);
            }
            // That there was a change is not forgotten: the record is read once more.
            (letter, bytes) = (Letter::Doubt, size_of::<Letter>());
        }
        // The first may be in the store's hands; any other settles this one, too.
        let is_same = |letter: &Letter| matches!(letter, Letter::Doubt);
        if is_same(&letter) && mailbox.letters.len() > 1 && mailbox.letters.back().is_some_and(is_same) {
            return Received::Waits;
        }
        mailbox.bytes += bytes;
        self.waiting += bytes;
        mailbox.letters.push_back(letter);
        if mailbox.letters.len() == 1 && !mailbox.is_unread { Received::First } else { Received::Waits }
    }

    /// There is nothing in the record of an account that has no session.
    pub(super) fn note_empty(&mut self, account: &BareJid) {
        if self.empty.len() >= EMPTY_MAX {
            self.empty = Set::default();
        }
        self.empty.insert(account.clone());
    }

    /// The record of an account was read.
    pub(super) fn fill(&mut self, account: &BareJid, generation: Generation, record: PerAccount) {
        let Some(home) = self.accounts.get_mut(account.as_str()) else { return };
        let bytes = record.bytes();
        home.told = Some(home.told.map_or(generation, |told| told.min(generation)));
        self.bytes -= home.record.take().map_or(0, |(_, record)| record.bytes());
        home.record = Some((generation, record));
        if let Some(mailbox) = &mut home.mailbox {
            mailbox.is_unread = false;
        }
        if bytes > 0 {
            self.bytes += bytes;
            self.read.push_back(account.clone());
        }
    }

    /// The record of an account with a session was read beside its letters, perhaps before one that was dealt with already.
    pub(super) fn note(&mut self, account: &BareJid, generation: Generation, record: PerAccount) {
        let home = self.accounts.entry(account.clone()).or_default();
        let is_newest = home.told.is_none_or(|told| told <= generation);
        if home.record.is_none() && home.mailbox.is_none() && is_newest {
            self.fill(account, generation, record);
        }
    }

    /// The next letter of those that waited for the record.
    pub(super) fn next(&mut self, account: &BareJid) -> Option<Letter> {
        let home = self.accounts.get_mut(account.as_str())?;
        home.record.as_ref()?;
        let letter = home.mailbox.as_mut()?.letters.pop_front();
        if letter.is_none() {
            self.waiting -= std::mem::take(&mut home.mailbox.as_mut()?.bytes);
            home.tidy();
        }
        letter
    }

    /// All that waits: the record cannot be read, or there is no such account.
    pub(super) fn give_up(&mut self, account: &BareJid, is_kept: fn(&Letter) -> bool) -> Vec<Letter> {
        let Some(home) = self.accounts.get_mut(account.as_str()) else { return Vec::new() };
        let Some(mailbox) = &mut home.mailbox else { return Vec::new() };
        let all = std::mem::take(&mut mailbox.letters);
        let (kept, rest): (Vec<_>, Vec<_>) = all.into_iter().partition(is_kept);
        let bytes = kept.iter().map(|letter| size_of::<Letter>() + letter.memory_bytes()).sum();
        self.waiting = self.waiting + bytes - std::mem::replace(&mut mailbox.bytes, bytes);
        mailbox.letters = kept.into();
        rest
    }

    /// Nothing need be known of an account any more: nothing waits for it, and nobody has a session or there is nothing in the record.
    pub(super) fn leave(&mut self, account: &str, has_session: bool) {
        let waits = |home: &Home| home.mailbox.as_ref().is_some_and(|mailbox| !mailbox.letters.is_empty());
        let is_needed =
            |home: &Home| waits(home) || (has_session && !(home.is_empty() && home.mailbox.is_none()));
        if self.accounts.get(account).is_some_and(|home| !is_needed(home))
            && let Some(home) = self.accounts.remove(account)
        {
            self.bytes -= home.record.map_or(0, |(_, record)| record.bytes());
            if self.accounts.len() * 4 + 64 < self.accounts.capacity() {
                self.accounts.shrink_to(self.accounts.len() * 2);
            }
        }
    }

    /// Drops records until they take at most so many bytes; they are read again when they are needed.
    pub(super) fn shrink(&mut self, bytes_max: usize) {
        while self.bytes > bytes_max
            && let Some(account) = self.read.pop_front()
        {
            let Some(home) = self.accounts.get_mut(account.as_str()) else { continue };
            if let Some((_, record)) = home.record.take_if(|_| home.mailbox.is_none()) {
                self.bytes -= record.bytes();
            }
        }
        // Names of accounts that are gone.
        if self.read.len() > 2 * self.accounts.len() + 64 {
            self.read.retain(|account| self.accounts.contains_key(account.as_str()));
        }
    }
}

impl Home {
    /// An account in whose record there was never anything.
    pub(super) fn empty() -> Home {
        let generation = Generation::default();
        let record = Some((generation, PerAccount::default()));
        Home { told: Some(generation), record, mailbox: None }
    }

    /// Whether it is known that there is nothing in the record.
    pub(super) fn is_empty(&self) -> bool {
        self.record.as_ref().is_some_and(|(generation, _)| *generation == Generation::default())
    }

    /// A mailbox in which nothing is left takes no memory.
    pub(super) fn tidy(&mut self) {
        let is_empty = |mailbox: &Mailbox| {
            let Mailbox {
                letters,
                bytes: _,
                early,
                early_bytes: _,
                doubted,
                late,
                ahead,
                asked: _,
                is_unread: _,
            } = mailbox;
            letters.is_empty() && early.is_empty() && ahead.is_empty() && doubted.is_none() && late.is_none()
        };
        if self.mailbox.as_ref().is_some_and(|mailbox| is_empty(mailbox) && !mailbox.is_unread) {
            self.mailbox = None;
        }
    }

    /// Whether a change is the next one that its sessions are to be told of. One that they know is passed over; one that is too early
    /// waits.
    pub(super) fn is_next(&mut self, letter: &Letter) -> bool {
        let Some((before, after)) = letter.generations() else { return true };
        let told = *self.told.get_or_insert(before);
        // What happened between two changes is told between them, or later.
        if before == after && before <= told {
            return true;
        }
        if before == told {
            self.told = Some(after);
        } else if before > told {
            self.mailbox.get_or_insert_default().keep_early(before, letter.clone());
        }
        before == told
    }

    /// Who was shown what all are told by now is like all others.
    pub(super) fn forget_ahead(&mut self) {
        let told = self.told;
        if let Some(mailbox) = &mut self.mailbox
            && !mailbox.ahead.is_empty()
        {
            mailbox.ahead.retain(|(_, generation)| told.is_none_or(|told| told < *generation));
            self.tidy();
        }
    }

    /// A change that waited for the one before it, or that is known by now.
    pub(super) fn early(&mut self) -> Option<Letter> {
        let told = self.told?;
        let mailbox = self.mailbox.as_mut()?;
        let mut first = mailbox.early.first_entry().filter(|first| *first.key() <= told)?;
        // Those of one generation in their order.
        let letter = first.get_mut().pop_front();
        if first.get().is_empty() {
            first.remove();
        }
        mailbox.early_bytes -= letter.as_ref().map_or(0, early_bytes);
        letter
    }

    /// Whether so much waits for a change that is missing that it may be lost.
    pub(super) fn is_flooded(&self) -> bool {
        self.mailbox.as_ref().is_some_and(|mailbox| mailbox.early_bytes > EARLY_BYTES_MAX)
    }

    /// Whether the sessions know a record that has this change, and were not told of it.
    pub(super) fn is_late(&self, letter: &Letter) -> bool {
        let late = self.mailbox.as_ref().and_then(|mailbox| mailbox.late);
        let (Some((from, to)), Some((before, after))) = (late, letter.generations()) else { return false };
        before >= from && after <= to
    }
}

impl Mailbox {
    fn keep_early(&mut self, before: Generation, letter: Letter) {
        self.early_bytes += early_bytes(&letter);
        self.early.entry(before).or_default().push_back(letter);
    }

    /// Takes those that waited, although a record of this generation has them.
    pub(super) fn known_early(&mut self, generation: Generation) -> Vec<Letter> {
        let later = self.early.split_off(&generation);
        let known: Vec<Letter> = std::mem::replace(&mut self.early, later).into_values().flatten().collect();
        self.early_bytes -= known.iter().map(early_bytes).sum::<usize>();
        known
    }
}

fn early_bytes(letter: &Letter) -> usize {
    size_of::<Letter>() + letter.memory_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::RosterCause;
    use crate::model::{Contact, RosterChange};
    use std::sync::Arc;

    fn jid(local: &str) -> BareJid {
        BareJid::new(&format!("{local}@example.org")).expect("an address")
    }

    /// The change that leads from generation `before` to the next.
    fn change(before: u64) -> Letter {
        let is = Some(Contact { request: Some(vec![b'x'; 400].into()), ..Contact::new(jid("bob")) });
        let (before, after) = (Generation(before), Generation(before + 1));
        let change =
            RosterChange { account: jid("alice"), before, after, contact: jid("bob"), was: None, is };
        Letter::RosterChanged { change: Arc::new(change), cause: RosterCause::Contact }
    }

    fn told(generation: u64) -> Home {
        Home { told: Some(Generation(generation)), ..Home::empty() }
    }

    /// As when shards take turns for a long time, and the first of them is the last to tell.
    #[test]
    fn changes_that_come_too_early_wait_for_their_turn_however_many_there_are() {
        let mut home = told(1);
        (2..1000).rev().for_each(|before| assert!(!home.is_next(&change(before))));
        assert!(!home.is_flooded() && home.early().is_none());
        assert!(home.is_next(&change(1)));
        for before in 2..1000 {
            let letter = home.early().expect("the next one");
            assert_eq!(letter.generations().map(|(before, _)| before), Some(Generation(before)));
            assert!(home.is_next(&letter));
        }
        assert_eq!(home.mailbox.as_ref().map(|mailbox| mailbox.early_bytes), Some(0));
        home.tidy();
        assert!(home.mailbox.is_none() && home.told == Some(Generation(1000)));
    }

    #[test]
    fn what_waits_for_a_change_that_does_not_come_is_bounded_in_bytes() {
        let mut home = told(1);
        let enough = EARLY_BYTES_MAX / early_bytes(&change(2)) + 1;
        for n in 0..enough as u64 {
            home.is_next(&change(2 + n));
        }
        assert!(home.is_flooded());
        // The record was read anew, and has half of them.
        let known = home.mailbox.as_mut().expect("a mailbox").known_early(Generation(2 + enough as u64 / 2));
        assert_eq!(known.len(), enough / 2);
        assert!(!home.is_flooded());
    }

    #[test]
    fn a_session_that_asks_again_and_again_is_remembered_once() {
        let (account, session) = (jid("alice"), SessionId { slot: 1, generation: 1 });
        let mut homes = Homes::default();
        homes.accounts.insert(account.clone(), told(1));
        for generation in (2..1000).chain(5..10) {
            homes.shown(&account, session, Generation(generation));
        }
        let ahead = |homes: &Homes| homes.accounts[account.as_str()].mailbox.as_ref().map(|m| m.ahead.len());
        assert_eq!(ahead(&homes), Some(1));
        assert!(homes.was_shown(&account, session, Generation(999)));
        assert!(!homes.was_shown(&account, session, Generation(1000)));
    }

    #[test]
    fn a_change_of_which_nobody_was_told_is_late() {
        let mut home = told(9);
        assert!(!home.is_next(&change(3)) && !home.is_late(&change(3)));
        home.mailbox.get_or_insert_default().late = Some((Generation(3), Generation(5)));
        let late: Vec<u64> = (1..9).filter(|before| home.is_late(&change(*before))).collect();
        assert_eq!(late, [3, 4]);
    }
}
