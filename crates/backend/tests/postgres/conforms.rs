//! The conformance suite.

use crate::server::{Database, server};
use carillon_backend::conformance::{CASES, LASTING, members, shared};
use carillon_backend::postgres::{Options, PostgresStore};
use carillon_core::ports::Store;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Cases that this store does not pass: text with a NUL cannot be stored by PostgreSQL, and is refused.
const NOT_YET: &[&str] = &["names::hostile"];

/// Runs each, and fails with the names of all that failed.
fn each<'a>(names: impl Iterator<Item = (&'a str, Box<dyn FnOnce()>)>) {
    let is_taught = |name: &str| {
        let module = name.split("::").next().unwrap_or_default();
        !NOT_YET.contains(&name) && !NOT_YET.contains(&module)
    };
    // `CASE=name` runs those alone whose names contain it.
    let wanted = std::env::var("CASE");
    let failed: Vec<&str> = names
        .filter(|(name, _)| match &wanted {
            Ok(wanted) => name.contains(wanted.as_str()),
            Err(_) => is_taught(name),
        })
        .filter_map(|(name, run)| catch_unwind(AssertUnwindSafe(run)).is_err().then_some(name))
        .collect();
    assert!(failed.is_empty(), "failed: {failed:#?}");
}

#[test]
fn conforms() {
    each(CASES.iter().map(|case| {
        let run = move || {
            let database = Database::new();
            (case.run)(&database.open());
        };
        (case.name, Box::new(run) as Box<dyn FnOnce()>)
    }));
}

#[test]
fn conforms_across_restarts() {
    each(LASTING.iter().map(|case| {
        let run = move || {
            let database = Database::new();
            (case.write)(&database.open());
            (case.check)(&database.open());
        };
        (case.name, Box::new(run) as Box<dyn FnOnce()>)
    }));
}

/// The stores of two nodes on one database.
fn two(database: &Database) -> [PostgresStore; 2] {
    let of = |node: &str| Options { node: node.into(), ..server().options(&database.name) };
    ["a", "b"].map(|node| PostgresStore::open(of(node)).expect("opens"))
}

#[test]
fn two_nodes_conform_as_one() {
    let of_both = CASES.iter().filter(|case| !shared::OF_ONE_STORE.contains(&case.name));
    each(of_both.map(|case| {
        let run = move || {
            let database = Database::new();
            (case.run)(&shared::ByTurns::new(two(&database)));
        };
        (case.name, Box::new(run) as Box<dyn FnOnce()>)
    }));
}

#[test]
fn two_nodes_at_once_conform() {
    each(shared::CASES.iter().map(|case| {
        let run = move || {
            let database = Database::new();
            let [one, other] = two(&database);
            (case.run)(&one, &other);
        };
        (case.name, Box::new(run) as Box<dyn FnOnce()>)
    }));
}

/// Nodes that share a database.
struct Cell(Database);

impl members::Cell for Cell {
    fn start(&self, name: &str, address: &str, roles: &str) -> members::Node {
        let options = Options {
            node: name.into(),
            address: address.into(),
            roles: roles.into(),
            readers: 1,
            ..server().options(&self.0.name)
        };
        let store = PostgresStore::open(options).expect("opens");
        members::Node { members: store.members(), store: Some(Arc::new(store) as Arc<dyn Store>) }
    }
}

#[test]
fn members_conform() {
    each(members::CASES.iter().map(|case| {
        let run = move || (case.run)(&Cell(Database::new()));
        (case.name, Box::new(run) as Box<dyn FnOnce()>)
    }));
}
