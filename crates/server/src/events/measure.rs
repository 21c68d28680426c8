//! Measures the cost of the event log: events of one shard from its journal to the file, as fast as possible. For
//! `examples/event_log_cost.rs`.

use super::EventLog;
use super::figures::EventLogStatus;
use super::options::{EventLogError, Options};
use carillon_core::event::{Entry, Journal, Kind};
use carillon_core::model::{Mono, NotificationId, UnixMs};
use std::time::{Duration, Instant};

/// The measurement.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Time of the shard: noting, handing over, and waiting while the memory is full.
    pub shard: Duration,
    /// Time from the first event until all events are written and durable.
    pub whole: Duration,
    /// The log's figures at the end.
    pub status: EventLogStatus,
}

/// Notes so many deliveries, a thousand per millisecond of their own clock.
pub fn measure(options: &Options, events: u64) -> Result<Measured, EventLogError> {
    let (log, mut producers) = EventLog::start(options, 1)?;
    let figures = log.figures();
    let mut journal = Journal::default();
    let mut producer = producers.remove(0);
    let is_full = || figures.status().held_bytes as usize > options.memory_bytes / 4 * 3;
    let began = Instant::now();
    producer.begin(&mut journal, UnixMs(BEGIN));
    for n in 0..events {
        let at = UnixMs(BEGIN + n / 1000);
        journal.note(at, Kind::Deliver, || Entry::Deliver {
            id: NotificationId::new(at, 7, n),
            to: "device-0000001@example.org/phone",
            after_ms: n % 100,
        });
        // As at the end of a turn.
        if n % EVENTS_A_TURN == 0 {
            // Nothing may be lost, although this shard does nothing else.
            while is_full() {
                std::thread::yield_now();
            }
            producer.turn_ended(&mut journal, Mono(at.0));
        }
    }
    producer.end(&mut journal, UnixMs(BEGIN));
    let shard = began.elapsed();
    drop(log);
    Ok(Measured { shard, whole: began.elapsed(), status: figures.status() })
}

const BEGIN: u64 = 1_795_167_000_000;
const EVENTS_A_TURN: u64 = 64;
