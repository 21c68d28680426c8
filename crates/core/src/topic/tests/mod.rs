//! The home of topics as a machine: a shard that is given operations, and a store that answers when it is told to.

mod event;
mod machine;
mod missed;

use crate::command::{Outcome, TopicOp, TopicOutcome};
use crate::message::{Pace, ShardMessage};
use crate::model::*;
use crate::ports::store::items::Publish;
use crate::ports::store::topics::{DeleteTopic, Topic};
use crate::ports::{Ask, Computed, Directory, Fault, Question};
use crate::settings::Settings;
use carillon_wire::jid::Jid;
use carillon_wire::stanza::Condition;
use machine::{Machine, configure, create, left, publish, result};

#[test]
fn operations_wait_for_a_topic_that_is_read() {
    let mut settings = Settings::default();
    settings.limits.topic_queue = 3;
    let mut machine = Machine::new(settings);
    let created = machine.begin("t", create());
    let items = [machine.begin("t", publish("a")), machine.begin("t", publish("b"))];
    let crowded = machine.begin("t", publish("c"));
    assert_eq!(result(&crowded).unwrap_err(), Condition::ResourceConstraint);
    assert_eq!(machine.asks().len(), 1, "one question reads it");
    machine.settle();
    assert!(matches!(result(&created), Ok(TopicOutcome::Record { created: true, .. })));
    assert!(items.iter().all(|item| matches!(result(item), Ok(TopicOutcome::Published(_)))));
    assert_eq!(machine.notices.iter().map(|n| left(n).unwrap()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(machine.world.counters(0).published, 2);
}

#[test]
fn publications_do_not_wait_for_each_other_and_changes_do() {
    let mut machine = Machine::new(Settings::default());
    machine.does("t", create()).unwrap();
    machine.begin("t", publish("a"));
    machine.begin("t", publish("b"));
    machine.begin("t", configure(|c| c.max_items = 7));
    machine.begin("t", publish("c"));
    let asked = |machine: &Machine| {
        machine
            .asks()
            .iter()
            .map(|ask| format!("{ask:?}").split([' ', '(']).nth(3).unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(asked(&machine), ["Publish", "Publish"]);
    machine.answer();
    assert_eq!(asked(&machine), ["Publish"]);
    machine.answer();
    assert_eq!(asked(&machine), ["ConfigureTopic"], "once all before are done");
    machine.answer();
    let Some(Publish { keep, .. }) = Publish::of(machine.asks()[0]) else { panic!("{:?}", machine.asks()) };
    assert_eq!(*keep, 7, "what comes behind a change is judged by it");
}

#[test]
fn a_read_sees_what_was_written_before_it_and_holds_nobody_up() {
    let mut machine = Machine::new(Settings::default());
    machine.does("t", create()).unwrap();
    machine.begin("t", publish("a"));
    let read = machine.begin(
        "t",
        TopicOp::Items { ids: Vec::new(), from: ItemsFrom::Newest, max: None, bytes_max: usize::MAX },
    );
    machine.begin("t", publish("b"));
    assert_eq!(machine.asks().len(), 1, "the read waits, and so does what came after it");
    machine.answer();
    assert_eq!(machine.asks().len(), 2, "then both go");
    machine.settle();
    let Ok(TopicOutcome::Items(items)) = result(&read) else { panic!() };
    assert_eq!(items.iter().map(|item| &*item.id).collect::<Vec<_>>(), ["a"]);
}

#[test]
fn nothing_is_told_of_a_topic_faster_than_its_followers_can_be() {
    let mut machine = Machine::new(Settings::default());
    let Ok(TopicOutcome::Record { record, .. }) = machine.does("t", create()) else { panic!() };
    machine.does("t", publish("a")).unwrap();
    let pace = |machine: &mut Machine, shard: u16, pace| {
        let message = ShardMessage::Pace {
            topic: record.id,
            place: Place { node: NodeId(0), shard: ShardId(shard) },
            pace,
        };
        machine.give(message);
    };
    pace(&mut machine, 0, Pace::Behind);
    pace(&mut machine, 1, Pace::Behind);
    let retract = TopicOp::Retract { id: "a".into(), notify: None };
    for op in [publish("b"), retract, TopicOp::Purge] {
        assert_eq!(machine.does("t", op).unwrap_err(), Condition::ResourceConstraint);
    }
    assert_eq!(machine.world.counters(0).too_fast, 3);
    machine.does("t", configure(|c| c.max_items = 3)).unwrap();
    machine.does("other", create()).unwrap();
    machine.does("other", publish("a")).unwrap();
    let stranger = machine.does_as("u@d/r", "t", publish("b")).unwrap_err();
    assert_eq!(stranger, Condition::Forbidden, "who may not publish is told so");
    pace(&mut machine, 1, Pace::CaughtUp);
    assert_eq!(machine.does("t", publish("b")).unwrap_err(), Condition::ResourceConstraint);
    pace(&mut machine, 0, Pace::CaughtUp);
    machine.does("t", publish("b")).unwrap();
}

#[test]
fn a_topic_that_is_deleted_is_gone_for_what_comes_behind() {
    let mut machine = Machine::new(Settings::default());
    machine.does("t", create()).unwrap();
    let delete = machine.begin("t", TopicOp::Delete);
    let late = machine.begin("t", publish("a"));
    let anew = machine.begin("t", create());
    let fresh = machine.begin("t", publish("b"));
    machine.settle();
    assert!(matches!(result(&delete), Ok(TopicOutcome::Done)));
    assert_eq!(result(&late).unwrap_err(), Condition::ItemNotFound, "a provider creates by creating");
    let Ok(TopicOutcome::Record { record, created: true }) = result(&anew) else { panic!() };
    let Ok(TopicOutcome::Published(item)) = result(&fresh) else { panic!() };
    assert_eq!(item.topic, record.id);
    assert!(machine.notices[0].is_end() && machine.notices[0].is_told());
    assert_ne!(machine.notices[0].topic(), machine.notices[1].topic());
    let silent = configure(|c| c.notify_delete = false);
    machine.does("t", silent).unwrap();
    machine.does("t", TopicOp::Delete).unwrap();
    let end = machine.notices.last().unwrap();
    assert!(end.is_end() && !end.is_told());
}

#[test]
fn what_logins_are_given_follows_every_change() {
    let mut machine = Machine::new(Settings::default());
    machine.does("t", create()).unwrap();
    machine.does("t", configure(|c| c.max_items = 3)).unwrap();
    assert!(machine.notices.is_empty(), "nothing to give, before and after");
    let retract = |id: &str| TopicOp::Retract { id: id.into(), notify: Some(false) };
    let quiet = |c: &mut TopicConfig| (c.max_items, c.send_last_published_item) = (3, SendLast::OnSub);
    let loud = |c: &mut TopicConfig| c.max_items = 3;
    let steps: Vec<(TopicOp, Option<Option<&str>>)> = vec![
        (publish("a"), Some(Some("a"))),
        (publish("b"), Some(Some("b"))),
        (retract("a"), None),
        (publish("c"), Some(Some("c"))),
        (retract("c"), Some(Some("b"))),
        (retract("b"), Some(None)),
        (publish("d"), Some(Some("d"))),
        (configure(quiet), Some(None)),
        (publish("e"), Some(Some("="))),
        (configure(loud), Some(Some("e"))),
        (TopicOp::Purge, Some(None)),
    ];
    for (op, expected) in steps {
        machine.notices.clear();
        let text = format!("{op:?}");
        machine.does("t", op).unwrap();
        let found = machine.notices.first().map(|event| left(event));
        assert_eq!(found, expected, "after {text}");
    }
    assert_eq!(machine.does("t", retract("e")).unwrap_err(), Condition::ItemNotFound);
}

#[test]
fn a_subscription_is_told_behind_what_was_published_before_it() {
    // Accounts whose home is the other shard.
    let account = |i: u32| carillon_wire::jid::BareJid::new(&format!("u{i}@d")).unwrap();
    let directory = Computed::alone(2);
    let there = (0..).map(account).find(|a| directory.home(a.as_str()).shard == ShardId(1)).unwrap();
    let mut machine = Machine::with_accounts(&[there.local().unwrap()]);
    machine.does("t", create()).unwrap();
    machine.begin("t", publish("a"));
    machine.begin("t", TopicOp::Subscribe { account: there.clone() });
    machine.settle();
    let [ShardMessage::Subscribed { account, last: Some(last), .. }] = &machine.messages[..] else {
        panic!("{:?}", machine.messages)
    };
    assert_eq!((account, last.names(), last.is_for_logins()), (&there, Some(("t", "a")), true));
    assert_eq!(machine.notices.len(), 1);
    machine.messages.clear();
    let again = machine.does("t", TopicOp::Subscribe { account: there.clone() });
    assert!(matches!(again, Ok(TopicOutcome::Subscribed { new: false })));
    assert!(machine.messages.is_empty(), "its home was told, with the last item");
    machine.does("t", TopicOp::Unsubscribe { account: there.clone() }).unwrap();
    assert!(matches!(&machine.messages[..], [ShardMessage::Unsubscribed { .. }]));
    let missing = machine.does("t", TopicOp::Unsubscribe { account: there });
    assert_eq!(missing.unwrap_err(), Condition::UnexpectedRequest);
    let stranger = carillon_wire::jid::BareJid::new("u@elsewhere").unwrap();
    let stranger = machine.does("t", TopicOp::Subscribe { account: stranger });
    assert_eq!(stranger.unwrap_err(), Condition::ItemNotFound);
}

#[test]
fn followers_may_publish_where_the_topic_says_so() {
    let mut machine = Machine::with_accounts(&["u"]);
    machine.does("t", create()).unwrap();
    machine.does("t", configure(|c| c.publish_model = PublishModel::Subscribers)).unwrap();
    assert_eq!(machine.does_as("u@d/r", "t", publish("a")).unwrap_err(), Condition::Forbidden);
    machine.begin_as("u@d/r", "t", TopicOp::Subscribe { account: Jid::new("u@d").unwrap().bare() });
    let published = machine.does_as("u@d/r", "t", publish("a"));
    let Ok(TopicOutcome::Published(item)) = published else { panic!("{published:?}") };
    assert_eq!(item.publisher.as_ref().map(carillon_wire::jid::BareJid::as_str), Some("u@d"));
}

#[test]
fn affiliations_are_bounded() {
    let mut settings = Settings::default();
    settings.limits.topic_affiliations = 2;
    let mut machine = Machine::new(settings);
    machine.does_as("o@d/r", "t", create()).unwrap();
    let set = |jids: &[(&str, Affiliation)]| TopicOp::SetAffiliations {
        changes: jids.iter().map(|(jid, a)| (Jid::new(jid).unwrap().bare(), *a)).collect(),
    };
    machine.does_as("o@d/r", "t", set(&[("a@d", Affiliation::Member)])).unwrap();
    let more = machine.does_as("o@d/r", "t", set(&[("b@d", Affiliation::Member)]));
    assert_eq!(more.unwrap_err(), Condition::PolicyViolation);
    let other = set(&[("a@d", Affiliation::None), ("b@d", Affiliation::Owner)]);
    machine.does_as("o@d/r", "t", other).unwrap();
    machine.does_as("b@d/r", "t", set(&[("o@d", Affiliation::None)])).unwrap();
    assert_eq!(machine.does_as("o@d/r", "t", TopicOp::Purge).unwrap_err(), Condition::Forbidden);
}

#[test]
fn a_store_that_fails_is_said_and_changes_nothing() {
    let mut machine = Machine::new(Settings::default());
    let created = machine.begin("t", create());
    machine.fail();
    assert!(matches!(created.try_recv(), Ok(Outcome::Unavailable)));
    machine.does("t", create()).unwrap();
    for op in [publish("a"), TopicOp::Delete, TopicOp::Purge, configure(|c| c.persist_items = false)] {
        let text = format!("{op:?}");
        let outcome = machine.begin("t", op);
        machine.fail();
        assert!(matches!(outcome.try_recv(), Ok(Outcome::Unavailable)), "{text}");
        assert!(matches!(machine.does("t", publish("b")), Ok(TopicOutcome::Published(_))), "after {text}");
    }
    // The topic vanishes behind the home's back: with its domain, say.
    let id = machine.notices[0].topic();
    machine.world.ask(DeleteTopic { topic: id, rows_max: u32::MAX }).unwrap();
    assert_eq!(machine.does("t", publish("c")).unwrap_err(), Condition::ItemNotFound);
    machine.does("t", create()).unwrap();
}

#[test]
fn after_a_write_that_is_unknown_the_store_is_right() {
    for is_done in [true, false] {
        let mut machine = Machine::with_accounts(&["u"]);
        let lose = |machine: &mut Machine| {
            while let Ask::Read(_) = machine.asks()[0] {
                machine.answer();
            }
            let write = machine.asks()[0].clone();
            if is_done {
                machine.world.disk.answer(&write);
            }
            assert!(machine.world.fail_oldest(Fault::Unknown));
        };
        let created = machine.begin("t", create());
        lose(&mut machine);
        assert!(matches!(created.try_recv(), Ok(Outcome::Unknown)));
        assert_eq!(machine.does("t", create()).err(), is_done.then_some(Condition::Conflict));
        let configured = machine.begin("t", configure(|c| c.access_model = Access::Whitelist));
        lose(&mut machine);
        assert!(matches!(configured.try_recv(), Ok(Outcome::Unknown)));
        let follows =
            machine.does_as("u@d/r", "t", TopicOp::Subscribe { account: Jid::new("u@d").unwrap().bare() });
        assert_eq!(
            follows.err(),
            is_done.then_some(Condition::NotAllowed),
            "by the configuration that there is"
        );
        let deleted = machine.begin("t", TopicOp::Delete);
        lose(&mut machine);
        assert!(matches!(deleted.try_recv(), Ok(Outcome::Unknown)));
        assert_eq!(machine.does("t", publish("a")).err(), is_done.then_some(Condition::ItemNotFound));
    }
}

/// One that is unknown is settled by the same operation, also when another was published meanwhile.
#[test]
fn an_operation_is_published_and_told_once() {
    for is_done in [true, false] {
        let mut machine = Machine::new(Settings::default());
        machine.does("t", create()).unwrap();
        let once = |n| match publish("once") {
            TopicOp::Publish { id, payload, .. } => {
                TopicOp::Publish { id, payload, operation: Some(OperationId(n)) }
            }
            other => panic!("{other:?}"),
        };
        let lost = machine.begin("t", once(1));
        let write = machine.asks()[0].clone();
        if is_done {
            machine.world.disk.answer(&write);
        }
        assert!(machine.world.fail_oldest(Fault::Unknown));
        assert!(matches!(lost.try_recv(), Ok(Outcome::Unknown)));
        machine.does("t", publish("other")).unwrap();
        let mut published = |n| match machine.does("t", once(n)).unwrap() {
            TopicOutcome::Published(item) => (item.revision, machine.notices.len()),
            other => panic!("{other:?}"),
        };
        let (first, told) = published(1);
        assert_eq!(
            (first < published(2).0, told),
            (true, 2),
            "told for the first time; done before: {is_done}"
        );
        assert_eq!(published(1), (first, 3), "only the other operation was told since");
    }
}

#[test]
fn topics_that_nobody_uses_are_forgotten() {
    let mut machine = Machine::new(Settings::default());
    machine.does("t", create()).unwrap();
    machine.begin("busy", create());
    for _ in 0..8 {
        machine.world.leap(10_000);
        machine.world.tick();
    }
    machine.settle();
    machine.begin("busy", publish("a"));
    assert!(asks::<Publish>(&mut machine), "it is known");
    machine.begin("t", publish("a"));
    assert!(asks::<Topic>(&mut machine), "it is read anew");
    assert_eq!(machine.does("none", TopicOp::Describe).unwrap_err(), Condition::ItemNotFound);
    machine.begin("none", TopicOp::Describe);
    assert!(asks::<Topic>(&mut machine), "what is not there is not kept");
}

/// Whether the oldest question to the store is of this type. It is answered then.
fn asks<Q: Question>(machine: &mut Machine) -> bool {
    let is_asked = machine.asks().first().is_some_and(|ask| Q::of(ask).is_some());
    machine.settle();
    is_asked
}
