//! The display of a running test: a line that is redrawn on a terminal, a line every few seconds elsewhere.

use std::collections::BTreeSet;
use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

use crate::report::{Snapshot, remedy};

/// The time between two lines that are not redrawn.
const LINE_EVERY: Duration = Duration::from_secs(5);
/// The most kinds of errors that are told when they happen first; the report has all.
const KINDS_MAX: usize = 20;

/// The display of a running test.
#[derive(Debug)]
pub(super) struct Display {
    terminal: bool,
    last_line: Option<Instant>,
    last_phase: Option<usize>,
    /// Kinds of errors that were told.
    told: BTreeSet<String>,
}

impl Display {
    pub(super) fn new() -> Self {
        Self { terminal: stderr().is_terminal(), last_line: None, last_phase: None, told: BTreeSet::new() }
    }

    /// How often to call [`Self::show`].
    pub(super) fn every(&self) -> Duration {
        Duration::from_millis(if self.terminal { 200 } else { 500 })
    }

    /// Shows the current figures.
    pub(super) fn show(&mut self, snapshot: &Snapshot) {
        let news = self.news(&snapshot.errors);
        let line = line(snapshot);
        let mut out = stderr().lock();
        let clear = if self.terminal { "\r\x1b[2K" } else { "" };
        for words in news {
            let _ = writeln!(out, "{clear}{words}");
        }
        if self.terminal {
            // Clears the line and redraws it. A failure of the display is ignored.
            let _ = write!(out, "\r\x1b[2K{line}");
            let _ = out.flush();
            return;
        }
        let phase = snapshot.phase.as_ref().map(|phase| phase.1);
        let due = self.last_line.is_none_or(|last| last.elapsed() >= LINE_EVERY);
        if due || phase != self.last_phase {
            let _ = writeln!(out, "{line}");
            (self.last_line, self.last_phase) = (Some(Instant::now()), phase);
        }
    }

    /// A line for each kind of error that is new, and what can be done about it.
    fn news(&mut self, errors: &[(String, u64)]) -> Vec<String> {
        let mut news = Vec::new();
        for (kind, count) in errors {
            if self.told.len() < KINDS_MAX && self.told.insert(kind.clone()) {
                let remedy = remedy(kind, *count).map(|words| format!(". {words}")).unwrap_or_default();
                news.push(format!("error: {kind}, so far {count}{remedy}"));
            }
        }
        news
    }

    /// Clears the line, and tells the errors of the end, which may have come too late for a line.
    pub(super) fn end(&mut self, errors: &[(String, u64)]) {
        let mut out = stderr().lock();
        if self.terminal {
            let _ = write!(out, "\r\x1b[2K");
        }
        for words in self.news(errors) {
            let _ = writeln!(out, "{words}");
        }
    }
}

fn line(snapshot: &Snapshot) -> String {
    let mut line = match &snapshot.phase {
        None => "preparing".to_owned(),
        Some((name, number, of)) => format!("[{number}/{of}] {name} {:.0} s", snapshot.phase_seconds),
    };
    line += &format!(" | {}/{} online", snapshot.online, snapshot.players);
    if let Some((name, rate)) = &snapshot.rate {
        line += &format!(" | {rate:.0} {name}/s");
    }
    if let Some((name, p50, p99)) = &snapshot.latency {
        line += &format!(" | {name} p50 {p50:.1} p99 {p99:.1} ms");
    }
    if let Some((kind, most)) = snapshot.errors.first() {
        let all: u64 = snapshot.errors.iter().map(|(_, count)| count).sum();
        line += &format!(" | {all} errors, {most} × {kind}");
    }
    if let Some(cores) = snapshot.server_cores {
        line += &format!(" | server {cores:.2} cores");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_what_there_is() {
        let mut snapshot = Snapshot { players: 10, ..Snapshot::default() };
        assert_eq!(line(&snapshot), "preparing | 0/10 online");
        snapshot.phase = Some(("login".to_owned(), 1, 2));
        snapshot.rate = Some(("logins".to_owned(), 99.6));
        snapshot.latency = Some(("login".to_owned(), 1.0, 2.25));
        snapshot.server_cores = Some(0.5);
        assert_eq!(
            line(&snapshot),
            "[1/2] login 0 s | 0/10 online | 100 logins/s | login p50 1.0 p99 2.2 ms | server 0.50 cores"
        );
    }

    #[test]
    fn errors_are_told_with_their_words_and_once() {
        let refused = "login: registration failed: resource-constraint (too many)";
        let errors = vec![("publish: forbidden (no)".to_owned(), 3), (refused.to_owned(), 1)];
        let snapshot = Snapshot { players: 10, errors, ..Snapshot::default() };
        assert!(line(&snapshot).ends_with(" | 4 errors, 3 × publish: forbidden (no)"), "{}", line(&snapshot));
        let mut display = Display::new();
        let news = display.news(&snapshot.errors);
        assert_eq!(news[0], "error: publish: forbidden (no), so far 3");
        assert!(
            news[1].contains(refused) && news[1].contains("limits.registrations_per_address"),
            "{news:?}"
        );
        assert!(display.news(&snapshot.errors).is_empty());
    }
}
