//! Every table of the database is filled with rows of an account and its domain, whatever columns it has, and nothing of them is left.

use super::super::{Options, SqliteStore};
use carillon_core::model::*;
use carillon_core::ports::store::accounts::{
    CreateAccount, CreateAccountAnswer, DeleteAccount, UnfinishedRemoval, UnfinishedRemovals,
};
use carillon_core::ports::store::archive::SweepArchives;
use carillon_core::ports::store::domains::{DOMAIN_PART_ROWS, DeleteDomain, PutDomain};
use carillon_core::ports::store::notifications::Sweep;
use carillon_core::ports::store::rooms::SweepRoomArchives;
use carillon_core::ports::{Missing, Part, Question, Store};
use carillon_wire::jid::BareJid;
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::channel;

/// Tables without rows that are somebody's, and why these may stay.
const NOBODYS: &[(&str, &str)] = &[
    ("sqlite_sequence", "SQLite's: the last number of each table"),
    ("node", "its one row"),
    ("run", "ranges of ids"),
    ("trace", "of an account or a domain that is gone it is found by its id only, and forgotten in its time"),
    ("event", "goes with its trace; one of a room with its domain, or in its time"),
    ("push_step", "goes with its notification, or with the trace of that"),
    ("operation", "forgotten after ten minutes"),
    ("parked", "sessions of all accounts, until the next start"),
    ("removable_upload", "of files that are gone; until their contents are removed"),
    ("module", "the node's"),
    ("module_activation", "the node's; one that is for a domain which is gone decides about nothing"),
    ("act", "what administrators did: the operator's, and forgotten in its time"),
    ("lease", "of programs that share something, until a time"),
    ("cell", "of a front"),
    ("placement", "of a front: where devices of other nodes are, by their addresses"),
    ("held", "of a front: requests to other nodes, until they expire"),
    ("archive_fold", "its one row"),
    ("archive_list", "entries of the newest messages of all accounts; it goes when these are folded"),
];

/// Made by asking for them.
const ASKED_FOR: &[&str] = &["domain", "domain_grant", "account"];

/// The number of everything that is made here, but for the account and the domain.
const NUMBER: i64 = 7;

const T: UnixMs = UnixMs(1_795_167_000_000);

struct Ground {
    domain: DomainId,
    account: AccountId,
}

fn ask<Q: Question>(store: &SqliteStore, question: Q) -> Q::Answer {
    let (sender, receiver) = channel();
    store.ask(question.into(), Q::reply(move |answer| drop(sender.send(answer))));
    receiver.recv().expect("one answer").expect("the store is well")
}

fn tables(db: &Connection) -> Vec<String> {
    let mut query = db.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").expect("prepares");
    let names = query.query_map([], |row| row.get(0)).expect("they are listed");
    names.collect::<rusqlite::Result<_>>().expect("names")
}

fn columns(db: &Connection, table: &str) -> Vec<(String, String)> {
    let mut query = db.prepare("SELECT name, type FROM pragma_table_info(?1)").expect("prepares");
    let columns = query.query_map([table], |row| Ok((row.get(0)?, row.get(1)?))).expect("they are listed");
    columns.collect::<rusqlite::Result<_>>().expect("columns")
}

fn counts(path: &Path) -> BTreeMap<String, i64> {
    let db = Connection::open(path).expect("opens");
    let count = |table: &String| {
        db.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).expect("a count")
    };
    tables(&db)
        .into_iter()
        .filter(|table| is_somebodys(table))
        .map(|table| (table.clone(), count(&table)))
        .collect()
}

fn is_somebodys(table: &str) -> bool {
    NOBODYS.iter().all(|(name, _)| *name != table)
}

impl Ground {
    /// A row for a table: what says whose it is by the names of its columns, and anything else.
    fn fill(&self, db: &Connection, table: &str) {
        let columns = columns(db, table);
        let value = |(name, kind): &(String, String)| match (table, &**name) {
            ("endpoint", "sender") => Value::from(vec![4; 65]),
            (_, "account" | "sender" | "recipient") => Value::from(self.account.0 as i64),
            (_, "domain") => Value::from(i64::from(self.domain.0)),
            ("affiliation" | "room_member", "jid") => Value::from("alice@example.org".to_owned()),
            (_, "jid") => Value::from("carol@elsewhere.example".to_owned()),
            ("affiliation" | "room_member", "affiliation") => Value::from(4),
            (_, "topic" | "node" | "webhook" | "key" | "link" | "room" | "registration") => {
                Value::from(NUMBER)
            }
            (_, "id") if kind == "INTEGER" => Value::from(NUMBER),
            (_, "id") if kind == "BLOB" => Value::from(vec![1; 16]),
            _ if kind == "INTEGER" => Value::from(1),
            _ if kind == "TEXT" => Value::from("t".to_owned()),
            _ => Value::from(vec![1]),
        };
        let values: Vec<Value> = columns.iter().map(value).collect();
        // What triggers count is there already.
        let places = vec!["?"; values.len()].join(", ");
        let sql = format!("INSERT OR REPLACE INTO {table} VALUES ({places})");
        db.execute(&sql, params_from_iter(values)).unwrap_or_else(|e| panic!("{table}: {e}"));
    }

    /// Whether a row is of the account, not only of its domain.
    fn is_accounts(&self, db: &Connection, table: &str) -> bool {
        let columns = columns(db, table);
        let is_its = |(name, _): &(String, String)| name == "account" || name == "sender";
        // Whoever said it, what was said in a room is the room's.
        ["account_node_item", "push"].contains(&table)
            || (table != "room_message" && columns.iter().any(is_its))
    }
}

/// A store with another domain, what is in it then, and an account of the domain that is to go.
fn ground(path: &Path) -> (Ground, BTreeMap<String, i64>) {
    let store = SqliteStore::open(Options::new(path)).expect("opens");
    let put = |name: &str| {
        let policy = Policy { registration: true, ..Policy::default() };
        ask(&store, PutDomain { name: name.into(), policy }).domain.id
    };
    let create = |domain, local: &str| {
        let credentials = Credentials { sha1: None, sha256: None };
        let create = CreateAccount { domain, local: local.into(), credentials, is_in_band: false, now: T };
        match ask(&store, create) {
            CreateAccountAnswer::Created(id) => id,
            other => panic!("{other:?}"),
        }
    };
    create(put("other.example"), "bob");
    store.close();
    let before = counts(path);
    let store = SqliteStore::open(Options::new(path)).expect("opens");
    let put = |name: &str| ask(&store, PutDomain { name: name.into(), policy: Policy::default() }).domain.id;
    let domain = put("example.org");
    let credentials = Credentials { sha1: None, sha256: None };
    let create = CreateAccount { domain, local: "alice".into(), credentials, is_in_band: false, now: T };
    let CreateAccountAnswer::Created(account) = ask(&store, create) else { panic!("it is new") };
    store.close();
    (Ground { domain, account }, before)
}

/// What is done when there is nothing else to do.
fn sweep(store: &SqliteStore) {
    while ask(store, Sweep { now: T, forget: T, max: 100 }).more {}
    let mut next = Some(AccountId(0));
    while let Some(after) = next {
        next = ask(store, SweepArchives { now: T, after, max: 100 }).next;
    }
    let mut next = Some(RoomId(0));
    while let Some(after) = next {
        next = ask(store, SweepRoomArchives { now: T, after, max: 100 }).next;
    }
}

/// What is unfinished, as whoever opens the store finds it.
fn unfinished(path: &Path) -> Vec<UnfinishedRemoval> {
    let store = SqliteStore::open(Options::new(path)).expect("opens");
    let listed = ask(&store, UnfinishedRemovals { before: T, limit: 9 });
    store.close();
    listed
}

/// Removes part after part, and has the store closed and opened after each; how many parts these were.
fn remove<Q: Question<Answer = Result<Part<RosterChange>, Missing>>>(
    path: &Path,
    part: &Q,
    is: &UnfinishedRemoval,
) -> u32 {
    let mut parts = 0;
    loop {
        let store = SqliteStore::open(Options::new(path)).expect("opens");
        let Part { more, .. } = ask(&store, part.clone()).expect("it is there");
        store.close();
        parts += 1;
        let listed = unfinished(path);
        assert_eq!(listed.contains(is), more, "{listed:?} after part {parts}");
        if !more {
            assert_eq!(listed, [], "nothing is listed in the end");
            return parts;
        }
    }
}

fn nothing_is_left_of_a_domain_that_is_removed(rows_max: u32) -> u32 {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let (ground, before) = ground(&path);
    let db = Connection::open(&path).expect("opens");
    for table in tables(&db).into_iter().filter(|table| is_somebodys(table)) {
        if !ASKED_FOR.contains(&&*table) {
            ground.fill(&db, &table);
        }
    }
    db.execute_batch("UPDATE archive_fold SET folded = 1").expect("it has been folded");
    // The newest message of all stays, whosever it is.
    db.execute_batch("INSERT INTO archive_message (seq, received, stanza) VALUES (2, 1, x'')")
        .expect("a message");
    drop(db);
    for (table, count) in counts(&path) {
        assert!(count > before[&table], "{table} has a row of the domain that is to go");
    }
    let delete = DeleteDomain { domain: ground.domain, now: T, rows_max };
    let parts = remove(&path, &delete, &UnfinishedRemoval::Domain(ground.domain));
    let store = SqliteStore::open(Options::new(&path)).expect("opens");
    sweep(&store);
    store.close();
    let mut after = counts(&path);
    *after.get_mut("archive_message").expect("a table") -= 1;
    assert_eq!(after, before);
    parts
}

fn nothing_is_left_of_an_account_that_is_removed(rows_max: u32) -> u32 {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let (ground, _) = ground(&path);
    let before = counts(&path);
    let db = Connection::open(&path).expect("opens");
    let tables =
        tables(&db).into_iter().filter(|table| is_somebodys(table) && !ASKED_FOR.contains(&&**table));
    // Topics and broadcasts are their domain's.
    let (theirs, others): (Vec<_>, Vec<_>) = tables.partition(|table| ground.is_accounts(&db, table));
    others
        .iter()
        .filter(|table| ["topic", "affiliation", "room", "room_member", "broadcast"].contains(&&***table))
        .for_each(|table| ground.fill(&db, table));
    // What accounts have acknowledged of one that has ended goes otherwise.
    db.execute("UPDATE broadcast SET expires = ?1", [i64::MAX]).expect("it is open");
    theirs.iter().for_each(|table| ground.fill(&db, table));
    db.execute_batch("UPDATE archive_fold SET folded = 1").expect("it has been folded");
    db.execute_batch("INSERT INTO archive_message (seq, received, stanza) VALUES (2, 1, x'')")
        .expect("a message");
    drop(db);
    let delete =
        DeleteAccount { domain: ground.domain, local: "alice".into(), now: T, held_until: T, rows_max };
    let alice = BareJid::new("alice@example.org").expect("an address");
    let parts = remove(&path, &delete, &UnfinishedRemoval::Account(ground.domain, alice));
    let store = SqliteStore::open(Options::new(&path)).expect("opens");
    sweep(&store);
    store.close();
    let mut after = counts(&path);
    *after.get_mut("archive_message").expect("a table") -= 1;
    *after.get_mut("account").expect("a table") += 1;
    *after.get_mut("topic").expect("a table") -= 1;
    *after.get_mut("room").expect("a table") -= 1;
    *after.get_mut("broadcast").expect("a table") -= 1;
    assert_eq!(after, before);
    parts
}

#[test]
fn nothing_is_left_of_a_domain() {
    nothing_is_left_of_a_domain_that_is_removed(DOMAIN_PART_ROWS);
}

#[test]
fn nothing_is_left_of_an_account() {
    assert_eq!(nothing_is_left_of_an_account_that_is_removed(u32::MAX), 1);
}

#[test]
fn a_removal_that_is_interrupted_after_any_part_goes_on() {
    let of_account = nothing_is_left_of_an_account_that_is_removed(1);
    let of_domain = nothing_is_left_of_a_domain_that_is_removed(1);
    // Most tables had a row of theirs.
    assert!(of_account > 10 && of_domain > 20, "{of_account} {of_domain}");
}
