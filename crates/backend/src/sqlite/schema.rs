//! The schema and its versions. A migration is one file that is never changed once it was released.

use super::{MIGRATIONS, OpenError};
use rusqlite::{Connection, TransactionBehavior};
use std::path::Path;

/// The version of the schema that this release uses.
pub const SCHEMA: u32 = MIGRATIONS.len() as u32;

/// `PRAGMA application_id` of our databases: "CRLN".
const APPLICATION_ID: i32 = 0x4352_4c4e;

/// Brings the database to the latest version, all in one step, or says why it cannot be used.
pub(super) fn migrate(db: &mut Connection, path: &Path) -> Result<(), OpenError> {
    if is_unfinished(db).map_err(|source| OpenError::of(path, source))? {
        return Err(OpenError::Unfinished { path: path.to_owned() });
    }
    make(db, path)
}

/// The same for a database that may hold a part of a copy.
pub(super) fn make(db: &mut Connection, path: &Path) -> Result<(), OpenError> {
    let sqlite = |source| OpenError::of(path, source);
    let found = if is_empty(db).map_err(sqlite)? { 0 } else { version(db, path)? };
    let known = SCHEMA;
    if found < known {
        upgrade(db, found).map_err(sqlite)?;
        match found {
            0 => tracing::info!(path = %path.display(), schema = known, "store created"),
            _ => tracing::info!(path = %path.display(), from = found, to = known, "store schema upgraded"),
        }
    }
    Ok(())
}

/// The version of the schema of a database that is ours and not newer than this server.
pub(super) fn version(db: &Connection, path: &Path) -> Result<u32, OpenError> {
    let sqlite = |source| OpenError::of(path, source);
    let found: u32 = db.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(sqlite)?;
    let owner: i32 = db.pragma_query_value(None, "application_id", |row| row.get(0)).map_err(sqlite)?;
    if owner != APPLICATION_ID || is_empty(db).map_err(sqlite)? {
        return Err(OpenError::Foreign { path: path.to_owned() });
    }
    let known = SCHEMA;
    if found > known {
        return Err(OpenError::Newer { path: path.to_owned(), found, known });
    }
    Ok(found)
}

/// Whether it holds a part of a copy of another store (`carillon store migrate`).
pub(super) fn is_unfinished(db: &Connection) -> rusqlite::Result<bool> {
    db.query_row("SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'store_migration')", [], |row| {
        row.get(0)
    })
}

fn upgrade(db: &mut Connection, from: u32) -> rusqlite::Result<()> {
    let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for sql in &MIGRATIONS[from as usize..] {
        tx.execute_batch(sql)?;
    }
    tx.pragma_update(None, "application_id", APPLICATION_ID)?;
    tx.pragma_update(None, "user_version", SCHEMA)?;
    tx.commit()
}

fn is_empty(db: &Connection) -> rusqlite::Result<bool> {
    db.query_row("SELECT NOT EXISTS (SELECT 1 FROM sqlite_schema)", [], |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use super::super::{Options, SqliteStore};
    use super::*;
    use carillon_core::model::*;
    use carillon_core::ports::store::idempotency::{Reservation, Reserve};
    use carillon_core::ports::store::notifications::{Listing, NotificationQuery, Whose};
    use carillon_core::ports::store::roster::ReadRecord;
    use carillon_core::ports::{Question, Store};
    use std::sync::mpsc::channel;

    fn ask<Q: Question>(store: &SqliteStore, question: Q) -> Q::Answer {
        let (sender, receiver) = channel();
        store.ask(question.into(), Q::reply(move |answer| drop(sender.send(answer))));
        receiver.recv().expect("one answer").expect("the store is well")
    }

    /// A database of an old version, to be filled.
    fn old(path: &Path, version: usize) -> Connection {
        let db = Connection::open(path).expect("opens");
        MIGRATIONS[..version].iter().for_each(|sql| db.execute_batch(sql).expect("an old schema"));
        db.pragma_update(None, "application_id", APPLICATION_ID).expect("ours");
        db.pragma_update(None, "user_version", version as u32).expect("of then");
        db
    }

    fn listed(path: &Path, limit: u16) -> Vec<NotificationId> {
        let store = SqliteStore::open(Options::new(path)).expect("it is upgraded");
        let (mut ids, mut before) = (Vec::new(), Some(NotificationId(u128::MAX)));
        while let Some(bound) = before {
            let query = NotificationQuery {
                whose: Whose::Account(DomainId(1), "alice".into()),
                states: States::ALL,
                key: None,
                from: NotificationId(0),
                before: bound,
                limit,
            };
            let Listing { traces, next } = ask(&store, query);
            ids.extend(traces.iter().map(|trace| trace.id));
            before = next;
        }
        ids
    }

    #[test]
    fn responses_of_before_they_were_bytes_are_given_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("store.db");
        let db = old(&path, 4);
        for (name, status, response) in [
            ("done", Some(207), Some("{\"a\": \"é b\"}")),
            ("refused", Some(404), Some("")),
            ("begun", None, None),
        ] {
            db.execute(
                "INSERT INTO idempotency (key, idempotency_key, body_hash, since, reserved, status, response)
                 VALUES (7, ?1, ?2, 1000, 1000, ?3, ?4)",
                (name, [1; 32], status, response),
            )
            .expect("a reservation");
        }
        drop(db);
        let store = SqliteStore::open(Options::new(&path)).expect("it is upgraded");
        let reserve = |name: &str| {
            let (key, now) = (KeyId(7), UnixMs(2000));
            ask(
                &store,
                Reserve {
                    key,
                    idempotency_key: name.into(),
                    body_hash: [1; 32],
                    kept_bytes_max: u64::MAX,
                    now,
                },
            )
        };
        let replay = |response: &str| Reservation::Replay { response: response.to_owned().into() };
        assert_eq!(reserve("done"), replay("207 {\"a\": \"é b\"}"));
        assert_eq!(reserve("refused"), replay("404 "));
        // Nobody works on what another process had begun.
        assert_eq!(reserve("begun"), Reservation::Go { since: UnixMs(1000) });
        assert_eq!(reserve("new"), Reservation::Go { since: UnixMs(2000) });
    }

    #[test]
    fn traces_of_before_there_were_runs_are_listed() {
        const TRACES: u64 = 10_000;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("store.db");
        let db = old(&path, 3);
        db.execute_batch("INSERT INTO domain VALUES (1, 'example.org', 0, 0, 0, 0); BEGIN")
            .expect("a domain");
        let id = |n: u64| NotificationId::new(UnixMs(1_795_167_000_000 + n), 3, n);
        for n in 0..TRACES {
            let local = if n % 3 == 0 { "alice" } else { "bob" };
            db.prepare_cached(
                "INSERT INTO trace (id, domain, local, audience, rank, state, accepted, ended)
                 VALUES (?1, 1, ?2, 2, 1, 4, 0, ?3)",
            )
            .expect("prepares")
            .execute((id(n).0.to_be_bytes(), local, n as i64))
            .expect("a trace");
        }
        db.execute_batch("COMMIT").expect("commits");
        drop(db);
        let expected: Vec<_> = (0..TRACES).rev().filter(|n| n % 3 == 0).map(id).collect();
        for limit in [7, 1000] {
            assert_eq!(listed(&path, limit), expected, "in pages of {limit}");
        }
    }

    #[test]
    fn subscriptions_with_accounts_that_are_gone_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("store.db");
        let db = old(&path, 21);
        // Bob is there; ghost removed itself, and elsewhere was removed.
        db.execute_batch(
            "INSERT INTO domain (id, name, sessions, registration, pubsub_create, sessions_max) VALUES (1, 'example.org', 0, 1, 0, 9);
             INSERT INTO account (id, domain, local, created, record, roster, contacts, requests, roster_bytes)
                 VALUES (1, 1, 'alice', 0, 9, 8, 3, 1, 80), (2, 1, 'bob', 0, 1, 1, 0, 0, 0);
             INSERT INTO contact (account, jid, name, standing, listed, request) VALUES
                 (1, 'bob@example.org', 'B', 3, 1, NULL), (1, 'ghost@example.org', 'G', 3 | 8, 1, x'0102'),
                 (1, 'someone@elsewhere.example', '', 1, 1, NULL), (1, 'asks@example.org', '', 8, 0, x'030405');",
        )
        .expect("an old roster");
        drop(db);
        let store = SqliteStore::open(Options::new(&path)).expect("it is upgraded");
        let parts = RecordParts { roster: true, ..RecordParts::NONE };
        let record =
            ask(&store, ReadRecord { domain: DomainId(1), local: "alice".into(), parts, about: Vec::new() });
        let record = record.expect("she is there");
        assert_eq!((record.generation, record.roster.version), (Generation(10), Generation(10)));
        let contacts = record.roster.contacts.iter();
        let said: Vec<_> =
            contacts.map(|c| (c.jid.as_str(), c.standing.bits(), c.request.is_some())).collect();
        assert_eq!(
            said,
            [
                ("bob@example.org", 3, false),
                ("ghost@example.org", 0, false),
                ("someone@elsewhere.example", 0, false)
            ]
        );
        store.close();
        let db = Connection::open(&path).expect("opens");
        let sql = "SELECT contacts, requests, roster_bytes FROM account WHERE id = 1";
        let used: (u32, u32, u32) =
            db.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).expect("a row");
        let bytes = record.roster.contacts.iter().map(Contact::bytes).sum::<usize>();
        assert_eq!(used, (3, 0, bytes as u32));
    }
}
