//! How conversations stand.

use super::archives::message;
use super::ground::*;
use carillon_core::model::*;
use carillon_core::ports::Store;
use carillon_core::ports::store::archive::*;
use carillon_core::ports::store::inbox::*;
use carillon_wire::jid::BareJid;

fn ground(store: &dyn Store) -> DomainId {
    let domain = domain(store);
    for name in ["alice", "bob", "carol", "dave"] {
        account(store, domain, name);
    }
    domain
}

/// A message with the id `mN`, which may say that another one was seen.
fn says(
    store: &dyn Store,
    domain: DomainId,
    from: &str,
    to: &str,
    n: u64,
    displayed: Option<&str>,
) -> ArchiveId {
    let plain = message(domain, from, to, n);
    let stanza = format!(
        "<message id='m{n}' from='{from}@example.org/r' to='{to}@example.org'><body>{n}</body></message>"
    );
    let has_contents = displayed.is_none();
    let keep =
        KeepMessage { stanza: stanza.into(), has_contents, displayed: displayed.map(Into::into), ..plain };
    answer!(ask(store, keep), KeepMessageAnswer::Kept { id, .. } => id)
}

fn asking(domain: DomainId, local: &str) -> ReadInbox {
    ReadInbox {
        domain,
        local: local.into(),
        filter: InboxFilter::default(),
        is_oldest_first: false,
        start: ArchiveStart::First,
        page: page(100),
    }
}

fn read(store: &dyn Store, asked: ReadInbox) -> InboxPage {
    ask(store, asked).expect("the account is there")
}

/// With whom, the newest message, and what is unread.
fn brief(page: &InboxPage) -> Vec<(&str, ArchiveId, u32)> {
    let mut found = Vec::new();
    for InboxEntry { peer, conversation, message, .. } in &page.entries {
        assert_eq!(conversation.last, message.id);
        found.push((peer.local().expect("a name"), message.id, conversation.unread()));
    }
    found
}

fn change(
    store: &dyn Store,
    domain: DomainId,
    with: &str,
    change: ConversationChange,
) -> Result<Conversation, Missing> {
    let with = BareJid::new(&format!("{with}@example.org")).unwrap();
    ask(store, ChangeConversation { domain, local: "alice".into(), with, change })
}

const READ: ConversationChange = ConversationChange { is_read: Some(true), folder: None, muted: None };
const UNREAD: ConversationChange = ConversationChange { is_read: Some(false), ..READ };

fn to(folder: Folder) -> ConversationChange {
    ConversationChange { is_read: None, folder: Some(folder), muted: None }
}

/// What stands is the same before messages have entered the tables of a store that has such, and after.
fn before_and_after(store: &dyn Store, check: impl Fn()) {
    check();
    let mut after = Some(AccountId(0));
    while let Some(next) = after {
        after = ask(store, SweepArchives { now: T, after: next, max: 9 }).next;
    }
    check();
}

pub(super) fn lists_the_newest_first(store: &dyn Store) {
    let domain = ground(store);
    let first = says(store, domain, "bob", "alice", 1, None);
    let second = says(store, domain, "alice", "carol", 2, None);
    let third = says(store, domain, "dave", "alice", 3, None);
    let fourth = says(store, domain, "bob", "alice", 4, None);
    before_and_after(store, || {
        let all = read(store, asking(domain, "alice"));
        assert_eq!(brief(&all), [("bob", fourth, 2), ("dave", third, 1), ("carol", second, 0)]);
        assert_eq!(all.totals, InboxTotals { conversations: 3, unread_conversations: 2, unread: 3 });
        assert!(!all.more && first < second);
        let bob = read(store, asking(domain, "bob"));
        assert_eq!(brief(&bob), [("alice", fourth, 0)]);
        let oldest = ReadInbox { is_oldest_first: true, page: page(2), ..asking(domain, "alice") };
        let oldest = read(store, oldest);
        assert_eq!((brief(&oldest), oldest.more), (vec![("carol", second, 0), ("dave", third, 1)], true));
        for (start, names, more) in [
            (ArchiveStart::After(fourth), vec!["dave"], true),
            (ArchiveStart::After(third), vec!["carol"], false),
            (ArchiveStart::Last, vec!["carol"], true),
            (ArchiveStart::Before(second), vec!["dave"], true),
            (ArchiveStart::Before(fourth), vec![], false),
        ] {
            let found = read(store, ReadInbox { start, page: page(1), ..asking(domain, "alice") });
            let found_names: Vec<&str> = brief(&found).iter().map(|(name, ..)| *name).collect();
            assert_eq!((found_names, found.more), (names, more), "{start:?}");
            assert_eq!(found.totals.conversations, 3);
        }
        let filtered = |filter| {
            let found = read(store, ReadInbox { filter, ..asking(domain, "alice") });
            (
                brief(&found).iter().map(|(name, ..)| (*name).to_owned()).collect::<Vec<_>>(),
                found.totals.conversations,
            )
        };
        let unread = InboxFilter { is_unread: true, ..InboxFilter::default() };
        assert_eq!(filtered(unread), (vec!["bob".into(), "dave".into()], 2));
        let time = InboxFilter { start: Some(T.plus(2)), end: Some(T.plus(3)), ..InboxFilter::default() };
        assert_eq!(filtered(time), (vec!["dave".into(), "carol".into()], 2));
        let with =
            InboxFilter { with: Some(BareJid::new("bob@example.org").unwrap()), ..InboxFilter::default() };
        assert_eq!(filtered(with), (vec!["bob".into()], 1));
    });
    assert_eq!(ask(store, asking(domain, "nobody")), None);
}

pub(super) fn counts_until_it_is_answered_or_seen(store: &dyn Store) {
    let domain = ground(store);
    let unread = || brief(&read(store, asking(domain, "alice"))).first().map(|(_, _, unread)| *unread);
    for n in 1..=4 {
        says(store, domain, "bob", "alice", n, None);
    }
    before_and_after(store, || assert_eq!(unread(), Some(4)));
    // A marker is no message to read, and names one of several.
    says(store, domain, "alice", "bob", 5, Some("m2"));
    before_and_after(store, || assert_eq!(unread(), Some(2)));
    // Not one that is not there, nor an older one, nor one of another conversation.
    for n in ["m9", "m1"] {
        says(store, domain, "alice", "bob", 6, Some(n));
    }
    says(store, domain, "alice", "carol", 7, Some("m4"));
    says(store, domain, "bob", "alice", 8, Some("m4"));
    before_and_after(store, || assert_eq!(unread(), Some(2)));
    says(store, domain, "bob", "alice", 10, None);
    before_and_after(store, || assert_eq!(unread(), Some(3)));
    says(store, domain, "alice", "bob", 11, None);
    before_and_after(store, || assert_eq!(unread(), Some(0)));
    says(store, domain, "bob", "alice", 12, None);
    before_and_after(store, || assert_eq!(unread(), Some(1)));
}

pub(super) fn is_changed_by_its_owner(store: &dyn Store) {
    let domain = ground(store);
    says(store, domain, "bob", "alice", 1, None);
    says(store, domain, "alice", "carol", 2, None);
    assert_eq!(change(store, domain, "dave", READ), Err(Missing));
    let unread = |with| change(store, domain, with, ConversationChange::default()).unwrap().unread();
    before_and_after(store, || {
        assert_eq!(change(store, domain, "bob", READ).unwrap().unread(), 0);
        assert_eq!(change(store, domain, "bob", UNREAD).unwrap().unread(), 1);
        assert_eq!(change(store, domain, "carol", UNREAD).unwrap().unread(), 1);
        assert_eq!(change(store, domain, "carol", READ).unwrap().unread(), 0);
        let muted = ConversationChange { muted: Some(T.plus(9)), ..ConversationChange::default() };
        assert_eq!(change(store, domain, "bob", muted).unwrap().muted, T.plus(9));
    });
    assert_eq!((unread("bob"), unread("carol")), (1, 0));
    says(store, domain, "alice", "bob", 3, None);
    before_and_after(store, || assert_eq!(unread("bob"), 0));
}

pub(super) fn is_in_folders_until_a_message_comes(store: &dyn Store) {
    let domain = ground(store);
    let names = |folder| {
        let filter = InboxFilter { folder, ..InboxFilter::default() };
        let found = read(store, ReadInbox { filter, ..asking(domain, "alice") });
        brief(&found).iter().map(|(name, ..)| (*name).to_owned()).collect::<Vec<_>>()
    };
    says(store, domain, "bob", "alice", 1, None);
    says(store, domain, "carol", "alice", 2, None);
    change(store, domain, "bob", to(Folder::Archive)).unwrap();
    change(store, domain, "carol", to(Folder::Bin)).unwrap();
    before_and_after(store, || {
        assert_eq!(names(None), ["bob"]);
        assert_eq!(names(Some(Folder::Archive)), ["bob"]);
        assert_eq!(names(Some(Folder::Bin)), ["carol"]);
        assert_eq!(names(Some(Folder::Inbox)), [""; 0]);
    });
    let empty = EmptyBin { domain, local: "alice".into(), max: 9 };
    let emptied = |conversations| Ok(Emptied { conversations, more: false });
    assert_eq!((ask(store, empty.clone()), ask(store, empty)), (emptied(1), emptied(0)));
    assert_eq!(names(Some(Folder::Bin)), [""; 0]);
    says(store, domain, "carol", "alice", 3, None);
    says(store, domain, "alice", "bob", 4, None);
    before_and_after(store, || assert_eq!(names(Some(Folder::Inbox)), ["bob", "carol"]));
    missing(store, EmptyBin { domain, local: "nobody".into(), max: 9 });
}

pub(super) fn is_emptied_in_parts(store: &dyn Store) {
    let domain = ground(store);
    let names = ["bob", "carol", "dave"];
    for (name, n) in names.iter().zip(1..) {
        says(store, domain, name, "alice", n, None);
        change(store, domain, name, to(Folder::Bin)).unwrap();
    }
    // A message brings one back, whether or not it has entered the tables of a store that has such.
    says(store, domain, "carol", "alice", 9, None);
    let empty = EmptyBin { domain, local: "alice".into(), max: 1 };
    let mut emptied = 0;
    loop {
        let Emptied { conversations, more } = answer!(ask(store, empty.clone()), Ok(emptied) => emptied);
        emptied += conversations;
        if !more {
            break;
        }
    }
    assert_eq!(emptied, 2);
    before_and_after(store, || {
        let filter = InboxFilter { folder: Some(Folder::Bin), ..InboxFilter::default() };
        assert_eq!(brief(&read(store, ReadInbox { filter, ..asking(domain, "alice") })), []);
        let found = read(store, asking(domain, "alice"));
        assert_eq!(brief(&found).iter().map(|(name, ..)| *name).collect::<Vec<_>>(), ["carol"]);
    });
}

pub(super) fn loses_what_the_archive_loses(store: &dyn Store) {
    let domain = ground(store);
    for n in 1..=4 {
        says(store, domain, "bob", "alice", n, None);
    }
    says(store, domain, "alice", "carol", 5, None);
    ask(
        store,
        PutDomain {
            name: "example.org".into(),
            policy: Policy { archive_messages_max: 3, ..Policy::default() },
        },
    );
    before_and_after(store, || {});
    assert_eq!(
        brief(&read(store, asking(domain, "alice"))).iter().map(|at| at.2).collect::<Vec<_>>(),
        [0, 2]
    );
    done(store, EraseArchive { domain, local: "alice".into() });
    before_and_after(store, || assert_eq!(read(store, asking(domain, "alice")), InboxPage::default()));
    assert_eq!(change(store, domain, "bob", READ), Err(Missing));
    let last = says(store, domain, "bob", "alice", 6, None);
    before_and_after(store, || assert_eq!(brief(&read(store, asking(domain, "alice"))), [("bob", last, 1)]));
}

pub(super) fn write_lasting(store: &dyn Store) {
    let domain = ground(store);
    for n in 0..3 {
        says(store, domain, "bob", "alice", n, None);
    }
    says(store, domain, "alice", "bob", 3, Some("m0"));
    says(store, domain, "dave", "alice", 4, None);
    change(store, domain, "dave", to(Folder::Archive)).unwrap();
}

pub(super) fn check_lasting(store: &dyn Store) {
    let domain = domains(store)[0].id;
    let all = read(store, asking(domain, "alice"));
    assert_eq!(brief(&all).iter().map(|at| (at.0, at.2)).collect::<Vec<_>>(), [("dave", 1), ("bob", 2)]);
    assert_eq!(all.entries[0].conversation.folder(), Folder::Archive);
}
