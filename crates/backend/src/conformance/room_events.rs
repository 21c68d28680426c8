//! Events of rooms: stored with what they tell of, told in the order of the commits.

use super::ground::*;
use carillon_core::model::*;
use carillon_core::ports::Store;
use carillon_core::ports::store::accounts::DeleteAccount;
use carillon_core::ports::store::notifications::{EVENT_BYTES_MAX, EventsAnswer};
use carillon_core::ports::store::rooms::*;

const ROOM: &str = "tea@rooms.example.org";

fn fact(domain: DomainId, action: RoomAction) -> RoomFact {
    RoomFact { domain, room: jid(ROOM), at: T.plus(5), by: Some(jid("alice@example.org")), action }
}

/// That a message was said, of this number.
fn message(id: ArchiveId) -> RoomAction {
    let from = Some(jid(ROOM).with_resource("Ali").expect("an address"));
    RoomAction::Message(RoomMessageFact { id, from, stanza_id: Some("m".into()) })
}

fn facts(domain: DomainId, action: RoomAction) -> Vec<RoomFact> {
    vec![fact(domain, action)]
}

fn created(domain: DomainId) -> CreateRoom {
    CreateRoom {
        domain,
        kind: RoomKind::Muc,
        name: "tea".into(),
        config: RoomConfig { persistent: true, ..RoomConfig::default() },
        members: Vec::new(),
        owned_max: 10,
        rooms_max: u32::MAX,
        now: T,
        facts: facts(domain, RoomAction::Created),
    }
}

/// A room of which nothing was told.
fn room(store: &dyn Store, domain: DomainId) -> RoomId {
    let quiet = CreateRoom { facts: Vec::new(), ..created(domain) };
    answer!(ask(store, quiet), CreateRoomAnswer::Created(record) => record.id)
}

fn said(domain: DomainId, room: RoomId, text: &str) -> KeepRoomMessage {
    KeepRoomMessage {
        room,
        received: T,
        sender: jid("alice@example.org"),
        stanza: format!("<message from='{ROOM}/Ali' type='groupchat'><body>{text}</body></message>").into(),
        entry: RoomEntry::Counted,
        displayed: None,
        wake: None,
        listeners: None,
        fact: Some(Box::new(fact(domain, message(ArchiveId(0))))),
    }
}

fn told_after(store: &dyn Store, after: u64, types: EventTypes) -> EventsAnswer {
    let wanted = EventFilter { types, states: States::ALL };
    ask(store, Events { after, domain: None, wanted, max: 99 })
}

fn told(store: &dyn Store) -> Vec<(RoomAction, Option<Box<str>>)> {
    let events = told_after(store, 0, EventTypes::ALL).events;
    let told = events.into_iter().filter_map(|(_, event)| match event {
        Event::Room(fact, message) => {
            let text = message.map(|message| String::from_utf8_lossy(&message.stanza).into());
            Some((fact.action, text))
        }
        Event::Notification(_) => None,
    });
    told.collect()
}

fn actions(store: &dyn Store) -> Vec<RoomAction> {
    told(store).into_iter().map(|(action, _)| action).collect()
}

pub(super) fn tell_what_happened(store: &dyn Store) {
    let domain = domain(store);
    let room = answer!(ask(store, created(domain)), CreateRoomAnswer::Created(record) => record.id);
    let bob = jid("bob@example.org");
    let joined =
        RoomMemberFact { account: bob.clone(), was: RoomAffiliation::None, is: RoomAffiliation::Member };
    let members = RoomAction::Members(vec![joined]);
    let changes = vec![RoomMember::new(bob, RoomAffiliation::Member)];
    done(store, SetRoomMembers { room, changes, version: 0, facts: facts(domain, members.clone()) });
    let subject = RoomAction::Subject(Some("Biscuits".into()));
    done(store, SetRoomSubject { room, subject: None, facts: facts(domain, subject.clone()) });
    let light = RoomAction::Subject(None);
    let config = RoomConfig::default();
    done(store, ConfigureRoom { room, config, version: 0, facts: facts(domain, light.clone()) });
    let id = ask(store, said(domain, room, "hello")).expect("the room is there");
    let events = told_after(store, 0, EventType::RoomMessage.into()).events;
    let (_, Event::Room(of, Some(kept))) = &events[0] else { panic!("{events:?}") };
    assert_eq!((events.len(), &of.action, kept.id), (1, &message(id), id));
    assert_eq!((&of.room, of.at, of.domain), (&jid(ROOM), T.plus(5), domain));
    assert_eq!((of.by.as_ref(), kept.received), (Some(&jid("alice@example.org")), T));
    assert!(kept.read().expect("a stanza").payload.find("body", "jabber:client").is_some());
    let moderated = RoomAction::Moderated(id);
    let left = "<message><retracted xmlns='urn:xmpp:message-retract:1'/></message>";
    let facts_of = facts(domain, moderated.clone());
    done(store, ReplaceRoomMessage { room, id, stanza: left.into(), facts: facts_of });
    let all = [RoomAction::Created, members, subject, light, message(id), moderated];
    assert_eq!(actions(store), all);
    // What is left of the message is what it tells.
    assert_eq!(told(store)[4].1.as_deref(), Some(left));
    let gone = RoomAction::Destroyed(Some("over".into()));
    done(store, DestroyRoom { room, facts: facts(domain, gone.clone()), rows_max: ROOM_PART_ROWS });
    assert_eq!(actions(store).last(), Some(&gone));
}

pub(super) fn of_what_was_not_done_are_none(store: &dyn Store) {
    let domain = domain(store);
    let (nowhere, facts) = (RoomId(999), facts(domain, RoomAction::Subject(None)));
    let config = RoomConfig::default();
    missing(store, ConfigureRoom { room: nowhere, config, version: 0, facts: facts.clone() });
    missing(store, SetRoomSubject { room: nowhere, subject: None, facts: facts.clone() });
    missing(store, SetRoomMembers { room: nowhere, changes: Vec::new(), version: 0, facts: facts.clone() });
    missing(store, DestroyRoom { room: nowhere, facts: facts.clone(), rows_max: ROOM_PART_ROWS });
    let (id, stanza) = (ArchiveId(1), || "<message/>".into());
    missing(store, ReplaceRoomMessage { room: nowhere, id, stanza: stanza(), facts: facts.clone() });
    assert!(ask(store, said(domain, nowhere, "hello")).is_err());
    let room = room(store, domain);
    assert!(matches!(ask(store, created(domain)), CreateRoomAnswer::Exists));
    missing(store, ReplaceRoomMessage { room, id, stanza: stanza(), facts });
    let silent = KeepRoomMessage { fact: None, ..said(domain, room, "nobody is told") };
    ask(store, silent).expect("the room is there");
    assert_eq!((told(store), told_after(store, 0, EventTypes::ALL).newest), (Vec::new(), 0));
}

/// That it was said is told all the same.
pub(super) fn of_messages_that_are_gone_tell_nothing_of_their_contents(store: &dyn Store) {
    let domain = domain(store);
    let room = room(store, domain);
    let first = ask(store, said(domain, room, "one")).expect("the room is there");
    done(store, EraseRoomArchive { room });
    let second = ask(store, said(domain, room, "two")).expect("the room is there");
    let texts = || told(store).into_iter().map(|(_, text)| text.is_some()).collect::<Vec<_>>();
    assert_eq!(actions(store), [message(first), message(second)]);
    assert_eq!(texts(), [false, true]);
    done(store, DestroyRoom { room, facts: Vec::new(), rows_max: ROOM_PART_ROWS });
    assert_eq!(actions(store), [message(first), message(second)]);
    assert_eq!(texts(), [false, false]);
}

pub(super) fn are_given_to_who_wants_them(store: &dyn Store) {
    let domain = domain(store);
    let other = domain_named(store, "other.example");
    let room = answer!(ask(store, created(domain)), CreateRoomAnswer::Created(record) => record.id);
    ask(store, said(domain, room, "hello")).expect("the room is there");
    let of = |domain, types| {
        let wanted = EventFilter { types, states: States::ALL };
        let answer = ask(store, Events { after: 0, domain, wanted, max: 99 });
        assert_eq!(answer.examined, answer.newest, "what is not wanted was examined, too");
        answer.events.len()
    };
    assert_eq!(of(None, EventTypes::NOTIFICATIONS), 0);
    assert_eq!(of(None, EventType::RoomCreated.into()), 1);
    assert_eq!(of(None, EventTypes::ALL), 2);
    assert_eq!((of(Some(domain), EventTypes::ALL), of(Some(other), EventTypes::ALL)), (2, 0));
}

pub(super) fn are_numbered_with_those_of_notifications(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    let room = room(store, domain);
    for n in 1..4 {
        stored(store, notification(domain, "alice", n));
        ask(store, said(domain, room, "hello")).expect("the room is there");
        assert!(end(store, vec![acknowledged(id(n))]).is_empty());
    }
    let answer = told_after(store, 0, EventTypes::ALL);
    let kinds: Vec<EventType> = answer.events.iter().map(|(_, event)| event.kind()).collect();
    assert_eq!(kinds, [EventType::RoomMessage, EventType::Notification].repeat(3));
    let numbers: Vec<u64> = answer.events.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, (numbers[0]..numbers[0] + 6).collect::<Vec<_>>());
    assert_eq!((answer.oldest, answer.newest, answer.examined), (numbers[0], numbers[5], numbers[5]));
}

pub(super) fn of_large_messages_come_in_pages(store: &dyn Store) {
    let domain = domain(store);
    let room = room(store, domain);
    let text = "x".repeat(EVENT_BYTES_MAX / 2);
    for _ in 0..5 {
        ask(store, said(domain, room, &text)).expect("the room is there");
    }
    let (mut pages, mut after) = (Vec::new(), 0);
    while pages.iter().sum::<usize>() < 5 {
        let answer = told_after(store, after, EventTypes::ALL);
        assert!(answer.examined > after, "it goes on");
        after = answer.examined;
        pages.push(answer.events.len());
    }
    assert_eq!(pages, [2, 2, 1]);
}

pub(super) fn go_with_their_domain(store: &dyn Store) {
    let (domain, other) = (domain(store), domain_named(store, "other.example"));
    for domain in [domain, other] {
        answer!(ask(store, created(domain)), CreateRoomAnswer::Created(_) => ());
    }
    done(store, delete_domain(other));
    let answer = told_after(store, 0, EventTypes::ALL);
    let of: Vec<_> = answer.events.iter().map(|(_, event)| event.is_of(domain, "example.org")).collect();
    assert_eq!(of, [true]);
}

pub(super) fn are_forgotten(store: &dyn Store) {
    let domain = domain(store);
    answer!(ask(store, created(domain)), CreateRoomAnswer::Created(_) => ());
    ask(store, Sweep { now: T.plus(10), forget: T.plus(5), max: 9 });
    assert_eq!(actions(store).len(), 1);
    ask(store, Sweep { now: T.plus(10), forget: T.plus(6), max: 9 });
    let answer = told_after(store, 0, EventTypes::ALL);
    assert_eq!((answer.events.len(), answer.oldest), (0, 0));
    assert!(answer.newest > 0, "no number is given twice");
}

pub(super) fn tell_that_members_are_removed(store: &dyn Store) {
    let domain = domain(store);
    let member =
        |local: &str, affiliation| RoomMember::new(jid(&format!("{local}@example.org")), affiliation);
    let members = vec![
        member("alice", RoomAffiliation::Owner),
        member("bob", RoomAffiliation::Outcast),
        member("carol", RoomAffiliation::Member),
    ];
    let quiet = CreateRoom { members, facts: Vec::new(), ..created(domain) };
    answer!(ask(store, quiet), CreateRoomAnswer::Created(_) => ());
    for local in ["alice", "bob", "carol"] {
        account(store, domain, local);
    }
    let remove = |local: &str| DeleteAccount {
        domain,
        local: local.into(),
        now: T.plus(7),
        held_until: T,
        rows_max: u32::MAX,
    };
    done(store, remove("carol"));
    assert_eq!(actions(store), [], "the domain has no such events");
    let policy = Policy { room_events: RoomEvents::Membership, ..Policy::default() };
    ask(store, PutDomain { name: "example.org".into(), policy });
    done(store, remove("bob"));
    assert_eq!(actions(store), [], "a ban stays");
    done(store, remove("alice"));
    let (account, was, is) = (jid("alice@example.org"), RoomAffiliation::Owner, RoomAffiliation::None);
    assert_eq!(actions(store), [RoomAction::Members(vec![RoomMemberFact { account, was, is }])]);
    let answer = told_after(store, 0, EventTypes::ALL);
    let (_, Event::Room(told, None)) = &answer.events[0] else { panic!("{answer:?}") };
    assert_eq!((&told.room, told.domain, told.at, &told.by), (&jid(ROOM), domain, T.plus(7), &None));
}
