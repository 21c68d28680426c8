//! How PostgreSQL answers what is asked often: by indexes, however large the tables are, and whether or not it has seen their sizes yet. The
//! server explains each statement that it has run, and its log is read.

use crate::commits::{T, ask, asked, waited};
use crate::server::Server;
use bytes::Bytes;
use carillon_backend::postgres::{Options, PostgresStore};
use carillon_core::model::*;
use carillon_core::ports::Page;
use carillon_core::ports::store::accounts::{
    CreateAccount, CreateAccountAnswer, Identity, ImportAccounts, ImportedAccount,
};
use carillon_core::ports::store::archive::{
    ArchivePage, ArchivePageAnswer, KeepMessage, KeepMessageAnswer, ReadArchiveEnds,
};
use carillon_core::ports::store::domains::PutDomain;
use carillon_core::ports::store::inbox::ReadInbox;
use carillon_core::ports::store::topics::{CreateTopic, CreateTopicAnswer};
use carillon_wire::jid::Jid;

const ACCOUNTS: u64 = 1000;
/// With how many others each account talks.
const PEERS: u64 = 20;

/// So many messages; `MESSAGES=1000000` for more.
fn messages() -> u64 {
    std::env::var("MESSAGES").ok().and_then(|count| count.parse().ok()).unwrap_or(100_000)
}

/// Archives as if everybody had talked to the next ones, in turn.
const FILL: &str = "CREATE TEMPORARY TABLE who AS SELECT id, row_number() OVER (ORDER BY id) - 1 AS n FROM account;
    INSERT INTO archive_peer (account, jid) SELECT a.id, 'u' || (a.n + k + 1) % {accounts} || '@example.org' FROM who a, generate_series(0, {peers} - 1) k;
    INSERT INTO archive_message (received, sender, sender_peer, recipient, recipient_peer, contents, stanza)
        SELECT {t} + s * 1000, p.account, p.id, NULL, NULL, true, convert_to(repeat('x', 200), 'UTF8')
        FROM generate_series(1, {messages}) s JOIN (SELECT id, account, row_number() OVER (ORDER BY id) - 1 AS n FROM archive_peer) p
            ON p.n = s * 7919 % ({accounts} * {peers}) ORDER BY s;
    INSERT INTO archive_entry (account, seq, peer, kind) SELECT sender, seq, sender_peer, 1 FROM archive_message;
    INSERT INTO archive (account, messages, bytes) SELECT sender, count(*), sum(length(stanza)) FROM archive_message GROUP BY sender;
    INSERT INTO inbox (account, peer, last) SELECT account, peer, max(seq) FROM archive_entry GROUP BY account, peer;";

/// The tables that grow with their users.
const LARGE: [&str; 6] = ["account", "archive_entry", "archive_message", "archive_peer", "inbox", "archive"];

fn filled(server: &Server) -> (PostgresStore, DomainId) {
    server.admin("CREATE DATABASE plans TEMPLATE template0");
    let store =
        PostgresStore::open(Options { lanes: 1, readers: 1, ..server.options("plans") }).expect("opens");
    let put = PutDomain { name: "example.org".into(), policy: Policy::default() };
    let domain = ask(&store, put).expect("it is put").domain.id;
    let account = |n| ImportedAccount { local: format!("u{n}").into(), credentials: Credentials::default() };
    let import = ImportAccounts { domain, accounts: (0..ACCOUNTS).map(account).collect(), now: T };
    ask(&store, import).expect("it is done").expect("the domain is there");
    let fill = [("accounts", ACCOUNTS), ("peers", PEERS), ("messages", messages()), ("t", T.0)]
        .iter()
        .fold(FILL.to_owned(), |text, (name, value)| {
            text.replace(&format!("{{{name}}}"), &value.to_string())
        });
    server.batch("plans", &fill);
    (store, domain)
}

/// Pages from everywhere in the archives, and messages that are kept. Often enough for plans that are made once for all values.
fn use_archives(store: &PostgresStore, domain: DomainId) {
    let page = Page { entries: 50, bytes: usize::MAX };
    let jid = |n: u64| Jid::new(&format!("u{n}@example.org")).expect("an address");
    for n in 0..20 {
        let local: Box<str> = format!("u{n}").into();
        let read = |filter: ArchiveFilter, start| {
            let asked = ArchivePage { domain, local: local.clone(), filter, start, page };
            match ask(store, asked).expect("it is read") {
                ArchivePageAnswer::Page { messages, .. } => messages,
                other => panic!("{other:?}"),
            }
        };
        let ends = ReadArchiveEnds { domain, local: local.clone() };
        let ends = ask(store, ends).expect("it is read").expect("there are messages");
        let last = read(ArchiveFilter::default(), ArchiveStart::Last);
        assert_eq!(last.last().map(|message| message.id), Some(ends.last.0));
        let first = read(ArchiveFilter::default(), ArchiveStart::First);
        assert_eq!(first.first().map(|message| message.id), Some(ends.first.0));
        assert!(!read(ArchiveFilter::default(), ArchiveStart::Before(last[0].id)).is_empty());
        let with = ArchiveFilter { with: Some(jid((n + 3) % ACCOUNTS)), ..ArchiveFilter::default() };
        assert!(!read(with, ArchiveStart::Last).is_empty());
        let since = ArchiveFilter { start: Some(ends.first.1.plus(1)), ..ArchiveFilter::default() };
        assert_eq!(read(since, ArchiveStart::First)[0].id, first[1].id);
        let (filter, start) = (InboxFilter::default(), ArchiveStart::First);
        ask(store, ReadInbox { domain, local: local.clone(), filter, is_oldest_first: false, start, page })
            .expect("it is read");
        ask(store, Identity { domain, local }).expect("it is read");
        let side =
            |of: u64, with: u64| ArchiveSide { domain, local: format!("u{of}").into(), peer: jid(with) };
        let keep = |to: u64| KeepMessage {
            sender: Some(side(n, to)),
            recipient: Some(side(to, n)),
            received: T,
            stanza: Bytes::from_static(b"<message/>"),
            has_contents: true,
            displayed: None,
        };
        let waiting: Vec<_> = (0..10).map(|to| asked(store, keep(to))).collect();
        for one in &waiting {
            assert!(matches!(waited(one), Ok(KeepMessageAnswer::Kept { .. })));
        }
    }
}

/// Rows that a step of a plan may go through: those of a page, or of the messages that are kept, and not of an archive.
const ROWS_MAX: u64 = 400;

/// What is wrong with a plan, if anything.
fn fault(plan: &str) -> Option<String> {
    for line in plan.lines() {
        let number = |name: &str| -> Option<u64> {
            let rest = line.split_once(name)?.1;
            rest[..rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())].parse().ok()
        };
        if let Some(of) = line.split_once("Seq Scan on ").and_then(|(_, rest)| rest.split(' ').next())
            && LARGE.contains(&of)
        {
            return Some(format!("{of} is read as a whole"));
        }
        let went = number("actual rows=").zip(number("loops=")).map(|(rows, loops)| rows * loops);
        let removed = number("Filter: ").filter(|_| line.contains("Rows Removed"));
        if went.into_iter().chain(removed).any(|rows| rows > ROWS_MAX) {
            return Some(format!("too many rows: {}", line.trim()));
        }
    }
    None
}

/// A server that explains each statement in its log.
fn explaining() -> Server {
    let explain =
        ["log_min_duration=0", "log_analyze=on", "log_timing=off"].map(|one| format!("auto_explain.{one}"));
    let [all, analyse, timing] = &explain;
    let preload = "session_preload_libraries=auto_explain";
    Server::start(&["-h", "", "-c", preload, "-c", all, "-c", analyse, "-c", timing], |_| Vec::new())
}

#[test]
fn archives_are_read_and_written_by_their_indexes() {
    let server = explaining();
    let (store, domain) = filled(&server);
    for is_analysed in [false, true] {
        if is_analysed {
            server.batch("plans", "ANALYZE");
        }
        let before = server.log().len();
        use_archives(&store, domain);
        let log = server.log().split_off(before);
        let plans: Vec<&str> = log.split("Query Text:").skip(1).collect();
        assert!(plans.len() > 100, "{} statements were explained", plans.len());
        for plan in plans {
            let found = fault(plan);
            assert!(found.is_none(), "{}; analysed: {is_analysed}: {plan}", found.unwrap_or_default());
        }
    }
}

/// There is no counter of accounts and topics: who creates one reads the index as far as the bound goes, and no row of the table for its contents.
#[test]
fn quotas_are_counted_by_an_index_and_no_further_than_their_bound() {
    const THERE: u32 = 3000;
    const BOUND: u32 = 2000;
    let server = explaining();
    server.admin("CREATE DATABASE quotas TEMPLATE template0");
    let store =
        PostgresStore::open(Options { lanes: 1, readers: 1, ..server.options("quotas") }).expect("opens");
    let put = |policy| ask(&store, PutDomain { name: "example.org".into(), policy }).expect("it is put");
    let domain = put(Policy::default()).domain.id;
    let account = |n| ImportedAccount { local: format!("u{n}").into(), credentials: Credentials::default() };
    let import = ImportAccounts { domain, accounts: (0..THERE).map(account).collect(), now: T };
    ask(&store, import).expect("it is done").expect("the domain is there");
    let topic = |n: u32| CreateTopic {
        domain,
        name: format!("t{n}").into(),
        config: TopicConfig::default(),
        affiliations: Vec::new(),
        owned_max: u32::MAX,
        now: T,
    };
    let waiting: Vec<_> = (0..THERE).map(|n| asked(&store, topic(n))).collect();
    assert!(waiting.iter().all(|one| matches!(waited(one), Ok(CreateTopicAnswer::Created(..)))));
    put(Policy { accounts_max: BOUND, topics_max: BOUND, ..Policy::default() });
    server.batch("quotas", "VACUUM ANALYZE");
    let before = server.log().len();
    let credentials = Credentials::default();
    let create = CreateAccount { domain, local: "new".into(), credentials, is_in_band: false, now: T };
    assert!(matches!(ask(&store, create), Ok(CreateAccountAnswer::DomainFull)));
    assert!(matches!(ask(&store, topic(THERE)), Ok(CreateTopicAnswer::DomainFull)));
    let log = server.log().split_off(before);
    for (table, quota) in [("account", "accounts_max"), ("topic", "topics_max")] {
        let plan = log.split("Query Text:").find(|plan| plan.contains(&format!("LIMIT d.{quota}")));
        let plan = plan.unwrap_or_else(|| panic!("{quota} was not counted: {log}"));
        let scan = plan
            .lines()
            .find(|line| line.contains("Index Only Scan") && line.contains(&format!(" on {table} ")));
        let scan = scan.unwrap_or_else(|| panic!("{table} is not read by its index alone: {plan}"));
        assert!(scan.contains(&format!("rows={BOUND} loops=1")), "{scan}");
    }
}
