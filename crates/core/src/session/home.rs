//! The homes of accounts: what is told to an account comes here as a [`Letter`], and is dealt with in its order, with the account's
//! record at hand.
//!
//! ```text
//!  letter ─► is the record here? ─yes─► hooks
//!                └─no─► it waits, and all behind it ─► ReadRecord ─► hooks, one after the other
//! ```
//!
//! A record is read when the first letter needs it, and kept while the account has a session; when all records of the shard take too
//! much memory, the one that was read first is dropped, to be read again. An account whose record has never held anything is known by
//! the generation that its login read: nothing is asked for it.
//!
//! Every change of a record has the generation before it and the one it made. The home tells its sessions of changes in that order,
//! whatever the order in which the letters come: one that is too early waits for those before it.

use super::context::Work;
use super::hook::{Denial, Direction, Flow, IqAnswer, Request};
use super::{BoundSession, Cx, Next, Sessions, Wait, acting};
use crate::command::Outcome;
use crate::error::StreamError;
use crate::features::state::PerAccount;
use crate::message::{Addressees, Letter, Requester, ShardMessage};
use crate::model::{DomainId, Generation, Map, Mono, Record, SessionId, Set, Settlement, ShardId};
use crate::ports::Fault;
use crate::ports::store::roster::ReadRecord;
use crate::shard::{Track, home};
use carillon_wire::jid::BareJid;
use carillon_wire::stanza::{Condition, Kind, Stanza, StanzaError};
use carillon_wire::stream;
use std::collections::VecDeque;

/// The accounts of which this shard is the home, as far as anybody is interested in them now.
#[derive(Debug, Default)]
pub struct Homes {
    accounts: Map<BareJid, Home>,
    /// Bytes of all records.
    bytes: usize,
    /// Bytes of all letters that wait for one.
    waiting: usize,
    /// Accounts with records that take memory, in the order in which they were read. Some may be gone, or be here twice.
    read: VecDeque<BareJid>,
    /// Accounts without a session in whose records there is nothing.
    empty: Set<BareJid>,
    /// Accounts whose records could not be read, and when they are asked for again.
    unread: Vec<BareJid>,
    again: Option<Mono>,
}

/// One account.
#[derive(Debug, Default)]
struct Home {
    /// The generation up to which its sessions know the record; none while nobody knows it.
    told: Option<Generation>,
    /// The record, and its generation.
    record: Option<(Generation, PerAccount)>,
    mailbox: Option<Box<Mailbox>>,
}

/// Letters that cannot be dealt with yet.
#[derive(Debug, Default)]
struct Mailbox {
    /// Those that wait for the record, in their order.
    letters: VecDeque<Letter>,
    bytes: usize,
    /// Changes that come after one that is not known yet.
    early: Vec<Letter>,
    /// Sessions that were shown a record of this generation, of which changes are still to come here.
    ahead: Vec<(SessionId, Generation)>,
    /// The record could not be read; it is asked for again after a while.
    is_unread: bool,
}

/// An account at its home.
#[derive(Debug)]
pub struct AtHome<'a> {
    /// Its address.
    pub account: &'a BareJid,
    /// Its domain.
    pub domain: DomainId,
    /// What the features know of it.
    pub record: &'a mut PerAccount,
    /// The generation of the record.
    pub generation: Generation,
}

/// What becomes of a letter.
enum Received {
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

/// Changes that wait for one before them.
const EARLY_MAX: usize = 64;

/// Accounts without a session of which it is remembered that there is nothing in their records.
const EMPTY_MAX: usize = 16 * 1024;

/// How long after a failure of the store records are asked for again.
const AGAIN_MS: u64 = 1000;

impl Homes {
    /// A session begins, whose login read this generation of the record.
    pub(crate) fn enter(&mut self, account: &BareJid, record: Generation) {
        if let Some(home) = self.accounts.get_mut(account.as_str()) {
            home.told.get_or_insert(record);
        } else if record != Generation::default() {
            self.accounts.insert(account.clone(), Home { told: Some(record), ..Home::default() });
        }
    }

    /// A session goes on here of whose account it is not known whether there is anything in the record.
    pub(crate) fn enter_unknown(&mut self, account: &BareJid) {
        self.accounts.entry(account.clone()).or_default();
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
            && home.told.is_some_and(|told| told < generation)
        {
            home.mailbox.get_or_insert_default().ahead.push((session, generation));
        }
    }

    /// Whether a session was shown a record that has this change.
    pub fn was_shown(&self, account: &BareJid, session: SessionId, change: Generation) -> bool {
        let home = self.accounts.get(account.as_str());
        let mailbox = home.and_then(|home| home.mailbox.as_ref());
        mailbox.is_some_and(|mailbox| mailbox.ahead.iter().any(|(of, has)| *of == session && *has >= change))
    }

    fn receive(&mut self, account: &BareJid, mut letter: Letter, has_session: bool) -> Received {
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
    fn note_empty(&mut self, account: &BareJid) {
        if self.empty.len() >= EMPTY_MAX {
            self.empty = Set::default();
        }
        self.empty.insert(account.clone());
    }

    /// The record of an account was read.
    fn fill(&mut self, account: &BareJid, generation: Generation, record: PerAccount) {
        let Some(home) = self.accounts.get_mut(account.as_str()) else { return };
        let bytes = record.bytes();
        home.told.get_or_insert(generation);
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
    fn note(&mut self, account: &BareJid, generation: Generation, record: PerAccount) {
        let home = self.accounts.entry(account.clone()).or_default();
        let is_newest = home.told.is_none_or(|told| told <= generation);
        if home.record.is_none() && home.mailbox.is_none() && is_newest {
            self.fill(account, generation, record);
        }
    }

    /// The next letter of those that waited for the record.
    fn next(&mut self, account: &BareJid) -> Option<Letter> {
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
    fn give_up(&mut self, account: &BareJid, is_kept: fn(&Letter) -> bool) -> Vec<Letter> {
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
    fn leave(&mut self, account: &str, has_session: bool) {
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
    fn shrink(&mut self, bytes_max: usize) {
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
    fn empty() -> Home {
        let generation = Generation::default();
        let record = Some((generation, PerAccount::default()));
        Home { told: Some(generation), record, mailbox: None }
    }

    /// Whether it is known that there is nothing in the record.
    fn is_empty(&self) -> bool {
        self.record.as_ref().is_some_and(|(generation, _)| *generation == Generation::default())
    }

    /// A mailbox in which nothing is left takes no memory.
    fn tidy(&mut self) {
        let is_empty = |mailbox: &Mailbox| {
            mailbox.letters.is_empty() && mailbox.early.is_empty() && mailbox.ahead.is_empty()
        };
        if self.mailbox.as_ref().is_some_and(|mailbox| is_empty(mailbox) && !mailbox.is_unread) {
            self.mailbox = None;
        }
    }

    /// Whether a change is the next one that its sessions are to be told of. One that they know is passed over; one that is too early
    /// waits.
    fn is_next(&mut self, letter: &Letter) -> bool {
        let Some((before, after)) = letter.generations() else { return true };
        let told = *self.told.get_or_insert(before);
        if before == told {
            self.told = Some(after);
        } else if before > told {
            self.mailbox.get_or_insert_default().early.push(letter.clone());
        }
        before == told
    }

    /// Who was shown what all are told by now is like all others.
    fn forget_ahead(&mut self) {
        let told = self.told;
        if let Some(mailbox) = &mut self.mailbox
            && !mailbox.ahead.is_empty()
        {
            mailbox.ahead.retain(|(_, generation)| told.is_some_and(|told| told < *generation));
            self.tidy();
        }
    }

    /// A change that waited for the one before it.
    fn early(&mut self) -> Option<Letter> {
        let told = self.told;
        let mailbox = self.mailbox.as_mut()?;
        let is_it = |letter: &Letter| letter.generations().map(|(before, _)| before) == told;
        let place = mailbox.early.iter().position(is_it)?;
        Some(mailbox.early.swap_remove(place))
    }
}

/// A letter came for an account whose home this shard is.
pub(crate) fn receive(account: &BareJid, letter: Letter, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    if letter.is_of_record() {
        cx.shard.changed(account.as_str());
        cx.shard.changed_records.mark(account.as_str());
        cx.homes.empty.remove(account.as_str());
    }
    // A record that is being read for somebody else may be read as it was before.
    let is_of_use = letter.is_of_record() && cx.homes.accounts.contains_key(account.as_str());
    if letter.is_for_sessions() && !sessions.has_any(account.as_str()) && !is_of_use {
        return;
    }
    match cx.homes.receive(account, letter, sessions.has_any(account.as_str())) {
        Received::Now(letter) => {
            open(account, letter, sessions, cx);
            rest(account, sessions, cx);
        }
        Received::First => read(account.clone(), cx),
        Received::Waits => {}
        Received::Refused(letter) => refuse(letter, sessions, cx),
    }
}

/// Gives a letter to the features, and the changes that waited for it.
fn open(account: &BareJid, letter: Letter, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    let mut next = Some(letter);
    while let Some(letter) = next {
        if let Letter::Doubt = letter {
            return doubt(account, cx);
        }
        let Some(home) = cx.homes.accounts.get_mut(account.as_str()) else { return };
        if home.is_next(&letter) {
            give(account, letter, sessions, cx);
        }
        if let Some(home) = cx.homes.accounts.get_mut(account.as_str()) {
            home.forget_ahead();
        }
        next = cx.homes.accounts.get_mut(account.as_str()).and_then(Home::early);
    }
    let is_flooded =
        |home: &Home| home.mailbox.as_ref().is_some_and(|mailbox| mailbox.early.len() > EARLY_MAX);
    if cx.homes.accounts.get(account.as_str()).is_some_and(is_flooded) {
        doubt(account, cx);
    }
}

/// Gives a letter to the features.
fn give(account: &BareJid, letter: Letter, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    let Some(domain) = cx.shard.domains.named(account.domain()).map(|domain| domain.id) else { return };
    let Some(home) = cx.homes.accounts.get_mut(account.as_str()) else { return };
    let Some((generation, record)) = &mut home.record else { return };
    if let Some(denial) = acting::denial(account, &letter, record, cx.pipeline) {
        return acting::deny(letter, denial, cx);
    }
    if let Some(sender) = letter.sender()
        && let Some(denial) = cx.pipeline.denies(record, Direction::In, sender)
    {
        return deny(letter, denial, cx);
    }
    let letter = match letter {
        Letter::Stanza { stanza, settlement } => return cx.route_on(*stanza, settlement),
        Letter::Sent { number, stanza } => return acting::send(account, number, *stanza, sessions, cx),
        letter => letter,
    };
    let (generation, mut record) = (*generation, std::mem::take(record));
    let before = record.bytes();
    let after = letter.generations().map_or(generation, |(_, after)| after.max(generation));
    let mut at_home = AtHome { account, domain, record: &mut record, generation };
    let left =
        cx.pipeline.letter.iter().try_fold(letter, |letter, hook| hook(letter, &mut at_home, sessions, cx));
    let error = StanzaError::new(Condition::ServiceUnavailable);
    match left {
        Some(Letter::Request { requester, stanza }) => reply(requester, &stanza, Err(error), sessions, cx),
        Some(Letter::Asked(stanza)) => answer_error(&stanza, &error, cx),
        _ => {}
    }
    cx.homes.bytes = cx.homes.bytes + record.bytes() - before;
    if before == 0 && record.bytes() > 0 {
        cx.homes.read.push_back(account.clone());
    }
    if let Some(home) = cx.homes.accounts.get_mut(account.as_str()) {
        home.record = Some((after, record));
    }
}

/// A letter that the account does not hear. Who asks or writes is told as if there were nobody; who only says something is not.
fn deny(letter: Letter, denial: Denial, cx: &mut Cx<'_>) {
    let Letter::Stanza { stanza, settlement } = letter else { return };
    if !matches!(stanza.kind, Kind::Presence(_)) {
        answer_error(&stanza, &(denial.0)(), cx);
    }
    cx.settle(settlement);
}

/// Tells another account that its stanza leads to nothing.
fn answer_error(stanza: &Stanza, error: &StanzaError, cx: &mut Cx<'_>) {
    if let Some(reply) = stanza.error_reply(error) {
        cx.reply(reply);
    }
}

/// A stanza came for an account, or for one of its sessions: it comes back if it passes at once. Else it is routed
/// when the account's record says that it passes.
pub(crate) fn incoming(
    stanza: Stanza,
    settlement: Option<Settlement>,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) -> Option<(Stanza, Option<Settlement>)> {
    let Some(to) = stanza.to.as_ref().filter(|_| cx.pipeline.filters()) else {
        return Some((stanza, settlement));
    };
    let is_own = stanza.from.as_ref().is_none_or(|from| from.bare_str() == to.bare_str());
    let is_empty = |account| match sessions.has_any(account) {
        true => cx.homes.is_empty(account),
        false => cx.homes.empty.contains(account),
    };
    if is_own || is_empty(to.bare_str()) {
        return Some((stanza, settlement));
    }
    let account = to.bare();
    receive(&account, Letter::Stanza { stanza: Box::new(stanza), settlement }, sessions, cx);
    None
}

/// The record is read anew, to find out whether it has changed: what was asked before may have been answered before.
fn doubt(account: &BareJid, cx: &mut Cx<'_>) {
    let Some(home) = cx.homes.accounts.get_mut(account.as_str()) else { return };
    let bytes = home.record.take().map_or(0, |(_, record)| record.bytes());
    // It is settled by this read.
    home.mailbox.get_or_insert_default().letters.push_front(Letter::Doubt);
    cx.homes.bytes -= bytes;
    read(account.clone(), cx);
}

/// Asks for the record of an account.
fn read(account: BareJid, cx: &mut Cx<'_>) {
    let domain = cx.shard.domains.named(account.domain()).map(|domain| domain.id);
    let (Some(domain), Some(local)) = (domain, account.local().map(Box::from)) else { return };
    let parts = cx.pipeline.record_parts();
    cx.ask(ReadRecord { domain, local, parts }, move |answer, sessions, cx| {
        was_read(&account, answer, sessions, cx);
    });
}

/// The record was read: what waited for it is dealt with.
fn was_read(
    account: &BareJid,
    answer: Result<Option<Box<Record>>, Fault>,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) {
    match answer {
        Ok(Some(read)) => {
            let Record { generation, .. } = *read;
            let record = unpacked(&read, cx);
            let has_changed = cx.shard.changed_records.is_marked(account.as_str());
            if generation == Generation::default() && !has_changed && !sessions.has_any(account.as_str()) {
                cx.homes.note_empty(account);
            }
            cx.homes.fill(account, generation, record);
            settle_doubt(account, generation, sessions, cx);
            while let Some(letter) = cx.homes.next(account) {
                open(account, letter, sessions, cx);
            }
        }
        // It was removed, and its sessions are ending; or there never was one. Who sends it something is told so by routing.
        Ok(None) => {
            cx.homes.note_empty(account);
            for letter in cx.homes.give_up(account, |_| false) {
                match letter {
                    Letter::Stanza { stanza, settlement } => cx.route_on(*stanza, settlement),
                    Letter::Asked(stanza) => {
                        answer_error(&stanza, &StanzaError::new(Condition::ServiceUnavailable), cx);
                    }
                    other => refuse(other, sessions, cx),
                }
            }
        }
        Err(_) => {
            // What is only told can wait; who asks is answered.
            for letter in cx.homes.give_up(account, Letter::can_wait) {
                refuse(letter, sessions, cx);
            }
            if let Some(home) = cx.homes.accounts.get_mut(account.as_str()) {
                home.mailbox.get_or_insert_default().is_unread = true;
            }
            cx.homes.unread.push(account.clone());
            cx.homes.again.get_or_insert(cx.now.mono.plus(AGAIN_MS));
        }
    }
    rest(account, sessions, cx);
    let bytes_max = cx.shard.settings.limits.records_bytes / usize::from(cx.shard.shard_count.max(1));
    cx.homes.shrink(bytes_max);
}

/// The record was read because it was unknown whether it had changed. If it has, the sessions that were told what it was before have to
/// ask anew: nobody can tell them what changed.
fn settle_doubt(account: &BareJid, generation: Generation, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    let Some(home) = cx.homes.accounts.get_mut(account.as_str()) else { return };
    let Some(mailbox) = &mut home.mailbox else { return };
    if mailbox.letters.pop_front_if(|letter| matches!(letter, Letter::Doubt)).is_none() {
        return;
    }
    // Those that the record has already.
    mailbox.early.retain(|letter| letter.generations().is_some_and(|(before, _)| before >= generation));
    let told = home.told.replace(generation);
    home.forget_ahead();
    if told != Some(generation) {
        for session in sessions.bound_of(account.as_str()) {
            let error = StreamError::new(
                stream::Condition::Reset,
                "what you know of your account may be out of date",
            );
            cx.end(session.id, error);
        }
    }
}

/// An account in which nobody is interested any more is forgotten.
pub(crate) fn rest(account: &BareJid, sessions: &Sessions, cx: &mut Cx<'_>) {
    cx.homes.leave(account.as_str(), sessions.has_any(account.as_str()));
}

/// A letter is not dealt with.
fn refuse(letter: Letter, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    let error = StanzaError::new(Condition::ResourceConstraint)
        .with_text("what is needed to decide on this cannot be read now; try again later");
    match letter {
        Letter::Request { requester, stanza } => reply(requester, &stanza, Err(error), sessions, cx),
        Letter::Sent { number, stanza } => {
            reply(Requester::Command(number), &stanza, Err(error), sessions, cx);
        }
        Letter::Stanza { stanza, settlement } => {
            answer_error(&stanza, &error, cx);
            cx.settle(settlement);
        }
        Letter::Asked(stanza) => answer_error(&stanza, &error, cx),
        _ => {}
    }
}

/// Records that could not be read are asked for again.
pub(crate) fn tick(cx: &mut Cx<'_>) {
    if cx.homes.again.is_some_and(|at| at <= cx.now.mono) {
        read_again(cx);
    }
}

/// The same, at once: what waits for them would be lost with the process.
pub(crate) fn read_again(cx: &mut Cx<'_>) {
    cx.homes.again = None;
    for account in std::mem::take(&mut cx.homes.unread) {
        let Some(home) = cx.homes.accounts.get_mut(account.as_str()) else { continue };
        let Some(mailbox) = &mut home.mailbox else { continue };
        mailbox.is_unread = false;
        match mailbox.letters.is_empty() {
            true => home.tidy(),
            false => read(account, cx),
        }
    }
}

/// A request of a session that is decided at its account's home: it goes there as a letter.
pub fn ask(
    session: &mut BoundSession,
    request: &Request<'_>,
    cx: &mut Cx<'_>,
) -> Result<IqAnswer, StanzaError> {
    let (requester, stanza) = (Requester::Session(session.id), Box::new(request.stanza.clone()));
    let letter = Letter::Request { requester, stanza };
    cx.letter(session.bare.clone(), letter);
    Ok(IqAnswer::Later)
}

/// A request of another account that is decided at the home of the one that it asks.
pub fn asked(request: &Stanza, cx: &mut Cx<'_>) {
    if let Some(to) = &request.to {
        cx.letter(to.bare(), Letter::Asked(Box::new(request.clone())));
    }
}

/// The answer to a request of the account's own: a result without a payload, or an error. To a presence there is only an error to be said.
pub fn reply(
    requester: Requester,
    request: &Stanza,
    result: Result<(), StanzaError>,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) {
    let is_iq = matches!(request.kind, Kind::Iq(_));
    let stanza = match result {
        Ok(()) => is_iq.then(|| request.result_reply()),
        Err(error) => request.error_reply(&error),
    };
    match stanza {
        Some(stanza) => answer(requester, stanza, sessions, cx),
        None => acting::done(requester, cx),
    }
}

/// The same with an answer that is made.
pub fn answer(requester: Requester, answer: Stanza, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    match requester {
        Requester::Session(session) => {
            if let Some(session) = sessions.bound(session) {
                session.send(&answer, &Track::Nothing, cx);
            }
        }
        Requester::Command(number) => acting::tell(number, Outcome::Answered(Box::new(answer)), cx),
    }
}

/// What the features know of an account by its record.
fn unpacked(read: &Record, cx: &Cx<'_>) -> PerAccount {
    let mut record = PerAccount::default();
    cx.pipeline.record.iter().for_each(|part| part.give(&mut record, read));
    record
}

impl BoundSession {
    /// Refuses a stanza to somebody to whom the account sends nothing, or lets it pass, perhaps once the record is read.
    pub(super) fn passes(&mut self, stanza: Stanza, cx: &mut Cx<'_>) -> Option<Stanza> {
        let Some(to) = stanza.to.as_ref().filter(|_| cx.pipeline.filters()) else { return Some(stanza) };
        let is_own = to.bare_str() == self.bare.as_str() || to.as_str() == self.bare.domain();
        if is_own || cx.homes.is_empty(self.bare.as_str()) {
            return Some(stanza);
        }
        let Some(record) = cx.homes.record(self.bare.as_str()) else {
            self.wait_for_record(stanza, cx);
            return None;
        };
        match cx.pipeline.denies(record, Direction::Out, to) {
            None => Some(stanza),
            Some(denial) => {
                self.refuse(&stanza, &(denial.0)(), cx);
                None
            }
        }
    }

    fn wait_for_record(&mut self, stanza: Stanza, cx: &mut Cx<'_>) {
        let (domain, local) = (self.domain, self.bare.local().unwrap_or_default().into());
        let question = ReadRecord { domain, local, parts: cx.pipeline.record_parts() };
        let wait = Wait::ask(question, |session, stanza, answer, cx| {
            let failed = StanzaError::new(Condition::InternalServerError);
            let read = answer.ok().flatten().ok_or(failed)?;
            let record = unpacked(&read, cx);
            let denial = stanza.to.as_ref().and_then(|to| cx.pipeline.denies(&record, Direction::Out, to));
            cx.homes.note(&session.bare, read.generation, record);
            match denial {
                None => Ok(Flow::Pass),
                Some(denial) => Err((denial.0)()),
            }
        });
        self.wait(stanza, wait, Next::Hook(0), cx);
    }
}

impl Cx<'_> {
    /// Routes a stanza that passes.
    fn route_on(&mut self, stanza: Stanza, settlement: Option<Settlement>) {
        self.agenda.push(Work::Route { stanza: Box::new(stanza), settlement });
    }

    /// Sends a letter to the home of an account, which must be one of this node.
    pub fn letter(&mut self, account: BareJid, letter: Letter) {
        let at = home(account.as_str(), self.shard.shard_count);
        self.post(at, ShardMessage::Letter { to: Addressees::from_iter([account]), letter });
    }

    /// Sends a letter to the homes of many accounts: one message per shard.
    pub fn letters(&mut self, accounts: impl Iterator<Item = BareJid>, letter: &Letter) {
        let mut shards: Vec<Addressees> = Vec::new();
        shards.resize_with(self.shard.shard_count.max(1).into(), Addressees::new);
        for account in accounts {
            let at = home(account.as_str(), self.shard.shard_count);
            if let Some(addressees) = shards.get_mut(usize::from(at.0)) {
                addressees.push(account);
            }
        }
        for (shard, to) in shards.into_iter().enumerate().filter(|(_, to)| !to.is_empty()) {
            self.post(ShardId(shard as u16), ShardMessage::Letter { to, letter: letter.clone() });
        }
    }
}
