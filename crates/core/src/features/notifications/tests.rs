//! What is told of notifications while the store's answers are under way.

use crate::command::{Command, Outcome};
use crate::model::*;
use crate::sim::client::PASSWORD;
use crate::sim::store::Step;
use crate::sim::{Choice, Plan, World};
use carillon_wire::jid::BareJid;
use std::sync::mpsc::Receiver;

const ALICE: &str = "alice@d";

/// A node with an account.
fn world() -> World {
    let mut world = World::new(Plan::default());
    world.domain("d", Policy::default());
    for account in ["alice", "bob"] {
        world.account("d", account, PASSWORD, 1);
    }
    world
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
    let home = usize::from(crate::shard::home(ALICE, 2).0);
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
