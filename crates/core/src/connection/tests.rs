//! Random programs against the queue, with a socket that takes what it likes: what was taken leaves in order and whole, and
//! the session hears of every flush and of the overflow once.

use super::*;
use crate::form;
use proptest::prelude::*;

/// What a driver does, and what its socket lets it do.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The session sends so many bytes, and the socket takes so many at once.
    Send {
        len: usize,
        room: usize,
    },
    /// The transport says something of its own accord.
    Reply {
        len: usize,
        room: usize,
    },
    /// The transport says something that the session's answer follows.
    Hold {
        len: usize,
    },
    /// The socket is writable again.
    Writable {
        room: usize,
    },
    Watch,
    /// The session hears of the overflow.
    Report,
    /// The connection goes on in another process.
    Moves,
}

fn step() -> impl Strategy<Value = Step> {
    let room = prop_oneof![3 => 0usize..200, 1 => 0usize..40_000];
    let len = prop_oneof![3 => 0usize..200, 1 => 0usize..20_000];
    prop_oneof![
        6 => (len.clone(), room.clone()).prop_map(|(len, room)| Step::Send { len, room }),
        1 => (len, room.clone()).prop_map(|(len, room)| Step::Reply { len: len % 100, room }),
        1 => (0usize..300).prop_map(|len| Step::Hold { len }),
        4 => room.prop_map(|room| Step::Writable { room }),
        2 => Just(Step::Watch),
        1 => Just(Step::Report),
        1 => Just(Step::Moves),
    ]
}

/// A driver, and what it knows of everything that went through its queue.
struct Driver {
    queue: SendQueue,
    bound: usize,
    /// All bytes that were taken, in order.
    taken: Vec<u8>,
    /// How many of them the socket has.
    arrived: usize,
    /// How many were taken when the session last asked to be told of a flush.
    watched: Option<usize>,
    overflows: usize,
    reported: bool,
    direct: Vec<u8>,
}

impl Driver {
    fn new(bound: usize) -> Driver {
        let (queue, taken, direct) = (SendQueue::default(), Vec::new(), Vec::new());
        Driver { queue, bound, taken, arrived: 0, watched: None, overflows: 0, reported: false, direct }
    }

    /// Bytes that tell their place.
    fn next(&self, len: usize) -> Vec<u8> {
        (0..len).map(|n| ((self.taken.len() + n) % 251) as u8).collect()
    }

    /// The socket is given `bytes` and takes `room` of them at most.
    fn socket(&mut self, bytes: &[u8], room: usize) -> usize {
        let count = bytes.len().min(room);
        assert_eq!(bytes[..count], self.taken[self.arrived..self.arrived + count], "out of order");
        self.arrived += count;
        count
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Send { len, room } => self.send(len, room),
            Step::Reply { len, room } => self.reply(len, room),
            Step::Hold { len } => {
                let bytes = self.next(len);
                self.taken.extend_from_slice(&bytes);
                self.queue.hold(&bytes);
            }
            Step::Writable { room } => self.writable(room),
            Step::Watch => self.watch(),
            Step::Report if self.overflows > 0 => {
                self.reported = true;
                self.queue.overflow_reported();
            }
            Step::Report => {}
            Step::Moves => {
                self.queue = form::decode(&form::encode(&self.queue, 0), form::Clock::default()).unwrap();
            }
        }
        assert_eq!(self.queue.queued(), self.taken.len() - self.arrived, "a byte was lost or doubled");
        let expected = if self.overflows > 0 { u64::MAX } else { self.queue.queued() as u64 + 7 };
        assert_eq!(self.queue.unacked(|| Some(7)), expected);
        assert_eq!(self.queue.unacked(|| None), u64::MAX);
    }

    fn send(&mut self, len: usize, room: usize) {
        let bytes = self.next(len);
        let queued = self.queue.queued();
        let waits = queued > 0 || self.queue.is_held();
        match self.queue.offer(len, self.bound) {
            Offered::FlushFirst => {
                assert!(self.queue.is_held() && queued + len > self.bound.min(16 * 1024));
                self.writable(room);
                assert!(!self.queue.is_held());
                self.send(len, room);
            }
            Offered::Taken => {
                let bound = if self.reported { self.bound + 4096 } else { self.bound };
                assert!(queued == 0 || queued + len <= bound, "{queued} + {len} bytes of {bound}");
                assert!(self.overflows == 0 || self.reported, "a gap");
                self.taken.extend_from_slice(&bytes);
                let mut direct = std::mem::take(&mut self.direct);
                direct.clear();
                self.queue.tail(&mut direct).extend_from_slice(&bytes);
                if !direct.is_empty() {
                    let count = self.socket(&direct, room);
                    self.queue.wrote(&direct, count);
                }
                self.direct = direct;
                assert!(
                    waits || self.queue.queued() == len.saturating_sub(room),
                    "what the socket takes is written at once"
                );
            }
            Offered::Overflowed { first } => {
                assert_eq!(first, self.overflows == 0, "told once");
                self.overflows += 1;
                assert!(self.overflows > 1 || (queued > 0 && queued + len > self.bound), "room was left");
            }
        }
    }

    fn reply(&mut self, len: usize, room: usize) {
        let bytes = self.next(len);
        self.taken.extend_from_slice(&bytes);
        if !self.queue.append(&bytes) {
            let count = self.socket(&bytes, room);
            self.queue.wrote(&bytes, count);
        }
    }

    fn writable(&mut self, room: usize) {
        let unsent = self.queue.unsent().to_vec();
        let count = self.socket(&unsent, room);
        let told = self.queue.sent(count);
        let left = self.watched.take_if(|watched| *watched <= self.arrived).is_some();
        assert_eq!(told, left, "a flush is told once, when the last byte that was watched leaves");
    }

    fn watch(&mut self) {
        let queued = self.taken.len() - self.arrived;
        assert_eq!(self.queue.watch(), queued == 0);
        if queued > 0 {
            self.watched = Some(self.taken.len());
        }
    }
}

proptest! {
    #[test]
    fn what_was_taken_leaves_in_order_and_nothing_is_told_twice(
        bound in 0usize..60_000,
        steps in prop::collection::vec(step(), 0..120),
    ) {
        let mut driver = Driver::new(bound);
        steps.into_iter().for_each(|step| driver.step(step));
        driver.step(Step::Writable { room: usize::MAX });
        prop_assert_eq!(driver.arrived, driver.taken.len());
        prop_assert!(driver.watched.is_none() && !driver.queue.is_held());
        // Nothing is kept for a connection whose peer reads.
        prop_assert_eq!(driver.queue.unsent().len(), 0);
    }

    #[test]
    fn paused_input_is_resumed_in_order_and_its_end_comes_last(
        parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..20),
        take_after in any::<u32>(),
        ends in any::<bool>(),
    ) {
        let (mut input, mut resumed) = (PausedInput::default(), Vec::new());
        let mut take = |input: &mut PausedInput| match input.take() {
            Some(Resumed::Bytes(bytes)) => {
                resumed.extend(bytes);
                false
            }
            Some(Resumed::End) => true,
            None => false,
        };
        for (n, part) in parts.iter().enumerate() {
            input.push(part);
            if take_after >> n & 1 == 1 {
                prop_assert!(!take(&mut input));
            }
        }
        if ends {
            input.end();
        }
        while !take(&mut input) && !input.is_empty() {}
        prop_assert_eq!(input.is_empty(), !ends);
        prop_assert_eq!(resumed, parts.concat());
    }
}

/// Bytes of the session that nobody but the queue has, after an overflow that it was told of late.
#[test]
fn the_last_words_need_no_other_bytes_to_leave() {
    let mut driver = Driver::new(100);
    driver.step(Step::Send { len: 90, room: 0 });
    driver.step(Step::Send { len: 90, room: 0 });
    assert_eq!(driver.overflows, 1);
    driver.step(Step::Writable { room: 1000 });
    driver.step(Step::Report);
    // The socket is writable, and will not say so again.
    driver.step(Step::Send { len: 50, room: 1000 });
    assert_eq!((driver.arrived, driver.queue.queued()), (140, 0));
}

#[test]
fn a_queue_that_is_written_takes_no_memory() {
    let mut driver = Driver::new(100);
    driver.step(Step::Send { len: 90, room: 10 });
    driver.step(Step::Writable { room: 80 });
    assert_eq!((size_of::<SendQueue>(), format!("{:?}", driver.queue)), (8, "SendQueue(None)".to_owned()));
}
