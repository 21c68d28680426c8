//! What a process does whose node went to another one. It relays connections that cannot leave it. And where its parent takes its end
//! for the node's, as a container does with PID 1, it stays: it passes signals on to the process that has the node, reaps the processes
//! that had it, and ends as the last one does.

use crate::files::NodeFile;
use crate::process::signal::{Signals, Wish};
use carillon_server::handover::Relays;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, set_child_subreaper, wait};
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until, timeout};

/// Which process stays for the one that takes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guardian {
    /// None: whoever watches is told of the new process, or nobody watches.
    None,
    /// This one.
    Own,
    /// One that stayed at an earlier upgrade.
    Earlier(u32),
}

impl Guardian {
    /// Who it is for a process that an earlier upgrade began with `earlier`, where the setting is `stay`.
    pub(crate) fn of(earlier: Option<u32>, stay: bool) -> Guardian {
        match earlier {
            Some(pid) => Guardian::Earlier(pid),
            None if stay || std::process::id() == 1 => Guardian::Own,
            None => Guardian::None,
        }
    }

    /// Its process.
    pub(super) fn pid(self) -> Option<u32> {
        match self {
            Guardian::None => None,
            Guardian::Own => Some(std::process::id()),
            Guardian::Earlier(pid) => Some(pid),
        }
    }

    /// Makes the processes of further upgrades children of this one when their parents end. They are those of PID 1 in any case.
    pub(crate) fn prepare(self) {
        if self == Guardian::Own
            && let Err(error) = set_child_subreaper(Some(rustix::process::getpid()))
        {
            tracing::warn!(%error, "the processes of further upgrades may not be seen to end");
        }
    }
}

/// What a process has left to do.
pub(crate) struct Remains {
    /// Connections that it relays.
    pub relays: Relays,
    /// For how long.
    pub relayed: Duration,
    /// How long it goes on relaying after it was told to end: as long as a node may take to end its sessions.
    pub drained: Duration,
    /// The process that has the node.
    pub node: u32,
    /// The data folder that names it after further upgrades; none where nobody watches this process.
    pub guarded: Option<PathBuf>,
}

impl Remains {
    /// Does it.
    pub(crate) fn run(self, mut signals: Signals) -> ExitCode {
        let Remains { relays, relayed, drained, node, guarded } = self;
        let stay = || -> io::Result<ExitCode> {
            // One thread is enough for signals. Those that came meanwhile are known to `signals`.
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            // Whoever sent them while the node was handed over meant the node, which has been upgraded.
            runtime.block_on(async {
                while let Ok(wish) = timeout(Duration::ZERO, signals.next()).await {
                    if wish != Wish::Upgrade {
                        pass_on(wish, node);
                    }
                }
            });
            let is_over = relays.is_empty();
            let relaying = relay(relays, relayed)?;
            match guarded {
                None if is_over => Ok(ExitCode::SUCCESS),
                None => Ok(runtime.block_on(until_relayed(signals, relaying, drained))),
                Some(data_dir) => {
                    runtime.block_on(Watch { data_dir, node, last: 0, ended: None }.run(signals, relaying))
                }
            }
        };
        stay().unwrap_or_else(|error| {
            tracing::error!(%error, "this process cannot stay for the node's new one");
            ExitCode::FAILURE
        })
    }
}

/// Relays on a thread; when it has ended, so has the channel. There is no thread for nothing.
fn relay(relays: Relays, time: Duration) -> io::Result<oneshot::Receiver<()>> {
    let (ended, relaying) = oneshot::channel();
    if relays.is_empty() {
        return Ok(relaying);
    }
    tracing::info!(connections = relays.len(), "relaying connections under TLS 1.2");
    std::thread::Builder::new().name("relay".to_owned()).spawn(move || {
        if let Err(error) = relays.run(time) {
            tracing::error!(%error, "connections under TLS 1.2 are not relayed");
        }
        // Whoever waited may be gone.
        let _ = ended.send(());
    })?;
    Ok(relaying)
}

/// Stays until the last relayed connection has ended, or a signal says that the node ends, which ends them.
async fn until_relayed(
    mut signals: Signals,
    mut relaying: oneshot::Receiver<()>,
    drained: Duration,
) -> ExitCode {
    loop {
        tokio::select! {
            _ = &mut relaying => return ExitCode::SUCCESS,
            wish = signals.next() => match wish {
                Wish::Drain => break,
                Wish::Quit => return ExitCode::SUCCESS,
                Wish::Reload | Wish::Upgrade => {
                    tracing::warn!("a signal for the node came to a process that only relays for it; ignored");
                }
            },
        }
    }
    let ended = async {
        tokio::select! {
            _ = &mut relaying => {}
            () = quit(&mut signals) => {}
        }
    };
    // The node may stay when only this process was told to end.
    let _ = timeout(drained, ended).await;
    ExitCode::SUCCESS
}

async fn quit(signals: &mut Signals) {
    while signals.next().await != Wish::Quit {}
}

/// The guardian of a node.
struct Watch {
    data_dir: PathBuf,
    /// The process that has the node, as far as is known.
    node: u32,
    /// The exit code of the child that ended last.
    last: u8,
    /// That of the node's process, which has ended, and until when another process may say that it has the node now.
    ended: Option<(u8, Instant)>,
}

impl Watch {
    /// Watches until no child is left.
    async fn run(
        mut self,
        mut signals: Signals,
        mut relaying: oneshot::Receiver<()>,
    ) -> io::Result<ExitCode> {
        let mut children = signal(SignalKind::child())?;
        tracing::info!(node = self.node, "this process stays for whoever watches it");
        // First, too: a child may have ended before this listened.
        while self.reap()? {
            let until = self.ended.map(|(_, until)| until);
            let over = async {
                match until {
                    Some(until) => sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                wish = signals.next() => self.pass_on(wish),
                _ = children.recv() => {}
                () = over => {
                    let ended = self.node;
                    if self.present() == ended {
                        tracing::warn!("the node has ended, and a process that had it before has not");
                        break;
                    }
                    // The process before died while it handed over.
                    self.ended = None;
                }
            }
        }
        // What the node said last is still on its way to the relayed clients.
        if !relaying.is_terminated() {
            let _ = timeout(FAREWELL, &mut relaying).await;
        }
        Ok(ExitCode::from(self.ended.map_or(self.last, |(code, _)| code)))
    }

    /// Reaps the children that have ended; whether others are left.
    fn reap(&mut self) -> io::Result<bool> {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => self.note(pid, status),
                Ok(None) => return Ok(true),
                Err(Errno::CHILD) => return Ok(false),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn note(&mut self, pid: Pid, status: WaitStatus) {
        let pid = pid.as_raw_nonzero().get().unsigned_abs();
        self.last = code(status);
        if pid == self.present() {
            tracing::info!(pid, code = self.last, "the node's process has ended");
            self.ended = Some((self.last, Instant::now() + LINGER));
        } else {
            tracing::info!(pid, code = self.last, "a process that had the node before has ended");
        }
    }

    /// The process that has the node, or had it when it ended and removed the file that says so.
    fn present(&mut self) -> u32 {
        match NodeFile::read(&self.data_dir) {
            Ok(Some(file)) => self.node = file.pid,
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "node.json cannot be read"),
        }
        self.node
    }

    fn pass_on(&mut self, wish: Wish) {
        let node = self.present();
        if self.ended.is_none() {
            pass_on(wish, node);
        }
    }
}

/// Sends the node the signal that this process was sent. The node's process is a descendant, and nobody else has its number until it is
/// reaped.
fn pass_on(wish: Wish, node: u32) {
    let signal = match wish {
        Wish::Reload => Signal::HUP,
        Wish::Drain | Wish::Quit => Signal::TERM,
        Wish::Upgrade => Signal::USR2,
    };
    let Some(pid) = i32::try_from(node).ok().and_then(Pid::from_raw) else { return };
    if node == std::process::id() {
        return;
    }
    match kill_process(pid, signal) {
        Ok(()) => tracing::info!(node, ?signal, "passed on"),
        Err(error) => tracing::warn!(%error, node, ?signal, "the signal was not passed on"),
    }
}

/// As a shell says it.
fn code(status: WaitStatus) -> u8 {
    let code = status.exit_status().or_else(|| status.terminating_signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

/// How long the processes that had the node before may outlive it.
const LINGER: Duration = Duration::from_secs(10);
/// How long clients that are relayed have to close their connections.
const FAREWELL: Duration = Duration::from_secs(1);
