//! Light connections as a client sees them.

mod rig;

use crate::Input;
use crate::command::TopicOp;
use crate::light::Ended;
use crate::machine::{Handed, ShardMachine};
use crate::model::*;
use crate::ports::Computed;
use crate::settings::{Limits, Rates, Settings};
use crate::shard::Member;
use crate::{Effect, Effects};
use rig::{OPENING, Rig, domains, publish};
use std::sync::Arc;

fn item(topic: &str, event: &str, id: &str, data: &str) -> String {
    format!(
        "PUBLISH {{\"topic\":\"{topic}\",\"event\":\"{event}\",\"message_id\":\"{id}\",\"data\":{data}}};"
    )
}

fn error(code: &str) -> String {
    format!("{{\"error\":\"{code}\",\"message\":\"")
}

fn configured(change: impl FnOnce(&mut TopicConfig)) -> TopicOp {
    let mut config = TopicConfig::default();
    change(&mut config);
    TopicOp::Put { config }
}

#[test]
fn a_conversation() {
    let mut rig = Rig::with_topic();
    let ann = rig.following(0, &["t"]);
    rig.send(ann, "PING\0");
    assert_eq!(rig.got(ann), "PONG;");
    rig.publish("t", "i1", "{\"n\": 1}");
    assert_eq!(rig.got(ann), item("t", "publish", "i1", "{\"n\": 1}"));
    rig.unsubscribe(ann, "t");
    assert_eq!(rig.got(ann), "ACK;");
    rig.publish("t", "i2", "2");
    assert_eq!(rig.got(ann), "");
    rig.subscribe(ann, "t");
    rig.settle();
    assert_eq!(rig.got(ann), format!("ACK;{}", item("t", "last", "i2", "2")));
    assert_eq!((rig.counters(0).light, rig.counters(0).connections, rig.counters(0).sessions), (1, 1, 0));
    assert_eq!(rig.counters(0).deliveries, 2);
    rig.lose(ann);
    assert_eq!((rig.counters(0).light, rig.counters(0).connections), (0, 0));
    rig.publish("t", "i3", "3");
}

#[test]
fn a_question_that_was_lost_with_the_home_of_its_topic_is_asked_again() {
    let mut rig = Rig::with_topic();
    let home = rig.world.home(&topic_address("t", "d"));
    let (ann, bob) = (rig.opened(1 - home), rig.opened(1 - home));
    rig.subscribe(ann, "t");
    drop(rig.world.take_posts(1 - home, home));
    rig.subscribe(bob, "t");
    rig.settle();
    assert!(rig.is_paused(ann) && rig.is_paused(bob));
    rig.every_shard(|| Input::Directory(Arc::new(Computed::alone(2))));
    rig.settle();
    for client in [ann, bob] {
        assert_eq!(rig.got(client), "ACK;");
    }
    rig.publish("t", "i1", "1");
    assert_eq!(rig.got(ann), item("t", "publish", "i1", "1"));
}

#[test]
fn bytes_may_come_in_any_pieces() {
    let mut rig = Rig::with_topic();
    let all = [OPENING, "PING\0{\"action\":\"subscribe\",\"data\":\"t\"}\0PING\0"].concat();
    let ann = rig.connect(0);
    for byte in all.bytes() {
        while rig.is_paused(ann) {
            rig.settle();
        }
        rig.send(ann, [byte]);
    }
    let bob = rig.connect(1);
    rig.send(bob, &all);
    let before = rig.got(bob);
    assert!(before.ends_with("};PONG;"), "what is behind a subscription waits: {before}");
    rig.settle();
    assert_eq!(rig.got(bob), "ACK;PONG;");
    assert!(rig.got(ann).ends_with("};PONG;ACK;PONG;"));
}

#[test]
fn violations_end_the_connection() {
    let long = ["x".repeat(4097), "\0".to_owned()].concat();
    let whole: [(&[u8], &str); 8] = [
        (b"hello\0", "bad-json"),
        (b"\0", "bad-json"),
        (b"\xff\0", "bad-utf8"),
        (b"[1]\0", "bad-request"),
        (b"{\"action\":\"publish\",\"data\":\"t\"}\0", "unknown-action"),
        (b"<regular-socket/>\0", "bad-json"),
        (long.as_bytes(), "frame-too-large"),
        (&long.as_bytes()[..4097], "frame-too-large"),
    ];
    for (bytes, code) in whole {
        let mut rig = Rig::with_topic();
        let (ann, bob) = (rig.following(0, &["t"]), rig.following(0, &["t"]));
        rig.send(ann, [bytes, b"PING\0"].concat());
        let got = rig.got(ann);
        assert!(got.starts_with(&error(code)) && got.ends_with("\"};") && !got.contains("PONG"), "{got}");
        assert!(rig.is_closed(ann));
        rig.publish("t", "i1", "1");
        assert_eq!(rig.got(bob), item("t", "publish", "i1", "1"), "nobody else is harmed");
        assert_eq!(rig.counters(0).light_errors.iter().collect::<Vec<_>>(), [(code, 1)]);
        assert_eq!(rig.counters(0).light, 1);
    }
    for opening in ["GET / HTTP/1.1\0", "PING\0", "<regular-socket>\0", " <regular-socket/>\0"] {
        let mut rig = Rig::with_topic();
        let ann = rig.connect(0);
        rig.send(ann, opening);
        assert!(rig.got(ann).starts_with(&error("bad-opening")) && rig.is_closed(ann));
    }
}

#[test]
fn refusals_do_not() {
    let settings = crate::settings::Light { subscriptions: 2, ..Default::default() };
    let mut rig = Rig::new(Settings { light: settings, ..Settings::default() });
    rig.topic("whitelist", configured(|config| config.access_model = Access::Whitelist));
    for topic in ["a", "b", "c"] {
        rig.topic(topic, TopicOp::Create { config: TopicConfig::default() });
    }
    let ann = rig.opened(0);
    let long = "x".repeat(1024);
    for (topic, code) in [
        ("nowhere", "topic-not-found"),
        ("", "topic-not-found"),
        (&long, "topic-not-found"),
        ("whitelist", "topic-closed"),
    ] {
        rig.subscribe(ann, topic);
        rig.settle();
        let got = rig.got(ann);
        assert!(got.starts_with(&error(code)), "{topic}: {got}");
    }
    rig.unsubscribe(ann, "a");
    assert!(rig.got(ann).starts_with(&error("not-subscribed")));
    for (topic, answer) in
        [("a", "ACK;"), ("b", "ACK;"), ("c", "{\"error\":\"too-many-subscriptions\""), ("a", "ACK;")]
    {
        rig.subscribe(ann, topic);
        rig.settle();
        let got = rig.got(ann);
        assert!(got.starts_with(answer), "{topic}: {got}");
    }
    rig.unsubscribe(ann, "a");
    rig.subscribe(ann, "c");
    rig.settle();
    assert_eq!(rig.got(ann), "ACK;ACK;");
}

#[test]
fn a_store_that_fails_is_said() {
    let mut rig = Rig::with_topic();
    let (ann, bob) = (rig.opened(0), rig.opened(0));
    rig.subscribe(ann, "t");
    rig.subscribe(bob, "t");
    rig.deliver();
    assert_eq!(rig.world.disk.waiting().len(), 1, "one question for all who wait on a shard");
    rig.fail();
    rig.settle();
    for client in [ann, bob] {
        assert!(rig.got(client).starts_with(&error("unavailable")));
        rig.subscribe(client, "t");
        rig.settle();
        assert_eq!(rig.got(client), "ACK;");
    }
}

#[test]
fn between_the_last_item_and_the_next_is_no_gap() {
    for config in [
        TopicConfig::default(),
        TopicConfig { send_last_published_item: SendLast::OnSub, ..TopicConfig::default() },
    ] {
        for shard in [0, 1] {
            let mut rig = Rig::new(Settings::default());
            rig.topic("t", TopicOp::Put { config: config.clone() });
            let ann = rig.opened(shard);
            // Published, asked, published: all at once.
            rig.begin("t", publish("i1", "1"));
            rig.subscribe(ann, "t");
            rig.deliver();
            rig.begin("t", publish("i2", "2"));
            rig.settle();
            let wanted = format!("ACK;{}{}", item("t", "last", "i1", "1"), item("t", "publish", "i2", "2"));
            assert_eq!(rig.got(ann), wanted);
        }
    }
}

#[test]
fn topics_that_send_no_last_item() {
    for change in [
        (|config: &mut TopicConfig| config.send_last_published_item = SendLast::Never)
            as fn(&mut TopicConfig),
        |config| config.persist_items = false,
    ] {
        let mut rig = Rig::new(Settings::default());
        rig.topic("t", configured(change));
        rig.publish("t", "i1", "1");
        let ann = rig.following(0, &["t"]);
        rig.publish("t", "i2", "2");
        assert_eq!(rig.got(ann), item("t", "publish", "i2", "2"));
    }
}

#[test]
fn other_news_of_a_topic() {
    let mut rig = Rig::with_topic();
    let ann = rig.following(1, &["t"]);
    rig.publish("t", "i1", "1");
    rig.topic("t", TopicOp::Retract { id: "i1".into(), notify: None });
    rig.topic("t", TopicOp::Purge);
    rig.topic("t", TopicOp::Delete);
    let nothing = |event: &str| {
        format!("PUBLISH {{\"topic\":\"t\",\"event\":\"{event}\",\"message_id\":null,\"data\":null}};")
    };
    let wanted = [
        item("t", "publish", "i1", "1"),
        item("t", "retract", "i1", "null"),
        nothing("purge"),
        nothing("delete"),
    ];
    assert_eq!(rig.got(ann), wanted.concat());
    rig.unsubscribe(ann, "t");
    assert!(rig.got(ann).starts_with(&error("not-subscribed")));
    // Another topic of the same name is another topic.
    rig.topic("t", TopicOp::Create { config: TopicConfig::default() });
    rig.publish("t", "i2", "2");
    assert_eq!(rig.got(ann), "");
    rig.subscribe(ann, "t");
    rig.settle();
    assert_eq!(rig.got(ann), format!("ACK;{}", item("t", "last", "i2", "2")));
}

#[test]
fn who_is_nobody_leaves_a_topic_that_closes() {
    let mut rig = Rig::with_topic();
    let clients = [rig.following(0, &["t"]), rig.following(1, &["t"]), rig.following(0, &["t"])];
    rig.topic("t", configured(|config| config.access_model = Access::Whitelist));
    rig.publish("t", "secret", "1");
    for client in clients {
        let closed = "PUBLISH {\"topic\":\"t\",\"event\":\"closed\",\"message_id\":null,\"data\":null};";
        assert_eq!(rig.got(client), closed);
        rig.subscribe(client, "t");
        rig.settle();
        assert!(rig.got(client).starts_with(&error("topic-closed")));
    }
}

#[test]
fn silence_and_slowness_end_connections() {
    let mut rig = Rig::with_topic();
    let (mute, quiet, alive) = (rig.connect(0), rig.following(0, &["t"]), rig.following(0, &["t"]));
    rig.after(31_000);
    assert!(rig.got(mute).starts_with(&error("opening-timeout")) && rig.is_closed(mute));
    rig.after(50_000);
    rig.send(alive, "PING\0");
    rig.after(40_000);
    assert!(rig.got(quiet).starts_with(&error("idle-timeout")) && rig.is_closed(quiet));
    assert_eq!(rig.got(alive), "PONG;");
    rig.overflow(alive);
    assert!(rig.got(alive).starts_with(&error("slow-reader")) && rig.is_closed(alive));
    assert_eq!((rig.counters(0).light, rig.counters(0).connections), (0, 0));
}

#[test]
fn silence_has_no_bound_where_it_is_set_to_zero() {
    let light = crate::settings::Light { idle_timeout_ms: 0, ..Default::default() };
    let mut rig = Rig::new(Settings { light, ..Settings::default() });
    let quiet = rig.opened(0);
    rig.after(86_400_000);
    rig.send(quiet, "PING\0");
    assert_eq!(rig.got(quiet), "PONG;");
}

#[test]
fn who_is_too_fast_is_read_more_slowly() {
    let rates = Rates { stanzas_per_second: 1, stanzas_burst: 9, ..Rates::default() };
    let limits = Limits { rates, ..Limits::default() };
    let mut rig = Rig::new(Settings { limits, ..Settings::default() });
    let ann = rig.opened(0);
    rig.send(ann, "PING\0".repeat(15));
    assert_eq!(rig.got(ann), "PONG;".repeat(10));
    assert!(rig.is_paused(ann));
    // One at a time then, at the end of a tick of the timers.
    rig.after(1_200);
    assert_eq!(rig.got(ann), "PONG;");
    assert!(rig.is_paused(ann));
    (0..4).for_each(|_| rig.after(1_200));
    assert_eq!(rig.got(ann), "PONG;".repeat(4));
    rig.after(20_000);
    assert!(!rig.is_paused(ann));
}

#[test]
fn the_end_of_the_server_and_of_the_domain() {
    let mut rig = Rig::with_topic();
    let (opening, ann) = (rig.connect(0), rig.following(1, &["t"]));
    rig.every_shard(|| Input::Drain);
    for client in [opening, ann] {
        assert_eq!(rig.got(client), "{\"error\":\"shutdown\",\"message\":\"the server is shutting down\"};");
    }
    let late = rig.connect(0);
    rig.send(late, OPENING);
    assert!(rig.got(late).starts_with(&error(Ended::Shutdown.code())));

    let mut rig = Rig::with_topic();
    let ann = rig.following(0, &["t"]);
    rig.every_shard(|| Input::Domains(Arc::new(domains())));
    assert_eq!(rig.got(ann), "");
    rig.every_shard(|| Input::Domains(Arc::default()));
    assert!(rig.got(ann).starts_with(&error("no-domain")) && rig.is_closed(ann));
    let late = rig.connect(0);
    rig.send(late, OPENING);
    assert!(rig.got(late).starts_with(&error("no-domain")));
}

#[test]
fn who_goes_while_it_waits_is_forgotten() {
    let mut rig = Rig::with_topic();
    let (ann, bob) = (rig.opened(0), rig.opened(0));
    rig.subscribe(ann, "t");
    rig.subscribe(bob, "t");
    rig.lose(ann);
    rig.settle();
    assert_eq!(rig.got(bob), "ACK;");
    rig.publish("t", "i1", "1");
    assert_eq!(rig.got(bob), item("t", "publish", "i1", "1"));
}

#[test]
fn many_come_and_go_in_any_order() {
    let mut rig = Rig::with_topic();
    rig.topic("u", TopicOp::Create { config: TopicConfig::default() });
    let clients: Vec<usize> = (0..40).map(|n| rig.following(n % 2, &["t", "u"])).collect();
    clients.iter().step_by(3).for_each(|&client| rig.lose(client));
    clients.iter().skip(1).step_by(3).for_each(|&client| rig.unsubscribe(client, "t"));
    rig.publish("t", "i1", "1");
    rig.publish("u", "i2", "2");
    for (n, &client) in clients.iter().enumerate() {
        let wanted = match n % 3 {
            0 => String::new(),
            1 => format!("ACK;{}", item("u", "publish", "i2", "2")),
            _ => item("t", "publish", "i1", "1") + &item("u", "publish", "i2", "2"),
        };
        assert_eq!(rig.got(client), wanted, "client {n}");
    }
}

#[test]
fn connections_go_on_in_another_process() {
    let mut rig = Rig::with_topic();
    rig.topic("u", TopicOp::Create { config: TopicConfig::default() });
    let (ann, bob, quiet) =
        (rig.following(0, &["t", "u"]), rig.following(0, &["t"]), rig.following(1, &["u"]));
    rig.publish("t", "i1", "1");
    assert_eq!(
        (rig.got(ann), rig.got(bob)),
        (item("t", "publish", "i1", "1"), item("t", "publish", "i1", "1"))
    );
    rig.send(ann, "PI");
    rig.after(50_000);
    rig.send(bob, "PING\0");
    rig.world.hand_over();
    assert_eq!((rig.got(ann), rig.got(bob), rig.got(quiet)), (String::new(), "PONG;".into(), String::new()));
    assert_eq!((rig.counters(0).light, rig.counters(0).connections, rig.counters(1).light), (2, 2, 1));
    // The half of a frame, and which topics it follows.
    rig.send(ann, "NG\0");
    rig.subscribe(ann, "t");
    assert_eq!(rig.got(ann), "PONG;ACK;");
    rig.unsubscribe(bob, "t");
    rig.publish("t", "i2", "2");
    rig.publish("u", "i3", "3");
    assert_eq!(rig.got(ann), item("t", "publish", "i2", "2") + &item("u", "publish", "i3", "3"));
    assert_eq!((rig.got(bob), rig.got(quiet)), ("ACK;".into(), item("u", "publish", "i3", "3")));
    // Silence before it counts.
    rig.after(41_000);
    assert!(!rig.is_closed(quiet));
    rig.after(30_000);
    assert!(rig.got(quiet).starts_with(&error("idle-timeout")) && rig.is_closed(quiet));
    assert!(!rig.is_closed(ann) && !rig.is_closed(bob));
    [ann, bob].into_iter().for_each(|client| rig.lose(client));
    assert_eq!((rig.counters(0).light, rig.counters(0).connections), (0, 0));
    rig.publish("t", "i4", "4");
}

#[test]
fn one_that_was_too_fast_is_read_again_in_another_process() {
    let rates = Rates { stanzas_per_second: 1, stanzas_burst: 9, ..Rates::default() };
    let limits = Limits { rates, ..Limits::default() };
    let mut rig = Rig::new(Settings { limits, ..Settings::default() });
    let (ann, opening) = (rig.opened(0), rig.connect(0));
    rig.send(ann, "PING\0".repeat(15));
    assert_eq!(rig.got(ann), "PONG;".repeat(10));
    assert!(rig.is_paused(ann));
    rig.settle();
    rig.world.hand_over();
    assert_eq!(rig.got(ann), "PONG;".repeat(5));
    assert!(!rig.is_paused(ann));
    // One that was not opened stays.
    assert!(!rig.is_closed(opening));
    rig.send(opening, OPENING);
    assert!(rig.got(opening).starts_with("{\"timestamp\":"));
}

/// The settings may have changed with the process.
#[test]
fn who_followed_topics_of_another_domain_is_told_to_come_again() {
    let other = || Domain::new(DomainId(2), "e", Policy::default());
    let of = |name: &str, domains: Domains| {
        let light = crate::settings::Light { domain: name.into(), ..Default::default() };
        let settings = Arc::new(Settings { light, ..Settings::default() });
        ShardMachine::new(Member::of_one_node(ShardId(0), 1), settings, Arc::new(domains), [1; 32])
    };
    let (now, conn) = (Now::default(), ConnId { slot: 0, generation: 1 });
    for (mut next, goes_on) in [
        (of("d", domains()), true),
        (of("e", Domains::new([other()])), false),
        (of("d", Domains::default()), false),
    ] {
        let (mut before, mut effects) = (of("d", domains()), Effects::default());
        before.handle(now, Input::OpenedLight { conn }, &mut effects);
        before.handle(now, Input::Bytes { conn, bytes: OPENING.as_bytes() }, &mut effects);
        let group = before.hand_over(now, 1000, &mut effects).expect("one");
        assert_eq!((group.sessions, &group.conns[..]), (1, &[conn][..]));
        assert_eq!(before.hand_over(now, 1000, &mut effects), None);
        let handed = Handed::read(&group.bytes, now.mono, 0).expect("a group");
        let sessions = handed.sessions.into_iter().map(|session| (session, Some(conn))).collect();
        let mut effects = Effects::default();
        let restored = next.take_over(now, false, Vec::new(), sessions, &mut effects);
        assert_eq!((restored.restored, restored.refused), (u32::from(goes_on), u32::from(!goes_on)));
        let is_closed = effects.list.iter().any(|effect| matches!(effect, Effect::Close { .. }));
        assert_eq!((is_closed, next.counters().light), (!goes_on, u64::from(goes_on)));
        let told = String::from_utf8_lossy(&effects.bytes).into_owned();
        assert_eq!(told.starts_with(&error("no-domain")), !goes_on, "{told}");
    }
}
