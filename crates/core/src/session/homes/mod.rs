//! What is known of the accounts of which this shard is the home: their records, and how far their sessions know these. What is done with
//! it, message by message, is in [`home`](super::home), which stands above the hooks; this stands below them.

mod at_home;
mod changes;

pub use at_home::AtHome;

use crate::feature_state::PerAccount;
use crate::home::{Concurrency, HomeKind, Place, Places, Pushed, Stage};
use crate::message::AccountMessage;
use crate::model::{Generation, Mono, SessionId, Set};
use carillon_wire::jid::{BareJid, Jid};
use changes::Changes;

/// The accounts of which this shard is the home, as far as anybody is interested in them now.
#[derive(Debug, Default)]
pub struct Homes {
    pub(super) places: Places<Account>,
    /// Accounts without a session in whose records there is nothing.
    empty: Set<BareJid>,
}

/// The kind of home that accounts have. What is asked of the store is the whole record, or what it says about some.
#[derive(Debug)]
pub(super) struct Account;

/// An account at its home.
pub(super) type Home = Place<Account>;

/// The record of an account.
#[derive(Debug, Default)]
pub(super) struct AccountRecord {
    pub(super) generation: Generation,
    /// What the features know by it.
    pub(super) parts: PerAccount,
}

/// The part of a record that is looked up.
#[derive(Clone, Debug, Default)]
pub(super) struct About {
    /// Whom it is about, sorted; nobody for the whole record.
    pub(super) jids: Vec<Jid>,
    /// Whether requests are answered from it; else it only decides which pass.
    pub(super) answers: bool,
}

impl HomeKind for Account {
    type Key = BareJid;
    type Record = AccountRecord;
    type State = Changes;
    type Task = AccountMessage;
    type Step = About;

    const WAITING_BYTES_MAX: usize = 16 << 20;
    const ALL_WAITING_BYTES_MAX: usize = 64 << 20;

    fn task_bytes(message: &AccountMessage) -> usize {
        message.memory_bytes()
    }

    fn record_bytes(record: &AccountRecord) -> usize {
        record.parts.bytes()
    }

    fn may_drop(changes: &Changes) -> bool {
        changes.are_in_order() && !changes.is_pinned
    }

    /// What a feature asks of the store goes its own way: nothing waits here for its answer.
    fn concurrency(_: &AccountMessage, _: &AccountRecord, _: &Changes) -> Concurrency {
        Concurrency::Silent
    }
}

/// What a session knows of its account's record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SeenGenerations {
    /// All its account's sessions were told of the changes up to this generation; none if nobody knows the record yet.
    told: Option<Generation>,
    /// It was shown the record of this generation since.
    shown: Option<Generation>,
}

crate::form! { struct SeenGenerations { told, shown } }

impl SeenGenerations {
    /// For a session of an account whose record has never held anything.
    pub(super) fn of_nothing() -> SeenGenerations {
        SeenGenerations { told: Some(Generation::default()), shown: None }
    }
}

/// Accounts without a session of which it is remembered that there is nothing in their records.
const EMPTY_MAX: usize = 16 * 1024;

impl Homes {
    /// A session begins, whose login read this generation of the record.
    pub(crate) fn enter(&mut self, account: &BareJid, record: Generation) {
        if let Some(home) = self.places.get_mut(account) {
            // The record may have been read before what the login read: then it lacks changes that are still to come here.
            let known = home.record().map_or(record, |known| record.min(known.generation));
            home.state.told.get_or_insert(known);
        } else if record != Generation::default() {
            self.places.make(account, || Home::unknown(Changes::since(Some(record))));
        }
    }

    /// A session begins, whose login may have read the record before a change that this home has processed already: it counts as knowing
    /// whichever record is read first.
    pub(crate) fn enter_unread(&mut self, account: &BareJid) {
        self.places.make(account, || Home::unknown(Changes::default()));
    }

    /// A session goes on here that began in another process.
    pub(crate) fn enter_again(&mut self, account: &BareJid, session: SessionId, known: SeenGenerations) {
        let SeenGenerations { told, shown } = known;
        // A session that read the record knows that generation.
        let told = told.or(shown);
        if let Some(home) = self.places.get_mut(account) {
            home.state.told = home.state.told.into_iter().chain(told).min();
        } else if known != SeenGenerations::of_nothing() {
            self.places.make(account, || Home::unknown(Changes::since(told)));
        }
        if let Some(generation) = shown {
            self.shown(account, session, generation);
        }
    }

    /// What a session knows of its account's record.
    pub(crate) fn known(&self, account: &str, session: SessionId) -> SeenGenerations {
        let Some(home) = self.places.get(account) else { return SeenGenerations::of_nothing() };
        SeenGenerations { told: home.state.told, shown: home.state.shown_to(session) }
    }

    /// Whether it is known that there is nothing in the record of an account that has a session. Such an account has no entry here: most
    /// sessions of a push service are of one.
    pub fn is_empty(&self, account: &str) -> bool {
        self.places.get(account).is_none_or(is_empty)
    }

    /// The same of an account that has no session.
    pub(super) fn is_empty_absent(&self, account: &str) -> bool {
        self.empty.contains(account)
    }

    /// An account's record, if it is here.
    pub fn record(&self, account: &str) -> Option<&PerAccount> {
        self.places.get(account)?.record().map(|record| &record.parts)
    }

    /// When records that could not be read are asked for again.
    pub(crate) fn due(&self) -> Option<Mono> {
        self.places.due()
    }

    /// Notes that a session was shown the record as it is now: it is not told of the changes in it.
    pub fn shown(&mut self, account: &BareJid, session: SessionId, generation: Generation) {
        if let Some(home) = self.places.get_mut(account) {
            home.state.shown(session, generation);
        }
    }

    /// Whether a session was shown a record that has this change.
    pub fn was_shown(&self, account: &BareJid, session: SessionId, change: Generation) -> bool {
        let home = self.places.get(account);
        home.and_then(|home| home.state.shown_to(session)).is_some_and(|has| has >= change)
    }

    /// Queues a message, or returns it if it may be processed at once.
    pub(super) fn receive(
        &mut self,
        account: &BareJid,
        message: AccountMessage,
        has_session: bool,
    ) -> Pushed<AccountMessage> {
        let new = || if has_session { empty() } else { Home::unknown(Changes::default()) };
        let home = self.places.make(account, new);
        let is_unreadable = matches!(home.stage(), Stage::Failed);
        if is_unreadable && !message.can_wait() {
            return Pushed::Refused(message);
        }
        // The read for the first may be in flight; a later one covers this message, too.
        let is_reload = |message: &AccountMessage| matches!(message, AccountMessage::Reload);
        let is_settled =
            |home: &Home| home.waiting().len() > 1 && home.waiting().next_back().is_some_and(is_reload);
        if is_reload(&message) && is_settled(home) {
            return Pushed::Waits;
        }
        match self.places.push(account, message) {
            Pushed::Refused(message) if message.is_of_record() => {
                // That there was a change is not forgotten: the record is read once more.
                match self.places.get(account).is_some_and(is_settled) {
                    true => Pushed::Waits,
                    false => self.places.push_anyway(account, AccountMessage::Reload),
                }
            }
            pushed => pushed,
        }
    }

    /// There is nothing in the record of an account that has no session.
    pub(super) fn note_empty(&mut self, account: &BareJid) {
        if self.empty.len() >= EMPTY_MAX {
            self.empty = Set::default();
        }
        self.empty.insert(account.clone());
    }

    /// The same of all accounts: what changes in their records may not be heard of here.
    pub(crate) fn forget_all_empty(&mut self) {
        self.empty = Set::default();
    }

    /// Forgets that an account's record is empty.
    pub(super) fn forget_empty(&mut self, account: &BareJid) {
        self.empty.remove(account);
    }

    /// The record of an account was read.
    pub(super) fn fill(&mut self, account: &BareJid, record: AccountRecord) {
        let Some(home) = self.places.get_mut(account) else { return };
        let generation = record.generation;
        home.state.told = Some(home.state.told.map_or(generation, |told| told.min(generation)));
        home.open(record);
        self.places.settle(account, |_| true);
    }

    /// Takes the record of an account with a session that was read outside its queue: it may be older than a change processed meanwhile.
    pub(super) fn note(&mut self, account: &BareJid, record: AccountRecord) {
        let home = self.places.make(account, || Home::unknown(Changes::default()));
        let is_newest = home.state.told.is_none_or(|told| told <= record.generation);
        let is_unknown = matches!(home.stage(), Stage::Unknown);
        if is_unknown && home.is_quiet() && home.state.are_in_order() && is_newest {
            self.fill(account, record);
        }
    }

    /// Forgets an account for which nothing waits, if it has no session or an empty record.
    pub(super) fn settle(&mut self, account: &BareJid, has_session: bool) {
        if let Some(home) = self.places.get_mut(account) {
            home.state.tidy();
        }
        self.places.settle(account, |home| {
            !home.is_quiet() || (has_session && !(is_empty(home) && home.state.are_in_order()))
        });
    }

    /// Whether nothing waits for the record of an account.
    pub(crate) fn is_quiet(&self, account: &str) -> bool {
        self.places.get(account).is_none_or(Home::is_quiet)
    }

    /// Forgets an account that is at home elsewhere now; nothing waits for it.
    pub(crate) fn leave(&mut self, account: &BareJid) {
        self.forget_empty(account);
        self.places.settle(account, |home| !home.is_quiet());
    }

    /// Forgets the accounts that are at home elsewhere now. Returns the messages that waited for them.
    pub(crate) fn keep(&mut self, is_kept: impl Fn(&BareJid) -> bool) -> Vec<(BareJid, AccountMessage)> {
        self.places.keep(is_kept).tasks
    }

    /// Drops records until they take at most so many bytes; they are read again when they are needed.
    pub(super) fn shrink(&mut self, bytes_max: usize) {
        // One without a session is here only while something waits for it.
        self.places.shrink(bytes_max, |_| true);
    }
}

/// An account in whose record there was never anything.
pub(super) fn empty() -> Home {
    Home::of(Changes::since(Some(Generation::default())), AccountRecord::default())
}

/// Whether it is known that there is nothing in the record.
fn is_empty(home: &Home) -> bool {
    home.record().is_some_and(|record| record.generation == Generation::default())
}
