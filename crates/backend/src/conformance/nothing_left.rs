//! Of what is removed nothing is left: every table of a database is filled with rows of an account and its domain, whatever columns it
//! has, and after the removal each table has as many rows as before. The store is closed and opened after each part of a removal.

use super::ground::*;
use carillon_core::model::*;
use carillon_core::ports::store::Question;
use carillon_core::ports::store::archive::SweepArchives;
use carillon_core::ports::store::rooms::SweepRoomArchives;
use carillon_core::ports::{Missing, Part, Store};
use std::collections::BTreeMap;

/// The database below a store, as a test looks into it while no store is open.
pub trait Database {
    /// Opens the store on it.
    fn open(&self) -> Box<dyn Store>;

    /// The names of its tables.
    fn tables(&self) -> Vec<String>;

    /// Tables without rows that are somebody's, besides those of every store, and why these may stay.
    fn nobodys(&self) -> &'static [(&'static str, &'static str)];

    /// The names and types of a table's columns, except those that are computed.
    fn columns(&self, table: &str) -> Vec<(String, ColumnType)>;

    /// How many rows a table has.
    fn count(&self, table: &str) -> i64;

    /// Puts a row into a table; what triggers have made of it is replaced.
    fn insert(&self, table: &str, row: &[(String, Value)]);

    /// Runs a statement.
    fn run(&self, sql: &str);

    /// Called when the tables are filled; gives how many rows more a table has in the end.
    fn filled(&self) -> &'static [(&'static str, i64)] {
        &[]
    }
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// Whole numbers.
    Integer,
    /// Truth.
    Bool,
    /// Text.
    Text,
    /// Bytes.
    Bytes,
    /// Numbers of 128 bits.
    Uuid,
}

/// What is put into a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A whole number.
    Integer(i64),
    /// Truth.
    Bool(bool),
    /// A text.
    Text(&'static str),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A number of 128 bits.
    Uuid(u128),
}

/// Tables of every store without rows that are somebody's, and why these may stay.
const NOBODYS: &[(&str, &str)] = &[
    ("trace", "of an account or a domain that is gone it is found by its id only, and forgotten in its time"),
    ("event", "goes with its trace; one of a room with its domain, or in its time"),
    ("operation", "forgotten after ten minutes"),
    ("parked", "sessions of all accounts, until the next start"),
    ("removable_upload", "of files that are gone; until their contents are removed"),
    ("module", "the node's or the cell's"),
    (
        "module_activation",
        "the node's or the cell's; one that is for a domain which is gone decides about nothing",
    ),
    ("act", "what administrators did: the operator's, and forgotten in its time"),
    ("lease", "of programs that share something, until a time"),
    ("cell", "of a front"),
    ("placement", "of a front: where devices of other nodes are, by their addresses"),
    ("held", "of a front: requests to other nodes, until they expire"),
];

/// Made by asking for them.
const ASKED_FOR: &[&str] = &["domain", "domain_grant", "account"];

/// What is their domain's although it may name an account.
const OF_DOMAIN: &[&str] = &["topic", "affiliation", "room", "room_member", "broadcast"];

/// The number of everything that is made here, but for the account and the domain.
const NUMBER: i64 = 7;

/// Removes a domain in parts of so many rows at most, and looks whether anything of it is left; how many parts these were.
pub fn of_a_domain(database: &dyn Database, rows_max: u32) -> u32 {
    let ground = Ground::new(database);
    for table in ground.tables().iter().filter(|table| !ASKED_FOR.contains(&&***table)) {
        ground.fill(table);
    }
    let staying = database.filled();
    for (table, count) in ground.counts() {
        assert!(count > ground.before[&table], "{table} has a row of the domain that is to go");
    }
    let delete = DeleteDomain { domain: ground.domain, now: T, rows_max };
    let parts = ground.remove(&delete, &UnfinishedRemoval::Domain(ground.domain));
    ground.sweep();
    let mut left = ground.counts();
    for (table, rows) in staying {
        *left.get_mut(*table).expect("a table") -= rows;
    }
    assert_eq!(left, ground.before);
    parts
}

/// The same with an account.
pub fn of_an_account(database: &dyn Database, rows_max: u32) -> u32 {
    let ground = Ground::new(database);
    let with_account = ground.counts();
    let tables = ground.tables().into_iter().filter(|table| !ASKED_FOR.contains(&&**table));
    let (theirs, others): (Vec<_>, Vec<_>) = tables.partition(|table| ground.is_accounts(table));
    others.iter().filter(|table| OF_DOMAIN.contains(&&***table)).for_each(|table| ground.fill(table));
    // What accounts have acknowledged of one that has ended goes otherwise.
    database.run(&format!("UPDATE broadcast SET expires = {}", i64::MAX));
    theirs.iter().for_each(|table| ground.fill(table));
    let staying = database.filled();
    let domain = ground.domain;
    let delete = DeleteAccount { domain, local: "alice".into(), now: T, held_until: T, rows_max };
    let parts = ground.remove(&delete, &UnfinishedRemoval::Account(domain, jid("alice@example.org")));
    ground.sweep();
    let mut left = ground.counts();
    *left.get_mut("account").expect("a table") += 1;
    let of_domain = ["topic", "room", "broadcast"].map(|table| (table, 1));
    for (table, rows) in of_domain.iter().chain(staying) {
        *left.get_mut(*table).expect("a table") -= rows;
    }
    assert_eq!(left, with_account);
    parts
}

/// A database with another domain, and with an account of the domain that is to go.
struct Ground<'a> {
    database: &'a dyn Database,
    domain: DomainId,
    account: AccountId,
    /// How many rows each table had without them.
    before: BTreeMap<String, i64>,
}

impl Ground<'_> {
    fn new(database: &dyn Database) -> Ground<'_> {
        let put = |store: &dyn Store, name: &str| {
            let policy = Policy { registration: true, ..Policy::default() };
            ask(store, PutDomain { name: name.into(), policy }).domain.id
        };
        let create = |store: &dyn Store, domain, local: &str| {
            let credentials = Credentials { sha1: None, sha256: None };
            let create = CreateAccount { credentials, ..create_account(domain, local) };
            answer!(ask(store, create), CreateAccountAnswer::Created(id) => id)
        };
        let store = database.open();
        create(&*store, put(&*store, "other.example"), "bob");
        store.close();
        let mut ground =
            Ground { database, domain: DomainId(0), account: AccountId(0), before: BTreeMap::new() };
        ground.before = ground.counts();
        let store = database.open();
        ground.domain = put(&*store, "example.org");
        ground.account = create(&*store, ground.domain, "alice");
        store.close();
        ground
    }

    /// The tables with rows that are somebody's.
    fn tables(&self) -> Vec<String> {
        let nobodys = || NOBODYS.iter().chain(self.database.nobodys());
        let is_somebodys = |table: &String| nobodys().all(|(name, _)| name != table);
        self.database.tables().into_iter().filter(is_somebodys).collect()
    }

    fn counts(&self) -> BTreeMap<String, i64> {
        let count = |table: String| (table.clone(), self.database.count(&table));
        self.tables().into_iter().map(count).collect()
    }

    /// A row for a table: what says whose it is by the names of its columns, and anything else.
    fn fill(&self, table: &str) {
        let value = |name: &str, kind| match (table, name, kind) {
            ("endpoint", "sender", _) => Value::Bytes(vec![4; 65]),
            (_, "account" | "sender" | "recipient", _) => Value::Integer(self.account.0 as i64),
            (_, "domain", _) => Value::Integer(i64::from(self.domain.0)),
            ("affiliation" | "room_member", "jid", _) => Value::Text("alice@example.org"),
            (_, "jid", _) => Value::Text("carol@elsewhere.example"),
            ("affiliation" | "room_member", "affiliation", _) => Value::Integer(4),
            (
                _,
                "topic" | "node" | "webhook" | "key" | "link" | "room" | "registration" | "id",
                ColumnType::Integer,
            ) => Value::Integer(NUMBER),
            (_, "id", ColumnType::Bytes) => Value::Bytes(vec![1; 16]),
            (_, _, ColumnType::Integer) => Value::Integer(1),
            (_, _, ColumnType::Bool) => Value::Bool(true),
            (_, _, ColumnType::Text) => Value::Text("t"),
            (_, _, ColumnType::Bytes) => Value::Bytes(vec![1]),
            (_, _, ColumnType::Uuid) => Value::Uuid(1),
        };
        let columns = self.database.columns(table);
        let row: Vec<_> =
            columns.into_iter().map(|(name, kind)| (name.clone(), value(&name, kind))).collect();
        self.database.insert(table, &row);
    }

    /// Whether a row is of the account, not only of its domain.
    fn is_accounts(&self, table: &str) -> bool {
        let is_its = |(name, _): &(String, ColumnType)| name == "account" || name == "sender";
        // Whoever said it, what was said in a room is the room's.
        ["account_node_item", "push"].contains(&table)
            || (table != "room_message" && self.database.columns(table).iter().any(is_its))
    }

    /// Removes part after part, and has the store closed and opened after each; how many parts these were.
    fn remove<Q: Question<Answer = Result<Part<RosterChange>, Missing>>>(
        &self,
        part: &Q,
        is: &UnfinishedRemoval,
    ) -> u32 {
        let mut parts = 0;
        loop {
            let store = self.database.open();
            let Part { more, .. } = ask(&*store, part.clone()).expect("it is there");
            store.close();
            parts += 1;
            // As whoever opens the store finds it.
            let store = self.database.open();
            let listed = ask(&*store, UnfinishedRemovals { before: T, limit: 9 });
            store.close();
            assert_eq!(listed.contains(is), more, "{listed:?} after part {parts}");
            if !more {
                assert_eq!(listed, [], "nothing is listed in the end");
                return parts;
            }
        }
    }

    /// What is done when there is nothing else to do.
    fn sweep(&self) {
        let store = self.database.open();
        while ask(&*store, Sweep { now: T, forget: T, max: 100 }).more {}
        let mut next = Some(AccountId(0));
        while let Some(after) = next {
            next = ask(&*store, SweepArchives { now: T, after, max: 100 }).next;
        }
        let mut next = Some(RoomId(0));
        while let Some(after) = next {
            next = ask(&*store, SweepRoomArchives { now: T, after, max: 100 }).next;
        }
        store.close();
    }
}
