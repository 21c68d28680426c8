//! Parked sessions between two processes, with a store in memory.

use super::*;
use carillon_core::ports::store::{ReadAsk, WriteAsk, parked};
use carillon_core::ports::{Answer, Ask, Reply, StoreStats};
use std::sync::Mutex;

/// Keeps groups, and fails the first `faults` writes.
#[derive(Default)]
struct Groups {
    kept: Mutex<Vec<ParkedGroup>>,
    faults: Mutex<Vec<Fault>>,
}

impl Store for Groups {
    fn ask(&self, ask: Ask, reply: Reply<Answer>) {
        let mut kept = self.kept.lock().unwrap();
        let fault = || self.faults.lock().unwrap().pop();
        reply(match ask {
            Ask::Read(ReadAsk::Parked(parked::ReadAsk::ParkedGroups(asked))) => {
                let later = |group: &&ParkedGroup| asked.after.is_none_or(|after| group.number > after);
                // A page of one, so that there are several.
                let mut entries: Vec<_> = kept.iter().filter(later).take(2).cloned().collect();
                let more = entries.len() > 1;
                entries.truncate(1);
                ParkedGroups::wrap(carillon_core::ports::Part { entries, more })
            }
            Ask::Write(WriteAsk::Parked(write)) => match (fault(), write) {
                (Some(fault), _) => Answer::Failed(fault),
                (None, parked::WriteAsk::ForgetParked(_)) => {
                    kept.clear();
                    ForgetParked::wrap(())
                }
                (None, parked::WriteAsk::StoreParked(asked)) => {
                    let bytes: usize = kept.iter().map(|group| group.bytes.len()).sum();
                    if (bytes + asked.group.bytes.len()) as u64 > asked.bytes_max {
                        StoreParked::wrap(StoreParkedAnswer::Full)
                    } else {
                        kept.push(asked.group);
                        StoreParked::wrap(StoreParkedAnswer::Stored)
                    }
                }
            },
            other => panic!("{other:?}"),
        });
    }

    fn stats(&self) -> StoreStats {
        StoreStats::default()
    }

    fn close(&self) {}
}

fn group(number: u32) -> ParkedGroup {
    ParkedGroup {
        number,
        shard: 0,
        shards: 1,
        sessions: 2,
        written: Default::default(),
        bytes: vec![7; 100].into(),
    }
}

fn store(groups: u32, faults: &[Fault]) -> Groups {
    Groups { kept: Mutex::new((0..groups).map(group).collect()), faults: Mutex::new(faults.to_vec()) }
}

#[test]
fn what_is_taken_is_forgotten() {
    let store = store(3, &[]);
    assert_eq!(take(&store), Ok(vec![group(0), group(1), group(2)]));
    assert_eq!(take(&store), Ok(Vec::new()));
}

#[test]
fn what_cannot_be_forgotten_is_not_taken() {
    let store = store(1, &[Fault::Broken]);
    assert_eq!(take(&store), Err(Fault::Broken));
    // One that is not settled is asked again.
    *store.faults.lock().unwrap() = vec![Fault::Unknown];
    assert_eq!(take(&store), Ok(vec![group(0)]));
    assert_eq!(take(&store), Ok(Vec::new()));
}

#[test]
fn what_has_no_room_or_is_not_taken_is_returned() {
    let store = store(0, &[Fault::Broken, Fault::Unknown]);
    let (answered, answers) = sync_channel(WAITING_MAX);
    let mut writing =
        Writing { store: &store, bytes_max: 250, under_way: 0, answers, written: Written::default() };
    // The first is unknown at first, the second fails, the third has room, the fourth has not.
    let mut returned = Vec::new();
    for number in 0..4 {
        writing.ask(group(number), &answered);
        returned.extend(writing.answer());
    }
    let numbers: Vec<_> = returned.iter().map(|group| group.number).collect();
    assert_eq!(numbers, [0, 3]);
    assert_eq!(writing.written, Written { groups: 2, sessions: 4, bytes: 200, returned: 4 });
}
