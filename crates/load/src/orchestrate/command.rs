//! A command that is run at a time of a test, and what became of it.

use std::collections::VecDeque;
use std::io::{self, PipeReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

/// How often a running command is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// The most output that is kept: the last of it.
const OUTPUT_BYTES_MAX: usize = 4096;
/// The most lines of it.
const LINES_MAX: usize = 20;
/// How long the output of a command that has ended is waited for; a process that it leaves behind may keep it open.
const OUTPUT_WAIT: Duration = Duration::from_millis(200);

/// What became of a command.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct CommandOutcome {
    /// When it was started; never, if the time had not come.
    pub(super) started: Option<Instant>,
    /// How long it ran.
    pub(super) took: Duration,
    /// Its exit code; none if it has none.
    pub(super) exit_code: Option<i32>,
    /// Why it has no exit code, in a sentence.
    pub(super) problem: Option<String>,
    /// The last lines of its output.
    pub(super) output: Vec<String>,
}

/// A command that waits for its time, or runs.
#[derive(Debug)]
pub(super) struct ScheduledCommand {
    /// Sends the time at which the command is given up, at the end of its phase.
    stop: SyncSender<Instant>,
    thread: JoinHandle<CommandOutcome>,
}

impl ScheduledCommand {
    /// Runs a command of the shell at a time.
    pub(super) fn start(command: &str, at: Instant) -> Self {
        let (stop, stopped) = mpsc::sync_channel(1);
        let command = command.to_owned();
        let thread = thread::spawn(move || run(&command, at, &stopped));
        Self { stop, thread }
    }

    /// Waits for the command, at most for this long, and ends it after that. A command whose time has not come is not run.
    pub(super) fn finish(self, patience: Duration) -> CommandOutcome {
        // It fails only if the thread has ended.
        let _ = self.stop.send(Instant::now() + patience);
        self.thread.join().unwrap_or_default()
    }
}

fn run(command: &str, at: Instant, stopped: &Receiver<Instant>) -> CommandOutcome {
    match stopped.recv_timeout(at.saturating_duration_since(Instant::now())) {
        Err(RecvTimeoutError::Timeout) => {}
        Ok(_) | Err(RecvTimeoutError::Disconnected) => return failed("the phase ended before its time"),
    }
    let started = Instant::now();
    let (mut child, output) = match spawn(command) {
        Ok(spawned) => spawned,
        Err(error) => return failed(&format!("it could not be started: {error}")),
    };
    let tail = Arc::new(Tail::default());
    let reader = tail.follow(output);
    let (exit_code, problem) = match wait(&mut child, stopped) {
        Some(status) => (status.code(), status.signal().map(|signal| format!("signal {signal} ended it"))),
        None => (None, Some("it was still running after the end of its phase, and was ended".to_owned())),
    };
    let took = started.elapsed();
    let deadline = Instant::now() + OUTPUT_WAIT;
    while !reader.is_finished() && Instant::now() < deadline {
        thread::sleep(POLL_INTERVAL);
    }
    CommandOutcome { started: Some(started), took, exit_code, problem, output: tail.lines() }
}

/// Starts a command of the shell. Both of its outputs are one pipe, so that their lines come in the order in which it prints them.
fn spawn(command: &str) -> io::Result<(Child, PipeReader)> {
    let (output, input) = io::pipe()?;
    let child = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(input.try_clone()?)
        .stderr(input)
        // Ctrl-C at a terminal ends the test, not the command.
        .process_group(0)
        .spawn()?;
    Ok((child, output))
}

/// Waits for the end of a process; ends it when it is given up.
fn wait(child: &mut Child, stopped: &Receiver<Instant>) -> Option<ExitStatus> {
    let mut deadline = None;
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            // With what it waits for; but not with what it has put into a group of its own, such as a server.
            let _ = rustix::process::kill_process_group(Pid::from_child(child), Signal::KILL);
            let _ = child.wait();
            return None;
        }
        match stopped.recv_timeout(POLL_INTERVAL) {
            Ok(until) => deadline = Some(until),
            Err(RecvTimeoutError::Timeout) => {}
            // The test is over without an end of the phase. The channel waits no more, so this does.
            Err(RecvTimeoutError::Disconnected) => {
                deadline.get_or_insert_with(Instant::now);
                thread::sleep(POLL_INTERVAL);
            }
        }
    }
}

fn failed(problem: &str) -> CommandOutcome {
    CommandOutcome { problem: Some(problem.to_owned()), ..CommandOutcome::default() }
}

/// The last bytes of what a command prints.
#[derive(Debug, Default)]
struct Tail(Mutex<VecDeque<u8>>);

impl Tail {
    fn follow(self: &Arc<Self>, mut output: impl Read + Send + 'static) -> JoinHandle<()> {
        let tail = Arc::clone(self);
        thread::spawn(move || {
            let mut buffer = [0; 1024];
            while let Ok(length @ 1..) = output.read(&mut buffer) {
                let mut bytes = tail.0.lock().unwrap_or_else(PoisonError::into_inner);
                bytes.extend(&buffer[..length]);
                let over = bytes.len().saturating_sub(OUTPUT_BYTES_MAX);
                bytes.drain(..over);
            }
        })
    }

    fn lines(&self) -> Vec<String> {
        let bytes: Vec<u8> = self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines[lines.len().saturating_sub(LINES_MAX)..].to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now(command: &str) -> CommandOutcome {
        let (_stop, stopped) = mpsc::sync_channel(1);
        run(command, Instant::now(), &stopped)
    }

    #[test]
    fn the_exit_code_and_the_last_lines_are_told() {
        let done = now("seq 30; echo oh >&2; exit 3");
        assert_eq!((done.exit_code, done.problem, done.output.len()), (Some(3), None, LINES_MAX));
        assert!(done.output.contains(&"oh".to_owned()) && !done.output.contains(&"1".to_owned()));
        assert!(done.started.is_some());
        let ended = now("kill -9 $$");
        assert_eq!((ended.exit_code, ended.problem.as_deref()), (None, Some("signal 9 ended it")));
    }

    #[test]
    fn a_process_that_is_left_behind_is_not_waited_for() {
        let (at, done) = (Instant::now(), now("sleep 3 & echo started"));
        assert_eq!((done.exit_code, done.output), (Some(0), vec!["started".to_owned()]));
        assert!(at.elapsed() < Duration::from_secs(3));
    }

    #[test]
    fn a_command_whose_time_has_not_come_is_not_run() {
        let command = ScheduledCommand::start("true", Instant::now() + Duration::from_secs(3600));
        let outcome = command.finish(Duration::ZERO);
        assert_eq!((outcome.started, outcome.exit_code), (None, None));
        assert_eq!(outcome.problem.as_deref(), Some("the phase ended before its time"));
    }

    #[test]
    fn a_command_that_hangs_is_ended() {
        let dir = tempfile::tempdir().expect("a folder");
        let begun = dir.path().join("begun");
        let command = format!("touch '{}'; sleep 600", begun.display());
        let command = ScheduledCommand::start(&command, Instant::now());
        while !begun.exists() {
            thread::yield_now();
        }
        let outcome = command.finish(Duration::ZERO);
        assert!(outcome.problem.is_some_and(|problem| problem.contains("was ended")));
    }
}
