//! The test under way: who takes part, how far everyone is, and what came of it so far.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::control::{Fault, Position, Progress};
use crate::report::{Reading, Record, Report, ResourceSample, Snapshot, Status, WorkerReport, WorkerState};

/// A test that is being run.
#[derive(Debug)]
pub(super) struct RunningTest {
    pub(super) record: Record,
    pub(super) participants: BTreeMap<u32, Participant>,
    /// Somebody wants it to end.
    pub(super) aborted: bool,
    /// A worker cannot go on.
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
    /// When it was last asked how far it is.
    asked: Option<Instant>,
}

/// Workers that were silent for too long.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Silent {
    /// They were given up just now.
    pub(super) lost: Vec<u32>,
    /// They are to be asked how far they are.
    pub(super) asked: Vec<u32>,
}

/// How long a worker may be silent.
#[derive(Clone, Copy, Debug)]
pub struct SilenceLimits {
    /// After this long it is asked how far it is.
    pub ask: Duration,
    /// After this long it counts as lost, and its players as failed.
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

    /// Takes a worker in with its share.
    pub(super) fn join(&mut self, id: u32, name: String, players: u32) {
        let participant =
            Participant { name, players, heard: Some(Instant::now()), ..Participant::default() };
        self.participants.insert(id, participant);
    }

    /// Adds what a worker says. What it said before, or says after it was given up, counts only as a sign of life.
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

    /// Whether everyone who is left is done with a step, or beyond it.
    pub(super) fn all_done(&self, position: Position) -> bool {
        self.left().all(|(_, participant)| {
            participant.position > position || (participant.position == position && participant.done)
        })
    }

    /// Whether nobody is left.
    pub(super) fn has_no_workers(&self) -> bool {
        self.left().next().is_none()
    }

    /// Workers that take part and were not lost.
    pub(super) fn left(&self) -> impl Iterator<Item = (u32, &Participant)> {
        self.participants
            .iter()
            .map(|(id, participant)| (*id, participant))
            .filter(|(_, m)| m.state != WorkerState::Lost)
    }

    /// Finds who is silent, and gives up those who stay it.
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

    /// Marks those who are left as having finished.
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

    /// Players of workers that are left.
    pub(super) fn players_left(&self) -> u32 {
        self.left().map(|(_, participant)| participant.players).sum()
    }

    /// How far any worker's clock may be off, in milliseconds.
    pub(super) fn clock_bound_ms(&self) -> f64 {
        self.left().map(|(_, participant)| participant.clock_bound_ms).fold(0.0, f64::max)
    }

    /// The workers' own figures, and the server's as given.
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

    /// A few figures.
    pub(super) fn snapshot(&self, status: Status) -> Snapshot {
        self.record.snapshot(status, self.online())
    }
}

#[cfg(test)]
#[path = "running_test_tests.rs"]
mod tests;
