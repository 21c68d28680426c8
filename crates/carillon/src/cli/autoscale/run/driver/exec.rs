//! Edges that commands list, start, drain and stop. An edge is stopped once its drain has ended well, and never otherwise.

use super::super::span::span;
use super::{Driver, Edge, Renew, edges};
use carillon_load::plan::Span;
use carillon_scale::Granted;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// `[driver]` of kind `exec`. A command is a list of words; no shell reads it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct ExecSettings {
    /// Prints the edges: a JSON list of objects with `id`, and `url`, `zone`, `state` (starting, running, draining) where known.
    list: Vec<String>,
    /// Starts one edge.
    start: Vec<String>,
    /// Drains the edge `EDGE_ID` at `EDGE_URL`, and ends when nobody is on it any more.
    drain: Vec<String>,
    /// Stops the edge `EDGE_ID`, which is empty.
    stop: Vec<String>,
    /// How long `list`, `start` and `stop` may take.
    timeout: Option<Span>,
    /// How long a drain may take.
    drain_timeout: Option<Span>,
}

/// Edges by commands.
pub(super) struct Exec {
    settings: ExecSettings,
    timeout: Duration,
    drain_timeout: Duration,
    edges: Vec<Edge>,
    leaving: BTreeMap<String, Leaving>,
    /// Those that a scaler before this one was taking away, and until when that is so: later others may have their names.
    left: BTreeSet<String>,
    left_until: Duration,
    notes: Vec<String>,
}

/// An edge that goes.
struct Leaving {
    edge: Edge,
    child: Child,
    part: Part,
    since: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Drain,
    Stop,
}

/// The longest list that is read.
const LIST_BYTES_MAX: u64 = 4 << 20;
/// How often a command is looked at that is waited for.
const LOOK: Duration = Duration::from_millis(10);

impl Exec {
    pub(super) fn new(settings: ExecSettings) -> Result<Self, String> {
        let commands = [
            ("list", &settings.list),
            ("start", &settings.start),
            ("drain", &settings.drain),
            ("stop", &settings.stop),
        ];
        if let Some((name, _)) = commands.into_iter().find(|(_, words)| words.is_empty()) {
            return Err(format!("driver.{name}: there is no command"));
        }
        let timeout = span(settings.timeout, Duration::from_secs(60));
        let drain_timeout = span(settings.drain_timeout, Duration::from_secs(1800));
        let (edges, leaving, left) = (Vec::new(), BTreeMap::new(), BTreeSet::new());
        let (left_until, notes) = (Duration::ZERO, Vec::new());
        Ok(Self { settings, timeout, drain_timeout, edges, leaving, left, left_until, notes })
    }

    fn names(&self) -> BTreeSet<String> {
        self.leaving.keys().chain(&self.left).cloned().collect()
    }

    fn drain(&mut self, edge: Edge) -> Result<(), String> {
        let child = spawn(&self.settings.drain, Some(&edge), Stdio::null())?;
        let leaving = Leaving { edge, child, part: Part::Drain, since: Instant::now() };
        self.leaving.insert(leaving.edge.id.clone(), leaving);
        Ok(())
    }

    /// Looks how far those are that go.
    fn go_on(&mut self) {
        for (name, mut leaving) in std::mem::take(&mut self.leaving) {
            match self.next_part(&mut leaving) {
                Ok(true) => {
                    self.leaving.insert(name, leaving);
                }
                Ok(false) => self.notes.push(format!("{name} is stopped")),
                Err(why) => self.notes.push(format!("{name} was not taken away: {why}")),
            }
        }
    }

    /// Whether it goes on after this; an error leaves the edge as it is.
    fn next_part(&self, leaving: &mut Leaving) -> Result<bool, String> {
        let (words, limit) = match leaving.part {
            Part::Drain => (&self.settings.drain, self.drain_timeout),
            Part::Stop => (&self.settings.stop, self.timeout),
        };
        let name = words.first().map(String::as_str).unwrap_or_default();
        match leaving.child.try_wait().map_err(|error| error.to_string())? {
            None if leaving.since.elapsed() < limit => return Ok(true),
            None => {
                // The command, not the edge.
                let _ = leaving.child.kill();
                let _ = leaving.child.wait();
                return Err(format!("`{name}` did not end within {} s", limit.as_secs()));
            }
            Some(status) if !status.success() => return Err(format!("`{name}`: {status}")),
            Some(_) if leaving.part == Part::Stop => return Ok(false),
            Some(_) => {}
        }
        leaving.child = spawn(&self.settings.stop, Some(&leaving.edge), Stdio::null())?;
        (leaving.part, leaving.since) = (Part::Stop, Instant::now());
        Ok(true)
    }
}

impl Driver for Exec {
    fn granted(&mut self, now: Duration) -> Result<Granted, String> {
        self.go_on();
        if now > self.left_until {
            self.left.clear();
        }
        let text = output(&self.settings.list, self.timeout, &mut || Ok(()))?;
        let named = |error: serde_json::Error| {
            format!("`{}` printed no list of edges: {error}", self.settings.list.join(" "))
        };
        self.edges = serde_json::from_str(&text).map_err(named)?;
        Ok(edges::granted(&self.edges, &self.names()))
    }

    fn scale(&mut self, units: u32, renew: Renew<'_>) -> Result<(), String> {
        let there = edges::granted(&self.edges, &self.names()).units;
        for _ in there..units {
            output(&self.settings.start, self.timeout, renew)?;
        }
        let count = there.saturating_sub(units) as usize;
        for edge in edges::to_leave(&self.edges, &self.names(), count) {
            let note = format!("{} is drained", edge.id);
            self.drain(edge)?;
            self.notes.push(note);
        }
        Ok(())
    }

    /// One that is being stopped does not answer any more, and nobody is on it.
    fn edges(&self) -> Vec<Edge> {
        let is_stopped = |id: &str| self.leaving.get(id).is_some_and(|leaving| leaving.part == Part::Stop);
        self.edges.iter().filter(|edge| !is_stopped(&edge.id)).cloned().collect()
    }

    fn leaving(&self) -> Vec<String> {
        self.names().into_iter().collect()
    }

    fn left(&mut self, edges: Vec<String>, at: Duration) {
        self.left.extend(edges);
        self.left_until = at + self.drain_timeout;
    }

    /// They are drained once more: how far the command before came is not known. Those that are not listed any more were stopped.
    fn take_up(&mut self) {
        for name in std::mem::take(&mut self.left) {
            let Some(edge) = self.edges.iter().find(|edge| edge.id == name).cloned() else { continue };
            let note = match self.drain(edge) {
                Ok(()) => format!("{name} is drained again: the scaler before ended while it was drained"),
                Err(why) => format!("{name} was not taken away: {why}"),
            };
            self.notes.push(note);
        }
    }

    fn notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }
}

fn spawn(words: &[String], edge: Option<&Edge>, stdout: Stdio) -> Result<Child, String> {
    let [program, arguments @ ..] = words else { return Err("there is no command".to_owned()) };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(stdout);
    if let Some(edge) = edge {
        command.env("EDGE_ID", &edge.id).env("EDGE_URL", edge.url.as_deref().unwrap_or_default());
    }
    command.spawn().map_err(|error| format!("`{program}`: {error}"))
}

/// What a command prints, if it ends well and in time. The right to act is renewed meanwhile; a command that is under way when it is lost goes on to
/// its end.
fn output(words: &[String], timeout: Duration, renew: Renew<'_>) -> Result<String, String> {
    let name = words.join(" ");
    let mut child = spawn(words, None, Stdio::piped())?;
    // A command that prints much would wait for a reader.
    let stdout = child.stdout.take();
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        let read = stdout.map(|stdout| stdout.take(LIST_BYTES_MAX).read_to_string(&mut text));
        read.transpose().map(|_| text)
    });
    let (began, mut may_act) = (Instant::now(), Ok(()));
    let status = loop {
        may_act = may_act.and_then(|()| renew());
        match child.try_wait().map_err(|error| format!("`{name}`: {error}"))? {
            Some(status) => break status,
            None if began.elapsed() < timeout => std::thread::sleep(LOOK),
            None => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("`{name}` did not end within {} s", timeout.as_secs()));
            }
        }
    };
    if !status.success() {
        return Err(format!("`{name}`: {status}"));
    }
    may_act?;
    let text = reader.join().map_err(|_| format!("`{name}`: its output was not read"))?;
    text.map_err(|error| format!("`{name}`: {error}"))
}
