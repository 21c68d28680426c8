//! Worker processes of a run: started, ended and reaped with it.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long workers may take to end by themselves.
const LEAVE_WAIT: Duration = Duration::from_secs(3);
/// Between two looks at who has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// How this program is started again as a worker: the words before `worker`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Program {
    /// For example `["load"]` within the server's binary.
    pub prefix: &'static [&'static str],
}

/// Child processes. Each ends when the pipe to its standard input closes, so they outlive this process in no case.
#[derive(Debug)]
pub(super) struct WorkerProcesses {
    children: Vec<Child>,
}

impl WorkerProcesses {
    /// Starts so many workers for an orchestrator.
    pub(super) fn start(
        program: Program,
        count: u32,
        url: &str,
        key: &str,
        players_max: u32,
    ) -> io::Result<Self> {
        let mut worker_processes = Self { children: Vec::new() };
        let path = std::env::current_exe()?;
        for _ in 0..count {
            let mut command = Command::new(&path);
            command
                .args(program.prefix)
                .args(["worker", "--while-stdin", "--orchestrator", url])
                .arg("--players-max")
                .arg(players_max.to_string())
                // Not by the command line, which everyone on the machine may read.
                .env(super::worker::KEY_VARIABLE, key)
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                // Ctrl-C at a terminal is for the run alone: it ends its workers when they have closed everything.
                .process_group(0);
            worker_processes.children.push(command.spawn()?);
        }
        Ok(worker_processes)
    }
}

impl Drop for WorkerProcesses {
    fn drop(&mut self) {
        for child in &mut self.children {
            child.stdin = None;
        }
        let deadline = Instant::now() + LEAVE_WAIT;
        for child in &mut self.children {
            while matches!(child.try_wait(), Ok(None)) && Instant::now() < deadline {
                thread::sleep(POLL_INTERVAL);
            }
            // One that is stuck; of one that has ended this is no more than the reaping.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
