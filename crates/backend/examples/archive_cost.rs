//! What message archives cost on this machine: `cargo run --release -p carillon-backend --example archive_cost [FOLDER [MESSAGES]]`.
//!
//! 15,000 accounts, each in conversation with 20 others, keep messages of 300 bytes in the archives of both sides, 2,000 questions at a time; then
//! the last 50 messages of conversations are read, one question at a time: each of a conversation that was not asked for before, and again; and inboxes.
//! FOLDER is where the database goes and decides which disk is measured; a temporary folder when it is not given.

use carillon_backend::sqlite::{Options, SqliteStore};
use carillon_core::model::*;
use carillon_core::ports::store::accounts::{ImportAccounts, ImportedAccount};
use carillon_core::ports::store::archive::*;
use carillon_core::ports::store::domains::PutDomain;
use carillon_core::ports::store::inbox::ReadInbox;
use carillon_core::ports::{Answer, Ask, Page, Question, Store};
use carillon_wire::jid::Jid;
use std::path::PathBuf;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

const NOW: UnixMs = UnixMs(1_795_167_000_000);
const ACCOUNTS: u64 = 15_000;
const PEERS: u64 = 20;
const STANZA_BYTES: usize = 300;
const IN_FLIGHT: u64 = 2_000;
const PAGES: u64 = 2_000;

fn main() {
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let folder = std::env::args().nth(1).map_or_else(|| temporary.path().to_owned(), PathBuf::from);
    let messages = std::env::args().nth(2).map_or(1_000_000, |n| n.parse().expect("a number"));
    let path = folder.join("archive.db");
    let store = SqliteStore::open(Options::new(&path)).expect("opens");
    let domain = prepare(&store);
    let size = store.stats().bytes;
    let mut slowest = Duration::ZERO;
    let steps = 10;
    for step in 0..steps {
        let (began, used) = (Instant::now(), cpu());
        let count = messages / steps;
        slowest = slowest.max(keep(&store, domain, step * count, count));
        let (took, used) = (began.elapsed(), cpu() - used);
        println!(
            "{:>10} messages: {:>7.0}/s, {:>5.1} µs of processor each, {:>5.2} bytes on disk for each stored, slowest answer so far {:.0} ms",
            (step + 1) * count,
            count as f64 / took.as_secs_f64(),
            used.as_secs_f64() * 1e6 / count as f64,
            (store.stats().bytes - size) as f64 / ((step + 1) * count * STANZA_BYTES as u64) as f64,
            slowest.as_secs_f64() * 1e3,
        );
    }
    for round in ["first", "again"] {
        let pages = (0..PAGES).map(|n| page(&store, domain, n * 7919 % messages));
        say(&format!("last page, {round}"), pages.collect());
    }
    let inboxes = (0..PAGES).map(|n| inbox(&store, domain, n * 7919 % ACCOUNTS));
    say("inbox of 20 conversations", inboxes.collect());
    let began = Instant::now();
    drop(store);
    println!("closed in {:.2} s", began.elapsed().as_secs_f64());
    let began = Instant::now();
    let store = SqliteStore::open(Options::new(&path)).expect("opens");
    println!("opened in {:.2} s", began.elapsed().as_secs_f64());
    page(&store, domain, 0);
    println!("first page {:.2} s after the beginning", began.elapsed().as_secs_f64());
}

fn local(n: u64) -> Box<str> {
    format!("player{n}").into()
}

fn wait<Q: Question>(store: &SqliteStore, question: Q) -> Q::Answer {
    let (sender, receiver) = sync_channel(1);
    store.ask(question.into(), Q::reply(move |answer| drop(sender.send(answer))));
    receiver.recv().expect("one answer").expect("the store is well")
}

fn prepare(store: &SqliteStore) -> DomainId {
    let put = PutDomain { name: "example.org".into(), policy: Policy::default() };
    let domain = wait(store, put).domain.id;
    let accounts = (0..ACCOUNTS)
        .map(|n| ImportedAccount { local: local(n), credentials: Credentials::default() })
        .collect();
    wait(store, ImportAccounts { domain, accounts, now: NOW }).expect("the domain is there");
    domain
}

/// The two sides of the `n`th message: everybody in turn, in no order.
fn sides(n: u64) -> (u64, u64) {
    let mixed = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let from = (mixed >> 20) % ACCOUNTS;
    (from, (from + 1 + (mixed >> 50) % (PEERS / 2)) % ACCOUNTS)
}

fn keep(store: &SqliteStore, domain: DomainId, first: u64, count: u64) -> Duration {
    let (sender, receiver) = sync_channel(IN_FLIGHT as usize);
    let take = || {
        let (answer, took): (Answer, Duration) = receiver.recv().expect("one answer each");
        assert!(matches!(KeepMessage::answer(answer), Ok(KeepMessageAnswer::Kept { .. })));
        took
    };
    let mut slowest = Duration::ZERO;
    for n in first..first + count {
        if n - first >= IN_FLIGHT {
            slowest = slowest.max(take());
        }
        let (from, to) = sides(n);
        let jid = |n, end| Jid::new(&format!("player{n}@example.org{end}")).expect("an address");
        let (sender_jid, recipient_jid) = (jid(from, "/game"), jid(to, ""));
        let mut stanza =
            format!("<message to='{recipient_jid}' from='{sender_jid}' id='m{n}' type='chat'><body>");
        let end = "</body></message>";
        stanza.extend(std::iter::repeat_n('x', STANZA_BYTES - stanza.len() - end.len()));
        stanza += end;
        let ask: Ask = KeepMessage {
            sender: Some(ArchiveSide { domain, local: local(from), peer: recipient_jid }),
            recipient: Some(ArchiveSide { domain, local: local(to), peer: sender_jid }),
            received: NOW.plus(n),
            stanza: stanza.into(),
            has_contents: true,
            displayed: None,
        }
        .into();
        let (sender, asked) = (sender.clone(), Instant::now());
        store.ask(ask, Box::new(move |answer| drop(sender.send((answer, asked.elapsed())))));
    }
    (0..count.min(IN_FLIGHT)).fold(slowest, |slowest, _| slowest.max(take()))
}

/// Reads the last page of a conversation.
fn page(store: &SqliteStore, domain: DomainId, n: u64) -> Duration {
    let (from, to) = sides(n);
    let with = Some(Jid::new(&format!("player{to}@example.org")).expect("an address"));
    let asked = Instant::now();
    let answer = wait(
        store,
        ArchivePage {
            domain,
            local: local(from),
            filter: ArchiveFilter { with, ..ArchiveFilter::default() },
            start: ArchiveStart::Last,
            page: Page { entries: 50, bytes: 1 << 20 },
        },
    );
    let took = asked.elapsed();
    assert!(matches!(answer, ArchivePageAnswer::Page { messages, .. } if !messages.is_empty()));
    took
}

/// Reads the inbox of an account, with the newest message of each conversation.
fn inbox(store: &SqliteStore, domain: DomainId, n: u64) -> Duration {
    let asked = Instant::now();
    let answer = wait(
        store,
        ReadInbox {
            domain,
            local: local(n),
            filter: InboxFilter::default(),
            is_oldest_first: false,
            start: ArchiveStart::First,
            page: Page { entries: 50, bytes: 1 << 20 },
        },
    );
    let took = asked.elapsed();
    assert!(answer.is_some_and(|page| !page.entries.is_empty()));
    took
}

fn say(what: &str, mut took: Vec<Duration>) {
    took.sort();
    let ms = |place: usize| took[place].as_secs_f64() * 1e3;
    let (half, nearly_all) = (took.len() / 2, took.len() * 99 / 100);
    println!(
        "{what}: p50 {:.2} ms, p99 {:.2} ms, max {:.2} ms",
        ms(half),
        ms(nearly_all),
        ms(took.len() - 1)
    );
}

/// User and system time of this process so far, in Linux's hundredths of a second.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let after_name = stat.rsplit(')').next().expect("the fields");
    let ticks: u64 =
        after_name.split_ascii_whitespace().skip(11).take(2).filter_map(|n| n.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}
