//! A live upgrade, as the old process sees it: the node goes on in another one, or here.

use super::{Running, failed};
use crate::cell::Joined;
use crate::control::Asked;
use crate::upgrade::wire::InCell;
use crate::upgrade::{Departure, Gone, Guardian, HandOverError, Handed, Remains};
use carillon_server::Standing;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

/// What became of a node that was handed over.
pub(crate) enum Left {
    /// The other process serves it.
    Served {
        /// The process.
        pid: u32,
        /// Sessions that it serves.
        sessions: u64,
        /// How long clients waited.
        silence_ms: u64,
        /// What is left for this process to do.
        remains: Remains,
    },
    /// The other process took it and does not serve it: the node is down.
    Lost(String),
}

impl Running {
    /// Another process stays for whoever watches it: this one need not, after a further upgrade.
    pub fn guard(&mut self, guardian: Option<u32>) {
        self.guardian = guardian;
    }

    /// From now on nobody can have it handed over.
    pub fn refuse_upgrades(&mut self, why: &'static str) {
        self.upgrade_refusal = Some(why);
    }

    /// Hands the node over as it was asked to, or goes on.
    pub(super) fn obey(self, mut asked: Asked) -> ControlFlow<Option<Remains>, Box<Running>> {
        let handed = match self.upgrade_refusal {
            Some(why) => Err((Box::new(self), why.to_owned())),
            None => self.upgrade(asked.binary().as_deref(), &mut |step| asked.step(step)),
        };
        match handed {
            Ok(Left::Served { pid, sessions, silence_ms, remains }) => {
                asked.done(pid, sessions, silence_ms);
                ControlFlow::Break(Some(remains))
            }
            Ok(Left::Lost(why)) => {
                asked.failed(&format!("the node is down: {why}"));
                failed(&why);
                ControlFlow::Break(None)
            }
            Err((running, why)) => {
                tracing::error!(%why, "not handed over; this process goes on");
                asked.failed(&format!("{why}; the old process still serves the node"));
                ControlFlow::Continue(running)
            }
        }
    }

    /// Hands the node over to a process of `binary`, or of this one's own; `told` hears of the steps. The node goes on here if that
    /// fails.
    fn upgrade(
        mut self,
        binary: Option<&Path>,
        told: &mut dyn FnMut(&str),
    ) -> Result<Left, (Box<Running>, String)> {
        let binary = binary.unwrap_or(&self.binary).to_owned();
        match self.hand_over(&binary, told) {
            Ok(handed) => Ok(self.leave(handed)),
            Err(error) => Err((Box::new(self), error.to_string())),
        }
    }

    /// Gives all sessions to another process, which waits for a last word.
    fn hand_over(&mut self, binary: &Path, told: &mut dyn FnMut(&str)) -> Result<Handed, HandOverError> {
        if self.server.node().drain_progress().is_some() {
            return Err(HandOverError::Draining);
        }
        let timeouts = self.config.settings.upgrade.timeouts();
        told(&format!("starting {}", binary.display()));
        let cell = self.in_cell();
        let is_in_cell = cell.is_some();
        let mut departure = Departure::begin(binary, self.data_dir(), self.guardian(), cell, timeouts)?;
        told(&format!("process {} of release {} is ready to take over", departure.pid, departure.release));
        departure.listeners(&self.server, &self.http.listeners, timeouts)?;
        if is_in_cell {
            // Only sessions are left to be handed over, and the claims of their accounts.
            self.server.node().lend_homes();
        }
        self.server.set_accepting(false);
        self.http.end(&self.runtime, timeouts.requests);
        let handed = departure.sessions(&self.server, timeouts);
        if handed.is_err() {
            if is_in_cell {
                self.server.node().take_homes_back();
            }
            self.server.set_accepting(true);
            if let Err(error) = self.http.resume(&self.runtime, &self.server) {
                tracing::error!(%error, "the HTTP APIs are not served any more; restart the node");
            }
        }
        handed
    }

    /// The node as the others of its cell know it.
    fn in_cell(&self) -> Option<InCell> {
        self.cell.as_ref()?;
        let node = self.server.node();
        let view = node.cell()?;
        let others = |standing: Standing| {
            let of =
                view.members.iter().filter(|member| member.node != view.own && member.standing == standing);
            of.map(|member| member.node.0).collect()
        };
        let own = view.members.iter().find(|member| member.node == view.own)?;
        Some(InCell {
            name: own.name.to_string(),
            epoch: view.own.0.into(),
            shards: node.shards(),
            nodes: others(Standing::Lives),
            leaving: others(Standing::Leaves),
        })
    }

    fn guardian(&self) -> Guardian {
        Guardian::of(self.guardian, self.config.settings.upgrade.stay)
    }

    /// Has the other process go on, and ends.
    fn leave(mut self, handed: Handed) -> Left {
        let settings = &self.config.settings;
        let relayed = Duration::from_millis(settings.upgrade.relay_timeout_ms);
        let closing = Duration::from_millis(settings.core.timeouts.close_ms);
        let node = &settings.node;
        let drained =
            Duration::from_millis(node.drain_delay_ms + node.drain_spread_ms + node.drain_timeout_ms);
        let pid = handed.pid();
        let guarded = (self.guardian() == Guardian::Own).then(|| node.data_dir.clone());
        self.cell.iter_mut().for_each(Joined::hand_over);
        let (gone, sessions) = match handed.go(&mut self.server, &self.supervisor) {
            Ok(gone) => gone,
            Err(why) => {
                return Left::Lost(format!("the new process failed before it served: {why}; see its log"));
            }
        };
        let Gone { sessions: count, silence } = gone;
        let silence_ms = silence.as_millis() as u64;
        tracing::info!(pid, sessions = count, silence_ms, "handed over");
        let relays = self.server.leave(sessions, closing);
        self.runtime.shutdown_timeout(Duration::from_millis(100));
        let remains = Remains { relays, relayed, drained, node: pid, guarded };
        Left::Served { pid, sessions: count, silence_ms, remains }
    }
}
