//! Runs: what is listed is what ended, in any order and with any number of runs, and a run is small to write to.

use super::super::archive_tail::{Fold, Newest, Tail};
use super::super::column::uint;
use super::super::reservation::ReservationNumber;
use super::super::transaction::{Reached, Transaction};
use super::super::{Options, ending, file, listing, schema};
use super::*;
use crate::rows::last::LastItems;
use carillon_core::model::*;
use carillon_core::ports::store::accounts::{ImportAccounts, ImportedAccount};
use carillon_core::ports::store::domains::PutDomain;
use carillon_core::ports::store::notifications::{
    EndNotifications, Listing, NotificationChange, NotificationQuery, StoreNotification,
    StoreNotificationAnswer, Sweep, Whose,
};
use carillon_core::ports::store::{Answers, Question};
use carillon_wire::jid::BareJid;
use rusqlite::StatementStatus;

const T: UnixMs = UnixMs(1_795_167_000_000);

/// A store without threads.
struct Ground {
    db: Connection,
    last: LastItems,
    reached: Reached,
    domain: DomainId,
    _folder: tempfile::TempDir,
}

impl Ground {
    /// With so many accounts, and so many ends in a run.
    fn new(accounts: u64, full: u32) -> Ground {
        let folder = tempfile::tempdir().expect("a folder");
        let options = Options::new(folder.path().join("store.db"));
        drop(file::claim(&options.path).expect("it is made"));
        let mut db = file::connect_writer(&options).expect("it opens");
        schema::migrate(&mut db, &options.path).expect("it is new");
        let run = Run::newest(&db, full).expect("there is one");
        let last_found = ReservationNumber::last(&db).expect("there is none");
        let (newest_message, fold) = (Newest::default(), Fold::default());
        let reached = Reached { topic_changes: 0, run, last_found, newest_message, fold };
        let (last, domain) = (LastItems::new(0), DomainId(0));
        let mut ground = Ground { db, last, reached, domain, _folder: folder };
        ground.domain = ground.group(|write| {
            let put = PutDomain { name: "example.org".into(), policy: Policy::default() };
            let domain = does(write, &put).domain;
            let account = |n| ImportedAccount { local: local(n), credentials: Credentials::default() };
            let accounts: Vec<_> = (0..accounts).map(account).collect();
            does(write, &ImportAccounts { domain: domain.id, accounts, now: T })
                .expect("the domain is there");
            domain.id
        });
        ground
    }

    /// What one commit does.
    fn group<R>(&mut self, work: impl FnOnce(&mut Transaction<'_>) -> R) -> R {
        let tail = Tail::default();
        let mut write = Transaction::new(&self.db, &self.last, &tail, self.reached);
        write.run("BEGIN IMMEDIATE", []).expect("begins");
        let result = work(&mut write);
        write.seal().expect("seals");
        write.run("COMMIT", []).expect("commits");
        self.reached = write.committed();
        result
    }

    /// Stores those of these ids, each for the account of its number.
    fn store(&mut self, notifications: &[(NotificationId, u64)]) {
        let domain = self.domain;
        self.group(|write| {
            for (id, account) in notifications {
                let notification = notification_of(domain, *id, *account);
                let keep = StoreNotification {
                    notification: notification.into(),
                    queue_max: u32::MAX,
                    now: T,
                    wake: None,
                };
                let answer = does(write, &keep);
                assert!(matches!(answer, StoreNotificationAnswer::Stored { .. }), "{answer:?}");
            }
        });
    }

    fn end(&mut self, ids: &[NotificationId], at: UnixMs) {
        let change = |id: &NotificationId| NotificationChange {
            id: *id,
            state: NotificationState::Acknowledged,
            sent: Some(at),
            at,
            acknowledged_by: Some(AcknowledgedBy::StreamManagement),
            reason: None,
        };
        let changes: Vec<_> = ids.iter().map(change).collect();
        self.group(|write| does(write, &EndNotifications { changes }));
    }

    fn forget(&mut self, before: UnixMs) {
        self.group(|write| does(write, &Sweep { now: T, forget: before, max: 10_000 }));
    }

    /// All that is listed, page by page.
    fn listed(&self, mut query: NotificationQuery, rows_max: usize) -> Vec<NotificationId> {
        let mut ids = Vec::new();
        loop {
            let Listing { traces, next } = listing::list_within(&self.db, &query, rows_max).expect("lists");
            assert!(traces.len() <= usize::from(query.limit));
            ids.extend(traces.iter().map(|trace| trace.id));
            match next {
                None => return ids,
                Some(next) => assert!(next < query.before, "a page that does not go on"),
            }
            query.before = next.expect("there is more");
        }
    }

    fn count(&self, sql: &str) -> u64 {
        self.db.query_row(sql, [], |row| uint(row, 0)).expect("counts")
    }

    /// Every trace is in the run of its id, and no run is empty but the first and the newest.
    fn check(&self) {
        let astray = "SELECT count(*) FROM trace t
            WHERE run <> (SELECT number FROM run WHERE first <= t.id ORDER BY first DESC LIMIT 1)";
        assert_eq!(self.count(astray), 0, "traces in a run of other ids");
        let empty = "SELECT count(*) FROM run r WHERE number > 0 AND number < (SELECT max(number) FROM run)
            AND NOT EXISTS (SELECT 1 FROM trace WHERE run = r.number)";
        assert_eq!(self.count(empty), 0, "empty runs");
    }
}

/// Has the open transaction carry out a write.
fn does<'a, Q: Question>(write: &mut Transaction<'a>, question: &Q) -> Q::Answer
where
    Transaction<'a>: Answers<Q, rusqlite::Error>,
{
    write.answer(question).expect("it is done")
}

fn local(n: u64) -> Box<str> {
    format!("device-{n}").into()
}

fn notification_of(domain: DomainId, id: NotificationId, account: u64) -> Notification {
    Notification {
        id,
        domain,
        to: BareJid::from_parts(Some(&local(account)), "example.org").expect("an address"),
        audience: Audience::Always,
        priority: Priority::Normal,
        expires: None,
        collapse_key: None,
        key: None,
        payload: Payload::Json("{}".into()),
        accepted: id.time(),
        send_at: None,
    }
}

fn query(domain: DomainId, account: u64) -> NotificationQuery {
    NotificationQuery {
        whose: Whose::Account(domain, local(account)),
        states: States::ALL,
        key: None,
        from: NotificationId(0),
        before: NotificationId(u128::MAX),
        limit: 10,
    }
}

/// Numbers that look random, the same ones every time (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

/// One notification of the naive list.
struct Expected {
    id: NotificationId,
    account: u64,
    ended: Option<UnixMs>,
}

const ACCOUNTS: u64 = 3;

/// Some are stored, some end in any order, some are forgotten, and now and then the store is opened again.
fn step(ground: &mut Ground, known: &mut Vec<Expected>, random: &mut Random, now: UnixMs) {
    let new: Vec<(NotificationId, u64)> = (0..random.below(30))
        .map(|_| {
            // Most are of now; some were accepted long before they came to the store.
            let age = if random.below(10) == 0 { random.below(5000) } else { random.below(3) };
            let at = UnixMs(now.0.saturating_sub(age));
            (NotificationId::new(at, 3, random.below(u64::MAX)), random.below(ACCOUNTS))
        })
        .collect();
    ground.store(&new);
    known.extend(new.into_iter().map(|(id, account)| Expected { id, account, ended: None }));
    let mut ends = Vec::new();
    for one in known.iter_mut().filter(|one| one.ended.is_none()) {
        if random.below(3) == 0 {
            one.ended = Some(now);
            ends.insert(random.below(ends.len() as u64 + 1) as usize, one.id);
        }
    }
    ground.end(&ends, now);
    if random.below(8) == 0 {
        let before = UnixMs(now.0 - random.below(400));
        ground.forget(before);
        known.retain(|one| one.ended.is_none_or(|ended| ended >= before));
    }
    if random.below(8) == 0 {
        let again = Run::newest(&ground.db, ground.reached.run.full).expect("there is one");
        let run = ground.reached.run;
        assert_eq!(
            (again.number, again.first),
            (run.number, run.first),
            "the same run when it is opened again"
        );
        ground.reached.run = again;
    }
}

#[test]
fn a_list_is_what_a_naive_list_is() {
    let mut runs_most = 0;
    for seed in 0..12 {
        let mut random = Random(seed);
        let (mut ground, mut known) = (Ground::new(ACCOUNTS, 1 + random.below(20) as u32), Vec::new());
        for round in 0..40 {
            let now = T.plus(10_000 + round * 20);
            step(&mut ground, &mut known, &mut random, now);
            ground.check();
            runs_most = runs_most.max(ground.count("SELECT count(*) FROM run"));
            let account = random.below(ACCOUNTS);
            let mut bounds = [0, 0].map(|_| NotificationId::first_at(T.plus(random.below(12_000))));
            bounds.sort_unstable();
            let (from, before) = if random.below(2) == 0 {
                (NotificationId(0), NotificationId(u128::MAX))
            } else {
                (bounds[0], bounds[1])
            };
            let limit = 1 + random.below(20) as u16;
            let query = NotificationQuery { from, before, limit, ..query(ground.domain, account) };
            let mut expected: Vec<_> = known
                .iter()
                .filter(|one| one.account == account && (from..before).contains(&one.id))
                .map(|one| one.id)
                .collect();
            expected.sort_unstable_by(|a, b| b.cmp(a));
            let rows_max = 1 + random.below(60) as usize;
            assert_eq!(ground.listed(query, rows_max), expected, "seed {seed}, round {round}");
        }
    }
    assert!(runs_most > 20, "{runs_most} runs at most");
}

#[test]
fn a_run_goes_on_when_the_store_is_opened_again() {
    let mut ground = Ground::new(1, 10);
    let id = |n| NotificationId::new(T.plus(n), 3, n);
    for n in 0..25 {
        ground.store(&[(id(n), 0)]);
        ground.end(&[id(n)], T);
        let (run, again) = (ground.reached.run, Run::newest(&ground.db, 10).expect("there is one"));
        assert_eq!((again.number, again.first, again.ended), (run.number, run.first, run.ended));
        assert_eq!(again.next(&ground.db).expect("it is not full").number, run.number);
        assert_eq!(again.newest, if run.ended == 0 { run.first } else { id(n) });
    }
    assert_eq!((ground.reached.run.number, ground.reached.run.ended), (2, 5));
}

#[test]
fn runs_are_removed_with_their_last_trace() {
    let mut ground = Ground::new(1, 10);
    let ids: Vec<_> = (0..60).map(|n| NotificationId::new(T.plus(n), 3, n)).collect();
    ground.store(&ids.iter().map(|id| (*id, 0)).collect::<Vec<_>>());
    for (n, ids) in ids[1..].chunks(10).enumerate() {
        ground.end(ids, T.plus(n as u64));
    }
    assert_eq!(ground.count("SELECT count(*) FROM run"), 6);
    ground.forget(T.plus(3));
    ground.check();
    assert_eq!(ground.count("SELECT count(*) FROM run"), 4, "the first stays");
    // Its run is gone; it belongs to the one before.
    ground.end(&ids[..1], T.plus(9));
    ground.check();
    let mut expected = [&ids[..1], &ids[31..]].concat();
    expected.reverse();
    assert_eq!(ground.listed(query(ground.domain, 0), 10_000), expected);
    ground.forget(T.plus(100));
    assert_eq!(ground.count("SELECT count(*) FROM run"), 2, "the first and the newest");
}

/// What the runs are for. As one run the last of these groups changed 179 pages, and each further one would change more.
#[test]
fn a_group_of_ends_changes_few_pages() {
    const DEVICES: u64 = 5_000;
    let mut ground = Ground::new(DEVICES, FULL);
    ground.db.pragma_update(None, "wal_autocheckpoint", 0).expect("no checkpoint comes between");
    // Pages in the log, all of which a checkpoint has taken over.
    let pages = |ground: &Ground, how: &str| -> u64 {
        let sql = format!("PRAGMA wal_checkpoint({how})");
        ground.db.query_row(&sql, [], |row| uint(row, 1)).expect("a checkpoint")
    };
    let mut most = 0;
    for group in 0..32 {
        let numbers = group * 500..(group + 1) * 500;
        let notifications: Vec<_> = numbers
            .map(|n| (NotificationId::new(T.plus(n / 20), 3, n), n.wrapping_mul(7919) % DEVICES))
            .collect();
        ground.store(&notifications);
        pages(&ground, "TRUNCATE");
        let ids: Vec<_> = notifications.iter().map(|(id, _)| *id).collect();
        ground.end(&ids, T.plus(group));
        most = most.max(pages(&ground, "PASSIVE"));
    }
    assert!(most <= 120, "{most} pages");
    assert!(ground.reached.run.number >= 3, "several runs");
    assert_eq!(ground.listed(query(ground.domain, 0), 10_000).len(), 4);
    for sql in [&ending::INSERT_TOGETHER, &listing::ENDED_OF, listing::RUNS, BEGIN] {
        let statement = ground.db.prepare_cached(sql).expect("it is kept");
        assert!(statement.get_status(StatementStatus::Run) > 0, "{sql}");
        assert_eq!(statement.get_status(StatementStatus::RePrepare), 0, "{sql}");
    }
}
