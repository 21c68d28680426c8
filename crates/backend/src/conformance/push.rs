//! Registrations for push, and the pushes that wait.

use super::Noun;
use super::ground::*;
use carillon_core::model::*;
use carillon_core::ports::store::offline::{DeleteOffline, StoreOffline, StoreOfflineAnswer};
use carillon_core::ports::store::push::*;
use carillon_core::ports::store::rooms::{
    CreateRoom, CreateRoomAnswer, DestroyRoom, KeepRoomMessage, ROOM_PART_ROWS, RoomWake, SetRoomMembers,
};
use carillon_core::ports::{Ask, Page, Store};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(super) const NOUN: Noun = Noun {
    writes: |domain| {
        vec![
            Ask::from(enable(domain, "alice", "phone")),
            Ask::from(claiming(7, 0, &[])),
            Ask::from(CommitPushes { owner: 7, now: T, pushes: Vec::new() }),
            Ask::from(DisablePush { domain, local: "alice".into(), node: Some("tablet".into()) }),
        ]
    },
    state: |store, domain| format!("{:?}", of(store, domain, "alice")),
    write_lasting: |store, domain| {
        enabled(store, domain, "alice", "phone");
        message(store, domain, "alice", "bob", 1);
        message(store, domain, "alice", "carol", 2);
        // Whoever claims it is gone.
        assert_eq!(claim(store, 7, 1, &[]).len(), 1);
    },
    check_lasting: |store, domain| {
        assert_eq!(of(store, domain, "alice").len(), 1);
        // Some stores end claims when they are opened, and all at their time.
        let pushes = claim(store, 8, 200, &[]);
        assert_eq!(BTreeSet::from_iter(topics(&pushes)), BTreeSet::from(["m:bob", "m:carol"]));
    },
};

fn enable(domain: DomainId, local: &str, node: &str) -> EnablePush {
    let keys = WebPushKeys { endpoint: "https://push.example/1".into(), p256dh: [4; 65], auth: secret(16) };
    EnablePush {
        domain,
        local: local.into(),
        node: node.into(),
        channel: PushChannel::WebPush(keys),
        shown: PushShown::Whole,
        wakes: PushWakes::default(),
        rooms: Vec::new(),
        now: T,
        per_account_max: 3,
        per_room_max: 3,
    }
}

fn secret(length: usize) -> PushSecret {
    PushSecret(vec![9; length].into())
}

fn enabled(store: &dyn Store, domain: DomainId, local: &str, node: &str) -> PushRegistration {
    answer!(ask(store, enable(domain, local, node)), EnablePushAnswer::Enabled(made) => *made)
}

/// The registrations of an account.
fn of(store: &dyn Store, domain: DomainId, local: &str) -> Vec<PushRegistration> {
    let (domain, account) = (Some(domain), Some(local.into()));
    ask(store, ListRegistrations { domain, account, after: RegistrationId(0), max: 100 }).entries
}

fn wake(topic: &str, at: u64) -> Option<Wake> {
    Some(Wake { at: T.plus(at), topic: topic.into() })
}

/// Keeps a message for an account, which wakes it so many milliseconds after [`T`]; its number.
fn message(store: &dyn Store, domain: DomainId, local: &str, from: &str, at: u64) -> u64 {
    let question = StoreOffline {
        domain,
        local: local.into(),
        received: T.plus(at),
        stanza: format!("<message from='{from}'/>").into_bytes().into(),
        expires: None,
        queue_max: 100,
        bytes_max: u64::MAX,
        wake: wake(&format!("m:{from}"), at),
    };
    answer!(ask(store, question), StoreOfflineAnswer::Stored(seq) => seq)
}

/// At so many milliseconds after [`T`], for 100.
fn claiming(owner: u64, at: u64, held: &[PushId]) -> ClaimPushes {
    let page = Page { entries: 100, bytes: 1 << 20 };
    ClaimPushes { owner, now: T.plus(at), until: T.plus(at + 100), held: held.into(), page }
}

fn claim(store: &dyn Store, owner: u64, at: u64, held: &[PushId]) -> Vec<Push> {
    ask(store, claiming(owner, at, held))
}

fn topics(pushes: &[Push]) -> Vec<&str> {
    pushes.iter().map(|push| &*push.topic).collect()
}

fn commit(store: &dyn Store, owner: u64, at: u64, push: &Push, outcome: PushOutcome) {
    let pushes = vec![came(push, outcome)];
    ask(store, CommitPushes { owner, now: T.plus(at), pushes });
}

fn came(push: &Push, outcome: PushOutcome) -> PushCommit {
    let registration = &push.registration;
    PushCommit {
        id: push.id,
        version: push.version,
        registration: registration.id,
        registered: registration.created,
        domain: registration.domain,
        local: registration.account.local().unwrap_or_default().into(),
        outcome,
        step: None,
    }
}

/// What came of the push of a notification at so many milliseconds after [`T`].
fn came_at(push: &Push, at: u64, outcome: PushOutcome) -> PushCommit {
    let PushSubject::Notification(notification) = &push.subject else { panic!("it is a notification") };
    let (state, reason) = outcome.state().expect("a request was made");
    let step = PushStep {
        registration: push.registration.id,
        node: push.registration.node.clone(),
        kind: push.registration.channel.kind(),
        requests: 1,
        sent: T.plus(at - 1),
        answered: T.plus(at),
        state,
        reason: reason.map(Box::from),
    };
    PushCommit { step: Some(Box::new((notification.id, step))), ..came(push, outcome) }
}

fn failure(at: u64) -> PushFailure {
    PushFailure { at: T.plus(at), error: "503".into() }
}

pub(super) fn has_registrations_by_their_names(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    account(store, domain, "bob");
    assert_eq!(ask(store, enable(domain, "nobody", "phone")), EnablePushAnswer::NoAccount);
    let phone = enabled(store, domain, "alice", "phone");
    assert_eq!((&*phone.node, phone.account.as_str(), phone.domain), ("phone", "alice@example.org", domain));
    assert_eq!(phone.health, PushHealth::default());
    let web = PushChannel::Webhook { url: "https://a.example/".into(), secret: secret(32) };
    let other =
        EnablePush { channel: web.clone(), shown: PushShown::Nothing, ..enable(domain, "alice", "phone") };
    let again = answer!(ask(store, other), EnablePushAnswer::Enabled(made) => *made);
    assert_eq!((again.id, again.channel.clone(), again.shown), (phone.id, web, PushShown::Nothing));
    assert_eq!(ask(store, FindRegistration { id: phone.id }).as_deref(), Some(&again));
    for service in [AppService::Apns, AppService::Fcm] {
        let channel = PushChannel::App(AppToken { service, app: "chat".into(), token: secret(64) });
        ask(store, EnablePush { channel: channel.clone(), ..enable(domain, "alice", "phone") });
        let found = ask(store, FindRegistration { id: phone.id }).expect("it is there");
        assert_eq!((found.channel, found.health), (channel, PushHealth::default()));
    }
    let tablet = enabled(store, domain, "alice", "tablet");
    let desk = enabled(store, domain, "bob", "phone");
    let list = |domain, account: Option<&str>, after, max| {
        let account = account.map(Box::from);
        let (found, more) = both(ask(store, ListRegistrations { domain, account, after, max }));
        (found.iter().map(|one| one.id).collect::<Vec<_>>(), more)
    };
    let first = RegistrationId(0);
    assert_eq!(list(Some(domain), Some("alice"), first, 9), (vec![phone.id, tablet.id], false));
    assert_eq!(list(None, None, first, 2), (vec![phone.id, tablet.id], true));
    assert_eq!(list(Some(domain), None, tablet.id, 2), (vec![desk.id], false));
    assert_eq!(list(Some(DomainId(domain.0 + 1)), None, first, 2), (vec![], false));
    ask(store, DisablePush { domain, local: "alice".into(), node: Some("phone".into()) });
    assert_eq!(of(store, domain, "alice"), [tablet]);
    ask(store, DisablePush { domain, local: "alice".into(), node: None });
    ask(store, DisablePush { domain, local: "nobody".into(), node: None });
    assert_eq!((of(store, domain, "alice").len(), of(store, domain, "bob")), (0, vec![desk]));
    assert_eq!(ask(store, FindRegistration { id: phone.id }), None);
}

pub(super) fn has_so_many_registrations(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    for node in ["a", "b", "c", "a"] {
        enabled(store, domain, "alice", node);
    }
    assert_eq!(ask(store, enable(domain, "alice", "d")), EnablePushAnswer::TooMany);
    ask(store, DisablePush { domain, local: "alice".into(), node: Some("b".into()) });
    enabled(store, domain, "alice", "d");
    assert_eq!(ask(store, enable(domain, "alice", "e")), EnablePushAnswer::TooMany);
}

pub(super) fn comes_of_what_is_stored(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    // Nobody wants to be woken.
    message(store, domain, "alice", "bob", 1);
    assert_eq!(ask(store, NextPush), None);
    let phone = enabled(store, domain, "alice", "phone");
    message(store, domain, "alice", "bob", 20);
    let kept = notification(domain, "alice", 1);
    let question = StoreNotification { wake: wake("n:1", 10), ..store_at(kept.clone(), T) };
    answer!(ask(store, question), StoreNotificationAnswer::Stored { .. } => ());
    // One that wakes nobody.
    stored(store, notification(domain, "alice", 2));
    assert_eq!(ask(store, NextPush), Some(T.plus(10)));
    assert!(claim(store, 7, 9, &[]).is_empty());
    let first = claim(store, 7, 10, &[]);
    assert_eq!(topics(&first), ["n:1"]);
    assert_eq!(*first[0].registration, phone);
    assert_eq!(first[0].subject, PushSubject::Notification(kept.into()));
    let held = [first[0].id];
    let second = claim(store, 7, 20, &held);
    let PushSubject::Message { stanza, received } = &second[0].subject else { panic!("it is a message") };
    assert_eq!((&stanza[..], *received), (&b"<message from='bob'/>"[..], T.plus(20)));
    assert_eq!((second.len(), second[0].messages), (1, 2));
    // Many that are stored together.
    enabled(store, domain, "alice", "tablet");
    let asks = (0..40).map(|n| {
        let kept = notification(domain, "alice", 100 + n);
        Ask::from(StoreNotification { wake: wake(&format!("n:{n}"), 30), ..store_at(kept, T) })
    });
    let (stored, all) = std::sync::mpsc::channel();
    let reply = || {
        let stored = stored.clone();
        Box::new(move |_| {
            let _ = stored.send(());
        }) as carillon_core::ports::Reply<_>
    };
    let mut asks: Vec<_> = asks.map(|ask| (ask, reply())).collect();
    store.ask_all(&mut asks);
    drop((asks, stored));
    assert_eq!(all.iter().count(), 40);
    // All but the one that is held, at the phone.
    let mut held = [held[0], second[0].id];
    held.sort();
    assert_eq!(claim(store, 7, 30, &held).len(), 79);
}

pub(super) fn is_one_for_each_topic(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    enabled(store, domain, "alice", "phone");
    message(store, domain, "alice", "bob", 9);
    message(store, domain, "alice", "bob", 5);
    let newest = message(store, domain, "alice", "bob", 7);
    let claimed = claim(store, 7, 5, &[]);
    assert_eq!((topics(&claimed), claimed[0].messages), (vec!["m:bob"], 3));
    assert!(matches!(&claimed[0].subject, PushSubject::Message { received, .. } if *received == T.plus(7)));
    // Another one comes while it is sent: it is sent, too.
    message(store, domain, "alice", "bob", 8);
    commit(store, 7, 10, &claimed[0], PushOutcome::Taken { at: T.plus(10) });
    let again = claim(store, 7, 10, &[]);
    assert_eq!((again.len(), again[0].id, again[0].messages), (1, claimed[0].id, 4));
    commit(store, 7, 11, &again[0], PushOutcome::Taken { at: T.plus(11) });
    assert_eq!(ask(store, NextPush), None);
    assert_eq!(of(store, domain, "alice")[0].health.pushed, Some(T.plus(11)));
    assert!(newest > 0);
}

pub(super) fn is_of_what_waits(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    enabled(store, domain, "alice", "phone");
    let seq = message(store, domain, "alice", "bob", 1);
    let until = StoreOffline {
        domain,
        local: "alice".into(),
        received: T,
        stanza: "<message/>".into(),
        expires: Some(T.plus(5)),
        queue_max: 100,
        bytes_max: u64::MAX,
        wake: wake("m:carol", 1),
    };
    ask(store, until);
    let question =
        StoreNotification { wake: wake("n:1", 1), ..store_at(notification(domain, "alice", 1), T) };
    ask(store, question);
    let id = notification(domain, "alice", 1).id;
    ask(store, DeleteOffline { domain, local: "alice".into(), seqs: vec![seq] });
    end(store, vec![acknowledged(id)]);
    // All are over at that time.
    assert!(claim(store, 7, 5, &[]).is_empty());
    assert_eq!(ask(store, NextPush), None);
}

pub(super) fn are_hinted_at_where_there_are_registrations(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    let hints = Arc::new(AtomicUsize::new(0));
    let counted = hints.clone();
    let hinted = || hints.swap(0, Ordering::SeqCst) > 0;
    let are_hinted = store.hint_pushes(Arc::new(move || {
        counted.fetch_add(1, Ordering::SeqCst);
    }));
    message(store, domain, "alice", "bob", 1);
    enabled(store, domain, "alice", "phone");
    assert!(!hinted(), "nothing is to be pushed");
    message(store, domain, "alice", "bob", 2);
    assert_eq!(hinted(), are_hinted);
    ask(store, StoreNotification { wake: wake("n:1", 9), ..store_at(notification(domain, "alice", 1), T) });
    assert_eq!(hinted(), are_hinted);
    let claimed = claim(store, 7, 2, &[]);
    let failed = PushOutcome::Failed { next: T.plus(500), failures: 1, failure: failure(2) };
    commit(store, 7, 2, &claimed[0], failed);
    assert!(!hinted(), "whoever claimed it knows");
    enabled(store, domain, "alice", "phone");
    assert_eq!(hinted(), are_hinted, "made anew, it is tried at once");
}

pub(super) fn is_one_owners_until_the_claim_ends(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    enabled(store, domain, "alice", "phone");
    message(store, domain, "alice", "bob", 1);
    let claimed = claim(store, 7, 1, &[]);
    assert_eq!(claimed.len(), 1);
    assert!(claim(store, 8, 50, &[]).is_empty());
    // The answer was lost: it is given again.
    assert_eq!(claim(store, 7, 50, &[]), claimed);
    assert!(claim(store, 7, 50, &[claimed[0].id]).is_empty());
    assert_eq!(ask(store, NextPush), Some(T.plus(150)));
    assert_eq!(claim(store, 8, 150, &[]).len(), 1);
    // What the first says of it does not count any more.
    commit(store, 7, 160, &claimed[0], PushOutcome::Gone);
    assert_eq!(of(store, domain, "alice").len(), 1);
    commit(store, 8, 160, &claimed[0], PushOutcome::Taken { at: T.plus(160) });
    assert_eq!(ask(store, NextPush), None);
}

pub(super) fn comes_in_pages(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    enabled(store, domain, "alice", "phone");
    for n in 1..=5 {
        message(store, domain, "alice", &format!("b{n}"), n);
    }
    let page = |entries, bytes| ClaimPushes { page: Page { entries, bytes }, ..claiming(7, 9, &[]) };
    assert_eq!(topics(&ask(store, page(2, 1 << 20))), ["m:b1", "m:b2"]);
    assert_eq!(ask(store, ClaimPushes { owner: 8, ..page(9, 1) }).len(), 1);
    assert_eq!(topics(&ask(store, ClaimPushes { owner: 9, ..page(9, 1 << 20) })), ["m:b4", "m:b5"]);
}

pub(super) fn that_fails_is_tried_again(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    enabled(store, domain, "alice", "phone");
    message(store, domain, "alice", "bob", 1);
    let claimed = claim(store, 7, 1, &[]);
    let failed = PushOutcome::Failed { next: T.plus(500), failures: 3, failure: failure(2) };
    commit(store, 7, 2, &claimed[0], failed);
    let health = of(store, domain, "alice")[0].health.clone();
    assert_eq!(health, PushHealth { pushed: None, failures: 3, last_failure: Some(failure(2)) });
    // What comes meanwhile is for the same time.
    message(store, domain, "alice", "bob", 3);
    assert_eq!(ask(store, NextPush), Some(T.plus(500)));
    let claimed = claim(store, 7, 500, &[]);
    commit(store, 7, 501, &claimed[0], PushOutcome::Postponed { next: T.plus(600) });
    assert_eq!(of(store, domain, "alice")[0].health, health);
    // Made anew, it is tried at once.
    assert_eq!(enabled(store, domain, "alice", "phone").health, PushHealth::default());
    let claimed = claim(store, 7, 0, &[]);
    assert_eq!(claimed.len(), 1);
    commit(store, 7, 5, &claimed[0], PushOutcome::Refused { failures: 1, failure: failure(5) });
    assert_eq!(ask(store, NextPush), None);
    assert_eq!(of(store, domain, "alice")[0].health.failures, 1);
    message(store, domain, "alice", "bob", 6);
    let claimed = claim(store, 7, 6, &[]);
    commit(store, 7, 7, &claimed[0], PushOutcome::Taken { at: T.plus(7) });
    let health = of(store, domain, "alice")[0].health.clone();
    assert_eq!(health, PushHealth { pushed: Some(T.plus(7)), ..PushHealth::default() });
}

pub(super) fn is_a_step_of_the_trace_of_its_notification(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    let nodes = ["desk", "phone", "tablet"].map(|node| enabled(store, domain, "alice", node));
    let kept = notification(domain, "alice", 1);
    ask(store, StoreNotification { wake: wake("n:1", 1), ..store_at(kept.clone(), T) });
    let steps = || ask(store, PushSteps { id: kept.id });
    assert_eq!(steps(), []);
    let claimed = claim(store, 7, 1, &[]);
    let to = |number: usize| {
        let found = claimed.iter().find(|push| push.registration.id == nodes[number].id);
        found.expect("it was claimed")
    };
    let failed = |at, next| PushOutcome::Failed { next: T.plus(next), failures: 1, failure: failure(at) };
    let refused = PushOutcome::Refused { failures: 1, failure: failure(5) };
    let pushes = vec![
        came_at(to(0), 5, refused),
        came_at(to(1), 6, failed(6, 50)),
        came_at(to(2), 7, PushOutcome::Gone),
    ];
    // What somebody else has claimed changes nothing.
    ask(store, CommitPushes { owner: 8, now: T.plus(9), pushes: pushes.clone() });
    assert_eq!(steps(), []);
    ask(store, CommitPushes { owner: 7, now: T.plus(9), pushes: pushes.clone() });
    let expected: Vec<PushStep> = pushes.iter().map(|push| push.step.clone().expect("a step").1).collect();
    assert_eq!(steps(), expected, "those of registrations that have ended, too");
    // An answer that was lost is asked for again, and counts once.
    ask(store, CommitPushes { owner: 7, now: T.plus(9), pushes });
    assert_eq!(steps(), expected);
    let again = claim(store, 7, 50, &[]);
    assert_eq!(again.len(), 1);
    // It ended meanwhile: its trace is what has the steps.
    end(store, vec![acknowledged(kept.id)]);
    let taken = came_at(&again[0], 60, PushOutcome::Taken { at: T.plus(60) });
    ask(store, CommitPushes { owner: 7, now: T.plus(60), pushes: vec![taken] });
    let phone = &steps()[1];
    assert_eq!((phone.requests, phone.state, phone.reason.clone()), (2, PushState::Taken, None));
    assert_eq!((phone.sent, phone.answered), (T.plus(59), T.plus(60)));
    // They are forgotten with it, and what comes then has nothing to be added to.
    ask(store, StoreNotification { wake: wake("n:2", 70), ..store_at(notification(domain, "alice", 2), T) });
    let late = claim(store, 7, 70, &[]);
    ask(store, Sweep { now: T.plus(2000), forget: T.plus(1001), max: 9 });
    assert_eq!(steps(), []);
    let mut late = came_at(&late[0], 80, PushOutcome::Taken { at: T.plus(80) });
    late.step.as_mut().expect("a step").0 = kept.id;
    ask(store, CommitPushes { owner: 7, now: T.plus(80), pushes: vec![late] });
    assert_eq!(steps(), []);
}

pub(super) fn comes_of_what_its_app_wants(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    let only = |on| {
        let wakes = PushWakes::from_iter([on]);
        let enable = EnablePush { wakes, ..enable(domain, "alice", on.as_str()) };
        let made = answer!(ask(store, enable), EnablePushAnswer::Enabled(made) => *made);
        assert_eq!((made.wakes, made.wakes.iter().collect::<Vec<_>>()), (wakes, vec![on]));
        made
    };
    let [notifications, messages, mentions] = WakesOn::ALL.map(only);
    let room = room_of(store, domain, &["bob", "alice"]);
    message(store, domain, "alice", "bob", 1);
    ask(store, StoreNotification { wake: wake("n:1", 1), ..store_at(notification(domain, "alice", 1), T) });
    let kept = mention(store, domain, room, "alice", 1);
    let mut claimed = claim(store, 7, 1, &[]);
    claimed.sort_by_key(|push| push.registration.id);
    let told: Vec<_> = claimed.iter().map(|push| (push.registration.id, &*push.topic)).collect();
    assert_eq!(told, [(notifications.id, "n:1"), (messages.id, "m:bob"), (mentions.id, "r:tea")]);
    let PushSubject::Message { stanza, received } = &claimed[2].subject else { panic!("it is a message") };
    assert_eq!((&stanza[..], *received), (&b"<message from='tea@rooms.example.org/bob'/>"[..], T.plus(1)));
    for push in &claimed {
        commit(store, 7, 2, push, PushOutcome::Taken { at: T.plus(2) });
    }
    // The newest takes the place of the one that waits; what was read, or is not the member's any more, is not pushed.
    mention(store, domain, room, "alice", 3);
    let newest = mention(store, domain, room, "alice", 4);
    assert!(newest > kept);
    let claimed = claim(store, 7, 4, &[]);
    assert_eq!((claimed.len(), claimed[0].version), (1, 2));
    commit(store, 7, 4, &claimed[0], PushOutcome::Postponed { next: T.plus(5) });
    let seen = KeepRoomMessage {
        entry: RoomEntry::Other,
        displayed: Some(newest.0.to_string().into()),
        ..in_room(room, "alice", 5)
    };
    ask(store, seen).expect("the room is there");
    assert!(claim(store, 7, 5, &[]).is_empty());
    mention(store, domain, room, "alice", 6);
    mention(store, domain, room, "nobody", 6);
    let out = RoomMember::new(jid("alice@example.org"), RoomAffiliation::Outcast);
    ask(store, SetRoomMembers { room, changes: vec![out], version: 0, facts: Vec::new() })
        .expect("the room is there");
    assert!(claim(store, 7, 6, &[]).is_empty());
    assert_eq!(ask(store, NextPush), None);
}

fn room_of(store: &dyn Store, domain: DomainId, members: &[&str]) -> RoomId {
    let member =
        |local: &&str| RoomMember::new(jid(&format!("{local}@example.org")), RoomAffiliation::Member);
    let create = CreateRoom {
        domain,
        kind: RoomKind::Muc,
        name: "tea".into(),
        config: RoomConfig::default(),
        members: members.iter().map(member).collect(),
        owned_max: 10,
        rooms_max: 10,
        now: T,
        facts: Vec::new(),
    };
    answer!(ask(store, create), CreateRoomAnswer::Created(record) => record.id)
}

fn in_room(room: RoomId, sender: &str, at: u64) -> KeepRoomMessage {
    KeepRoomMessage {
        room,
        received: T.plus(at),
        sender: jid(&format!("{sender}@example.org")),
        stanza: format!("<message from='tea@rooms.example.org/{sender}'/>").into(),
        entry: RoomEntry::Counted,
        displayed: None,
        wake: None,
        listeners: None,
        fact: None,
    }
}

/// Bob mentions somebody in a room.
fn mention(store: &dyn Store, domain: DomainId, room: RoomId, local: &str, at: u64) -> ArchiveId {
    let wake = wake("r:tea", at).expect("it wakes");
    let wake = RoomWake { domain, mentioned: vec![local.into()], wake };
    ask(store, KeepRoomMessage { wake: Some(wake.into()), ..in_room(room, "bob", at) })
        .expect("the room is there")
}

/// Bob says something in a room, which wakes those who want every message of it; its number.
fn say(store: &dyn Store, room: RoomId, sender: &str, at: u64) -> ArchiveId {
    let said = KeepRoomMessage { listeners: Some(T.plus(at)), ..in_room(room, sender, at) };
    ask(store, said).expect("the room is there")
}

/// A registration that wants every message of rooms.
fn listening(domain: DomainId, local: &str, node: &str, rooms: &[&str]) -> EnablePush {
    let rooms = rooms.iter().map(|name| (RoomKind::Muc, Box::from(*name))).collect();
    EnablePush { rooms, wakes: PushWakes::from_iter([]), ..enable(domain, local, node) }
}

pub(super) fn comes_of_every_message_of_a_room_that_its_app_wants(store: &dyn Store) {
    let domain = domain(store);
    for local in ["alice", "bob", "carol"] {
        account(store, domain, local);
    }
    let room = room_of(store, domain, &["bob", "alice"]);
    let wants = |local, node, rooms| ask(store, listening(domain, local, node, rooms));
    assert_eq!(wants("alice", "phone", &["tea", "coffee"]), EnablePushAnswer::NotInRoom(1));
    assert_eq!(wants("carol", "phone", &["tea"]), EnablePushAnswer::NotInRoom(0), "she is no member");
    assert_eq!(of(store, domain, "alice"), [], "nothing is made of what is refused");
    let phone = answer!(wants("alice", "phone", &["tea", "tea"]), EnablePushAnswer::Enabled(made) => *made);
    assert_eq!(phone.rooms, ["tea@rooms.example.org".into()] as [Box<str>; 1]);
    assert_eq!(of(store, domain, "alice"), std::slice::from_ref(&phone));
    answer!(wants("bob", "phone", &["tea"]), EnablePushAnswer::Enabled(_) => ());
    enabled(store, domain, "alice", "tablet");
    // Bob, who says it, is not woken, nor is an app that does not want it. The newest takes the place of the one that waits.
    say(store, room, "bob", 1);
    let newest = say(store, room, "bob", 2);
    let claimed = claim(store, 7, 2, &[]);
    assert_eq!(claimed.len(), 1);
    let push = &claimed[0];
    assert_eq!((push.registration.id, push.version, &*push.topic), (phone.id, 2, "r:tea@rooms.example.org"));
    assert_eq!(push.room(), Some((jid("tea@rooms.example.org"), T.plus(2))));
    // What a session has is over, unless something newer was said meanwhile. Nothing is noted of it.
    say(store, room, "bob", 3);
    commit(store, 7, 4, push, PushOutcome::Over);
    let again = claim(store, 7, 4, &[]);
    assert_eq!((again.len(), again[0].version), (1, 3));
    commit(store, 7, 5, &again[0], PushOutcome::Over);
    assert_eq!((ask(store, NextPush), of(store, domain, "alice")[0].health.pushed), (None, None));
    // What was read is not pushed.
    let last = say(store, room, "bob", 6);
    assert!(last > newest);
    say(store, room, "alice", 7);
    assert_eq!(
        claim(store, 7, 7, &[]).iter().map(|push| push.registration.account.clone()).collect::<Vec<_>>(),
        [jid("bob@example.org")]
    );
    leaves_a_room_with_its_account(store, domain, room);
}

pub(super) fn is_of_a_room_for_so_many_that_want_all_of_it(store: &dyn Store) {
    let domain = domain(store);
    for local in ["alice", "bob"] {
        account(store, domain, local);
    }
    room_of(store, domain, &["bob", "alice"]);
    let wants = |local, node| ask(store, listening(domain, local, node, &["tea"]));
    for node in ["phone", "tablet", "watch", "phone"] {
        answer!(wants("alice", node), EnablePushAnswer::Enabled(_) => ());
    }
    assert_eq!(wants("bob", "phone"), EnablePushAnswer::RoomFull(0), "one that is made anew counts once");
    assert_eq!(of(store, domain, "bob"), []);
    ask(store, DisablePush { domain, local: "alice".into(), node: Some("watch".into()) });
    answer!(wants("bob", "phone"), EnablePushAnswer::Enabled(_) => ());
}

/// Who is not listed any more is not woken, nor whose room is gone; and a registration that is made anew wants what it says then.
fn leaves_a_room_with_its_account(store: &dyn Store, domain: DomainId, room: RoomId) {
    let rooms = |local| of(store, domain, local).iter().map(|of| of.rooms.len()).collect::<Vec<_>>();
    let set = |change| {
        let set = SetRoomMembers { room, changes: vec![change], version: 0, facts: Vec::new() };
        ask(store, set).expect("the room is there");
    };
    set(RoomMember::new(jid("alice@example.org"), RoomAffiliation::Outcast));
    assert_eq!((rooms("alice"), rooms("bob")), (vec![0, 0], vec![1]));
    set(RoomMember::new(jid("alice@example.org"), RoomAffiliation::Member));
    answer!(ask(store, listening(domain, "alice", "phone", &["tea"])), EnablePushAnswer::Enabled(_) => ());
    set(RoomMember::new(jid("alice@example.org"), RoomAffiliation::None));
    assert_eq!(rooms("alice"), [0, 0]);
    ask(store, enable(domain, "bob", "phone"));
    assert_eq!(rooms("bob"), [0]);
    ask(store, listening(domain, "bob", "phone", &["tea"]));
    let gone = DestroyRoom { room, facts: Vec::new(), rows_max: ROOM_PART_ROWS };
    assert_eq!(ask(store, gone), Ok(false), "the room is there, and all of it goes");
    assert_eq!(rooms("bob"), [0]);
    // An app that ends, and an account that is removed, want nothing any more.
    let room = room_of(store, domain, &["bob", "carol"]);
    ["bob", "carol"].iter().for_each(|local| {
        answer!(ask(store, listening(domain, local, "phone", &["tea"])), EnablePushAnswer::Enabled(_) => ());
    });
    ask(store, DisablePush { domain, local: "bob".into(), node: None });
    done(store, DeleteAccount { domain, local: "carol".into(), now: T, held_until: T, rows_max: u32::MAX });
    say(store, room, "nobody", 9);
    assert_eq!(ask(store, NextPush), None);
}

pub(super) fn ends_with_its_registration(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    enabled(store, domain, "alice", "phone");
    enabled(store, domain, "alice", "tablet");
    message(store, domain, "alice", "bob", 1);
    message(store, domain, "alice", "carol", 1);
    let claimed = claim(store, 7, 1, &[]);
    assert_eq!(claimed.len(), 4);
    // It was made anew while its app was found to be gone: that was said of the one before.
    let node = claimed[0].registration.node.clone();
    ask(store, EnablePush { now: T.plus(2), ..enable(domain, "alice", &node) });
    commit(store, 7, 2, &claimed[0], PushOutcome::Gone);
    assert_eq!(of(store, domain, "alice").len(), 2);
    let again = claim(
        store,
        7,
        2,
        &claimed[1..].iter().map(|push| push.id).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>(),
    );
    assert_eq!((again.len(), again[0].id, again[0].registration.created), (1, claimed[0].id, T.plus(2)));
    commit(store, 7, 2, &again[0], PushOutcome::Gone);
    assert_eq!(of(store, domain, "alice").len(), 1);
    assert_eq!(claim(store, 7, 200, &[]).len(), 2);
    ask(store, DisablePush { domain, local: "alice".into(), node: None });
    assert_eq!(ask(store, NextPush), None);
    message(store, domain, "alice", "bob", 3);
    assert_eq!(ask(store, NextPush), None);
}

pub(super) fn goes_with_its_account_and_its_domain(store: &dyn Store) {
    let domain = domain(store);
    for local in ["alice", "bob"] {
        account(store, domain, local);
        enabled(store, domain, local, "phone");
        message(store, domain, local, "carol", 1);
    }
    done(store, DeleteAccount { domain, local: "alice".into(), now: T, held_until: T, rows_max: u32::MAX });
    assert_eq!(claim(store, 7, 1, &[]).len(), 1);
    while ask(store, delete_domain(domain)).expect("it is there").more {}
    assert_eq!(ask(store, NextPush), None);
    let all = ListRegistrations { domain: None, account: None, after: RegistrationId(0), max: 9 };
    assert_eq!(ask(store, all).entries, []);
}
