//! Disks that are full, and processes that are killed: what was answered is there, what failed is not.

use carillon_backend::sqlite::{Options, SqliteStore};
use carillon_core::model::{
    AcknowledgedBy, Audience, Credentials, DomainId, Notification, NotificationId, NotificationState,
    Payload, Policy, Priority, UnixMs,
};
use carillon_core::ports::store::accounts::CreateAccount;
use carillon_core::ports::store::domains::{Domains, PutDomain};
use carillon_core::ports::store::notifications::{
    EndNotifications, NotificationChange, Pending, StoreNotification, StoreNotificationAnswer, Trace,
};
use carillon_core::ports::{Fault, Page, Question, Store};
use carillon_wire::jid::BareJid;
use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const T: UnixMs = UnixMs(1_795_167_000_000);

/// Where the child process finds its database.
const CHILD_FOLDER: &str = "CARILLON_TEST_CHILD_FOLDER";

fn asked<Q: Question>(store: &dyn Store, question: Q) -> Receiver<Result<Q::Answer, Fault>> {
    let (sender, receiver) = channel();
    store.ask(question.into(), Q::reply(move |answer| drop(sender.send(answer))));
    receiver
}

fn ask<Q: Question>(store: &dyn Store, question: Q) -> Result<Q::Answer, Fault> {
    asked(store, question).recv().expect("one answer")
}

fn prepare(store: &dyn Store) -> DomainId {
    let put = PutDomain { name: "example.org".into(), policy: Policy::default() };
    let domain = ask(store, put).expect("a domain").domain;
    let (local, credentials) = ("alice".into(), Credentials::default());
    ask(store, CreateAccount { domain: domain.id, local, credentials, is_in_band: false, now: T })
        .expect("an account");
    domain.id
}

fn id(n: u64) -> NotificationId {
    NotificationId::new(T, 1, n)
}

fn store_ask(domain: DomainId, n: u64, payload_bytes: usize) -> StoreNotification {
    let notification = Notification {
        id: id(n),
        domain,
        to: BareJid::new("alice@example.org").expect("an address"),
        audience: Audience::Always,
        priority: Priority::Normal,
        expires: None,
        collapse_key: None,
        key: None,
        payload: Payload::Json("x".repeat(payload_bytes).into()),
        accepted: T,
        send_at: None,
    };
    StoreNotification { notification: notification.into(), queue_max: 1_000_000, now: T, wake: None }
}

fn end_ask(n: u64) -> EndNotifications {
    EndNotifications {
        changes: vec![NotificationChange {
            id: id(n),
            state: NotificationState::Acknowledged,
            sent: Some(T),
            at: T,
            acknowledged_by: Some(AcknowledgedBy::Receipt),
            reason: None,
        }],
    }
}

/// The other half of a test, in a process of its own.
fn child(name: &str, folder: &Path, wrap: &[&str]) -> Child {
    let test = std::env::current_exe().expect("this test");
    let (program, arguments) = match wrap {
        [] => (test.as_os_str(), [].as_slice()),
        [program, rest @ ..] => (std::ffi::OsStr::new(program), rest),
    };
    let mut command = Command::new(program);
    command.args(arguments);
    if !wrap.is_empty() {
        command.arg(&test);
    }
    command
        .args(["--exact", name, "--ignored", "--test-threads=1"])
        .env(CHILD_FOLDER, folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts")
}

fn child_folder() -> PathBuf {
    std::env::var_os(CHILD_FOLDER).expect("run by the test above").into()
}

/// The numbers in a log that are written to the end of their line.
fn logged(path: &Path) -> Vec<u64> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().map(|line| line.parse().expect("a number")).collect()
}

// ---- killed

#[test]
fn what_was_answered_survives_a_kill() {
    // Different moments each time: in the middle of a group, of a checkpoint, of the first page.
    for delay_ms in [150, 310, 470, 820, 1300] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut child = child("writes_until_killed", folder.path(), &[]);
        let log = folder.path().join("stored.log");
        let patience = Instant::now() + Duration::from_secs(60);
        while logged(&log).is_empty() {
            assert!(
                Instant::now() < patience && child.try_wait().expect("a child").is_none(),
                "it does not write"
            );
            std::thread::yield_now();
        }
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(delay_ms) {
            std::thread::yield_now();
        }
        child.kill().expect("is killed");
        child.wait().expect("has ended");
        check_after_kill(folder.path());
    }
}

fn check_after_kill(folder: &Path) {
    let store = SqliteStore::open(Options::new(folder.join("carillon.db"))).expect("opens");
    let (stored, ended) = (logged(&folder.join("stored.log")), logged(&folder.join("ended.log")));
    assert!(!stored.is_empty());
    let ended: HashSet<u64> = ended.into_iter().collect();
    for n in &stored {
        let Ok(Some(trace)) = ask(&store, Trace { id: id(*n) }) else { panic!("{n} is lost") };
        if ended.contains(n) {
            assert_eq!(trace.state, NotificationState::Acknowledged, "{n}");
        }
    }
    // And it goes on.
    let domains = ask(&store, Domains).expect("domains");
    let again = ask(&store, store_ask(domains[0].id, u64::MAX, 10));
    assert!(matches!(again, Ok(StoreNotificationAnswer::Stored { .. })), "{again:?}");
    store.close();
    let db = rusqlite::Connection::open(folder.join("carillon.db")).expect("opens");
    let integrity: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("checks");
    assert_eq!(integrity, "ok");
}

#[test]
#[ignore = "the half of the test above that is killed"]
fn writes_until_killed() {
    let folder = child_folder();
    let store = SqliteStore::open(Options::new(folder.join("carillon.db"))).expect("opens");
    let domain = prepare(&store);
    let log = |name: &str| Arc::new(Mutex::new(std::fs::File::create(folder.join(name)).expect("a log")));
    let (stored, ended) = (log("stored.log"), log("ended.log"));
    let note = |log: &Arc<Mutex<std::fs::File>>, n: u64| {
        let log = log.clone();
        move || {
            log.lock().expect("a log").write_all(format!("{n}\n").as_bytes()).expect("writes");
        }
    };
    for n in 0.. {
        let (noted, question) = (note(&stored, n), store_ask(domain, n, 400));
        let reply = StoreNotification::reply(move |answer| {
            assert!(matches!(answer, Ok(StoreNotificationAnswer::Stored { .. })), "{answer:?}");
            noted();
        });
        store.ask(question.into(), reply);
        if n % 2 == 0 && n > 500 {
            let noted = note(&ended, n - 500);
            let reply = EndNotifications::reply(move |answer| {
                answer.expect("it is ended");
                noted();
            });
            store.ask(end_ask(n - 500).into(), reply);
        }
        while store.stats().waiting > 2000 {
            std::thread::yield_now();
        }
    }
}

// ---- full

#[test]
fn a_bound_on_bytes_is_a_full_disk_until_something_goes() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options { bytes_max: Some(2 << 20), ..Options::new(folder.path().join("carillon.db")) };
    let store = SqliteStore::open(options).expect("opens");
    let domain = prepare(&store);
    let (mut kept, mut refused) = (Vec::new(), Vec::new());
    // Asked together: those that fit are not harmed by those that do not.
    let waiting: Vec<_> = (0..400).map(|n| (n, asked(&store, store_ask(domain, n, 20_000)))).collect();
    for (n, receiver) in waiting {
        match receiver.recv().expect("one answer") {
            Ok(StoreNotificationAnswer::Stored { .. }) => kept.push(n),
            Err(Fault::Broken) => refused.push(n),
            other => panic!("{other:?}"),
        }
    }
    assert!(kept.len() > 50 && refused.len() > 250, "{} kept, {} refused", kept.len(), refused.len());
    for n in &refused {
        assert!(matches!(ask(&store, Trace { id: id(*n) }), Ok(None)));
    }
    for n in &kept[..20] {
        assert!(ask(&store, end_ask(*n)).is_ok());
    }
    let again = ask(&store, store_ask(domain, 1000, 20_000));
    assert!(matches!(again, Ok(StoreNotificationAnswer::Stored { .. })), "there is room again: {again:?}");
}

#[test]
fn what_cannot_be_written_fails_and_the_rest_is_there() {
    let folder = tempfile::tempdir().expect("a folder");
    // Files of 4 MiB at most, and a write beyond fails instead of ending the process.
    let wrap = ["sh", "-c", "trap '' XFSZ; ulimit -f 8192; exec \"$@\"", "sh"];
    let mut child = child("writes_past_the_limit", folder.path(), &wrap);
    assert!(child.wait().expect("ends").success(), "the limited half failed");

    let store = SqliteStore::open(Options::new(folder.path().join("carillon.db"))).expect("opens");
    let stored = logged(&folder.path().join("stored.log"));
    let [failed, unknown] = ["failed.log", "unknown.log"].map(|name| logged(&folder.path().join(name)));
    assert!(!stored.is_empty() && !unknown.is_empty(), "{} failed", failed.len());
    for n in stored {
        assert!(matches!(ask(&store, Trace { id: id(n) }), Ok(Some(_))), "{n} is lost");
    }
    for n in failed {
        assert!(matches!(ask(&store, Trace { id: id(n) }), Ok(None)), "{n} failed, and is there");
    }
    let domain = ask(&store, Domains).expect("domains")[0].id;
    // What is unknown is settled by asking it again.
    for n in unknown {
        let is_there = matches!(ask(&store, Trace { id: id(n) }), Ok(Some(_)));
        match ask(&store, store_ask(domain, n, 50_000)) {
            Ok(StoreNotificationAnswer::Known) => assert!(is_there, "{n}"),
            Ok(StoreNotificationAnswer::Stored { .. }) => assert!(!is_there, "{n} is kept twice"),
            other => panic!("{other:?}"),
        }
        assert!(matches!(ask(&store, Trace { id: id(n) }), Ok(Some(_))), "{n}");
    }
}

#[test]
#[ignore = "the half of the test above that runs into the limit"]
fn writes_past_the_limit() {
    let folder = child_folder();
    let store = SqliteStore::open(Options::new(folder.join("carillon.db"))).expect("opens");
    let domain = prepare(&store);
    let mut stored = std::fs::File::create(folder.join("stored.log")).expect("a log");
    let mut failed = std::fs::File::create(folder.join("failed.log")).expect("a log");
    let mut unknown = std::fs::File::create(folder.join("unknown.log")).expect("a log");
    let mut failures = 0;
    for n in 0.. {
        let (log, failure) = match ask(&store, store_ask(domain, n, 50_000)) {
            Ok(StoreNotificationAnswer::Stored { .. }) => (&mut stored, 0),
            Err(Fault::Broken) => (&mut failed, 1),
            Err(Fault::Unknown) => (&mut unknown, 1),
            other => panic!("{other:?}"),
        };
        writeln!(log, "{n}").expect("a line fits");
        failures += failure;
        if failures == 20 {
            break;
        }
    }
    let page = ask(
        &store,
        Pending {
            domain,
            local: "alice".into(),
            resource: None,
            except: Vec::new(),
            page: Page { entries: 10, bytes: usize::MAX },
            now: T,
        },
    );
    assert_eq!(page.expect("reading goes on").entries.len(), 10);
}
