//! The engine, with a kind of home that keeps a number and is told to add to it.

use super::*;
use crate::model::{Mono, Ticket};

#[derive(Debug)]
struct Sum;

#[derive(Debug, PartialEq, Eq)]
enum Task {
    Add(Vec<u8>),
    Show,
    Reset,
}

impl HomeKind for Sum {
    type Key = u32;
    type Record = Vec<u8>;
    type State = bool;
    type Task = Task;
    type Step = &'static str;

    const WAITING_BYTES_MAX: usize = 10 * 1000;
    const ALL_WAITING_BYTES_MAX: usize = 25 * 1000;

    fn task_bytes(task: &Task) -> usize {
        match task {
            Task::Add(bytes) => bytes.len(),
            Task::Show | Task::Reset => 0,
        }
    }

    fn record_bytes(record: &Vec<u8>) -> usize {
        record.len()
    }

    fn may_drop(is_pinned: &bool) -> bool {
        !is_pinned
    }

    fn concurrency(task: &Task, _: &Vec<u8>, _: &bool) -> Concurrency {
        match task {
            Task::Add(_) => Concurrency::Write,
            Task::Show => Concurrency::Read,
            Task::Reset => Concurrency::Alone,
        }
    }
}

fn places(keys: std::ops::Range<u32>) -> Places<Sum> {
    let mut places = Places::default();
    for key in keys {
        places.make(&key, || Place::unknown(false));
    }
    places
}

fn add(bytes: usize) -> Task {
    Task::Add(vec![0; bytes])
}

/// What a place has to do in turn, each write under way from then on.
fn turns(place: &mut Place<Sum>) -> Vec<Task> {
    let mut begun = Vec::new();
    while let Some(task) = place.next() {
        if let Task::Add(_) = task {
            place.wrote();
        }
        begun.push(task);
    }
    begun
}

#[test]
fn tasks_wait_for_the_record_and_then_for_each_other() {
    let mut places = places(0..1);
    assert!(matches!(places.push(&0, add(1)), Pushed::Load));
    for task in [add(2), Task::Show, Task::Reset, add(3)] {
        assert!(matches!(places.push(&0, task), Pushed::Waits));
    }
    let place = places.get_mut(&0).expect("it was made");
    assert!(place.next().is_none() && place.load() == 5);
    place.open(Vec::new());
    assert_eq!(turns(place), [add(1), add(2)]);
    place.written(false);
    assert_eq!(turns(place), [], "a read waits for all writes before it");
    place.written(false);
    assert_eq!(turns(place), [Task::Show, Task::Reset, add(3)]);
}

#[test]
fn a_task_that_needs_the_place_exclusively_waits_for_the_writes_before_it() {
    let mut places = places(0..1);
    places.make(&0, || unreachable!("it is there")).open(Vec::new());
    assert!(matches!(places.push(&0, add(1)), Pushed::Now(_)));
    let place = places.get_mut(&0).expect("it was made");
    place.wrote();
    assert!(matches!(places.push(&0, Task::Reset), Pushed::Waits));
    assert!(matches!(places.push(&0, add(1)), Pushed::Waits), "nothing overtakes what waits");
    let place = places.get_mut(&0).expect("it was made");
    assert!(place.next().is_none());
    place.written(false);
    assert_eq!(place.next(), Some(Task::Reset));
    let record = place.hold();
    assert!(record.is_some() && place.next().is_none());
    place.open(vec![1]);
    assert_eq!(place.next(), Some(add(1)));
    assert!(place.is_at_rest());
}

#[test]
fn what_waits_is_bounded_in_bytes_at_one_place_and_at_all() {
    let mut places = places(0..4);
    let mut taken = [0; 4];
    for key in 0..4_u32 {
        while !matches!(places.push(&key, add(900)), Pushed::Refused(_)) {
            taken[key as usize] += 1;
        }
    }
    assert!(taken[0] > 8 && taken[0] == taken[1] && taken[2] < taken[1] && taken[3] == 0, "{taken:?}");
    // What is taken away makes room.
    let place = places.get_mut(&0).expect("it was made");
    assert_eq!(place.give_up(|_| false).len(), taken[0]);
    places.settle(&0, |_| true);
    assert!(matches!(places.push(&3, add(900)), Pushed::Load));
}

#[test]
fn an_answer_is_taken_by_its_number_and_once() {
    let mut place = Place::<Sum>::unknown(false);
    place.asked(Ticket(1), "first");
    place.asked(Ticket(2), "second");
    assert_eq!(place.take_step(Ticket(2)), Some("second"));
    assert_eq!(place.take_step(Ticket(2)), None);
    place.forget_asked();
    assert_eq!(place.take_step(Ticket(1)), None);
    assert!(place.is_quiet());
}

#[test]
fn records_that_take_too_much_memory_are_dropped_in_the_order_in_which_they_were_read() {
    let mut places = places(0..10);
    for key in 0..10 {
        let place = places.get_mut(&key).expect("it was made");
        place.open(vec![0; 100]);
        place.state = key == 0;
        places.settle(&key, |_| true);
    }
    places.push(&1, Task::Show);
    places.get_mut(&2).expect("it was made").wrote();
    places.shrink(500, |place| !place.is_quiet());
    let kept: Vec<u32> = (0..10).filter(|key| places.get(key).is_some()).collect();
    // The first is pinned, the third is being written to.
    assert_eq!(kept, [0, 2, 7, 8, 9]);
}

#[test]
fn a_place_that_nobody_used_is_forgotten() {
    let mut places = places(0..2);
    for key in 0..2 {
        places.get_mut(&key).expect("it was made").open(vec![0; 10]);
        places.settle(&key, |_| true);
    }
    places.forget_idle(2);
    places.push(&1, Task::Show);
    places.forget_idle(2);
    assert!(places.get(&0).is_none() && places.get(&1).is_some());
    places.shrink(0, |_| false);
    assert_eq!(places.len(), 0);
}

#[test]
fn a_record_that_could_not_be_read_is_asked_for_again_if_somebody_waits() {
    let mut places = places(0..2);
    for key in 0..2 {
        assert!(matches!(places.push(&key, add(1)), Pushed::Load));
        places.failed(&key, Mono(5));
    }
    assert!(matches!(places.push(&0, add(1)), Pushed::Waits), "not asked for again at once");
    places.get_mut(&1).expect("it was made").give_up(|_| false);
    assert_eq!(places.due(), Some(Mono(1005)));
    assert_eq!((places.take_failed(), places.due()), (vec![0], None));
    assert!(matches!(places.push(&1, add(1)), Pushed::Load));
}

#[test]
fn a_place_without_a_store_begins_with_its_record() {
    let mut places = Places::<Sum>::default();
    places.make(&7, || Place::of(true, vec![1]));
    assert!(matches!(places.push(&7, Task::Show), Pushed::Now(Task::Show)));
    assert!(places.key(&7).is_some() && places.len() == 1);
}
