//! Writes that are asked again: as they are where they are idempotent, with the id of their operation otherwise.

use super::ground::*;
use super::parked;
use super::webhooks;
use super::{archives, blocklists, links, nodes, private, rosters, vcards};
use carillon_core::model::*;
use carillon_core::ports::store::archive::*;
use carillon_core::ports::store::inbox::{ChangeConversation, EmptyBin};
use carillon_core::ports::store::keys::{ExpireKey, NoteKeyUse};
use carillon_core::ports::store::leases::{Lease, ReleaseLease, TakeLease};
use carillon_core::ports::store::links::{CreateLink, CreateLinkAnswer};
use carillon_core::ports::store::{OPERATION_KEPT_MS, Question, WriteAsk, accounts};
use carillon_core::ports::{Answer, Ask, Store};

fn operation(n: u128) -> OperationId {
    OperationId::new(T, n << 48)
}

fn said(store: &dyn Store, ask: Ask) -> Answer {
    let (sender, receiver) = std::sync::mpsc::channel();
    store.ask(ask, Box::new(move |answer| drop(sender.send(answer))));
    let answer = receiver.recv().expect("it is answered");
    assert!(!matches!(answer, Answer::Failed(_)), "{answer:?}");
    answer
}

/// What the writes are about: an account that follows a topic with an item, has a message, and notifications that wait, two
/// of them for their time.
struct Ground {
    domain: DomainId,
    news: TopicId,
    other: TopicId,
    key: KeyId,
    webhook: WebhookId,
}

fn ground(store: &dyn Store) -> Ground {
    let domain = domain(store);
    account(store, domain, "alice");
    let (news, other) = (topic(store, domain, "news"), topic(store, domain, "other"));
    subscribe(store, news, domain, "alice");
    publish(store, news, domain, "1", 10);
    stored(store, notification(domain, "alice", 1));
    let later = |n| Notification { send_at: Some(T.plus(10)), ..notification(domain, "alice", n) };
    stored(store, later(3));
    stored(store, Notification { audience: Audience::Active, ..later(4) });
    stored(store, Notification { expires: Some(T.plus(20)), ..notification(domain, "alice", 5) });
    done(store, offline(domain));
    let create = CreateKey {
        hash: [1; 32],
        name: "k".into(),
        domain: None,
        scopes: Scopes::of(&[Scope::Send]),
        expires: None,
        networks: Box::default(),
        certificates: Box::default(),
        node_keys_max: NODE_KEYS_MAX,
        now: T,
    };
    let key = answer!(ask(store, create), CreateKeyAnswer::Created(key) => key.id);
    assert_eq!(ask(store, reserve(key, "begun")), Reservation::Go { since: T });
    let webhook =
        answer!(ask(store, webhooks::create(Some(domain))), CreateWebhookAnswer::Created(made) => made.id);
    let claim = ClaimWebhooks { owner: 7, now: T, until: T.plus(1000), passed: Vec::new() };
    assert_eq!(ask(store, claim).len(), 1);
    Ground { domain, news, other, key, webhook }
}

fn offline(domain: DomainId) -> StoreOffline {
    StoreOffline {
        domain,
        local: "alice".into(),
        received: T,
        stanza: "<message/>".into(),
        expires: None,
        queue_max: 9,
        bytes_max: u64::MAX,
        wake: None,
    }
}

fn reserve(key: KeyId, name: &str) -> Reserve {
    Reserve { key, idempotency_key: name.into(), body_hash: [1; 32], kept_bytes_max: u64::MAX, now: T }
}

/// All that can be asked for, in words. What a reservation has come to cannot be asked for without making one.
fn state(store: &dyn Store, Ground { domain, news, other, .. }: &Ground) -> String {
    let domain = *domain;
    let mut text = format!("{:?}", domains(store));
    let everyone = Accounts { domain, after: None, limit: 99 };
    for enrolment in ask(store, everyone) {
        let local: Box<str> = enrolment.jid.local().expect("an account").into();
        let login = ask(store, accounts::Login { account: enrolment.id, parts: LoginParts::ALL, now: T });
        // Keys that are set again are a change, for all that they are the same.
        // What numbers changes may go on when one is done again that changes nothing.
        let login = login.map(|login| {
            let mut login = Login { generation: Generation::default(), ..*login };
            login.subscriptions.iter_mut().for_each(|subscription| subscription.revision = None);
            login
        });
        let page = Offline { domain, local: local.clone(), after: 0, page: page(99) };
        let identity = accounts::Identity { domain, local: local.clone() };
        text += &format!("{enrolment:?} {:?} {:?}", ask(store, identity), login);
        text += &format!("{:?} {:?}", waiting(store, domain, &local, T), ask(store, page));
        text += &format!("{:?}", rosters::record(store, domain, &local));
        text += &format!("{:?}", archives::whole(store, domain, &local));
        text += &format!("{:?}", ask(store, ReadArchivePreferences { domain, local: local.clone() }));
        text += &format!("{:?}", ask(store, SubscriptionsOf { domain, local }));
    }
    text += &format!("{:?}", ask(store, Topics { domain, after: None, limit: 99 }));
    for topic in [*news, *other] {
        text += &format!("{:?}", ask(store, Items::newest(topic, 99)));
        text += &format!("{:?}", ask(store, Subscribers { topic, after: None, limit: 99 }));
    }
    text += &links::state(store, domain);
    super::NOUNS.iter().for_each(|noun| text += &(noun.state)(store, domain));
    let listed = NotificationQuery {
        whose: Whose::Anyones,
        states: States::ALL,
        key: None,
        from: NotificationId(0),
        before: NotificationId(u128::MAX),
        limit: 99,
    };
    text += &format!("{:?} {:?}", ask(store, listed), ask(store, Keys { domain: None }));
    text += &format!("{:?}", parked::kept(store));
    text += &format!("{:?}", ask(store, Lease { name: "scale".into(), now: T }));
    for webhook in ask(store, Webhooks { domain: None }) {
        text += &format!("{webhook:?} {:?}", webhooks::letters(store, webhook.id));
    }
    text
}

fn fewer_items(topic: TopicId) -> ConfigureTopic {
    let config = TopicConfig { max_items: 5, ..TopicConfig::default() };
    ConfigureTopic { topic, config, items_max: u32::MAX }
}

/// One of every write, on the same ground: each is asked of a state in which it changes something.
fn every_write(store: &dyn Store, ground: &Ground) -> Vec<WriteAsk> {
    let Ground { domain, news, other, key, webhook } = *ground;
    let alice = || Box::<str>::from("alice");
    let seqs = ask(store, Offline { domain, local: alice(), after: 0, page: page(9) });
    let seqs = seqs.entries.iter().map(|message| message.seq).collect();
    let named = || Box::<str>::from("begun");
    let affiliations =
        vec![(jid("b@example.org"), Affiliation::Owner), (jid("a@example.org"), Affiliation::Member)];
    let policy = Policy { registration: true, ..Policy::default() };
    let asks: Vec<Ask> = vec![
        PutDomain { name: "new.example".into(), policy }.into(),
        ChangePolicy { name: "newer.example".into(), was: None, granted: policy, policy }.into(),
        create_account(domain, "bob").into(),
        ImportAccounts {
            domain,
            accounts: vec![ImportedAccount { local: "carol".into(), credentials: keys(5) }],
            now: T,
        }
        .into(),
        RevokeTokens { domain, local: alice(), agent: None }.into(),
        CreateTopic { affiliations, owned_max: 9, ..create_topic(domain, "new", TopicConfig::default()) }
            .into(),
        fewer_items(news).into(),
        SetAffiliations { topic: news, changes: vec![(jid("a@example.org"), Affiliation::Owner)] }.into(),
        Subscribe { topic: other, domain, local: alice(), max: 9, now: T }.into(),
        Unsubscribe { topic: news, domain, local: alice() }.into(),
        Publish { item: item(news, domain, "news", "2"), keep: 10, bytes_max: u64::MAX }.into(),
        Retract { topic: news, item: "1".into() }.into(),
        Purge { topic: news, items_max: u32::MAX }.into(),
        store_at(notification(domain, "alice", 2), T).into(),
        EndNotifications { changes: vec![acknowledged(id(1))] }.into(),
        CancelNotification { id: id(2), now: T.plus(5) }.into(),
        ClaimDue { now: T.plus(10), until: T.plus(30), page: page(9) }.into(),
        Sweep { now: T.plus(20), forget: UnixMs(0), max: 9 }.into(),
        offline(domain).into(),
        DeleteOffline { domain, local: alice(), seqs }.into(),
        create_key(domain).into(),
        reserve(key, "new").into(),
        NoteLines { key, idempotency_key: named(), lines: vec![LineDigest { number: 1, digest: 1 }], now: T }
            .into(),
        Release { key, idempotency_key: named() }.into(),
        Remember { key, idempotency_key: named(), response: "{}".into() }.into(),
        DeleteKey { id: key }.into(),
        webhooks::create(None).into(),
        UpdateWebhook { url: Some("https://b.example/".into()), ..webhooks::unchanged(webhook) }.into(),
        ClaimWebhooks { owner: 7, now: T, until: T.plus(2000), passed: vec![(webhook, 1)] }.into(),
        CommitWebhook {
            id: webhook,
            owner: 7,
            progress: WebhookProgress { cursor: 2, failures: 3, ..WebhookProgress::default() },
            is_gone: false,
            letters: vec![webhooks::letter(1), webhooks::letter(2)],
        }
        .into(),
        DeleteDeadLetters { webhook, events: vec![1] }.into(),
        DeleteWebhook { id: webhook }.into(),
        parked::keep(&parked::group(1, 10)).into(),
        ForgetParked.into(),
        SetCredentials { domain, local: alice(), credentials: keys(7) }.into(),
        SetAccountState { domain, local: alice(), state: AccountState::Disabled(T) }.into(),
        DeleteTopic { topic: other, rows_max: TOPIC_PART_ROWS }.into(),
        DeleteAccount { domain, local: alice(), now: T, held_until: T, rows_max: u32::MAX }.into(),
        delete_domain(domain).into(),
    ];
    let before =
        [writes_of_records(domain), writes_of_keys(), writes_of_leases(), links::every_write(domain)]
            .concat();
    let of_nouns = super::NOUNS.iter().flat_map(|noun| (noun.writes)(domain));
    before.into_iter().chain(of_nouns).chain(asks).map(write).collect()
}

fn create_key(domain: DomainId) -> CreateKey {
    CreateKey {
        hash: [2; 32],
        name: "new".into(),
        domain: Some(domain),
        scopes: Scopes::of(&[Scope::Send]),
        expires: None,
        networks: Box::default(),
        certificates: Box::default(),
        node_keys_max: NODE_KEYS_MAX,
        now: T,
    }
}

fn writes_of_keys() -> Vec<Ask> {
    let id = KeyId(1);
    vec![ExpireKey { id, expires: Some(T.plus(9)) }.into(), NoteKeyUse { id, at: T }.into()]
}

fn writes_of_leases() -> Vec<Ask> {
    let take = TakeLease { name: "scale".into(), holder: "a".into(), now: T, until: T.plus(10), state: None };
    vec![take.into(), ReleaseLease { name: "scale".into(), holder: "a".into() }.into()]
}

fn writes_of_records(domain: DomainId) -> Vec<Ask> {
    vec![
        NoteStored { domain, bytes: 9 }.into(),
        SetPushTemplates { domain, templates: None }.into(),
        rosters::put(domain, "alice", "bob@example.org", "Bob").into(),
        rosters::says(domain, "alice", "carol@example.org", SubscriptionAction::Subscribe).into(),
        rosters::remove(domain, "alice", "bob@example.org").into(),
        blocklists::edit(domain, "alice", blocklists::block(&["carol@example.org"])).into(),
        blocklists::edit(domain, "alice", BlockListEdit::UnblockAll).into(),
        blocklists::edit_lists(domain, blocklists::a_list("a", &["x.org"], None)).into(),
        nodes::edit(domain, "n", nodes::publish("a", "<x/>")).into(),
        nodes::together(domain, vec![nodes::publish("b", "<x/>"), nodes::publish("c", "<x/>")]).into(),
        nodes::edit(domain, "n", NodeEdit::Retract("a".into())).into(),
        nodes::edit(domain, "n", NodeEdit::Delete).into(),
        archives::message(domain, "alice", "bob", 1).into(),
        ChangeConversation {
            domain,
            local: "alice".into(),
            with: jid("bob@example.org"),
            change: ConversationChange { folder: Some(Folder::Bin), ..ConversationChange::default() },
        }
        .into(),
        EmptyBin { domain, local: "alice".into(), max: 9 }.into(),
        private::keep(domain, "alice", vec![private::element("a", "n", "<one/>")]).into(),
        vcards::keep(domain, "alice", "<one/>").into(),
        SetArchivePreferences {
            domain,
            local: "alice".into(),
            preferences: ArchivePreferences {
                default: ArchiveDefault::Never,
                ..ArchivePreferences::default()
            },
        }
        .into(),
        SweepArchives { now: T, after: AccountId(0), max: 100 }.into(),
        EraseArchive { domain, local: "alice".into() }.into(),
    ]
}

fn write(ask: Ask) -> WriteAsk {
    match ask {
        Ask::Write(ask) => ask,
        other => panic!("{other:?}"),
    }
}

pub(super) fn every_write_is_done_once(store: &dyn Store) {
    let ground = ground(store);
    let writes = every_write(store, &ground);
    let names: std::collections::BTreeSet<_> = writes.iter().map(WriteAsk::name).collect();
    assert_eq!(names, WriteAsk::names().collect(), "each write of the port is here");
    for (n, write) in writes.into_iter().enumerate() {
        let (name, ask) = (write.name(), Ask::Write(write).once(operation(n as u128)));
        let first = said(store, ask.clone());
        let after = state(store, &ground);
        let second = said(store, ask.clone());
        assert_eq!(state(store, &ground), after, "{name} was done twice");
        if StoreNotification::of(&ask).is_some() {
            assert_eq!(StoreNotification::answer(second), Ok(StoreNotificationAnswer::Known));
        } else if CreateLink::of(&ask).is_some() {
            let Ok(CreateLinkAnswer::Created(link)) = CreateLink::answer(first) else { panic!("{name}") };
            assert_eq!(CreateLink::answer(second), Ok(CreateLinkAnswer::Exists(link)));
        } else {
            assert_eq!(format!("{second:?}"), format!("{first:?}"), "{name}");
        }
    }
}

pub(super) fn with_another_id_it_is_done_again(store: &dyn Store) {
    let ground = ground(store);
    let publish =
        Publish { item: item(ground.news, ground.domain, "news", "2"), keep: 10, bytes_max: u64::MAX };
    let revision = |n| {
        let answer = said(store, Ask::from(publish.clone()).once(operation(n)));
        Publish::answer(answer).expect("it is published").expect("the topic is there").revision
    };
    let first = revision(1);
    let second = revision(2);
    assert!(first < second);
    assert_eq!((revision(1), revision(2)), (first, second));
    // Asked later it is the item of then.
    let later = Publish {
        item: Item { published: T.plus(5), ..publish.item.clone() },
        keep: 10,
        bytes_max: u64::MAX,
    };
    let answer = Publish::answer(said(store, Ask::from(later).once(operation(1))));
    let item = answer.expect("it is remembered").expect("the topic is there");
    assert_eq!((item.revision, item.published), (first, publish.item.published));
    // The id of one write is not that of another: nothing is done, and nothing is made up.
    let (sender, receiver) = std::sync::mpsc::channel();
    let delete = Ask::from(DeleteTopic { topic: ground.news, rows_max: TOPIC_PART_ROWS }).once(operation(1));
    store.ask(delete, Box::new(move |answer| drop(sender.send(answer))));
    assert!(matches!(receiver.recv(), Ok(Answer::Failed(Fault::Broken))));
    assert_eq!(item_ids(store, ground.news).len(), 2);
}

pub(super) fn is_forgotten_after_its_time(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    let ask = Ask::from(offline(domain)).once(operation(1));
    let count = || {
        said(store, ask.clone());
        super::ground::ask(store, Offline { domain, local: "alice".into(), after: 0, page: page(9) })
            .entries
            .len()
    };
    let sweep = |now| super::ground::ask(store, Sweep { now, forget: UnixMs(0), max: 9 }).more;
    assert_eq!(count(), 1);
    assert!(!sweep(T.plus(OPERATION_KEPT_MS)));
    assert_eq!(count(), 1);
    assert!(!sweep(T.plus(OPERATION_KEPT_MS + 1)));
    assert_eq!(count(), 2);
}
