//! Processes that end with this one, however that ends.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A running program, in the care of a shell: it is ended as soon as the shell's standard input is closed, by whom or what ever.
pub(super) struct Program {
    shell: Child,
    /// Its process.
    pub(super) pid: i32,
}

/// Whom a program runs as, where that is somebody else.
#[derive(Clone, Copy)]
pub(super) struct User {
    pub(super) uid: u32,
    pub(super) gid: u32,
}

/// `$1` is the signal that ends the program well, `$2` its log.
const SHELL: &str = r#"end=$1 log=$2; shift 2; "$@" </dev/null >>"$log" 2>&1 & echo $!; read -r _; kill -$end $! 2>/dev/null; wait $!"#;

impl Program {
    /// Starts a program, which `end` ends well (`TERM`, `INT`).
    pub(super) fn start(
        words: &[impl AsRef<OsStr>],
        end: &str,
        folder: &Path,
        log: &Path,
        user: Option<User>,
    ) -> Result<Program, String> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SHELL, "sh", end]).arg(log).args(words).current_dir(folder);
        // Ctrl-C is for whoever started it.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        if let Some(User { uid, gid }) = user {
            command.uid(uid).gid(gid);
        }
        let mut shell = command.spawn().map_err(|e| format!("/bin/sh: {e}"))?;
        let mut pid = String::new();
        let output = shell.stdout.take().ok_or("no output of /bin/sh")?;
        BufReader::new(output).read_line(&mut pid).map_err(|e| e.to_string())?;
        let pid = pid.trim().parse().map_err(|_| "no process was started".to_owned())?;
        Ok(Program { shell, pid })
    }

    /// Whether it has ended.
    pub(super) fn has_ended(&self) -> bool {
        // The shell looks when it ends: until then one that has ended is a zombie.
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid));
        stat.map_or(true, |stat| stat.contains(") Z "))
    }

    /// Kills it, as a crash would.
    pub(super) fn kill(&self) {
        if let Some(pid) = rustix::process::Pid::from_raw(self.pid) {
            // It may have ended.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }

    /// Ends it well, and waits until it has.
    pub(super) fn end(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.end();
    }
}
