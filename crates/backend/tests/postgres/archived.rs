//! Messages that are archived in one group are archived as if they had come one by one.

use crate::commits::{T, ask, asked, ground, waited};
use crate::server::{Database, server};
use bytes::Bytes;
use carillon_backend::postgres::{Options, PostgresStore};
use carillon_core::model::{
    AccountId, ArchiveDefault, ArchiveFilter, ArchivePreferences, ArchiveSide, ArchiveStart,
    ConversationChange, DomainId, InboxFilter, Policy, UnixMs,
};
use carillon_core::ports::store::archive::{
    ArchivePage, EraseArchive, KeepMessage, KeepMessageAnswer, SetArchivePreferences, SweepArchives,
};
use carillon_core::ports::store::domains::PutDomain;
use carillon_core::ports::store::inbox::{ChangeConversation, ReadInbox};
use carillon_core::ports::{Page, Store};
use carillon_wire::jid::{BareJid, Jid};

/// What is kept: between few accounts, so that conversations meet in a group; to oneself; to somebody who is not there, is of another
/// server, or wants nothing; with times that go back; and some of them say what was seen.
pub(crate) fn messages(domain: DomainId) -> Vec<KeepMessage> {
    let side = |of: usize, with: usize, resource: &str| ArchiveSide {
        domain,
        local: format!("u{of}").into(),
        peer: Jid::new(&format!("u{with}@example.org{resource}")).expect("an address"),
    };
    let one = |n: usize| {
        let (from, to) = (n * n % 5, n * 7 % 6);
        // There is no account u77.
        let to = if n % 17 == 3 { 77 } else { to };
        let is_remote = n % 13 == 5;
        let displayed = (n % 11 == 7).then(|| format!("m{}", n - 7).into());
        let stanza = format!("<message id='m{n}' type='chat'><body>{}</body></message>", "x".repeat(n % 50));
        KeepMessage {
            sender: Some(side(from, to, "/phone")),
            recipient: (!is_remote).then(|| side(to, from, "")),
            received: UnixMs(T.0 + (n as u64 % 9) * 1000),
            stanza: Bytes::from(stanza),
            has_contents: displayed.is_none(),
            displayed,
        }
    };
    (0..200).map(one).collect()
}

/// Everything that can be read of the archives.
pub(crate) fn everything(store: &impl Store, domain: DomainId) -> Vec<String> {
    let page = Page { entries: 1000, bytes: usize::MAX };
    let of = |n: usize| {
        let local: Box<str> = format!("u{n}").into();
        let (filter, start) = (ArchiveFilter::default(), ArchiveStart::First);
        let archive = ArchivePage { domain, local: local.clone(), filter, start, page };
        let (filter, is_oldest_first) = (InboxFilter::default(), false);
        let inbox = ReadInbox { domain, local, filter, is_oldest_first, start, page };
        format!("{:?}\n{:?}", ask(store, archive), ask(store, inbox))
    };
    (0..6).map(of).collect()
}

#[test]
fn a_group_is_archived_as_if_its_messages_had_come_alone() {
    let databases = [Database::new(), Database::new()];
    let mut found = Vec::new();
    for (database, is_grouped) in databases.iter().zip([true, false]) {
        let options = Options { lanes: 1, ..server().options(&database.name) };
        let store = PostgresStore::open(options).expect("opens");
        let domain = ground(&store);
        let preferences = |default| ArchivePreferences { default, always: Vec::new(), never: Vec::new() };
        for (local, default) in [("u2", ArchiveDefault::Never), ("u4", ArchiveDefault::Roster)] {
            let set =
                SetArchivePreferences { domain, local: local.into(), preferences: preferences(default) };
            ask(&store, set).expect("it is done").expect("the account is there");
        }
        let answers: Vec<KeepMessageAnswer> = if is_grouped {
            let commits = store.stats().commits;
            // All gather behind the first.
            let held = database.hold(0);
            let waiting: Vec<_> = messages(domain).into_iter().map(|one| asked(&store, one)).collect();
            drop(held);
            let answers = waiting.iter().map(|one| waited(one).expect("it is kept")).collect();
            assert!(store.stats().commits - commits < 50, "they were not grouped");
            answers
        } else {
            messages(domain).into_iter().map(|one| ask(&store, one).expect("it is kept")).collect()
        };
        found.push((answers, everything(&store, domain)));
    }
    let [(grouped, grouped_reads), (alone, alone_reads)] = &found[..] else { unreachable!("there are two") };
    assert_eq!(grouped, alone);
    assert_eq!(grouped_reads, alone_reads);
    assert!(alone.contains(&KeepMessageAnswer::NotKept));
    assert!(alone.iter().any(|one| matches!(one, KeepMessageAnswer::Kept { sender: false, .. })));
    assert!(alone.iter().any(|one| matches!(one, KeepMessageAnswer::Kept { recipient: false, .. })));
}

#[test]
fn what_was_erased_does_not_say_with_whom_it_was() {
    let database = Database::new();
    let store = database.open();
    let domain = ground(&store);
    let keep = |with: &str| {
        let peer = Jid::new(&format!("{with}@elsewhere.example")).expect("an address");
        let (sender, recipient) = (Some(ArchiveSide { domain, local: "u1".into(), peer }), None);
        let stanza = Bytes::from_static(b"<message><body>x</body></message>");
        let keep =
            KeepMessage { sender, recipient, received: T, stanza, has_contents: true, displayed: None };
        assert!(matches!(ask(&store, keep), Ok(KeepMessageAnswer::Kept { .. })));
    };
    let sweep = || {
        let mut next = Some(AccountId(0));
        while let Some(after) = next {
            next = ask(&store, SweepArchives { now: T, after, max: 2 }).expect("it sweeps").next;
        }
    };
    let peers = || -> Vec<String> {
        let orphans = database.run("SELECT 1 FROM inbox WHERE peer NOT IN (SELECT id FROM archive_peer)");
        assert!(orphans.is_empty());
        let rows = database.run("SELECT jid FROM archive_peer ORDER BY jid");
        rows.iter().map(|row| row.get(0)).collect()
    };
    for with in ["bob", "carol", "dave", "erin"] {
        keep(with);
    }
    let with = BareJid::new("bob@elsewhere.example").expect("an address");
    let change = ConversationChange { muted: Some(T.plus(1)), ..ConversationChange::default() };
    let mute = ChangeConversation { domain, local: "u1".into(), with, change };
    ask(&store, mute).expect("it is done").expect("it is there");
    // Only the newest stays; what is muted is not forgotten.
    let policy = Policy { archive_messages_max: 1, ..Policy::default() };
    ask(&store, PutDomain { name: "example.org".into(), policy }).expect("it is put");
    sweep();
    assert_eq!(peers(), ["bob@elsewhere.example", "erin@elsewhere.example"]);
    ask(&store, EraseArchive { domain, local: "u1".into() }).expect("it is done").expect("it is there");
    assert_eq!(peers(), ["erin@elsewhere.example"]);
    // One that goes on before what was erased is swept.
    keep("carol");
    sweep();
    assert_eq!(peers(), ["carol@elsewhere.example"]);
}
