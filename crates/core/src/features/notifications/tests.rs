//! What is told of notifications while the store's answers are under way.

use crate::command::{Command, Outcome};
use crate::model::*;
use crate::ports::store::notifications::StoreNotification;
use crate::settings::{Rates, Settings};
use crate::shard::IN_FLIGHT_BYTES_MAX;
use crate::sim::client::{Kind, PASSWORD, XmppClient};
use crate::sim::store::Step;
use crate::sim::{Choice, Plan, World};
use carillon_wire::Framing;
use carillon_wire::jid::BareJid;
use std::sync::mpsc::Receiver;

const ALICE: &str = "alice@d";

/// A node with two accounts, of which each may send as fast as it likes.
fn world() -> World {
    let mut settings = Settings::default();
    settings.limits.rates = Rates {
        stanzas_per_second: u32::MAX,
        stanzas_burst: u32::MAX,
        bytes_per_second: u32::MAX,
        bytes_burst: u32::MAX,
    };
    let mut world = World::new(Plan { settings, ..Plan::default() });
    world.domain("d", Policy::default());
    for account in ["alice", "bob"] {
        world.account("d", account, PASSWORD, 1);
    }
    world
}

/// A client of an account without presence, and its connection.
fn login(world: &mut World, account: &str, sends_receipts: bool) -> (XmppClient, usize) {
    let kind = Kind { framing: Framing::Tcp, is_managed: false, resumes: false, sends_receipts };
    let (client, conn) = (XmppClient::new(account, "d", kind), world.open(Framing::Tcp, true));
    client.login().iter().for_each(|piece| world.bytes(conn, piece.as_bytes()));
    (client, conn)
}

/// The client takes what it was sent, and acknowledges it as its kind does.
fn reads(world: &mut World, client: &mut XmppClient, conn: usize) {
    world.settle();
    while let Some(element) = world.received(conn) {
        client.hears(&element).iter().for_each(|answer| world.bytes(conn, answer.as_bytes()));
    }
    world.settle();
    assert_eq!(client.error, None);
}

fn notification(world: &World, n: u64) -> Notification {
    let now = world.now().unix;
    Notification {
        id: NotificationId::new(now, bucket(ALICE), n),
        domain: world.domain_id("d"),
        to: BareJid::new(ALICE).expect("an address"),
        audience: Audience::Always,
        priority: Priority::Normal,
        expires: None,
        collapse_key: None,
        key: None,
        payload: Payload::Json("1".into()),
        accepted: now,
        send_at: None,
    }
}

fn notify(world: &mut World, notification: Notification) {
    let outcome = world.command(ALICE, Command::Notify(notification.into()));
    assert!(matches!(outcome, Outcome::Notified(_)), "{outcome:?}");
}

/// Lets the store do something, and delivers what comes of it.
fn store(world: &mut World, step: Step) {
    world.choose(Choice::Store(step));
    world.settle_without_store();
}

/// The states that were told of a notification since somebody asked.
fn told(world: &mut World, id: NotificationId) -> Vec<NotificationState> {
    let changes = std::mem::take(&mut world.changes);
    changes.iter().filter(|change| change.trace.id == id).map(|change| change.trace.state).collect()
}

fn state(outcome: &Receiver<Outcome>) -> NotificationState {
    match outcome.try_recv() {
        Ok(Outcome::Trace(trace)) => trace.state,
        other => panic!("{other:?}"),
    }
}

#[test]
fn of_two_cancellations_in_one_millisecond_one_is_told() {
    let mut world = world();
    let one = notification(&world, 1);
    let id = one.id;
    notify(&mut world, one);
    let home = world.home_of_account(ALICE);
    let [first, second] = [(); 2].map(|()| world.begin(ALICE, Command::Cancel { id }));
    // Both find it waiting.
    for step in [Step::Read(0), Step::Read(0), Step::Give(0)] {
        store(&mut world, step);
    }
    assert_eq!(told(&mut world, id), [NotificationState::Stored]);
    for step in [Step::Commit(home), Step::Confirm(home)] {
        store(&mut world, step);
    }
    assert_eq!(state(&first), NotificationState::Cancelled);
    assert_eq!(told(&mut world, id), [NotificationState::Cancelled]);
    store(&mut world, Step::Give(0));
    for step in [Step::Commit(home), Step::Confirm(home)] {
        store(&mut world, step);
    }
    assert_eq!(state(&second), NotificationState::Cancelled);
    assert_eq!(told(&mut world, id), []);
}

#[test]
fn nothing_that_waits_is_read_for_a_session_without_presence() {
    let mut world = world();
    for n in 0..100 {
        let payload = Payload::Json(format!("\"{}\"", "x".repeat(30_000)).into());
        let waiting = Notification { payload, ..notification(&world, n) };
        notify(&mut world, waiting);
    }
    let questions = ["bob", "alice"].map(|account| {
        let before = world.asked;
        let (mut client, conn) = login(&mut world, account, false);
        reads(&mut world, &mut client, conn);
        assert!(client.is_bound());
        world.asked - before
    });
    assert_eq!(questions[0], questions[1], "nothing waits for bob");
}

/// What is known of a notification until it is acknowledged is what grows with a client that acknowledges nothing.
#[test]
fn a_client_without_stream_management_has_a_bounded_number_in_flight() {
    let mut world = world();
    let (mut client, conn) = login(&mut world, "alice", false);
    world.bytes(conn, client.becomes_available("").as_bytes());
    reads(&mut world, &mut client, conn);
    // No timer fires meanwhile: none of them is acknowledged.
    let most = (1..).take_while(|n| {
        let active = Notification { audience: Audience::Active, ..notification(&world, *n) };
        let outcome = world.command(ALICE, Command::Notify(active.into()));
        let Outcome::Notified(trace) = outcome else { panic!("{outcome:?}") };
        reads(&mut world, &mut client, conn);
        let is_given = trace.state == NotificationState::Sent;
        assert!(is_given || trace.reason == Some(DropReason::QueueFull), "{trace:?}");
        is_given
    });
    let most = most.count();
    assert!((IN_FLIGHT_BYTES_MAX / 100..IN_FLIGHT_BYTES_MAX / 40).contains(&most), "{most}");
    assert_eq!(client.got.len(), most);
    // What the store holds waits there, and comes once what was given has arrived.
    for n in 0..3 {
        let kept = notification(&world, 1_000_000 + n);
        notify(&mut world, kept);
    }
    reads(&mut world, &mut client, conn);
    assert_eq!(client.got.len(), most);
    world.pass(10_000);
    reads(&mut world, &mut client, conn);
    assert_eq!(client.got.len(), most + 3);
    // The same for what waits when a session begins.
    for n in 0..2 * most as u64 {
        let kept = notification(&world, 2_000_000 + n);
        world.ask(StoreNotification {
            notification: kept.into(),
            queue_max: u32::MAX,
            now: UnixMs(0),
            wake: None,
        });
    }
    world.lose(conn);
    let (mut client, conn) = login(&mut world, "alice", false);
    world.bytes(conn, client.becomes_available("").as_bytes());
    reads(&mut world, &mut client, conn);
    let given = client.got.len();
    assert!((most..most + 101).contains(&given), "a page may exceed the bound: {given}");
    world.pass(10_000);
    reads(&mut world, &mut client, conn);
    assert_eq!(client.got.len(), 2 * most);
}

/// A client that acknowledges is given more at once, without waiting for a timer.
#[test]
fn receipts_make_room_for_more() {
    let mut world = world();
    let count = 2 * (IN_FLIGHT_BYTES_MAX / 40) as u64;
    for n in 0..count {
        let kept = notification(&world, n);
        world.ask(StoreNotification {
            notification: kept.into(),
            queue_max: u32::MAX,
            now: UnixMs(0),
            wake: None,
        });
    }
    let (mut client, conn) = login(&mut world, "alice", true);
    world.bytes(conn, client.becomes_available("").as_bytes());
    world.settle();
    while world.connection(conn).is_open() && client.got.len() < count as usize {
        let before = client.got.len();
        reads(&mut world, &mut client, conn);
        assert!(client.got.len() > before, "it waits for nothing");
    }
}
