//! What a page of an inbox costs, counted in steps of SQLite's machine: its size, however many conversations the account has.

use super::archive_tail::{Tail, TailEntry};
use super::snapshot::{LastRevisions, Snapshot};
use super::write_cost::steps;
use super::{Options, file, schema};
use crate::rows::last::LastItems;
use carillon_core::model::*;
use carillon_core::ports::Page;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::inbox::{InboxPage, ReadInbox};
use carillon_wire::jid::BareJid;
use rusqlite::Connection;

const FEW: u64 = 10;
const MANY: u64 = 10_000;

/// Of a conversation of the page: looked up, with its address and its message.
const PER_ENTRY: u64 = 60;
/// What is counted takes so much, up to [`CONVERSATIONS_COUNTED_MAX`]: of all, and of those with something unread.
const PER_COUNTED: u64 = 11;

/// Alice talks to so many, and has read what the half of them said; a few are put aside. One message of each is there.
const FILL: &str = "
    INSERT INTO domain (id, name, sessions, registration, pubsub_create, sessions_max) VALUES (1, 'example.org', 0, 1, 0, 10);
    INSERT INTO account (id, domain, local, created) VALUES (1, 1, 'alice', 0);
    CREATE TEMP TABLE n AS WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < MANY) SELECT n FROM n;
    INSERT INTO archive_peer (id, account, jid) SELECT n, 1, 'c' || n || '@example.org' FROM n;
    INSERT INTO archive_message (seq, received, sender, sender_peer, recipient, recipient_peer, stanza, contents)
        SELECT n, n, NULL, NULL, 1, n, CAST('<message id=''m' || n || '''/>' AS BLOB), 1 FROM n;
    INSERT INTO inbox (account, peer, last, unread, folder, moved) SELECT 1, n, n, n % 2, iif(n % 5 = 0, 1, 0), iif(n % 5 = 0, MANY, 0) FROM n;
    INSERT INTO archive_message (seq, received, stanza, contents) VALUES (MANY + 1, MANY + 1, x'', 1);
    UPDATE archive_fold SET folded = MANY;
    ANALYZE;";

struct Filled {
    _folder: tempfile::TempDir,
    _lock: std::fs::File,
    db: Connection,
    tail: Tail,
}

impl Filled {
    fn with(many: u64) -> Filled {
        let folder = tempfile::tempdir().expect("a folder");
        let options = Options::new(folder.path().join("store.db"));
        let lock = file::claim(&options.path).expect("it is made");
        let mut db = file::connect_writer(&options).expect("it opens");
        schema::migrate(&mut db, &options.path).expect("it is new");
        db.execute_batch(&FILL.replace("MANY", &many.to_string())).expect("it is filled");
        let tail = Tail::default();
        tail.make(&db, 0);
        Filled { _folder: folder, _lock: lock, db, tail }
    }

    /// The page, and its steps.
    fn page(&self, asked: &ReadInbox) -> (InboxPage, u64) {
        let (last, mut revisions) = (LastItems::new(0), LastRevisions::default());
        let mut snapshot =
            Snapshot { db: &self.db, last: &last, tail: &self.tail, revisions: &mut revisions };
        steps(&self.db);
        let page = snapshot.answer(asked).expect("it answers").expect("the account is there");
        (page, steps(&self.db))
    }
}

fn asking(start: ArchiveStart, filter: InboxFilter, is_oldest_first: bool, entries: u16) -> ReadInbox {
    let page = Page { entries, bytes: usize::MAX };
    ReadInbox { domain: DomainId(1), local: "alice".into(), filter, is_oldest_first, start, page }
}

/// Each kind of page: of all, of what is unread, of a folder, of a time; from either end and from within.
fn asked(many: u64) -> Vec<ReadInbox> {
    let all = InboxFilter::default;
    let filters = [
        all(),
        InboxFilter { is_unread: true, ..all() },
        InboxFilter { folder: Some(Folder::Archive), ..all() },
        InboxFilter { folder: Some(Folder::Inbox), ..all() },
        InboxFilter { start: Some(UnixMs(3)), end: Some(UnixMs(many - 2)), ..all() },
        InboxFilter { with: Some(BareJid::new("c7@example.org").expect("an address")), ..all() },
    ];
    let half = ArchiveId(many / 2);
    let starts =
        [ArchiveStart::First, ArchiveStart::Last, ArchiveStart::After(half), ArchiveStart::Before(half)];
    let mut asked = Vec::new();
    for filter in filters {
        for start in starts {
            asked.push(asking(start, filter.clone(), false, 5));
            asked.push(asking(start, filter.clone(), true, 5));
        }
    }
    asked
}

#[test]
fn a_page_costs_its_size_however_many_conversations_there_are() {
    let (few, many) = (Filled::with(FEW), Filled::with(MANY));
    let counted = 2 * u64::from(CONVERSATIONS_COUNTED_MAX) * PER_COUNTED;
    let mut most = 0;
    for (small, large) in asked(FEW).into_iter().zip(asked(MANY)) {
        let (_, small) = few.page(&small);
        let (page, cost) = many.page(&large);
        assert!(!page.entries.is_empty() || large.filter.with.is_some(), "{large:?}");
        assert!(page.entries.len() <= 5, "{large:?}");
        let bound = small + 6 * PER_ENTRY + counted;
        assert!(cost <= bound, "{cost} steps instead of {bound}: {large:?}");
        most = most.max(cost);
    }
    println!("{MANY} conversations: at most {most} steps");
}

#[test]
fn pages_have_every_conversation_once_and_counts_end_at_their_bound() {
    let many = Filled::with(MANY);
    // Some have newer messages that are in memory, and one has them only there.
    many.db
        .execute_batch(
            "INSERT INTO archive_message (seq, received, stanza, contents) VALUES (10002, 10002, x'', 1), (10003, 10003, x'', 1);
             INSERT INTO archive_peer (id, account, jid) VALUES (10001, 1, 'new@example.org')",
        )
        .expect("it is done");
    let entry = |seq, peer| (1, TailEntry::new(seq, peer, 20, EntryKind::Received));
    many.tail.add(vec![entry(10_001, 17), entry(10_002, 10_001), entry(10_003, 4)]);
    for is_oldest_first in [false, true] {
        let (mut found, mut start) = (Vec::new(), ArchiveStart::First);
        loop {
            let (page, _) = many.page(&asking(start, InboxFilter::default(), is_oldest_first, 250));
            let totals = page.totals;
            assert_eq!((totals.conversations, totals.unread_conversations), (1000, 1000));
            found.extend(page.entries.iter().map(|entry| entry.conversation.last.0));
            let Some(last) = page.entries.last().filter(|_| page.more) else { break };
            start = ArchiveStart::After(last.place());
        }
        if is_oldest_first {
            found.reverse();
        }
        assert!(found.is_sorted_by(|a, b| a > b), "each once, the newest first");
        assert_eq!(found[..3], [10_003, 10_002, 10_001]);
        assert_eq!(found.len() as u64, MANY + 1);
    }
}
