//! The SQLite store against the suite that every store must pass, and against what only it can do wrong.

use carillon_backend::conformance::{CASES, LASTING};
use carillon_backend::sqlite::{Options, SqliteStore};
use std::panic::{AssertUnwindSafe, catch_unwind};

fn open(folder: &tempfile::TempDir) -> SqliteStore {
    SqliteStore::open(Options::new(folder.path().join("carillon.db"))).expect("opens")
}

/// Runs each, and fails with the names of all that failed.
fn each<'a>(names: impl Iterator<Item = (&'a str, Box<dyn FnOnce()>)>) {
    let failed: Vec<&str> = names
        .filter_map(|(name, run)| catch_unwind(AssertUnwindSafe(run)).is_err().then_some(name))
        .collect();
    assert!(failed.is_empty(), "failed: {failed:#?}");
}

#[test]
fn conforms() {
    each(CASES.iter().map(|case| {
        let run = move || {
            let folder = tempfile::tempdir().expect("a folder");
            (case.run)(&open(&folder));
        };
        (case.name, Box::new(run) as Box<dyn FnOnce()>)
    }));
}

#[test]
fn conforms_across_restarts() {
    each(LASTING.iter().map(|case| {
        let run = move || {
            let folder = tempfile::tempdir().expect("a folder");
            (case.write)(&open(&folder));
            (case.check)(&open(&folder));
        };
        (case.name, Box::new(run) as Box<dyn FnOnce()>)
    }));
}
