//! Every table of the database is filled with rows of an account and its domain, whatever columns it has, and nothing of them is left.

use crate::commits::{T, ask};
use crate::server::{Database, server};
use carillon_backend::postgres::PostgresStore;
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
use std::collections::BTreeMap;

/// Tables without rows that are somebody's, and why these may stay.
const NOBODYS: &[(&str, &str)] = &[
    ("schema", "its one row"),
    ("node", "the cell's"),
    ("node_epoch", "the cell's"),
    ("lane", "the cell's"),
    ("event_number", "its one row"),
    ("broadcast_revision", "its one row"),
    ("trace", "of an account or a domain that is gone it is found by its id only, and forgotten in its time"),
    ("event", "goes with its trace"),
    ("operation", "forgotten after ten minutes"),
    ("parked", "sessions of all accounts, until the next start"),
    ("removable_upload", "of files that are gone; until their contents are removed"),
    ("module", "the cell's"),
    ("module_activation", "the cell's; one that is for a domain which is gone decides about nothing"),
    ("act", "what administrators did: the operator's, and forgotten in its time"),
    ("lease", "of programs that share something, until a time"),
    ("cell", "of a front"),
    ("placement", "of a front: where devices of other nodes are, by their addresses"),
    ("held", "of a front: requests to other nodes, until they expire"),
];

/// Made by asking for them.
const ASKED_FOR: [&str; 3] = ["domain", "domain_grant", "account"];

/// What is their domain's although it may name an account.
const OF_DOMAIN: [&str; 5] = ["topic", "affiliation", "room", "room_member", "broadcast"];

/// A database with an account of a domain that is to go.
struct Ground {
    database: Database,
    store: PostgresStore,
    domain: DomainId,
    account: AccountId,
    /// What was in it before.
    before: BTreeMap<String, i64>,
}

fn tables(database: &Database) -> Vec<String> {
    let rows = database.run("SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'");
    let names = rows.iter().map(|row| row.get(0));
    names.filter(|name: &String| NOBODYS.iter().all(|(nobodys, _)| nobodys != name)).collect()
}

fn counts(database: &Database) -> BTreeMap<String, i64> {
    let count = |table: &String| database.run(&format!("SELECT count(*) FROM \"{table}\""))[0].get(0);
    tables(database).into_iter().map(|table| (table.clone(), count(&table))).collect()
}

/// The names and types of a table's columns.
fn columns(database: &Database, table: &str) -> Vec<(String, String)> {
    let sql = format!(
        "SELECT column_name::text, udt_name::text FROM information_schema.columns
         WHERE table_schema = 'public' AND table_name = '{table}' AND is_generated = 'NEVER' ORDER BY ordinal_position"
    );
    database.run(&sql).iter().map(|row| (row.get(0), row.get(1))).collect()
}

impl Ground {
    fn new() -> Ground {
        let database = Database::new();
        let store = database.open();
        let put = |name: &str| {
            let policy = Policy { registration: true, ..Policy::default() };
            ask(&store, PutDomain { name: name.into(), policy }).expect("it is put").domain.id
        };
        let create = |domain, local: &str| {
            let credentials = Credentials { sha1: None, sha256: None };
            let create =
                CreateAccount { domain, local: local.into(), credentials, is_in_band: false, now: T };
            let Ok(CreateAccountAnswer::Created(id)) = ask(&store, create) else { panic!("it is new") };
            id
        };
        create(put("other.example"), "bob");
        let before = counts(&database);
        let domain = put("example.org");
        let account = create(domain, "alice");
        Ground { database, store, domain, account, before }
    }

    /// A row for a table: what says whose it is by the names of its columns, and anything else.
    fn fill(&self, table: &str) {
        let columns = columns(&self.database, table);
        let value = |(name, kind): &(String, String)| match (table, &**name, &**kind) {
            ("endpoint", "sender", _) => "'\\x04'".to_owned(),
            (_, "account" | "sender" | "recipient", _) => self.account.0.to_string(),
            (_, "domain", _) => self.domain.0.to_string(),
            ("affiliation" | "room_member", "jid", _) => "'alice@example.org'".to_owned(),
            (_, "jid", _) => "'carol@elsewhere.example'".to_owned(),
            ("affiliation" | "room_member", "affiliation", _) => "4".to_owned(),
            (_, "topic" | "node" | "webhook" | "key" | "link" | "room" | "registration" | "id", "int8") => {
                "7".to_owned()
            }
            (_, _, "int2" | "int4" | "int8") => "1".to_owned(),
            (_, _, "bool") => "true".to_owned(),
            (_, _, "uuid") => "'00000000-0000-0000-0000-000000000001'".to_owned(),
            (_, _, "bytea") => "'\\x01'".to_owned(),
            (_, _, "text") => "'t'".to_owned(),
            (_, _, other) => panic!("{table}.{name}: a type that the test does not know, {other}"),
        };
        let names: Vec<String> = columns.iter().map(|(name, _)| format!("\"{name}\"")).collect();
        let values: Vec<String> = columns.iter().map(value).collect();
        // What it refers to is there in the end, and nothing counts it.
        let sql = format!(
            "SET session_replication_role = replica;
             INSERT INTO \"{table}\" ({}) OVERRIDING SYSTEM VALUE VALUES ({})",
            names.join(", "),
            values.join(", ")
        );
        server().batch(&self.database.name, &sql);
    }

    /// Whether a row is of the account, not only of its domain.
    fn is_accounts(&self, table: &str) -> bool {
        let is_its = |(name, _): &(String, String)| name == "account" || name == "sender";
        // Whoever said it, what was said in a room is the room's.
        ["account_node_item", "push"].contains(&table)
            || (table != "room_message" && columns(&self.database, table).iter().any(is_its))
    }

    /// What is done when there is nothing else to do.
    fn sweep(&self) {
        let store = &self.store;
        while ask(store, Sweep { now: T, forget: T, max: 100 }).expect("it sweeps").more {}
        let mut next = Some(AccountId(0));
        while let Some(after) = next {
            next = ask(store, SweepArchives { now: T, after, max: 100 }).expect("it sweeps").next;
        }
        let mut next = Some(RoomId(0));
        while let Some(after) = next {
            next = ask(store, SweepRoomArchives { now: T, after, max: 100 }).expect("it sweeps").next;
        }
    }

    /// Removes part after part, and has the store closed and opened after each; how many parts these were.
    fn remove<Q: Question<Answer = Result<Part<RosterChange>, Missing>>>(
        &mut self,
        part: &Q,
        is: &UnfinishedRemoval,
    ) -> u32 {
        let mut parts = 0;
        loop {
            let part = ask(&self.store, part.clone()).unwrap_or_else(|e| panic!("{e:?}: {}", server().log()));
            let more = part.expect("it is there").more;
            parts += 1;
            self.store.close();
            self.store = self.database.open();
            let listed = ask(&self.store, UnfinishedRemovals { before: T, limit: 9 }).expect("it is read");
            assert_eq!(listed.contains(is), more, "{listed:?} after part {parts}");
            if !more {
                assert_eq!(listed, [], "nothing is listed in the end");
                return parts;
            }
        }
    }
}

fn nothing_is_left_of_a_domain_that_is_removed(rows_max: u32) -> u32 {
    let mut ground = Ground::new();
    let all = tables(&ground.database);
    all.iter().filter(|table| !ASKED_FOR.contains(&&***table)).for_each(|table| ground.fill(table));
    for (table, count) in counts(&ground.database) {
        assert!(count > ground.before[&table], "{table} has a row of the domain that is to go");
    }
    let domain = ground.domain;
    let delete = DeleteDomain { domain, now: T, rows_max };
    let parts = ground.remove(&delete, &UnfinishedRemoval::Domain(domain));
    ground.sweep();
    assert_eq!(counts(&ground.database), ground.before);
    parts
}

fn nothing_is_left_of_an_account_that_is_removed(rows_max: u32) -> u32 {
    let mut ground = Ground::new();
    let with_account = counts(&ground.database);
    let all: Vec<String> =
        tables(&ground.database).into_iter().filter(|table| !ASKED_FOR.contains(&&**table)).collect();
    let (theirs, others): (Vec<&String>, Vec<&String>) =
        all.iter().partition(|table| ground.is_accounts(table));
    others.iter().filter(|table| OF_DOMAIN.contains(&&****table)).for_each(|table| ground.fill(table));
    // What accounts have acknowledged of one that has ended goes otherwise.
    ground.database.run(&format!("UPDATE broadcast SET expires = {}", i64::MAX));
    theirs.iter().for_each(|table| ground.fill(table));
    let domain = ground.domain;
    let delete = DeleteAccount { domain, local: "alice".into(), now: T, held_until: T, rows_max };
    let alice = BareJid::new("alice@example.org").expect("an address");
    let parts = ground.remove(&delete, &UnfinishedRemoval::Account(domain, alice));
    ground.sweep();
    let mut left = counts(&ground.database);
    *left.get_mut("account").expect("a table") += 1;
    for table in ["topic", "room", "broadcast"] {
        *left.get_mut(table).expect("a table") -= 1;
    }
    assert_eq!(left, with_account);
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
