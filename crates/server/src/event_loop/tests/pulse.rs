//! Whether every event loop turns, as a watchdog asks.

use super::{connect, options, rest, start};
use crate::channels::inbox::{Control, InboxItem};
use crate::channels::join::AllDone;
use crate::node::Node;
use carillon_core::model::ShardId;
use std::sync::mpsc::{self, Receiver, RecvError, TryRecvError};
use std::time::Duration;

fn pulse(node: &Node) -> Receiver<()> {
    let (sender, receiver) = mpsc::channel();
    node.pulse(Box::new(move |()| sender.send(()).unwrap()));
    receiver
}

/// Has a shard's thread do something.
fn within(node: &Node, shard: u16, what: impl FnOnce() + Send + 'static) {
    let control = Control::Publish(AllDone::new(Box::new(move |()| what())));
    node.inbox(ShardId(shard)).push(InboxItem::Control(control));
}

/// Returns when a shard has handled what is in its inbox now.
fn come_round(node: &Node, shard: u16) {
    let (sender, receiver) = mpsc::channel();
    within(node, shard, move || sender.send(()).unwrap());
    receiver.recv().unwrap();
}

#[test]
fn a_pulse_waits_for_the_shard_that_hangs() {
    let server = start(&options());
    let node = server.node();
    assert_eq!(pulse(&node).recv(), Ok(()));
    let (release, held) = mpsc::channel::<()>();
    within(&node, 1, move || held.recv().unwrap());
    let late = pulse(&node);
    come_round(&node, 0);
    assert_eq!(late.try_recv(), Err(TryRecvError::Empty));
    release.send(()).unwrap();
    assert_eq!(late.recv(), Ok(()));
}

#[test]
fn a_node_whose_shard_died_says_so_and_can_end() {
    let server = start(&options());
    let node = server.node();
    let mut client = connect(server.ports().c2s);
    assert!(!node.has_died() && node.is_ready());
    within(&node, 0, || panic!("as a fault in the shard would"));
    assert_eq!(pulse(&node).recv(), Err(RecvError));
    // The thread has closed its inbox before it says that it died.
    while !node.has_died() {
        std::thread::yield_now();
    }
    assert!(!node.is_ready());
    server.drain(Duration::from_millis(20), Duration::ZERO);
    rest(&mut client);
}

#[test]
fn a_pulse_never_comes_from_a_shard_that_died() {
    let server = start(&options());
    let node = server.node();
    within(&node, 0, || panic!("as a fault in the shard would"));
    // Whether it is asked before or after the panic.
    assert_eq!(pulse(&node).recv(), Err(RecvError));
    assert_eq!(pulse(&node).recv(), Err(RecvError));
}
