//! The threads of a server: how they start and how they end.

use crate::channels::inbox::{Control, turn_away};
use crate::event_loop::EventLoop;
use crate::jobs::{JobMessage, Jobs};
use crate::machine::Machine;
use crate::node::Node;
use carillon_core::model::ShardId;
use std::io;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// The threads of a server.
pub(super) struct Threads {
    shards: Vec<JoinHandle<()>>,
    jobs: Option<JoinHandle<()>>,
    stop_jobs: SyncSender<JobMessage>,
}

impl Threads {
    /// Starts the threads of the shards and of the jobs. If one cannot be started, those that run are stopped.
    pub(super) fn start<M: Machine>(
        shards: Vec<EventLoop<M>>,
        traces_kept_ms: u64,
        node: &Node,
    ) -> io::Result<Threads> {
        let (jobs, stop_jobs) = Jobs::new(node.clone(), traces_kept_ms);
        let mut threads = Threads { shards: Vec::new(), jobs: None, stop_jobs };
        let started = threads.start_all(shards, jobs, node);
        if started.is_err() {
            threads.stop(node);
        }
        started.map(|()| threads)
    }

    fn start_all<M: Machine>(
        &mut self,
        shards: Vec<EventLoop<M>>,
        jobs: Jobs,
        node: &Node,
    ) -> io::Result<()> {
        for (n, shard) in shards.into_iter().enumerate() {
            let guard = PanicGuard { node: node.clone(), shard: ShardId(n as u16) };
            let run = move || {
                let guard = guard;
                shard.run();
                guard.node.replies().end(guard.shard);
            };
            self.shards.push(Builder::new().name(format!("shard-{n}")).spawn(run)?);
        }
        self.jobs = Some(Builder::new().name("jobs".to_owned()).spawn(move || jobs.run())?);
        Ok(())
    }

    /// Has the jobs begin nothing, and waits until nothing of them is under way. Whether that was so in time.
    pub(super) fn pause_jobs(&self, timeout: Duration) -> bool {
        let (waiter, rests) = sync_channel(0);
        let paused = self.stop_jobs.send(JobMessage::Pause(waiter));
        paused.is_err() || rests.recv_timeout(timeout) == Err(RecvTimeoutError::Disconnected)
    }

    /// Has the jobs go on.
    pub(super) fn resume_jobs(&self) {
        // Sending fails only if the thread has ended.
        let _ = self.stop_jobs.send(JobMessage::Resume);
    }

    /// Stops the jobs and waits for their end.
    pub(super) fn stop_jobs(&mut self) {
        let _ = self.stop_jobs.send(JobMessage::Stop);
        if self.jobs.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread of the jobs had panicked");
        }
    }

    /// Stops all threads now and waits for them.
    pub(super) fn stop(&mut self, node: &Node) {
        // Sending fails only if the thread has ended.
        let _ = self.stop_jobs.send(JobMessage::Stop);
        node.control(|| Control::Stop);
        for thread in self.jobs.take().into_iter().chain(self.shards.drain(..)) {
            if thread.join().is_err() {
                tracing::error!("a thread had panicked");
            }
        }
    }
}

/// Reports the panic of a shard: no other shard can serve its accounts.
struct PanicGuard {
    node: Node,
    shard: ShardId,
}

impl PanicGuard {
    /// Writes to the log what the shard was given last.
    fn write_flight(&self) {
        let flights = self.node.flights(LOGGED_ENTRIES);
        for (_, entries) in flights.iter().filter(|(shard, _)| *shard == self.shard) {
            for line in entries.chunks(ENTRIES_PER_LINE) {
                let line: Vec<String> = line.iter().map(ToString::to_string).collect();
                let entries = line.join(" ");
                tracing::error!(shard = self.shard.0, entries, "what the shard was given last");
            }
        }
    }
}

/// Entries of the flight recorder that are written to the log.
const LOGGED_ENTRIES: usize = 512;
const ENTRIES_PER_LINE: usize = 32;

impl Drop for PanicGuard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.node.died();
            turn_away(self.node.inbox(self.shard).close(), self.node.replies());
            self.node.replies().end(self.shard);
            tracing::error!(shard = self.shard.0, "a shard has died of a fault; this node needs a restart");
            self.write_flight();
        }
    }
}
