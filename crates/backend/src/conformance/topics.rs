//! Topics.

use super::ground::*;
use carillon_core::model::*;
use carillon_core::ports::Store;

fn record(store: &dyn Store, domain: DomainId, name: &str) -> TopicRecord {
    let question = Topic { domain, name: name.into() };
    answer!(ask(store, question), Some(record) => *record)
}

fn unusual() -> TopicConfig {
    TopicConfig {
        title: "Nouvelles d'été".to_owned(),
        access_model: Access::Whitelist,
        publish_model: PublishModel::Open,
        max_items: 7,
        persist_items: true,
        send_last_published_item: SendLast::Never,
        notify_retract: false,
        notify_delete: false,
        deliver_payloads: false,
    }
}

pub(super) fn are_created_once(store: &dyn Store) {
    let domain = domain(store);
    let id = topic(store, domain, "news");
    answer!(ask(store, create_topic(domain, "news", unusual())), CreateTopicAnswer::Exists => ());
    assert_eq!(record(store, domain, "news").config.max_items, 10, "the first is as it was");
    let other = domain_named(store, "other.example");
    assert_ne!(topic(store, other, "news"), id, "each domain has its own names");
}

pub(super) fn need_a_domain(store: &dyn Store) {
    missing(store, create_topic(DomainId(9), "news", unusual()));
}

pub(super) fn are_described(store: &dyn Store) {
    let domain = domain(store);
    let affiliations =
        vec![(jid("zoe@example.org"), Affiliation::Owner), (jid("a@b.example"), Affiliation::Member)];
    let create =
        CreateTopic { domain, name: "news".into(), config: unusual(), affiliations, owned_max: 9, now: T };
    let made = answer!(ask(store, create), CreateTopicAnswer::Created(record) => *record);
    assert_eq!((made.domain, &*made.name, &made.config, made.created), (domain, "news", &unusual(), T));
    let sorted = [(jid("a@b.example"), Affiliation::Member), (jid("zoe@example.org"), Affiliation::Owner)];
    assert_eq!(made.affiliations, sorted);
    assert_eq!(record(store, domain, "news"), made);
    missing(store, Topic { domain, name: "News".into() });
    missing(store, Topic { domain: DomainId(99), name: "news".into() });
}

pub(super) fn are_listed_in_pages(store: &dyn Store) {
    let domain = domain(store);
    for name in ["b", "a", "c", "é", "a/b"] {
        topic(store, domain, name);
    }
    let changes = vec![(jid("zoe@example.org"), Affiliation::Owner)];
    done(store, SetAffiliations { topic: record(store, domain, "a/b").id, changes });
    let page = |after: Option<&str>, limit| {
        let question = Topics { domain, after: after.map(Box::from), limit };
        ask(store, question)
    };
    let names = |found: Vec<TopicRecord>| found.into_iter().map(|t| t.name).collect::<Vec<_>>();
    assert_eq!(names(page(None, 100)), ["a", "a/b", "b", "c", "é"].map(Box::from));
    assert_eq!(names(page(Some("a"), 2)), ["a/b", "b"].map(Box::from));
    assert!(page(Some("é"), 2).is_empty());
    assert_eq!(page(Some("a"), 1), [record(store, domain, "a/b")], "a listed topic is as it is described");
}

pub(super) fn are_configured(store: &dyn Store) {
    let domain = domain(store);
    let before = record_of_new(store, domain);
    done(store, ConfigureTopic { topic: before.id, config: unusual(), items_max: u32::MAX });
    assert_eq!(record(store, domain, "news"), TopicRecord { config: unusual(), ..before });
    missing(store, ConfigureTopic { topic: TopicId(999), config: unusual(), items_max: u32::MAX });
}

fn record_of_new(store: &dyn Store, domain: DomainId) -> TopicRecord {
    topic(store, domain, "news");
    record(store, domain, "news")
}

pub(super) fn lose_items_over_a_new_bound(store: &dyn Store) {
    let domain = domain(store);
    let news = topic(store, domain, "news");
    for n in 0..5 {
        publish(store, news, domain, &n.to_string(), 10);
    }
    let config = TopicConfig { max_items: 2, ..TopicConfig::default() };
    done(store, ConfigureTopic { topic: news, config: config.clone(), items_max: u32::MAX });
    assert_eq!(item_ids(store, news), ["4", "3"].map(Box::from));
    let larger = TopicConfig { max_items: 100, ..config };
    done(store, ConfigureTopic { topic: news, config: larger.clone(), items_max: u32::MAX });
    assert_eq!(item_ids(store, news), ["4", "3"].map(Box::from));
    let none = TopicConfig { persist_items: false, ..larger };
    done(store, ConfigureTopic { topic: news, config: none, items_max: u32::MAX });
    assert!(item_ids(store, news).is_empty(), "a topic that does not keep items has none");
}

pub(super) fn lose_items_over_a_new_bound_in_parts(store: &dyn Store) {
    let domain = domain(store);
    let news = topic(store, domain, "news");
    for n in 0..9 {
        publish(store, news, domain, &n.to_string(), 10);
    }
    let config = TopicConfig { max_items: 2, ..TopicConfig::default() };
    let part = ConfigureTopic { topic: news, config: config.clone(), items_max: 3 };
    while answer!(ask(store, part.clone()), Ok(more) => more) {
        assert_eq!(record(store, domain, "news").config, config, "it is another from the first part on");
    }
    assert_eq!(item_ids(store, news), ["8", "7"].map(Box::from));
}

pub(super) fn hold_affiliations_by_jid(store: &dyn Store) {
    let domain = domain(store);
    let news = topic(store, domain, "news");
    let set = |changes: &[(&str, Affiliation)]| {
        let changes = changes.iter().map(|(text, a)| (jid(text), *a)).collect();
        done(store, SetAffiliations { topic: news, changes });
    };
    set(&[("b@x.example", Affiliation::Owner), ("a@x.example", Affiliation::Outcast)]);
    set(&[("a.b@x.example", Affiliation::Member), ("b@x.example", Affiliation::Publisher)]);
    set(&[("nobody@x.example", Affiliation::None), ("x.example", Affiliation::Member)]);
    let found = record(store, domain, "news");
    let expected = [
        (jid("a.b@x.example"), Affiliation::Member),
        (jid("a@x.example"), Affiliation::Outcast),
        (jid("b@x.example"), Affiliation::Publisher),
        (jid("x.example"), Affiliation::Member),
    ];
    assert_eq!(found.affiliations, expected);
    assert_eq!(found.affiliation(&jid("b@x.example")), Affiliation::Publisher);
    set(&[("b@x.example", Affiliation::None)]);
    assert_eq!(record(store, domain, "news").affiliation(&jid("b@x.example")), Affiliation::None);
    missing(store, SetAffiliations { topic: TopicId(999), changes: Vec::new() });
}

pub(super) fn show_where_one_stands(store: &dyn Store) {
    let (domain, other) = (domain(store), domain_named(store, "other.example"));
    let changes = |a| vec![(jid("alice@example.org"), a)];
    for (name, affiliation) in [("z", Affiliation::Owner), ("a", Affiliation::Outcast)] {
        let topic = topic(store, domain, name);
        done(store, SetAffiliations { topic, changes: changes(affiliation) });
    }
    let elsewhere = topic(store, other, "m");
    done(store, SetAffiliations { topic: elsewhere, changes: changes(Affiliation::Member) });
    let of = |who: &str| {
        let question = AffiliationsOf { domain, jid: jid(who) };
        ask(store, question)
    };
    assert_eq!(
        of("alice@example.org"),
        [("a".into(), Affiliation::Outcast), ("z".into(), Affiliation::Owner)]
    );
    assert!(of("bob@example.org").is_empty());
}

pub(super) fn are_deleted_in_parts(store: &dyn Store) {
    let domain = domain(store);
    let news = topic(store, domain, "news");
    let mut changes = vec![(jid("owner@example.org"), Affiliation::Owner)];
    for n in 0..9 {
        let local = format!("u{n}");
        account(store, domain, &local);
        subscribe(store, news, domain, &local);
        publish(store, news, domain, &n.to_string(), 100);
        changes.push((jid(&format!("{local}@example.org")), Affiliation::Member));
    }
    done(store, SetAffiliations { topic: news, changes });
    let generation = |n: usize| login(store, domain, &format!("u{n}")).generation;
    let before: Vec<Generation> = (0..9).map(generation).collect();
    let part = DeleteTopic { topic: news, rows_max: 4 };
    while answer!(ask(store, part.clone()), Ok(more) => more) {
        // What is left is a topic that its owner can remove.
        let left = record(store, domain, "news");
        let owner = (jid("owner@example.org"), Affiliation::Owner);
        assert!(left.affiliations.contains(&owner), "{left:?}");
    }
    missing(store, part);
    missing(store, Topic { domain, name: "news".into() });
    for (n, before) in before.into_iter().enumerate() {
        assert!(generation(n) > before, "u{n} follows less");
        assert!(login(store, domain, &format!("u{n}")).subscriptions.is_empty());
    }
}

pub(super) fn are_deleted_with_all(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    let news = topic(store, domain, "news");
    subscribe(store, news, domain, "alice");
    publish(store, news, domain, "1", 10);
    let changes = vec![(jid("alice@example.org"), Affiliation::Owner)];
    done(store, SetAffiliations { topic: news, changes });
    done(store, DeleteTopic { topic: news, rows_max: TOPIC_PART_ROWS });
    missing(store, DeleteTopic { topic: news, rows_max: TOPIC_PART_ROWS });
    missing(store, Topic { domain, name: "news".into() });
    assert!(login(store, domain, "alice").subscriptions.is_empty());
    assert!(item_ids(store, news).is_empty());
    let again = topic(store, domain, "news");
    assert!(record(store, domain, "news").affiliations.is_empty());
    assert!(item_ids(store, again).is_empty());
}

pub(super) fn are_as_many_as_the_domain_may_have(store: &dyn Store) {
    let (domain, other) = (domain(store), domain_named(store, "other.example"));
    topic(store, other, "elsewhere");
    let policy = Policy { topics_max: 2, ..Policy::default() };
    ask(store, PutDomain { name: "example.org".into(), policy });
    let first = topic(store, domain, "one");
    topic(store, domain, "two");
    let create = |name: &str| ask(store, create_topic(domain, name, unusual()));
    answer!(create("three"), CreateTopicAnswer::DomainFull => ());
    answer!(create("two"), CreateTopicAnswer::Exists => ());
    missing(store, Topic { domain, name: "three".into() });
    done(store, DeleteTopic { topic: first, rows_max: TOPIC_PART_ROWS });
    answer!(create("three"), CreateTopicAnswer::Created(_) => ());
    let usage = ask(store, DomainUsage { domain });
    assert_eq!(usage, Some(Usage { accounts: 0, topics: 2, rooms: 0, keys: 0 }));
}

pub(super) fn are_bounded_for_their_owner(store: &dyn Store) {
    let domain = domain(store);
    let create = |name: &str, owner: &str| {
        let affiliations =
            vec![(jid(owner), Affiliation::Owner), (jid("m@example.org"), Affiliation::Member)];
        let question =
            CreateTopic { domain, name: name.into(), config: unusual(), affiliations, owned_max: 2, now: T };
        ask(store, question)
    };
    answer!(create("a", "alice@example.org"), CreateTopicAnswer::Created(_) => ());
    let second = answer!(create("b", "alice@example.org"), CreateTopicAnswer::Created(record) => record.id);
    answer!(create("c", "alice@example.org"), CreateTopicAnswer::Full => ());
    missing(store, Topic { domain, name: "c".into() });
    answer!(create("c", "bob@example.org"), CreateTopicAnswer::Created(_) => ());
    done(store, DeleteTopic { topic: second, rows_max: TOPIC_PART_ROWS });
    answer!(create("d", "alice@example.org"), CreateTopicAnswer::Created(_) => ());
}
