use super::*;
use crate::ports::Member;

const ONE: Epoch = Epoch(1);
const TWO: Epoch = Epoch(2);

fn membership(living: &[u64], dead: &[u64], newest: u64) -> Membership {
    let member = |epoch: &u64, is_dead| Member {
        epoch: Epoch(*epoch),
        name: epoch.to_string().into(),
        address: "".into(),
        roles: "".into(),
        is_connected: true,
        form_newest: 0,
        is_dead,
    };
    let living = living.iter().map(|epoch| member(epoch, false));
    Membership {
        members: living.chain(dead.iter().map(|epoch| member(epoch, true))).collect(),
        newest: Epoch(newest),
    }
}

/// Node 1 of two, and what happens to it in each second.
struct Node {
    watch: Watch,
    now: Mono,
    count: u64,
    reads: bool,
    hears_itself: bool,
    hears_two: bool,
    two_reads: bool,
    store: Membership,
}

impl Node {
    fn new() -> Node {
        let now = Mono(1_000_000);
        let store = membership(&[1, 2], &[], 2);
        let mut node = Node {
            watch: Watch::new(ONE, now),
            now,
            count: 0,
            reads: true,
            hears_itself: true,
            hears_two: true,
            two_reads: true,
            store,
        };
        assert_eq!(node.seconds(3), []);
        node
    }

    /// So many seconds pass. The verdicts, each with the second in which it came.
    fn seconds(&mut self, count: u64) -> Vec<(u64, Verdict)> {
        let mut verdicts = Vec::new();
        for second in 1..=count {
            self.now = self.now.plus(1000);
            self.count += 1;
            if self.reads {
                self.watch.read(self.now, self.store.clone(), self.now);
            }
            if self.hears_itself {
                self.watch.beat(ONE, self.count, self.reads, self.now);
            }
            if self.hears_two {
                self.watch.beat(TWO, self.count, self.two_reads, self.now);
            }
            verdicts.extend(self.watch.look(self.now).into_iter().map(|verdict| (second, verdict)));
        }
        verdicts
    }
}

const BURY: Verdict = Verdict::Bury(TWO, Death::Silent);
const GONE: Verdict = Verdict::Bury(TWO, Death::Gone);

#[test]
fn who_is_silent_is_to_be_buried_until_the_store_says_so() {
    let mut node = Node::new();
    node.hears_two = false;
    assert_eq!(node.seconds(8), []);
    assert_eq!(node.seconds(2), [(1, BURY), (2, BURY)]);
    node.store = membership(&[1], &[2], 2);
    assert_eq!(node.seconds(20), []);
    assert_eq!(node.watch.view(), (Arc::from([ONE]), TWO));
}

/// Of these members none has a connection to the store.
fn without_connections(mut membership: Membership, of: &[Epoch]) -> Membership {
    for member in membership.members.iter_mut().filter(|member| of.contains(&member.epoch)) {
        member.is_connected = false;
    }
    membership
}

#[test]
fn whose_process_is_gone_is_to_be_buried_at_once() {
    let mut node = Node::new();
    assert_eq!(node.seconds(9), []);
    node.hears_two = false;
    node.store = without_connections(node.store.clone(), &[TWO]);
    assert_eq!(node.seconds(3), [(2, GONE), (3, GONE)], "two readings, and more than a beat is missing");
    // It beats: it has lost its connections to the store only.
    node.hears_two = true;
    assert_eq!(node.seconds(20), []);
    // It is silent, and has its connections: it is stopped, or cut off from the bus.
    (node.hears_two, node.store) = (false, membership(&[1, 2], &[], 2));
    assert_eq!(node.seconds(8), []);
}

#[test]
fn who_never_had_a_connection_and_who_comes_back_with_all_the_others_has_its_time() {
    let mut node = Node::new();
    node.store = without_connections(membership(&[1, 2, 3], &[], 3), &[Epoch(3)]);
    assert_eq!(node.seconds(8), [], "connections of a node whose name is too long are never seen");
    // The store was away: connections come back one by one.
    let mut node = Node::new();
    assert_eq!(node.seconds(9), []);
    (node.reads, node.two_reads) = (false, false);
    node.watch.note_failed_read();
    assert_eq!(node.seconds(2), []);
    (node.reads, node.hears_two) = (true, false);
    node.store = without_connections(node.store.clone(), &[TWO]);
    assert_eq!(node.seconds(5), []);
    assert_eq!(node.seconds(1), [(1, GONE)], "it had time to come back");
    // The bus was away.
    let mut node = Node::new();
    assert_eq!(node.seconds(9), []);
    (node.hears_two, node.hears_itself) = (false, false);
    node.store = without_connections(node.store.clone(), &[TWO]);
    assert_eq!(node.seconds(5), []);
    node.hears_itself = true;
    assert_eq!(node.seconds(5), []);
    assert_eq!(node.seconds(1), [(1, GONE)]);
}

#[test]
fn who_reaches_neither_the_others_nor_the_store_stops() {
    let mut node = Node::new();
    assert_eq!(node.seconds(9), []);
    (node.hears_two, node.hears_itself, node.reads) = (false, false, false);
    node.watch.note_bus(false);
    assert_eq!(node.seconds(1), [], "the store may work");
    node.watch.note_failed_read();
    assert_eq!(node.seconds(1), [(1, Verdict::Fence(Fence::Alone))]);
    node.reads = true;
    assert_eq!(node.seconds(1), [(1, Verdict::Unfence)]);
    // Nobody can bury who has no others.
    let mut node = Node::new();
    node.store = membership(&[1], &[], 2);
    assert_eq!(node.seconds(1), []);
    node.watch.note_bus(false);
    node.watch.note_failed_read();
    node.reads = false;
    assert_eq!(node.seconds(5), []);
}

#[test]
fn whoever_is_heard_again_in_time_lives() {
    let mut node = Node::new();
    node.hears_two = false;
    assert_eq!(node.seconds(8), []);
    node.hears_two = true;
    node.seconds(1);
    node.hears_two = false;
    assert_eq!(node.seconds(8), []);
    // The same beat again says nothing.
    node.watch.beat(TWO, node.count - 8, true, node.now);
    assert_eq!(node.seconds(1), [(1, BURY)]);
}

#[test]
fn who_hears_nothing_of_itself_buries_nobody() {
    let mut node = Node::new();
    (node.hears_two, node.hears_itself) = (false, false);
    assert_eq!(node.seconds(60), [], "the bus is away");
    // It is back for this one: the other has its time from now on.
    node.hears_itself = true;
    assert_eq!(node.seconds(9), []);
    assert_eq!(node.seconds(1), [(1, BURY)]);
}

#[test]
fn who_is_new_has_its_time() {
    let mut node = Node::new();
    node.store = membership(&[1, 2, 3], &[], 3);
    assert_eq!(node.seconds(9), []);
    assert_eq!(node.seconds(1), [(1, Verdict::Bury(Epoch(3), Death::Silent))]);
    // It does not beat yet, and then it does.
    node.store = membership(&[1, 2, 3, 4], &[], 4);
    node.seconds(5);
    node.watch.beat(Epoch(4), 0, true, node.now);
    assert!(node.seconds(4).iter().all(|(_, verdict)| *verdict == Verdict::Bury(Epoch(3), Death::Silent)));
}

#[test]
fn who_is_buried_never_acts_again() {
    let mut node = Node::new();
    node.store = membership(&[2], &[1], 2);
    assert_eq!(node.seconds(5), [(1, Verdict::Fence(Fence::Buried))]);
    assert_eq!(node.watch.acts_until(), None);
    node.store = membership(&[1, 2], &[], 2);
    node.hears_two = false;
    assert_eq!(node.seconds(20), [], "nor does it bury anybody");
    // A row that is gone is the same, but for a store that does not know of the node yet.
    let mut node = Node::new();
    node.store = membership(&[2], &[], 2);
    assert_eq!(node.seconds(1), [(1, Verdict::Fence(Fence::Buried))]);
    let mut node = Watch::new(TWO, Mono(0));
    node.read(Mono(0), membership(&[1], &[], 1), Mono(0));
    assert_eq!(node.look(Mono(1)), []);
}

#[test]
fn who_cannot_read_while_others_can_stops() {
    let mut node = Node::new();
    node.reads = false;
    assert_eq!(node.seconds(5), []);
    assert_eq!(node.seconds(10), [(1, Verdict::Fence(Fence::Blind))]);
    // Even when the other falls silent: it may be the one that buries.
    node.hears_two = false;
    assert_eq!(node.seconds(20), []);
    node.reads = true;
    assert_eq!(node.seconds(1), [(1, Verdict::Unfence), (1, BURY)]);
}

#[test]
fn who_cannot_read_while_nobody_can_goes_on() {
    let mut node = Node::new();
    (node.reads, node.two_reads) = (false, false);
    assert_eq!(node.seconds(60), []);
    assert!(node.watch.acts_until() > Some(node.now));
    node.two_reads = true;
    assert_eq!(node.seconds(1), [(1, Verdict::Fence(Fence::Blind))]);
}

#[test]
fn who_was_stopped_reads_before_it_acts() {
    let mut node = Node::new();
    let acts_until = node.watch.acts_until().expect("it acts");
    assert_eq!(acts_until, node.now.plus(BLIND_MS));
    node.now = node.now.plus(30_000);
    assert!(node.now > acts_until, "whoever acts for it sees that before it looks");
    assert_eq!(node.watch.look(node.now), [Verdict::Fence(Fence::Stopped)], "and it buries nobody");
    // What was read before says nothing.
    node.watch.read(node.now.plus(0), node.store.clone(), node.now);
    assert_eq!(node.seconds(1), [(1, Verdict::Unfence)]);
    node.hears_two = false;
    assert_eq!(node.seconds(8), [], "what was heard before says nothing");
    assert_eq!(node.seconds(1), [(1, BURY)]);
    node.now = node.now.plus(30_000);
    node.store = membership(&[2], &[1], 3);
    assert_eq!(node.seconds(1), [(1, Verdict::Fence(Fence::Buried))]);
}
