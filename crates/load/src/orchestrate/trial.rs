//! The test under way: who takes part, how far everyone is, and what came of it so far.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::control::{Fault, Position, Progress};
use crate::report::{Glance, Meter, Reading, Record, Report, Status, WorkerReport, WorkerState};

/// A test that is being run.
#[derive(Debug)]
pub(super) struct Trial {
    pub(super) record: Record,
    pub(super) members: BTreeMap<u32, Member>,
    /// Somebody wants it to end.
    pub(super) aborted: bool,
    /// A worker cannot go on.
    pub(super) fault: Option<Fault>,
}

/// A worker that takes part.
#[derive(Debug, Default)]
pub(super) struct Member {
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
pub struct Patience {
    /// After this long it is asked how far it is.
    pub ask: Duration,
    /// After this long it counts as lost, and its players as failed.
    pub give_up: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { ask: Duration::from_secs(2), give_up: Duration::from_secs(10) }
    }
}

impl Trial {
    pub(super) fn new(record: Record) -> Self {
        Self { record, members: BTreeMap::new(), aborted: false, fault: None }
    }

    /// Takes a worker in with its share.
    pub(super) fn join(&mut self, id: u32, name: String, players: u32) {
        let member = Member { name, players, heard: Some(Instant::now()), ..Member::default() };
        self.members.insert(id, member);
    }

    /// Adds what a worker says. What it said before, or says after it was given up, counts only as a sign of life.
    pub(super) fn take(&mut self, id: u32, progress: &Progress) {
        let Some(member) = self.members.get_mut(&id) else { return };
        if member.state == WorkerState::Lost {
            return;
        }
        member.heard = Some(Instant::now());
        if progress.sequence <= member.sequence {
            return;
        }
        member.sequence = progress.sequence;
        (member.position, member.done) = (progress.position, progress.done);
        member.online = progress.online;
        member.failed += progress.failed;
        member.cpu_before_s.get_or_insert(progress.cpu_s);
        member.cpu_s = progress.cpu_s;
        member.bytes = progress.pss_bytes;
        member.bytes_max = member.bytes_max.max(progress.pss_bytes);
        member.clock_bound_ms = progress.clock_bound_ms;
        self.record.add(progress);
        if let Some(fault) = &progress.fault {
            self.fault.get_or_insert_with(|| fault.clone());
        }
    }

    /// Whether everyone who is left is done with a step, or beyond it.
    pub(super) fn all_done(&self, position: Position) -> bool {
        self.left()
            .all(|(_, member)| member.position > position || (member.position == position && member.done))
    }

    /// Whether nobody is left.
    pub(super) fn is_deserted(&self) -> bool {
        self.left().next().is_none()
    }

    /// Workers that take part and were not lost.
    pub(super) fn left(&self) -> impl Iterator<Item = (u32, &Member)> {
        self.members.iter().map(|(id, member)| (*id, member)).filter(|(_, m)| m.state != WorkerState::Lost)
    }

    /// Finds who is silent, and gives up those who stay it.
    pub(super) fn silent(&mut self, now: Instant, patience: Patience) -> Silent {
        let mut silent = Silent::default();
        for (id, member) in &mut self.members {
            if member.state != WorkerState::Running {
                continue;
            }
            let silence = member.heard.map_or(Duration::ZERO, |heard| now.saturating_duration_since(heard));
            if silence >= patience.give_up {
                member.state = WorkerState::Lost;
                let more = u64::from(member.players).saturating_sub(member.failed);
                self.record.add_failed(more);
                self.record.note(format!(
                    "The worker {} was lost: it was silent for {} s. Its {} players count as failed.",
                    member.name,
                    patience.give_up.as_secs_f64(),
                    member.players
                ));
                member.online = 0;
                silent.lost.push(*id);
            } else if silence >= patience.ask && member.asked.is_none_or(|at| now - at >= patience.ask) {
                member.asked = Some(now);
                silent.asked.push(*id);
            }
        }
        silent
    }

    /// Marks those who are left as having finished.
    pub(super) fn finish(&mut self) {
        for member in self.members.values_mut().filter(|member| member.state == WorkerState::Running) {
            member.state = WorkerState::Finished;
        }
        self.record.close();
    }

    /// Players in session.
    pub(super) fn online(&self) -> u32 {
        self.left().map(|(_, member)| member.online).sum()
    }

    /// Players of workers that are left.
    pub(super) fn players_left(&self) -> u32 {
        self.left().map(|(_, member)| member.players).sum()
    }

    /// How far any worker's clock may be off, in milliseconds.
    pub(super) fn clock_bound_ms(&self) -> f64 {
        self.left().map(|(_, member)| member.clock_bound_ms).fold(0.0, f64::max)
    }

    /// The workers' own figures, and the server's as given.
    pub(super) fn meter(&self, server: Option<Reading>) -> Meter {
        let spent = |member: &Member| member.cpu_s - member.cpu_before_s.unwrap_or(member.cpu_s);
        Meter {
            server,
            tester_cpu_s: self.members.values().map(spent).sum(),
            tester_bytes: self.members.values().map(|member| member.bytes).sum(),
            kernel: None,
        }
    }

    /// The report so far.
    pub(super) fn report(&self, status: Status, reason: Option<String>) -> Report {
        let workers = self.members.values().map(|member| WorkerReport {
            name: member.name.clone(),
            players: member.players,
            state: member.state,
            cpu_seconds: member.cpu_s - member.cpu_before_s.unwrap_or(member.cpu_s),
            pss_bytes: member.bytes_max,
            clock_bound_ms: member.clock_bound_ms,
        });
        self.record.report(status, reason, workers.collect())
    }

    /// A few figures.
    pub(super) fn glance(&self, status: Status) -> Glance {
        self.record.glance(status, self.online())
    }
}

#[cfg(test)]
#[path = "trial_tests.rs"]
mod tests;
