//! Certificates that are renewed while the node runs.

use crate::assemble;
use crate::config::Settings;
use carillon_server::tls::{self, SettingsError};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, Interval, MissedTickBehavior};

/// Looks at the files of the certificates from time to time.
pub(super) struct CertificateFiles {
    /// None where nobody wants that.
    interval: Option<Interval>,
    seen: Vec<Stamp>,
}

/// By what it is told that a file has changed.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    path: PathBuf,
    changed: Option<(SystemTime, u64)>,
}

impl CertificateFiles {
    /// Nothing is seen yet, so that what was written while the node started is found the first time. Called within the runtime.
    pub(super) fn new(settings: &Settings) -> CertificateFiles {
        let every = Duration::from_millis(settings.node.certificates_watch_ms);
        let interval = (!every.is_zero()).then(|| {
            let mut interval = tokio::time::interval_at(Instant::now() + every, every);
            interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
            interval
        });
        CertificateFiles { interval, seen: Vec::new() }
    }

    /// Waits until a file has changed. A change is told once, also where the files cannot be used: then they are written yet.
    pub(super) async fn changed(&mut self, settings: &Settings) {
        loop {
            match &mut self.interval {
                Some(interval) => interval.tick().await,
                None => std::future::pending().await,
            };
            if self.look(settings) {
                return;
            }
        }
    }

    /// Reads the certificates.
    pub(super) fn read(&mut self, settings: &Settings) -> Result<tls::Settings, SettingsError> {
        // Before they are read: what is written meanwhile is a change.
        self.look(settings);
        assemble::certificates(settings)
    }

    fn look(&mut self, settings: &Settings) -> bool {
        let now = stamps(settings);
        let has_changed = now != self.seen;
        self.seen = now;
        has_changed
    }
}

fn stamps(settings: &Settings) -> Vec<Stamp> {
    let node = &settings.node;
    let own = [&node.certificate, &node.certificate_key].into_iter().flatten().cloned();
    // A folder that cannot be read is a change as well, of which reading them says more.
    let others = node.certificates.as_ref().and_then(|folder| tls::certificate_files(folder).ok());
    let others = others.unwrap_or_default().into_iter().flat_map(|(chain, key)| [chain, key]);
    own.chain(others).map(stamp).collect()
}

fn stamp(path: PathBuf) -> Stamp {
    // Of what a symbolic link leads to: certbot changes the link.
    let changed = |path: &Path| {
        let metadata = std::fs::metadata(path).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    };
    Stamp { changed: changed(&path), path }
}
