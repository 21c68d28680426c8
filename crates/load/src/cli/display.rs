//! What is shown while a test runs: one line drawn again and again at a terminal, a line every few seconds elsewhere.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

use crate::report::Glance;

/// Between two lines where they are not drawn over each other.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Shows how a test goes on.
#[derive(Debug)]
pub(super) struct Display {
    terminal: bool,
    last_line: Option<Instant>,
    last_phase: Option<usize>,
}

impl Display {
    pub(super) fn new() -> Self {
        Self { terminal: stderr().is_terminal(), last_line: None, last_phase: None }
    }

    /// How often it wants to be told.
    pub(super) fn every(&self) -> Duration {
        Duration::from_millis(if self.terminal { 200 } else { 500 })
    }

    /// Shows how things are.
    pub(super) fn show(&mut self, glance: &Glance) {
        let line = line(glance);
        let mut out = stderr().lock();
        if self.terminal {
            // To the start of the line, and nothing of the last one is left. A display that fails is none.
            let _ = write!(out, "\r\x1b[2K{line}");
            let _ = out.flush();
            return;
        }
        let phase = glance.phase.as_ref().map(|phase| phase.1);
        let due = self.last_line.is_none_or(|last| last.elapsed() >= LINE_EVERY);
        if due || phase != self.last_phase {
            let _ = writeln!(out, "{line}");
            (self.last_line, self.last_phase) = (Some(Instant::now()), phase);
        }
    }

    /// Nothing more is to come.
    pub(super) fn end(&self) {
        if self.terminal {
            let _ = write!(stderr(), "\r\x1b[2K");
        }
    }
}

fn line(glance: &Glance) -> String {
    let mut line = match &glance.phase {
        None => "preparing".to_owned(),
        Some((name, number, of)) => format!("[{number}/{of}] {name} {:.0} s", glance.phase_seconds),
    };
    line += &format!(" | {}/{} online", glance.online, glance.players);
    if let Some((name, rate)) = &glance.rate {
        line += &format!(" | {rate:.0} {name}/s");
    }
    if let Some((name, p50, p99)) = &glance.latency {
        line += &format!(" | {name} p50 {p50:.1} p99 {p99:.1} ms");
    }
    if glance.errors > 0 {
        line += &format!(" | {} errors", glance.errors);
    }
    if let Some(cores) = glance.server_cores {
        line += &format!(" | server {cores:.2} cores");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_what_there_is() {
        let mut glance = Glance { players: 10, ..Glance::default() };
        assert_eq!(line(&glance), "preparing | 0/10 online");
        glance.phase = Some(("login".to_owned(), 1, 2));
        glance.rate = Some(("logins".to_owned(), 99.6));
        glance.latency = Some(("login".to_owned(), 1.0, 2.25));
        glance.server_cores = Some(0.5);
        assert_eq!(
            line(&glance),
            "[1/2] login 0 s | 0/10 online | 100 logins/s | login p50 1.0 p99 2.2 ms | server 0.50 cores"
        );
    }
}
