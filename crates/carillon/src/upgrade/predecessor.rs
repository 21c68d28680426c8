//! The process that hands over. Until it closes its store it can go on at any step, and does when the other one fails.

use super::VARIABLE;
use super::channel::Channel;
use super::guardian::Guardian;
use super::wire::{self, Broken, Checked, End, HTTP, Hello, InCell, Listener, PROTOCOL, Serving, kind};
use crate::process::supervisor::Supervisor;
use carillon_server::handover::GivenKind;
use carillon_server::{FreezeError, HandedOver, Server};
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long the steps may take.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// Until the other process has checked everything.
    pub start: Duration,
    /// For logins that are under way.
    pub requests: Duration,
    /// From when clients wait until the other process has everything.
    pub pause: Duration,
}

/// Why a node was not handed over. It goes on.
#[derive(Debug, thiserror::Error)]
pub enum HandOverError {
    /// The binary cannot be run.
    #[error("{} cannot be run: {error}", binary.display())]
    Spawn {
        /// The binary.
        binary: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The new process did not come to this point.
    #[error("the new process failed {step}: {why}")]
    Successor {
        /// What it was to do.
        step: &'static str,
        /// What it did.
        why: Broken,
    },
    /// Its sessions are on their way elsewhere.
    #[error("the node is being drained; cancel that first (carillon drain --cancel)")]
    Draining,
    /// The other release cannot go on with a node of a cell.
    #[error("release {0} has no live upgrade of a node of a cell: end this node, and start that release")]
    NotInCell(String),
    /// This process does not come to rest.
    #[error(transparent)]
    Freeze(#[from] FreezeError),
    /// A socket is missing.
    #[error("this process cannot hand over: {0}")]
    Own(io::Error),
}

/// The new process. It is killed if this is dropped before it may go on.
#[derive(Debug)]
struct Successor {
    child: Option<Child>,
    channel: Channel,
}

impl Drop for Successor {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended by itself; then there is nothing to kill, but something to reap.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A node that is about to go on in another process, which has checked that it can.
pub struct Departure {
    successor: Successor,
    /// Its process.
    pub pid: u32,
    /// Its release.
    pub release: String,
    is_in_cell: bool,
}

/// A node that the other process has, as soon as it is told to go on.
pub struct Handed {
    successor: Successor,
    handed: HandedOver,
    since: Instant,
    is_in_cell: bool,
}

/// The other process serves.
#[derive(Debug)]
pub struct Gone {
    /// Sessions that it serves.
    pub sessions: u64,
    /// How long nobody served them.
    pub silence: Duration,
}

impl Departure {
    /// Starts the other process and waits until it has checked everything.
    pub(crate) fn begin(
        binary: &Path,
        data_dir: &Path,
        guardian: Guardian,
        cell: Option<InCell>,
        timeouts: Timeouts,
    ) -> Result<Departure, HandOverError> {
        let is_in_cell = cell.is_some();
        let (mut channel, theirs) = Channel::pair().map_err(HandOverError::Own)?;
        let mut command = Command::new(binary);
        command
            .args(std::env::args_os().skip(1))
            .env(VARIABLE, "stdin")
            // It says for whom the time of the watchdog is meant.
            .env_remove("WATCHDOG_PID")
            .stdin(Stdio::from(OwnedFd::from(theirs)));
        if guardian == Guardian::Own {
            // Ctrl-C in a terminal comes to this process, which passes it on; coming twice it would end the node at once.
            command.process_group(0);
        }
        guardian.prepare();
        let child =
            command.spawn().map_err(|error| HandOverError::Spawn { binary: binary.to_owned(), error })?;
        // The command holds the other end: it would never be seen closed.
        drop(command);
        let pid = child.id();
        channel.allow(timeouts.start);
        let mut successor = Successor { child: Some(child), channel };
        let checked = successor.hello(data_dir, guardian, cell);
        let checked = checked.map_err(|why| successor.failed("before it was ready", why))?;
        if is_in_cell && !checked.cell {
            return Err(HandOverError::NotInCell(checked.release));
        }
        Ok(Departure { successor, pid, release: checked.release, is_in_cell })
    }

    /// Gives the other process the sockets, so that nobody who comes meanwhile is refused.
    pub fn listeners(
        &mut self,
        server: &Server,
        http: &[TcpListener],
        timeouts: Timeouts,
    ) -> Result<(), HandOverError> {
        let channel = &mut self.successor.channel;
        channel.allow(timeouts.start);
        let mut send = || -> Result<(), Broken> {
            for (kind, socket) in server.listening() {
                listener(channel, kind.name(), &socket)?;
            }
            for socket in http {
                listener(channel, HTTP, &socket.as_fd())?;
            }
            Ok(channel.send(kind::TICKETS, &server.ticket_keys(), &[])?)
        };
        let sent = send();
        sent.map_err(|why| self.successor.failed("before it had the listening sockets", why))
    }

    /// Stops reading, and gives the other process all sessions. When it does not take them, this process has them back.
    pub fn sessions(mut self, server: &Server, timeouts: Timeouts) -> Result<Handed, HandOverError> {
        server.wait_for_logins(timeouts.requests);
        let since = Instant::now();
        server.freeze(timeouts.pause)?;
        let channel = &mut self.successor.channel;
        channel.allow(timeouts.pause.saturating_sub(since.elapsed()));
        let (handed, sent) = server.hand_over(|given, bytes, descriptors| {
            let kind = match given {
                GivenKind::Group => kind::GROUP,
                GivenKind::Far => kind::FAR,
            };
            channel.send(kind, bytes, descriptors)
        });
        let taken = sent.map_err(Broken::from).and_then(|()| self.successor.end(&handed));
        if let Err(why) = taken {
            let error = self.successor.failed("before it had all sessions", why);
            // Before the sessions go on: nobody else may have their sockets.
            drop(self.successor);
            server.take_back(handed);
            server.thaw();
            return Err(error);
        }
        Ok(Handed { successor: self.successor, handed, since, is_in_cell: self.is_in_cell })
    }
}

impl Handed {
    /// The other process.
    pub fn pid(&self) -> u32 {
        self.successor.child.as_ref().map_or(0, Child::id)
    }

    /// Has the other process go on. The store is closed before: there is no way back.
    pub fn go(mut self, server: &mut Server, supervisor: &Supervisor) -> Result<(Gone, HandedOver), Broken> {
        let pid = self.pid();
        let bus = server.close_for_successor();
        let channel = &mut self.successor.channel;
        channel.allow(SERVING);
        channel.send(kind::GO, if self.is_in_cell { &bus } else { b"{}" }, &[])?;
        let serving: Serving = wire::expect(channel, kind::SERVING)?;
        let silence = self.since.elapsed();
        // Before the channel is closed: until then the other process tells the service manager nothing.
        supervisor.main_pid(pid);
        // It is nobody's to kill any more; whoever is its parent then reaps it.
        drop(self.successor.child.take());
        Ok((Gone { sessions: serving.sessions, silence }, self.handed))
    }
}

impl Successor {
    fn hello(
        &mut self,
        data_dir: &Path,
        guardian: Guardian,
        cell: Option<InCell>,
    ) -> Result<Checked, Broken> {
        let hello = Hello {
            protocol: PROTOCOL,
            release: env!("CARGO_PKG_VERSION").to_owned(),
            form: carillon_core::form::spoken(),
            schema: carillon_backend::SCHEMA,
            data_dir: data_dir.to_owned(),
            pid: std::process::id(),
            guardian: guardian.pid(),
            cell,
        };
        wire::say(&mut self.channel, kind::HELLO, &hello)?;
        wire::expect(&mut self.channel, kind::CHECKED)
    }

    /// Why it did not come further: if it is gone, then what it said last.
    fn failed(&mut self, step: &'static str, why: Broken) -> HandOverError {
        // The first error after its end hides what is there to be read.
        let mut why = why;
        for _ in 0..LAST_WORDS {
            if matches!(why, Broken::Ended) {
                why = wire::hear(&mut self.channel).err().unwrap_or(Broken::Ended);
            }
        }
        HandOverError::Successor { step, why }
    }

    fn end(&mut self, handed: &HandedOver) -> Result<(), Broken> {
        let end = End { sessions: handed.sessions(), connections: handed.connections() as u64 };
        wire::say(&mut self.channel, kind::END, &end)?;
        wire::expect::<serde_json::Value>(&mut self.channel, kind::READY).map(drop)
    }
}

fn listener(channel: &mut Channel, name: &str, socket: &impl AsFd) -> Result<(), Broken> {
    let listener = Listener { kind: name.to_owned() };
    let content = serde_json::to_vec(&listener).map_err(io::Error::other)?;
    Ok(channel.send(kind::LISTENER, &content, &[socket.as_fd()])?)
}

/// How often it is read for a reason then.
const LAST_WORDS: usize = 3;
/// How long the other process may take to open the store and serve.
const SERVING: Duration = Duration::from_secs(60);
