//! Rooms, their members, and their archives.

use super::Noun;
use super::ground::*;
use carillon_core::model::*;
use carillon_core::ports::Missing;
use carillon_core::ports::store::archive::ArchivePageAnswer;
use carillon_core::ports::store::inbox::*;
use carillon_core::ports::store::rooms::*;
use carillon_core::ports::{Ask, Store};
use carillon_wire::jid::Jid;

pub(super) const NOUN: Noun = Noun {
    writes: |domain| {
        // There is no such room: each says so, or creates one.
        let room = RoomId(77);
        vec![
            Ask::from(create(domain, "asked", &["alice"])),
            Ask::from(ConfigureRoom { room, config: RoomConfig::default(), version: 0, facts: Vec::new() }),
            Ask::from(SetRoomMembers {
                room,
                changes: vec![member("bob", RoomAffiliation::Member)],
                version: 0,
                facts: Vec::new(),
            }),
            Ask::from(SetRoomSubject { room, subject: None, facts: Vec::new() }),
            Ask::from(vcard(room, "<one/>", 1)),
            Ask::from(message(room, "alice", 1)),
            Ask::from(ReplaceRoomMessage {
                room,
                id: ArchiveId(1),
                stanza: "<message/>".into(),
                facts: Vec::new(),
            }),
            Ask::from(EraseRoomArchive { room }),
            Ask::from(SweepRoomArchives { now: T, after: RoomId(0), max: 10 }),
            Ask::from(blocks(domain, "alice")),
            Ask::from(DestroyRoom { room, facts: Vec::new(), rows_max: ROOM_PART_ROWS }),
        ]
    },
    state: |store, domain| {
        let names = ask(store, Rooms { domain, kind: RoomKind::Muc, after: None, limit: 100, all: true });
        let records: Vec<_> = names.iter().map(|room| find(store, domain, &room.name)).collect();
        let blocks = ask(store, RoomBlocks { domain, local: "alice".into() });
        format!("{records:?} {blocks:?}")
    },
    write_lasting: |store, domain| {
        let room = made(store, domain, "lasting", &["alice"]);
        done(store, ConfigureRoom { room: room.id, config: unusual(), version: 0, facts: Vec::new() });
        done(store, SetRoomSubject { room: room.id, subject: Some(Box::new(subject())), facts: Vec::new() });
        done(
            store,
            SetRoomMembers {
                room: room.id,
                changes: vec![member("bob", RoomAffiliation::Outcast)],
                version: 0,
                facts: Vec::new(),
            },
        );
        done(store, vcard(room.id, "<one/>", 1));
        keep(store, room.id, "alice", 1);
        assert_eq!(ask(store, blocks(domain, "alice")), ChangeRoomBlocksAnswer::Changed);
    },
    check_lasting: |store, domain| {
        let room = find(store, domain, "lasting").expect("it is there");
        assert_eq!((&room.config, room.subject.as_deref()), (&unusual(), Some(&subject())));
        assert_eq!(room.affiliation("bob@example.org"), RoomAffiliation::Outcast);
        assert_eq!(
            (told(store, room.id).as_deref(), &*room.photos),
            (Some("<one/>"), &[PhotoHash([1; 20])][..])
        );
        assert_eq!(texts(store, room.id, ArchiveStart::First, 10), (vec![1], false));
        assert_eq!(ask(store, RoomBlocks { domain, local: "alice".into() }).len(), 1);
    },
};

/// A vCard with a photo.
fn vcard(room: RoomId, xml: &'static str, photo: u8) -> SetRoomVcard {
    SetRoomVcard { room, xml: xml.into(), photos: [PhotoHash([photo; 20])].into() }
}

/// What a room tells of itself.
fn told(store: &dyn Store, room: RoomId) -> Option<String> {
    let found = ask(store, ReadRoomVcard { room });
    found.map(|xml| String::from_utf8(xml.to_vec()).expect("it is text"))
}

fn member(local: &str, affiliation: RoomAffiliation) -> RoomMember {
    let jid = jid(&format!("{local}@example.org"));
    RoomMember::new(jid, affiliation)
}

fn blocks(domain: DomainId, local: &str) -> ChangeRoomBlocks {
    let block = RoomBlock { is_room: true, jid: jid("tea@muclight.example.org") };
    ChangeRoomBlocks { domain, local: local.into(), changes: vec![(block, true)], max: 10 }
}

fn create(domain: DomainId, name: &str, owners: &[&str]) -> CreateRoom {
    let members = owners.iter().map(|owner| member(owner, RoomAffiliation::Owner)).collect();
    let config = RoomConfig { persistent: true, ..RoomConfig::default() };
    let (kind, owned_max, rooms_max) = (RoomKind::Muc, 10, u32::MAX);
    CreateRoom {
        domain,
        kind,
        name: name.into(),
        config,
        members,
        owned_max,
        rooms_max,
        now: T,
        facts: Vec::new(),
    }
}

fn made(store: &dyn Store, domain: DomainId, name: &str, owners: &[&str]) -> RoomRecord {
    answer!(ask(store, create(domain, name, owners)), CreateRoomAnswer::Created(record) => *record)
}

fn find(store: &dyn Store, domain: DomainId, name: &str) -> Option<RoomRecord> {
    ask(store, Room { domain, kind: RoomKind::Muc, name: name.into() }).map(|record| *record)
}

fn unusual() -> RoomConfig {
    RoomConfig {
        title: "Thé d'été".to_owned(),
        description: "🫖".to_owned(),
        public: false,
        persistent: true,
        members_only: true,
        moderated: true,
        non_anonymous: true,
        password: "cauldron".to_owned(),
        max_users: 7,
        allow_invites: false,
        change_subject: true,
        allow_pm: AllowPm::Moderators,
        presence_broadcast: PresenceBroadcast::Participants,
        archive: false,
        history: 3,
        locked: false,
        members_history: RoomHistory::SinceMember,
        fields: [("subject".to_owned(), "Thé".to_owned())].into(),
        archive_days: 7,
    }
}

fn subject() -> RoomSubject {
    RoomSubject {
        nick: "Ali".into(),
        by: jid("alice@example.org"),
        set: T,
        stanza: "<subject>Biscuits</subject>".into(),
    }
}

/// A message that says a number, received so many milliseconds after [`T`].
fn message(room: RoomId, sender: &str, number: u64) -> KeepRoomMessage {
    let stanza = format!("<message from='r@rooms.example.org/{sender}' id='{number}' type='groupchat'/>");
    let sender = jid(&format!("{sender}@example.org"));
    KeepRoomMessage {
        room,
        received: T.plus(number),
        sender,
        stanza: stanza.into(),
        entry: RoomEntry::Counted,
        displayed: None,
        wake: None,
        listeners: None,
        fact: None,
    }
}

fn keep(store: &dyn Store, room: RoomId, sender: &str, number: u64) -> ArchiveId {
    ask(store, message(room, sender, number)).expect("the room is there")
}

fn page_of(room: RoomId, filter: ArchiveFilter, start: ArchiveStart, max: u16) -> RoomArchivePage {
    RoomArchivePage { room, since: ArchiveId(0), filter, start, page: page(max) }
}

/// The numbers that messages say.
fn numbers(messages: &[ArchivedMessage]) -> Vec<u64> {
    let number = |message: &ArchivedMessage| {
        message.read().and_then(|stanza| stanza.id?.parse().ok()).expect("it has a number")
    };
    messages.iter().map(number).collect()
}

fn texts(store: &dyn Store, room: RoomId, start: ArchiveStart, max: u16) -> (Vec<u64>, bool) {
    let answer = ask(store, page_of(room, ArchiveFilter::default(), start, max));
    answer!(answer, ArchivePageAnswer::Page { messages, more, .. } => (numbers(&messages), more))
}

pub(super) fn are_created_once(store: &dyn Store) {
    let domain = domain(store);
    let room = made(store, domain, "tea", &["zoe", "alice"]);
    assert_eq!((room.domain, &*room.name, room.created), (domain, "tea", T));
    let owners: Vec<&str> = room.members.iter().map(|member| member.jid.as_str()).collect();
    assert_eq!(owners, ["alice@example.org", "zoe@example.org"], "sorted");
    assert_eq!(find(store, domain, "tea"), Some(room.clone()));
    answer!(ask(store, create(domain, "tea", &["bob"])), CreateRoomAnswer::Exists => ());
    assert_eq!(find(store, domain, "Tea"), None);
    let other = domain_named(store, "other.example");
    assert_ne!(made(store, other, "tea", &[]).id, room.id, "each domain has its own names");
    answer!(ask(store, create(DomainId(99), "tea", &[])), CreateRoomAnswer::NoDomain => ());
}

pub(super) fn are_owned_by_few(store: &dyn Store) {
    let domain = domain(store);
    let limited = |name: &str, owned_max| CreateRoom { owned_max, ..create(domain, name, &["alice"]) };
    answer!(ask(store, limited("one", 2)), CreateRoomAnswer::Created(_) => ());
    answer!(ask(store, limited("two", 2)), CreateRoomAnswer::Created(_) => ());
    answer!(ask(store, limited("three", 2)), CreateRoomAnswer::Full => ());
    assert_eq!(find(store, domain, "three"), None);
    let room = find(store, domain, "two").expect("it is there");
    done(store, DestroyRoom { room: room.id, facts: Vec::new(), rows_max: ROOM_PART_ROWS });
    answer!(ask(store, limited("three", 2)), CreateRoomAnswer::Created(_) => ());
}

pub(super) fn are_destroyed_in_parts(store: &dyn Store) {
    let domain = domain(store);
    let owners = ["alice", "bob", "carol", "dave", "eve", "frank", "grace"];
    let room = made(store, domain, "tea", &owners);
    let part = DestroyRoom { room: room.id, facts: Vec::new(), rows_max: 2 };
    while answer!(ask(store, part.clone()), Ok(more) => more) {
        assert!(find(store, domain, "tea").is_some(), "what is left is a room");
    }
    missing(store, part);
    assert_eq!(find(store, domain, "tea"), None);
    assert!(made(store, domain, "tea", &["alice"]).id != room.id);
}

pub(super) fn are_as_many_as_the_domain_may_have(store: &dyn Store) {
    let (domain, other) = (domain(store), domain_named(store, "other.example"));
    made(store, other, "elsewhere", &[]);
    let limited = |name: &str, kind| CreateRoom { rooms_max: 2, kind, ..create(domain, name, &["alice"]) };
    answer!(ask(store, limited("one", RoomKind::Muc)), CreateRoomAnswer::Created(_) => ());
    answer!(ask(store, limited("one", RoomKind::MucLight)), CreateRoomAnswer::Created(_) => ());
    answer!(ask(store, limited("two", RoomKind::Muc)), CreateRoomAnswer::DomainFull => ());
    assert_eq!(find(store, domain, "two"), None);
    let room = find(store, domain, "one").expect("it is there");
    done(store, DestroyRoom { room: room.id, facts: Vec::new(), rows_max: ROOM_PART_ROWS });
    answer!(ask(store, limited("two", RoomKind::Muc)), CreateRoomAnswer::Created(_) => ());
}

pub(super) fn are_listed_in_pages(store: &dyn Store) {
    let domain = domain(store);
    for name in ["b", "a", "é", "c"] {
        made(store, domain, name, &["alice"]);
    }
    let hidden = RoomConfig { public: false, ..RoomConfig::default() };
    let room = find(store, domain, "b").expect("it is there");
    done(store, ConfigureRoom { room: room.id, config: hidden, version: 0, facts: Vec::new() });
    let locked = RoomConfig { locked: true, title: "C".to_owned(), ..RoomConfig::default() };
    let room = find(store, domain, "c").expect("it is there");
    done(store, ConfigureRoom { room: room.id, config: locked, version: 0, facts: Vec::new() });
    let list = |after: Option<&str>, limit, all| {
        let found =
            ask(store, Rooms { domain, kind: RoomKind::Muc, after: after.map(Box::from), limit, all });
        found.into_iter().map(|room| (room.name.into(), room.title.into(), room.public)).collect::<Vec<_>>()
    };
    let of = |name: &str, title: &str, public| (name.to_owned(), title.to_owned(), public);
    assert_eq!(list(None, 10, false), [of("a", "", true), of("é", "", true)]);
    let all = [of("a", "", true), of("b", "", false), of("c", "C", false), of("é", "", true)];
    assert_eq!(list(None, 10, true), all);
    assert_eq!(list(Some("a"), 2, true), all[1..3]);
    assert_eq!(list(Some("é"), 2, true), []);
}

pub(super) fn are_configured_and_have_a_subject(store: &dyn Store) {
    let domain = domain(store);
    let before = made(store, domain, "tea", &["alice"]);
    done(store, ConfigureRoom { room: before.id, config: unusual(), version: 0, facts: Vec::new() });
    done(store, SetRoomSubject { room: before.id, subject: Some(Box::new(subject())), facts: Vec::new() });
    let after = RoomRecord { config: unusual(), subject: Some(Box::new(subject())), ..before.clone() };
    assert_eq!(find(store, domain, "tea"), Some(after));
    done(store, SetRoomSubject { room: before.id, subject: None, facts: Vec::new() });
    assert_eq!(find(store, domain, "tea").and_then(|room| room.subject), None);
    missing(store, ConfigureRoom { room: RoomId(999), config: unusual(), version: 0, facts: Vec::new() });
    missing(store, SetRoomSubject { room: RoomId(999), subject: None, facts: Vec::new() });
}

pub(super) fn have_a_vcard(store: &dyn Store) {
    let domain = domain(store);
    let (room, other) = (made(store, domain, "tea", &["alice"]), made(store, domain, "coffee", &["alice"]));
    assert_eq!(told(store, room.id), None);
    done(store, vcard(room.id, "<one/>", 1));
    done(store, vcard(room.id, "<\u{1F375}/>", 2));
    assert_eq!(told(store, room.id).as_deref(), Some("<\u{1F375}/>"));
    let photos = |name| find(store, domain, name).expect("it is there").photos;
    assert_eq!(*photos("tea"), [PhotoHash([2; 20])]);
    assert_eq!((told(store, other.id), photos("coffee").len()), (None, 0));
    let both: Box<[_]> = [PhotoHash([2; 20]), PhotoHash([3; 20])].into();
    done(store, SetRoomVcard { room: room.id, xml: "<two/>".into(), photos: both.clone() });
    assert_eq!(photos("tea"), both);
    done(store, SetRoomVcard { room: room.id, xml: "".into(), photos: Box::default() });
    assert_eq!((told(store, room.id), photos("tea").len()), (None, 0));
    // It goes with the room.
    done(store, vcard(room.id, "<one/>", 1));
    done(store, DestroyRoom { room: room.id, facts: Vec::new(), rows_max: ROOM_PART_ROWS });
    assert_eq!(told(store, room.id), None);
    missing(store, vcard(room.id, "<one/>", 1));
    assert_eq!(made(store, domain, "tea", &["alice"]).photos.len(), 0);
}

pub(super) fn list_members(store: &dyn Store) {
    let domain = domain(store);
    let room = made(store, domain, "tea", &["alice"]);
    let other = made(store, domain, "coffee", &["bob"]);
    let banned = RoomMember { reason: "loud".into(), ..member("carol", RoomAffiliation::Outcast) };
    let reserved = RoomMember { nick: "Dave".into(), ..member("dave", RoomAffiliation::None) };
    let bob = member("bob", RoomAffiliation::Member);
    let changes = vec![reserved.clone(), bob.clone(), banned.clone(), member("eve", RoomAffiliation::None)];
    done(store, SetRoomMembers { room: room.id, changes, version: 0, facts: Vec::new() });
    let owner = member("alice", RoomAffiliation::Owner);
    let members = |name| find(store, domain, name).expect("it is there").members;
    assert_eq!(members("tea"), [owner.clone(), bob, banned.clone(), reserved]);
    assert_eq!(members("coffee"), other.members);
    let rooms_of = |local: &str, after: Option<&str>, limit| {
        let jid = jid(&format!("{local}@example.org"));
        let of = RoomsOf { domain, kind: RoomKind::Muc, jid, after: after.map(Box::from), limit };
        ask(store, of).into_iter().map(|of| (String::from(of.name), of.affiliation)).collect::<Vec<_>>()
    };
    let (coffee, tea) =
        (("coffee".to_owned(), RoomAffiliation::Owner), ("tea".to_owned(), RoomAffiliation::Member));
    assert_eq!(rooms_of("bob", None, 10), [coffee.clone(), tea.clone()]);
    assert_eq!(rooms_of("bob", None, 1), [coffee]);
    assert_eq!(rooms_of("bob", Some("coffee"), 1), [tea]);
    assert_eq!(rooms_of("dave", None, 10), [], "a reserved nick is no affiliation");
    // Who is nothing any more is not listed.
    let changes = vec![member("bob", RoomAffiliation::None), member("dave", RoomAffiliation::None)];
    done(store, SetRoomMembers { room: room.id, changes, version: 0, facts: Vec::new() });
    assert_eq!(members("tea"), [owner, banned]);
    missing(store, SetRoomMembers { room: RoomId(999), changes: Vec::new(), version: 0, facts: Vec::new() });
}

pub(super) fn do_not_list_who_is_removed(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "bob");
    account(store, domain, "carol");
    let room = made(store, domain, "tea", &["alice"]);
    let changes = vec![member("bob", RoomAffiliation::Admin), member("carol", RoomAffiliation::Outcast)];
    done(store, SetRoomMembers { room: room.id, changes, version: 0, facts: Vec::new() });
    for local in ["bob", "carol"] {
        done(store, DeleteAccount { domain, local: local.into(), now: T, held_until: T, rows_max: u32::MAX });
    }
    let left = find(store, domain, "tea").expect("it is there");
    assert_eq!(left.affiliation("bob@example.org"), RoomAffiliation::None);
    assert_eq!(left.affiliation("carol@example.org"), RoomAffiliation::Outcast, "a ban stays");
}

pub(super) fn go_with_their_domain(store: &dyn Store) {
    let domain = domain(store);
    let room = made(store, domain, "tea", &["alice"]);
    keep(store, room.id, "alice", 1);
    while both(ask(store, delete_domain(domain)).expect("it is there")).1 {}
    assert_eq!(find(store, domain, "tea"), None);
    missing(store, DestroyRoom { room: room.id, facts: Vec::new(), rows_max: ROOM_PART_ROWS });
    // Its messages are swept.
    let swept = ask(store, SweepRoomArchives { now: T, after: RoomId(0), max: 10 });
    assert!(swept.next.is_none(), "{swept:?}");
}

pub(super) fn keep_messages_in_their_order(store: &dyn Store) {
    let domain = domain(store);
    let (tea, coffee) = (made(store, domain, "tea", &[]).id, made(store, domain, "coffee", &[]).id);
    let ids: Vec<ArchiveId> = (1..=5).map(|number| keep(store, tea, "alice", number)).collect();
    keep(store, coffee, "bob", 6);
    assert!(ids.is_sorted() && ids[0] > ArchiveId(0), "{ids:?}");
    assert_eq!(texts(store, tea, ArchiveStart::First, 2), (vec![1, 2], true));
    assert_eq!(texts(store, tea, ArchiveStart::After(ids[1]), 3), (vec![3, 4, 5], false));
    assert_eq!(texts(store, tea, ArchiveStart::Last, 2), (vec![4, 5], true));
    assert_eq!(texts(store, tea, ArchiveStart::Before(ids[2]), 5), (vec![1, 2], false));
    assert_eq!(texts(store, coffee, ArchiveStart::First, 5), (vec![6], false));
    let ends = ask(store, ReadRoomArchiveEnds { room: tea, since: ArchiveId(0) });
    assert_eq!(ends, Some(ArchiveEnds { first: (ids[0], T.plus(1)), last: (ids[4], T.plus(5)) }));
    assert_eq!(ask(store, ReadRoomArchiveEnds { room: RoomId(999), since: ArchiveId(0) }), None);
    let named = |ids: &[ArchiveId]| {
        ask(store, RoomArchivedMessages { room: tea, since: ArchiveId(0), ids: ids.to_vec() })
    };
    let found =
        answer!(named(&[ids[3], ids[0], ids[3]]), ArchivePageAnswer::Page { messages, .. } => messages);
    assert_eq!(numbers(&found), [1, 4]);
    answer!(named(&[ids[0], ArchiveId(u64::from(u32::MAX))]), ArchivePageAnswer::NotFound => ());
    let foreign = page_of(coffee, ArchiveFilter::default(), ArchiveStart::After(ids[0]), 5);
    answer!(ask(store, foreign), ArchivePageAnswer::NotFound => ());
    let nowhere = page_of(RoomId(999), ArchiveFilter::default(), ArchiveStart::First, 5);
    answer!(ask(store, nowhere), ArchivePageAnswer::NoAccount => ());
    missing(store, message(RoomId(999), "alice", 1));
}

pub(super) fn find_messages_by_sender_and_time(store: &dyn Store) {
    let domain = domain(store);
    let room = made(store, domain, "tea", &[]).id;
    for number in 1..=600 {
        keep(store, room, if number % 3 == 0 { "bob" } else { "alice" }, number);
    }
    let find = |filter: ArchiveFilter, start, max| {
        let answer = ask(store, page_of(room, filter, start, max));
        answer!(answer, ArchivePageAnswer::Page { messages, more, .. } => (numbers(&messages), more))
    };
    let bob = Some(Jid::new("bob@example.org").expect("an address"));
    let of_bob = || ArchiveFilter { with: bob.clone(), ..ArchiveFilter::default() };
    assert_eq!(find(of_bob(), ArchiveStart::First, 2), (vec![3, 6], true));
    assert_eq!(find(of_bob(), ArchiveStart::Last, 2), (vec![597, 600], true));
    let late = ArchiveFilter { start: Some(T.plus(300)), ..of_bob() };
    assert_eq!(find(late, ArchiveStart::First, 2), (vec![300, 303], true));
    let between =
        ArchiveFilter { start: Some(T.plus(10)), end: Some(T.plus(12)), ..ArchiveFilter::default() };
    assert_eq!(find(between.clone(), ArchiveStart::First, 10), (vec![10, 11, 12], false));
    assert_eq!(find(between, ArchiveStart::Last, 2), (vec![11, 12], true));
    let never = ArchiveFilter { start: Some(T.plus(601)), ..ArchiveFilter::default() };
    assert_eq!(find(never, ArchiveStart::First, 10), (vec![], false));
}

pub(super) fn times_of_messages_ascend(store: &dyn Store) {
    let domain = domain(store);
    let room = made(store, domain, "tea", &[]).id;
    for number in [5000, 4000, 6000] {
        keep(store, room, "alice", number);
    }
    let all = page_of(room, ArchiveFilter::default(), ArchiveStart::First, 5);
    let messages = answer!(ask(store, all), ArchivePageAnswer::Page { messages, .. } => messages);
    let times: Vec<u64> = messages.iter().map(|message| message.received.0 - T.0).collect();
    assert_eq!(times, [5000, 5000, 6000]);
}

pub(super) fn replace_and_erase_messages(store: &dyn Store) {
    let domain = domain(store);
    let room = made(store, domain, "tea", &[]).id;
    let ids: Vec<ArchiveId> = (1..=3).map(|number| keep(store, room, "alice", number)).collect();
    let left = "<message from='r@rooms.example.org/alice' id='99' type='groupchat'/>";
    done(store, ReplaceRoomMessage { room, id: ids[1], stanza: left.into(), facts: Vec::new() });
    assert_eq!(texts(store, room, ArchiveStart::First, 5), (vec![1, 99, 3], false));
    let other = made(store, domain, "coffee", &[]).id;
    missing(store, ReplaceRoomMessage { room: other, id: ids[1], stanza: left.into(), facts: Vec::new() });
    done(store, EraseRoomArchive { room });
    assert_eq!(texts(store, room, ArchiveStart::First, 5), (vec![], false));
    missing(store, ReplaceRoomMessage { room, id: ids[2], stanza: left.into(), facts: Vec::new() });
    assert_eq!(ask(store, ReadRoomArchiveEnds { room, since: ArchiveId(0) }), None);
    let next = keep(store, room, "alice", 4);
    assert!(next > ids[2]);
    assert_eq!(texts(store, room, ArchiveStart::Last, 5), (vec![4], false));
    missing(store, EraseRoomArchive { room: RoomId(999) });
}

pub(super) fn keep_what_their_domain_keeps(store: &dyn Store) {
    const DAY_MS: u64 = 24 * 60 * 60 * 1000;
    let policy = Policy { archive_days: 2, archive_messages_max: 3, ..Policy::default() };
    let domain = ask(store, PutDomain { name: "example.org".into(), policy }).domain.id;
    let tea = made(store, domain, "tea", &[]).id;
    for number in 1..=5 {
        keep(store, tea, "alice", number);
    }
    let gone = made(store, domain, "gone", &[]).id;
    keep(store, gone, "alice", 6);
    done(store, DestroyRoom { room: gone, facts: Vec::new(), rows_max: ROOM_PART_ROWS });
    let sweep = |now, after, max| ask(store, SweepRoomArchives { now, after, max });
    // A step removes no more than it may.
    let first = sweep(T.plus(10), RoomId(0), 1);
    assert_eq!(first.removed, 1);
    let mut after = first.next;
    while let Some(room) = after {
        after = sweep(T.plus(10), room, 10).next;
    }
    assert_eq!(texts(store, tea, ArchiveStart::First, 9), (vec![3, 4, 5], false));
    let mut after = Some(RoomId(0));
    while let Some(room) = after {
        after = sweep(T.plus(2 * DAY_MS + 5), room, 10).next;
    }
    assert_eq!(texts(store, tea, ArchiveStart::First, 9), (vec![5], false));
}

pub(super) fn keep_for_as_many_days_as_is_said_of_rooms(store: &dyn Store) {
    const DAY_MS: u64 = 24 * 60 * 60 * 1000;
    let policy = Policy { archive_days: 2, room_archive_days: 10, ..Policy::default() };
    let domain = ask(store, PutDomain { name: "example.org".into(), policy }).domain.id;
    let (long, short) = (made(store, domain, "long", &[]).id, made(store, domain, "short", &[]).id);
    let kept_for = |room, days| {
        let config = RoomConfig { archive_days: days, ..RoomConfig::default() };
        done(store, ConfigureRoom { room, config, version: 0, facts: Vec::new() });
    };
    kept_for(long, 11);
    kept_for(short, 4);
    for room in [long, short] {
        keep(store, room, "alice", 1);
    }
    let left_after = |days: u64| {
        let mut after = Some(RoomId(0));
        while let Some(room) = after {
            after = ask(store, SweepRoomArchives { now: T.plus(days * DAY_MS), after: room, max: 10 }).next;
        }
        [long, short].map(|room| texts(store, room, ArchiveStart::First, 9).0.len())
    };
    // Not as other archives of the domain, and a room keeps less than its domain, never more.
    assert_eq!([3, 5, 9, 11].map(left_after), [[1, 1], [1, 0], [1, 0], [0, 0]]);
}

pub(super) fn are_destroyed(store: &dyn Store) {
    let domain = domain(store);
    let room = made(store, domain, "tea", &["alice"]);
    keep(store, room.id, "alice", 1);
    done(store, DestroyRoom { room: room.id, facts: Vec::new(), rows_max: ROOM_PART_ROWS });
    missing(store, DestroyRoom { room: room.id, facts: Vec::new(), rows_max: ROOM_PART_ROWS });
    assert_eq!(find(store, domain, "tea"), None);
    let again = made(store, domain, "tea", &["bob"]);
    assert_ne!(again.id, room.id);
    assert_eq!(texts(store, again.id, ArchiveStart::First, 9), (vec![], false));
}

/// With which rooms, the newest message of each, and what is unread; and whether more follow.
fn brief(store: &dyn Store, asked: ReadInbox) -> (Vec<(String, ArchiveId, u32)>, bool) {
    let page = ask(store, asked).expect("the account is there");
    let entry =
        |entry: &InboxEntry| (entry.peer.as_str().to_owned(), entry.message.id, entry.conversation.unread());
    (page.entries.iter().map(entry).collect(), page.more)
}

fn inbox_of(domain: DomainId, local: &str) -> ReadInbox {
    ReadInbox {
        domain,
        local: local.into(),
        filter: InboxFilter::default(),
        is_oldest_first: false,
        start: ArchiveStart::First,
        page: page(10),
    }
}

/// A room of each kind with the same name: alice and bob are in the one, bob in the other.
fn two_rooms(store: &dyn Store) -> (DomainId, RoomId, RoomId, ArchiveId) {
    let domain = domain(store);
    for name in ["alice", "bob", "carol"] {
        account(store, domain, name);
    }
    let room = made(store, domain, "tea", &["alice"]).id;
    let light = CreateRoom { kind: RoomKind::MucLight, ..create(domain, "tea", &["bob"]) };
    let light = answer!(ask(store, light), CreateRoomAnswer::Created(record) => record.id);
    assert_ne!(room, light, "each kind has its own names");
    let first = keep(store, room, "alice", 1);
    let bob = RoomMember { since: first, ..member("bob", RoomAffiliation::Member) };
    done(store, SetRoomMembers { room, changes: vec![bob], version: 0, facts: Vec::new() });
    (domain, room, light, first)
}

const TEA: &str = "tea@rooms.example.org";
const LIGHT_TEA: &str = "tea@muclight.example.org";

/// Who has something to read: sending is reading, and what was said before one was a member is read.
pub(super) fn are_in_inboxes(store: &dyn Store) {
    let (domain, room, light, _) = two_rooms(store);
    let second = keep(store, room, "alice", 2);
    let third = keep(store, light, "alice", 3);
    assert_eq!(brief(store, inbox_of(domain, "alice")).0, [(TEA.to_owned(), second, 0)]);
    assert_eq!(brief(store, inbox_of(domain, "carol")).0, []);
    let all = [(LIGHT_TEA.to_owned(), third, 1), (TEA.to_owned(), second, 1)];
    assert_eq!(brief(store, inbox_of(domain, "bob")).0, all);
    let one = ReadInbox { page: page(1), ..inbox_of(domain, "bob") };
    assert_eq!(brief(store, one.clone()), (all[..1].to_vec(), true));
    let entry = ask(store, one.clone()).expect("the account is there").entries.remove(0);
    let next = ReadInbox { start: ArchiveStart::After(entry.place()), ..one };
    assert_eq!(brief(store, next), (all[1..].to_vec(), false));
    // Whoever has left reads nothing.
    done(
        store,
        SetRoomMembers {
            room,
            changes: vec![member("bob", RoomAffiliation::None)],
            version: 0,
            facts: Vec::new(),
        },
    );
    assert_eq!(brief(store, inbox_of(domain, "bob")).0.len(), 1);
}

/// A marker says what was read, by the number of the message or by its id; and clients change how a room stands.
pub(super) fn are_read_and_put_away(store: &dyn Store) {
    let (domain, room, light, first) = two_rooms(store);
    let second = keep(store, room, "alice", 2);
    keep(store, light, "alice", 3);
    let fourth = keep(store, room, "alice", 4);
    let seen = |named: &str| {
        let displayed = Some(named.into());
        let marker = KeepRoomMessage { entry: RoomEntry::Other, displayed, ..message(room, "bob", 5) };
        ask(store, marker).expect("the room is there");
        brief(store, inbox_of(domain, "bob")).0[0].clone()
    };
    assert_eq!(seen(&first.to_string()), (TEA.to_owned(), fourth, 2), "it was read before");
    assert_eq!(seen(&second.to_string()), (TEA.to_owned(), fourth, 1));
    assert_eq!(seen("4"), (TEA.to_owned(), fourth, 0));
    let ask_change = |local: &str, change| {
        ask(store, ChangeConversation { domain, local: local.into(), with: jid(LIGHT_TEA), change })
    };
    let change = |change| ask_change("bob", change).expect("it is there");
    let read = ConversationChange { is_read: Some(true), ..ConversationChange::default() };
    assert_eq!(change(read).unread(), 0);
    assert_eq!(change(ConversationChange { is_read: Some(false), ..read }).unread(), 1);
    let binned = ConversationChange { folder: Some(Folder::Bin), ..ConversationChange::default() };
    assert_eq!(change(binned).folder(), Folder::Bin);
    let emptied = Emptied { conversations: 1, more: false };
    assert_eq!(ask(store, EmptyBin { domain, local: "bob".into(), max: 9 }), Ok(emptied));
    assert_eq!(brief(store, inbox_of(domain, "bob")).0, [(TEA.to_owned(), fourth, 0)]);
    assert_eq!(ask_change("carol", read), Err(Missing));
    keep(store, light, "alice", 6);
    assert_eq!(brief(store, inbox_of(domain, "bob")).0.len(), 2, "a message brings it back");
}

/// Members are given what was said since they were, where a room says so.
pub(super) fn are_read_since_one_is_a_member(store: &dyn Store) {
    let domain = domain(store);
    let room = made(store, domain, "tea", &["alice"]).id;
    let first = keep(store, room, "alice", 1);
    let second = keep(store, room, "alice", 2);
    let bob = RoomMember { since: first, ..member("bob", RoomAffiliation::Member) };
    done(store, SetRoomMembers { room, changes: vec![bob.clone()], version: 3, facts: Vec::new() });
    let record = find(store, domain, "tea").expect("it is there");
    assert_eq!((record.member("bob@example.org"), record.version, record.newest), (Some(&bob), 3, second));
    let again = RoomMember { since: second, nick: "Bob".into(), ..bob.clone() };
    done(store, SetRoomMembers { room, changes: vec![again], version: 4, facts: Vec::new() });
    let record = find(store, domain, "tea").expect("it is there");
    assert_eq!(record.member("bob@example.org").map(|of| (of.since, &*of.nick)), Some((first, "Bob")));
    let since =
        |since| RoomArchivePage { since, ..page_of(room, ArchiveFilter::default(), ArchiveStart::First, 10) };
    let read =
        |asked| answer!(ask(store, asked), ArchivePageAnswer::Page { messages, .. } => numbers(&messages));
    assert_eq!((read(since(ArchiveId(0))), read(since(first))), (vec![1, 2], vec![2]));
    let ids = RoomArchivedMessages { room, since: first, ids: vec![first] };
    answer!(ask(store, ids), ArchivePageAnswer::NotFound => ());
    let ends = ask(store, ReadRoomArchiveEnds { room, since: first }).expect("there is one");
    assert_eq!((ends.first.0, ends.last.0), (second, second));
}

/// Whom accounts block in MUC Light, and who is in too many rooms.
pub(super) fn are_refused(store: &dyn Store) {
    let domain = domain(store);
    for name in ["alice", "bob", "carol"] {
        account(store, domain, name);
    }
    let block = |is_room, address: &str| RoomBlock { is_room, jid: jid(address) };
    let change = |local: &str, changes: &[(RoomBlock, bool)], max| {
        ask(store, ChangeRoomBlocks { domain, local: local.into(), changes: changes.to_vec(), max })
    };
    let of = |local: &str| ask(store, RoomBlocks { domain, local: local.into() });
    let (alice, tea) = (block(false, "alice@example.org"), block(true, "tea@muclight.example.org"));
    let both = [(tea.clone(), true), (alice.clone(), true)];
    assert_eq!(change("bob", &both, 1), ChangeRoomBlocksAnswer::Full);
    assert_eq!(of("bob"), []);
    assert_eq!(change("bob", &both, 2), ChangeRoomBlocksAnswer::Changed);
    assert_eq!(change("bob", &both, 2), ChangeRoomBlocksAnswer::Changed, "it is so already");
    assert_eq!(of("bob"), [alice.clone(), tea.clone()]);
    assert_eq!(change("nobody", &both, 2), ChangeRoomBlocksAnswer::NoAccount);
    let refusers_of = |kind, by: &str, room: &str, rooms_max| {
        let accounts = ["alice", "bob", "carol"].map(|name| jid(&format!("{name}@example.org"))).to_vec();
        let room = jid(&format!("{room}@muclight.example.org"));
        let by = jid(&format!("{by}@example.org"));
        let asked = ask(store, RoomRefusers { domain, kind, room, by, accounts, rooms_max });
        asked.iter().map(|jid| jid.local().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    let refusers = |by: &str, room: &str, rooms_max| refusers_of(RoomKind::MucLight, by, room, rooms_max);
    assert_eq!(refusers("alice", "coffee", 10), ["bob"]);
    assert_eq!(refusers("carol", "coffee", 10), Vec::<String>::new());
    assert_eq!(refusers("carol", "tea", 10), ["bob"]);
    let all = [(alice, false), (tea, false), (block(false, "example.org"), true)];
    assert_eq!(change("bob", &all, 2), ChangeRoomBlocksAnswer::Changed);
    assert_eq!(refusers("carol", "coffee", 10), ["bob"], "a domain is all of its accounts");
    assert_eq!(refusers("bob", "coffee", 10), Vec::<String>::new(), "nobody blocks itself");
    let light = CreateRoom { kind: RoomKind::MucLight, ..create(domain, "full", &["carol"]) };
    answer!(ask(store, light), CreateRoomAnswer::Created(_) => ());
    assert_eq!(refusers("carol", "coffee", 1), ["bob", "carol"]);
    // Rooms of the other kind are others, and nobody blocks them.
    let of_muc = |rooms_max| refusers_of(RoomKind::Muc, "alice", "tea", rooms_max);
    assert_eq!(of_muc(1), Vec::<String>::new());
    made(store, domain, "open", &["alice"]);
    let shut_out = RoomMember::new(jid("carol@example.org"), RoomAffiliation::Outcast);
    let room = find(store, domain, "open").expect("it is there").id;
    done(store, SetRoomMembers { room, changes: vec![shut_out], version: 0, facts: Vec::new() });
    assert_eq!(of_muc(1), ["alice"]);
    assert_eq!(of_muc(2), Vec::<String>::new());
}
