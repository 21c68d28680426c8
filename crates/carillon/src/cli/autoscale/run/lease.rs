//! One active scaler at a time, wherever they run: a lease that a node keeps.

use super::super::event::{Event, Recent};
use crate::web::segment;
use crate::web::{Web, secret};
use carillon_core::ports::store::leases::STATE_MAX;
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// `[lease]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LeaseSettings {
    /// URL of the node's HTTP API.
    url: String,
    /// A file with an admin key of the whole node.
    key_file: PathBuf,
    /// The name of the lease: one for each thing that is scaled.
    #[serde(default = "autoscale")]
    name: String,
    /// Who takes it: by default this machine and the decision log, so that a scaler that is started again goes on at once.
    holder: Option<String>,
}

fn autoscale() -> String {
    "autoscale".to_owned()
}

/// A lease that is taken again and again.
pub(super) struct Lease {
    web: Web,
    url: String,
    key: String,
    holder: String,
    ttl: Duration,
    is_held: bool,
    /// When it was taken last.
    taken: Instant,
}

/// A lease is taken for so many intervals: one that is missed loses nothing.
const INTERVALS: u32 = 3;
/// The shortest that a node gives.
const SHORTEST: Duration = Duration::from_secs(1);

impl Lease {
    pub(super) fn new(settings: LeaseSettings, log: &Path, interval: Duration) -> Result<Lease, String> {
        let LeaseSettings { url, key_file, name, holder } = settings;
        let key = secret(&key_file).map_err(|why| format!("lease.key_file: {why}"))?;
        let log = std::path::absolute(log).map_err(|error| format!("log: {error}"))?;
        let holder = holder.unwrap_or_else(|| {
            let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
            format!("{}:{}", machine.trim(), log.display())
        });
        let url = format!("{}/v1/admin/leases/{}", url.trim_end_matches('/'), segment(&name));
        let ttl = interval.saturating_mul(INTERVALS).max(SHORTEST);
        Ok(Lease { web: Web::new(None)?, url, key, holder, ttl, is_held: false, taken: Instant::now() })
    }

    /// Takes it, or holds it longer.
    ///
    /// # Errors
    /// It is somebody else's, or the node cannot be asked. Then nothing is put into force.
    pub(super) fn take(&mut self) -> Result<(), String> {
        self.is_held = false;
        self.post(&json!({"holder": self.holder, "ttl_ms": self.ttl_ms()}))
    }

    /// Holds it longer, if a third of its time is over since it was taken.
    ///
    /// # Errors
    /// As of `take`.
    pub(super) fn renew(&mut self) -> Result<(), String> {
        if self.taken.elapsed() < self.ttl / INTERVALS {
            return Ok(());
        }
        self.take()
    }

    /// Says what was decided and what came of it, if it is held.
    ///
    /// # Errors
    /// It was lost meanwhile, or the node cannot be asked. That changes nothing of the decision.
    pub(super) fn say(&mut self, event: &Event, recent: &Recent) -> Result<(), String> {
        if !self.is_held {
            return Ok(());
        }
        let state = event.state(recent, STATE_MAX);
        self.post(&json!({"holder": self.holder, "ttl_ms": self.ttl_ms(), "state": state}))
    }

    fn ttl_ms(&self) -> u64 {
        self.ttl.as_millis() as u64
    }

    fn post(&mut self, body: &Value) -> Result<(), String> {
        let asked = Instant::now();
        let answer = self.ask("POST", &self.url, Some(&body.to_string()))?;
        let problem: Value = serde_json::from_str(&answer.1).unwrap_or_default();
        let detail = problem["detail"].as_str().unwrap_or_default();
        match answer.0 {
            200 => {
                (self.is_held, self.taken) = (true, asked);
                Ok(())
            }
            409 => Err(format!("another scaler is active: {detail}")),
            status => Err(format!("the lease cannot be taken: {} answers {status}: {detail}", self.url)),
        }
    }

    /// Gives it up, so that another need not wait until it ends.
    pub(super) fn release(&mut self) {
        if std::mem::take(&mut self.is_held) {
            let url = format!("{}?holder={}", self.url, segment(&self.holder));
            // It ends by itself.
            let _ = self.ask("DELETE", &url, None);
        }
    }

    fn ask(&self, method: &str, url: &str, body: Option<&str>) -> Result<(u16, String), String> {
        let bearer = format!("Bearer {}", self.key);
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
        let answer = self.web.ask(method, url, &headers, body);
        let answer = answer.map_err(|why| format!("the lease cannot be taken: {why}"))?;
        Ok((answer.status, answer.body))
    }
}
