//! The running test: its workers, their progress, and the results so far.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::control::{Fault, Position, Progress};
use crate::measure::Reading;
use crate::report::{Record, Report, ResourceSample, Snapshot, Status, WorkerReport, WorkerState};

/// A running test.
#[derive(Debug)]
pub(super) struct RunningTest {
    pub(super) record: Record,
    pub(super) participants: BTreeMap<u32, Participant>,
    /// Its end was requested.
    pub(super) aborted: bool,
    /// The fault of a worker, if one has failed.
    pub(super) fault: Option<Fault>,
}

/// A worker that takes part.
#[derive(Debug, Default)]
pub(super) struct Participant {
    pub(super) name: String,
    pub(super) players: u32,
    pub(super) state: WorkerState,
    /// When its last progress came; none before the first.
    heard: Option<Instant>,
    sequence: u64,
    position: Position,
    done: bool,
    online: u32,
    failed: u64,
    cpu_before_s: Option<f64>,
    cpu_s: f64,
    bytes: u64,
    bytes_max: u64,
    clock_bound_ms: f64,
    /// When it was last asked for its progress.
    asked: Option<Instant>,
}

/// Workers that are silent.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Silent {
    /// Workers that have just been given up.
    pub(super) lost: Vec<u32>,
    /// Workers to be asked for their progress.
    pub(super) asked: Vec<u32>,
}

/// How long a worker may be silent.
#[derive(Clone, Copy, Debug)]
pub struct SilenceLimits {
    /// After this time it is asked for its progress.
    pub ask: Duration,
    /// After this time it counts as lost, and its players as failed.
    pub give_up: Duration,
}

impl Default for SilenceLimits {
    fn default() -> Self {
        Self { ask: Duration::from_secs(2), give_up: Duration::from_secs(10) }
    }
}

impl RunningTest {
    pub(super) fn new(record: Record) -> Self {
        Self { record, participants: BTreeMap::new(), aborted: false, fault: None }
    }

    /// Adds a worker with its share of the players.
    pub(super) fn join(&mut self, id: u32, name: String, players: u32) {
        let participant =
            Participant { name, players, heard: Some(Instant::now()), ..Participant::default() };
        self.participants.insert(id, participant);
    }

    /// Adds the progress of a worker. A repeated report counts only as a sign of life; one of a lost worker does not count.
    pub(super) fn take(&mut self, id: u32, progress: &Progress) {
        let Some(participant) = self.participants.get_mut(&id) else { return };
        if participant.state == WorkerState::Lost {
            return;
        }
        participant.heard = Some(Instant::now());
        if progress.sequence <= participant.sequence {
            return;
        }
        participant.sequence = progress.sequence;
        (participant.position, participant.done) = (progress.position, progress.done);
        participant.online = progress.online;
        participant.failed += progress.failed;
        participant.cpu_before_s.get_or_insert(progress.cpu_s);
        participant.cpu_s = progress.cpu_s;
        participant.bytes = progress.pss_bytes;
        participant.bytes_max = participant.bytes_max.max(progress.pss_bytes);
        participant.clock_bound_ms = progress.clock_bound_ms;
        self.record.add(progress);
        if let Some(fault) = &progress.fault {
            self.fault.get_or_insert_with(|| fault.clone());
        }
    }

    /// Whether all remaining workers are done with a step, or past it.
    pub(super) fn all_done(&self, position: Position) -> bool {
        self.left().all(|(_, participant)| {
            participant.position > position || (participant.position == position && participant.done)
        })
    }

    /// Whether all workers are lost.
    pub(super) fn has_no_workers(&self) -> bool {
        self.left().next().is_none()
    }

    /// The remaining workers: those that are not lost.
    pub(super) fn left(&self) -> impl Iterator<Item = (u32, &Participant)> {
        self.participants
            .iter()
            .map(|(id, participant)| (*id, participant))
            .filter(|(_, m)| m.state != WorkerState::Lost)
    }

    /// Finds silent workers, and gives up those that were silent for too long.
    pub(super) fn silent(&mut self, now: Instant, silence_limits: SilenceLimits) -> Silent {
        let mut silent = Silent::default();
        for (id, participant) in &mut self.participants {
            if participant.state != WorkerState::Running {
                continue;
            }
            let silence =
                participant.heard.map_or(Duration::ZERO, |heard| now.saturating_duration_since(heard));
            if silence >= silence_limits.give_up {
                participant.state = WorkerState::Lost;
                let more = u64::from(participant.players).saturating_sub(participant.failed);
                self.record.add_failed(more);
                self.record.note(format!(
                    "The worker {} was lost: it was silent for {} s. Its {} players count as failed.",
                    participant.name,
                    silence_limits.give_up.as_secs_f64(),
                    participant.players
                ));
                participant.online = 0;
                silent.lost.push(*id);
            } else if silence >= silence_limits.ask
                && participant.asked.is_none_or(|at| now - at >= silence_limits.ask)
            {
                participant.asked = Some(now);
                silent.asked.push(*id);
            }
        }
        silent
    }

    /// Marks the remaining workers as finished.
    pub(super) fn finish(&mut self) {
        for participant in
            self.participants.values_mut().filter(|participant| participant.state == WorkerState::Running)
        {
            participant.state = WorkerState::Finished;
        }
        self.record.close();
    }

    /// Players in session.
    pub(super) fn online(&self) -> u32 {
        self.left().map(|(_, participant)| participant.online).sum()
    }

    /// Players of the remaining workers.
    pub(super) fn players_left(&self) -> u32 {
        self.left().map(|(_, participant)| participant.players).sum()
    }

    /// The largest clock error of any worker, in milliseconds.
    pub(super) fn clock_bound_ms(&self) -> f64 {
        self.left().map(|(_, participant)| participant.clock_bound_ms).fold(0.0, f64::max)
    }

    /// The resources of the workers, with the given reading of the server.
    pub(super) fn sample(&self, server: Option<Reading>) -> ResourceSample {
        let spent = |participant: &Participant| {
            participant.cpu_s - participant.cpu_before_s.unwrap_or(participant.cpu_s)
        };
        ResourceSample {
            server,
            tester_cpu_s: self.participants.values().map(spent).sum(),
            tester_bytes: self.participants.values().map(|participant| participant.bytes).sum(),
            kernel: None,
        }
    }

    /// The report so far.
    pub(super) fn report(&self, status: Status, reason: Option<String>) -> Report {
        let workers = self.participants.values().map(|participant| WorkerReport {
            name: participant.name.clone(),
            players: participant.players,
            state: participant.state,
            cpu_seconds: participant.cpu_s - participant.cpu_before_s.unwrap_or(participant.cpu_s),
            pss_bytes: participant.bytes_max,
            clock_bound_ms: participant.clock_bound_ms,
        });
        self.record.report(status, reason, workers.collect())
    }

    /// A few figures for a display.
    pub(super) fn snapshot(&self, status: Status) -> Snapshot {
        self.record.snapshot(status, self.online())
    }
}

#[cfg(test)]
#[path = "running_test_tests.rs"]
mod tests;
