//! How the SQLite store opens its file, and when it refuses to.

use bytes::Bytes;
use carillon_backend::sqlite::{OpenError, Options, SqliteStore};
use carillon_core::model::{DomainId, KeyId, Policy, States, UnixMs, WebhookSecret};
use carillon_core::ports::store::domains::{DeleteDomain, Domains, PutDomain};
use carillon_core::ports::store::idempotency::{Remember, Reservation, Reserve};
use carillon_core::ports::store::notifications::Sweep;
use carillon_core::ports::store::offline::{StoreOffline, StoreOfflineAnswer};
use carillon_core::ports::store::webhooks::{ClaimWebhooks, CreateWebhook};
use carillon_core::ports::{Answer, Ask, Fault, Question, Store};
use rusqlite::Connection;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("data").join("carillon.db");
    (folder, path)
}

fn open(path: &Path) -> Result<SqliteStore, OpenError> {
    SqliteStore::open(Options::new(path))
}

fn refused(path: &Path) -> OpenError {
    open(path).err().expect("does not open")
}

fn ask<Q: Question>(store: &dyn Store, question: Q) -> Result<Q::Answer, Fault> {
    let (sender, receiver) = channel();
    store.ask(question.into(), Q::reply(move |answer| drop(sender.send(answer))));
    receiver.recv().expect("one answer")
}

/// A read and a write, both of which find nothing.
fn both() -> [Ask; 2] {
    [Domains.into(), DeleteDomain { domain: DomainId(1), now: UnixMs(0), rows_max: u32::MAX }.into()]
}

#[test]
fn files_are_for_the_owner_only() {
    let (_folder, path) = folder();
    let mode = |path: &Path| std::fs::metadata(path).expect("a file").permissions().mode() & 0o777;
    let store = open(&path).expect("opens");
    ask(&store, PutDomain { name: "example.org".into(), policy: Policy::default() }).expect("it is made");
    assert_eq!(mode(path.parent().expect("a folder")), 0o700);
    for suffix in ["", "-wal", "-shm", ".lock"] {
        assert_eq!(mode(Path::new(&format!("{}{suffix}", path.display()))), 0o600, "{suffix}");
    }
    drop(store);
    std::fs::set_permissions(&path, Permissions::from_mode(0o644)).expect("changes");
    let _store = open(&path).expect("opens");
    assert_eq!(mode(&path), 0o600, "whatever it was before");
}

#[test]
fn a_database_is_open_once() {
    let (_folder, path) = folder();
    let store = open(&path).expect("opens");
    let refused = refused(&path);
    assert!(matches!(&refused, OpenError::InUse { .. }), "{refused:?}");
    assert!(refused.to_string().contains("in use by another process"), "{refused}");
    store.close();
    let again = open(&path).expect("opens once the first is closed, dropped or not");
    drop(store);
    assert!(matches!(open(&path), Err(OpenError::InUse { .. })), "dropping a closed one frees nothing");
    drop(again);
}

#[test]
fn requests_of_a_process_that_is_gone_are_waited_for_by_nobody() {
    let (_folder, path) = folder();
    let now = UnixMs(1_795_167_000_000);
    let reserve = |store: &SqliteStore, idempotency_key: &str, at| {
        let idempotency_key = idempotency_key.into();
        ask(
            store,
            Reserve { key: KeyId(1), idempotency_key, body_hash: [1; 32], kept_bytes_max: u64::MAX, now: at },
        )
        .expect("an answer")
    };
    let store = open(&path).expect("opens");
    for key in ["first", "second", "answered"] {
        assert_eq!(reserve(&store, key, now), Reservation::Go { since: now });
    }
    assert_eq!(reserve(&store, "first", now.plus(1)), Reservation::InProgress);
    let response = Bytes::from_static(b"202 {}");
    let remember = Remember { key: KeyId(1), idempotency_key: "answered".into(), response: response.clone() };
    ask(&store, remember).expect("remembered");
    store.close();

    let store = open(&path).expect("opens");
    let later = now.plus(2);
    assert_eq!(reserve(&store, "first", later), Reservation::Go { since: now }, "as it was named before");
    assert_eq!(reserve(&store, "first", later), Reservation::InProgress, "and this one is on its way");
    assert_eq!(reserve(&store, "answered", later), Reservation::Replay { response });
    assert_eq!(reserve(&store, "new", later), Reservation::Go { since: later });
    assert_eq!(reserve(&store, "new", later), Reservation::InProgress);
    // When all that was found is deleted, its numbers are not given again.
    let tomorrow = now.plus(25 * 60 * 60 * 1000);
    ask(&store, Sweep { now: tomorrow, forget: UnixMs(0), max: 1000 }).expect("swept");
    assert_eq!(reserve(&store, "second", tomorrow), Reservation::Go { since: tomorrow });
    assert_eq!(reserve(&store, "second", tomorrow), Reservation::InProgress);
}

#[test]
fn what_a_process_that_is_gone_had_claimed_is_free() {
    let (_folder, path) = folder();
    let now = UnixMs(1_795_167_000_000);
    let claimed = |store: &SqliteStore, owner| {
        let claim = ClaimWebhooks { owner, now, until: now.plus(60_000), passed: Vec::new() };
        ask(store, claim).expect("an answer").len()
    };
    let store = open(&path).expect("opens");
    let secret = WebhookSecret(Box::new([1; 32]));
    let url = "https://a.example/".into();
    let wanted = States::ENDS.into();
    let create = CreateWebhook { domain: None, url, wanted, contents: false, secret, now };
    ask(&store, create).expect("it is created");
    assert_eq!((claimed(&store, 1), claimed(&store, 2)), (1, 0));
    store.close();
    assert_eq!(claimed(&open(&path).expect("opens"), 2), 1, "long before the claim ends");
}

#[test]
fn a_newer_schema_is_left_alone() {
    let (_folder, path) = folder();
    drop(open(&path).expect("opens"));
    Connection::open(&path).expect("opens").pragma_update(None, "user_version", 1000).expect("changes");
    let refused = refused(&path);
    assert!(matches!(refused, OpenError::Newer { found: 1000, known: 1.., .. }), "{refused:?}");
    assert!(refused.to_string().contains("schema version 1000"), "{refused}");
}

#[test]
fn what_is_not_ours_is_left_alone() {
    let (_folder, path) = folder();
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("makes it");
    Connection::open(&path).expect("opens").execute_batch("CREATE TABLE theirs (x)").expect("changes");
    assert!(matches!(refused(&path), OpenError::Foreign { .. }));
    std::fs::write(&path, "This is a letter, not a database. ".repeat(100)).expect("writes");
    assert!(matches!(refused(&path), OpenError::NotADatabase { .. }));
    assert!(std::fs::read(&path).expect("reads").starts_with(b"This is a letter"));
}

#[test]
fn what_is_damaged_is_named_and_left_alone() {
    let (_folder, path) = folder();
    let store = open(&path).expect("opens");
    for n in 0..200 {
        let name = format!("domain-{n}.example").into();
        ask(&store, PutDomain { name, policy: Policy::default() }).expect("it is made");
    }
    // Whichever of its connections was the last: everything is in the file, and nothing in a log beside it.
    drop(store);
    let log = path.with_extension("db-wal");
    let db = Connection::open(&path).expect("opens");
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).expect("puts the log away");
    drop(db);
    let good = std::fs::read(&path).expect("reads");
    let mut overwritten = good.clone();
    // The last page: none of those that are read when a store opens.
    let last = good.len() - 4096;
    overwritten[last..].fill(0x5a);
    let mut headless = good.clone();
    headless[..100].fill(0);
    for (damaged, named) in [(&overwritten[..], true), (&good[..last], true), (&headless, false)] {
        let _ = std::fs::remove_file(&log);
        std::fs::write(&path, damaged).expect("writes");
        let refused = refused(&path);
        match &refused {
            OpenError::Damaged { .. } => assert!(named && refused.to_string().contains("restore a backup")),
            OpenError::NotADatabase { .. } => assert!(!named),
            other => panic!("{other:?}"),
        }
        assert!(refused.to_string().contains(path.to_str().expect("text")), "{refused}");
        assert!(std::fs::read(&path).expect("reads") == damaged, "it is as it was");
    }
    std::fs::write(&path, good).expect("writes");
    open(&path).expect("opens");
}

#[test]
fn a_path_that_cannot_be_says_which() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("file"), "").expect("writes");
    let refused = refused(&folder.path().join("file").join("carillon.db"));
    assert!(matches!(&refused, OpenError::File { .. }), "{refused:?}");
    assert!(refused.to_string().contains("/file"), "{refused}");
}

#[test]
fn questions_that_carry_too_much_are_answered_at_once() {
    let (_folder, path) = folder();
    let store = SqliteStore::open(Options { queue_bytes_max: 100, ..Options::new(path) }).expect("opens");
    let (go, wait) = channel::<()>();
    let (began, begin) = channel();
    let hold = move |_| {
        began.send(()).expect("someone waits");
        wait.recv().expect("someone lets it go");
    };
    store
        .ask(DeleteDomain { domain: DomainId(1), now: UnixMs(0), rows_max: u32::MAX }.into(), Box::new(hold));
    begin.recv().expect("the first is answered");
    let (sender, receiver) = channel();
    let keep = |n: usize, bytes: usize| {
        let (sender, stanza) = (sender.clone(), vec![b'x'; bytes].into());
        let (domain, local, received) = (DomainId(1), "nobody".into(), UnixMs(1));
        let question = StoreOffline {
            domain,
            local,
            received,
            stanza,
            expires: None,
            queue_max: 9,
            bytes_max: u64::MAX,
            wake: None,
        };
        let reply = StoreOffline::reply(move |answer| sender.send((n, answer)).expect("someone waits"));
        store.ask(question.into(), reply);
    };
    // One is taken however large it is; another only beside what leaves it room, and one of no size always.
    keep(0, 1000);
    keep(1, 1);
    keep(2, 0);
    assert_eq!(receiver.recv(), Ok((1, Err(Fault::Busy))));
    go.send(()).expect("it waits");
    for expected in [0, 2] {
        assert_eq!(receiver.recv(), Ok((expected, Ok(StoreOfflineAnswer::NoAccount))));
    }
}

/// Whoever copies the file of a closed database has all of it.
#[test]
fn a_closed_database_has_no_log_beside_it() {
    for _ in 0..30 {
        let (_folder, path) = folder();
        let store = open(&path).unwrap();
        for question in both() {
            store.ask(question, Box::new(drop));
        }
        store.close();
        for beside in ["-wal", "-shm"] {
            let file = PathBuf::from(format!("{}{beside}", path.display()));
            assert!(!file.exists(), "{}", file.display());
        }
    }
}

#[test]
fn too_many_questions_are_answered_at_once() {
    let (_folder, path) = folder();
    let options = Options { queue_max: 3, readers: 1, ..Options::new(path) };
    let store = SqliteStore::open(options).expect("opens");
    // The first answer holds up its thread until all others were asked.
    for question in both() {
        let (go, wait) = channel::<()>();
        let (began, begin) = channel();
        store.ask(
            question.clone(),
            Box::new(move |_| {
                began.send(()).expect("someone waits");
                wait.recv().expect("someone lets it go");
            }),
        );
        begin.recv().expect("the first is answered");
        let (sender, receiver) = channel();
        for n in 0..5 {
            let sender = sender.clone();
            store.ask(
                question.clone(),
                Box::new(move |answer| sender.send((n, answer)).expect("someone waits")),
            );
        }
        assert_eq!(store.stats().waiting, 3);
        for expected in [3, 4] {
            let (n, answer) = receiver.recv().expect("answered at once");
            assert!(n == expected && matches!(answer, Answer::Failed(Fault::Busy)), "{n}: {answer:?}");
        }
        go.send(()).expect("it waits");
        for expected in 0..3 {
            let (n, answer) = receiver.recv().expect("answered");
            assert!(n == expected && !matches!(answer, Answer::Failed(_)), "{n}: {answer:?}");
        }
    }
}

#[test]
fn an_asker_that_panics_is_alone_with_it() {
    let (_folder, path) = folder();
    let store = open(&path).expect("opens");
    for question in both() {
        store.ask(question.clone(), Box::new(|_| panic!("this one is meant to")));
        let (sender, receiver) = channel();
        store.ask(question, Box::new(move |answer| sender.send(answer).expect("someone waits")));
        assert!(!matches!(receiver.recv().expect("one answer"), Answer::Failed(_)));
    }
}

#[test]
fn it_can_be_closed_from_an_answer() {
    let (_folder, path) = folder();
    let store = std::sync::Arc::new(open(&path).expect("opens"));
    let (sender, receiver) = channel();
    let inner = store.clone();
    store.ask(
        Domains.into(),
        Box::new(move |_| {
            inner.close();
            drop(inner);
            sender.send(()).expect("someone waits");
        }),
    );
    receiver.recv().expect("closes");
    assert_eq!(ask(&*store, Domains), Err(Fault::Closed));
}
