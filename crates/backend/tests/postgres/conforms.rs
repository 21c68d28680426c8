//! The conformance suite.

use crate::server::Database;
use carillon_backend::conformance::{CASES, LASTING};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Cases that ask what the store is not taught yet, by their names or those of their modules.
const NOT_YET: &[&str] = &[
    "domains::that_are_missing",
    "domains::take_all_along",
    "domains::leave_others_alone",
    "accounts::are_described",
    "accounts::that_are_deleted_take_all_along",
    "accounts::that_are_deleted_leave_bans",
    "accounts::of_the_same_name_in_two_domains",
    "accounts::are_never_numbered_twice",
    "logins::of_nobody",
    "logins::hold_topics_by_id_with_last_items",
    "logins::share_items",
    "logins::hold_what_was_asked_for",
    "logins::have_a_higher_generation_after_each_change",
    "logins::have_a_generation_of_their_own",
    "logins::of_many_at_once",
    "topics",
    "subscriptions",
    "items",
    "events::tell_how_notifications_ended",
    "events::are_of_a_domain_and_of_states",
    "webhooks::go_with_their_domain",
    "links::open_their_notifications",
    "links::go_with_their_domain",
    "listing",
    "rosters",
    "removals",
    "nodes",
    "blocklists",
    "archives",
    "private",
    "vcards",
    "inbox",
    "names",
    "again::every_write_is_done_once",
    "again::with_another_id_it_is_done_again",
    "together::reads_see_answered_writes",
    "together::many_threads",
    "together::generations_and_revisions_do_not_go_back",
    "lasting::everything",
    "lasting::revisions",
    "lasting::private",
    "lasting::vcards",
    "lasting::inbox",
    "lasting::nodes",
    "lasting::blocklists",
    "lasting::archives",
    "lasting::rosters",
];

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
