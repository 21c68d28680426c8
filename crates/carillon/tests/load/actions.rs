//! Each action, and what it counts and times.

use crate::support::{Outcome, PATIENCE, World, lead, run};
use carillon_load::blocking::Client;
use carillon_load::client::{Options, Profile, Settings};
use carillon_load::control::Event;
use carillon_load::plan::{Span, Target, TransportKind};
use carillon_load::worker::Engine;

/// A scenario of so many players and these phases, each with its `do`.
fn scenario(count: u32, phases: &str) -> String {
    format!("name = 'test'\nsummary = 'A test.'\n[players]\ncount = {count}\n{phases}")
}

const LOGIN: &str = "[[phases]]\ndo = 'login'\n";
const SUBSCRIBE: &str = "[[phases]]\ndo = 'subscribe'\ntopic = 'news'\n";

#[test]
fn everyone_logs_in_by_steps_and_at_a_rate() {
    let world = World::new(20, &[]);
    let phases = "[[phases]]\ndo = 'login'\nsteps = 4\nrate = 200\n[[phases]]\ndo = 'hold'\nfor = '50ms'\n";
    let outcome = world.run(&scenario(20, phases));
    assert_eq!(outcome.clean().online, [20, 20]);
    assert_eq!(outcome.count("logins"), 20);
    assert!(outcome.has("login"));
}

#[test]
fn the_dropped_are_gone_and_come_back() {
    let world = World::new(10, &[]);
    let outcome =
        world.run(&scenario(10, &format!("{LOGIN}[[phases]]\ndo = 'drop'\n[[phases]]\ndo = 'login'\n")));
    assert_eq!(outcome.clean().online, [10, 0, 10]);
    assert_eq!((outcome.count("logins"), outcome.count("dropped")), (20, 10));
}

#[test]
fn items_reach_every_subscriber_of_every_worker() {
    let world = World::new(20, &[]);
    for by in ["pubsub", "http"] {
        let publish = format!("[[phases]]\ndo = 'publish'\ntopic = 'news'\nby = '{by}'\nitems = 3\n");
        let mut job = world.job(&scenario(20, &format!("{LOGIN}{SUBSCRIBE}{publish}")));
        job.test = format!("test-{by}");
        job.count = 10;
        let mut other = job.clone();
        other.first = 10;
        other.publishes = false;
        let outcome = run(vec![job, other]);
        assert_eq!((outcome.clean().count("sent"), outcome.count("deliveries")), (3, 60), "{by}");
        assert_eq!(outcome.count("subscribed"), 20);
        assert_eq!(outcome.total.largest["last_delivery"].len(), 3);
    }
}

#[test]
fn items_are_published_at_a_rate() {
    let world = World::new(10, &[]);
    let publish = "[[phases]]\ndo = 'publish'\ntopic = 'news'\nby = 'pubsub'\nitems = 20\nrate = 200\n";
    let outcome = world.run(&scenario(10, &format!("{LOGIN}{SUBSCRIBE}{publish}")));
    assert_eq!((outcome.clean().count("sent"), outcome.count("deliveries")), (20, 200));
    assert!(outcome.has("RTT"));
}

#[test]
fn neighbours_talk_in_an_open_and_in_a_closed_loop() {
    let world = World::new(20, &[]);
    let open = "[[phases]]\ndo = 'talk'\nrate = { shape = 'per-player', rate = 10 }\nfor = '1s'\n";
    let outcome = world.run(&scenario(20, &format!("{LOGIN}{open}")));
    assert_eq!((outcome.clean().count("sent"), outcome.count("deliveries")), (200, 200));
    let closed = "[[phases]]\ndo = 'talk'\nfor = '200ms'\n";
    let outcome = world.run(&scenario(20, &format!("{LOGIN}{closed}")));
    assert!(outcome.clean().count("deliveries") >= 20);
    assert_eq!(outcome.count("sent"), outcome.count("deliveries"));
}

#[test]
fn archives_have_what_was_said_once_for_each_side() {
    let phases =
        format!("{LOGIN}[[phases]]\ndo = 'talk'\nfor = '200ms'\n[[phases]]\ndo = 'read-archive'\npage = 7\n");
    let world = World::new(6, &["archive.enabled=true"]);
    let outcome = world.run(&scenario(6, &phases));
    let said = outcome.clean().count("deliveries");
    assert!(said >= 6 && outcome.count("pages") >= 6);
    assert_eq!((outcome.count("archived"), outcome.count("archived_in_test")), (2 * said, 2 * said));
    // What an earlier test left there is no message of this one.
    let phases = format!("{LOGIN}[[phases]]\ndo = 'read-archive'\n");
    let mut job = world.job(&scenario(6, &phases));
    job.test = "another".to_owned();
    let outcome = run(vec![job]);
    assert_eq!((outcome.clean().count("archived"), outcome.count("archived_in_test")), (2 * said, 0));

    let outcome = World::new(2, &[]).run(&scenario(2, &phases));
    assert_eq!((outcome.count("pages"), outcome.total.errors.values().sum::<u64>()), (0, 2));
    assert!(
        outcome.total.errors.keys().all(|kind| kind.starts_with("archive: ")),
        "{:?}",
        outcome.total.errors
    );
}

#[test]
fn some_come_and_go_while_the_others_stay() {
    let world = World::new(20, &[]);
    let churn = "[[phases]]\ndo = 'churn'\nrate = 50\nfor = '500ms'\n";
    let outcome = world.run(&scenario(20, &format!("{LOGIN}{churn}")));
    assert_eq!(outcome.clean().online, [20, 20]);
    assert_eq!((outcome.count("logins"), outcome.count("dropped")), (45, 25));
}

#[test]
fn the_cut_come_back_and_every_message_arrives_once() {
    let world = World::new(20, &[]);
    let resume = "[[phases]]\ndo = 'resume'\nrate = 200\nbucket = 4\n\
                  cut = { players = 0.5, after = '300ms', for = '300ms', rounds = 2 }\nreturn = { over = '200ms' }\n";
    let outcome = world.run(&scenario(20, &format!("resumption = true\n{LOGIN}{resume}")));
    assert_eq!(outcome.clean().online, [20, 20]);
    assert_eq!(outcome.count("dropped"), 20);
    // Whoever is not resumed logs in again.
    assert_eq!(outcome.count("streams_resumed") + outcome.count("not_resumed"), 20);
    assert_eq!(outcome.count("logins"), 20 + outcome.count("not_resumed"));
    assert_eq!(outcome.count("deliveries"), outcome.count("sent"));
    assert_eq!((outcome.count("duplicates"), outcome.count("out_of_order")), (0, 0));
}

#[test]
fn who_is_lost_without_a_cut_comes_back_and_has_not_failed() {
    let world = World::new(4, &[]);
    let resume = "[[phases]]\ndo = 'resume'\nrate = 100\nbucket = 4\n\
                  cut = { players = 0.01, after = '1500ms', for = '50ms' }\n";
    let job = world.job(&scenario(4, &format!("resumption = true\n{LOGIN}{resume}")));
    let profile = Profile::new(Settings::default()).unwrap();
    let mut engine = Engine::prepare(job).unwrap();
    let mut outcome = Outcome::default();
    lead(&mut engine, 0);
    assert!(engine.wait(PATIENCE));
    lead(&mut engine, 1);
    // They talk: the phase has begun.
    while outcome.count("sent") == 0 {
        outcome.add(engine.progress());
    }
    // Another client takes the resource of one of them.
    let options = Options::new("u0@localhost".parse().unwrap(), "secret", &profile);
    let other = Client::connect(&world.target.address, options.with_resource("load")).unwrap();
    assert!(engine.wait(PATIENCE));
    outcome.add(engine.finish());
    drop(other);
    assert_eq!((outcome.count("lost"), outcome.total.failed, outcome.count("logins")), (1, 0, 5));
    assert_eq!(
        outcome.total.errors.keys().collect::<Vec<_>>(),
        ["lost: stream error conflict (replaced by a new session of this resource)"]
    );
}

#[test]
fn an_aborted_phase_tells_how_long_players_were_silent() {
    let world = World::new(4, &[]);
    let talk = "[[phases]]\ndo = 'talk'\nrate = 200\nbucket = 4\nfor = '10m'\n";
    let mut job = world.job(&scenario(4, &format!("{LOGIN}{talk}")));
    job.event = Some(Event { phase: 1, at: Span::default() });
    let mut engine = Engine::prepare(job).unwrap();
    let mut outcome = Outcome::default();
    lead(&mut engine, 0);
    assert!(engine.wait(PATIENCE));
    lead(&mut engine, 1);
    while outcome.count("deliveries") < 40 {
        outcome.add(engine.progress());
    }
    outcome.add(engine.finish());
    assert!(outcome.has("silence"));
}

#[test]
fn every_transport_carries_it() {
    let world = World::new(4, &[]);
    let talk = "[[phases]]\ndo = 'talk'\nrate = 20\nfor = '500ms'\nbucket = 4\n";
    for transport in [TransportKind::Starttls, TransportKind::Tls, TransportKind::Ws] {
        let mut job = world.job(&scenario(4, &format!("{LOGIN}{talk}")));
        job.target.transport = transport;
        job.target.address = world.address(transport).unwrap();
        assert_eq!(run(vec![job]).clean().count("deliveries"), 10, "{transport:?}");
    }
}

#[test]
fn players_are_dealt_out_among_nodes_and_items_published_at_each() {
    let (one, other) = (World::new(20, &[]), World::new(20, &[]));
    let fan_out = "[[phases]]\ndo = 'subscribe'\ntopic = 'news'\n\
                   [[phases]]\ndo = 'publish'\ntopic = 'news'\nby = 'http'\nitems = 3\n";
    let mut job = one.job(&scenario(20, &format!("{LOGIN}{fan_out}")));
    let both = |of: fn(&Target) -> &str| format!("{},{}", of(&one.target), of(&other.target));
    job.target.address = both(|target| &target.address);
    job.target.http = Some(both(|target| target.http.as_deref().unwrap()));
    job.target.key = Some(both(|target| target.key.as_deref().unwrap()));
    let outcome = run(vec![job]);
    assert_eq!((outcome.clean().count("sent"), outcome.count("deliveries")), (3, 60));
    // Ten players each, and a probe.
    [one, other].iter().for_each(|world| world.logins_are(11));
}

#[test]
fn notifications_arrive_and_are_acknowledged() {
    let world = World::new(20, &[]);
    let notify = "[[phases]]\ndo = 'notify'\nrate = 200\nfor = '1s'\nbatch = 50\n";
    let text = scenario(20, &format!("stream_management = true\n{LOGIN}{notify}"));
    let mut job = world.job(&text);
    job.count = 10;
    let mut other = job.clone();
    other.first = 10;
    other.publishes = false;
    let outcome = run(vec![job, other]);
    assert_eq!((outcome.clean().count("sent"), outcome.count("deliveries")), (200, 200));
    assert_eq!((outcome.count("receipts"), outcome.count("missing_receipts")), (200, 0));
    assert!(outcome.has("RTT") && outcome.has("receipt"));
}

#[test]
fn players_make_their_accounts_and_find_them_the_next_time() {
    let world = World::new(0, &["registration.in_band=true"]);
    let text = scenario(10, &format!("register = true\n{LOGIN}[[phases]]\ndo = 'drop'\n{LOGIN}"));
    for test in ["first", "second"] {
        let mut job = world.job(&text);
        job.test = test.to_owned();
        job.target.user_prefix = "fresh".to_owned();
        assert_eq!(run(vec![job]).clean().online, [10, 0, 10], "{test}");
    }
}
