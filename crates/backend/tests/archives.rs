//! Message archives and inboxes against the simulated store, in random programs: messages are kept, read in all ways, marked, erased and swept, while they move from
//! memory into their tables, and the database is opened again in between.

use carillon_backend::sqlite::{Options, SqliteStore};
use carillon_core::model::*;
use carillon_core::ports::store::accounts::{ImportAccounts, ImportedAccount};
use carillon_core::ports::store::archive::*;
use carillon_core::ports::store::domains::PutDomain;
use carillon_core::ports::store::inbox::*;
use carillon_core::ports::{Ask, Missing, Page, Question, Store};
use carillon_core::sim::store::Committed;
use carillon_wire::jid::{BareJid, Jid};
use std::path::Path;
use std::sync::mpsc::sync_channel;

const T: UnixMs = UnixMs(1_795_167_000_000);
const ACCOUNTS: u64 = 12;

/// A store and the model of it.
struct Pair<'a> {
    path: &'a Path,
    store: Option<SqliteStore>,
    model: Committed,
    domain: DomainId,
    /// The numbers of each message, in the store and in the model.
    numbers: Vec<(ArchiveId, ArchiveId)>,
    now: u64,
    seed: u64,
}

fn ask<Q: Question>(store: &SqliteStore, question: Q) -> Q::Answer {
    let (sender, receiver) = sync_channel(1);
    store.ask(question.into(), Q::reply(move |answer| drop(sender.send(answer))));
    receiver.recv().expect("one answer").expect("the store is well")
}

fn told<Q: Question>(model: &mut Committed, question: Q) -> Q::Answer {
    let ask: Ask = question.into();
    Q::answer(model.answer(&ask)).expect("the model is well")
}

fn name(n: u64) -> Box<str> {
    format!("user{n}").into()
}

impl<'a> Pair<'a> {
    fn new(path: &'a Path, seed: u64) -> Pair<'a> {
        let store = SqliteStore::open(Options::new(path)).expect("opens");
        let mut model = Committed::default();
        let policy = Policy { archive_days: 1, archive_messages_max: 4000, ..Policy::default() };
        let put = PutDomain { name: "example.org".into(), policy };
        let domain = ask(&store, put.clone()).domain.id;
        assert_eq!(told(&mut model, put).domain.id, domain);
        let account = |n| ImportedAccount { local: name(n), credentials: Credentials::default() };
        let import = ImportAccounts { domain, accounts: (0..ACCOUNTS).map(account).collect(), now: T };
        ask(&store, import.clone()).expect("the domain is there");
        told(&mut model, import).expect("the domain is there");
        Pair { path, store: Some(store), model, domain, numbers: Vec::new(), now: 0, seed }
    }

    fn store(&self) -> &SqliteStore {
        self.store.as_ref().expect("it is open")
    }

    /// A number below `n` (SplitMix64).
    fn below(&mut self, n: u64) -> u64 {
        self.seed = self.seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.seed ^ (self.seed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % n
    }

    fn keeps(&mut self, count: u64) {
        for _ in 0..count {
            // Some say more than others.
            let most = 1 + self.below(ACCOUNTS);
            let (from, to) = (self.below(most), self.below(ACCOUNTS));
            self.now += self.below(3000);
            let early = self.below(100);
            let jid = |n, end| Jid::new(&format!("user{n}@example.org{end}")).expect("an address");
            let (sender, recipient) = (jid(from, if early > 50 { "/a" } else { "/b" }), jid(to, ""));
            // One in eight says that a message was seen, which may be any; one in eight says nothing.
            let has_contents = self.below(8) > 1;
            let seen = self.numbers.len() as u64;
            let displayed = (self.below(8) == 0).then(|| format!("n{}", seen - self.below(40.min(seen + 1))));
            let stanza = format!(
                "<message from='{sender}' to='{recipient}' id='n{seen}'><body>{}</body></message>",
                self.now
            );
            let side =
                |n, peer: &Jid| ArchiveSide { domain: self.domain, local: name(n), peer: peer.clone() };
            let keep = KeepMessage {
                sender: Some(side(from, &recipient)),
                recipient: Some(side(to, &sender)),
                received: T.plus(self.now.saturating_sub(early)),
                stanza: stanza.into(),
                has_contents,
                displayed: displayed.map(Into::into),
            };
            let answers = (ask(self.store(), keep.clone()), told(&mut self.model, keep));
            let (KeepMessageAnswer::Kept { id, .. }, KeepMessageAnswer::Kept { id: other, .. }) = answers
            else {
                panic!("{answers:?}")
            };
            self.numbers.push((id, other));
        }
    }

    /// A page of one account's archive, in both.
    fn reads(&mut self) {
        let number = |pair: &mut Self| match pair.numbers.len() as u64 {
            0 => (ArchiveId(1), ArchiveId(1)),
            n => {
                let place = pair.below(n) as usize;
                pair.numbers[place]
            }
        };
        let mut filters = (ArchiveFilter::default(), ArchiveFilter::default());
        if self.below(2) == 0 {
            let end = ["", "/a", "/b"][self.below(3) as usize];
            let with = Some(
                Jid::new(&format!("user{}@example.org{end}", self.below(ACCOUNTS))).expect("an address"),
            );
            (filters.0.with, filters.1.with) = (with.clone(), with);
        }
        for field in [|f: &mut ArchiveFilter, t| f.start = t, |f: &mut ArchiveFilter, t| f.end = t] {
            if self.below(4) == 0 {
                let at = Some(T.plus(self.below(self.now + 1000)));
                field(&mut filters.0, at);
                field(&mut filters.1, at);
            }
        }
        for field in [|f: &mut ArchiveFilter, id| f.after = id, |f: &mut ArchiveFilter, id| f.before = id] {
            if self.below(6) == 0 {
                let (id, other) = number(self);
                field(&mut filters.0, Some(id));
                field(&mut filters.1, Some(other));
            }
        }
        let (id, other) = number(self);
        let (start, other_start) = match self.below(4) {
            0 => (ArchiveStart::First, ArchiveStart::First),
            1 => (ArchiveStart::Last, ArchiveStart::Last),
            2 => (ArchiveStart::After(id), ArchiveStart::After(other)),
            _ => (ArchiveStart::Before(id), ArchiveStart::Before(other)),
        };
        let page = Page { entries: self.below(300) as u16, bytes: 1 + self.below(20_000) as usize };
        let (domain, local) = (self.domain, name(self.below(ACCOUNTS)));
        let asked = ArchivePage { domain, local: local.clone(), filter: filters.0, start, page };
        let other_asked = ArchivePage { domain, local, filter: filters.1, start: other_start, page };
        let found = self.in_words(ask(self.store(), asked.clone()), |(id, _)| *id);
        let answer = told(&mut self.model, other_asked);
        let expected = self.in_words(answer, |(_, id)| *id);
        assert_eq!(found, expected, "{asked:?}");
    }

    /// An answer, with the messages by their places among all.
    fn in_words(
        &self,
        answer: ArchivePageAnswer,
        number: fn(&(ArchiveId, ArchiveId)) -> ArchiveId,
    ) -> String {
        let ArchivePageAnswer::Page { messages, more, .. } = answer else { return format!("{answer:?}") };
        let place = |message: &ArchivedMessage| {
            let place = self.numbers.binary_search_by_key(&message.id, number).expect("it was kept");
            (place, message.received.0 - T.0, message.stanza.len())
        };
        format!("{:?} {more}", messages.iter().map(place).collect::<Vec<_>>())
    }

    /// A page of one account's conversations, in both.
    fn reads_inbox(&mut self) {
        let number = |pair: &mut Self| match pair.numbers.len() as u64 {
            0 => (ArchiveId(1), ArchiveId(1)),
            n => {
                let place = pair.below(n) as usize;
                pair.numbers[place]
            }
        };
        let ((id, other), is_any) = (number(self), self.below(2) == 0);
        let (start, other_start) = match self.below(4) {
            0 => (ArchiveStart::Last, ArchiveStart::Last),
            1 => (ArchiveStart::After(id), ArchiveStart::After(other)),
            2 => (ArchiveStart::Before(id), ArchiveStart::Before(other)),
            _ => (ArchiveStart::First, ArchiveStart::First),
        };
        let time = |pair: &mut Self| (pair.below(4) == 0).then(|| T.plus(pair.below(pair.now + 1000)));
        let filter = InboxFilter {
            with: (self.below(4) == 0).then(|| {
                BareJid::new(&format!("user{}@example.org", self.below(ACCOUNTS))).expect("an address")
            }),
            is_unread: !is_any && self.below(2) == 0,
            folder: [None, None, Some(Folder::Inbox), Some(Folder::Archive), Some(Folder::Bin)]
                [self.below(5) as usize],
            start: if is_any { None } else { time(self) },
            end: if is_any { None } else { time(self) },
        };
        let page = Page { entries: self.below(20) as u16, bytes: 1 + self.below(3000) as usize };
        let (domain, local, is_oldest_first) = (self.domain, name(self.below(ACCOUNTS)), self.below(2) == 0);
        let asked = ReadInbox { domain, local, filter, is_oldest_first, start, page };
        let found = ask(self.store(), asked.clone()).expect("the account is there");
        let expected = told(&mut self.model, ReadInbox { start: other_start, ..asked.clone() });
        let expected = expected.expect("the account is there");
        let found_in_words = self.inbox_in_words(&found, |(id, _)| *id);
        assert_eq!(found_in_words, self.inbox_in_words(&expected, |(_, id)| *id), "{asked:?}");
    }

    fn inbox_in_words(&self, page: &InboxPage, number: fn(&(ArchiveId, ArchiveId)) -> ArchiveId) -> String {
        let entry = |entry: &InboxEntry| {
            let at = &entry.conversation;
            let place = self.numbers.binary_search_by_key(&entry.message.id, number).expect("it was kept");
            format!("{} {place} {} {:?} {}", entry.peer, at.unread(), at.folder(), at.muted.0)
        };
        format!("{:?} {} {:?}", page.entries.iter().map(entry).collect::<Vec<_>>(), page.more, page.totals)
    }

    /// A conversation is changed, in both.
    fn changes_inbox(&mut self) {
        let change = ConversationChange {
            is_read: [None, Some(true), Some(false)][self.below(3) as usize],
            folder: [None, Some(Folder::Inbox), Some(Folder::Archive), Some(Folder::Bin)]
                [self.below(4) as usize],
            muted: [None, Some(UnixMs(self.now))][self.below(2) as usize],
        };
        let with = BareJid::new(&format!("user{}@example.org", self.below(ACCOUNTS))).expect("an address");
        let asked =
            ChangeConversation { domain: self.domain, local: name(self.below(ACCOUNTS)), with, change };
        let stands = |answer: Result<Conversation, Missing>| {
            answer.map(|at| (at.unread(), at.folder(), at.muted, at.is_there()))
        };
        let found = stands(ask(self.store(), asked.clone()));
        assert_eq!(found, stands(told(&mut self.model, asked.clone())), "{asked:?}");
        if self.below(8) == 0 {
            let empty = EmptyBin { domain: self.domain, local: asked.local, max: 100 };
            assert_eq!(ask(self.store(), empty.clone()), told(&mut self.model, empty));
        }
    }

    fn erases(&mut self) {
        let erase = EraseArchive { domain: self.domain, local: name(self.below(ACCOUNTS)) };
        ask(self.store(), erase.clone()).expect("the account is there");
        told(&mut self.model, erase).expect("the account is there");
    }

    /// Some of a round: messages move into their tables.
    fn folds(&mut self) {
        for _ in 0..1 + self.below(3) {
            let nothing = SweepArchives { now: UnixMs(0), after: AccountId(0), max: 0 };
            ask(self.store(), nothing);
        }
    }

    /// A whole round.
    fn sweeps(&mut self) {
        let sweep = |after| SweepArchives { now: T.plus(self.now), after, max: 700 };
        let (mut after, mut other) = (Some(AccountId(0)), Some(AccountId(0)));
        while let Some(next) = after {
            after = ask(self.store(), sweep(next)).next;
        }
        while let Some(next) = other {
            other = told(&mut self.model, sweep(next)).next;
        }
    }

    fn opens_again(&mut self) {
        self.store = None;
        self.store = Some(SqliteStore::open(Options::new(self.path)).expect("opens"));
        // Once an archive can be read, its newest messages are known.
        ask(self.store(), ReadArchiveEnds { domain: self.domain, local: name(0) });
    }
}

#[test]
fn archives_are_as_the_model_says() {
    for seed in 0..3 {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("store.db");
        let mut pair = Pair::new(&path, seed * 1000);
        for step in 0..30 {
            match pair.below(12) {
                0..=3 => {
                    let count = 1 + pair.below(1500);
                    pair.keeps(count);
                }
                4..=7 => pair.folds(),
                8 => pair.sweeps(),
                9 => pair.erases(),
                _ => pair.opens_again(),
            }
            println!("seed {seed}, step {step}: {} messages", pair.numbers.len());
            (0..20).for_each(|_| pair.reads());
            (0..5).for_each(|_| pair.changes_inbox());
            (0..20).for_each(|_| pair.reads_inbox());
        }
    }
}

/// With whom conversations of alice are, as far as the database says.
fn peers(path: &Path) -> Vec<String> {
    let db = rusqlite::Connection::open(path).expect("opens");
    let orphans = "SELECT 1 FROM inbox WHERE peer NOT IN (SELECT id FROM archive_peer)";
    assert!(!db.prepare(orphans).and_then(|mut query| query.exists([])).expect("it is asked"));
    let mut query = db.prepare("SELECT jid FROM archive_peer ORDER BY jid").expect("prepares");
    let jids = query.query_map([], |row| row.get(0)).expect("they are listed");
    jids.collect::<rusqlite::Result<_>>().expect("addresses")
}

#[test]
fn what_was_erased_does_not_say_with_whom_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let store = SqliteStore::open(Options::new(&path)).expect("opens");
    let put = |policy| ask(&store, PutDomain { name: "example.org".into(), policy }).domain.id;
    let domain = put(Policy::default());
    let alice = ImportedAccount { local: "alice".into(), credentials: Credentials::default() };
    ask(&store, ImportAccounts { domain, accounts: vec![alice], now: T }).expect("the domain is there");
    let keep = |with: &str| {
        let peer = Jid::new(&format!("{with}@elsewhere.example")).expect("an address");
        let (sender, recipient) = (Some(ArchiveSide { domain, local: "alice".into(), peer }), None);
        let stanza = bytes::Bytes::from_static(b"<message><body>x</body></message>");
        let (received, has_contents, displayed) = (T, true, None);
        ask(&store, KeepMessage { sender, recipient, received, stanza, has_contents, displayed });
    };
    let sweep = || {
        let mut next = Some(AccountId(0));
        while let Some(after) = next {
            next = ask(&store, SweepArchives { now: T, after, max: 2 }).next;
        }
    };
    for with in ["bob", "carol", "dave", "erin"] {
        keep(with);
    }
    let with = BareJid::new("bob@elsewhere.example").expect("an address");
    let change = ConversationChange { muted: Some(T.plus(1)), ..ConversationChange::default() };
    ask(&store, ChangeConversation { domain, local: "alice".into(), with, change }).expect("it is there");
    sweep();
    assert_eq!(peers(&path).len(), 4);
    // Only the newest stays; what is muted is not forgotten.
    put(Policy { archive_messages_max: 1, ..Policy::default() });
    sweep();
    assert_eq!(peers(&path), ["bob@elsewhere.example", "erin@elsewhere.example"]);
    ask(&store, EraseArchive { domain, local: "alice".into() }).expect("it is there");
    assert_eq!(peers(&path), ["erin@elsewhere.example"]);
    // One that goes on before what was erased is swept.
    keep("carol");
    sweep();
    assert_eq!(peers(&path), ["carol@elsewhere.example"]);
    store.close();
}
