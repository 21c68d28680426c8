//! Message archives.

use super::ground::*;
use carillon_core::model::*;
use carillon_core::ports::store::archive::*;
use carillon_core::ports::{Page, Store};
use carillon_wire::jid::Jid;

pub(super) fn side(domain: DomainId, local: &str, peer: &str) -> ArchiveSide {
    ArchiveSide { domain, local: local.into(), peer: Jid::new(peer).unwrap() }
}

/// A message between accounts of `example.org`, as its `n`th.
pub(super) fn message(domain: DomainId, from: &str, to: &str, n: u64) -> KeepMessage {
    let (sender, recipient) = (format!("{from}@example.org/r"), format!("{to}@example.org"));
    let stanza = format!(
        "<message xmlns='jabber:client' from='{sender}' to='{recipient}'><body>{n} \u{1F514}</body></message>"
    );
    KeepMessage {
        sender: Some(side(domain, from, &recipient)),
        recipient: Some(side(domain, to, &sender)),
        received: T.plus(n),
        stanza: stanza.into(),
        has_contents: true,
        displayed: None,
    }
}

fn kept(store: &dyn Store, asked: KeepMessage) -> (ArchiveId, bool, bool) {
    answer!(ask(store, asked), KeepMessageAnswer::Kept { id, sender, recipient } => (id, sender, recipient))
}

fn keep(store: &dyn Store, domain: DomainId, from: &str, to: &str, n: u64) -> ArchiveId {
    kept(store, message(domain, from, to, n)).0
}

fn asking(
    domain: DomainId,
    local: &str,
    filter: ArchiveFilter,
    start: ArchiveStart,
    max: u16,
) -> ArchivePage {
    ArchivePage { domain, local: local.into(), filter, start, page: page(max) }
}

fn messages(store: &dyn Store, asked: ArchivePage) -> (Vec<ArchivedMessage>, bool) {
    answer!(ask(store, asked), ArchivePageAnswer::Page { messages, more, .. } => (messages, more))
}

fn ids(store: &dyn Store, asked: ArchivePage) -> (Vec<u64>, bool) {
    let (messages, more) = messages(store, asked);
    (messages.iter().map(|message| message.id.0).collect(), more)
}

pub(super) fn whole(store: &dyn Store, domain: DomainId, local: &str) -> Vec<ArchivedMessage> {
    messages(store, asking(domain, local, ArchiveFilter::default(), ArchiveStart::First, 1000)).0
}

fn with(jid: &str) -> ArchiveFilter {
    ArchiveFilter { with: Some(Jid::new(jid).unwrap()), ..ArchiveFilter::default() }
}

fn ground(store: &dyn Store) -> DomainId {
    let domain = domain(store);
    for name in ["alice", "bob", "carol"] {
        account(store, domain, name);
    }
    domain
}

/// Sweeps until there is nothing to do; how many messages went.
fn sweep(store: &dyn Store, now: UnixMs) -> u32 {
    let (mut removed, mut after) = (0, AccountId(0));
    loop {
        let answer = ask(store, SweepArchives { now, after, max: 2 });
        removed += answer.removed;
        match answer.next {
            Some(next) => after = next,
            None => return removed,
        }
    }
}

/// What is kept is found the same before it has entered the tables of a store that has such, and after.
fn before_and_after(store: &dyn Store, check: impl Fn()) {
    check();
    sweep(store, T);
    check();
}

pub(super) fn hold_a_message_for_both_sides(store: &dyn Store) {
    let domain = ground(store);
    let first = kept(store, message(domain, "alice", "bob", 1));
    assert_eq!((first.1, first.2), (true, true));
    let second = keep(store, domain, "bob", "alice", 2);
    assert!(first.0 < second && first.0 > ArchiveId(0));
    before_and_after(store, || {
        let both = whole(store, domain, "alice");
        assert_eq!(both, whole(store, domain, "bob"));
        let expected = [message(domain, "alice", "bob", 1), message(domain, "bob", "alice", 2)];
        assert_eq!(both.iter().map(|m| m.id).collect::<Vec<_>>(), [first.0, second]);
        for (found, expected) in both.iter().zip(&expected) {
            assert_eq!((&found.stanza, found.received), (&expected.stanza, expected.received));
        }
        assert_eq!(whole(store, domain, "carol"), []);
        let ends = ask(store, ReadArchiveEnds { domain, local: "bob".into() });
        assert_eq!(ends, Some(ArchiveEnds { first: (first.0, T.plus(1)), last: (second, T.plus(2)) }));
        assert_eq!(ask(store, ReadArchiveEnds { domain, local: "carol".into() }), None);
    });
}

pub(super) fn hold_one_side_where_there_is_one(store: &dyn Store) {
    let domain = ground(store);
    let sent = KeepMessage { recipient: None, ..message(domain, "alice", "bob", 1) };
    let (id, sender, recipient) = kept(store, sent);
    assert_eq!((sender, recipient), (true, false));
    assert_eq!((whole(store, domain, "alice").len(), whole(store, domain, "bob").len()), (1, 0));
    // A note to oneself is in the archive once.
    let note = keep(store, domain, "carol", "carol", 2);
    before_and_after(store, || {
        let own = ids(store, asking(domain, "carol", with("carol@example.org"), ArchiveStart::Last, 9));
        assert_eq!(own, (vec![note.0], false));
        assert_eq!(whole(store, domain, "carol").len(), 1);
    });
    // Nobody: a recipient of this store who is not there. The sender's archive is not to tell of a message that was refused.
    assert_eq!(ask(store, message(domain, "alice", "nobody", 3)), KeepMessageAnswer::NotKept);
    assert_eq!(
        ask(store, KeepMessage { sender: None, recipient: None, ..message(domain, "alice", "bob", 4) }),
        KeepMessageAnswer::NotKept
    );
    let unknown = KeepMessage { recipient: None, ..message(domain, "nobody", "alice", 5) };
    assert_eq!(ask(store, unknown), KeepMessageAnswer::NotKept);
    assert_eq!(whole(store, domain, "alice").iter().map(|m| m.id).collect::<Vec<_>>(), [id]);
}

pub(super) fn come_in_pages_both_ways(store: &dyn Store) {
    let domain = ground(store);
    let all: Vec<u64> =
        (0..7).map(|n| keep(store, domain, "alice", ["bob", "carol"][n as usize % 2], n).0).collect();
    before_and_after(store, || {
        let page = |start, max| ids(store, asking(domain, "alice", ArchiveFilter::default(), start, max));
        assert_eq!(page(ArchiveStart::First, 3), (all[..3].to_vec(), true));
        assert_eq!(page(ArchiveStart::After(ArchiveId(all[2])), 4), (all[3..].to_vec(), false));
        assert_eq!(page(ArchiveStart::After(ArchiveId(all[6])), 4), (vec![], false));
        assert_eq!(page(ArchiveStart::Last, 3), (all[4..].to_vec(), true));
        assert_eq!(page(ArchiveStart::Before(ArchiveId(all[4])), 9), (all[..4].to_vec(), false));
        assert_eq!(page(ArchiveStart::Before(ArchiveId(all[0])), 9), (vec![], false));
        assert_eq!(page(ArchiveStart::First, 7), (all.clone(), false));
        assert_eq!(page(ArchiveStart::First, 0), (vec![], true));
        // A page is bounded in bytes, and holds one at least.
        let bytes = message(domain, "alice", "bob", 0).stanza.len();
        for (bytes, found) in [(0, 1), (2 * bytes, 2), (4 * bytes + 10, 4)] {
            let asked = ArchivePage {
                page: Page { entries: 9, bytes },
                ..asking(domain, "alice", ArchiveFilter::default(), ArchiveStart::Last, 0)
            };
            let (messages, more) = ids(store, asked);
            assert!(
                more && messages.len() <= found && all.ends_with(&messages) && !messages.is_empty(),
                "{bytes}"
            );
        }
    });
}

pub(super) fn are_filtered(store: &dyn Store) {
    let domain = ground(store);
    let all: Vec<u64> = (0..8)
        .map(|n| {
            let (from, to) =
                [("alice", "bob"), ("bob", "alice"), ("carol", "alice"), ("alice", "carol")][n as usize % 4];
            keep(store, domain, from, to, 10 * n).0
        })
        .collect();
    before_and_after(store, || {
        let page = |filter| ids(store, asking(domain, "alice", filter, ArchiveStart::First, 100)).0;
        assert_eq!(page(with("bob@example.org")), [all[0], all[1], all[4], all[5]]);
        assert_eq!(page(with("carol@example.org/r")), [all[2], all[6]]);
        assert_eq!(page(with("carol@example.org/other")), [] as [u64; 0]);
        assert_eq!(page(with("nobody@example.org")), [] as [u64; 0]);
        let time = |start, end| ArchiveFilter { start, end, ..ArchiveFilter::default() };
        assert_eq!(page(time(Some(T.plus(20)), Some(T.plus(40)))), all[2..5]);
        assert_eq!(page(time(Some(T.plus(21)), None)), all[3..]);
        assert_eq!(page(time(None, Some(T.plus(9)))), all[..1]);
        assert_eq!(page(time(Some(T.plus(71)), None)), [] as [u64; 0]);
        assert_eq!(page(time(None, Some(UnixMs(0)))), [] as [u64; 0]);
        let between = ArchiveFilter {
            after: Some(ArchiveId(all[1])),
            before: Some(ArchiveId(all[5])),
            ..with("bob@example.org")
        };
        assert_eq!(page(between.clone()), [all[4]]);
        let last = asking(domain, "alice", ArchiveFilter { before: None, ..between }, ArchiveStart::Last, 1);
        assert_eq!(ids(store, last), (vec![all[5]], true));
        // Full addresses, page by page.
        let (first, more) =
            ids(store, asking(domain, "alice", with("bob@example.org/r"), ArchiveStart::Last, 1));
        assert_eq!((first, more), (vec![all[5]], true));
    });
}

pub(super) fn are_read_in_bounded_steps(store: &dyn Store) {
    let domain = ground(store);
    let rare = |n| KeepMessage {
        sender: Some(side(domain, "alice", "bob@example.org/rare")),
        stanza: "<message from='alice@example.org/r' to='bob@example.org/rare'><body>x</body></message>"
            .into(),
        ..message(domain, "alice", "bob", n)
    };
    let mut expected = vec![kept(store, rare(0)).0];
    let count = EXAMINED_MAX as u64 + 300;
    for first in (0..count).step_by(500) {
        let asked: Vec<_> = (first..count.min(first + 500))
            .map(|n| asked(store, message(domain, "alice", "bob", n)))
            .collect();
        for asked in &asked {
            waited(asked);
        }
    }
    expected.push(kept(store, rare(count)).0);
    for is_backward in [false, true] {
        let (mut found, mut pages) = (Vec::new(), 0);
        let mut start = if is_backward { ArchiveStart::Last } else { ArchiveStart::First };
        loop {
            let page = ask(store, asking(domain, "alice", with("bob@example.org/rare"), start, 10));
            let (messages, more, reached) = answer!(page, ArchivePageAnswer::Page { messages, more, reached } => (messages, more, reached));
            found.extend(messages.iter().map(|message| message.id));
            pages += 1;
            if !more {
                break;
            }
            let reached = reached.expect("there was room for more");
            start = if is_backward { ArchiveStart::Before(reached) } else { ArchiveStart::After(reached) };
        }
        found.sort();
        assert_eq!((found, pages <= 3), (expected.clone(), true), "{pages} pages");
    }
}

pub(super) fn are_found_by_number(store: &dyn Store) {
    let domain = ground(store);
    let all: Vec<ArchiveId> = (0..3).map(|n| keep(store, domain, "alice", "bob", n)).collect();
    let other = keep(store, domain, "bob", "carol", 4);
    before_and_after(store, || {
        let by_number =
            |ids: Vec<ArchiveId>| ask(store, ArchivedMessages { domain, local: "alice".into(), ids });
        let found = by_number(vec![all[2], all[0], all[2]]);
        let ArchivePageAnswer::Page { messages, more: false, .. } = found else { panic!("{found:?}") };
        assert_eq!(messages.iter().map(|m| m.id).collect::<Vec<_>>(), [all[0], all[2]]);
        // Nobody else's.
        for wrong in [other, ArchiveId(0), ArchiveId(u64::MAX), ArchiveId(other.0 + 1)] {
            assert_eq!(by_number(vec![all[0], wrong]), ArchivePageAnswer::NotFound);
            for start in [ArchiveStart::After(wrong), ArchiveStart::Before(wrong)] {
                let page = ask(store, asking(domain, "alice", ArchiveFilter::default(), start, 9));
                assert_eq!(page, ArchivePageAnswer::NotFound);
            }
            let filter = ArchiveFilter { after: Some(wrong), ..ArchiveFilter::default() };
            assert_eq!(
                ask(store, asking(domain, "alice", filter, ArchiveStart::First, 9)),
                ArchivePageAnswer::NotFound
            );
        }
        let nobody = asking(domain, "nobody", ArchiveFilter::default(), ArchiveStart::First, 9);
        assert_eq!(ask(store, nobody), ArchivePageAnswer::NoAccount);
    });
}

pub(super) fn follow_preferences(store: &dyn Store) {
    let domain = ground(store);
    let read = |local: &str| ask(store, ReadArchivePreferences { domain, local: local.into() });
    assert_eq!((read("alice"), read("nobody")), (Some(ArchivePreferences::default()), None));
    let set = |default, always: &[&str], never: &[&str]| {
        let jids = |list: &[&str]| list.iter().map(|jid| Jid::new(jid).unwrap()).collect();
        let preferences = ArchivePreferences { default, always: jids(always), never: jids(never) };
        done(
            store,
            SetArchivePreferences { domain, local: "alice".into(), preferences: preferences.clone() },
        );
        assert_eq!(read("alice"), Some(preferences));
    };
    let wants = |n| {
        let from = |who: &str| match ask(store, message(domain, who, "alice", n)) {
            KeepMessageAnswer::Kept { recipient, .. } => recipient,
            KeepMessageAnswer::NotKept => false,
        };
        (from("bob"), from("carol"))
    };
    set(ArchiveDefault::Never, &["bob@example.org"], &[]);
    assert_eq!(wants(1), (true, false));
    set(ArchiveDefault::Always, &["bob@example.org/r"], &["bob@example.org", "carol@example.org"]);
    assert_eq!(wants(2), (true, false));
    set(ArchiveDefault::Roster, &[], &[]);
    assert_eq!(wants(3), (false, false));
    done(store, super::rosters::put(domain, "alice", "carol@example.org", ""));
    assert_eq!(wants(4), (false, true));
    // Neither side wants it.
    let never = ArchivePreferences { default: ArchiveDefault::Never, ..ArchivePreferences::default() };
    for local in ["alice", "bob"] {
        done(store, SetArchivePreferences { domain, local: local.into(), preferences: never.clone() });
    }
    assert_eq!(ask(store, message(domain, "alice", "bob", 5)), KeepMessageAnswer::NotKept);
    missing(store, SetArchivePreferences { domain, local: "nobody".into(), preferences: never });
}

pub(super) fn have_times_that_ascend(store: &dyn Store) {
    let domain = ground(store);
    for at in [100_000, 90_000, 100_001, 20_000, 20_001] {
        keep(store, domain, "alice", "bob", at);
    }
    let times: Vec<u64> = whole(store, domain, "alice").iter().map(|m| m.received.0 - T.0).collect();
    // A clock that differs a little, and one that was set back.
    assert_eq!(times, [100_000, 100_000, 100_001, 20_000, 20_001]);
}

pub(super) fn are_erased(store: &dyn Store) {
    let domain = ground(store);
    let first = keep(store, domain, "alice", "bob", 1);
    done(store, EraseArchive { domain, local: "alice".into() });
    missing(store, EraseArchive { domain, local: "nobody".into() });
    assert_eq!((whole(store, domain, "alice").len(), whole(store, domain, "bob").len()), (0, 1));
    let gone = ArchivedMessages { domain, local: "alice".into(), ids: vec![first] };
    assert_eq!(ask(store, gone), ArchivePageAnswer::NotFound);
    let second = keep(store, domain, "alice", "bob", 2);
    assert!(second > first);
    before_and_after(store, || {
        assert_eq!(whole(store, domain, "alice").iter().map(|m| m.id).collect::<Vec<_>>(), [second]);
        assert_eq!(whole(store, domain, "bob").len(), 2);
    });
    // The newest goes, too, and its number is not used again.
    for local in ["alice", "bob"] {
        done(store, EraseArchive { domain, local: local.into() });
    }
    sweep(store, T);
    assert!(keep(store, domain, "alice", "bob", 3) > second);
    assert_eq!(whole(store, domain, "bob").len(), 1);
}

pub(super) fn keep_what_their_domain_wants(store: &dyn Store) {
    const DAY_MS: u64 = 24 * 60 * 60 * 1000;
    let domain = ground(store);
    let policy = |policy| drop(ask(store, PutDomain { name: "example.org".into(), policy }));
    for n in 0..6 {
        keep(store, domain, "alice", "bob", n * DAY_MS);
    }
    let left = || (whole(store, domain, "alice").len(), whole(store, domain, "bob").len());
    policy(Policy { archive_days: 2, ..Policy::default() });
    sweep(store, T.plus(3 * DAY_MS + 1));
    assert_eq!(left(), (4, 4));
    policy(Policy { archive_messages_max: 3, ..Policy::default() });
    sweep(store, T);
    assert_eq!(left(), (3, 3));
    let bytes = message(domain, "alice", "bob", 5 * DAY_MS).stanza.len() as u64;
    policy(Policy { archive_bytes_max: 2 * bytes, ..Policy::default() });
    assert_eq!(sweep(store, T), 2);
    assert_eq!(left(), (2, 2));
    assert_eq!(sweep(store, T), 0);
}

pub(super) fn go_with_their_account(store: &dyn Store) {
    let domain = ground(store);
    keep(store, domain, "alice", "bob", 1);
    done(store, DeleteAccount { domain, local: "alice".into(), now: T, held_until: T, rows_max: u32::MAX });
    account(store, domain, "alice");
    before_and_after(store, || {
        assert_eq!((whole(store, domain, "alice").len(), whole(store, domain, "bob").len()), (0, 1));
    });
}

pub(super) fn write_lasting(store: &dyn Store) {
    let domain = ground(store);
    for n in 0..3 {
        keep(store, domain, "alice", "bob", n);
    }
    sweep(store, T);
    for n in 3..5 {
        keep(store, domain, "alice", "bob", n);
    }
}

pub(super) fn check_lasting(store: &dyn Store) {
    let domain = domains(store)[0].id;
    let all = whole(store, domain, "bob");
    assert_eq!(
        all.iter().map(|m| m.received).collect::<Vec<_>>(),
        (0..5).map(|n| T.plus(n)).collect::<Vec<_>>()
    );
    let last = all.last().map(|message| message.id);
    assert!(Some(keep(store, domain, "alice", "bob", 9)) > last);
    assert_eq!(whole(store, domain, "alice").len(), 6);
}
