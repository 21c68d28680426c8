//! What every log of sessions must do.

use carillon_core::model::{Epoch, SessionId, ShardId};
use carillon_core::ports::{Left, LogEntry, LogHeard, LogHears, SessionLog, Unavailable};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// An engine that keeps logs.
pub trait Engine {
    /// Opens the log of a node.
    fn open(&self, own: Epoch, hears: LogHears) -> Arc<dyn SessionLog>;

    /// One node cannot reach the engine, or can again.
    fn set_away(&self, of: Epoch, is_away: bool);
}

/// A case.
pub struct Case {
    /// Its name.
    pub name: &'static str,
    /// Runs it against an engine that has nothing yet.
    pub run: fn(&dyn Engine),
}

/// All of them.
pub const CASES: &[Case] = &[
    Case { name: "session_log::has_what_was_written_last", run: has_what_was_written_last },
    Case {
        name: "session_log::what_is_said_to_be_written_is_there",
        run: what_is_said_to_be_written_is_there,
    },
    Case { name: "session_log::is_taken_once", run: is_taken_once },
    Case { name: "session_log::begins_empty", run: begins_empty },
    Case { name: "session_log::what_is_left_is_there", run: what_is_left_is_there },
    Case { name: "session_log::is_forgotten_by_who_closes_it", run: is_forgotten_by_who_closes_it },
];

const ONE: Epoch = Epoch(1);
const OTHER: Epoch = Epoch(2);
const SHARDS: [ShardId; 2] = [ShardId(0), ShardId(300)];

/// A node with its log.
struct Node {
    log: Arc<dyn SessionLog>,
    heard: Receiver<LogHeard>,
}

impl Node {
    /// One whose shards have written that they have nothing.
    fn open(engine: &dyn Engine, epoch: Epoch) -> Node {
        let (sender, heard) = channel();
        let sender = Mutex::new(sender);
        let hears: LogHears = Arc::new(move |heard| {
            let _ = sender.lock().expect("nobody panics with it").send(heard);
        });
        let node = Node { log: engine.open(epoch, hears), heard };
        node.begins();
        node
    }

    fn begins(&self) {
        self.told(LogHeard::Back);
        SHARDS.into_iter().for_each(|shard| self.log.write(shard, 1, true, Vec::new()));
        self.written(SHARDS[0], 1);
    }

    /// Waits until it is told so. What came before is passed over.
    fn told(&self, wanted: LogHeard) {
        while self.heard.recv_timeout(Duration::from_secs(60)).expect("it is told") != wanted {}
    }

    /// Waits until so much is written of a shard.
    fn written(&self, shard: ShardId, number: u64) {
        loop {
            match self.heard.recv_timeout(Duration::from_secs(60)).expect("it is told") {
                LogHeard::Written(of, up_to) if of == shard && up_to >= number => return,
                _ => {}
            }
        }
    }

    fn write(&self, shard: ShardId, number: u64, slot: u32, bytes: Option<&[u8]>) {
        let bytes = bytes.map(<[u8]>::to_vec);
        self.log.write(shard, number, false, vec![LogEntry { session: session(slot), bytes }]);
    }

    fn take(&self, epoch: Epoch) -> Result<Vec<Left>, Unavailable> {
        let (sender, answer) = channel();
        self.log.take(epoch, Box::new(move |left| drop(sender.send(left))));
        let mut left = answer.recv_timeout(Duration::from_secs(60)).expect("it is answered")?;
        left.sort_by_key(|left| (left.shard, left.session.slot));
        Ok(left)
    }
}

fn session(slot: u32) -> SessionId {
    SessionId { slot, generation: u32::MAX - slot }
}

fn left(shard: ShardId, slot: u32, bytes: &[u8]) -> Left {
    Left { shard, session: session(slot), bytes: bytes.to_vec() }
}

fn has_what_was_written_last(engine: &dyn Engine) {
    let (node, survivor) = (Node::open(engine, ONE), Node::open(engine, OTHER));
    let [one, other] = SHARDS;
    node.write(one, 2, 1, Some(b"first"));
    node.write(one, 3, 2, Some(b"goes"));
    node.written(one, 3);
    node.write(one, 4, 1, Some(b"second"));
    node.write(one, 5, 2, None);
    node.write(other, 2, 1, Some(&[0, 255, 10, 13]));
    node.write(one, 6, 3, Some(b"goes at once"));
    node.write(one, 7, 3, None);
    node.written(other, 2);
    node.write(one, 8, 4, Some(b""));
    node.written(one, 8);
    let expected = [left(one, 1, b"second"), left(one, 4, b""), left(other, 1, &[0, 255, 10, 13])];
    assert_eq!(survivor.take(ONE).expect("it is there"), expected);
}

fn what_is_said_to_be_written_is_there(engine: &dyn Engine) {
    let (node, survivor) = (Node::open(engine, ONE), Node::open(engine, OTHER));
    let large = vec![7; 100_000];
    for slot in 0..2_000 {
        node.write(SHARDS[0], u64::from(slot) + 2, slot, Some(if slot == 5 { &large } else { b"a session" }));
    }
    node.written(SHARDS[0], 2_001);
    let found = survivor.take(ONE).expect("it is there");
    assert_eq!(found.len(), 2_000);
    assert!(
        found.iter().all(|left| left.bytes == if left.session.slot == 5 { &large[..] } else { b"a session" })
    );
}

fn is_taken_once(engine: &dyn Engine) {
    let (node, one, other) =
        (Node::open(engine, ONE), Node::open(engine, OTHER), Node::open(engine, Epoch(3)));
    node.write(SHARDS[0], 2, 1, Some(b"a session"));
    node.written(SHARDS[0], 2);
    let taken = [one.take(ONE), other.take(ONE), one.take(ONE)].map(|left| left.expect("an answer").len());
    assert_eq!(taken, [1, 0, 0]);
    assert!(one.take(Epoch(9)).expect("an answer").is_empty(), "of a node that wrote nothing");
}

fn begins_empty(engine: &dyn Engine) {
    let (node, survivor) = (Node::open(engine, ONE), Node::open(engine, OTHER));
    node.write(SHARDS[0], 2, 1, Some(b"old"));
    node.written(SHARDS[0], 2);
    engine.set_away(ONE, true);
    node.told(LogHeard::Away);
    node.write(SHARDS[0], 3, 2, Some(b"lost"));
    engine.set_away(ONE, false);
    node.told(LogHeard::Back);
    node.write(SHARDS[0], 4, 3, Some(b"of before"));
    SHARDS.into_iter().for_each(|shard| node.log.write(shard, 5, true, Vec::new()));
    node.write(SHARDS[0], 6, 4, Some(b"new"));
    node.written(SHARDS[0], 6);
    assert_eq!(survivor.take(ONE).expect("it is there"), [left(SHARDS[0], 4, b"new")]);
}

fn what_is_left_is_there(engine: &dyn Engine) {
    let (node, survivor) = (Node::open(engine, ONE), Node::open(engine, OTHER));
    node.write(SHARDS[0], 2, 1, Some(b"a session"));
    node.write(SHARDS[0], 3, 2, Some(b"another"));
    node.log.leave();
    drop(node);
    let expected = [left(SHARDS[0], 1, b"a session"), left(SHARDS[0], 2, b"another")];
    assert_eq!(survivor.take(ONE).expect("an answer"), expected);
}

fn is_forgotten_by_who_closes_it(engine: &dyn Engine) {
    let (node, survivor) = (Node::open(engine, ONE), Node::open(engine, OTHER));
    node.write(SHARDS[0], 2, 1, Some(b"a session"));
    node.written(SHARDS[0], 2);
    node.log.close();
    assert!(survivor.take(ONE).expect("an answer").is_empty());
}
